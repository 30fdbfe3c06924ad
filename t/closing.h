/* closing.h - for the tests of wean_closefrom() and wean_close_except(): each call is
   made in a fork, its system calls counted, and what is open then is compared number
   by number, flags included. */
#ifndef CLOSING_H
#define CLOSING_H

#include "descriptors.h"

#include "count.h"
#include "deny.h"

/* ---- a call and what has to be left ------------------------------------ */

struct job {
	int low;
	const int *keep;
	size_t n;
	int denied;           /* close_range(2), with this errno */
	int limit;            /* of descriptors, set just before; 0: as it is */
	int from;             /* by wean_closefrom() */

	int *sorted;          /* keep */
	struct baseline left; /* what has to be open after it */
	size_t doomed;        /* how many are to be closed */
};

static inline int ascending(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static inline int is_kept(const struct job *job, int number)
{
	return number < job->low ||
	       bsearch(&number, job->sorted, job->n, sizeof number, ascending);
}

/* From what is open now. */
static inline void expect(struct job *job)
{
	struct baseline *left = &job->left;
	size_t was, is = 0;

	job->sorted = calloc(job->n + 1, sizeof *job->sorted);
	for (size_t i = 0; i < job->n; i++)
		job->sorted[i] = job->keep[i];
	qsort(job->sorted, job->n, sizeof *job->sorted, ascending);
	memset(left, 0, sizeof *left);
	baseline_list(left);
	qsort(left->fds, was = left->nfds, sizeof *left->fds, baseline_by_number);
	for (size_t i = 0; i < was; i++)
		if (is_kept(job, left->fds[i].number))
			left->fds[is++] = left->fds[i];
	left->nfds = is;
	job->doomed = was - is;
}

/* The line says what differs; by way of 2 while it is open. */
static inline int left_differs(const struct job *job)
{
	struct baseline now = { 0 };
	char text[BASELINE_TEXT];
	int differs;

	baseline_list(&now);
	if (now.nfds)
		qsort(now.fds, now.nfds, sizeof *now.fds, baseline_by_number);
	differs = baseline_fds_differ(&job->left, &now, text);
	if (differs)
		dprintf(2, "from %d, %zu kept, close_range %s: %s\n", job->low, job->n,
		        job->denied ? strerror(job->denied) : "works", text);
	free(now.fds);
	return differs;
}

static inline int call(const struct job *job)
{
	int error;

	errno = BASELINE_ERRNO;
	error = job->from ? wean_closefrom(job->low)
	                  : wean_close_except(job->low, job->keep, job->n);
	if (errno != BASELINE_ERRNO)
		error = -1;
	if (error)
		dprintf(2, "from %d, %zu kept: %s\n", job->low, job->n,
		        error < 0 ? "errno was touched" : strerror(error));
	return error;
}

static inline int counted_call(void *arg)
{
	const struct job *job = arg;
	int error;

	if (job->denied && !deny(SYS_close_range, job->denied))
		return -1;
	if (job->limit && set_soft_limit(job->limit))
		return -1;
	count_begin();
	error = call(job);
	count_end();
	return error || left_differs(job);
}

/* How many runs of numbers that are not kept there are, to the end of all. */
static inline size_t gaps(const struct job *job)
{
	long long at = job->low;
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++) {
		n += job->sorted[i] > at;
		if (job->sorted[i] >= at)
			at = job->sorted[i] + 1LL;
	}
	return n + 1;
}

/* A longer list is taken in pieces, which may cut a gap in two. */
enum { PIECE = 512 };

static inline void assert_calls(const struct job *job, const struct count *c)
{
	size_t ranges = count_of(c, COUNT_PARENT, SYS_close_range);
	size_t closes = count_of(c, COUNT_PARENT, SYS_close);

	ck_assert_uint_eq(count_failed(c, COUNT_PARENT, SYS_close, 0), 0);
	if (job->denied) {
		ck_assert_uint_ge(closes, job->doomed + 1);
		ck_assert_uint_le(closes, job->doomed + 1 + job->n / PIECE);
	} else {
		ck_assert_uint_eq(closes, 0);
		ck_assert_uint_ge(ranges, gaps(job));
		ck_assert_uint_le(ranges, gaps(job) + job->n / PIECE);
		if (!SANITIZED) /* which has calls of its own */
			ck_assert_uint_eq(count_total(c, COUNT_PARENT), ranges);
	}
}

/* 0: it can't be counted, or denied, on this machine. */
static inline int close_exactly(struct job job)
{
	struct count c;

	if (job.denied && !can_deny())
		return 0;
	expect(&job);
	int error = count_calls(&c, counted_call, &job);
	if (error != ENOTSUP && error != EPERM) {
		ck_assert_int_eq(error, 0);
		assert_calls(&job, &c);
	}
	count_free(&c);
	free(job.left.fds);
	free(job.sorted);
	return !error;
}

#define CLOSE_EXACTLY(...) \
	do { \
		if (!close_exactly((struct job){ __VA_ARGS__ })) \
			SKIP("calls can't be counted, or denied, here"); \
	} while (0)

#endif
