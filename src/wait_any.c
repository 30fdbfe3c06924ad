#include <errno.h>
#include <stdlib.h>

#include "handle.h"
#include "sys.h"

struct watch {
	struct wean_child *children;
	size_t n;
	struct sys_poll *polls; /* one for each child, fd -1 where there is nothing to see */
	int naps;               /* some child can only be asked */
	int wants_eintr;
};

/* What poll saw nothing of need not be asked. */
static int
may_be_over(const struct watch *w, size_t i)
{
	return wean_handle_runs(&w->children[i])
	    && (!w->polls || w->polls[i].fd < 0 || w->polls[i].revents);
}

/* 1 and *which, 0 when all still run, -ESRCH when nothing is left. */
static int
find_over(const struct watch *w, size_t *which)
{
	int r = -ESRCH, over;

	for (size_t i = 0; i < w->n; i++) {
		if (wean_handle_runs(&w->children[i]))
			r = 0;
		if (!may_be_over(w, i) || (over = wean_child_is_over(&w->children[i])) == 0)
			continue;
		*which = i;
		return over < 0 ? over : 1;
	}
	return r;
}

/* To begin with every child is worth a question. */
static void
watch_all(struct watch *w)
{
	w->naps = !w->polls;
	for (size_t i = 0; i < w->n; i++) {
		const struct wean_child *c = &w->children[i];
		int fd = wean_handle_runs(c) ? c->pidfd : -1;

		if (w->polls)
			w->polls[i] = (struct sys_poll){ fd, SYS_POLL_IN, SYS_POLL_IN };
		w->naps |= wean_handle_runs(c) && fd < 0;
		w->wants_eintr |= wean_handle_runs(c) && wean_handle_wants_eintr(c);
	}
}

enum { NAP_MS = 10 };

/* `kept_back`: something was readable and yet not over, since a tracer keeps the end to
   itself.  More than RLIMIT_NOFILE cannot be polled, nor many where memory is short. */
static int
pause_for(const struct watch *w, int left, int kept_back)
{
	int nap = left >= 0 && left < NAP_MS ? left : NAP_MS, r = -EINVAL;

	if (kept_back)
		wean_sys_sleep_us(1000);
	if (w->polls)
		r = wean_sys_poll(w->polls, w->n, w->naps ? nap : left);
	if (r >= 0 || r == -EINTR)
		return r;
	for (size_t i = 0; w->polls && i < w->n; i++)
		w->polls[i].revents = SYS_POLL_IN; /* nothing is known of any */
	return wean_sys_sleep_us(1000L * nap);
}

static int
wait_for_one(const struct watch *w, int timeout_ms, size_t *which)
{
	long long deadline = wean_sys_deadline(timeout_ms);
	int r, left, paused = 0;

	while ((r = find_over(w, which)) == 0) {
		if ((left = wean_sys_left(deadline)) == 0)
			return ETIMEDOUT;
		if (paused < 0 && (paused != -EINTR || w->wants_eintr))
			return -paused;
		paused = pause_for(w, left, paused > 0);
	}
	return r == 1 ? 0 : -r;
}

int
wean_wait_any(struct wean_child children[], size_t n, int timeout_ms, size_t *which)
{
	struct sys_poll few[16];
	struct watch w = { .children = children, .n = n, .polls = few };
	int saved = errno, error;
	size_t ignored;

	if (n && !children)
		return EINVAL;
	if (n > sizeof few / sizeof few[0])
		w.polls = calloc(n, sizeof few[0]); /* NULL: naps do */
	watch_all(&w);
	error = wait_for_one(&w, timeout_ms, which ? which : &ignored);
	if (w.polls != few)
		free(w.polls);
	errno = saved;
	return error;
}
