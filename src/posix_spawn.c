/* The launcher for where posix_spawn(3) is all there is, or all that is wanted: what it
   can't do, and what it fails at, is left to the fork, which tells the step. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>

#include "closer.h"
#include "launch_steps.h"

#ifdef __GLIBC_PREREQ
# if __GLIBC_PREREQ(2, 34)
#  define HAVE_ADDCLOSEFROM 1
# endif
#endif

#ifdef HAVE_ADDCLOSEFROM

struct actions {
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int error;
};

static void
keep_error(struct actions *a, int error)
{
	a->error = a->error ? a->error : error;
}

/* Each number between the kept is closed by itself, open or not: another thread may open
   it meanwhile. */
static void
close_others(struct actions *a, const struct plan *p)
{
	enum { MANY = 64 };
	int top = p->keep.n ? p->keep.number[p->keep.n - 1] + 1 : 0;

	if ((size_t)top > p->keep.n + MANY) {
		keep_error(a, ENOTSUP);
		return;
	}
	for (int n = 0; n < top; n++)
		if (!fd_has(&p->keep, n))
			keep_error(a, posix_spawn_file_actions_addclose(&a->files, n));
	keep_error(a, posix_spawn_file_actions_addclosefrom_np(&a->files, top));
}

/* dup2 onto itself takes close-on-exec away. */
static void
place(struct actions *a, const struct plan *p)
{
	for (size_t i = 0; i < p->nmoves; i++)
		keep_error(a, posix_spawn_file_actions_adddup2(&a->files, p->moves[i].from,
		                                               p->moves[i].to));
}

static void
open_null(struct actions *a, int fd)
{
	keep_error(a, posix_spawn_file_actions_addopen(&a->files, fd, "/dev/null", O_RDWR,
	                                               0));
}

static void
open_files(struct actions *a, const struct plan *p)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (!(p->inherited & 1 << fd) || wean_sys_close_on_exec(fd) == 0)
			continue;
		if (p->opt->flags & WEAN_STDIO_AS_IS)
			keep_error(a, posix_spawn_file_actions_addclose(&a->files, fd));
		else
			open_null(a, fd);
	}
	for (size_t i = 0; i < p->nopens; i++)
		open_null(a, p->opens[i]->target);
	for (size_t i = 0; i < p->nsames; i++)
		keep_error(a, posix_spawn_file_actions_adddup2(&a->files, p->sames[i]->source,
		                                               p->sames[i]->target));
}

/* libc starts a child that ignores the signals it keeps for itself, which sigaddset()
   does not take, unless they are reset. */
static unsigned long long
libcs_own(void)
{
	unsigned long long own = 0;
	sigset_t set;

	sigemptyset(&set);
	for (int sig = 1; sig <= 64; sig++)
		if (sigaddset(&set, sig) != 0 && wean_sys_disposition(sig) != SYS_IGNORE)
			own |= WEAN_SIG(sig);
	return own;
}

/* By its bits, so with those. */
static sigset_t
set_of(const struct sys_sigset *signals)
{
	sigset_t set;

	sigemptyset(&set);
	memcpy(&set, signals, sizeof *signals < sizeof set ? sizeof *signals : sizeof set);
	return set;
}

static void
set_attributes(struct actions *a, const struct plan *p)
{
	unsigned long long flags = p->opt->flags;
	struct sys_sigset reset = { { 0 } };
	sigset_t to_default, mask = set_of(&p->mask);
	short what = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;

	wean_sys_add_signals(&reset, p->to_default | libcs_own());
	to_default = set_of(&reset);
	if (flags & WEAN_NEW_SESSION)
		what |= POSIX_SPAWN_SETSID;
	else if (flags & WEAN_NEW_GROUP)
		what |= POSIX_SPAWN_SETPGROUP;
	keep_error(a, posix_spawnattr_setflags(&a->attributes, what));
	keep_error(a, posix_spawnattr_setsigmask(&a->attributes, &mask));
	keep_error(a, posix_spawnattr_setsigdefault(&a->attributes, &to_default));
}

static int
is_passed_over(int error)
{
	return error == EACCES || error == ENOENT || error == ENOTDIR;
}

/* One child after the other, until one has executed. */
static int
try_programs(struct actions *a, const struct plan *p)
{
	int error = ENOENT;
	pid_t pid = -1;

	for (int i = 0; p->programs[i] && is_passed_over(error); i++)
		error = posix_spawn(&pid, p->programs[i], &a->files, &a->attributes, p->argv,
		                    p->env);
	return error ? -ENOTSUP : pid;
}

static int
start_program(const struct plan *p)
{
	struct actions a = { .error = 0 };
	int pid;

	if (posix_spawn_file_actions_init(&a.files) != 0)
		return -ENOTSUP;
	if (posix_spawnattr_init(&a.attributes) != 0) {
		posix_spawn_file_actions_destroy(&a.files);
		return -ENOTSUP;
	}
	place(&a, p);
	close_others(&a, p);
	open_files(&a, p);
	if (p->opt->dir)
		keep_error(&a, posix_spawn_file_actions_addchdir_np(&a.files, p->opt->dir));
	set_attributes(&a, p);
	pid = a.error ? -ENOTSUP : try_programs(&a, p);
	posix_spawnattr_destroy(&a.attributes);
	posix_spawn_file_actions_destroy(&a.files);
	return pid;
}

/* Each attempt opens anew, and so does the fork after them: a FIFO, or a file that must
   not be there yet, would not be as it was. */
static int
opens_files(const struct plan *p)
{
	for (size_t i = 0; i < p->nopens; i++)
		if (p->opens[i]->kind == WEAN_OPEN)
			return 1;
	return 0;
}

static int
can_do(const struct plan *p)
{
	const unsigned long long able = WEAN_NEW_GROUP | WEAN_NEW_SESSION | WEAN_NONBLOCK
	    | WEAN_CHILD_PATH | WEAN_KEEP_SIGNALS | WEAN_RESET_SIGNALS | WEAN_STDIO_AS_IS
	    | WEAN_NEED_PIDFD | WEAN_EINTR;

	return !(p->opt->flags & ~able) && !p->to_ignore && !p->opt->nlimits
	    && !p->opt->pdeathsig && !opens_files(p);
}

int
wean_posix_spawn(struct launch *l)
{
	int saved = errno, pid = -ENOTSUP;

	if (can_do(l->plan)) {
		pid = start_program(l->plan);
		l->report->closed = CLOSE_FROM;
		errno = saved;
	}
	return pid;
}

#else

int
wean_posix_spawn(struct launch *l)
{
	(void)l;
	return -ENOTSUP;
}

#endif
