/* stop.c - runs a program for so many milliseconds at the most.  Then it and
 * all that it started is asked to end, and killed if it has not ended a
 * second later.
 *
 *    $ ./stop 60000 sh -c 'exit 3'; echo $?
 *    3
 *    $ ./stop 500 sh -c 'sleep 60 & sleep 60' | cat
 *    sh still runs after 500 ms
 *
 * The second one ends because no sleep is left that holds the pipe.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <wean.h>

int main(int argc, char **argv)
{
	struct wean_options options = {.flags = WEAN_NEW_GROUP};
	struct wean_child child;
	struct wean_status status;
	char text[512];
	int error, limit;

	if (argc < 3 || (limit = atoi(argv[1])) <= 0) {
		fprintf(stderr, "usage: stop milliseconds program ...\n");
		return 2;
	}
	error = wean_spawn(&child, argv + 2, &options);
	if (error) {
		wean_explain(&child, argv + 2, &options, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
		return 127;
	}
	error = wean_wait(&child, limit, &status);
	if (error == ETIMEDOUT) {
		fprintf(stderr, "%s still runs after %d ms\n", argv[2],
		        limit);
		error = wean_stop(&child, 1000, &status);
	}
	wean_release(&child);
	if (error) {
		fprintf(stderr, "%s does not end\n", argv[2]);
		return 1;
	}
	return status.code;
}
