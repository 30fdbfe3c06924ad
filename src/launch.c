#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "launch.h"
#include "probe.h"

struct launch {
	struct plan *plan;
	struct scratch *scratch;
	struct report own, *report, *page; /* page: seen by a child with memory of its own */
	struct birth birth;
	enum table table;   /* to begin with */
	enum rung rung;
	int pid, pidfd;
	int exit_signal;    /* 0: an exec makes SIGCHLD of it */
	int wake;           /* our end of the pipe by which a fork tells */
	int hopeless;       /* no other rung can give what is needed */
	int alive;          /* 0 once a child that we do not sleep for has executed */
};

/* A change of ids makes the memory that it is made in undumpable, and in a cgroup an OOM
   kill takes all who share it. */
static int
needs_copy(const struct plan *p)
{
	return (p->opt->flags & (WEAN_NO_SHARED_MEMORY | WEAN_IN_CGROUP | WEAN_SET_UID
	                         | WEAN_SET_GID | WEAN_SET_GROUPS)) != 0;
}

/* By a key that is pressed at the terminal, before its exec: a parent that sleeps as
   vfork's does could not wake it up again. */
static int
may_be_stopped(const struct plan *p)
{
	return (p->opt->flags & (WEAN_CONTROL_TTY | WEAN_FOREGROUND | WEAN_JOIN_GROUP)) != 0;
}

static int
needs_pidfd(const struct plan *p)
{
	return (p->opt->flags & WEAN_NEED_PIDFD) != 0;
}

/* ---- descriptors ---- */

static void
close_end(int *fd)
{
	if (*fd >= 0)
		wean_sys_close(*fd);
	*fd = -1;
}

/* The caller's 0, 1 and 2 stay as they were, closed included. */
static int
lift(int *fd)
{
	int low = *fd;

	if (low < 0 || low > 2)
		return 0;
	*fd = wean_sys_dup_above(low, 3);
	wean_sys_close(low);
	return *fd < 0 ? -*fd : 0;
}

int
wean_high_pipe(int ends[2])
{
	int r = wean_sys_pipe(ends), error;

	if (r < 0)
		return -r;
	error = lift(&ends[0]);
	if (!error)
		error = lift(&ends[1]);
	if (error) {
		close_end(&ends[0]);
		close_end(&ends[1]);
	}
	return error;
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

static int
recall(atomic_int *what, enum answer (*ask)(struct launch *), struct launch *l)
{
	int answer = atomic_load_explicit(what, memory_order_relaxed);

	if (answer == ANSWER_UNKNOWN) {
		answer = (int)ask(l);
		if (answer != ANSWER_UNKNOWN)
			atomic_store_explicit(what, answer, memory_order_relaxed);
	}
	return answer == ANSWER_YES;
}

static enum answer
ask_memory(struct launch *l)
{
	return wean_probe_memory(l->scratch->stack, sizeof l->scratch->stack);
}

static int
clone_shares_memory(struct launch *l)
{
	return recall(&memory_is_shared, ask_memory, l);
}

static enum answer
ask_cut(struct launch *l)
{
	int (*start)(const struct sys_clone *) = wean_sys_clone3;

	if (is_refused(RUNG_CLONE3)) {
		if (!clone_shares_memory(l))
			return ANSWER_UNKNOWN;
		start = wean_sys_clone;
	}
	return wean_probe_cut(start, l->scratch->stack, sizeof l->scratch->stack);
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

static int
can_open_pidfds(void)
{
	int fd = wean_sys_pidfd_open(wean_sys_getpid(), 0);

	if (fd >= 0)
		wean_sys_close(fd);
	return fd >= 0;
}

/* An optional flag without which what was refused is called again: the rung itself is
   refused only where the bare call is.  0: none.  A child can do without a pidfd where
   no descriptor is left. */
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
		l->hopeless = 1;
		return 0;
	}
	return SYS_PIDFD;
}

static int
start(struct launch *l, int (*how)(const struct sys_clone *), unsigned long long flags)
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
		r = how(&c);
		drop = r < 0 ? flag_to_drop(l, c.flags, -r) : 0;
		c.flags &= ~drop;
	} while (drop);
	return r;
}

static int
start_clone3(struct launch *l)
{
	unsigned long long sleep = may_be_stopped(l->plan) ? SYS_ALIVE : SYS_VFORK;

	l->alive = 1;
	return start(l, wean_sys_clone3,
	             SYS_VM | sleep | SYS_PIDFD | SYS_CLEAR_SIGHAND | shared_table(l));
}

