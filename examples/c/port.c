/* port.c - a program that was written for popen(3) and system(3).  The one
 * line that names this library turns it over; so does, without any change,
 * cc -include wean_popen_compat.h.
 *
 *    $ ./port sort
 *    apples
 *    oranges
 *    pears
 *    sort ended with status 0
 *    $ ./port 'tr a-z A-Z | head -n 1; exit 3'
 *    PEARS
 *    tr a-z A-Z | head -n 1; exit 3 ended with status 3
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <wean_popen_compat.h>

int main(int argc, char **argv)
{
	FILE *stream;
	int status;

	if (argc != 2) {
		fprintf(stderr, "usage: port command\n");
		return 2;
	}
	if (system(NULL) == 0) {
		fprintf(stderr, "there is no shell\n");
		return 1;
	}
	stream = popen(argv[1], "w");
	if (!stream) {
		perror(argv[1]);
		return 1;
	}
	fputs("pears\napples\noranges\n", stream);
	status = pclose(stream);
	if (status < 0) {
		perror(argv[1]);
		return 1;
	}
	printf("%s ended with status %d\n", argv[1], WEXITSTATUS(status));
	return 0;
}
