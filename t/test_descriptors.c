/* test_descriptors.c - a child holds exactly what it was given: kinds of entries, in, out
   and err, moves. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "spawning.h"

#include <sys/file.h>

/* ---- kinds --------------------------------------------------------------- */

START_TEST(each_kind_gives_what_it_says)
{
	struct wean_options o = {
		FDS(DUP(10, 20), KEEP(30), OPEN(11, "/dev/zero"), NUL(12), SAME(13, 10),
		    CLOSED(1), CLOSED(40)),
		.flags = way(_i),
	};

	open_at(20);
	open_at(30);
	open_at(40);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 2 10 11 12 13 30");
	HOLDS(r, 10, 20);
	HOLDS(r, 13, 20);
	HOLDS(r, 30, 30);
	HOLDS(r, 12, -1);
	ck_assert_str_eq(report_fd(r, 11)->link, "/dev/zero");
	ck_assert_int_eq(report_fd(r, 11)->access, 'r');
	report_free(r);
}
END_TEST

START_TEST(no_entries_give_stdin_stdout_and_stderr_alone)
{
	struct wean_options o = { .flags = way(_i) };

	open_at(4);
	open_at(300);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	for (int fd = 0; fd <= 2; fd++)
		HOLDS(r, fd, fd);
	report_free(r);
}
END_TEST

START_TEST(closing_what_is_not_open_is_no_error)
{
	struct wean_options o = {
		FDS(CLOSED(50), CLOSED(0), CLOSED(1), CLOSED(INT_MAX), CLOSED(2)),
		.flags = way(_i),
	};

	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "");
	report_free(r);
}
END_TEST