static int
start_clone(struct launch *l)
{
	if (!clone_shares_memory(l))
		return -ENOSYS;
	return start(l, wean_sys_clone, SYS_VM | SYS_VFORK | SYS_PIDFD | shared_table(l));
}

static int
start_clone3_copy(struct launch *l)
{
	unsigned long long into = l->plan->opt->flags & WEAN_IN_CGROUP ? SYS_INTO_CGROUP : 0;

	return start(l, wean_sys_clone3,
	             SYS_VFORK | SYS_PIDFD | SYS_CLEAR_SIGHAND | into | shared_table(l));
}

/* An exit signal of 0 keeps a failed start from the host's eyes; some emulators know
   fork's SIGCHLD alone. */
static int
start_fork(struct launch *l)
{
	int pid = start(l, wean_sys_fork, SYS_PIDFD);

	if (pid < 0 && wean_sys_not_here(-pid) && !l->hopeless) {
		l->exit_signal = SIGCHLD;
		pid = start(l, wean_sys_fork, 0);
	}
	return pid;
}

static const struct rung_of {
	enum rung rung;
	int shares;  /* memory */
	int sleeps;  /* always: the parent, until the exec */
	int (*start)(struct launch *);
} ladder[] = {
	{ RUNG_CLONE3, 1, 0, start_clone3 },
	{ RUNG_CLONE, 1, 1, start_clone },
	{ RUNG_CLONE3_COPY, 0, 1, start_clone3_copy },
	{ RUNG_FORK, 0, 0, start_fork },
};

static int
serves(const struct rung_of *r, const struct plan *p)
{
	return !(r->shares && needs_copy(p)) && !(r->sleeps && may_be_stopped(p))
	    && !is_refused(r->rung);
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
	int ends[2], error;

	if (rung != RUNG_FORK)
		return 0;
	l->plan->table = TABLE_COPIED;
	if ((error = wean_high_pipe(ends)) != 0)
		return plan_fail(l->plan, WEAN_STAGE_PIPE, -1, error);
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
	close_end(&p->wake);
	if (pid < 0)
		close_end(&l->wake);
	return pid;
}

/* With the table that was chosen, or else with one of its own. */
static int
try_rung(struct launch *l, size_t step)
{
	int pid;

	l->plan->table = l->table;
	l->pidfd = -1;
	pid = start_on(l, step);
	if (pid >= 0 || wean_is_shortage(-pid) || l->hopeless || l->plan->table == TABLE_COPIED)
		return pid;
	l->plan->table = TABLE_COPIED;
	return start_on(l, step);
}

static int
climb(struct launch *l)
{
	int pid = -ENOSYS;

	for (size_t i = 0; i < sizeof ladder / sizeof ladder[0]; i++) {
		if (!serves(&ladder[i], l->plan))
			continue;
		l->rung = ladder[i].rung;
		pid = try_rung(l, i);
		if (pid >= 0 || wean_is_shortage(-pid) || l->hopeless || l->rung == RUNG_FORK)
			break;
		remember_refused(l->rung);
	}
	return pid;
}

/* ---- the verdict ---- */

/* A vfork parent goes on when its child has executed or is over.  An exec sets the exit
   signal to SIGCHLD, so a child that is still unborn is one that is over. */
static int
died_unborn(struct launch *l, int flags)
{
	return wean_sys_wait(l->pidfd, l->pid, SYS_UNBORN | flags, NULL);
}

static int
is_dead(struct launch *l)
{
	return wean_sys_wait(l->pidfd, l->pid, SYS_ANY | SYS_NOHANG | SYS_NOREAP, NULL) != 0;
}

static void
reap(struct launch *l)
{
	wean_sys_wait(l->pidfd, l->pid, SYS_ANY, NULL);
}

static void
let_go_on(struct launch *l)
{
	if (wean_sys_wait(l->pidfd, l->pid, SYS_ANY | SYS_NOHANG | SYS_STOPPED, NULL) == 1)
		wean_sys_kill(l->pid, SIGCONT);
}

enum { LOOK_MS = 10 };

/* 1: it was over, and is reaped.  0: it has executed, or tells in its report. */
static int
await_exec(struct launch *l)
{
	if (may_be_stopped(l->plan) && l->rung == RUNG_CLONE3)
		while (!wean_sys_await_zero(&l->alive, LOOK_MS))
			let_go_on(l);
	return died_unborn(l, 0) == 1;
}

