#include <errno.h>

#include "handle.h"
#include "sys.h"

/* By number, where there is no pidfd or it can't be used: only as long as the process
   is there to bear it, which a child is until it is reaped. */
static int
kill_by_number(const struct wean_child *child, int group, int sig)
{
	int flags = SYS_ANY | SYS_NOHANG | SYS_NOREAP;
	int pid = __atomic_load_n(&child->pid, __ATOMIC_ACQUIRE);
	int number = group ? -pid : pid;

	if (number == 0 || number == -1)
		return -ESRCH; /* to kill(2) that is everybody */
	if (wean_sys_wait(child->pidfd, pid, flags, NULL) == -ECHILD
	    && wean_child_is_over(child) != 0)
		return -ESRCH;
	return wean_sys_kill(number, sig);
}

int
wean_kill(const struct wean_child *child, int sig)
{
	int r = -ENOSYS;

	if (!child)
		return EINVAL;
	if (!wean_handle_runs(child))
		return ESRCH;
	if (child->pidfd >= 0)
		r = wean_sys_pidfd_kill(child->pidfd, sig);
	if (child->pidfd < 0 || (r < 0 && wean_sys_not_here(-r)))
		r = kill_by_number(child, 0, sig);
	return r < 0 ? -r : 0;
}

int
wean_kill_group(const struct wean_child *child, int sig)
{
	int state, r = -ENOSYS;

	if (!child)
		return EINVAL;
	state = wean_handle_state(child);
	if (state != HANDLE_RUNS && state != HANDLE_OVER)
		return ESRCH;
	if (!(wean_handle_const(child)->flags & HANDLE_LEADS))
		return EINVAL;
	if (child->pidfd >= 0)
		r = wean_sys_pidfd_kill_group(child->pidfd, sig);
	if (state == HANDLE_OVER)
		return r == -ENOSYS || r == -EINVAL ? ESRCH : -r;
	if (child->pidfd < 0 || (r < 0 && wean_sys_not_here(-r)))
		r = kill_by_number(child, 1, sig);
	return r < 0 ? -r : 0;
}
