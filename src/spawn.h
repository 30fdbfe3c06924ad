/* What a pipeline needs of a start. */
#ifndef WEAN_SPAWN_H
#define WEAN_SPAWN_H

#include <wean.h>

/* Finds what is wrong with a start as far as that shows without one: 0, or an errno with
   child->stage and child->index. */
int wean_spawn_check(struct wean_child *child, char *const argv[],
                     const struct wean_options *opt);

/* wean_spawn(), which may change errno.  in: what `in`, which is WEAN_PIPE then, reads
   from, an end of a pipe of ours; once it was begun to start, it is closed here and -1.
   NULL: there is none. */
int wean_spawn_stage(struct wean_child *child, char *const argv[],
                     const struct wean_options *opt, int *in);

#endif
