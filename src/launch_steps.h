/* Between launch.c, ladder.c and verdict.c. */
#ifndef WEAN_LAUNCH_STEPS_H
#define WEAN_LAUNCH_STEPS_H

#include "launch.h"

struct launch {
	struct plan *plan;
	struct scratch *scratch;
	struct report own, *report, *page; /* page: seen by a child with memory of its own */
	struct birth birth;
	enum table table;   /* to begin with */
	enum rung rung;
	int pid, pidfd;
	int exit_signal;    /* 0: an exec makes SIGCHLD of it */
	int wake;           /* our end of the pipe by which a fork tells */
	int unsure;         /* the bare rung was not tried: it may serve another start */
	int alive;          /* 0 once a child that we do not sleep for has executed */
};

static inline int
needs_pidfd(const struct plan *p)
{
	return (p->opt->flags & WEAN_NEED_PIDFD) != 0;
}

/* With which table to begin; and that this one cannot be had. */
enum table wean_ladder_table(struct launch *);
void wean_ladder_cannot_share(void);

/* Starts the child on the first rung that serves: its pid, or a negative errno. */
int wean_ladder_climb(struct launch *);

/* By posix_spawn(3): a pid whose program is executed, or < 0: not possible so. */
int wean_posix_spawn(struct launch *);

/* What became of the child: 0, it has executed; or the errno of its failure, with the
   place in the plan, and it is reaped. */
int wean_verdict(struct launch *);

#endif
