#include <errno.h>
#include <signal.h>

#include "handle.h"
#include "sys.h"

enum { AFTER_KILL_MS = 1000, NAP_MS = 5 };

static int
leads(const struct wean_child *child)
{
	return (wean_handle_const(child)->flags & HANDLE_LEADS) != 0;
}

/* A group that was found is the child's too. */
static void
send(const struct wean_child *child, int sig)
{
	if (!leads(child) || wean_kill_group(child, sig) != 0)
		wean_kill(child, sig);
}

/* Without reaping it, and with it its number, which is the group's. */
static int
await_end(const struct wean_child *child, long long deadline)
{
	long long left;

	while (wean_child_is_over(child) == 0 && (left = deadline - wean_sys_now_ms()) > 0) {
		int r = child->pidfd >= 0 ? wean_sys_readable(child->pidfd, (int)left) : 0;

		if (r != -EINTR && r <= 0)
			r = wean_sys_sleep_us(1000L * (left < NAP_MS ? left : NAP_MS));
		if (r == -EINTR && (wean_handle_const(child)->flags & HANDLE_EINTR))
			return EINTR;
	}
	return 0;
}

/* The rest of the grace is for those that the leader left behind, where the kernel can
   still reach them, and tell that there are any, once the number is given up. */
static void
await_group(struct wean_child *child, long long deadline)
{
	if (!leads(child) || child->pidfd < 0
	    || wean_sys_pidfd_kill_group(child->pidfd, 0) < 0
	    || wean_wait(child, 0, NULL) != 0)
		return;
	while (wean_kill_group(child, 0) == 0 && wean_sys_now_ms() < deadline)
		wean_sys_sleep_us(1000L * NAP_MS);
}

static int
give_grace(struct wean_child *child, int grace_ms)
{
	long long deadline = wean_sys_now_ms() + grace_ms;
	int error;

	send(child, SIGTERM);
	send(child, SIGCONT);
	error = await_end(child, deadline);
	if (!error)
		await_group(child, deadline);
	return error;
}

int
wean_stop(struct wean_child *child, int grace_ms, struct wean_status *status)
{
	int state, error = 0;

	if (!child)
		return EINVAL;
	state = wean_handle_state(child);
	if (state != HANDLE_RUNS && state != HANDLE_OVER)
		return ESRCH;
	if (grace_ms > 0)
		error = give_grace(child, grace_ms);
	if (error)
		return error;
	send(child, SIGKILL);
	return wean_wait(child, AFTER_KILL_MS, status);
}
