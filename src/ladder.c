/* The launch ladder: which ways there are to make the child, and which serve here. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "launch_steps.h"
#include "probe.h"

/* The rung on which to begin, by configure --with-launcher; a fork does what it can't. */
#ifndef WEAN_LAUNCHER
# define WEAN_LAUNCHER RUNG_CLONE3
#endif

static int
is_left_out(enum rung rung)
{
	if (WEAN_LAUNCHER == RUNG_CLONE3)
		return rung == RUNG_POSIX_SPAWN;
	return rung != WEAN_LAUNCHER && rung != RUNG_FORK;
}

/* ---- what is remembered: it saves calls and changes no result ---- */

static atomic_int refused_rungs;    /* bits of enum rung */
static atomic_int cannot_unshare;
static atomic_int memory_is_shared; /* by clone(CLONE_VM): not under emulators */
static atomic_int cuts_cleanly;     /* no CVE-2024-45025 */

static int
is_refused(enum rung rung)
{
	return (atomic_load_explicit(&refused_rungs, memory_order_relaxed) >> rung) & 1;
}

static void
remember_refused(enum rung rung)
{
	atomic_fetch_or_explicit(&refused_rungs, 1 << rung, memory_order_relaxed);
}

static enum answer
recall(atomic_int *what, enum answer (*ask)(struct launch *), struct launch *l)
{
	int answer = atomic_load_explicit(what, memory_order_relaxed);

	if (answer == ANSWER_UNKNOWN) {
		answer = (int)ask(l);
		if (answer != ANSWER_UNKNOWN)
			atomic_store_explicit(what, answer, memory_order_relaxed);
	}
	return (enum answer)answer;
}

static enum answer
ask_memory(struct launch *l)
{
	return wean_probe_memory(l->scratch->stack, sizeof l->scratch->stack);
}

static enum answer
clone_shares_memory(struct launch *l)
{
	return recall(&memory_is_shared, ask_memory, l);
}

static enum answer
probe_cut(struct launch *l, int (*start)(const struct sys_clone *))
{
	return wean_probe_cut(start, l->scratch->stack, sizeof l->scratch->stack);
}

static enum answer
ask_cut(struct launch *l)
{
	enum answer cut = ANSWER_UNKNOWN;

	if (!is_refused(RUNG_CLONE3))
		cut = probe_cut(l, wean_sys_clone3);
	if (cut == ANSWER_UNKNOWN && clone_shares_memory(l) == ANSWER_YES)
		cut = probe_cut(l, wean_sys_clone);
	return cut;
}

enum table
wean_ladder_table(struct launch *l)
{
	if ((l->plan->opt->flags & WEAN_INHERIT_ALL) || is_left_out(RUNG_CLONE3)
	    || atomic_load_explicit(&cannot_unshare, memory_order_relaxed)
	    || recall(&cuts_cleanly, ask_cut, l) != ANSWER_YES)
		return TABLE_COPIED;
	return TABLE_CUT_LOW;
}

void
wean_ladder_cannot_share(void)
{
	atomic_store_explicit(&cannot_unshare, 1, memory_order_relaxed);
}

/* At load time, so that no start pays for it. */
__attribute__((constructor)) static void
know_kernel(void)
{
	if (!wean_kernel_may_cut_badly())
		atomic_store_explicit(&cuts_cleanly, ANSWER_YES, memory_order_relaxed);
}

/* ---- the rungs ---- */

static unsigned long long
shared_table(const struct launch *l)
{
	return l->plan->table == TABLE_COPIED ? 0 : SYS_FILES;
}

/* Where only something has run out, the child's own may be had yet. */
static int
can_open_pidfds(void)
{
	int fd = wean_sys_pidfd_open(wean_sys_getpid(), 0);

	if (fd >= 0)
		wean_sys_close(fd);
	return fd >= 0 || wean_is_shortage(-fd);
}

/* An optional flag without which what was refused is called again: the rung itself is
   refused only where the bare call is.  0: none.  A child can do without a pidfd where
   no descriptor is left; one that needs it may still get it on another rung. */
static unsigned long long
flag_to_drop(struct launch *l, unsigned long long flags, int error)
{
	if (flags & SYS_INTO_CGROUP && !wean_is_shortage(error))
		return SYS_INTO_CGROUP;
	if (flags & SYS_CLEAR_SIGHAND && !wean_is_shortage(error))
		return SYS_CLEAR_SIGHAND;
	if (!(flags & SYS_PIDFD) || error == EAGAIN || error == ENOMEM)
		return 0;
	if (needs_pidfd(l->plan) && (wean_is_shortage(error) || !can_open_pidfds())) {
		l->unsure = 1;
		return 0;
	}
	return SYS_PIDFD;
}

static int
start_with(struct launch *l, int (*how)(const struct sys_clone *), unsigned long long flags)
{
	struct sys_clone c = {
		.flags = flags, .exit_signal = l->exit_signal, .pidfd = &l->pidfd,
		.alive = &l->alive, .cgroup = l->plan->opt->cgroupfd,
		.stack = l->scratch->stack, .stack_size = sizeof l->scratch->stack,
		.run = wean_child, .arg = &l->birth,
	};
	unsigned long long drop;
	int r;

	do {
		l->birth.keeps_handlers = !(c.flags & SYS_CLEAR_SIGHAND);
		l->birth.in_cgroup = (c.flags & SYS_INTO_CGROUP) != 0;
		if ((r = how(&c)) < 0)
			l->pidfd = -1; /* a number that the kernel has taken back */
		drop = r < 0 ? flag_to_drop(l, c.flags, -r) : 0;
		c.flags &= ~drop;
	} while (drop);
	return r;
}

