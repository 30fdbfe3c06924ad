/* test_cut.c - where a shared table is cut, what is fetched from above, and the memory
   that a plan takes. */
#define _GNU_SOURCE
#include "simulation.h"

/* ---- where the table is cut ---------------------------------------------- */

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

/* ---- memory -------------------------------------------------------------- */

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

static Suite *cut_suite(void)
{
	Suite *s = suite_create("cut");
	TCase *cut = tcase_create("cut");

	tcase_add_test(cut, the_table_is_cut_right_above_the_highest_low_source);
	tcase_add_test(cut, few_high_sources_are_fetched);
	tcase_add_test(cut, many_high_sources_are_copied);
	tcase_add_test(cut, the_directory_is_a_source_too);
	tcase_add_test(cut, a_plan_can_be_mapped_again_for_another_table);
	tcase_add_test(cut, an_arena_goes_to_the_heap_when_its_memory_is_used_up);
	suite_add_tcase(s, cut);
	return s;
}

RUN_WITH_STDIO_ALONE(cut_suite)
