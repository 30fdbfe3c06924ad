/* All that runs between clone and exec. */
#ifndef WEAN_CHILD_H
#define WEAN_CHILD_H

#include "plan.h"

/* What the child tells.  In memory that both can see: it writes each step before it
   does it, so that even its death tells the place. */
struct report {
	int stage, index;
	int error;       /* 0 until a step has failed */
	int table;       /* instead of a failure: relaunch with this enum table */
	int closed;      /* CLOSE_* */
};

/* What the child is given: it writes to report, buf and the plan's shell_argv alone. */
struct birth {
	const struct plan *plan;
	struct report *report;
	void *buf;
	size_t buf_size;
	int keeps_handlers; /* the launch could not reset caught signals */
	int in_cgroup;      /* the launch put it there */
};

/* Does not return: executes the program, or reports and exits.  `birth` is a struct
   birth. */
int wean_child(void *birth);

#endif