static int
start_clone3(struct launch *l)
{
	unsigned long long sleep = plan_may_be_stopped(l->plan) ? SYS_ALIVE : SYS_VFORK;

	l->alive = 1;
	return start_with(l, wean_sys_clone3,
	                  SYS_VM | sleep | SYS_PIDFD | SYS_CLEAR_SIGHAND | shared_table(l));
}

static int
start_clone(struct launch *l)
{
	enum answer shares = clone_shares_memory(l);

	l->unsure = shares == ANSWER_UNKNOWN;
	if (shares != ANSWER_YES)
		return -ENOSYS;
	return start_with(l, wean_sys_clone, SYS_VM | SYS_VFORK | SYS_PIDFD | shared_table(l));
}

/* What it can't do is no refusal. */
static int
start_posix_spawn(struct launch *l)
{
	int pid = wean_posix_spawn(l);

	l->unsure = pid < 0;
	return pid;
}

static int
start_clone3_copy(struct launch *l)
{
	unsigned long long into = l->plan->opt->flags & WEAN_IN_CGROUP ? SYS_INTO_CGROUP : 0;

	return start_with(l, wean_sys_clone3,
	                  SYS_VFORK | SYS_PIDFD | SYS_CLEAR_SIGHAND | into | shared_table(l));
}

/* An exit signal of 0 keeps a failed start from the host's eyes; some emulators know
   fork's SIGCHLD alone. */
static int
start_fork(struct launch *l)
{
	int pid = start_with(l, wean_sys_fork, SYS_PIDFD);

	if (pid < 0 && wean_sys_not_here(-pid) && !l->unsure) {
		l->exit_signal = SIGCHLD;
		pid = start_with(l, wean_sys_fork, 0);
	}
	return pid;
}

/* A change of ids makes the memory that it is made in undumpable, and in a cgroup an OOM
   kill takes all who share it. */
static int
needs_copy(const struct plan *p)
{
	return (p->opt->flags & (WEAN_NO_SHARED_MEMORY | WEAN_IN_CGROUP | WEAN_SET_UID
	                         | WEAN_SET_GID | WEAN_SET_GROUPS)) != 0;
}

static const struct rung_of {
	enum rung rung;
	int shares;  /* memory */
	int sleeps;  /* always: the parent, until the exec */
	int (*start)(struct launch *);
} ladder[] = {
	{ RUNG_POSIX_SPAWN, 1, 1, start_posix_spawn },
	{ RUNG_CLONE3, 1, 0, start_clone3 },
	{ RUNG_CLONE, 1, 1, start_clone },
	{ RUNG_CLONE3_COPY, 0, 1, start_clone3_copy },
	{ RUNG_FORK, 0, 0, start_fork },
};

static int
serves(const struct rung_of *r, const struct plan *p)
{
	return !(r->shares && needs_copy(p)) && !(r->sleeps && plan_may_be_stopped(p))
	    && !is_left_out(r->rung) && !is_refused(r->rung);
}

/* ---- one rung ---- */

static int
prepare_report(struct launch *l, int shares)
{
	if (!shares && !l->page && !(l->page = wean_sys_shared_page()))
		return plan_no_memory(l->plan);
	l->report = shares ? &l->own : l->page;
	memset(l->report, 0, sizeof *l->report);
	l->birth = (struct birth){ .plan = l->plan, .report = l->report,
	                           .buf = l->scratch->buf,
	                           .buf_size = sizeof l->scratch->buf };
	return 0;
}

static int
prepare_wake(struct launch *l, enum rung rung)
{
	int ends[2], r;

	if (rung == RUNG_FORK || rung == RUNG_POSIX_SPAWN)
		l->plan->table = TABLE_COPIED;
	if (rung != RUNG_FORK)
		return 0;
	if ((r = wean_sys_pipe(ends)) < 0)
		return plan_fail(l->plan, WEAN_STAGE_PIPE, -1, -r);
	l->wake = ends[0];
	l->plan->wake = ends[1];
	return 0;
}

static int
start_on(struct launch *l, size_t step)
{
	struct plan *p = l->plan;
	int error = prepare_report(l, ladder[step].shares);
	int pid;

	if (error || (error = prepare_wake(l, ladder[step].rung)) != 0)
		return -error;
	if ((error = wean_plan_map(p, l->scratch->buf, sizeof l->scratch->buf)) == 0)
		pid = ladder[step].start(l);
	else
		pid = -error;
	wean_sys_drop(&p->wake);
	if (pid < 0)
		wean_sys_drop(&l->wake);
	return pid;
}

/* With the table that was chosen, or else with one of its own. */
static int
try_rung(struct launch *l, size_t step)
{
	int pid;

	l->plan->table = l->table;
	pid = start_on(l, step);
	if (pid >= 0 || wean_is_shortage(-pid) || l->plan->table == TABLE_COPIED)
		return pid;
	l->plan->table = TABLE_COPIED;
	return start_on(l, step);
}

int
wean_ladder_climb(struct launch *l)
{
	int pid = -ENOSYS;

	for (size_t i = 0; i < sizeof ladder / sizeof ladder[0]; i++) {
		if (!serves(&ladder[i], l->plan))
			continue;
		l->rung = ladder[i].rung;
		l->unsure = 0;
		pid = try_rung(l, i);
		if (pid >= 0 || wean_is_shortage(-pid) || l->rung == RUNG_FORK)
			break;
		if (!l->unsure)
			remember_refused(l->rung);
	}
	return pid;
}
