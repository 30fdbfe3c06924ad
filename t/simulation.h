/* simulation.h - a plan for descriptors, carried out on a table in memory: cut, fetched,
   moved, closed, opened, copied, executed. */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "descriptors.h"

#include "../src/plan.h"

enum {
	ROOM = 640,         /* numbers of the model, */
	LITTLE = 32,        /* and of one that takes little time */
	OPENED = 1000,      /* what an entry opened: this and its index */
	HANDLE = 2000,      /* the handle on the parent */
	NOTHING = -1
};

/* ---- the caller's table, and one that is planned for --------------------- */

struct sim {
	const struct wean_options *opt;
	struct plan plan;
	char memory[8192], work[8192];
	int room;           /* numbers from here on are left out */
	int wake;           /* a pipe end by which a fork tells, or -1 */
	int file[ROOM];
	char close_on_exec[ROOM];
	char named[ROOM];   /* a source or a target */
};

/* What is open here: each number holds a file of its own.  1: open, 2: and close-on-
   exec. */
static char caller[ROOM];

static inline void look_at_caller(void)
{
	for (int n = 0; n < ROOM; n++) {
		int flags = fcntl(n, F_GETFD);

		caller[n] = flags < 0 ? 0 : flags & FD_CLOEXEC ? 2 : 1;
	}
}

/* ---- what the child should have ------------------------------------------ */

static inline const struct wean_fd *entry_of(const struct wean_options *o, int target)
{
	for (size_t i = 0; i < o->nfds; i++)
		if (o->fds[i].target == target)
			return &o->fds[i];
	return NULL;
}

static inline int inherits(const struct wean_options *o, int n)
{
	return n >= 0 && n < ROOM &&
	       (n <= 2 || (o->flags & WEAN_INHERIT_ALL && caller[n] == 1));
}

/* Another number to look at: what SAME leads to. */
enum { SAME_BASE = -1000 };

static inline int wanted_at(const struct wean_options *o, int n)
{
	const struct wean_fd *e = entry_of(o, n);

	if (!e)
		return inherits(o, n) ? n : NOTHING;
	switch (e->kind) {
	case WEAN_DUP:
		return e->source;
	case WEAN_KEEP:
		return n;
	case WEAN_SAME:
		return SAME_BASE - e->source;
	case WEAN_CLOSED:
		return NOTHING;
	default:
		return OPENED + (int)(e - o->fds);
	}
}

/* NOTHING also for a cycle. */
static inline int wanted_after_all(const struct wean_options *o, int n)
{
	int file = wanted_at(o, n);

	for (size_t hops = 0; file <= SAME_BASE; hops++) {
		if (hops > o->nfds)
			return NOTHING;
		file = wanted_at(o, SAME_BASE - file);
	}
	return file;
}

static inline int is_refused(const struct wean_options *o)
{
	for (size_t i = 0; i < o->nfds; i++)
		if (o->fds[i].kind == WEAN_SAME &&
		    wanted_after_all(o, o->fds[i].target) == NOTHING)
			return 1;
	return 0;
}

/* ---- the plan, carried out ----------------------------------------------- */

static inline void name_numbers(struct sim *s)
{
	memset(s->named, 0, sizeof s->named);
	s->named[0] = s->named[1] = s->named[2] = 1;
	for (size_t i = 0; i < s->opt->nfds; i++) {
		const struct wean_fd *e = &s->opt->fds[i];

		s->named[e->target] = 1;
		if (e->kind == WEAN_DUP || e->kind == WEAN_SAME)
			s->named[e->source] = 1;
	}
	if (s->opt->flags & WEAN_DIR_FD)
		s->named[s->opt->dirfd] = 1;
	if (s->wake >= 0)
		s->named[s->wake] = 1;
}

static inline const char *put(struct sim *s, int n, int file, int close_on_exec)
{
	if (n < 0 || n >= s->room)
		return "beyond the table";
	s->file[n] = file;
	s->close_on_exec[n] = (char)close_on_exec;
	return NULL;
}

static inline const char *put_temporary(struct sim *s, int n, int file)
{
	if (n >= 0 && n < s->room && s->named[n])
		return "a temporary is a source or a target";
	if ((unsigned)n >= s->plan.top)
		return "a temporary is above the top";
	if (s->opt->flags & WEAN_INHERIT_ALL && caller[n])
		return "a temporary takes the place of what is inherited";
	return put(s, n, file, 1);
}

static inline void copy_table(struct sim *s)
{
	unsigned copied = s->plan.table == TABLE_COPIED ? (unsigned)s->room : s->plan.cut;

	for (int n = 0; n < s->room; n++)
		put(s, n, (unsigned)n < copied && caller[n] ? n : NOTHING, caller[n] == 2);
}

static inline const char *fetch(struct sim *s)
{
	const char *wrong = NULL;
	int handle = 0;

	for (size_t i = 0; i < s->plan.nfetches && !wrong; i++) {
		const struct fetch *f = &s->plan.fetches[i];

		if ((unsigned)f->number < s->plan.cut)
			return "fetches what it has";
		if (f->oflag < 0 && !handle++)
			wrong = put_temporary(s, s->plan.parent, HANDLE);
		if (!wrong)
			wrong = put_temporary(s, f->land, f->number);
	}
	return wrong;
}

