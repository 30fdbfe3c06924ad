/* piping.h - for the tests of pipelines. */
#ifndef PIPING_H
#define PIPING_H

#include "talking.h"

enum { MOST = 5 };

/* Stages that the parts of a test share; options are the test's to set. */
struct line {
	struct wean_child children[MOST];
	struct wean_options o[MOST];
	char **argvs[MOST];
	size_t n;
};

/* n stages that copy. */
static inline void lay(struct line *l, size_t n)
{
	memset(l, 0, sizeof *l);
	memset(l->children, 0xa5, sizeof l->children);
	l->n = n;
	for (size_t i = 0; i < n; i++)
		l->argvs[i] = for_good(memcpy(malloc(3 * sizeof(char *)), KID("cat"),
		                              3 * sizeof(char *)));
}

static inline int open_line(struct line *l)
{
	return wean_pipeline(l->children, l->argvs, l->o, l->n);
}

static inline void must_open(struct line *l)
{
	int error = open_line(l);

	for (size_t i = 0; i < l->n; i++)
		ck_assert_msg(!error && !l->children[i].stage, "stage %zu: %s at %s, index %d", i,
		              strerror(error), wean_stage_name(l->children[i].stage),
		              l->children[i].index);
}

static inline void release_line(struct line *l)
{
	for (size_t i = 0; i < l->n; i++)
		wean_release(&l->children[i]);
}

/* All have to leave with 0. */
static inline void close_line(struct line *l)
{
	struct wean_status statuses[MOST];

	ck_assert_int_eq(wean_wait_all(l->children, l->n, LONG, statuses), 0);
	for (size_t i = 0; i < l->n; i++)
		assert_exited(&statuses[i], 0);
	release_line(l);
}

/* It fails at stage k so, and leaves nothing. */
static inline void line_refused(struct line *l, size_t k, struct refusal r)
{
	struct baseline b;

	baseline_take(&b);
	int error = open_line(l);
	baseline_same(&b);
	for (size_t i = 0; i < l->n; i++)
		if (i == k)
			assert_refused(&l->children[i], "the one", error, r);
		else
			assert_refused(&l->children[i], "another", 0, (struct refusal){ 0, 0, -1 });
}

#endif
