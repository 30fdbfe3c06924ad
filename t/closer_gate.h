/* closer_gate.h - for the tests of the close ladder: a gate of their own between the
   library and the kernel.  Brings src/sys.c with it. */
#ifndef CLOSER_GATE_H
#define CLOSER_GATE_H

#define WEAN_GATE gate
#include "../src/sys.c"

#include "descriptors.h"

#include "../src/closer.h"

/* ---- the gate ------------------------------------------------------------ */

static struct {
	int deny_close_range;       /* the errno */
	int empty_listing, no_procfs, broken_listing;
	int appears;                /* opened when the listing was read to its end */
	int deny_pselect, deny_poll, deny_fcntl;
	int close_ranges, closes, failed_closes, listings;
	int pselects, polls, queries; /* queries: of fcntl */
	long longest_poll;
} gates;

static long let_through(long nr, const long *a)
{
	return kernel(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long gated_listing(const long *a)
{
	long len;

	if (gates.broken_listing)
		return -EIO;
	if (gates.empty_listing)
		return 0;
	len = let_through(SYS_getdents64, a);
	if (len == 0) {
		gates.listings++;
		if (gates.appears)
			dup2(2, gates.appears);
		gates.appears = 0;
	}
	return len;
}

static long gated_close(const long *a)
{
	long r = let_through(SYS_close, a);

	gates.closes++;
	gates.failed_closes += r < 0;
	return r;
}

static long gated_close_range(const long *a)
{
	gates.close_ranges++;
	if (gates.deny_close_range)
		return -gates.deny_close_range;
	return let_through(SYS_close_range, a);
}

static long gated_open(long *a)
{
	if (gates.no_procfs)
		a[1] = (long)"/dev";
	return let_through(SYS_openat, a);
}

static long gated_pselect(const long *a)
{
	gates.pselects++;
	if (gates.deny_pselect)
		return -gates.deny_pselect;
	return let_through(SYS_pselect6, a);
}

static long gated_poll(const long *a)
{
	gates.polls++;
	gates.longest_poll = a[1] > gates.longest_poll ? a[1] : gates.longest_poll;
	if (gates.deny_poll)
		return -gates.deny_poll;
	return let_through(SYS_ppoll, a);
}

static long gated_fcntl(const long *a)
{
	gates.queries++;
	if (gates.deny_fcntl)
		return -gates.deny_fcntl;
	return let_through(SYS_fcntl_, a);
}

static long gate(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	long a[6] = { a0, a1, a2, a3, a4, a5 };

	switch (nr) {
	case SYS_close_range:
		return gated_close_range(a);
	case SYS_close:
		return gated_close(a);
	case SYS_getdents64:
		return gated_listing(a);
	case SYS_openat:
		return gated_open(a);
	case SYS_pselect6:
		return gated_pselect(a);
	case SYS_ppoll:
		return gated_poll(a);
	case SYS_fcntl_:
		return gated_fcntl(a);
	default:
		return let_through(nr, a);
	}
}

/* ---- closing ------------------------------------------------------------- */

static const int refusals[] = { ENOSYS, EPERM, EACCES, EINVAL, ENOTSUP };

/* Refuses what stands above this rung. */
static void lead_to(int rung)
{
	gates.deny_close_range = rung == CLOSE_RANGE ? 0 : EPERM;
	gates.no_procfs = rung == CLOSE_SCAN;
}

/* keep, 0 to 3 (Check's own) included. */
static int close_others(unsigned low, unsigned last, const int *keep, size_t n, int *rung)
{
	static long buf[4096 / sizeof(long)];
	static int list[10100];
	struct fd_numbers set = { list, n + 4 };

	for (int i = 0; i < 4; i++)
		list[i] = i;
	for (size_t i = 0; i < n; i++)
		list[4 + i] = keep[i];
	wean_fdmap_settle(&set);
	size_t settled = set.n;
	gates.close_ranges = gates.closes = gates.failed_closes = gates.listings = 0;
	gates.pselects = gates.polls = gates.queries = 0;
	gates.longest_poll = 0;
	*rung = 4711;
	errno = BASELINE_ERRNO;
	int error = wean_close_others(low, last, &set, buf, sizeof buf, rung);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	ck_assert_uint_eq(set.n, settled);
	return error;
}

/* All that is open from 4 on, "10 300". */
static const char *open_list(void)
{
	static char text[2000];
	struct baseline b;
	size_t len = 0;

	baseline_take(&b);
	text[0] = '\0';
	for (size_t i = 0; i < b.nfds && len < sizeof text - 16; i++)
		if (b.fds[i].number > 3)
			len += (size_t)sprintf(text + len, "%s%d", len ? " " : "",
			                       b.fds[i].number);
	free(b.fds);
	return text;
}

static void open_all(const int *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(dup2(2, numbers[i]), numbers[i]);
}

#define OPEN_ALL(...) \
	open_all((const int[]){ __VA_ARGS__ }, COUNT(((const int[]){ __VA_ARGS__ })))
#define LIST(...) (const int[]){ __VA_ARGS__ }, COUNT(((const int[]){ __VA_ARGS__ }))
#define NOBODY NULL, 0

#endif
