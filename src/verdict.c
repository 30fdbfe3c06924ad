/* Whether the child has executed, and what it says if it has not. */
#include <errno.h>
#include <signal.h>

#include "launch_steps.h"

/* A vfork parent goes on when its child has executed or is over.  An exec sets the exit
   signal to SIGCHLD, so a child that is still unborn is one that is over. */
static int
died_unborn(struct launch *l, int flags)
{
	return wean_sys_wait(l->pidfd, l->pid, SYS_UNBORN | flags, NULL);
}

/* Any other error tells nothing of the child, which may still run, and in our memory. */
static int
tells_end(int waited)
{
	return waited == 1 || waited == -ECHILD;
}

static int
is_dead(struct launch *l)
{
	return tells_end(wean_sys_wait(l->pidfd, l->pid, SYS_ANY | SYS_NOHANG | SYS_NOREAP,
	                               NULL));
}

static void
reap_failed(struct launch *l)
{
	wean_sys_wait(l->pidfd, l->pid, SYS_ANY, NULL);
}

/* A stop of the program's own, which may have begun meanwhile, is not ours to end. */
static void
let_go_on(struct launch *l)
{
	int which = l->exit_signal ? SYS_ANY : SYS_UNBORN;

	if (wean_sys_wait(l->pidfd, l->pid, which | SYS_NOHANG | SYS_STOPPED, NULL) == 1)
		wean_sys_kill(l->pid, SIGCONT);
}

enum { LOOK_MS = 10 };

/* 1: it was over, and is reaped.  0: it has executed, or tells in its report. */
static int
await_exec(struct launch *l)
{
	if (plan_may_be_stopped(l->plan) && l->rung == RUNG_CLONE3)
		while (!wean_sys_await_zero(&l->alive, LOOK_MS) && !is_dead(l))
			let_go_on(l);
	return died_unborn(l, 0) == 1;
}

/* A fork's pipe closes at the exec or the death.  Its EOF alone could be waited for in
   vain, since a process that another thread forked may hold the pipe too: so it is only
   where nothing can be polled. */
static int
await_fork(struct launch *l)
{
	int died = 0, r;

	for (int pause = 1; (r = wean_sys_readable(l->wake, pause)) == 0;
	     pause += pause < LOOK_MS) {
		if (l->exit_signal ? is_dead(l)
		                   : tells_end(died = died_unborn(l, SYS_NOHANG)))
			break;
		let_go_on(l);
	}
	if (r < 0)
		wean_sys_read(l->wake, &(char){ 0 }, 1);
	wean_sys_drop(&l->wake);
	return (died ? died : died_unborn(l, 0)) == 1;
}

int
wean_verdict(struct launch *l)
{
	const struct report *r = l->report;
	int reaped;

	if (l->rung == RUNG_POSIX_SPAWN)
		return 0;
	reaped = l->rung == RUNG_FORK ? await_fork(l) : await_exec(l);
	/* A host that waits for all with __WALL may have been faster. */
	if (!reaped && !r->error && r->stage == WEAN_STAGE_EXEC)
		return 0;
	if (!reaped)
		reap_failed(l);
	return plan_fail(l->plan, r->stage, r->index, r->error ? r->error : ECANCELED);
}
