/* test_scan.c - the last rung of the close ladder: a scan that the size of the table
   bounds and no limit does. */
#define _GNU_SOURCE
#include "closer_gate.h"

enum { CHUNK = 512 };

static int table_size(void)
{
	int size = wean_sys_table_size();

	ck_assert_int_gt(size, 0);
	return size;
}

/* What is counted at any height: nothing depends on how many are open. */
static void assert_bounded(int size, int doomed)
{
	ck_assert_int_le(gates.polls, size / CHUNK + 1);
	ck_assert_int_le(gates.longest_poll, CHUNK);
	ck_assert_int_le(gates.queries, size);
	ck_assert_int_eq(gates.closes, doomed + 1); /* and what is not a listing */
	ck_assert_int_eq(gates.failed_closes, 0);
}

START_TEST(the_size_of_the_table_is_told_whatever_the_limit_is)
{
	NEED_DESCRIPTORS(17000);
	gates.pselects = 0;
	ck_assert_int_eq(table_size(), 64);
	ck_assert_int_eq(gates.pselects, 1);
	OPEN_ALL(100);
	int small = table_size();
	ck_assert_int_gt(small, 100);
	ck_assert_int_le(small, 256);
	OPEN_ALL(16999);
	ck_assert_int_eq(set_soft_limit(32), 0);
	gates.pselects = 0;
	ck_assert_int_gt(table_size(), 16999);
	ck_assert_int_le(table_size(), 2 * 32768);
	ck_assert_int_le(gates.pselects, 2 * 14);
}
END_TEST

START_TEST(nineteen_thousand_are_closed_by_as_many_calls_and_few_polls)
{
	struct filling f;
	int rung;

	NEED_DESCRIPTORS(19100);
	lead_to(CLOSE_SCAN);
	fill_descriptors(&f, 19000);
	int size = table_size();
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, LIST(10000), &rung), 0);
	ck_assert_int_eq(rung, CLOSE_SCAN);
	ck_assert_str_eq(open_list(), "10000");
	assert_bounded(size, f.n - 1);
	ck_assert_int_le(gates.queries, size - f.n);
}
END_TEST

START_TEST(few_in_a_large_table_take_no_more)
{
	int rung;

	NEED_DESCRIPTORS(19000);
	lead_to(CLOSE_SCAN);
	OPEN_ALL(4, 50, 18999);
	int size = table_size();
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, NOBODY, &rung), 0);
	ck_assert_str_eq(open_list(), "");
	assert_bounded(size, 3);
}
END_TEST

/* poll(2) calls them invalid. */
START_TEST(what_is_open_as_a_path_alone_is_closed_too)
{
	int fd = open("/", O_PATH), rung;

	lead_to(CLOSE_SCAN);
	ck_assert_int_eq(dup2(fd, 40), 40);
	close(fd);
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, NOBODY, &rung), 0);
	ck_assert_str_eq(open_list(), "");
}
END_TEST

/* poll(2) takes no more descriptors than the limit says. */
START_TEST(a_lowered_limit_makes_the_chunks_smaller_and_nothing_else)
{
	int rung;

	NEED_DESCRIPTORS(10000);
	lead_to(CLOSE_SCAN);
	OPEN_ALL(50, 300, 9999);
	int size = table_size();
	ck_assert_int_eq(set_soft_limit(20), 0);
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, NOBODY, &rung), 0);
	ck_assert_str_eq(open_list(), "");
	ck_assert_int_eq(gates.longest_poll, 20);
	ck_assert_int_le(gates.polls, size / 20 + 1);
	ck_assert_int_le(gates.queries, size);
}
END_TEST

START_TEST(without_poll_each_number_of_the_table_is_asked_about)
{
	static const int limits[] = { 256, 0 };
	int rung;

	lead_to(CLOSE_SCAN);
	OPEN_ALL(50, 200);
	ck_assert_int_eq(set_soft_limit(limits[_i]), 0);
	gates.deny_poll = limits[_i] ? EPERM : 0;
	int size = table_size();
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, LIST(200), &rung), 0);
	ck_assert_int_eq(set_soft_limit(256), 0);
	ck_assert_str_eq(open_list(), "200");
	ck_assert_int_le(gates.queries, size + 64); /* some before the listing is given up */
	ck_assert_int_eq(gates.failed_closes, 0);
}
END_TEST

/* All below the limit is to be kept, and what is not lies above it: no number is left
   for a listing, and none is needed. */
START_TEST(where_no_listing_can_be_opened_the_table_is_scanned)
{
	int rung;

	NEED_DESCRIPTORS(5001);
	OPEN_ALL(4, 5000);
	ck_assert_int_eq(set_soft_limit(5), 0);
	gates.deny_close_range = EPERM;
	ck_assert_int_eq(close_others(0, CLOSE_TO_THE_END, LIST(4), &rung), 0);
	ck_assert_int_eq(rung, CLOSE_SCAN);
	ck_assert_int_eq(set_soft_limit(5001), 0);
	ck_assert_str_eq(open_list(), "4");
	ck_assert_int_lt(gates.closes, 100);
}
END_TEST

START_TEST(where_nothing_tells_the_size_of_the_table_nothing_is_closed)
{
	int rung;

	lead_to(CLOSE_SCAN);
	OPEN_ALL(50);
	gates.deny_pselect = refusals[_i];
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, NOBODY, &rung), ENOTSUP);
	ck_assert_int_eq(rung, 4711);
	ck_assert_int_eq(gates.polls + gates.queries + gates.failed_closes, 0);
	gates.deny_pselect = 0;
	ck_assert_str_eq(open_list(), "50");
}
END_TEST

START_TEST(a_number_that_cannot_be_asked_about_is_not_a_closed_one)
{
	int rung;

	lead_to(CLOSE_SCAN);
	OPEN_ALL(50);
	gates.deny_fcntl = EPERM;
	ck_assert_int_eq(close_others(4, CLOSE_TO_THE_END, NOBODY, &rung), EPERM);
	ck_assert_int_eq(rung, 4711);
}
END_TEST

static Suite *scan_suite(void)
{
	Suite *s = suite_create("scan");
	TCase *c = tcase_create("scan"), *size = tcase_create("size");

	tcase_set_timeout(c, 30);
	tcase_add_test(size, the_size_of_the_table_is_told_whatever_the_limit_is);
	tcase_add_test(c, nineteen_thousand_are_closed_by_as_many_calls_and_few_polls);
	tcase_add_test(c, few_in_a_large_table_take_no_more);
	tcase_add_test(c, what_is_open_as_a_path_alone_is_closed_too);
	tcase_add_test(c, a_lowered_limit_makes_the_chunks_smaller_and_nothing_else);
	tcase_add_loop_test(c, without_poll_each_number_of_the_table_is_asked_about, 0, 2);
	tcase_add_test(c, where_no_listing_can_be_opened_the_table_is_scanned);
	tcase_add_loop_test(c, where_nothing_tells_the_size_of_the_table_nothing_is_closed, 0,
	                    COUNT(refusals));
	tcase_add_test(c, a_number_that_cannot_be_asked_about_is_not_a_closed_one);
	suite_add_tcase(s, size);
	suite_add_tcase(s, c);
	return s;
}

RUN_WITH_STDIO_ALONE(scan_suite)
