/* Closing alone, for a host that keeps its own fork: async-signal-safe. */
#include <errno.h>
#include <limits.h>

#include <wean.h>

#include "closer.h"

/* The lowest WINDOW kept numbers are taken at a time, in a heap whose top is the
   highest of them: the list comes in any order and may not be sorted in place, and
   memory may not be asked for. */
enum { WINDOW = 512 };

struct window {
	int number[WINDOW];
	size_t n;
};

static void
sift_down(int *heap, size_t n)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < n) {
		int top = heap[at];

		if (child + 1 < n && heap[child + 1] > heap[child])
			child++;
		if (top >= heap[child])
			return;
		heap[at] = heap[child];
		heap[child] = top;
		at = child;
	}
}

static void
push(struct window *w, int number)
{
	size_t at;

	if (w->n == WINDOW) {
		if (number >= w->number[0])
			return;
		w->number[0] = number;
		sift_down(w->number, w->n);
		return;
	}
	for (at = w->n++; at > 0 && w->number[(at - 1) / 2] < number; at = (at - 1) / 2)
		w->number[at] = w->number[(at - 1) / 2];
	w->number[at] = number;
}

static void
sort_window(struct window *w)
{
	for (size_t n = w->n; n > 1; ) {
		int highest = w->number[0];

		w->number[0] = w->number[--n];
		w->number[n] = highest;
		sift_down(w->number, n);
	}
}

static void
take_lowest(struct window *w, int low, const int *keep, size_t n)
{
	w->n = 0;
	for (size_t i = 0; i < n; i++)
		if (keep[i] >= low)
			push(w, keep[i]);
	sort_window(w);
}

int
wean_close_except(int low, const int *keep, size_t n)
{
	struct window w;
	_Alignas(long) char buf[4096];
	int rung = CLOSE_NONE, error;

	if (low < 0 || (n && !keep))
		return EINVAL;
	for (;;) {
		struct fd_numbers kept = { w.number, 0 };
		unsigned last = CLOSE_TO_THE_END;

		take_lowest(&w, low, keep, n);
		kept.n = w.n;
		if (w.n == WINDOW && w.number[WINDOW - 1] < INT_MAX)
			last = (unsigned)w.number[WINDOW - 1];
		error = wean_close_others((unsigned)low, last, &kept, buf, sizeof buf, &rung);
		if (error || last == CLOSE_TO_THE_END)
			return error;
		low = (int)last + 1;
	}
}

int
wean_closefrom(int low)
{
	return wean_close_except(low, NULL, 0);
}
