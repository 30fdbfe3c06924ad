/* How every number of the child gets there. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>

#include "plan.h"

enum {
	HIGH = 128,      /* below it the long copy is the cheapest: 45 ns a descriptor */
	FETCH_WORTH = 64 /* descriptors that could be copied in the time of a fetch */
};

struct map {
	struct plan *p;
	struct fd_numbers used; /* sources and targets: not for temporaries */
	int next_free;
	int probe;              /* a descriptor of ours, or -1 */
	int full;               /* there was no free number below the limit */
	struct fd_move *moves;
	size_t nmoves;
	struct need {
		unsigned long long flags, late; /* of those, which want it after the moves */
		int fd;
		struct own *own;
	} needs[3];
	size_t nneeds;
};

static int
has_source(const struct slot *s)
{
	return s->kind == WEAN_DUP || s->kind == WEAN_PIPE;
}

static void
use(struct map *m, int number)
{
	m->used.number[m->used.n++] = number;
}

/* What the child needs for itself, and where the plan keeps it. */
static void
gather_own(struct map *m)
{
	struct plan *p = m->p;
	const struct wean_options *o = p->opt;
	const struct need all[] = {
		{ WEAN_DIR_FD, WEAN_DIR_FD, o->dirfd, &p->dir },
		{ WEAN_CONTROL_TTY | WEAN_FOREGROUND, WEAN_FOREGROUND, o->ttyfd, &p->tty },
		{ WEAN_IN_CGROUP, 0, o->cgroupfd, &p->cgroup },
	};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		*all[i].own = (struct own){ -1, -1 };
		if (o->flags & all[i].flags)
			m->needs[m->nneeds++] = all[i];
	}
}

static void
gather_used(struct map *m)
{
	struct plan *p = m->p;

	for (size_t i = 0; i < p->nslots; i++) {
		use(m, p->slots[i].target);
		if (has_source(&p->slots[i]) || p->slots[i].kind == WEAN_SAME)
			use(m, p->slots[i].source);
	}
	for (size_t i = 0; i < m->nneeds; i++)
		use(m, m->needs[i].fd);
	if (p->wake >= 0)
		use(m, p->wake);
	wean_fdmap_settle(&m->used);
}

/* The lowest number from low on that is neither source nor target, and where all is
   inherited not open either: the kernel finds it by making a copy of an open one.  That
   is one of a kind whose closing takes none of the caller's record locks away. */
static int
find_free(struct map *m, int low)
{
	int n = wean_fdmap_free(&m->used, low), lowest;

	if (!(m->p->opt->flags & WEAN_INHERIT_ALL))
		return n;
	if (m->probe < 0)
		m->probe = wean_sys_open("/", O_PATH | O_CLOEXEC, 0);
	while ((lowest = wean_sys_dup_above(m->probe, n)) >= 0) {
		wean_sys_close(lowest);
		if (lowest == n)
			return n;
		n = wean_fdmap_free(&m->used, lowest);
	}
	return INT_MAX;
}

/* For a temporary.  "Above every target" would fail at the limit.  What the child has on
   this number it was not given. */
static int
free_number(struct map *m)
{
	int n = find_free(m, m->next_free);

	if ((unsigned)n >= m->p->limit)
		m->full = 1;
	else if ((unsigned)n >= m->p->top)
		m->p->top = (unsigned)n + 1;
	m->next_free = n < INT_MAX ? n + 1 : n;
	return n;
}

struct heights {
	int low, highest; /* the highest source that is not cut off, and of all */
	size_t high;      /* how many are */
	int others;       /* high ones that are no pipes of ours: the fetch may be refused */
};

static void
measure(struct heights *h, int source, int is_pipe)
{
	if (source > h->highest)
		h->highest = source;
	if (source >= HIGH) {
		h->high++;
		h->others |= !is_pipe;
	} else if (source > h->low) {
		h->low = source;
	}
}

