#include <errno.h>
#include <limits.h>
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

/* 1 and *which, 0 when all still run, -ESRCH when nothing is left. */
static int
find_over(const struct watch *w, size_t *which)
{
	int r = -ESRCH;

	for (size_t i = 0; i < w->n; i++) {
		int over;

		if (wean_handle_state(&w->children[i]) != HANDLE_RUNS)
			continue;
		over = wean_child_is_over(&w->children[i]);
		if (over != 0) {
			*which = i;
			return over < 0 ? over : 1;
		}
		r = 0;
	}
	return r;
}

static void
watch_all(struct watch *w)
{
	w->naps = !w->polls;
	for (size_t i = 0; i < w->n; i++) {
		struct wean_child *c = &w->children[i];
		int runs = wean_handle_state(c) == HANDLE_RUNS;

		if (w->polls)
			w->polls[i] = (struct sys_poll){ runs ? c->pidfd : -1, SYS_POLL_IN, 0 };
		w->naps |= runs && c->pidfd < 0;
		w->wants_eintr |= runs && (wean_handle(c)->flags & HANDLE_EINTR);
	}
}

enum { NAP = 10 };

static int
pause_for(struct watch *w, int left)
{
	int nap = left < 0 || left > NAP ? NAP : left;
	int r = -EINVAL;

	if (w->polls)
		r = wean_sys_poll(w->polls, w->n, w->naps ? nap : left);
	/* More than RLIMIT_NOFILE can't be polled; and what is readable although it is not
	   over is kept back by a tracer. */
	if (r == -EINVAL || r > 0)
		r = wean_sys_sleep_us(r > 0 ? 1000L : 1000L * nap);
	return r;
}

static int
wait_for_one(struct watch *w, int timeout_ms, size_t *which)
{
	long long deadline = timeout_ms < 0 ? LLONG_MAX : wean_sys_deadline(timeout_ms);
	int r, paused = 0;

	while ((r = find_over(w, which)) == 0) {
		long long left = timeout_ms < 0 ? -1 : deadline - wean_sys_now_ms();

		if (timeout_ms >= 0 && left <= 0)
			return ETIMEDOUT;
		if (paused == -EINTR && w->wants_eintr)
			return EINTR;
		paused = pause_for(w, (int)left);
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
