/* parts.c - of what the time of a start is made: the bare clone3(2), and what the library
   does besides, one thing after the other, up to the library itself.  Wants clone3,
   CLONE_CLEAR_SIGHAND (Linux 5.5) and a shared table that is cut (5.9). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wean.h>

#include "../../src/clone3.h"
#include "times.h"

enum { CUT, MASKS, CLEAR, ASKS, SETS, PIDFD, LIBRARY, PARTS }; /* each with those before */
enum { TURNS = 4000, BATCH = 16 };

static const char *const names[PARTS + 1] = {
	"clone3(VM, VFORK), execve, waitid",
	"CLONE_FILES, close_range(UNSHARE) in the child",
	"the mask: two calls here, one in the child",
	"CLEAR_SIGHAND, exit signal 0, waitid(__WCLONE)",
	"F_GETFD of 0, 1 and 2 in the child",
	"rt_sigaction of three signals in the child",
	"the pidfd: made, waited for, closed",
	"the library: request, plan, report, handle",
};

extern char **environ;

struct birth {
	int parts; /* so many of them */
	char **argv;
	unsigned long mask;
};

static int has(const struct birth *b, int part)
{
	return b->parts > part;
}

static int child(void *arg)
{
	static const int signals[] = {SIGPIPE, SIGXFSZ, SIGCHLD};
	static const unsigned long none;
	static const uint64_t action[8];
	const struct birth *b = arg;

	if (has(b, CUT))
		syscall(SYS_close_range, 3, ~0U, 2 /* CLOSE_RANGE_UNSHARE */);
	for (int fd = 0; fd < 3 && has(b, ASKS); fd++)
		syscall(SYS_fcntl, fd, F_GETFD);
	for (int i = 0; i < 3 && has(b, SETS); i++)
		syscall(SYS_rt_sigaction, signals[i], action, NULL, sizeof none);
	if (has(b, MASKS))
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
	syscall(SYS_execve, b->argv[0], b->argv, environ);
	syscall(SYS_exit_group, 127);
	return 0;
}

/* As the kernel has it. */
struct clone_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

static int wait_for(idtype_t type, int id)
{
	siginfo_t info;

	if (waitid(type, (id_t)id, &info, WEXITED | __WALL))
		return errno;
	return info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : EPROTO;
}

static int start(struct birth *b)
{
	static const unsigned long all = ~0UL;
	_Alignas(16) char stack[4096];
	int fd = -1, error = 0;
	struct clone_args a = {
		.flags = 0x4100 /* VM, VFORK */ | (has(b, CUT) ? 0x400 : 0)
			| (has(b, CLEAR) ? 0x100000000 : 0) | (has(b, PIDFD) ? 0x1000 : 0),
		.exit_signal = has(b, CLEAR) ? 0 : SIGCHLD, .pidfd = (uintptr_t)&fd,
		.stack = (uintptr_t)stack, .stack_size = sizeof stack,
	};
	long pid;

	if (has(b, MASKS))
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &b->mask, sizeof all);
	pid = wean_clone3(&a, sizeof a, child, b);
	if (pid >= 0 && has(b, CLEAR) && !waitid(P_PID, (id_t)pid, NULL, WEXITED | (int)__WCLONE))
		error = EPROTO;
	if (has(b, MASKS))
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &b->mask, NULL, sizeof all);
	if (pid < 0)
		return (int)-pid;
	if (!error)
		error = has(b, PIDFD) ? wait_for(P_PIDFD, fd) : wait_for(P_PID, (int)pid);
	if (fd >= 0)
		close(fd);
	return error;
}

static int start_by_library(char **argv)
{
	struct wean_status status;
	struct wean_child c;
	int error = wean_spawn(&c, argv, NULL);

	if (!error)
		error = wean_wait(&c, -1, &status);
	wean_release(&c);
	return error ? error : status.code;
}

static int run_parts(int parts, char **argv)
{
	struct birth b = {.parts = parts, .argv = argv};

	return parts == PARTS ? start_by_library(argv) : start(&b);
}

static double times[PARTS + 1][TURNS];

/* The fastest of a turn. */
static int take_turn(int parts, int turn, char **argv)
{
	double best = 1e18;

	for (int i = 0; i < BATCH; i++) {
		long long begin = now();
		int error = run_parts(parts, argv);
		double took = (double)(now() - begin);

		if (error) {
			fprintf(stderr, "parts: with '%s': %s\n", names[parts], strerror(error));
			return 0;
		}
		best = took < best ? took : best;
	}
	times[parts][turn] = best;
	return 1;
}

static int help(FILE *f, int status)
{
	fprintf(f, "usage: parts PROGRAM [TURNS]\n"
	           "Measures of what the time of a start is made, one thing after the other.\n\n"
	           "  PROGRAM     what is started: t/bench/tiny\n"
	           "  TURNS       how often, 1 to %d; else 300\n"
	           "  -h, --help  tells this\n", TURNS);
	return status;
}

int main(int argc, char **argv)
{
	const int turns = argc > 2 ? atoi(argv[2]) : 300;
	char *program[] = {argv[1], NULL};
	double before = 0;

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return help(stdout, 0);
	if (argc < 2 || turns < 1 || turns > TURNS)
		return help(stderr, 2);
	for (int turn = 0; turn < turns; turn++)
		for (int i = 0; i <= PARTS; i++)
			if (!take_turn((i + turn) % (PARTS + 1), turn, program))
				return 1;
	printf("microseconds, the median of %d turns of which each gives its fastest start\n",
	       turns);
	for (int i = 0; i <= PARTS; i++) {
		const double us = tenths(5, times[i], (size_t)turns) / 1e3;

		printf("  %7.2f  %+6.2f  %s\n", us, i ? us - before : 0, names[i]);
		before = us;
	}
	return 0;
}
