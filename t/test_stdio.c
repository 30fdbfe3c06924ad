/* test_stdio.c - callers that lack 0, 1 or 2, and children that inherit all. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "spawning.h"

/* ---- a caller without some of 0, 1, 2 ------------------------------------ */

enum { OPEN_THERE, CLOSED_THERE, CLOEXEC_THERE, STATES };
enum { COMBINATIONS = STATES * STATES * STATES };

/* Each of the three in its state, an open one a file of its own. */
static void arrange(int combination, int state[3])
{
	for (int fd = 0; fd <= 2; fd++, combination /= STATES) {
		int file = memfd_create("stdio", 0);

		state[fd] = combination % STATES;
		if (file != fd) {
			ck_assert_int_eq(dup2(file, fd), fd);
			close(file);
		}
		fcntl(fd, F_SETFD, state[fd] == CLOEXEC_THERE ? FD_CLOEXEC : 0);
	}
	for (int fd = 0; fd <= 2; fd++)
		if (state[fd] == CLOSED_THERE)
			close(fd);
}

/* Check writes to 1, and the tests' words go to 2. */
struct kept_stdio {
	int fds[3];
};

static struct kept_stdio keep_stdio(void)
{
	struct kept_stdio k;

	for (int fd = 0; fd <= 2; fd++)
		k.fds[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	return k;
}

static void give_back_stdio(struct kept_stdio k)
{
	for (int fd = 0; fd <= 2; fd++) {
		dup2(k.fds[fd], fd);
		close(k.fds[fd]);
	}
}

/* All of them, or a fifth, where every kind is among them still. */
static int stride(void)
{
	return scaled(100) < 100 ? 5 : 1;
}

/* Nothing at all, 0, 1 and 2 by a pipe, one of them by a pipe. */
static const struct {
	int in, out, err;
} ends[] = {
	{ 0, 0, 0 }, { WEAN_PIPE, WEAN_PIPE, WEAN_PIPE }, { 0, WEAN_PIPE, 0 },
	{ WEAN_PIPE, 0, 0 },
};

static const unsigned long long as_is[] = { 0, WEAN_STDIO_AS_IS };

static const char *wrong_end(const struct wean_child *child, int fd)
{
	const int mine[] = { child->in, child->out, child->err };

	return mine[fd] <= 2 || fcntl(mine[fd], F_GETFD) != FD_CLOEXEC
	     ? "a pipe's end is one of the three, or would be inherited" : NULL;
}

static const char *check_one(const struct report *r, const struct wean_child *child,
                             int fd, int state, int kind, int kept)
{
	const int mine[] = { child->in, child->out, child->err };

	if (kind == WEAN_PIPE) {
		if (wrong_end(child, fd))
			return wrong_end(child, fd);
		return holds(r, fd, mine[fd]) && report_fd(r, fd)->type == 'p'
		     ? NULL : "no pipe of ours";
	}
	if (state == OPEN_THERE)
		return holds(r, fd, fd) ? NULL : "not what the caller has";
	if (kept)
		return report_fd(r, fd) ? "is there" : NULL;
	return holds(r, fd, -1) ? NULL : "no /dev/null";
}

/* Nothing of Check runs while the three are arranged: it would write to them. */
static const char *one_start(int combination, const struct wean_options *o, char **argv,
                             struct report **r)
{
	const int kinds[] = { o->in, o->out, o->err };
	const char *wrong = NULL;
	struct wean_child child;
	int state[3];

