/* test_table.c - a plan for descriptors, carried out on a table in memory: where the
   table is cut, what is fetched, moved, kept, closed, opened and copied. */
#define _GNU_SOURCE
#include "descriptors.h"

#include "../src/plan.h"

enum {
	ROOM = 640,         /* numbers of the model, */
	LITTLE = 32,        /* and of one that takes little time */
	OPENED = 1000,      /* what an entry opened: this and its index */
	HANDLE = 2000,      /* the handle on the parent */
	NOTHING = -1
};

/* ---- the caller's table, and one that is planned for ---------------------- */

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

static void look_at_caller(void)
{
	for (int n = 0; n < ROOM; n++) {
		int flags = fcntl(n, F_GETFD);

		caller[n] = flags < 0 ? 0 : flags & FD_CLOEXEC ? 2 : 1;
	}
}

/* ---- what the child should have ------------------------------------------- */

static const struct wean_fd *entry_of(const struct wean_options *o, int target)
{
	for (size_t i = 0; i < o->nfds; i++)
		if (o->fds[i].target == target)
			return &o->fds[i];
	return NULL;
}

static int inherits(const struct wean_options *o, int n)
{
	return n >= 0 && n < ROOM &&
	       (n <= 2 || (o->flags & WEAN_INHERIT_ALL && caller[n] == 1));
}

/* Another number to look at: what SAME leads to. */
enum { SAME_BASE = -1000 };

static int wanted_at(const struct wean_options *o, int n)
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
static int wanted_after_all(const struct wean_options *o, int n)
{
	int file = wanted_at(o, n);

	for (size_t hops = 0; file <= SAME_BASE; hops++) {
		if (hops > o->nfds)
			return NOTHING;
		file = wanted_at(o, SAME_BASE - file);
	}
	return file;
}

static int is_refused(const struct wean_options *o)
{
	for (size_t i = 0; i < o->nfds; i++)
		if (o->fds[i].kind == WEAN_SAME &&
		    wanted_after_all(o, o->fds[i].target) == NOTHING)
			return 1;
	return 0;
}

/* ---- the plan, carried out ------------------------------------------------- */

static void name_numbers(struct sim *s)
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

static const char *put(struct sim *s, int n, int file, int close_on_exec)
{
	if (n < 0 || n >= s->room)
		return "beyond the table";
	s->file[n] = file;
	s->close_on_exec[n] = (char)close_on_exec;
	return NULL;
}

static const char *put_temporary(struct sim *s, int n, int file)
{
	if (n >= 0 && n < s->room && s->named[n])
		return "a temporary is a source or a target";
	if ((unsigned)n >= s->plan.top)
		return "a temporary is above the top";
	if (s->opt->flags & WEAN_INHERIT_ALL && caller[n])
		return "a temporary takes the place of what is inherited";
	return put(s, n, file, 1);
}

static void copy_table(struct sim *s)
{
	unsigned copied = s->plan.table == TABLE_COPIED ? (unsigned)s->room : s->plan.cut;

	for (int n = 0; n < s->room; n++)
		put(s, n, (unsigned)n < copied && caller[n] ? n : NOTHING, caller[n] == 2);
}

static const char *fetch(struct sim *s)
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

static const char *move(struct sim *s)
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

static void close_others(struct sim *s)
{
	const struct plan *p = &s->plan;

	for (size_t i = 0; i < p->shut.n; i++)
		s->file[p->shut.number[i]] = NOTHING;
	for (int n = 0; n < s->room && (unsigned)n < p->top; n++)
		if (!(s->opt->flags & WEAN_INHERIT_ALL) && !fd_has(&p->keep, n))
			s->file[n] = NOTHING;
}

static const char *open_and_copy(struct sim *s)
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

static const char *end_own(struct sim *s)
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

static const char *check_end(struct sim *s)
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

static const char *carry_out(struct sim *s)
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
static const char *run(struct sim *s, const struct wean_options *o, enum table table)
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

static void must_hold(struct sim *s, const struct wean_options *o, enum table table)
{
	const char *wrong = run(s, o, table);

	if (!wrong)
		return;
	for (size_t i = 0; i < o->nfds; i++)
		fprintf(stderr, "{kind %d, %d<-%d} ", o->fds[i].kind, o->fds[i].target,
		        o->fds[i].source);
	ck_abort_msg("flags %#llx, table %d: %s", o->flags, (int)table, wrong);
}

/* ---- all maps --------------------------------------------------------------- */

/* The child's number FIRST + i gets choice[i], of which 0 is nothing at all. */
static size_t entries(struct wean_fd *fds, const int *choice, int first, int n,
                      struct wean_fd (*entry)(int choice))
{
	size_t nfds = 0;

