/* test_high.c - sources with high numbers: fetched where they are few, copied where they
   are many, and always the right file. */
#define _GNU_SOURCE
#include "high.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* ---- pipes --------------------------------------------------------------- */

/* A megabyte there and back. */
static void must_echo(const struct wean_options *o)
{
	enum { SIZE = 1 << 20 };
	unsigned char *back = malloc(SIZE), piece[4096];
	size_t sent = 0, got = 0;
	struct wean_child child;

	ck_assert_ptr_nonnull(back);
	start(&child, KID("cat"), o);
	while (got < SIZE) {
		struct pollfd p[2] = { { child.out, POLLIN, 0 }, { child.in, POLLOUT, 0 } };
		ck_assert_int_gt(poll(p, child.in < 0 ? 1 : 2, -1), 0);
		if (p[1].revents && child.in >= 0) {
			for (size_t i = 0; i < sizeof piece; i++)
				piece[i] = kid_pattern(sent + i);
			if (write(child.in, piece, sizeof piece) != sizeof piece)
				ck_abort_msg("write");
			sent += sizeof piece;
			if (sent == SIZE) {
				close(child.in);
				child.in = -1;
			}
		}
		if (p[0].revents) {
			ssize_t n = read(child.out, back + got, SIZE - got);
			ck_assert_int_gt(n, 0);
			got += (size_t)n;
		}
	}
	for (size_t i = 0; i < SIZE; i++)
		if (back[i] != kid_pattern(i))
			ck_abort_msg("byte %zu", i);
	ck_assert_int_eq(read(child.out, back, 1), 0);
	ck_assert_int_eq(finish(&child).code, 0);
	free(back);
}

static const int heights[] = { 0, 126, 1000, MANY };

START_TEST(pipes_work_at_any_height)
{
	struct wean_options o = {
		.in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE, .flags = way(_i),
	};

	NEED_DESCRIPTORS(MANY + 100);
	for (size_t i = 0; i < COUNT(heights); i++) {
		struct filling f;
		struct baseline b;
		fill_below(&f, heights[i]);
		baseline_take(&b);
		must_echo(&o);
		errno = b.error;
		baseline_same(&b);
		release_descriptors(&f);
	}
}
END_TEST

START_TEST(pipes_high_up_are_opened_anew_with_the_table_cut_low)
{
	struct wean_options o = {
		.in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE, .flags = way(_i),
	};
	struct wean_options one = { .out = WEAN_PIPE, .err = WEAN_MERGE, .flags = way(_i) };
	struct filling f;

	NEED_DESCRIPTORS(MANY + 100);
	fill_below(&f, 1000);
	GOES_STRAIGHT(one_start, &o, 3, 0, 2);
	release_descriptors(&f);
	fill_below(&f, MANY);
	GOES_STRAIGHT(one_start, &o, 3, 0, 2);
	GOES_STRAIGHT(one_start, &one, 1, 0, 2);
	GOES_STRAIGHT(one_start_in_a_thread, &o, 3, 0, 2);
	GOES_STRAIGHT(one_start_in_a_table_of_its_own, &o, 3, 0, 2);
}
END_TEST

