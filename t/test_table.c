/* test_table.c - all small maps, planned for each kind of table and carried out in
   memory, leave exactly what was given. */
#define _GNU_SOURCE
#include "simulation.h"

/* ---- all maps ------------------------------------------------------------ */

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

/* Sources also where what is fetched would land, if it could. */
static struct wean_fd any_dup(int choice)
{
	static const int sources[] = { -1, 4, 5, 6, FAR, FAR + 1, FAR + 2 };

	return (struct wean_fd){ .kind = WEAN_DUP, .source = sources[choice] };
}

START_TEST(all_maps_of_low_and_high_sources_leave_exactly_what_was_given)
{
	static const int dirs[] = { -1, 4, 7, FAR + 3 };
	static struct sim s;
	struct wean_fd fds[4];
	struct wean_options o = { .fds = fds };

	NEED_DESCRIPTORS(ROOM);
	open_at(4);
	open_at(5);
	open_at(6);
	open_at(7);
	open_six(FAR);
	s.room = ROOM;
	for (size_t i = 0; i < COUNT(dirs); i++) {
		int choice[4] = { 0 };

		o.flags = dirs[i] < 0 ? 0 : WEAN_DIR_FD;
		o.dirfd = dirs[i] < 0 ? 0 : dirs[i];
		do {
			o.nfds = entries(fds, choice, 4, 4, any_dup);
			s.wake = -1;
			must_hold(&s, &o, TABLE_CUT_LOW);
			s.wake = 5;
			must_hold(&s, &o, TABLE_COPIED);
		} while (next(choice, 4, 7));
	}
}
END_TEST

static Suite *table_suite(void)
{
	Suite *s = suite_create("table");
	TCase *all = tcase_create("all");

	tcase_set_timeout(all, 60);
	tcase_add_loop_test(all, all_maps_of_six_by_six_leave_exactly_what_was_given, 0,
	                    COUNT(ways));
	tcase_add_loop_test(all, all_kinds_together_leave_exactly_what_was_given, 0,
	                    COUNT(ways));
	tcase_add_loop_test(all,
	                    descriptors_of_its_own_survive_the_moves_and_are_not_passed_on,
	                    0, COUNT(ways));
	tcase_add_test(all, all_maps_of_high_sources_leave_exactly_what_was_given);
	tcase_add_test(all, all_maps_of_low_and_high_sources_leave_exactly_what_was_given);
	suite_add_tcase(s, all);
	return s;
}

RUN_WITH_STDIO_ALONE(table_suite)
