/* spawn.c - runs a program in a directory and numbers the lines that it
 * writes, errors included.  Its input is empty and its language is C.
 *
 *    $ ./spawn / sh -c 'pwd; cat; echo "$LC_ALL"; echo done >&2'
 *    1 /
 *    2 C
 *    3 done
 *    $ ./spawn /missing pwd
 *    cannot enter directory '/missing': No such file or directory
 */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <unistd.h>
#include <wean.h>

/* Takes over the descriptor. */
static int number_lines(int fd)
{
	FILE *stream = fdopen(fd, "r");
	int c, last = '\n', n = 0;

	if (!stream) {
		perror("spawn");
		close(fd);
		return 1;
	}
	while ((c = getc(stream)) != EOF) {
		if (last == '\n')
			printf("%d ", ++n);
		putchar(c);
		last = c;
	}
	fclose(stream);
	return 0;
}

int main(int argc, char **argv)
{
	static char *const edit[] = {"LC_ALL=C", "LANGUAGE", NULL};
	struct wean_options options = {
		.in = WEAN_NULL, .out = WEAN_PIPE, .err = WEAN_MERGE,
		.env_edit = edit,
	};
	struct wean_child child;
	struct wean_status status;
	char text[512];
	int error, unread;

	if (argc < 3) {
		fprintf(stderr, "usage: spawn directory program ...\n");
		return 2;
	}
	options.dir = argv[1];
	error = wean_spawn(&child, argv + 2, &options);
	if (error) {
		wean_explain(&child, argv + 2, &options, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
		return 127;
	}
	unread = number_lines(child.out);
	child.out = -1;
	error = wean_wait(&child, -1, &status);
	wean_release(&child);
	return unread || error ? 1 : status.code;
}
