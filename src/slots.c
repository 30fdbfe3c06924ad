/* What every number of the child is to be. */
#include <errno.h>

#include "plan.h"
#include "request.h"

static void
add_slot(struct plan *p, int target, int kind, int source, int index)
{
	p->slots[p->nslots++] = (struct slot){ target, kind, source, index };
}

/* 0, 1 and 2, but those that an entry gives. */
static int
collect_standard(struct plan *p)
{
	const int kinds[3] = { p->opt->in, p->opt->out, p->opt->err };
	int taken[3] = { 0, 0, 0 };

	for (size_t i = 0; i < p->opt->nfds; i++)
		if (p->opt->fds[i].target >= 0 && p->opt->fds[i].target <= 2)
			taken[p->opt->fds[i].target] = 1;
	for (int fd = 0; fd <= 2; fd++) {
		int index = (int)p->opt->nfds + fd, kind = kinds[fd];

		if (wean_request_standard_fault(p->opt, fd))
			return plan_fail(p, WEAN_STAGE_OPTIONS, index, EINVAL);
		if (kind == WEAN_MERGE)
			add_slot(p, fd, WEAN_SAME, 1, index);
		else if (!taken[fd])
			add_slot(p, fd, kind ? kind : WEAN_INHERIT, 0, index);
	}
	return 0;
}

static int
collect_entries(struct plan *p)
{
	for (size_t i = 0; i < p->opt->nfds; i++) {
		const struct wean_fd *e = &p->opt->fds[i];
		int keep = e->kind == WEAN_KEEP;

		if (wean_request_entry_fault(e))
			return plan_fail(p, WEAN_STAGE_OPTIONS, (int)i, EINVAL);
		add_slot(p, e->target, keep ? WEAN_DUP : e->kind, keep ? e->target : e->source,
		         (int)i);
	}
	return 0;
}

static int
comes_after(const struct slot *x, const struct slot *y)
{
	return x->target > y->target || (x->target == y->target && x->index > y->index);
}

/* As fdmap.c sorts.  They mostly come in order. */
static void
sort_slots(struct plan *p)
{
	size_t gap = 1;

	while (gap < p->nslots / 3)
		gap = 3 * gap + 1;
	for (; gap > 0; gap /= 3)
		for (size_t i = gap; i < p->nslots; i++) {
			struct slot s = p->slots[i];
			size_t at = i;

			for (; at >= gap && comes_after(&p->slots[at - gap], &s); at -= gap)
				p->slots[at] = p->slots[at - gap];
			p->slots[at] = s;
		}
}

struct slot *
wean_plan_slot(const struct plan *p, int target)
{
	size_t from = 0, to = p->nslots;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (p->slots[middle].target < target)
			from = middle + 1;
		else
			to = middle;
	}
	return from < p->nslots && p->slots[from].target == target ? &p->slots[from] : NULL;
}

/* A number that no entry names is open in the child only where all is inherited. */
static int
is_inherited(const struct plan *p, int fd)
{
	return (p->opt->flags & WEAN_INHERIT_ALL) && wean_sys_close_on_exec(fd) == 0;
}

/* Whether a slot leaves its number closed. */
static int
stays_closed(const struct plan *p, const struct slot *s)
{
	return s->kind == WEAN_CLOSED
	    || (s->kind == WEAN_INHERIT && (p->opt->flags & WEAN_STDIO_AS_IS)
	        && wean_sys_close_on_exec(s->target) != 0);
}

/* Follows SAME to the number that really gets something. */
static int
resolve_same(struct plan *p, struct slot *s)
{
	int source = s->source;

	for (size_t hops = 0; hops <= p->nslots; hops++) {
		const struct slot *at = wean_plan_slot(p, source);

		if (at ? stays_closed(p, at) : !is_inherited(p, source))
			break;
		if (!at || at->kind != WEAN_SAME) {
			s->source = source;
			return 0;
		}
		source = at->source;
	}
	return plan_fail(p, WEAN_STAGE_OPTIONS, s->index, EINVAL);
}

static int
check_slot(struct plan *p, struct slot *s)
{
	int stays = s->kind == WEAN_DUP && s->source == s->target;

	if (s->kind == WEAN_DUP && wean_sys_close_on_exec(s->source) < 0)
		return plan_fail(p, WEAN_STAGE_FD, s->index, EBADF);
	if (s->kind != WEAN_CLOSED && !stays && (unsigned)s->target >= p->limit)
		return plan_fail(p, WEAN_STAGE_FD, s->index, EBADF);
	return s->kind == WEAN_SAME ? resolve_same(p, s) : 0;
}

static int
check_slots(struct plan *p)
{
	int error = 0;

	p->limit = ~0ULL;
	for (size_t i = 1; i < p->nslots; i++)
		if (p->slots[i].target == p->slots[i - 1].target)
			return plan_fail(p, WEAN_STAGE_OPTIONS, p->slots[i].index, EINVAL);
	if (p->opt->nfds > 0)
		wean_sys_nofile(&p->limit);
	for (size_t i = 0; i < p->nslots && !error; i++)
		error = check_slot(p, &p->slots[i]);
	return error;
}

int
wean_plan_slots(struct plan *p)
{
	size_t n = p->opt->nfds + 3;
	int error;

	p->slots = wean_plan_take(p, n, sizeof p->slots[0]);
	p->opens = wean_plan_take(p, n, sizeof p->opens[0]);
	p->sames = wean_plan_take(p, n, sizeof p->sames[0]);
	p->fetches = wean_plan_take(p, n + 3, sizeof p->fetches[0]);
	p->moves = wean_plan_take(p, WEAN_FDMAP_STEPS(n + 4), sizeof p->moves[0]);
	p->keep.number = wean_plan_take(p, n + 4, sizeof p->keep.number[0]);
	p->shut.number = wean_plan_take(p, n + 9, sizeof p->shut.number[0]);
	if (!p->slots || !p->opens || !p->sames || !p->fetches || !p->moves
	    || !p->keep.number || !p->shut.number)
		return plan_no_memory(p);
	if ((error = collect_standard(p)) != 0 || (error = collect_entries(p)) != 0)
		return error;
	sort_slots(p);
	return check_slots(p);
}