START_TEST(a_kept_descriptor_loses_close_on_exec_in_the_child_alone)
{
	struct wean_options o = { FDS(KEEP(20), DUP(21, 21), DUP(0, 0)), .flags = way(_i) };

	ck_assert_int_eq(fcntl(open_at(20), F_SETFD, FD_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(open_at(21), F_SETFD, FD_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(0, F_SETFD, FD_CLOEXEC), 0);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 20 21");
	HOLDS(r, 20, 20);
	HOLDS(r, 21, 21);
	HOLDS(r, 0, 0);
	ck_assert_int_eq(fcntl(20, F_GETFD), FD_CLOEXEC);
	report_free(r);
}
END_TEST

/* ---- in, out, err -------------------------------------------------------- */

static const int stdio_kinds[] = {
	0, WEAN_INHERIT, WEAN_NULL, WEAN_PIPE, WEAN_CLOSED, WEAN_MERGE,
};

static void assert_end(const struct report *r, int number, int kind, int end)
{
	const struct report_fd *f = report_fd(r, number);

	if (kind != WEAN_PIPE) {
		ck_assert_int_eq(end, -1);
		if (kind == WEAN_CLOSED)
			ck_assert_ptr_null(f);
		else
			HOLDS(r, number, kind == WEAN_NULL ? -1 : number);
		return;
	}
	ck_assert_int_gt(end, 2);
	ck_assert_int_eq(fcntl(end, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(end, F_GETFL) & O_ACCMODE, number ? O_RDONLY : O_WRONLY);
	ck_assert_int_eq(fcntl(end, F_GETFL) & O_NONBLOCK, 0);
	HOLDS(r, number, end);
	ck_assert_int_eq(f->access, number ? 'w' : 'r');
	ck_assert_int_eq(f->fl_flags & O_NONBLOCK, 0);
}

static void one_stdio(struct wean_options *o, const char *path)
{
	char *argv[] = { kid(), (char[]){ "report" }, (char *)(uintptr_t)path, NULL };
	struct wean_child child;
	struct baseline b;

	baseline_take(&b);
	int error = wean_spawn(&child, argv, o);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	ck_assert_int_eq(error, 0);
	ck_assert_int_gt(child.pidfd, 2);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	assert_end(r, 0, o->in, child.in);
	assert_end(r, 1, o->out, child.out);
	if (o->err != WEAN_MERGE) {
		assert_end(r, 2, o->err, child.err);
	} else {
		ck_assert_uint_eq(report_fd(r, 2)->ino, report_fd(r, 1)->ino);
		ck_assert_uint_eq(report_fd(r, 2)->dev, report_fd(r, 1)->dev);
		ck_assert_int_eq(child.err, -1);
	}
	ck_assert_uint_le(report_fds(r, NULL, 0), 3);
	report_free(r);
	wean_release(&child);
	errno = b.error;
	baseline_same(&b);
}

START_TEST(in_out_and_err_get_all_combinations_of_kinds)
{
	char *path = report_path();

	for (int i = 0; i < 5 * 5 * 6; i++) {
		struct wean_options o = {
			.flags = way(_i), .in = stdio_kinds[i % 5], .out = stdio_kinds[i / 5 % 5],
			.err = stdio_kinds[i / 25],
		};

		if (o.out != WEAN_CLOSED || o.err != WEAN_MERGE)
			one_stdio(&o, path);
	}
	unlink(path);
	free(path);
}
END_TEST

START_TEST(stderr_merges_into_whatever_stdout_becomes)
{
	struct wean_options dup = { FDS(DUP(1, 20)), .err = WEAN_MERGE, .flags = way(_i) };
	struct wean_options same = { FDS(SAME(1, 0)), .err = WEAN_MERGE, .flags = way(_i) };
	struct wean_options null = { FDS(NUL(1)), .err = WEAN_MERGE, .flags = way(_i) };

	open_at(20);
	struct report *r = given(&dup);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	HOLDS(r, 1, 20);
	HOLDS(r, 2, 20);
	report_free(r);
	r = given(&same);
	HOLDS(r, 2, 0);
	report_free(r);
	r = given(&null);
	HOLDS(r, 2, -1);
	report_free(r);
}
END_TEST

START_TEST(nonblock_is_set_on_the_callers_ends_alone)
{
	struct wean_options o = {
		.flags = way(_i) | WEAN_NONBLOCK,
		.in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE,
	};
	char *path = report_path();
	struct wean_child child;

	start(&child, KID("report", path), &o);
	const int ends[] = { child.in, child.out, child.err };
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	for (int fd = 0; fd <= 2; fd++) {
		ck_assert_int_eq(fcntl(ends[fd], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
		ck_assert_int_eq(report_fd(r, fd)->fl_flags & O_NONBLOCK, 0);
		HOLDS(r, fd, ends[fd]);
	}
	report_free(r);
	wean_release(&child);
	unlink(path);
	free(path);
}
END_TEST

/* ---- moves --------------------------------------------------------------- */

#define MAX_MOVES 12

/* The child's `to` is the caller's `from`, for n pairs; and nothing else is there. */
static const struct {
	int n, to[MAX_MOVES], from[MAX_MOVES];
	const char *list;
} moves[] = {
	{ 2, { 1, 2 }, { 2, 1 }, "0 1 2" },
	{ 2, { 1, 2 }, { 9, 9 }, "0 1 2" },
	{ 2, { 3, 4 }, { 4, 3 }, "0 1 2 3 4" },
	{ 2, { 4, 5 }, { 5, 4 }, "0 1 2 4 5" },
	{ 3, { 0, 1, 2 }, { 1, 2, 0 }, "0 1 2" },
	{ 3, { 0, 1, 2 }, { 2, 0, 1 }, "0 1 2" },
	{ 3, { 0, 1, 2 }, { 2, 2, 2 }, "0 1 2" },
	{ 3, { 7, 5, 6 }, { 5, 6, 7 }, "0 1 2 5 6 7" },
	{ 4, { 4, 5, 6, 7 }, { 5, 4, 7, 6 }, "0 1 2 4 5 6 7" },        /* two cycles */
	{ 4, { 5, 6, 7, 8 }, { 4, 5, 6, 7 }, "0 1 2 5 6 7 8" },        /* chain up */
	{ 4, { 4, 5, 6, 7 }, { 5, 6, 7, 8 }, "0 1 2 4 5 6 7" },        /* and down */
	{ 5, { 10, 11, 12, 4, 0 }, { 4, 4, 4, 4, 4 }, "0 1 2 4 10 11 12" },
	{ 3, { 4, 5, 6 }, { 4, 4, 6 }, "0 1 2 4 5 6" },
	{ 4, { 4, 5, 6, 7 }, { 5, 4, 4, 5 }, "0 1 2 4 5 6 7" },        /* a cycle, and out */
	{ 10, { 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 }, { 5, 6, 7, 8, 9, 10, 11, 12, 13, 4 },
	  "0 1 2 4 5 6 7 8 9 10 11 12 13" },
	{ 12, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 },
	  { 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0 }, "0 1 2 3 4 5 6 7 8 9 10 11" },
	{ 2, { 300, 1023 }, { 1023, 300 }, "0 1 2 300 1023" },
	{ 3, { 300, 1023, 5000 }, { 5000, 300, 1023 }, "0 1 2 300 1023 5000" },
	{ 3, { 0, 300, 5000 }, { 300, 5000, 0 }, "0 1 2 300 5000" },
	{ 2, { 1023, 6000 }, { 5000, 4 }, "0 1 2 1023 6000" },
};

enum { MANY = 7000 }; /* the limit that the far ones reach to */

/* 4 to 13 and some far away are open besides 0 to 3, all different files. */
static void open_many(void)
{
	static const int far[] = { 300, 1023, 5000, MANY - 1 };

	for (int fd = 4; fd <= 13; fd++)
		open_at(fd);
	for (size_t i = 0; i < COUNT(far); i++)
		open_at(far[i]);
	ck_assert_int_eq(fcntl(5, F_SETFD, FD_CLOEXEC), 0);
	for (int fd = 0; fd <= 2; fd++) { /* three different ones here too */
		int file = memfd_create("stdio", 0);
		ck_assert_int_eq(dup2(file, fd), fd);
		close(file);
	}
}

static void must_move(const int *to, const int *from, int n, const char *list,
                      unsigned long long flags)
{
	struct wean_fd fds[MAX_MOVES];
	struct wean_options o = { .fds = fds, .nfds = (size_t)n, .flags = flags };

	for (int i = 0; i < n; i++)
		fds[i] = (struct wean_fd)DUP(to[i], from[i]);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), list);
	for (int i = 0; i < n; i++)
		HOLDS(r, to[i], from[i]);
	report_free(r);
}

START_TEST(entries_are_a_parallel_assignment)
{
	NEED_DESCRIPTORS(MANY);
	ck_assert_int_eq(set_limit(MANY), 0);
	open_many();
	for (int i = 0; i < WAYS; i++)
		must_move(moves[_i].to, moves[_i].from, moves[_i].n, moves[_i].list, way(i));
}
END_TEST

/* The highest number that there can be. */
START_TEST(sources_and_targets_reach_to_the_limit)
{
	enum { LIMIT = 2000, TOP = LIMIT - 1 };
	static const struct {
		int n, to[2], from[2];
		const char *list;
	} top[] = {
		{ 1, { TOP }, { TOP }, "0 1 2 1999" },
		{ 1, { TOP }, { 20 }, "0 1 2 1999" },
		{ 1, { 20 }, { TOP }, "0 1 2 20" },
		{ 2, { TOP, TOP - 1 }, { TOP - 1, TOP }, "0 1 2 1998 1999" },
		{ 2, { TOP, 0 }, { 0, TOP }, "0 1 2 1999" },
	};

	NEED_DESCRIPTORS(LIMIT);
	ck_assert_int_eq(set_limit(LIMIT), 0);
	open_at(20);
	open_at(TOP - 1);
	ck_assert_int_eq(fcntl(open_at(TOP), F_SETFD, FD_CLOEXEC), 0);
	for (size_t i = 0; i < COUNT(top); i++)
		must_move(top[i].to, top[i].from, top[i].n, top[i].list, way(_i));
}
END_TEST

/* What the caller opened before it lowered its limit. */
START_TEST(a_descriptor_above_a_lowered_limit_can_be_given)
{
	struct wean_options o = {
		FDS(KEEP(900), DUP(7, 901), DUP(8, 900)), .flags = way(_i),
	};

	open_at(900);
	open_at(901);
	ck_assert_int_eq(set_soft_limit(64), 0);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 7 8 900");
	HOLDS(r, 7, 901);
	HOLDS(r, 8, 900);
	HOLDS(r, 900, 900);
	report_free(r);
}
END_TEST

static int lowest_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* The pipes' ends and the pidfd of this very start lie there in the caller. */
START_TEST(targets_may_be_numbers_that_the_library_uses_itself)
{
	int fresh = lowest_free();
	struct wean_fd fds[10];
	struct wean_options o = { .fds = fds, .nfds = 10, .flags = way(_i),
	                          .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE };
	char *path = report_path();
	struct wean_child child;

	open_at(40);
	open_at(41);
	for (int i = 0; i < 10; i++)
		fds[i] = (struct wean_fd)DUP(fresh + i, i % 2 ? 40 : 41);
	start(&child, KID("report", path), &o);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_uint_eq(report_fds(r, NULL, 0), 13);
	for (int i = 0; i < 10; i++)
		HOLDS(r, fresh + i, i % 2 ? 40 : 41);
	HOLDS(r, 0, child.in);
	HOLDS(r, 1, child.out);
	HOLDS(r, 2, child.err);
	report_free(r);
	wean_release(&child);
	unlink(path);
	free(path);
}
END_TEST

/* ---- what people pass on ------------------------------------------------- */

START_TEST(two_hundred_of_ten_thousand_are_kept_and_no_others)
{
	static struct wean_fd fds[200];
	struct wean_options o = { .fds = fds, .nfds = 200, .flags = way(_i) };
	int expected[203] = { 0, 1, 2 }, got[204];
	struct filling f;

	NEED_DESCRIPTORS(10100);
	fill_descriptors(&f, 10000 - lowest_free());
	ck_assert_int_eq(fcntl(9999, F_SETFD, FD_CLOEXEC), 0);
	for (int i = 0; i < 200; i++)
		fds[i] = (struct wean_fd)KEEP(9999 - (i * 7919 + 3) % 9996);
	for (int n = 3, i = 3; n < 10000; n++)
		for (int k = 0; k < 200; k++)
			if (fds[k].target == n)
				expected[i++] = n;
	struct report *r = given(&o);
	ck_assert_uint_eq(report_fds(r, got, 204), 203);
	ck_assert_mem_eq(got, expected, sizeof expected);
	report_free(r);
}
END_TEST

/* make -j: the pipe with the tokens is 3 and 4, and 3 is Check's in a test. */
START_TEST(a_jobserver_is_passed_on)
{
	struct wean_options o = { FDS(KEEP(3), KEEP(4)), .flags = way(_i) };
	int checks = fcntl(3, F_DUPFD_CLOEXEC, 100), ends[2];
	char token = 0;

	ck_assert_int_eq(pipe(ends), 0);
	dup2(ends[0], 3);
	dup2(ends[1], 4);
	int code = run(KID("say", "4", "token"), &o);
	ssize_t len = read(3, &token, 1);
	struct report *r = given(&o);
	dup2(checks, 3);
	ck_assert_int_eq(code, 0);
	ck_assert_int_eq(len, 1);
	ck_assert_int_eq(token, 't');
	ck_assert_str_eq(report_fd_list(r), "0 1 2 3 4");
	ck_assert_int_eq(report_fd(r, 3)->access, 'r');
	ck_assert_int_eq(report_fd(r, 4)->access, 'w');
	HOLDS(r, 4, ends[1]);
	report_free(r);
}
END_TEST

START_TEST(a_process_substitution_is_passed_on)
{
	struct wean_options o = { FDS(KEEP(63), DUP(5, 63)), .flags = way(_i) };
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(dup2(ends[0], 63), 63);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
	close(ends[1]);
	char *text = output(KID("read", "63"), &o);
	ck_assert_str_eq(text, "1 other\n");
	free(text);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 5 63");
	HOLDS(r, 5, 63);
	report_free(r);
}
END_TEST

static const unsigned long long lock_ways[] = {
	0, WEAN_NO_SHARED_MEMORY, WEAN_INHERIT_ALL,
};

/* The caller would lose a lock of fcntl by closing any descriptor of the file, so that
   not even a duplicate may be made there. */
START_TEST(a_lock_that_is_passed_on_stays_the_callers)
{
	struct wean_options o = {
		FDS(KEEP(200), DUP(201, 202), DUP(202, 201)), .flags = lock_ways[_i],
	};
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *path = write_text("lock", 0600, ""), expected[64];

	for (int fd = 200; fd <= 202; fd++)
		ck_assert_int_eq(dup2(open(path, O_RDWR | O_CLOEXEC), fd), fd);
	ck_assert_int_eq(flock(200, LOCK_EX), 0);
	ck_assert_int_eq(fcntl(200, F_SETLK, &lock), 0);
	snprintf(expected, sizeof expected, "flock held\nfcntl %d\n", (int)getpid());
	for (int i = 0; i < 3; i++) { /* each end of a child might lose it */
		char *text = output(KID("lock-test", "200"), &o);
		ck_assert_str_eq(text, expected);
		free(text);
	}
}
END_TEST

static void add_kinds(TCase *c)
{
	tcase_add_loop_test(c, each_kind_gives_what_it_says, 0, WAYS);
	tcase_add_loop_test(c, no_entries_give_stdin_stdout_and_stderr_alone, 0, WAYS);
	tcase_add_loop_test(c, closing_what_is_not_open_is_no_error, 0, WAYS);
	tcase_add_loop_test(c, a_kept_descriptor_loses_close_on_exec_in_the_child_alone, 0,
	                    WAYS);
	tcase_add_loop_test(c, in_out_and_err_get_all_combinations_of_kinds, 0, WAYS);
	tcase_add_loop_test(c, stderr_merges_into_whatever_stdout_becomes, 0, WAYS);
	tcase_add_loop_test(c, nonblock_is_set_on_the_callers_ends_alone, 0, WAYS);
}

static Suite *descriptors_suite(void)
{
	Suite *s = suite_create("descriptors");
	TCase *kinds = tcase_create("kinds"), *moved = tcase_create("moves");
	TCase *passed = tcase_create("passed on");

	tcase_set_timeout(kinds, 30);
	add_kinds(kinds);
	tcase_add_loop_test(moved, a_descriptor_above_a_lowered_limit_can_be_given, 0, WAYS);
	tcase_add_loop_test(moved, targets_may_be_numbers_that_the_library_uses_itself, 0,
	                    WAYS);
	tcase_add_unchecked_fixture(passed, scratch_make, scratch_remove);
	tcase_add_loop_test(passed, two_hundred_of_ten_thousand_are_kept_and_no_others, 0,
	                    WAYS);
	tcase_add_loop_test(passed, a_jobserver_is_passed_on, 0, WAYS);
	tcase_add_loop_test(passed, a_process_substitution_is_passed_on, 0, WAYS);
	tcase_add_loop_test(passed, a_lock_that_is_passed_on_stays_the_callers, 0,
	                    COUNT(lock_ways));
	suite_add_tcase(s, kinds);
	suite_add_tcase(s, moved);
	suite_add_tcase(s, passed);

	TCase *needy = case_that_needs(s, "table");
	tcase_add_loop_test(needy, entries_are_a_parallel_assignment, 0, COUNT(moves));
	tcase_add_loop_test(needy, sources_and_targets_reach_to_the_limit, 0, WAYS);
	return s;
}

RUN_WITH_STDIO_ALONE(descriptors_suite)
