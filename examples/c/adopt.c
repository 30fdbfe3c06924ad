/* adopt.c - forks a worker, which runs a function and no program, and gives
 * it a second.
 *
 *    $ ./adopt 0
 *    the worker left with 7
 *    $ ./adopt 60
 *    the worker was killed by signal 15
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wean.h>

/* Both parent and child make the group: whoever is the first. */
static pid_t start_worker(unsigned seconds)
{
	pid_t pid = fork();

	if (pid > 0)
		setpgid(pid, pid);
	if (pid != 0)
		return pid;
	setpgid(0, 0);
	wean_closefrom(3);
	sleep(seconds);
	_exit(7);
}

int main(int argc, char **argv)
{
	struct wean_child child;
	struct wean_status status;
	pid_t pid;
	int error;

	if (argc != 2) {
		fprintf(stderr, "usage: adopt seconds\n");
		return 2;
	}
	pid = start_worker((unsigned)atoi(argv[1]));
	if (pid < 0 || wean_adopt(&child, pid, WEAN_NEW_GROUP)) {
		fprintf(stderr, "adopt: there is no worker\n");
		return 1;
	}
	error = wean_wait(&child, 1000, &status);
	if (error == ETIMEDOUT)
		error = wean_stop(&child, 1000, &status);
	wean_release(&child);
	if (error) {
		fprintf(stderr, "adopt: the worker does not end\n");
		return 1;
	}
	if (status.kind == WEAN_EXITED)
		printf("the worker left with %d\n", status.value);
	else if (status.kind == WEAN_SIGNALED)
		printf("the worker was killed by signal %d\n", status.value);
	else
		printf("the worker is over, reaped by another\n");
	return 0;
}