static void
choose_cut(struct map *m)
{
	struct plan *p = m->p;
	struct heights h = { 2, 2, 0, 0 };

	if (p->table == TABLE_COPIED) {
		p->cut = 0;
		p->top = ~0U;
		return;
	}
	for (size_t i = 0; i < p->nslots; i++)
		if (has_source(&p->slots[i]))
			measure(&h, p->slots[i].source, p->slots[i].kind == WEAN_PIPE);
	for (size_t i = 0; i < m->nneeds; i++)
		measure(&h, m->needs[i].fd, 0);
	if (h.high == 0 || h.high * FETCH_WORTH > (size_t)h.highest
	    || (h.others && wean_sys_children_elsewhere()))
		p->table = TABLE_CUT_HIGH; /* where a relaunch would be fatal, too */
	p->cut = 1 + (unsigned)(p->table == TABLE_CUT_HIGH ? h.highest : h.low);
	p->top = p->cut;
}

/* Our own pipe ends are opened anew, a description of one's own being as good for
   them; other descriptors have to be fetched as they are. */
static int
pipe_mode(const struct plan *p, const struct slot *s)
{
	if (s->kind != WEAN_PIPE)
		return -1;
	return s->index == (int)p->opt->nfds ? O_RDONLY : O_WRONLY;
}

/* Where the child finds a source: on a number of its own where it is fetched.
   mode: of a pipe, else -1. */
static int
source_of(struct map *m, int source, int mode, int index, int *number)
{
	struct plan *p = m->p;
	struct fetch *f = p->fetches;

	*number = source;
	if (p->table != TABLE_CUT_LOW || source < HIGH)
		return 0;
	for (; f < p->fetches + p->nfetches; f++)
		if (f->number == source && f->oflag == mode) {
			*number = f->land;
			return 0;
		}
	*f = (struct fetch){ .number = source, .index = index, .oflag = mode };
	*number = f->land = free_number(m);
	p->nfetches++;
	return -wean_sys_file(source, &f->file);
}

/* Keeps the moves sorted by target. */
static void
add_move(struct map *m, int from, int to, int index)
{
	size_t at = m->nmoves++;

	for (; at > 0 && m->moves[at - 1].to > to; at--)
		m->moves[at] = m->moves[at - 1];
	m->moves[at] = (struct fd_move){ from, to, index };
}

/* A descriptor that the child still needs after the moves stays where it is, unless that
   number is to become something else. */
static int
settle(struct map *m, int from)
{
	struct plan *p = m->p;
	int to = from;

	if (wean_plan_slot(p, from)) {
		if (p->opt->nfds == 0)
			wean_sys_nofile(&p->limit); /* which did not matter so far */
		to = free_number(m);
		add_move(m, from, to, -1);
	}
	p->keep.number[p->keep.n++] = to;
	return to;
}

static int
map_slot(struct map *m, const struct slot *s)
{
	struct plan *p = m->p;
	int from = -1, error = 0;

	if (s->kind == WEAN_INHERIT)
		p->inherited |= 1 << s->target;
	else if (s->kind == WEAN_SAME)
		p->sames[p->nsames++] = s;
	else if (has_source(s)) {
		error = source_of(m, s->source, pipe_mode(p, s), s->index, &from);
		add_move(m, from, s->target, s->index);
	}
	if (s->kind == WEAN_INHERIT || has_source(s))
		p->keep.number[p->keep.n++] = s->target;
	return error;
}

static int
map_own(struct map *m)
{
	struct plan *p = m->p;
	int error = 0;

	for (size_t i = 0; i < m->nneeds && !error; i++) {
		const struct need *need = &m->needs[i];

		error = source_of(m, need->fd, -1, -1, &need->own->before);
		if (p->opt->flags & need->late)
			need->own->after = settle(m, need->own->before);
	}
	if (p->wake >= 0)
		p->wake_there = settle(m, p->wake);
	if (p->nfetches > 0) {
		p->parent = free_number(m);
		p->pid = wean_sys_getpid();
		p->tid = wean_sys_gettid();
	}
	return error;
}

