#include <errno.h>

#include "closer.h"
#include "sys.h"

/* ---- close_range(2): a call for each gap between the kept ---- */

/* The gap that begins at *low or after, before keep->number[*next]. */
static int
next_gap(const struct fd_numbers *keep, size_t *next, unsigned *low, unsigned last,
         unsigned *end)
{
	while (*next < keep->n && (unsigned)keep->number[*next] <= *low) {
		if ((unsigned)keep->number[*next] == *low)
			++*low;
		++*next;
	}
	if (*low > last)
		return 0;
	*end = last;
	if (*next < keep->n && (unsigned)keep->number[*next] <= last)
		*end = (unsigned)keep->number[*next] - 1;
	return 1;
}

static int
close_gaps(unsigned low, unsigned last, const struct fd_numbers *keep, int *rung)
{
	size_t next = 0;
	unsigned end;

	while (next_gap(keep, &next, &low, last, &end)) {
		int r = wean_sys_close_range(low, end, 0);

		if (r < 0)
			return -r;
		*rung = CLOSE_RANGE;
		if (end == last)
			break;
		low = end + 1;
	}
	return 0;
}

/* ---- the kernel's own listing ---- */

/* Frees a number for the listing where the limit is used up: every number below
   the limit is open then, so one that is not kept is soon found. */
static int
close_one(unsigned low, unsigned last, const struct fd_numbers *keep)
{
	unsigned holes = 64;

	for (unsigned n = low; n <= last && holes > 0; n++) {
		if (fd_has(keep, (int)n))
			continue;
		if (wean_sys_close_on_exec((int)n) >= 0)
			return -wean_sys_close((int)n);
		holes--;
	}
	return EMFILE;
}

static int
open_listing(unsigned low, unsigned last, const struct fd_numbers *keep)
{
	int list = wean_sys_list_open();

	if (list == -EMFILE && close_one(low, last, keep) == 0)
		list = wean_sys_list_open();
	return list;
}

struct pass {
	unsigned low, last;
	const struct fd_numbers *keep;
	int list;
	int closed, saw_itself, error;
};

/* The kernel gives the number free whatever close(2) answers, unless the call itself was
   refused; EBADF: gone meanwhile, or an emulator's own.  1, 0: it was gone, or < 0. */
static int
close_doomed(int n)
{
	int r = wean_sys_close(n);

	return r == 0 || r == -EINTR || r == -EIO ? 1 : r == -EBADF ? 0 : r;
}

static void
close_one_listed(struct pass *p, int n)
{
	int r = close_doomed(n);

	if (r > 0)
		p->closed = 1;
	else if (r < 0)
		p->error = -r;
}

static void
close_listed(struct pass *p, int n)
{
	if (n == p->list) {
		p->saw_itself = 1;
	} else if ((unsigned)n >= p->low && (unsigned)n <= p->last
	    && !fd_has(p->keep, n)) {
		close_one_listed(p, n);
	}
}

static int
read_listing(struct pass *p, void *buf, size_t size)
{
	int len;

	p->closed = p->saw_itself = p->error = 0;
	if ((len = wean_sys_rewind(p->list)) < 0)
		return -len;
	while ((len = wean_sys_list_read(p->list, buf, size)) > 0)
		for (size_t at = 0; at < (size_t)len; ) {
			int n = wean_sys_listed(buf, (size_t)len, &at);

			if (n >= 0)
				close_listed(p, n);
		}
	return -len;
}

/* Closing moves the entries under the reading, so it goes on until a pass has closed
   nothing.  A listing that does not even show itself is not "nothing open". */
static int
close_by_listing(unsigned low, unsigned last, const struct fd_numbers *keep, void *buf,
                 size_t size)
{
	struct pass p = { .low = low, .last = last, .keep = keep };
	int error;

	p.list = open_listing(low, last, keep);
	if (p.list < 0)
		return -p.list;
	do {
		error = read_listing(&p, buf, size);
		if (error == 0 && !p.saw_itself)
			error = ENOTSUP;
	} while (error == 0 && p.closed);
	wean_sys_close(p.list);
	return error ? error : p.error;
}

/* ---- a scan of the table ---- */

struct scan {
	const struct fd_numbers *keep;
	struct sys_poll *polls;
	unsigned chunk;
};

/* poll(2) calls invalid what is not open, and what is open by O_PATH alone. */
static int
close_if_open(const struct sys_poll *p)
{
	int r = p->fd < 0 ? -EBADF : 0;

	if (r == 0 && p->revents & SYS_POLL_INVALID)
		r = wean_sys_close_on_exec(p->fd);
	if (r >= 0)
		r = close_doomed(p->fd);
	return r < 0 && r != -EBADF ? -r : 0;
}

/* Without an answer of poll each number is asked about by itself. */
static int
scan_chunk(const struct scan *s, unsigned from, unsigned n)
{
	int error = 0, silent;

	for (unsigned i = 0; i < n; i++) {
		int number = (int)(from + i);

		s->polls[i] = (struct sys_poll){ fd_has(s->keep, number) ? -1 : number, 0, 0 };
	}
	silent = wean_sys_poll(s->polls, n, 0) < 0;
	for (unsigned i = 0; i < n; i++) {
		int failed;

		if (silent)
			s->polls[i].revents = SYS_POLL_INVALID;
		failed = close_if_open(&s->polls[i]);
		error = error ? error : failed;
	}
	return error;
}

/* As far as the table reaches, whatever the limit is: it may have been lowered. */
static int
close_by_scan(unsigned low, unsigned last, const struct fd_numbers *keep, void *buf,
              size_t size)
{
	struct scan s = { keep, buf, (unsigned)(size / sizeof *s.polls) };
	unsigned long long limit = s.chunk;
	int end = wean_sys_table_size(), error = 0;

	if (end < 0)
		return ENOTSUP;
	wean_sys_nofile(&limit); /* poll refuses more */
	if (limit > 0 && limit < s.chunk)
		s.chunk = (unsigned)limit;
	if (last >= (unsigned)end)
		last = (unsigned)end - 1;
	for (unsigned n; low <= last; low += n) {
		int failed;

		n = last - low < s.chunk ? last - low + 1 : s.chunk;
		failed = scan_chunk(&s, low, n);
		error = error ? error : failed;
	}
	return error;
}

/* ---- the ladder ---- */

int
wean_close_others(unsigned low, unsigned last, const struct fd_numbers *keep, void *buf,
                  size_t size, int *rung)
{
	int error = close_gaps(low, last, keep, rung);

	if (!wean_sys_not_here(error))
		return error;
	if (close_by_listing(low, last, keep, buf, size) == 0) {
		*rung = CLOSE_PROCFS;
		return 0;
	}
	error = close_by_scan(low, last, keep, buf, size);
	if (error == 0)
		*rung = CLOSE_SCAN;
	return error;
}
