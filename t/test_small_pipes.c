/* test_small_pipes.c - a user whose pipes have used up their pages gets pipes of a page or
   two, and may enlarge none: all bytes flow all the same. */
#define _GNU_SOURCE
#include "talking.h"

enum { SOMEBODY = 47110, LARGE = 1 << 20, USUAL = 1 << 16, MB = 1000000 };

static char *program;
static struct filling used_up; /* the descriptors of the pipes that have the pages */

static int pipe_size(int fd)
{
	int size = fcntl(fd, F_GETPIPE_SZ);

	ck_assert_int_gt(size, 0);
	return size;
}

static int size_of_a_new_pipe(void)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	int size = pipe_size(ends[0]);
	close(ends[0]);
	close(ends[1]);
	return size;
}

/* 0: here they are not counted.  Few and large pipes do. */
static int use_up_pages(void)
{
	enum { MOST = 300 };
	int ends[2];

	used_up.fds = for_good(calloc(2 * MOST, sizeof *used_up.fds));
	while (size_of_a_new_pipe() > 8192) {
		if (used_up.n == 2 * MOST)
			return 0;
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
		fcntl(ends[0], F_SETPIPE_SZ, LARGE);
		used_up.fds[used_up.n++] = ends[0];
		used_up.fds[used_up.n++] = ends[1];
	}
	return 1;
}

/* Nobody else is that user; it is for the rest of the test. */
static int become_somebody(void)
{
	return !setgroups(0, NULL) && !setresgid(SOMEBODY, SOMEBODY, SOMEBODY) &&
	       !setresuid(SOMEBODY, SOMEBODY, SOMEBODY);
}

#define NEED_SMALL_PIPES() \
	do { \
		if (!become_somebody()) \
			SKIP("another user: %s", strerror(errno)); \
		if (!use_up_pages()) \
			SKIP("the pages of a user's pipes are not counted here"); \
	} while (0)

/* ---- a child ---- */

#define PROGRAM(...) ((char *[]){ program, __VA_ARGS__, NULL })

START_TEST(megabytes_flow_each_way_through_a_run)
{
	struct wean_io io = { .input = pattern(2 * MB), .input_len = 2 * MB };
	struct wean_result r;
	struct baseline b;

	NEED_SMALL_PIPES();
	baseline_take(&b);
	ck_assert_int_eq(wean_run(PROGRAM("tee", "--then", "exit", "3"), NULL, &io, &r), 0);
	assert_exited(&r.status, 3);
	ck_assert_uint_eq(r.flags, 0);
	assert_pattern(r.out, r.out_len, 2 * MB);
	assert_pattern(r.err, r.err_len, 2 * MB);
	wean_result_free(&r);
	errno = BASELINE_ERRNO;
	baseline_same(&b);
}
END_TEST

START_TEST(megabytes_flow_each_way_in_many_calls)
{
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE };
	struct heard heard = { .fail_each = 100, .error = ECANCELED };
	struct wean_io io = { .input = pattern(2 * MB), .input_len = 2 * MB, .on_err = hear,
	                      .context = &heard };
	struct wean_result r = { 0 };
	struct wean_child child;
	int error, times = 0;

	NEED_SMALL_PIPES();
	start(&child, PROGRAM("tee"), &opt);
	ck_assert_int_le(pipe_size(child.in), 8192);
	ck_assert_int_le(pipe_size(child.out), 8192);
	while ((error = wean_communicate(&child, &io, &r)) == ECANCELED)
		times++;
	ck_assert_int_eq(error, 0);
	ck_assert_int_gt(times, 0);
	assert_exited(&r.status, 0);
	assert_pattern(r.out, r.out_len, 2 * MB);
	assert_pattern(heard.data, heard.len, 2 * MB);
	free(heard.data);
	wean_result_free(&r);
	wean_release(&child);
}
END_TEST

START_TEST(what_a_reader_reads_is_exact)
{
	enum { LINES = 300000 };
	struct wean_options opt = { .out = WEAN_PIPE };
	struct wean_child child;
	wean_reader *r = NULL;
	const char *data;
	size_t len;

	NEED_SMALL_PIPES();
	start(&child, PROGRAM("lines", "1", "300000"), &opt);
	ck_assert_int_eq(wean_reader_new(&r, child.out, 0), 0);
	for (int i = 0; i < LINES; i++)
		if (wean_read_line(r, &data, &len) || !data || atoi(data) != i)
			ck_abort_msg("line %d", i);
	ck_assert_int_eq(wean_read_line(r, &data, &len), 0);
	ck_assert_ptr_null(data);
	ck_assert_int_le(pipe_size(child.out), 8192);
	wean_reader_free(r);
	ck_assert_int_eq(finish(&child).code, 0);
}
END_TEST

/* ---- pipes that are large enough to be enlarged ---- */

/* Reads as much as it holds four times and once more; gives its size then. */
static int size_when_read_full(int ends[2])
{
	char *text = pattern(USUAL);
	wean_reader *r = NULL;
	const char *data;
	size_t len;
	int size;

	ck_assert_int_eq(wean_reader_new(&r, ends[0], 0), 0);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(write(ends[1], text, USUAL), USUAL);
		ck_assert_int_eq(wean_read_some(r, &data, &len), 0);
		ck_assert_uint_eq(len, USUAL);
		ck_assert_mem_eq(data, text, USUAL);
	}
	size = pipe_size(ends[0]);
	wean_reader_free(r);
	return size;
}

/* And does not count as one that was: as soon as it is permitted one is. */
START_TEST(an_enlargement_that_is_refused_changes_nothing)
{
	enum { PIPES = 6 }; /* more than are enlarged at a time */
	int ends[PIPES][2];

	become_somebody();
	for (int i = 0; i < PIPES; i++) {
		ck_assert_int_eq(pipe2(ends[i], O_CLOEXEC), 0);
		ck_assert_int_eq(pipe_size(ends[i][0]), USUAL);
	}
	if (!use_up_pages())
		SKIP("the pages of a user's pipes are not counted here");
	ck_assert_int_lt(fcntl(ends[0][0], F_SETPIPE_SZ, LARGE), 0);
	ck_assert_int_eq(errno, EPERM);
	for (int i = 0; i < PIPES; i++)
		ck_assert_int_eq(size_when_read_full(ends[i]), USUAL);
	release_descriptors(&used_up);
	ck_assert_int_eq(size_when_read_full(ends[0]), LARGE);
	ck_assert_int_eq(pipe_size(ends[0][0]), USUAL);
}
END_TEST

/* ------------------------------------------------------------------------- */

static void make_program(void)
{
	scratch_make();
	program = copy_kid("kid", 0755);
}

static Suite *small_pipes_suite(void)
{
	Suite *s = suite_create("small pipes");
	TCase *t = case_that_needs(s, "root native");

	tcase_set_timeout(t, 30);
	tcase_add_unchecked_fixture(t, make_program, scratch_remove);
	tcase_add_test(t, megabytes_flow_each_way_through_a_run);
	tcase_add_test(t, megabytes_flow_each_way_in_many_calls);
	tcase_add_test(t, what_a_reader_reads_is_exact);
	tcase_add_test(t, an_enlargement_that_is_refused_changes_nothing);
	return s;
}

RUN_SUITE(small_pipes_suite)