/* A fork's pipe closes at the exec or the death.  Its EOF alone could be waited for in
   vain, since a process that another thread forked may hold the pipe too. */
static int
await_fork(struct launch *l)
{
	int died = 0;

	for (int pause = 1; wean_sys_readable(l->wake, pause) == 0; pause += pause < LOOK_MS) {
		if (l->exit_signal ? is_dead(l) : (died = died_unborn(l, SYS_NOHANG)) != 0)
			break;
		let_go_on(l);
	}
	close_end(&l->wake);
	return (died ? died : died_unborn(l, 0)) == 1;
}

static int
verdict(struct launch *l)
{
	const struct report *r = l->report;
	int reaped = l->rung == RUNG_FORK ? await_fork(l) : await_exec(l);

	/* A host that waits for all with __WALL may have been faster. */
	if (!reaped && !r->error && r->stage == WEAN_STAGE_EXEC)
		return 0;
	if (!reaped)
		reap(l);
	return plan_fail(l->plan, r->stage, r->index, r->error ? r->error : ECANCELED);
}

/* ---- the pidfd ---- */

/* One that is opened after the exec might be a stranger's, if the host reaps every child
   at once: it has to be a child of ours that it finds. */
static int
open_pidfd(struct launch *l)
{
	int fd = wean_sys_pidfd_open(l->pid, 0);

	if (fd < 0)
		return fd;
	if (wean_sys_wait(fd, l->pid, SYS_ANY | SYS_NOHANG | SYS_NOREAP, NULL) >= 0)
		return fd;
	wean_sys_close(fd);
	return -ESRCH;
}

static int
settle_pidfd(struct launch *l)
{
	int error;

	if (l->pidfd < 0)
		l->pidfd = open_pidfd(l);
	error = l->pidfd < 0 ? -l->pidfd : lift(&l->pidfd);
	if (error)
		l->pidfd = -1;
	if (!error || !needs_pidfd(l->plan))
		return 0;
	wean_sys_kill(l->pid, SIGKILL);
	reap(l);
	return plan_fail(l->plan, WEAN_STAGE_LAUNCH, -1, error);
}

/* ---- the whole ---- */

static enum table
first_table(struct launch *l)
{
	if ((l->plan->opt->flags & WEAN_INHERIT_ALL)
	    || atomic_load_explicit(&cannot_unshare, memory_order_relaxed)
	    || !recall(&cuts_cleanly, ask_cut, l))
		return TABLE_COPIED;
	return TABLE_CUT_LOW;
}

static int
launch_once(struct launch *l)
{
	int error;

	l->plan->stage = WEAN_STAGE_NONE;
	l->report = NULL;
	l->pid = climb(l);
	if (l->pid < 0)
		return l->plan->stage ? -l->pid
		                      : plan_fail(l->plan, WEAN_STAGE_LAUNCH, -1, -l->pid);
	error = verdict(l);
	return error ? error : settle_pidfd(l);
}

/* Whether the child asked for another table. */
static int
goes_again(struct launch *l, int error)
{
	if (!error || !l->report || !l->report->table)
		return 0;
	l->table = (enum table)l->report->table;
	if (l->table == TABLE_COPIED)
		atomic_store_explicit(&cannot_unshare, 1, memory_order_relaxed);
	close_end(&l->pidfd);
	return 1;
}

static int
launch_masked(struct launch *l)
{
	int error;

	l->table = first_table(l);
	do
		error = launch_once(l);
	while (goes_again(l, error));
	if (error)
		close_end(&l->pidfd);
	return error;
}

int
wean_launch(struct plan *p, struct scratch *scratch, struct wean_child *child)
{
	struct launch l = { .plan = p, .scratch = scratch, .pidfd = -1, .wake = -1 };
	struct sys_sigset old;
	int error;

	error = -wean_sys_block_all(&old);
	if (error)
		return plan_fail(p, WEAN_STAGE_LAUNCH, -1, error);
	if (p->opt->flags & WEAN_KEEP_SIGMASK)
		p->mask = old;
	wean_sys_add_signals(&p->mask, p->opt->sigmask);
	error = launch_masked(&l);
	wean_sys_set_mask(&old);
	if (!error) {
		child->pid = l.pid;
		child->pidfd = l.pidfd;
		child->method = (int)l.rung | l.report->closed << 8;
	}
	wean_sys_drop_page(l.page);
	return error;
}
