/* patient.c - collects what a program writes, and every 100 milliseconds does
 * something else.
 *
 *    $ ./patient sh -c 'echo begun; sleep 1; echo done'
 *    begun
 *    done
 *    there was time for other things
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <wean.h>

int main(int argc, char **argv)
{
	struct wean_options options = {.out = WEAN_PIPE};
	struct wean_io io = {.timeout_ms = 100};
	struct wean_result result = {0};
	struct wean_child child;
	int error, turns = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: patient program ...\n");
		return 2;
	}
	error = wean_spawn(&child, argv + 1, &options);
	/* The same call goes on where it was. */
	while (!error && (error = wean_communicate(&child, &io, &result)) != 0)
		if (error == ETIMEDOUT) {
			turns++;
			error = 0;
		}
	if (error)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(error));
	else
		fwrite(result.out, 1, result.out_len, stdout);
	if (turns > 0)
		printf("there was time for other things\n");
	wean_result_free(&result);
	wean_release(&child);
	return error ? 1 : result.status.code;
}
