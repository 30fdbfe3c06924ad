/* Pure: a wanted table of descriptors becomes an ordered list of moves.  Nothing
   here knows what a descriptor is. */
#ifndef WEAN_FDMAP_H
#define WEAN_FDMAP_H

#include <stddef.h>

/* `to` gets what `from` holds.  from == to: it only loses close-on-exec. */
struct fd_move {
	int from, to;
	int index; /* the entry it serves, for the report */
};

/* A set of numbers: sorted, each once. */
struct fd_numbers {
	int *number;
	size_t n;
};

/* Makes a set of any list: sorts it and drops duplicates. */
void wean_fdmap_settle(struct fd_numbers *);

/* The place of the first number >= low.  Inline, because the child asks too, and
   its objects are built without instrumentation. */
static inline size_t
fd_lower_bound(const struct fd_numbers *set, int low)
{
	size_t from = 0, to = set->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (set->number[middle] < low)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static inline int
fd_has(const struct fd_numbers *set, int number)
{
	size_t at = fd_lower_bound(set, number);

	return at < set->n && set->number[at] == number;
}

/* The lowest number >= low that is not in the set. */
int wean_fdmap_free(const struct fd_numbers *, int low);

/* Steps that carry out n moves at once, as a parallel assignment: any
   permutation, fan-out, chain or cycle.  `to` is distinct over the moves, which are
   sorted by it.  `spare` is a number that is neither source nor target; it is
   overwritten where a cycle has to be broken, and *used_spare tells so.  steps
   has room for WEAN_FDMAP_STEPS(n); `scratch` for 3 * n.  Moves' `from` is
   changed.  Returns the number of steps. */
#define WEAN_FDMAP_STEPS(n) ((n) + (n) / 2)
size_t wean_fdmap_order(struct fd_move *moves, size_t n, int spare, struct fd_move *steps,
                        size_t *scratch, int *used_spare);

#endif
