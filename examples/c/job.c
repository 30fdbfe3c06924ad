/* job.c - numbers the lines that a long job writes, as they come, and ends the
 * job, with all that it started, after so many milliseconds.
 *
 *    $ ./job 60000 sh -c 'echo one; echo two; exit 3'; echo $?
 *    1 one
 *    2 two
 *    3
 *    $ ./job 2000 sh -c 'trap "echo bye; exit" TERM; echo one; sleep 60 & wait'
 *    1 one
 *    2 bye
 *    sh was ended after 2000 ms
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wean.h>

static int number(void *context, const char *line, size_t len)
{
	int *n = context;

	printf("%d ", ++*n);
	fwrite(line, 1, len, stdout);
	putchar('\n');
	return fflush(stdout) ? errno : 0;
}

int main(int argc, char **argv)
{
	struct wean_options options = {
		.err = WEAN_MERGE, .flags = WEAN_NEW_GROUP,
	};
	int error, n = 0;
	struct wean_io io = {
		.on_out = number, .context = &n, .flags = WEAN_LINES,
		.grace_ms = 5000,
	};
	struct wean_result result;

	if (argc < 3 || (io.timeout_ms = atoi(argv[1])) <= 0) {
		fprintf(stderr, "usage: job milliseconds program ...\n");
		return 2;
	}
	error = wean_run(argv + 2, &options, &io, &result);
	if (result.flags & WEAN_TIMED_OUT)
		printf("%s was ended after %d ms\n", argv[2], io.timeout_ms);
	else if (error)
		fprintf(stderr, "%s: %s\n", argv[2], strerror(error));
	wean_result_free(&result);
	return error ? 1 : result.status.code;
}
