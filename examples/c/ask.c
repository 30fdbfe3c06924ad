/* ask.c - asks a program one thing after another, and then ends its input.
 *
 *    $ ./ask one two -- sh -c 'while read x; do echo "got $x"; done; echo end'
 *    one: got one
 *    two: got two
 *    at last: end
 */
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wean.h>

/* 0: there was an answer. */
static int show_answer(wean_reader *reader, const char *to)
{
	const char *line;
	size_t len;
	int error = wean_read_line(reader, &line, &len);

	if (error || !line)
		return 1;
	printf("%s: %s\n", to, line);
	return 0;
}

/* A question is short, and a pipe that the program has read has room for it. */
static int ask(const struct wean_child *child, wean_reader *reader,
               const char *question)
{
	if (dprintf(child->in, "%s\n", question) < 0)
		return 1;
	return show_answer(reader, question);
}

/* The close is the end of the input: no other process has this end. */
static void end_input(struct wean_child *child)
{
	close(child->in);
	child->in = -1;
}

int main(int argc, char **argv)
{
	struct wean_options options = {.in = WEAN_PIPE, .out = WEAN_PIPE};
	struct wean_child child;
	struct wean_status status;
	wean_reader *reader;
	int n = 1;

	while (n < argc && strcmp(argv[n], "--"))
		n++;
	if (n + 1 >= argc) {
		fprintf(stderr, "usage: ask question ... -- program ...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (wean_spawn(&child, argv + n + 1, &options)
	    || wean_reader_new(&reader, child.out, 0)) {
		fprintf(stderr, "ask: cannot start %s\n", argv[n + 1]);
		return 1;
	}
	for (int i = 1; i < n; i++)
		if (ask(&child, reader, argv[i]))
			break;
	end_input(&child);
	while (show_answer(reader, "at last") == 0)
		;
	wean_reader_free(reader);
	if (wean_wait(&child, -1, &status))
		status.code = 1;
	wean_release(&child);
	return status.code;
}
