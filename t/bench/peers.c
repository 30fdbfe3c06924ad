/* peers.c - the peers that need nothing but the C library. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
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

static int drain(int fd, ssize_t expected)
{
	char data[512];
	ssize_t got, sum = 0;

	while ((got = read(fd, data, sizeof data)) > 0)
		sum += got;
	close(fd);
	return sum == expected ? 0 : EPROTO;
}

int drain_ends(int in, int out, int err)
{
	int said, complained;

	if (in >= 0)
		close(in);
	said = out >= 0 ? drain(out, 1) : 0;
	complained = err >= 0 ? drain(err, 0) : 0;
	return said ? said : complained;
}

int reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return errno;
	return status == 0 ? 0 : EPROTO;
}

/* ---- a start, with pipes or without ---- */

/* Of the program's 0, 1 and 2: our end, and its own; -1: ours goes on. */
struct pipes {
	int here[3], there[3];
};

static void close_ends(int ends[3])
{
	for (int fd = 0; fd < 3; fd++)
		if (ends[fd] >= 0)
			close(ends[fd]);
}

static int open_pipes(struct pipes *p, int n)
{
	*p = (struct pipes){{-1, -1, -1}, {-1, -1, -1}};
	for (int fd = 0; fd < 3; fd++) {
		int ends[2];

		if (n == 0 || (n == 1 && fd != 1))
			continue;
		if (pipe2(ends, O_CLOEXEC))
			return errno;
		p->here[fd] = ends[fd == 0];
		p->there[fd] = ends[fd != 0];
	}
	return 0;
}

/* Starts the program with these, where they are not -1, as its 0, 1 and 2. */
typedef int start_fn(const struct job *job, const int ends[3], pid_t *pid);

static int run(struct job *job, start_fn *start)
{
	struct pipes p;
	int error = open_pipes(&p, job->pipes), said;
	pid_t pid = -1;

	if (!error)
		error = start(job, p.there, &pid);
	job->started = now();
	close_ends(p.there);
	if (error) {
		close_ends(p.here);
		return error;
	}
	said = drain_ends(p.here[0], p.here[1], p.here[2]);
	error = reap(pid);
	return error ? error : said;
}

/* In the child: closes 3 to end - 1. */
static _Noreturn void become(const struct job *job, const int ends[3], int end)
{
	for (int fd = 0; fd < 3; fd++)
		if (ends[fd] >= 0)
			dup2(ends[fd], fd);
	for (int fd = 3; fd < end; fd++)
		close(fd);
	execvp(job->argv[0], job->argv);
	_exit(127);
}

static int start_vfork(const struct job *job, const int ends[3], pid_t *pid)
{
	*pid = vfork();
	if (*pid == 0)
		become(job, ends, 0);
	return *pid < 0 ? errno : 0;
}

static int start_fork(const struct job *job, const int ends[3], pid_t *pid)
{
	*pid = fork();
	if (*pid == 0)
		become(job, ends, 0);
	return *pid < 0 ? errno : 0;
}

static int soft_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur > HOPELESS ? HOPELESS : (int)limit.rlim_cur;
}

static int start_close_loop(const struct job *job, const int ends[3], pid_t *pid)
{
	*pid = fork();
	if (*pid == 0)
		become(job, ends, soft_limit());
	return *pid < 0 ? errno : 0;
}

static const char *close_loop_absent(void)
{
	return soft_limit() < HOPELESS ? NULL : "the limit means over 2 million closes";
}

static int add_actions(posix_spawn_file_actions_t *actions, const int ends[3], int closing)
{
	int error = 0;

	for (int fd = 0; fd < 3 && !error; fd++)
		if (ends[fd] >= 0)
			error = posix_spawn_file_actions_adddup2(actions, ends[fd], fd);
#ifdef HAVE_ADDCLOSEFROM
	if (!error && closing)
		error = posix_spawn_file_actions_addclosefrom_np(actions, 3);
#else
	(void)closing;
#endif
	return error;
}

static int posix_start(const struct job *job, const int ends[3], int closing, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);

	if (error)
		return error;
	error = add_actions(&actions, ends, closing);
	if (!error)
		error = posix_spawnp(pid, *job->argv, &actions, NULL, job->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static int start_posix_spawn(const struct job *job, const int ends[3], pid_t *pid)
{
	return posix_start(job, ends, 0, pid);
}

static int start_closefrom(const struct job *job, const int ends[3], pid_t *pid)
{
	return posix_start(job, ends, 1, pid);
}

static const char *closefrom_absent(void)
{
#ifdef HAVE_ADDCLOSEFROM
	return NULL;
#else
	return "this C library has no addclosefrom_np";
#endif
}

static int run_floor(struct job *job)
{
	return run(job, start_vfork);
}

static int run_fork(struct job *job)
{
	return run(job, start_fork);
}

static int run_close_loop(struct job *job)
{
	return run(job, start_close_loop);
}

static int run_posix_spawn(struct job *job)
{
	return run(job, start_posix_spawn);
}

static int run_closefrom(struct job *job)
{
	return run(job, start_closefrom);
}

int run_to_its_end(struct job *job, int (*system_like)(const char *))
{
	int status = system_like(job->command);

	job->started = 0;
	return status == -1 ? errno : status ? EPROTO : 0;
}

static int run_system(struct job *job)
{
	return run_to_its_end(job, system);
}

const struct peer
	peer_floor = {.name = "floor", .what = "vfork, execvp; closes nothing",
	              .absent = never_absent, .run = run_floor, .at_most = LEAKS},
	peer_fork = {.name = "fork", .what = "fork, execvp; closes nothing",
	             .absent = never_absent, .run = run_fork, .at_most = LEAKS},
	peer_close_loop = {.name = "fork+close",
	                   .what = "fork, close up to the limit, execvp",
	                   .absent = close_loop_absent, .run = run_close_loop},
	peer_posix_spawn = {.name = "posix_spawn", .what = "posix_spawnp; closes nothing",
	                    .absent = never_absent, .run = run_posix_spawn,
	                    .at_most = LEAKS},
	peer_closefrom = {.name = "posix_spawn+closefrom",
	                  .what = "posix_spawnp, addclosefrom_np(3)",
	                  .absent = closefrom_absent, .run = run_closefrom},
	peer_system = {.name = "system", .what = "system, which goes through sh",
	               .absent = never_absent, .run = run_system,
	               .at_most = NO_PIPE | ONE_THREAD | LEAKS};
