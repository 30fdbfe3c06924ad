#include <errno.h>
#include <signal.h>

#include "handle.h"
#include "sys.h"

enum { AFTER_KILL_MS = 1000, STOP_NAP_MS = 5 };

static int
leads(const struct wean_child *child)
{
	return (wean_handle_const(child)->flags & HANDLE_LEADS) != 0;
}

/* A leader may have moved to another group, and left its own to others. */
static void
signal_all(const struct wean_child *child, int sig)
{
	int led = leads(child) && wean_kill_group(child, sig) == 0;

	if (!led || wean_sys_getpgid(child->pid) != child->pid)
		wean_kill(child, sig);
}

/* For `ms` at most: 0, or what ends the waiting. */
static int
pass_time(const struct wean_child *child, int pidfd, int ms, int *nap,
          const struct pump *pump)
{
	int r = pump->work ? pump->work(pump->arg, ms) : wean_child_pause(pidfd, ms, nap);

	return r < 0 && (r != -EINTR || wean_handle_wants_eintr(child)) ? -r : 0;
}

/* Without reaping it, and with it its number, which is the group's. */
static int
await_end(const struct wean_child *child, long long deadline, const struct pump *pump)
{
	int nap = 0, error = 0, left;

	while (!error && wean_child_is_over(child) == 0
	    && (left = wean_sys_left(deadline)) != 0)
		error = pass_time(child, child->pidfd, left, &nap, pump);
	return error;
}

/* The rest of the grace is for those that the leader left behind, where the kernel can
   still reach them, and tell that there are any, once the number is given up. */
static int
await_group(struct wean_child *child, long long deadline, const struct pump *pump)
{
	int nap = 0, error = 0;

	if (!leads(child) || child->pidfd < 0
	    || wean_sys_pidfd_kill_group(child->pidfd, 0) < 0
	    || wean_wait(child, 0, NULL) != 0)
		return 0;
	while (!error && wean_kill_group(child, 0) == 0 && wean_sys_now_ms() < deadline)
		error = pass_time(child, -1, STOP_NAP_MS, &nap, pump);
	return error;
}

static int
give_grace(struct wean_child *child, int grace_ms, const struct pump *pump)
{
	long long deadline = wean_sys_deadline(grace_ms);
	int error;

	signal_all(child, SIGTERM);
	signal_all(child, SIGCONT);
	error = await_end(child, deadline, pump);
	return error ? error : await_group(child, deadline, pump);
}

int
wean_stop_pumping(struct wean_child *child, int grace_ms, struct wean_status *status,
                  const struct pump *pump)
{
	int state, error = 0;

	if (!child)
		return EINVAL;
	state = wean_handle_state(child);
	if (state != HANDLE_RUNS && state != HANDLE_OVER)
		return ESRCH;
	if (grace_ms > 0)
		error = give_grace(child, grace_ms, pump);
	if (error == EINTR)
		return error;
	signal_all(child, SIGKILL); /* also where there is no way to wait */
	return wean_wait(child, AFTER_KILL_MS, status);
}

int
wean_stop(struct wean_child *child, int grace_ms, struct wean_status *status)
{
	return wean_stop_pumping(child, grace_ms, status, &(struct pump){ NULL, NULL });
}
