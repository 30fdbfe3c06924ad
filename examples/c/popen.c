/* popen.c - numbers the lines that a command writes, and gives it so many
 * milliseconds to end after the last of them.  One argument is a command
 * text; several are a program and its arguments, which no shell looks at.
 *
 *    $ ./popen 5000 'echo one; echo two; exit 3'
 *    1 one
 *    2 two
 *    left with 3
 *    $ ./popen 5000 echo '$(date) is not run'
 *    1 $(date) is not run
 *    left with 0
 *    $ ./popen 100 'echo one; exec 1>&-; sleep 60'
 *    1 one
 *    it took too long
 *    $ ./popen 5000 ./missing program
 *    ./missing: No such file or directory
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wean_popen.h>

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;
	struct wean_status status;
	FILE *stream;
	int error, n = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: popen milliseconds command\n");
		return 2;
	}
	stream = argc == 3 ? wean_popen(argv[2], "r")
	                   : wean_popenv(argv + 2, "r");
	if (!stream) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		return 127;
	}
	while (getline(&line, &size, stream) > 0)
		printf("%d %s", ++n, line);
	free(line);
	error = wean_pclose_status(stream, atoi(argv[1]), &status);
	if (error == ETIMEDOUT)
		printf("it took too long\n");
	else if (error)
		fprintf(stderr, "%s: %s\n", argv[2], strerror(error));
	else if (status.kind == WEAN_SIGNALED)
		printf("killed by signal %d\n", status.value);
	else
		printf("left with %d\n", status.code);
	return error ? 1 : status.code;
}
