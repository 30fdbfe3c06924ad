/* test_closer.c - the rungs of the close ladder on real descriptors. */
#define _GNU_SOURCE
#include "closer_gate.h"

static const int rungs[] = { CLOSE_RANGE, CLOSE_PROCFS, CLOSE_SCAN };
enum { SCAN = COUNT(rungs) - 1 };

static int is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* ---- gaps ---------------------------------------------------------------- */

enum { FIRST = 10, N = 8 }; /* eight numbers that all patterns are tried on */

static int gaps(unsigned low, unsigned last, unsigned kept)
{
	int n = 0, inside = 0;

	for (unsigned fd = low; fd <= last; fd++) {
		int doomed = !(fd >= FIRST && fd < FIRST + N && kept >> (fd - FIRST) & 1);

		n += doomed && !inside;
		inside = doomed;
	}
	return n;
}

static void one_pattern(unsigned low, unsigned last, unsigned kept)
{
	int keep[N], rung, doomed = 0;
	size_t n = 0;

	for (int i = 0; i < N; i++) {
		dup2(2, FIRST + i);
		if (kept >> i & 1)
			keep[n++] = FIRST + i;
	}
	if (close_others(low, last, keep, n, &rung))
		ck_abort_msg("%u..%u but %#x failed", low, last, kept);
	for (unsigned i = 0; i < N; i++) {
		int dies = FIRST + i >= low && FIRST + i <= last && !(kept >> i & 1);

		doomed += dies;
		if (is_open((int)(FIRST + i)) == dies)
			ck_abort_msg("%u..%u but %#x: %u", low, last, kept, FIRST + i);
	}
	if (!gates.deny_close_range) {
		ck_assert_int_eq(gates.close_ranges, gaps(low, last, kept));
		ck_assert_int_eq(gates.closes, 0);
		ck_assert_int_eq(rung, gates.close_ranges ? CLOSE_RANGE : 4711);
	} else if (rung != 4711) {
		ck_assert_int_eq(gates.closes, doomed + 1); /* and the listing's own */
		ck_assert_int_eq(gates.failed_closes, 0);
	}
}

START_TEST(each_range_loses_all_but_what_is_kept)
{
	lead_to(rungs[_i]);
	for (unsigned kept = 0; kept < 1 << N; kept++)
		for (unsigned low = FIRST - 1; low <= FIRST + N; low += 3)
			for (unsigned last = low; last <= FIRST + N; last += 2)
				one_pattern(low, last, kept);
}
END_TEST

START_TEST(numbers_near_round_ones_and_at_the_limit_are_closed_like_any_other)
{
	int rung;

	NEED_DESCRIPTORS(10000);
	lead_to(rungs[_i]);
	OPEN_ALL(4, 63, 64, 300, 1023, 1024, 5000, 9999);
	ck_assert_int_eq(close_others(0, CLOSE_TO_THE_END, LIST(1024, 300), &rung), 0);
	ck_assert_int_eq(rung, rungs[_i]);
	ck_assert_str_eq(open_list(), "300 1024");
	ck_assert_int_eq(gates.failed_closes, 0);
	ck_assert_int_le(gates.close_ranges, 3);
}
END_TEST

START_TEST(a_number_above_a_lowered_limit_is_closed)
{
	int rung;

	NEED_DESCRIPTORS(10000);
	lead_to(rungs[_i]);
	OPEN_ALL(8, 31, 32, 5000, 9999);
	ck_assert_int_eq(set_soft_limit(32), 0);
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, LIST(5000), &rung), 0);
	ck_assert_str_eq(open_list(), "5000");
}
END_TEST

/* Not open, outside of the range, in any order, twice: a list may hold anything. */
START_TEST(kept_numbers_need_not_be_open)
{
	int rung;

	lead_to(rungs[_i]);
	OPEN_ALL(10, 11, 12, 40);
	ck_assert_int_eq(close_others(10, 12, LIST(INT_MAX, 11, 500, 11, 9, 3), &rung), 0);
	ck_assert_str_eq(open_list(), "11 40");
	ck_assert_int_eq(fcntl(11, F_SETFD, FD_CLOEXEC), 0);
	ck_assert_int_eq(close_others(5, 3000, LIST(11), &rung), 0);
	ck_assert_str_eq(open_list(), "11");
	ck_assert_int_eq(fcntl(11, F_GETFD), FD_CLOEXEC);
}
END_TEST

START_TEST(two_hundred_of_ten_thousand_are_kept)
{
	static int all[9996], keep[200];
	int rung;

	NEED_DESCRIPTORS(10000);
	lead_to(rungs[_i]);
	for (int i = 0; i < 9996; i++)
		all[i] = i + 4;
	for (int i = 0; i < 200; i++)
		keep[i] = 4 + i * 7919 % 9996;
	open_all(all, COUNT(all));
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, keep, COUNT(keep), &rung), 0);
	for (int fd = 4; fd < 10000; fd++) {
		int kept = 0;

		for (int i = 0; i < 200; i++)
			kept |= keep[i] == fd;
		if (is_open(fd) != kept)
			ck_abort_msg("%d", fd);
	}
	ck_assert_int_eq(gates.failed_closes, 0);
	if (rungs[_i] != CLOSE_RANGE)
		ck_assert_int_eq(gates.closes, 9996 - 200 + 1);
}
END_TEST

START_TEST(where_nothing_is_to_be_closed_nothing_is_called)
{
	int rung;

	OPEN_ALL(10, 11, 12);
	ck_assert_int_eq(close_others(10, 12, LIST(10, 11, 12), &rung), 0);
	ck_assert_int_eq(close_others(12, 11, NOBODY, &rung), 0);
	ck_assert_int_eq(close_others(0, 3, NOBODY, &rung), 0);
	ck_assert_int_eq(gates.close_ranges + gates.closes, 0);
	ck_assert_int_eq(rung, 4711);
	ck_assert_str_eq(open_list(), "10 11 12");
}
END_TEST