	for (int i = n - 1; i >= 0; i--) {
		if (choice[i] == 0)
			continue;
		fds[nfds] = entry(choice[i]);
		fds[nfds++].target = first + i;
	}
	return nfds;
}

static int next(int *choice, int n, int choices)
{
	int place = 0;

	while (place < n && ++choice[place] == choices)
		choice[place++] = 0;
	return place < n;
}

enum { LOW = 10, FAR = 600 };

/* Numbers `first` to first + 5 are open, each a file of its own; one of them is close-on-
   exec. */
static void open_six(int first)
{
	for (int n = first; n < first + 6; n++)
		open_at(n);
	ck_assert_int_eq(fcntl(first + 1, F_SETFD, FD_CLOEXEC), 0);
	look_at_caller();
}

static struct wean_fd low_dup(int choice)
{
	return (struct wean_fd){ .kind = WEAN_DUP, .source = LOW + choice - 1 };
}

static void all_six_by_six(unsigned long long flags, enum table table)
{
	static struct sim s;
	struct wean_fd fds[6];
	int choice[6] = { 0 };
	struct wean_options o = { .flags = flags, .fds = fds };
	long tried = 0;

	s.room = LITTLE;
	s.wake = -1;
	do {
		o.nfds = entries(fds, choice, LOW, 6, low_dup);
		must_hold(&s, &o, table);
		tried++;
	} while (next(choice, 6, 7));
	ck_assert_int_eq(tried, 117649);
}

static const struct {
	unsigned long long flags;
	enum table table;
} ways[] = {
	{ 0, TABLE_CUT_LOW }, { 0, TABLE_COPIED }, { WEAN_INHERIT_ALL, TABLE_COPIED },
};

START_TEST(all_maps_of_six_by_six_leave_exactly_what_was_given)
{
	open_six(LOW);
	all_six_by_six(ways[_i].flags, ways[_i].table);
}
END_TEST

/* All kinds; SAME of each of the four, of stdout, and of a number that nobody names. */
static struct wean_fd any_kind(int choice)
{
	static const struct wean_fd kinds[] = {
		{ 0 },
		{ .kind = WEAN_CLOSED },
		{ .kind = WEAN_NULL },
		{ .kind = WEAN_OPEN, .path = "/x" },
		{ .kind = WEAN_DUP, .source = LOW },
		{ .kind = WEAN_DUP, .source = LOW + 1 },
		{ .kind = WEAN_SAME, .source = LOW },
		{ .kind = WEAN_SAME, .source = LOW + 1 },
		{ .kind = WEAN_SAME, .source = LOW + 2 },
		{ .kind = WEAN_SAME, .source = LOW + 3 },
		{ .kind = WEAN_SAME, .source = 1 },
		{ .kind = WEAN_SAME, .source = LOW + 5 },
	};

	return kinds[choice];
}

START_TEST(all_kinds_together_leave_exactly_what_was_given)
{
	static struct sim s;
	struct wean_fd fds[4];
	int choice[4] = { 0 };
	struct wean_options o = { .flags = ways[_i].flags, .fds = fds };
	long tried = 0;

	open_six(LOW);
	s.room = LITTLE;
	s.wake = -1;
	do {
		o.nfds = entries(fds, choice, LOW, 4, any_kind);
		must_hold(&s, &o, ways[_i].table);
		tried++;
	} while (next(choice, 4, 12));
	ck_assert_int_eq(tried, 12 * 12 * 12 * 12);
}
END_TEST

/* The directory, or the pipe that wakes the parent, is itself a source or a target. */
START_TEST(descriptors_of_its_own_survive_the_moves_and_are_not_passed_on)
{
	static struct sim s;
	struct wean_fd fds[4];
	int choice[4] = { 0 };
	struct wean_options o = { .flags = ways[_i].flags | WEAN_DIR_FD, .fds = fds };

	open_six(LOW);
	s.room = LITTLE;
	do {
		o.nfds = entries(fds, choice, LOW, 4, low_dup);
		for (o.dirfd = LOW; o.dirfd < LOW + 6; o.dirfd += 2) {
			s.wake = -1;
			must_hold(&s, &o, ways[_i].table);
			s.wake = LOW + 1;
			if (ways[_i].table == TABLE_COPIED)
				must_hold(&s, &o, TABLE_COPIED);
		}
	} while (next(choice, 4, 7));
}
END_TEST

static struct wean_fd far_dup(int choice)
{
	return (struct wean_fd){ .kind = WEAN_DUP, .source = FAR + choice - 1 };
}

/* Few and far away: the table is cut below them.  Targets there, and where what is
   fetched would land. */