static inline const char *move(struct sim *s)
{
	for (size_t i = 0; i < s->plan.nmoves; i++) {
		const struct fd_move *m = &s->plan.moves[i];
		const char *wrong = NULL;

		if (s->file[m->from] == NOTHING)
			return "moves what is closed";
		if (!entry_of(s->opt, m->to))
			wrong = put_temporary(s, m->to, NOTHING);
		if (!wrong)
			wrong = put(s, m->to, s->file[m->from], 0);
		if (wrong)
			return wrong;
	}
	return NULL;
}

static inline void close_others(struct sim *s)
{
	const struct plan *p = &s->plan;

	for (size_t i = 0; i < p->shut.n; i++)
		s->file[p->shut.number[i]] = NOTHING;
	for (int n = 0; n < s->room && (unsigned)n < p->top; n++)
		if (!(s->opt->flags & WEAN_INHERIT_ALL) && !fd_has(&p->keep, n))
			s->file[n] = NOTHING;
}

static inline const char *open_and_copy(struct sim *s)
{
	const struct plan *p = &s->plan;
	const struct slot *before = NULL;

	for (size_t i = 0; i < p->nopens; before = p->opens[i++]) {
		if (before && before->index >= p->opens[i]->index)
			return "opens out of order";
		put(s, p->opens[i]->target, OPENED + p->opens[i]->index, 0);
	}
	for (size_t i = 0; i < p->nsames; i++) {
		int source = p->sames[i]->source;

		if (source < 0 || source >= s->room || s->file[source] == NOTHING)
			return "copies what is closed";
		put(s, p->sames[i]->target, s->file[source], 0);
	}
	return NULL;
}

static inline const char *end_own(struct sim *s)
{
	if (s->opt->flags & WEAN_DIR_FD) {
		if (s->plan.dir.after < 0 || s->file[s->plan.dir.after] != s->opt->dirfd)
			return "the directory is lost";
		s->file[s->plan.dir.after] = NOTHING;
	}
	if (s->wake >= 0) {
		if (s->file[s->plan.wake_there] != s->wake)
			return "the pipe that wakes the parent is lost";
		s->file[s->plan.wake_there] = NOTHING;
	}
	return NULL;
}

static inline const char *check_end(struct sim *s)
{
	for (int n = 0; n < s->room; n++) {
		int got = s->close_on_exec[n] ? NOTHING : s->file[n];
		int own = n == s->wake || (s->opt->flags & WEAN_DIR_FD && n == s->opt->dirfd);

		if (own && !entry_of(s->opt, n)) {
			if (got != NOTHING && n > 2)
				return "a descriptor of its own is passed on";
		} else if (got != wanted_after_all(s->opt, n)) {
			return "a number holds something else";
		}
	}
	return NULL;
}

static inline const char *carry_out(struct sim *s)
{
	const char *wrong;

	name_numbers(s);
	copy_table(s);
	if ((wrong = fetch(s)) || (wrong = move(s)))
		return wrong;
	close_others(s);
	if ((wrong = open_and_copy(s)) || (wrong = end_own(s)))
		return wrong;
	return check_end(s);
}

/* Nothing of Check in here: a quarter of a million are run. */
static inline const char *run(struct sim *s, const struct wean_options *o,
                              enum table table)
{
	char *argv[] = { (char[]){ "/x" }, NULL };
	const char *wrong = NULL;
	int error = wean_plan_make(&s->plan, argv, s->opt = o, s->memory, sizeof s->memory);

	if (is_refused(o))
		wrong = error == EINVAL ? NULL : "SAME of nothing was accepted";
	else if (error)
		wrong = "refused";
	if (!error && !wrong) {
		s->plan.table = table;
		s->plan.wake = s->wake;
		if (wean_plan_map(&s->plan, s->work, sizeof s->work))
			wrong = "no map";
	}
	if (!error && !wrong)
		wrong = carry_out(s);
	wean_plan_free(&s->plan);
	return wrong;
}

static inline void must_hold(struct sim *s, const struct wean_options *o,
                             enum table table)
{
	const char *wrong = run(s, o, table);

	if (!wrong)
		return;
	for (size_t i = 0; i < o->nfds; i++)
		fprintf(stderr, "{kind %d, %d<-%d} ", o->fds[i].kind, o->fds[i].target,
		        o->fds[i].source);
	ck_abort_msg("flags %#llx, table %d: %s", o->flags, (int)table, wrong);
}

enum { LOW = 10, FAR = 600 };

/* Numbers `first` to first + 5 are open, each a file of its own; one of them is close-on-
   exec. */
static inline void open_six(int first)
{
	for (int n = first; n < first + 6; n++)
		open_at(n);
	ck_assert_int_eq(fcntl(first + 1, F_SETFD, FD_CLOEXEC), 0);
	look_at_caller();
}

#endif