/* In the caller's order, for which slots are not sorted. */
static void
map_opens(struct plan *p)
{
	size_t nfds = p->opt->nfds;

	for (size_t i = 0; i < nfds + 3; i++) {
		int target = i < nfds ? p->opt->fds[i].target : (int)(i - nfds);
		const struct slot *s = wean_plan_slot(p, target);

		if (s && s->index == (int)i && (s->kind == WEAN_OPEN || s->kind == WEAN_NULL))
			p->opens[p->nopens++] = s;
	}
}

static void
shut_unless_named(struct plan *p, int fd)
{
	if (fd >= 0 && !wean_plan_slot(p, fd))
		p->shut.number[p->shut.n++] = fd;
}

/* Where all is inherited, nothing is closed but what is ours or said to be. */
static void
map_shut(struct map *m, int spare)
{
	struct plan *p = m->p;
	struct fd_numbers *shut = &p->shut;

	shut->n = 0;
	if (!(p->opt->flags & WEAN_INHERIT_ALL))
		return;
	for (size_t i = 0; i < p->nslots; i++)
		if (p->slots[i].kind == WEAN_CLOSED)
			shut->number[shut->n++] = p->slots[i].target;
	for (int i = 0; i < 6; i++)
		shut_unless_named(p, p->pipes[i / 2][i % 2]);
	for (size_t i = 0; i < m->nneeds; i++)
		if (m->needs[i].own->after < 0)
			shut_unless_named(p, m->needs[i].fd);
	if (spare >= 0)
		shut->number[shut->n++] = spare;
}

static int
map_all(struct map *m, size_t *scratch)
{
	struct plan *p = m->p;
	int spare, used_spare, full, error = 0;

	p->nfetches = p->nsames = p->nopens = p->keep.n = 0;
	p->inherited = 0;
	m->nmoves = 0;
	m->next_free = 3;
	m->full = 0;
	choose_cut(m);
	for (size_t i = 0; i < p->nslots && !error; i++)
		error = map_slot(m, &p->slots[i]);
	if (error || (error = map_own(m)) != 0)
		return error;
	full = m->full;
	spare = m->nmoves > 1 ? free_number(m) : -1;
	p->nmoves = wean_fdmap_order(m->moves, m->nmoves, spare, p->moves, scratch, &used_spare);
	wean_fdmap_settle(&p->keep);
	map_opens(p);
	map_shut(m, used_spare ? spare : -1);
	return full || (used_spare && m->full) ? EMFILE : 0;
}

enum { WORK_A_NUMBER = 48 }; /* bytes, rounded up */

int
wean_plan_map(struct plan *p, void *work, size_t size)
{
	/* For a few numbers the end of the plan's own memory does, which is at hand. */
	struct arena arena = { p->arena.at, p->arena.end, NULL };
	size_t n = p->nslots + 4, *scratch;
	struct map m = { .p = p, .probe = -1 };
	int error;

	if ((size_t)(arena.end - arena.at) < n * WORK_A_NUMBER)
		arena = (struct arena){ work, (char *)work + size, NULL };
	scratch = wean_arena_take(&arena, 3 * n, sizeof *scratch);
	m.moves = wean_arena_take(&arena, n, sizeof m.moves[0]);
	m.used.number = wean_arena_take(&arena, 2 * n, sizeof m.used.number[0]);
	if (!scratch || !m.moves || !m.used.number) {
		wean_arena_free(&arena);
		return plan_fail(p, WEAN_STAGE_MEMORY, -1, ENOMEM);
	}
	gather_own(&m);
	gather_used(&m);
	error = map_all(&m, scratch);
	if (error && p->table == TABLE_CUT_LOW) {
		/* A source that cannot even be told apart is copied. */
		p->table = TABLE_CUT_HIGH;
		error = map_all(&m, scratch);
	}
	wean_sys_drop(&m.probe);
	wean_arena_free(&arena);
	return error ? plan_fail(p, WEAN_STAGE_FD, -1, error) : 0;
}
