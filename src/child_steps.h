/* Between child.c and child_fds.c. */
#ifndef WEAN_CHILD_STEPS_H
#define WEAN_CHILD_STEPS_H

#include "child.h"

struct child {
	const struct plan *plan;
	const struct birth *birth;
	struct report *report;
	unsigned top;     /* descriptors that it was not given are below this */
	int uncut;        /* it has all sources, for it can't ask for a relaunch */
	int lost;         /* bits of 0, 1, 2 that the caller does not have */
	int foreground;   /* the terminal's group to be given back, or 0 */
};

static inline int
has(const struct child *c, unsigned long long flag)
{
	return (c->plan->opt->flags & flag) != 0;
}

static inline int
positive(int r)
{
	return r < 0 ? -r : 0;
}

/* Each a step: 0 or an errno, the entry that it is about in report->index. */
int wean_child_own_table(struct child *);
int wean_child_fetch_high(struct child *);
int wean_child_place(struct child *);
int wean_child_close_others(struct child *);
int wean_child_open_files(struct child *);
int wean_child_copy_same(struct child *);

#endif
