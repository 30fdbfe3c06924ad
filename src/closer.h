/* The close ladder.  Async-signal-safe: raw calls, no allocation. */
#ifndef WEAN_CLOSER_H
#define WEAN_CLOSER_H

#include "fdmap.h"

/* How descriptors were closed; for child.method. */
enum { CLOSE_NONE, CLOSE_UNSHARE, CLOSE_RANGE, CLOSE_FROM, CLOSE_PROCFS, CLOSE_SCAN };

#define CLOSE_TO_THE_END (~0U)

/* Closes every number of low..last but those kept.  0 and *rung (left alone where
   there was nothing to do), or a positive errno: then some may still be open.
   `buf`, aligned for a long, is scratch; 1 KiB or more of it. */
int wean_close_others(unsigned low, unsigned last, const struct fd_numbers *keep,
                      void *buf, size_t size, int *rung);

#endif
