/* wait.c - runs a program for so many milliseconds at the most.  Then it
 * is asked to end, and killed if it has not ended a second later.
 *
 *    $ ./wait 60000 sh -c 'exit 3'; echo $?
 *    3
 *    $ ./wait 100 sleep 60; echo $?
 *    sleep still runs after 100 ms
 *    143
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <wean.h>

static void end(struct wean_child *child, struct wean_status *status)
{
	wean_kill(child, SIGTERM);
	if (wean_wait(child, 1000, status) != ETIMEDOUT)
		return;
	wean_kill(child, SIGKILL);
	wean_wait(child, -1, status);
}

int main(int argc, char **argv)
{
	struct wean_child child;
	struct wean_status status;
	char text[512];
	int error, limit;

	if (argc < 3 || (limit = atoi(argv[1])) <= 0) {
		fprintf(stderr, "usage: wait milliseconds program ...\n");
		return 2;
	}
	error = wean_spawn(&child, argv + 2, NULL);
	if (error) {
		wean_explain(&child, argv + 2, NULL, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
		return 127;
	}
	if (wean_wait(&child, limit, &status) == ETIMEDOUT) {
		fprintf(stderr, "%s still runs after %d ms\n", argv[2],
		        limit);
		end(&child, &status);
	}
	wean_release(&child);
	return status.code;
}