	arrange(combination, state);
	int error = wean_spawn(&child, argv, o);
	if (error)
		return strerror(error);
	if (wean_wait(&child, -1, NULL) || !(*r = report_read_file(argv[2])))
		return "no report";
	for (int fd = 0; fd <= 2 && !wrong; fd++)
		wrong = check_one(*r, &child, fd, state[fd], kinds[fd],
		                  (o->flags & WEAN_STDIO_AS_IS) != 0);
	if (child.pidfd <= 2)
		wrong = "the pidfd is one of the three";
	wean_release(&child);
	for (int fd = 0; fd <= 2; fd++)
		if ((fcntl(fd, F_GETFD) < 0) != (state[fd] == CLOSED_THERE))
			wrong = "the caller's three are not as they were";
	return wrong;
}

static void must_start(int combination, const struct wean_options *o, char **argv)
{
	struct kept_stdio k = keep_stdio();
	struct report *r = NULL;
	const char *wrong = one_start(combination, o, argv, &r);

	give_back_stdio(k);
	ck_assert_msg(!wrong, "combination %d, flags %#llx, pipes %d: %s", combination,
	              o->flags, o->in + o->out + o->err, wrong);
	for (int fd = 3; fd < 20; fd++)
		ck_assert_ptr_null(report_fd(r, fd));
	ck_assert_uint_le(report_fds(r, NULL, 0), 3);
	report_free(r);
}

START_TEST(whatever_of_the_three_is_missing_becomes_dev_null_or_stays_out)
{
	char *path = report_path(), **argv = KID("report", path);
	struct baseline b;

	baseline_take(&b);
	for (int i = 0; i < COMBINATIONS * (int)COUNT(ends); i += stride()) {
		int e = i % (int)COUNT(ends);
		struct wean_options o = {
			.in = ends[e].in, .out = ends[e].out, .err = ends[e].err,
			.flags = way(_i / 2) | as_is[_i % 2],
		};
		must_start(i / (int)COUNT(ends), &o, argv);
	}
	errno = b.error;
	baseline_same(&b);
	unlink(path);
	free(path);
}
END_TEST

START_TEST(a_missing_program_is_told_whatever_of_the_three_is_missing)
{
	struct baseline b;
	char *argv[] = { (char[]){ "/missing/program" }, NULL };

	baseline_take(&b);
	for (int i = 0; i < COMBINATIONS * (int)COUNT(ends); i += stride()) {
		int c = i / (int)COUNT(ends), e = i % (int)COUNT(ends), state[3];
		struct wean_options o = {
			.in = ends[e].in, .out = ends[e].out, .err = ends[e].err,
			.flags = way(_i / 2) | as_is[_i % 2],
		};
		struct kept_stdio k = keep_stdio();
		struct baseline inner;
		struct wean_child child;
		char text[BASELINE_TEXT];

		arrange(c, state);
		baseline_take(&inner);
		int error = wean_spawn(&child, argv, &o);
		int differs = baseline_differs(&inner, text);
		give_back_stdio(k);
		free(inner.fds);
		ck_assert_msg(!differs, "combination %d: %s", c, text);
		ck_assert_int_eq(error, ENOENT);
		ck_assert_int_eq(child.stage, WEAN_STAGE_EXEC);
	}
	errno = b.error;
	baseline_same(&b);
}
END_TEST

/* /dev/null where nothing was is a stdout that stderr can merge into. */
START_TEST(stderr_merges_into_a_stdout_that_was_missing)
{
	struct wean_options o = { .err = WEAN_MERGE, .flags = way(_i) };
	struct kept_stdio k = keep_stdio();
	struct wean_child child;
	char *path = report_path(), **argv = KID("report", path);

	close(1);
	int error = wean_spawn(&child, argv, &o);
	give_back_stdio(k);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(finish(&child).code, 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	HOLDS(r, 1, -1);
	HOLDS(r, 2, -1);
	report_free(r);
	unlink(path);
	free(path);
}
END_TEST

START_TEST(what_is_missing_can_still_be_given_otherwise)
{
	struct wean_options o = {
		FDS(DUP(0, 30), OPEN(2, "/dev/zero"), SAME(5, 1)), .flags = way(_i),
	};
	struct kept_stdio k = keep_stdio();
	struct wean_child child;
	char *path = report_path(), **argv = KID("report", path);

	open_at(30);
	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	int error = wean_spawn(&child, argv, &o);
	give_back_stdio(k);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(finish(&child).code, 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 5");
	HOLDS(r, 0, 30);
	HOLDS(r, 1, -1);
	HOLDS(r, 5, -1);
	ck_assert_str_eq(report_fd(r, 2)->link, "/dev/zero");
	report_free(r);
	unlink(path);
	free(path);
}
END_TEST

/* ---- all is inherited ---------------------------------------------------- */

/* Some of all sorts; Check's own, without close-on-exec, is inherited too. */
static void open_sorts(void)
{
	open_at(20);
	open_at(22);
	ck_assert_int_eq(fcntl(open_at(21), F_SETFD, FD_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(open_at(23), F_SETFD, FD_CLOEXEC), 0);
	open_at(300);
}

START_TEST(inherit_all_is_all_without_close_on_exec)
{
	struct wean_options o = { .flags = WEAN_INHERIT_ALL | way(_i) };

	open_sorts();
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 3 20 22 300");
	HOLDS(r, 20, 20);
	HOLDS(r, 300, 300);
	report_free(r);
}
END_TEST

START_TEST(entries_are_honoured_where_all_is_inherited)
{
	struct wean_options o = {
		FDS(CLOSED(22), KEEP(21), DUP(20, 300), DUP(300, 20), NUL(7), SAME(8, 20),
		    SAME(9, 3), CLOSED(50), OPEN(23, "/dev/zero")),
		.flags = WEAN_INHERIT_ALL | way(_i), .in = WEAN_CLOSED,
	};

	open_sorts();
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "1 2 3 7 8 9 20 21 23 300");
	HOLDS(r, 20, 300);
	HOLDS(r, 300, 20);
	HOLDS(r, 21, 21);
	HOLDS(r, 7, -1);
	HOLDS(r, 8, 300);
	HOLDS(r, 9, 3);
	ck_assert_str_eq(report_fd(r, 23)->link, "/dev/zero");
	report_free(r);
}
END_TEST

/* The pipes' other ends, the number that broke a cycle, the directory. */
START_TEST(nothing_internal_is_left_where_all_is_inherited)
{
	char *path = report_path(), **argv = KID("report", path);
	struct wean_options o = {
		FDS(DUP(4, 5), DUP(5, 4)), .flags = WEAN_INHERIT_ALL | WEAN_DIR_FD | way(_i),
		.in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE,
	};
	struct wean_child child;

	open_at(4);
	open_at(5);
	open_sorts();
	ck_assert_int_ge(o.dirfd = open("/", O_RDONLY | O_DIRECTORY), 0);
	start(&child, argv, &o);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 3 4 5 20 22 300");
	HOLDS(r, 4, 5);
	HOLDS(r, 5, 4);
	HOLDS(r, 0, child.in);
	HOLDS(r, 1, child.out);
	HOLDS(r, 2, child.err);
	ck_assert_str_eq(report_value(r, "cwd"), "/");
	report_free(r);
	wean_release(&child);
	unlink(path);
	free(path);
}
END_TEST

/* The lowest numbers are in use, so that what is needed for a moment lies among them. */
START_TEST(a_temporary_never_takes_the_place_of_what_is_inherited)
{
	struct wean_options o = {
		FDS(DUP(10, 11), DUP(11, 10), DUP(12, 13), DUP(13, 12), DUP(14, 14)),
		.flags = WEAN_INHERIT_ALL | way(_i),
	};

	for (int fd = 4; fd <= 15; fd++)
		open_at(fd);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
	for (int fd = 4; fd <= 9; fd++)
		HOLDS(r, fd, fd);
	HOLDS(r, 10, 11);
	HOLDS(r, 11, 10);
	HOLDS(r, 12, 13);
	HOLDS(r, 13, 12);
	HOLDS(r, 15, 15);
	report_free(r);
}
END_TEST

START_TEST(nineteen_thousand_are_inherited)
{
	struct wean_options o = { .flags = WEAN_INHERIT_ALL | way(_i) };
	struct filling f;

	NEED_DESCRIPTORS(19100);
	fill_descriptors(&f, 19000);
	ck_assert_int_eq(fcntl(f.fds[9000], F_SETFD, FD_CLOEXEC), 0);
	struct report *r = given(&o);
	ck_assert_uint_eq(report_fds(r, NULL, 0), 4 + 19000 - 1);
	ck_assert_ptr_null(report_fd(r, f.fds[9000]));
	report_free(r);
}
END_TEST

static Suite *stdio_suite(void)
{
	Suite *s = suite_create("stdio");
	TCase *missing = tcase_create("missing"), *all = tcase_create("all inherited");

	tcase_set_timeout(missing, 30);
	tcase_add_loop_test(missing,
	        whatever_of_the_three_is_missing_becomes_dev_null_or_stays_out, 0, 2 * WAYS);
	tcase_add_loop_test(missing,
	        a_missing_program_is_told_whatever_of_the_three_is_missing, 0, 2 * WAYS);
	tcase_add_loop_test(missing, stderr_merges_into_a_stdout_that_was_missing, 0, WAYS);
	tcase_add_loop_test(missing, what_is_missing_can_still_be_given_otherwise, 0, WAYS);
	tcase_add_loop_test(all, inherit_all_is_all_without_close_on_exec, 0, WAYS);
	tcase_add_loop_test(all, entries_are_honoured_where_all_is_inherited, 0, WAYS);
	tcase_add_loop_test(all, nothing_internal_is_left_where_all_is_inherited, 0, WAYS);
	tcase_add_loop_test(all, a_temporary_never_takes_the_place_of_what_is_inherited, 0,
	                    WAYS);
	tcase_set_timeout(all, 60);
	tcase_add_loop_test(all, nineteen_thousand_are_inherited, 0, WAYS);
	suite_add_tcase(s, missing);
	suite_add_tcase(s, all);
	return s;
}

RUN_WITH_STDIO_ALONE(stdio_suite)
