#include <errno.h>
#include <string.h>

#include "handle.h"
#include "sys.h"

static int
is_ours(int pid)
{
	return wean_sys_wait(-1, pid, SYS_ANY | SYS_NOHANG | SYS_NOREAP, NULL) != -ECHILD;
}

static int
take_process(struct wean_child *child, int pid, unsigned long long flags)
{
	struct handle *h = wean_handle(child);
	int fd = wean_sys_lift(wean_sys_pidfd_open(pid, 0));

	if (fd == -ENOENT || fd == -EINVAL)
		return EINVAL; /* a thread's number */
	if (fd < 0 && (fd == -ESRCH || (flags & WEAN_NEED_PIDFD)))
		return -fd;
	if (fd < 0 && wean_sys_is_process(pid) == -ESRCH)
		return wean_sys_kill(pid, 0) == -ESRCH ? ESRCH : EINVAL;
	child->pid = pid;
	child->pidfd = fd < 0 ? -1 : fd;
	h->state = HANDLE_RUNS;
	h->flags = wean_handle_flags(flags) | (is_ours(pid) ? 0 : HANDLE_STRANGER);
	return 0;
}

int
wean_adopt(struct wean_child *child, int pid, unsigned long long flags)
{
	const unsigned long long known = WEAN_NEW_GROUP | WEAN_NEED_PIDFD | WEAN_EINTR;

	if (!child)
		return EINVAL;
	*child = wean_no_child();
	if (pid < 0 || (flags & ~known))
		return EINVAL;
	if (pid > 0)
		return take_process(child, pid, flags);
	wean_handle(child)->state = HANDLE_ENDS_ONLY;
	wean_handle(child)->flags = wean_handle_flags(flags);
	return 0;
}
