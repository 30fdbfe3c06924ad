#include <errno.h>
#include <string.h>

#include "handle.h"
#include "sys.h"

/* ---- the end, as it is kept ---- */

static int
try_lock(struct handle *h)
{
	return !__atomic_exchange_n(&h->lock, 1, __ATOMIC_ACQUIRE);
}

enum { LOCK_TIMES = 10000, LOCK_US = 50 };

/* Who holds it gives it back at once.  Found taken for a second, its holder is missing,
   in a copy of the host that was forked meanwhile, or held up, as by a handler. */
static void
lock(struct handle *h)
{
	for (int i = 0; !try_lock(h) && i < LOCK_TIMES; i++)
		wean_sys_sleep_us(LOCK_US);
}

static void
unlock(struct handle *h)
{
	__atomic_store_n(&h->lock, 0, __ATOMIC_RELEASE);
}

static void
store(struct handle *h, const struct wean_status *s)
{
	const long long usage[3] = { s->user_us, s->system_us, s->maxrss_kb };

	h->kind = s->kind;
	h->value = s->value;
	h->core = s->core;
	memcpy(h->usage, usage, sizeof usage);
	__atomic_store_n(&h->state, HANDLE_OVER, __ATOMIC_RELEASE);
}

static void
tell_again(const struct handle *h, struct wean_status *s)
{
	long long usage[3];

	memcpy(usage, h->usage, sizeof usage);
	*s = (struct wean_status){
		.kind = h->kind, .value = h->value, .core = h->core,
		.code = h->kind == WEAN_EXITED ? h->value
		      : h->kind == WEAN_SIGNALED ? 128 + h->value : 255,
		.user_us = usage[0], .system_us = usage[1], .maxrss_kb = usage[2],
	};
}

/* ---- looking ---- */

/* Whether a process is over that this one can't wait for: a stranger, one that was
   reaped, and in a forked copy of the host every child.  Without a pidfd that can be
   polled the number of one that was reaped may be another's already. */
static int
is_gone(const struct wean_child *child)
{
	int fd = child->pidfd, over;

	if (fd >= 0 && (over = wean_sys_readable(fd, 0)) >= 0)
		return over;
	if (!(wean_handle_const(child)->flags & HANDLE_STRANGER))
		return 1;
	fd = wean_sys_pidfd_open(child->pid, 0);
	over = fd < 0 ? fd : wean_sys_readable(fd, 0);
	wean_sys_drop(&fd);
	return over < 0 ? wean_sys_kill(child->pid, 0) == -ESRCH : over;
}

int
wean_child_is_over(const struct wean_child *child)
{
	int r;

	if (wean_handle_state(child) == HANDLE_OVER)
		return 1; /* its number may be another's */
	r = wean_sys_wait(child->pidfd, child->pid, SYS_ANY | SYS_NOHANG | SYS_NOREAP, NULL);
	if (r < 0 && wean_sys_not_here(-r) && child->pidfd >= 0)
		return wean_sys_readable(child->pidfd, 0); /* how it ended is not asked here */
	return r == -ECHILD ? is_gone(child) : r;
}

enum { ASK_TIMES = 100, ASK_US = 50 };

/* A child that was reaped a moment ago is told of a moment later: it answers, but without
   its status, as long as it is on its way out, and once ESRCH in between. */
static int
ask_kernel(int pidfd, struct wean_status *s)
{
	int r, gone = 0;

	for (int i = 0; i < ASK_TIMES; i++) {
		r = wean_sys_pidfd_status(pidfd, s);
		if (r == 1 || (r < 0 && (r != -ESRCH || gone++ > 0)))
			return r;
		if (r == 0)
			wean_sys_sleep_us(ASK_US);
	}
	return 0;
}

/* Who reaped it instead of us may have been a handler of the host's, or the kernel
   where SIGCHLD is ignored. */
static int
reaped_by_another(const struct wean_child *child, struct wean_status *s)
{
	int stranger = wean_handle_const(child)->flags & HANDLE_STRANGER;

	if (!is_gone(child))
		return 0;
	if (!stranger && child->pidfd >= 0 && ask_kernel(child->pidfd, s) == 1)
		return 1;
	memset(s, 0, sizeof *s);
	s->kind = WEAN_UNKNOWN;
	return 1;
}

/* Under the lock, so that every thread that waits gets the status; who was held up with
   the lock finds it stored. */
