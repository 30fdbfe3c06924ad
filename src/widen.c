#include <errno.h>
#include <limits.h>
#include <stdatomic.h>

#include "sys.h"
#include "widen.h"

enum {
	FULL_READS = 4,      /* in a row */
	WIDE = 1024 * 1024,  /* what a pipe may have without rights, by default */
	MOST = 4             /* pipes at a time */
};

static atomic_int widened;   /* pipes; it changes no result */

/* At most an eighth of what all of a user's processes may have. */
static int
take_share(void)
{
	int n = atomic_fetch_add_explicit(&widened, 1, memory_order_relaxed);

	if (n < MOST && (n + 1LL) * WIDE <= wean_sys_pipe_budget() / 8)
		return 1;
	atomic_fetch_sub_explicit(&widened, 1, memory_order_relaxed);
	return 0;
}

static void
give_share_back(void)
{
	atomic_fetch_sub_explicit(&widened, 1, memory_order_relaxed);
}

static void
widen(struct widening *w, int fd, size_t got)
{
	int size;

	if (w->full < 0)
		return;
	w->full = got >= READ_AT_LEAST ? w->full + 1 : 0;
	if (w->full < FULL_READS)
		return;
	w->full = -1;
	size = wean_sys_pipe_size(fd);
	if (size < READ_AT_LEAST || size >= WIDE || !take_share())
		return; /* no pipe, or somebody has chosen its size */
	if (wean_sys_set_pipe_size(fd, WIDE) < 0)
		give_share_back();
	else
		w->before = size;
}

int
wean_widen_read(struct widening *w, int fd, char *data, size_t room)
{
	int got = wean_sys_read(fd, data, room < INT_MAX / 2 ? room : INT_MAX / 2);

	if (got > 0)
		widen(w, fd, (size_t)got);
	return got == -EIO && wean_sys_is_terminal(fd) ? 0 : got;
}

void
wean_widen_forget(struct widening *w)
{
	if (w->before != 0)
		give_share_back();
	w->before = 0;
}

/* Refused where too much lies in it: then its end gives the pages back. */
void
wean_widen_back(struct widening *w, int fd)
{
	if (w->before == 0)
		return;
	wean_sys_set_pipe_size(fd, w->before);
	wean_widen_forget(w);
}
