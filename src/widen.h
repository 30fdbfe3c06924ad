/* Pipes of our own that are found full again and again are enlarged: a reader then wakes
   up less often.  A user's pipe pages are a shared budget, so few are, and they give it
   back. */
#ifndef WEAN_WIDEN_H
#define WEAN_WIDEN_H

#include <stddef.h>

enum { READ_AT_LEAST = 65536 }; /* asked for by each read: a pipe's usual size */

/* All-zero to begin with. */
struct widening {
	int full;   /* reads in a row that found as much as a pipe holds; -1: not again */
	int before; /* its size, if it was enlarged */
};

/* One read(2) of at most `room` bytes, and what follows for the pipe: how much came, 0 at
   the end, or a negative errno.  A terminal whose other side is gone is at its end. */
int wean_widen_read(struct widening *, int fd, char *data, size_t room);
void wean_widen_back(struct widening *, int fd);
void wean_widen_forget(struct widening *); /* where the number may be another's by now */

#endif