static int
reap(struct wean_child *child, int flags)
{
	struct handle *h = wean_handle(child);
	struct wean_status s;
	int r = 0;

	if (wean_handle_runs(child)) {
		do
			r = wean_sys_wait(child->pidfd, child->pid, SYS_ANY | flags, &s);
		while (r == -EINTR);
		if (r == -ECHILD && wean_handle_runs(child))
			r = reaped_by_another(child, &s);
		if (r == 1)
			store(h, &s);
	}
	unlock(h);
	return !wean_handle_runs(child) ? 0 : r == 0 ? ETIMEDOUT : -r;
}

/* Never longer than a moment, though another thread may sleep under the lock until the
   child is over. */
static int
collect(struct wean_child *child)
{
	struct handle *h = wean_handle(child);

	if (!try_lock(h)) {
		if (wean_child_is_over(child) == 0)
			return ETIMEDOUT;
		lock(h);
	}
	return reap(child, SYS_NOHANG);
}

/* ---- waiting ---- */

/* Until something may have changed.  A pidfd tells the moment, and is readable already
   while a tracer still keeps the end to itself: then naps, as without one, and where no
   poll is permitted. */
int
wean_child_pause(int pidfd, int left, int *nap)
{
	int r = -ENOSYS;

	if (pidfd >= 0 && *nap == 0)
		r = wean_sys_readable(pidfd, left);
	if (r >= 0 || !wean_sys_not_here(-r)) {
		*nap = r == 1;
		return r;
	}
	*nap += *nap < 20;
	return wean_sys_sleep_us(1000L * (left >= 0 && left < *nap ? left : *nap));
}

static int
wait_until(struct wean_child *child, int pidfd, long long deadline, int eintr)
{
	int nap = 0, error, left, r;

	while ((error = collect(child)) == ETIMEDOUT && (left = wean_sys_left(deadline)) != 0) {
		r = wean_child_pause(pidfd, left, &nap);
		if (r < 0 && (r != -EINTR || eintr))
			return -r;
	}
	return error;
}

/* One thread reaps as it wakes, others wait without.  It returns at once for no child of
   ours.  As the call restarts by itself after a handler with SA_RESTART, it does not serve
   who wants EINTR. */
static int
block(struct wean_child *child)
{
	if (try_lock(wean_handle(child)))
		return reap(child, 0);
	while (wean_sys_wait(child->pidfd, child->pid, SYS_ANY | SYS_NOREAP, NULL) == -EINTR)
		;
	return collect(child);
}

static int
wait_running(struct wean_child *child, int timeout_ms, int eintr)
{
	long long deadline = wean_sys_deadline(timeout_ms);
	int error, pidfd;

	error = timeout_ms < 0 && !eintr ? block(child) : collect(child);
	if (error != ETIMEDOUT || timeout_ms == 0)
		return error;
	if (child->pidfd >= 0)
		return wait_until(child, child->pidfd, deadline, eintr);
	pidfd = wean_sys_pidfd_open(child->pid, 0);
	error = wait_until(child, pidfd, deadline, eintr);
	if (pidfd >= 0)
		wean_sys_close(pidfd);
	return error;
}

static int
wait_for(struct wean_child *child, int timeout_ms, struct wean_status *status, int eintr)
{
	int error = 0, state = wean_handle_state(child);

	if (state == HANDLE_NONE || state == HANDLE_ENDS_ONLY)
		return ESRCH;
	if (state == HANDLE_RUNS)
		error = wait_running(child, timeout_ms, eintr);
	if (!error && status)
		tell_again(wean_handle(child), status);
	return error;
}

int
wean_wait(struct wean_child *child, int timeout_ms, struct wean_status *status)
{
	return child ? wait_for(child, timeout_ms, status, wean_handle_wants_eintr(child)) : EINVAL;
}

int
wean_wait_all(struct wean_child children[], size_t n, int timeout_ms,
              struct wean_status statuses[])
{
	long long deadline = wean_sys_deadline(timeout_ms);
	int result = 0, eintr = 0;

	if (n && !children)
		return EINVAL;
	if (statuses && n)
		memset(statuses, 0, n * sizeof statuses[0]);
	for (size_t i = 0; i < n; i++)
		eintr |= wean_handle_wants_eintr(&children[i]);
	for (size_t i = 0; i < n; i++) {
		int error = wait_for(&children[i], result ? 0 : wean_sys_left(deadline),
		                     statuses ? &statuses[i] : NULL, eintr);

		if (error && error != ESRCH && result == 0)
			result = error;
	}
	return result;
}

/* ---- letting go ---- */

void
wean_release(struct wean_child *child)
{
	if (!child || wean_handle_state(child) == HANDLE_NONE)
		return;
	wean_sys_drop(&child->in);
	wean_sys_drop(&child->out);
	wean_sys_drop(&child->err);
	wean_sys_drop(&child->pidfd);
	memset(child->opaque, 0, sizeof child->opaque);
}
