/* first.c - runs a program and tells how it ended.
 *
 *    $ ./first sh -c 'exit 3'
 *    sh left with 3
 *    $ ./first sh -c 'kill -TERM $$'; echo $?
 *    sh was killed by signal 15
 *    143
 *    $ ./first ./missing
 *    cannot run './missing': No such file or directory
 */
#include <stdio.h>
#include <string.h>
#include <wean.h>

int main(int argc, char **argv)
{
	struct wean_child child;
	struct wean_status status;
	char text[512];
	int error;

	if (argc < 2) {
		fprintf(stderr, "usage: first program ...\n");
		return 2;
	}
	error = wean_spawn(&child, argv + 1, NULL);
	if (error) {
		wean_explain(&child, argv + 1, NULL, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
		return 127;
	}
	error = wean_wait(&child, -1, &status);
	wean_release(&child);
	if (error) {
		fprintf(stderr, "cannot wait: %s\n", strerror(error));
		return 1;
	}
	if (status.kind == WEAN_EXITED)
		printf("%s left with %d\n", argv[1], status.value);
	else if (status.kind == WEAN_SIGNALED)
		printf("%s was killed by signal %d\n", argv[1],
		       status.value);
	else
		printf("%s is over, reaped by another\n", argv[1]);
	return status.code;
}