/* ---- the listing --------------------------------------------------------- */

START_TEST(each_refusal_of_close_range_leads_to_the_listing)
{
	int rung;

	gates.deny_close_range = refusals[_i];
	OPEN_ALL(50);
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, NOBODY, &rung), 0);
	ck_assert_int_eq(rung, CLOSE_PROCFS);
	ck_assert_str_eq(open_list(), "");
	ck_assert_int_eq(gates.closes, 2);
	ck_assert_int_eq(gates.listings, 2);
}
END_TEST

START_TEST(any_other_error_is_told)
{
	static const int errors[] = { EBADF, EMFILE, ENOMEM, EINTR, EIO };
	int rung;

	OPEN_ALL(50);
	for (size_t i = 0; i < COUNT(errors); i++) {
		gates.deny_close_range = errors[i];
		ck_assert_int_eq(close_others(4, 60, NOBODY, &rung), errors[i]);
		ck_assert_int_eq(rung, 4711);
		ck_assert_str_eq(open_list(), "50");
	}
}
END_TEST

START_TEST(a_listing_that_cannot_be_trusted_is_not_nothing_open)
{
	int rung;

	for (int i = 0; i < 3; i++) {
		OPEN_ALL(50);
		gates.deny_close_range = EPERM;
		gates.empty_listing = i == 0;
		gates.no_procfs = i == 1;
		gates.broken_listing = i == 2;
		ck_assert_int_eq(close_others(4, 60, NOBODY, &rung), 0);
		ck_assert_int_eq(rung, CLOSE_SCAN);
		ck_assert_str_eq(open_list(), "");
	}
}
END_TEST

START_TEST(what_appears_while_closing_is_closed_too)
{
	int rung;

	gates.deny_close_range = EPERM;
	OPEN_ALL(50);
	gates.appears = 20;
	ck_assert_int_eq(close_others(4, 60, NOBODY, &rung), 0);
	ck_assert_str_eq(open_list(), "");
	ck_assert_int_eq(gates.listings, 3);
}
END_TEST

START_TEST(nineteen_thousand_are_closed_by_as_many_calls)
{
	struct filling f;
	int rung;

	NEED_DESCRIPTORS(19100);
	gates.deny_close_range = EPERM;
	fill_descriptors(&f, 19000);
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, LIST(10000), &rung), 0);
	ck_assert_str_eq(open_list(), "10000");
	ck_assert_int_eq(gates.closes, f.n - 1 + 1);
	ck_assert_int_eq(gates.failed_closes, 0);
	ck_assert_int_le(gates.listings, 2);
}
END_TEST

/* A listing takes a number itself. */
START_TEST(a_table_that_is_full_is_emptied)
{
	int rung, keep[200];

	for (int i = 0; i < 200; i++)
		keep[i] = 4 + i;
	ck_assert_int_eq(set_soft_limit(256), 0);
	for (int fd = 4; fd < 256; fd++)
		OPEN_ALL(fd);
	gates.deny_close_range = EPERM;
	ck_assert_int_eq(close_others(0, CLOSE_TO_THE_END, keep, 200, &rung), 0);
	for (int fd = 4; fd < 256; fd++)
		ck_assert_int_eq(is_open(fd), fd < 204);
	ck_assert_int_eq(gates.failed_closes, 0);
}
END_TEST

static void add_rungs(TCase *t, int from, int to)
{
	tcase_add_loop_test(t,
	        numbers_near_round_ones_and_at_the_limit_are_closed_like_any_other, from, to);
	tcase_add_loop_test(t, a_number_above_a_lowered_limit_is_closed, from, to);
	tcase_add_loop_test(t, kept_numbers_need_not_be_open, from, to);
	tcase_add_loop_test(t, two_hundred_of_ten_thousand_are_kept, from, to);
}

static Suite *closer_suite(void)
{
	Suite *s = suite_create("closer");
	TCase *all = tcase_create("all rungs"), *listing = tcase_create("listing");
	TCase *ranges = tcase_create("ranges"), *scan = case_that_needs(s, "table kernel");

	tcase_set_tags(all, "table");
	tcase_set_tags(listing, "table");
	tcase_set_timeout(all, 30);
	tcase_set_timeout(ranges, 30);
	tcase_set_timeout(scan, 30);
	tcase_add_loop_test(ranges, each_range_loses_all_but_what_is_kept, 0, SCAN);
	add_rungs(all, 0, SCAN);
	tcase_add_test(all, where_nothing_is_to_be_closed_nothing_is_called);
	tcase_add_loop_test(listing, each_refusal_of_close_range_leads_to_the_listing, 0,
	                    COUNT(refusals));
	tcase_add_test(listing, any_other_error_is_told);
	tcase_add_test(listing, what_appears_while_closing_is_closed_too);
	tcase_add_test(listing, nineteen_thousand_are_closed_by_as_many_calls);
	tcase_add_test(listing, a_table_that_is_full_is_emptied);
	tcase_add_loop_test(scan, each_range_loses_all_but_what_is_kept, SCAN, COUNT(rungs));
	add_rungs(scan, SCAN, COUNT(rungs));
	tcase_add_test(scan, a_listing_that_cannot_be_trusted_is_not_nothing_open);
	suite_add_tcase(s, ranges);
	suite_add_tcase(s, all);
	suite_add_tcase(s, listing);
	return s;
}

RUN_WITH_STDIO_ALONE(closer_suite)
