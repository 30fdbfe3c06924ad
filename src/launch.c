#include <errno.h>
#include <signal.h>

#include "handle.h"
#include "launch_steps.h"

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

/* Its number is its own until it is reaped, by a host that does so with every child, or
   by the kernel where SIGCHLD is ignored. */
static void
kill_started(struct launch *l)
{
	if (wean_sys_wait(-1, l->pid, SYS_ANY | SYS_NOHANG | SYS_NOREAP, NULL) == -ECHILD)
		return;
	wean_sys_kill(l->pid, SIGKILL);
	wean_sys_wait(-1, l->pid, SYS_ANY, NULL);
}

static int
settle_pidfd(struct launch *l)
{
	int fd = wean_sys_lift(l->pidfd < 0 ? open_pidfd(l) : l->pidfd);

	l->pidfd = fd < 0 ? -1 : fd;
	if (fd >= 0 || !needs_pidfd(l->plan))
		return 0;
	kill_started(l);
	return plan_fail(l->plan, WEAN_STAGE_LAUNCH, -1, -fd);
}

/* ---- the whole ---- */

static int
launch_once(struct launch *l)
{
	int error;

	l->plan->stage = WEAN_STAGE_NONE;
	l->report = NULL;
	l->pid = wean_ladder_climb(l);
	if (l->pid < 0)
		return l->plan->stage ? -l->pid
		                      : plan_fail(l->plan, WEAN_STAGE_LAUNCH, -1, -l->pid);
	error = wean_verdict(l);
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
		wean_ladder_cannot_share();
	wean_sys_drop(&l->pidfd);
	return 1;
}

static int
launch_masked(struct launch *l)
{
	int error;

	l->table = wean_ladder_table(l);
	do
		error = launch_once(l);
	while (goes_again(l, error));
	if (error)
		wean_sys_drop(&l->pidfd);
	return error;
}

/* Handlers and other threads may look at it: who finds its state, or after that its pid,
   finds what a kill needs. */
static void
publish(const struct launch *l, struct wean_child *child)
{
	const struct plan *p = l->plan;
	struct handle *h = wean_handle(child);

	child->pidfd = l->pidfd;
	child->in = p->pipes[0][0];
	child->out = p->pipes[1][0];
	child->err = p->pipes[2][0];
	child->method = (int)l->rung | l->report->closed << 8;
	h->flags = wean_handle_flags(p->opt->flags);
	__atomic_store_n(&h->state, HANDLE_RUNS, __ATOMIC_RELEASE);
	__atomic_store_n(&child->pid, l->pid, __ATOMIC_RELEASE);
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
	if (!error)
		publish(&l, child);
	wean_sys_set_mask(&old);
	wean_sys_drop_page(l.page);
	return error;
}
