/* From a plan to a running program: masks, the launch ladder, the child's report. */
#ifndef WEAN_LAUNCH_H
#define WEAN_LAUNCH_H

#include "child.h"

/* How a child was launched; for child.method. */
enum rung { RUNG_CLONE3 = 1, RUNG_CLONE, RUNG_CLONE3_COPY, RUNG_FORK, RUNG_POSIX_SPAWN };

/* The child's.  It would have to overrun the buffer too before it came to anything else. */
struct scratch {
	_Alignas(16) char buf[4096];
	_Alignas(16) char stack[4096];
};

/* 0: the program is executed, and *child is complete before a signal is let in.  Else an
   errno with plan->stage and plan->index; there is no child then. */
int wean_launch(struct plan *, struct scratch *, struct wean_child *child);

#endif