START_TEST(all_maps_of_high_sources_leave_exactly_what_was_given)
{
	static const int firsts[] = { 0, 3, 5, FAR, FAR + 3 };
	static struct sim s;
	struct wean_fd fds[4];
	struct wean_options o = { .fds = fds };

	NEED_DESCRIPTORS(ROOM);
	open_six(FAR);
	s.room = ROOM;
	s.wake = -1;
	for (size_t i = 0; i < COUNT(firsts); i++) {
		int choice[4] = { 0 };

		do {
			o.nfds = entries(fds, choice, firsts[i], 4, far_dup);
			o.flags = choice[0] == 1 ? WEAN_DIR_FD : 0;
			o.dirfd = o.flags ? FAR + choice[1] % 2 : 0;
			must_hold(&s, &o, TABLE_CUT_LOW);
			if (o.nfds > 0)
				ck_assert_int_eq(s.plan.table, TABLE_CUT_LOW);
			must_hold(&s, &o, TABLE_CUT_HIGH);
			ck_assert_uint_eq(s.plan.nfetches, 0);
			must_hold(&s, &o, TABLE_COPIED);
		} while (next(choice, 4, 7));
	}
}
END_TEST

/* ---- where the table is cut -------------------------------------------------- */

static struct sim cut_sim;

static const struct plan *map(const struct wean_options *o, enum table table)
{
	cut_sim.room = ROOM;
	cut_sim.wake = -1;
	look_at_caller();
	const char *wrong = run(&cut_sim, o, table);
	ck_assert_msg(!wrong, "%s", wrong);
	return &cut_sim.plan;
}

static const struct plan *map_dups(const int *sources, size_t n)
{
	static struct wean_fd fds[400];
	static struct wean_options o;

	for (size_t i = 0; i < n; i++) {
		if (fcntl(sources[i], F_GETFD) < 0)
			ck_assert_int_eq(dup2(2, sources[i]), sources[i]);
		fds[i] = (struct wean_fd){ .kind = WEAN_DUP, .target = 3 + (int)i,
		                           .source = sources[i] };
	}
	o = (struct wean_options){ .fds = fds, .nfds = n };
	return map(&o, TABLE_CUT_LOW);
}

#define MAP(...) \
	map_dups((const int[]){ __VA_ARGS__ }, COUNT(((const int[]){ __VA_ARGS__ })))

START_TEST(the_table_is_cut_right_above_the_highest_low_source)
{
	NEED_DESCRIPTORS(ROOM);
	const struct plan *p = map(&(struct wean_options){ 0 }, TABLE_CUT_LOW);

	ck_assert_uint_eq(p->cut, 3);
	ck_assert_uint_eq(p->top, 3);
	ck_assert_uint_eq(p->nmoves + p->nfetches, 0);
	ck_assert_int_eq(p->inherited, 7);
	ck_assert_uint_eq(MAP(0)->cut, 3);
	ck_assert_uint_eq(MAP(63)->cut, 64);
	ck_assert_uint_eq(MAP(100, 20, 4)->cut, 101);
	ck_assert_uint_eq(cut_sim.plan.nfetches, 0);
}
END_TEST

START_TEST(few_high_sources_are_fetched)
{
	NEED_DESCRIPTORS(ROOM);
	const struct plan *p = MAP(500);

	ck_assert_int_eq(p->table, TABLE_CUT_LOW);
	ck_assert_uint_eq(p->nfetches, 1);
	ck_assert_uint_eq(p->cut, 3);
	ck_assert_int_eq(p->fetches[0].number, 500);
	ck_assert_int_eq(p->fetches[0].index, 0);
	ck_assert_int_eq(p->fetches[0].oflag, -1);
	ck_assert_int_eq(p->pid, getpid());
	ck_assert_uint_eq(MAP(50, 630, 40)->cut, 51);
	ck_assert_uint_eq(cut_sim.plan.nfetches, 1);
	/* one that is wanted twice comes once */
	ck_assert_uint_eq(MAP(630, 630, 631, 630)->nfetches, 2);
}
END_TEST

START_TEST(many_high_sources_are_copied)
{
	int sources[200];

	NEED_DESCRIPTORS(ROOM);
	for (int i = 0; i < 200; i++)
		sources[i] = 400 + i;
	const struct plan *p = map_dups(sources, 200);
	ck_assert_int_eq(p->table, TABLE_CUT_HIGH);
	ck_assert_uint_eq(p->cut, 600);
	ck_assert_uint_eq(p->nfetches, 0);
}
END_TEST

