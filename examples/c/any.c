/* any.c - runs shell commands, so many at a time, and tells how each of them
 * ended as soon as it did.
 *
 *    $ ./any 2 'sleep 2; exit 1' 'exit 2' 'exit 3'
 *    2 exit 2
 *    3 exit 3
 *    1 sleep 2; exit 1
 */
#include <stdio.h>
#include <stdlib.h>
#include <wean.h>

enum { MOST = 64 };

/* Places that are all-zero, or that were released, are free. */
static struct wean_child children[MOST];
static char *commands[MOST];

static void start(size_t place, char *command)
{
	char shell[] = "/bin/sh", option[] = "-c", text[512];
	char *const argv[] = {shell, option, command, NULL};
	int error = wean_spawn(&children[place], argv, NULL);

	commands[place] = command;
	if (error) {
		wean_explain(&children[place], argv, NULL, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
	}
}

/* Frees a place and gives its number; -1: none is taken. */
static int finish_one(size_t n)
{
	struct wean_status status;
	size_t which;

	if (wean_wait_any(children, n, -1, &which))
		return -1;
	wean_wait(&children[which], 0, &status);
	printf("%d %s\n", status.code, commands[which]);
	fflush(stdout);
	wean_release(&children[which]);
	return (int)which;
}

int main(int argc, char **argv)
{
	int n, next = 2, place;

	if (argc < 3 || (n = atoi(argv[1])) < 1 || n > MOST) {
		fprintf(stderr, "usage: any number command ...\n");
		return 2;
	}
	for (place = 0; place < n && argv[next]; place++)
		start((size_t)place, argv[next++]);
	while ((place = finish_one((size_t)n)) >= 0)
		if (argv[next])
			start((size_t)place, argv[next++]);
	return 0;
}
