#include "fdmap.h"

/* ---- sets of numbers ---- */

/* Shell's, which needs no memory: qsort(3) takes 2 KiB of stack in one libc, and of the
   heap in another. */
static void
sort(int *v, size_t n)
{
	size_t gap = 1;

	while (gap < n / 3)
		gap = 3 * gap + 1;
	for (; gap > 0; gap /= 3)
		for (size_t i = gap; i < n; i++) {
			size_t at = i;
			int x = v[i];

			for (; at >= gap && v[at - gap] > x; at -= gap)
				v[at] = v[at - gap];
			v[at] = x;
		}
}

static int
is_settled(const struct fd_numbers *set)
{
	for (size_t i = 1; i < set->n; i++)
		if (set->number[i - 1] >= set->number[i])
			return 0;
	return 1;
}

void
wean_fdmap_settle(struct fd_numbers *set)
{
	size_t kept = 0;

	if (is_settled(set))
		return;
	sort(set->number, set->n);
	for (size_t i = 0; i < set->n; i++)
		if (kept == 0 || set->number[kept - 1] != set->number[i])
			set->number[kept++] = set->number[i];
	set->n = kept;
}

int
wean_fdmap_free(const struct fd_numbers *set, int low)
{
	for (size_t at = fd_lower_bound(set, low); at < set->n && set->number[at] == low; at++)
		low++;
	return low;
}

/* ---- the parallel assignment ---- */

struct order {
	struct fd_move *moves;
	size_t n;
	size_t *readers; /* how many pending moves read what moves[i].to holds now */
	size_t *ready;   /* a stack of moves whose target nobody reads any more */
	size_t nready;
	size_t *done;
	struct fd_move *steps;
	size_t nsteps;
};

/* The move that overwrites `number`, n where none does. */
static size_t
writer_of(const struct order *o, int number)
{
	size_t from = 0, to = o->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (o->moves[middle].to < number)
			from = middle + 1;
		else
			to = middle;
	}
	return from < o->n && o->moves[from].to == number ? from : o->n;
}

static void
step(struct order *o, int from, int to, int index)
{
	o->steps[o->nsteps++] = (struct fd_move){ from, to, index };
}

static void
count_readers(struct order *o)
{
	for (size_t i = 0; i < o->n; i++)
		o->readers[i] = o->done[i] = 0;
	for (size_t i = 0; i < o->n; i++) {
		size_t source = writer_of(o, o->moves[i].from);

		if (source < o->n && source != i)
			o->readers[source]++;
	}
}

/* Every move that is ready, and whatever becomes ready by it. */
static void
drain(struct order *o)
{
	while (o->nready > 0) {
		size_t i = o->ready[--o->nready];
		const struct fd_move *m = &o->moves[i];
		size_t source = writer_of(o, m->from);

		step(o, m->from, m->to, m->index);
		o->done[i] = 1;
		if (source < o->n && source != i && --o->readers[source] == 0)
			o->ready[o->nready++] = source;
	}
}

/* What is left when nothing is ready are cycles, each target read by one other
   move: what `first` would overwrite goes to the spare number, and its reader
   takes it from there. */
static void
break_cycle(struct order *o, size_t first, int spare)
{
	size_t reader = first, next;

	while ((next = writer_of(o, o->moves[reader].from)) != first)
		reader = next;
	step(o, o->moves[first].to, spare, o->moves[first].index);
	o->moves[reader].from = spare;
	o->readers[first] = 0;
	o->ready[o->nready++] = first;
	drain(o);
}

size_t
wean_fdmap_order(struct fd_move *moves, size_t n, int spare, struct fd_move *steps,
                 size_t *scratch, int *used_spare)
{
	struct order o = { moves, n, scratch, scratch + n, 0, scratch + 2 * n, steps, 0 };

	*used_spare = 0;
	count_readers(&o);
	for (size_t i = 0; i < n; i++)
		if (o.readers[i] == 0)
			o.ready[o.nready++] = i;
	drain(&o);
	for (size_t i = 0; i < n; i++) {
		if (o.done[i])
			continue;
		*used_spare = 1;
		break_cycle(&o, i, spare);
	}
	return o.nsteps;
}