START_TEST(the_directory_is_a_source_too)
{
	struct wean_options o = { .flags = WEAN_DIR_FD, .dirfd = 50 };

	NEED_DESCRIPTORS(ROOM);
	ck_assert_int_eq(dup2(2, 50), 50);
	ck_assert_uint_eq(map(&o, TABLE_CUT_LOW)->cut, 51);
	ck_assert_int_eq(cut_sim.plan.dir.after, 50);
	o.dirfd = 600;
	ck_assert_int_eq(dup2(2, 600), 600);
	ck_assert_uint_eq(map(&o, TABLE_CUT_LOW)->cut, 3);
	ck_assert_uint_eq(cut_sim.plan.nfetches, 1);
	ck_assert_int_eq(cut_sim.plan.fetches[0].index, -1);
	struct wean_fd keep = KEEP(600);
	o.fds = &keep;
	o.nfds = 1;
	ck_assert_uint_eq(map(&o, TABLE_CUT_LOW)->nfetches, 1);
}
END_TEST

START_TEST(a_plan_can_be_mapped_again_for_another_table)
{
	static struct sim s;
	char *argv[] = { (char[]){ "/x" }, NULL };
	struct wean_options o = {
		FDS(DUP(3, FAR), DUP(FAR, FAR + 1), DUP(FAR + 1, FAR), SAME(5, 3), NUL(6)),
	};
	static const enum table order[] = {
		TABLE_CUT_LOW, TABLE_COPIED, TABLE_CUT_HIGH, TABLE_CUT_LOW,
	};

	NEED_DESCRIPTORS(ROOM);
	open_six(FAR);
	s.opt = &o;
	s.room = ROOM;
	s.wake = -1;
	ck_assert_int_eq(wean_plan_make(&s.plan, argv, &o, s.memory, sizeof s.memory), 0);
	for (size_t i = 0; i < COUNT(order); i++) {
		s.plan.table = order[i];
		ck_assert_int_eq(wean_plan_map(&s.plan, s.work, sizeof s.work), 0);
		ck_assert_int_eq(s.plan.table, order[i]);
		const char *wrong = carry_out(&s);
		ck_assert_msg(!wrong, "round %zu: %s", i, wrong);
	}
	wean_plan_free(&s.plan);
}
END_TEST

/* ---- memory ------------------------------------------------------------------- */

START_TEST(an_arena_goes_to_the_heap_when_its_memory_is_used_up)
{
	_Alignas(16) char memory[64];
	struct arena a = { memory, memory + sizeof memory, NULL };

	ck_assert_ptr_eq(wean_arena_take(&a, 3, 1), memory);
	ck_assert_ptr_eq(wean_arena_take(&a, 1, 8), memory + 8);
	ck_assert_ptr_eq(wean_arena_take(&a, 6, 8), memory + 16);
	ck_assert_ptr_null(a.chunks);
	char *more = wean_arena_take(&a, 1, 1);
	ck_assert_ptr_nonnull(a.chunks);
	ck_assert(more < memory || more >= memory + sizeof memory);
	ck_assert_uint_eq((uintptr_t)more % 8, 0);
	ck_assert_ptr_null(wean_arena_take(&a, SIZE_MAX, 1));
	ck_assert_ptr_null(wean_arena_take(&a, SIZE_MAX / 16 + 1, 16));
	ck_assert_ptr_null(wean_arena_take(&a, SIZE_MAX / 2 + 1, 2));
	wean_arena_free(&a);
	ck_assert_ptr_null(a.chunks);
}
END_TEST

static Suite *table_suite(void)
{
	Suite *s = suite_create("table");
	TCase *all = tcase_create("all"), *cut = tcase_create("cut");

	tcase_set_timeout(all, 60);
	tcase_add_loop_test(all, all_maps_of_six_by_six_leave_exactly_what_was_given, 0,
	                    COUNT(ways));
	tcase_add_loop_test(all, all_kinds_together_leave_exactly_what_was_given, 0,
	                    COUNT(ways));
	tcase_add_loop_test(all,
	                    descriptors_of_its_own_survive_the_moves_and_are_not_passed_on,
	                    0, COUNT(ways));
	tcase_add_test(all, all_maps_of_high_sources_leave_exactly_what_was_given);
	tcase_add_test(cut, the_table_is_cut_right_above_the_highest_low_source);
	tcase_add_test(cut, few_high_sources_are_fetched);
	tcase_add_test(cut, many_high_sources_are_copied);
	tcase_add_test(cut, the_directory_is_a_source_too);
	tcase_add_test(cut, a_plan_can_be_mapped_again_for_another_table);
	tcase_add_test(cut, an_arena_goes_to_the_heap_when_its_memory_is_used_up);
	suite_add_tcase(s, all);
	suite_add_tcase(s, cut);
	return s;
}

RUN_WITH_STDIO_ALONE(table_suite)
