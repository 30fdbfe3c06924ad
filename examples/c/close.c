/* close.c - a host's own fork: runs a program with a descriptor of the
 * caller's and the standard ones, and no other.
 *
 *    $ ./close 5 /bin/ls /proc/self/fd 5</dev/null 6</dev/null 7</dev/null
 *    0
 *    1
 *    2
 *    3
 *    5
 *
 * 3 is the directory that ls itself reads.
 */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wean.h>

/* In the child, which may only do what is safe in a signal handler. */
static void run(int keep, char **argv)
{
	if (wean_close_except(3, &keep, 1) == 0)
		execv(argv[0], argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	int keep, status;
	pid_t pid;

	if (argc < 3 || (keep = atoi(argv[1])) < 3) {
		fprintf(stderr, "usage: close descriptor program ...\n");
		return 2;
	}
	pid = fork();
	if (pid == 0)
		run(keep, argv + 2);
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		perror("close");
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
