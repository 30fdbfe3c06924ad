/* lines.c - shows the lines of a program, and ends it when it has been silent
 * for so many milliseconds.
 *
 *    $ ./lines 60000 printf 'one\ntwo\nno newline'
 *    [one]
 *    [two]
 *    [no newline]
 *    $ ./lines 2000 sh -c 'echo one; echo two; sleep 60'
 *    [one]
 *    [two]
 *    silent for 2000 ms
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wean.h>

/* 0: the output has ended.  Of a line that is longer than 1 MiB each part is
   shown for itself. */
static int show_lines(wean_reader *reader)
{
	const char *line;
	size_t len;
	int error;

	for (;;) {
		error = wean_read_line(reader, &line, &len);
		if (error && error != EMSGSIZE)
			return error;
		if (!line)
			return 0;
		printf("[%s]\n", line);
	}
}

int main(int argc, char **argv)
{
	struct wean_options options = {
		.out = WEAN_PIPE, .flags = WEAN_NEW_GROUP,
	};
	struct wean_child child;
	wean_reader *reader = NULL;
	int error, limit;

	if (argc < 3 || (limit = atoi(argv[1])) <= 0) {
		fprintf(stderr, "usage: lines milliseconds program ...\n");
		return 2;
	}
	error = wean_spawn(&child, argv + 2, &options);
	if (!error)
		error = wean_reader_new(&reader, child.out, 0);
	if (!error) {
		wean_reader_timeout(reader, limit);
		error = show_lines(reader);
	}
	if (error == ETIMEDOUT)
		printf("silent for %d ms\n", limit);
	else if (error)
		fprintf(stderr, "%s: %s\n", argv[2], strerror(error));
	wean_reader_free(reader);
	if (error)
		wean_stop(&child, 1000, NULL);
	else
		wean_wait(&child, -1, NULL);
	wean_release(&child);
	return error ? 1 : 0;
}