START_TEST(nonblock_stays_on_the_callers_end_of_a_pipe_opened_anew)
{
	struct wean_options o = {
		.in = WEAN_PIPE, .out = WEAN_PIPE, .flags = WEAN_NONBLOCK | way(_i),
	};
	char *path = report_path();
	struct wean_child child;
	struct filling f;

	NEED_DESCRIPTORS(1100);
	fill_below(&f, 1000);
	start(&child, KID("report", path), &o);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	HOLDS(r, 0, child.in);
	HOLDS(r, 1, child.out);
	ck_assert_int_eq(report_fd(r, 0)->access, 'r');
	ck_assert_int_eq(report_fd(r, 1)->access, 'w');
	ck_assert_int_eq((report_fd(r, 0)->fl_flags | report_fd(r, 1)->fl_flags) & O_NONBLOCK,
	                 0);
	ck_assert_int_eq(fcntl(child.in, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	ck_assert_int_eq(fcntl(child.out, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	report_free(r);
	wean_release(&child);
	unlink(path);
	free(path);
}
END_TEST

/* ---- other sources ------------------------------------------------------- */

/* One of each sort from 5000 on. */
static int open_sorts(void)
{
	const int sorts[] = {
		open("/", O_RDONLY | O_DIRECTORY), open("/", O_PATH), open("/dev/zero", O_RDONLY),
		open("/dev/zero", O_WRONLY | O_APPEND), memfd_create("high", 0), eventfd(0, 0),
		socket(AF_UNIX, SOCK_STREAM, 0), socket(AF_UNIX, SOCK_DGRAM, 0),
	};

	for (size_t i = 0; i < COUNT(sorts); i++) {
		ck_assert_int_ge(sorts[i], 0);
		ck_assert_int_eq(dup3(sorts[i], 5000 + (int)i, O_CLOEXEC), 5000 + (int)i);
		close(sorts[i]);
	}
	return COUNT(sorts);
}

START_TEST(every_sort_of_file_is_fetched_as_it_is)
{
	struct wean_fd fds[16];
	struct wean_options o = { .fds = fds, .flags = way(_i) };

	NEED_DESCRIPTORS(6000);
	for (int i = open_sorts() - 1; i >= 0; i--) {
		fds[o.nfds++] = (struct wean_fd)KEEP(5000 + i);
		fds[o.nfds++] = (struct wean_fd)DUP(3 + i, 5000 + i);
	}
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 3 4 5 6 7 8 9 10 5000 5001 5002 5003 5004 "
	                 "5005 5006 5007");
	for (size_t i = 0; i < o.nfds; i++) {
		const struct wean_fd *e = &fds[i];
		int source = e->kind == WEAN_KEEP ? e->target : e->source;
		const struct report_fd *got = report_fd(r, e->target);
		HOLDS(r, e->target, source);
		ck_assert_int_eq(got->fl_flags, fcntl(source, F_GETFL));
	}
	report_free(r);
}
END_TEST

START_TEST(few_high_sources_are_fetched_and_many_are_copied)
{
	static struct wean_fd fds[400];
	struct wean_options o = { .fds = fds, .flags = way(_i) };
	struct filling f;

	NEED_DESCRIPTORS(MANY + 100);
	if (!may_fetch())
		SKIP("pidfd_getfd is not permitted");
	for (int i = open_sorts() - 1; i >= 0; i--)
		fds[o.nfds++] = (struct wean_fd)DUP(3 + i, 5000 + i);
	GOES_STRAIGHT(one_start, &o, 0, o.nfds, 2);
	fill_below(&f, MANY);
	for (int i = 0; i < 400; i++)
		fds[i] = (struct wean_fd)DUP(4 + i, 18000 + i);
	o.nfds = 2;
	GOES_STRAIGHT(one_start, &o, 0, 2, 2);
	if (kernel_has(6, 9)) /* before it there are no handles on threads */
		GOES_STRAIGHT(one_start_in_a_thread, &o, 0, 2, 2);
	fds[0].source = 100; /* a low one is copied, and all below it */
	GOES_STRAIGHT(one_start, &o, 0, 1, 100);
	fds[0].source = 18000;
	o.nfds = 400;
	GOES_STRAIGHT(one_start, &o, 0, 0, 18399);
	struct report *r = given(&o);
	ck_assert_uint_eq(report_fds(r, NULL, 0), 403);
	report_free(r);
}
END_TEST

static const struct wean_fd mixed_entries[] = {
	DUP(3, MANY), DUP(4, MANY), SAME(5, 4), KEEP(40),
};

#define MIXED \
	.fds = mixed_entries, .nfds = COUNT(mixed_entries), .dirfd = MANY + 1, .in = WEAN_PIPE

static void open_mixed(struct filling *f)
{
	fill_below(f, MANY);
	open_at(MANY);
	ck_assert_int_eq(dup2(open("/", O_RDONLY | O_DIRECTORY), MANY + 1), MANY + 1);
}

START_TEST(pipes_directory_and_entries_come_together)
{
	struct wean_options o = { MIXED, .flags = WEAN_DIR_FD | way(_i) };
	struct filling f;

	NEED_DESCRIPTORS(MANY + 100);
	open_mixed(&f);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 3 4 5 40");
	for (int fd = 3; fd <= 5; fd++)
		HOLDS(r, fd, MANY);
	ck_assert_int_eq(report_fd(r, 0)->type, 'p');
	ck_assert_str_eq(report_value(r, "cwd"), "/");
	report_free(r);
}
END_TEST

START_TEST(pipes_directory_and_entries_come_each_its_way)
{
	struct wean_options o = { MIXED, .flags = WEAN_DIR_FD | way(_i) };
	struct filling f;

	NEED_DESCRIPTORS(MANY + 100);
	if (!may_fetch())
		SKIP("pidfd_getfd is not permitted");
	open_mixed(&f);
	GOES_STRAIGHT(one_start, &o, 1, 2, 40);
}
END_TEST

/* ---- threads ------------------------------------------------------------- */

/* What the thread calls its own; -1: what every thread has. */
struct numbers {
	unsigned long long flags;
	int own_table;
};

/* From 5000 on there are files; in a table of its own the thread has other ones there,
   and it fills it so that its pipes are high. */
static int start_with_files(void *arg)
{
	const struct numbers *n = arg;
	struct wean_options o = {
		FDS(KEEP(5000), DUP(7, 5001), DUP(8, 5000)), .flags = n->flags,
		.in = WEAN_PIPE, .out = WEAN_PIPE,
	};
	char *path = report_path(), *argv[] = { kid(), (char[]){ "report" }, path, NULL };
	struct wean_child child;
	struct filling f;

	if (n->own_table) {
		ck_assert_int_eq(unshare(CLONE_FILES), 0);
		close(5000);
		close(5001);
	}
	open_at(5000);
	open_at(5001);
	fill_below(&f, 1000);
	start(&child, argv, &o);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 7 8 5000");
	HOLDS(r, 0, child.in);
	HOLDS(r, 1, child.out);
	HOLDS(r, 7, 5001);
	HOLDS(r, 8, 5000);
	HOLDS(r, 5000, 5000);
	report_free(r);
	wean_release(&child);
	release_descriptors(&f);
	unlink(path);
	free(path);
	return 0;
}

START_TEST(a_thread_gives_its_own_files)
{
	struct numbers n = { way(_i % WAYS), _i / WAYS };

	NEED_DESCRIPTORS(6000);
	if (n.own_table) { /* the process has others there */
		open_at(5000);
		open_at(5001);
		open_at(1000);
		open_at(1001);
	}
	ck_assert_int_eq(in_a_thread(start_with_files, &n), 0);
}
END_TEST

static void *outlive_main(void *arg)
{
	while (!main_is_gone())
		sched_yield();
	exit(start_with_files(arg));
}

START_TEST(a_thread_gives_its_files_when_the_main_thread_is_gone)
{
	static struct numbers n; /* the stack is the main thread's */
	pthread_t thread;
	int status;

	NEED_DESCRIPTORS(6000);
	n = (struct numbers){ way(_i % WAYS), _i / WAYS };
	pid_t pid = fork();
	if (!pid) {
		pthread_create(&thread, NULL, outlive_main, &n);
		pthread_exit(NULL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static Suite *high_suite(void)
{
	Suite *s = suite_create("high");
	TCase *passed = tcase_create("given"), *counted = tcase_create("counted");
	TCase *threads = tcase_create("threads");

	tcase_set_tags(counted, "default ptrace native");
	tcase_set_tags(threads, "default");
	tcase_set_timeout(passed, 60);
	tcase_set_timeout(counted, 60);
	tcase_set_timeout(threads, 60);
	tcase_add_loop_test(passed, pipes_work_at_any_height, 0, WAYS);
	tcase_add_loop_test(passed, nonblock_stays_on_the_callers_end_of_a_pipe_opened_anew,
	                    0, WAYS);
	tcase_add_loop_test(passed, every_sort_of_file_is_fetched_as_it_is, 0, WAYS);
	tcase_add_loop_test(passed, pipes_directory_and_entries_come_together, 0, WAYS);
	tcase_add_loop_test(counted,
	        pipes_high_up_are_opened_anew_with_the_table_cut_low, 0, WAYS);
	tcase_add_loop_test(counted, few_high_sources_are_fetched_and_many_are_copied, 0,
	                    WAYS);
	tcase_add_loop_test(counted, pipes_directory_and_entries_come_each_its_way, 0, WAYS);
	tcase_add_loop_test(threads, a_thread_gives_its_own_files, 0, 2 * WAYS);
	tcase_add_loop_test(threads,
	        a_thread_gives_its_files_when_the_main_thread_is_gone, 0, 2 * WAYS);
	suite_add_tcase(s, passed);
	suite_add_tcase(s, counted);
	suite_add_tcase(s, threads);
	return s;
}

RUN_WITH_STDIO_ALONE(high_suite)
