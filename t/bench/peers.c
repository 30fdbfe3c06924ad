/* peers.c - the peers that need nothing but the C library. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __GLIBC__ && defined __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
#define HAVE_ADDCLOSEFROM 1
#endif
#endif

enum { HOPELESS = 1 << 21 }; /* closes a start: more than a tenth of a second */

extern char **environ;

const char *never_absent(void)
{
	return NULL;
}

int drain(int fd)
{
	char data[512];
	ssize_t got, sum = 0;

	while ((got = read(fd, data, sizeof data)) > 0)
		sum += got;
	close(fd);
	return sum == 1 ? 0 : EPROTO;
}

int reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return errno;
	return status == 0 ? 0 : EPROTO;
}

/* Starts the program with `out` as its stdout, or ours if that is -1. */
typedef int start_fn(const struct job *job, int out, pid_t *pid);

static int run(const struct job *job, start_fn *start)
{
	int ends[2] = {-1, -1}, error, said = 0;
	pid_t pid = -1;

	if (job->pipe && pipe2(ends, O_CLOEXEC))
		return errno;
	error = start(job, ends[1], &pid);
	if (job->pipe) {
		close(ends[1]);
		said = drain(ends[0]);
	}
	if (!error)
		error = reap(pid);
	return error ? error : said;
}

/* In the child: closes 3 to end - 1. */
static _Noreturn void become(const struct job *job, int out, int end)
{
	if (out >= 0)
		dup2(out, 1);
	for (int fd = 3; fd < end; fd++)
		close(fd);
	execve(job->argv[0], job->argv, environ);
	_exit(127);
}

static int start_vfork(const struct job *job, int out, pid_t *pid)
{
	*pid = vfork();
	if (*pid == 0)
		become(job, out, 0);
	return *pid < 0 ? errno : 0;
}

static int start_fork(const struct job *job, int out, pid_t *pid)
{
	*pid = fork();
	if (*pid == 0)
		become(job, out, 0);
	return *pid < 0 ? errno : 0;
}

static int soft_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur > HOPELESS ? HOPELESS : (int)limit.rlim_cur;
}

static int start_close_loop(const struct job *job, int out, pid_t *pid)
{
	*pid = fork();
	if (*pid == 0)
		become(job, out, soft_limit());
	return *pid < 0 ? errno : 0;
}

static const char *close_loop_absent(void)
{
	return soft_limit() < HOPELESS ? NULL : "the limit means over 2 million closes";
}

static int add_actions(posix_spawn_file_actions_t *actions, int out, int closing)
{
	int error = 0;

	if (out >= 0)
		error = posix_spawn_file_actions_adddup2(actions, out, 1);
#ifdef HAVE_ADDCLOSEFROM
	if (!error && closing)
		error = posix_spawn_file_actions_addclosefrom_np(actions, 3);
#else
	(void)closing;
#endif
	return error;
}

static int posix_start(const struct job *job, int out, int closing, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);

	if (error)
		return error;
	error = add_actions(&actions, out, closing);
	if (!error)
		error = posix_spawn(pid, *job->argv, &actions, NULL, job->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static int start_posix_spawn(const struct job *job, int out, pid_t *pid)
{
	return posix_start(job, out, 0, pid);
}

static int start_closefrom(const struct job *job, int out, pid_t *pid)
{
	return posix_start(job, out, 1, pid);
}

static const char *closefrom_absent(void)
{
#ifdef HAVE_ADDCLOSEFROM
	return NULL;
#else
	return "this C library has no addclosefrom_np";
#endif
}

static int run_floor(const struct job *job)
{
	return run(job, start_vfork);
}

static int run_fork(const struct job *job)
{
	return run(job, start_fork);
}

static int run_close_loop(const struct job *job)
{
	return run(job, start_close_loop);
}

static int run_posix_spawn(const struct job *job)
{
	return run(job, start_posix_spawn);
}

static int run_closefrom(const struct job *job)
{
	return run(job, start_closefrom);
}

const struct peer
	peer_floor = {"floor", "vfork, execve; closes nothing", never_absent, run_floor},
	peer_fork = {"fork", "fork, execve; closes nothing", never_absent, run_fork},
	peer_close_loop = {"fork+close", "fork, close up to the limit, execve",
	                   close_loop_absent, run_close_loop},
	peer_posix_spawn = {"posix_spawn", "posix_spawn; closes nothing", never_absent,
	                    run_posix_spawn},
	peer_closefrom = {"posix_spawn+closefrom", "posix_spawn, addclosefrom_np(3)",
	                  closefrom_absent, run_closefrom};
