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

/* A place without a command is free: its struct holds no child. */
static struct wean_child children[MOST];
static char *commands[MOST];

static void start(size_t place, char *command)
{
	char shell[] = "/bin/sh", option[] = "-c", text[512];
	char *const argv[] = {shell, option, command, NULL};
	int error = wean_spawn(&children[place], argv, NULL);

	if (!error) {
		commands[place] = command;
		return;
	}
	wean_explain(&children[place], argv, NULL, error, text, sizeof text);
	fprintf(stderr, "%s\n", text);
}

/* Frees a place and gives its number; -1: none is taken. */
static int finish_one(size_t n)
{
	struct wean_status status;
	size_t which;

	if (wean_wait_any(children, n, -1, &which))
		return -1;
	if (wean_wait(&children[which], 0, &status))
		printf("? %s\n", commands[which]);
	else
		printf("%d %s\n", status.code, commands[which]);
	fflush(stdout);
	wean_release(&children[which]);
	commands[which] = NULL;
	return (int)which;
}

static size_t free_place(size_t n)
{
	for (size_t place = 0; place < n; place++)
		if (!commands[place])
			return place;
	return (size_t)finish_one(n);
}

int main(int argc, char **argv)
{
	int n;

	if (argc < 3 || (n = atoi(argv[1])) < 1 || n > MOST) {
		fprintf(stderr, "usage: any number command ...\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		start(free_place((size_t)n), argv[i]);
	while (finish_one((size_t)n) >= 0)
		;
	return 0;
}
