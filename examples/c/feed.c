/* feed.c - gives a program a text to read, and shows what it writes.
 *
 *    $ ./feed 'some text' tr a-z A-Z
 *    SOME TEXT
 *    $ ./feed 'some text' sh -c 'exit 3'; echo $?
 *    3
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wean.h>

/* A program that does not read all of it is no fault.  The close is what the
   program sees as the end of its input. */
static void feed(struct wean_child *child, const char *text)
{
	if (dprintf(child->in, "%s\n", text) < 0 && errno != EPIPE)
		perror("feed");
	close(child->in);
	child->in = -1;
}

static void copy(int fd)
{
	char data[4096];
	ssize_t len;

	while ((len = read(fd, data, sizeof data)) > 0)
		fwrite(data, 1, (size_t)len, stdout);
}

int main(int argc, char **argv)
{
	struct wean_options options = {.in = WEAN_PIPE, .out = WEAN_PIPE};
	struct wean_child child;
	struct wean_status status;
	char text[512];
	int error;

	/* A pipe has room for PIPE_BUF bytes.  To write more without reading
	   would be to wait for a program that may wait for us. */
	if (argc < 3 || strlen(argv[1]) >= PIPE_BUF) {
		fprintf(stderr, "usage: feed short-text program ...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	error = wean_spawn(&child, argv + 2, &options);
	if (error) {
		wean_explain(&child, argv + 2, &options, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
		return 127;
	}
	feed(&child, argv[1]);
	copy(child.out);
	error = wean_wait(&child, -1, &status);
	wean_release(&child);
	return error ? 1 : status.code;
}
