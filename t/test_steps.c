/* test_steps.c - each step of a start fails once: stage, index and errno are right and
   nothing is left behind. */
#define _GNU_SOURCE
#include "spawning.h"

/* ---- memory, pipes, launch ---- */

/* A start under a soft limit that holds for it alone. */
static int spawn_under(int resource, rlim_t soft, struct wean_child *child,
                       char *const argv[], const struct wean_options *opt)
{
	struct baseline b;

	baseline_take(&b);
	uint64_t before = soft_limit(resource, soft);
	int error = wean_spawn(child, argv, opt);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	soft_limit(resource, before);
	errno = BASELINE_ERRNO;
	if (error)
		baseline_same(&b);
	else
		free(b.fds);
	return error;
}

static rlim_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	ck_assert_int_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

START_TEST(a_request_that_does_not_fit_into_memory_is_refused)
{
	enum { MANY = 300000 };
	struct wean_fd *fds = calloc(MANY, sizeof *fds);
	struct wean_options opt = { .fds = fds, .nfds = MANY, .flags = way(_i) };
	struct wean_child child;

	for (int i = 0; i < MANY; i++)
		fds[i] = (struct wean_fd){ .kind = WEAN_CLOSED, .target = 3 + i };
	int error = spawn_under(RLIMIT_AS, address_space() + (1 << 20), &child,
	                        KID("exit", "0"), &opt);
	ck_assert_int_eq(error, ENOMEM);
	ck_assert_int_eq(child.stage, WEAN_STAGE_MEMORY);
	ck_assert_int_eq(child.index, -1);
	assert_holds_nothing(&child);
	ck_assert_int_eq(run(KID("exit", "3"), &opt), 3);
	free(fds);
}
END_TEST

START_TEST(a_report_page_that_cannot_be_had_is_told)
{
	struct wean_options opt = { .flags = WEAN_NO_SHARED_MEMORY };
	struct wean_child child;

	ck_assert_int_eq(spawn_under(RLIMIT_AS, 1, &child, KID("exit", "0"), &opt),
	                 ENOMEM);
	ck_assert_int_eq(child.stage, WEAN_STAGE_MEMORY);
	ck_assert_int_eq(child.index, -1);
	assert_holds_nothing(&child);
}
END_TEST

/* Opens everything below 64; with a limit of 64 + n there are n free numbers. */
static void use_up(void)
{
	int fd;

	while ((fd = dup(0)) >= 0 && fd < 63)
		;
	ck_assert_int_eq(fd, 63);
}

static int spawn_with_free(int n, struct wean_child *child,
                           const struct wean_options *opt)
{
	return spawn_under(RLIMIT_NOFILE, 64 + (rlim_t)n, child, KID("exit", "5"), opt);
}

START_TEST(a_pipe_that_cannot_be_made_is_told_by_its_index)
{
	const struct wean_fd entry = { .kind = WEAN_KEEP, .target = 63 };
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE,
	                            .fds = &entry, .nfds = 1, .flags = way(_i) };
	struct wean_child child;

	use_up();
	for (int n = 0; n < 6; n++) {
		ck_assert_int_eq(spawn_with_free(n, &child, &opt), EMFILE);
		ck_assert_int_eq(child.stage, WEAN_STAGE_PIPE);
		ck_assert_int_eq(child.index, 1 + n / 2);
		assert_holds_nothing(&child);
	}
}
END_TEST

START_TEST(without_a_number_for_the_pidfd_a_child_starts_all_the_same)
{
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE,
	                            .flags = way(_i) };
	struct wean_child child;

	use_up();
	for (int n = 6; n < 9; n++) {
		ck_assert_int_eq(spawn_with_free(n, &child, &opt), 0);
		ck_assert_int_eq(child.pidfd >= 0, n > 6);
		ck_assert_int_eq(finish(&child).code, 5);
	}
}
END_TEST

/* Nor does the child begin: it would have made the file. */
START_TEST(where_a_pidfd_is_needed_its_lack_is_an_error)
{
	char *path = at("made");
	const struct wean_fd made = { .kind = WEAN_OPEN, .target = 9, .path = path,
	                              .oflag = O_CREAT | O_RDWR };
	struct wean_options opt = { .in = WEAN_PIPE, .fds = &made, .nfds = 1,
	                            .flags = WEAN_NEED_PIDFD | way(_i) };
	struct wean_child child;

	unlink(path);
	use_up();
	ck_assert_int_eq(spawn_with_free(2, &child, &opt), EMFILE);
	ck_assert_int_eq(child.stage, WEAN_STAGE_LAUNCH);
	ck_assert_int_eq(child.index, -1);
	assert_holds_nothing(&child);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(spawn_with_free(3, &child, &opt), 0);
	ck_assert_int_gt(child.pidfd, 2);
	ck_assert_int_eq(finish(&child).code, 5);
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

/* Of one user; root has no such limit. */
START_TEST(a_shortage_of_processes_is_told_and_not_remembered)
{
	struct wean_options opt = { .out = WEAN_PIPE, .flags = way(_i) };
	struct wean_child child;
	char *kid_of_all = copy_kid("npkid", 0755);
	char *argv[] = { kid_of_all, "exit", "4", NULL };

	become_nobody();
	ck_assert_int_eq(run(argv, &opt), 4);
	start(&child, argv, &opt);
	int method = child.method;
	finish(&child);
	ck_assert_int_eq(spawn_under(RLIMIT_NPROC, 0, &child, argv, &opt), EAGAIN);
	ck_assert_int_eq(child.stage, WEAN_STAGE_LAUNCH);
	ck_assert_int_eq(child.index, -1);
	assert_holds_nothing(&child);
	start(&child, argv, &opt);
	ck_assert_int_eq(child.method, method);
	ck_assert_int_eq(finish(&child).code, 4);
}
END_TEST

/* ---- descriptors, files ---- */

START_TEST(a_rotation_of_every_number_has_none_to_turn_by)
{
	enum { N = 16 };
	struct wean_fd fds[N];
	struct wean_options opt = { .fds = fds, .nfds = N, .flags = way(_i) };
	struct wean_child child;

	for (int i = 0; i < N; i++) {
		fds[i] = (struct wean_fd){ .kind = WEAN_DUP, .target = i,
		                           .source = (i + 1) % N };
		if (fcntl(i, F_GETFD) < 0)
			open_at(i);
	}
	ck_assert_int_eq(spawn_under(RLIMIT_NOFILE, N, &child, KID("exit", "0"), &opt),
	                 EMFILE);
	ck_assert_int_eq(child.stage, WEAN_STAGE_FD);
	ck_assert_int_eq(child.index, -1);
	assert_holds_nothing(&child);
	ck_assert_int_eq(spawn_under(RLIMIT_NOFILE, N + 1, &child, KID("exit", "6"),
	                             &opt), 0);
	ck_assert_int_eq(finish(&child).code, 6);
}
END_TEST

static char too_long[5000];

static const struct bad_file {
	const char *path; /* in scratch, unless it begins with a slash */
	int oflag, error;
} bad_files[] = {
	{ "absent", O_RDONLY, ENOENT },
	{ "absent/file", O_WRONLY | O_CREAT, ENOENT },
	{ "file/file", O_RDONLY, ENOTDIR },
	{ "dir", O_WRONLY, EISDIR },
	{ "loop", O_RDONLY, ELOOP },
	{ "fifo", O_WRONLY | O_NONBLOCK, ENXIO },
	{ "file", O_WRONLY | O_CREAT | O_EXCL, EEXIST },
	{ "file", O_RDONLY | O_DIRECTORY, ENOTDIR },
	{ "private", O_RDONLY, EACCES },
	{ too_long, O_RDONLY, ENAMETOOLONG },
	{ "", O_RDONLY, ENOENT },
};

/* Run by nobody: root may open anything. */
static void make_bad_files(void)
{
	memset(too_long, 'x', sizeof too_long - 1);
	too_long[0] = '/';
	ck_assert_int_eq(chdir(scratch), 0);
	make_dir("dir");
	write_text("file", 0644, "");
	write_text("private", 0000, "");
	mkdir("shut", 0000);
	ck_assert_int_eq(chmod(scratch, 0777), 0);
	unlink("fifo");
	unlink("loop");
	ck_assert_int_eq(mkfifo("fifo", 0666) | chmod("fifo", 0666), 0);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	copy_kid("kid", 0755);
	become_nobody();
}

START_TEST(a_file_that_cannot_be_opened_is_told_by_its_index)
{
	make_bad_files();
	for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
		const struct wean_fd fds[] = {
			{ .kind = WEAN_OPEN, .target = 20, .path = "before",
			  .oflag = O_WRONLY | O_CREAT },
			{ .kind = WEAN_OPEN, .target = 1, .path = bad_files[i].path,
			  .oflag = bad_files[i].oflag },
			{ .kind = WEAN_OPEN, .target = 5, .path = "after",
			  .oflag = O_WRONLY | O_CREAT },
		};
		struct wean_options opt = { .fds = fds, .nfds = 3 };
		struct wean_child child;
		for (int w = 0; w < WAYS; w++) {
			opt.flags = way(w);
			refused_as(&child, bad_files[i].path, KID("exit", "0"), &opt,
			           (struct refusal){ bad_files[i].error, WEAN_STAGE_OPEN,
			                             1 });
			ck_assert_int_eq(unlink("before"), 0);
			ck_assert_int_eq(access("after", F_OK), -1);
		}
	}
}
END_TEST

START_TEST(dev_null_that_cannot_be_opened_is_told_by_its_index)
{
	struct wean_options opt = { .err = WEAN_NULL, .in = WEAN_CLOSED,
	                            .out = WEAN_CLOSED, .flags = way(_i) };
	struct wean_options lost = { .in = WEAN_CLOSED, .flags = way(_i) };
	struct wean_child child;

	ck_assert_int_eq(spawn_under(RLIMIT_NOFILE, 0, &child, KID("exit", "0"), &opt),
	                 EMFILE);
	ck_assert_int_eq(child.stage, WEAN_STAGE_OPEN);
	ck_assert_int_eq(child.index, 2);
	ck_assert_int_eq(fcntl(1, F_SETFD, FD_CLOEXEC), 0);
	ck_assert_int_eq(spawn_under(RLIMIT_NOFILE, 0, &child, KID("exit", "0"), &lost),
	                 EMFILE);
	ck_assert_int_eq(child.stage, WEAN_STAGE_OPEN);
	ck_assert_int_eq(child.index, 1);
}
END_TEST

/* ---- directory ---- */

static const struct bad_dir {
	const char *path;
	int error;
} bad_dirs[] = {
	{ "absent", ENOENT }, { "file", ENOTDIR }, { "file/x", ENOTDIR },
	{ "shut", EACCES }, { "loop", ELOOP }, { too_long, ENAMETOOLONG },
	{ "", ENOENT }, { "/absent/x", ENOENT },
};

START_TEST(a_directory_that_cannot_be_entered_is_told)
{
	struct wean_options opt = { .flags = way(_i) };

	make_bad_files();
	for (size_t i = 0; i < sizeof bad_dirs / sizeof *bad_dirs; i++) {
		struct wean_child child;
		opt.dir = bad_dirs[i].path;
		refused_as(&child, opt.dir, KID("exit", "0"), &opt,
		           (struct refusal){ bad_dirs[i].error, WEAN_STAGE_DIR, -1 });
	}
}
END_TEST

START_TEST(a_descriptor_that_is_no_directory_is_told)
{
	struct wean_options opt = { .flags = WEAN_DIR_FD | way(_i) };
	char *path = make_dir("d");

	opt.dirfd = -1;
	refused(KID("exit", "0"), &opt, EBADF, WEAN_STAGE_DIR, -1);
	opt.dirfd = 999;
	refused(KID("exit", "0"), &opt, EBADF, WEAN_STAGE_DIR, -1);
	opt.dirfd = open_at(70);
	refused(KID("exit", "0"), &opt, ENOTDIR, WEAN_STAGE_DIR, -1);
	opt.dir = "x";
	refused(KID("exit", "0"), &opt, ENOTDIR, WEAN_STAGE_DIR, -1);
	ck_assert_int_ge(opt.dirfd = open(path, O_PATH | O_CLOEXEC), 0);
	refused(KID("exit", "0"), &opt, ENOENT, WEAN_STAGE_DIR, -1);
}
END_TEST

static void starts_in(const struct wean_options *opt, const char *where)
{
	struct report *r = kid_report(opt);

	ck_assert_str_eq(report_value(r, "cwd"), where);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	report_free(r);
}

START_TEST(a_child_starts_where_it_was_told)
{
	char *outer = make_dir("outer"), *inner = make_dir("outer/inner");
	int fd = open(outer, O_PATH), high = fcntl(fd, F_DUPFD, 500);
	struct wean_options opt = { .dir = inner, .flags = way(_i) };

	ck_assert_int_eq(high, 500);
	starts_in(&opt, inner);
	ck_assert_int_eq(chdir(outer), 0);
	opt.dir = "inner";
	starts_in(&opt, inner);
	ck_assert_int_eq(chdir("/"), 0);
	opt.flags |= WEAN_DIR_FD;
	opt.dirfd = fd;
	starts_in(&opt, inner);
	opt.dirfd = high;
	starts_in(&opt, inner);
	opt.dir = NULL;
	starts_in(&opt, outer);
	opt.dir = "/";
	starts_in(&opt, "/");
}
END_TEST

START_TEST(dirfd_may_be_a_number_that_becomes_something_else)
{
	char *path = make_dir("both");
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct wean_fd fds[] = {
		{ .kind = WEAN_NULL, .target = fd },
		{ .kind = WEAN_DUP, .target = 8, .source = fd },
	};
	struct wean_options opt = { .fds = fds, .nfds = 2, .dirfd = fd,
	                            .flags = WEAN_DIR_FD | way(_i) };
	struct stat st;
	char want[64];

	ck_assert_int_eq(fstat(fd, &st), 0);
	snprintf(want, sizeof want, fd < 8 ? "0 1 2 %d 8" : "0 1 2 8 %d", fd);
	struct report *r = kid_report(&opt);
	ck_assert_str_eq(report_value(r, "cwd"), path);
	ck_assert_str_eq(report_fd_list(r), want);
	ck_assert_str_eq(report_fd(r, fd)->link, "/dev/null");
	ck_assert_uint_eq(report_fd(r, 8)->ino, st.st_ino);
	report_free(r);
}
END_TEST

START_TEST(a_caller_whose_directory_is_gone_starts_children)
{
	char *path = make_dir("gone");
	struct wean_options opt = { .flags = way(_i) };

	ck_assert_int_eq(chdir(path), 0);
	ck_assert_int_eq(rmdir(path), 0);
	struct report *r = kid_report(&opt);
	ck_assert_str_eq(report_value(r, "cwd"), "?");
	report_free(r);
	opt.dir = "/";
	starts_in(&opt, "/");
	opt.dir = "x";
	refused(KID("exit", "0"), &opt, ENOENT, WEAN_STAGE_DIR, -1);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *steps_suite(void)
{
	Suite *s = suite_create("steps");
	TCase *t = tcase_create("no memory");

	tcase_set_tags(t, "default native");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_request_that_does_not_fit_into_memory_is_refused, 0,
	                    WAYS);
	tcase_add_test(t, a_report_page_that_cannot_be_had_is_told);
	suite_add_tcase(s, t);

	t = tcase_create("before the launch");
	tcase_set_tags(t, "default");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_pipe_that_cannot_be_made_is_told_by_its_index, 0, WAYS);
	tcase_add_loop_test(t, without_a_number_for_the_pidfd_a_child_starts_all_the_same,
	                    0, WAYS);
	tcase_add_loop_test(t, where_a_pidfd_is_needed_its_lack_is_an_error, 0, WAYS);
	tcase_add_loop_test(t, a_shortage_of_processes_is_told_and_not_remembered, 0,
	                    WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("in the child");
	tcase_set_tags(t, "default");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_rotation_of_every_number_has_none_to_turn_by, 0,
	                    WAYS);
	tcase_add_test(t, a_file_that_cannot_be_opened_is_told_by_its_index);
	tcase_add_loop_test(t, dev_null_that_cannot_be_opened_is_told_by_its_index, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_directory_that_cannot_be_entered_is_told, 0, WAYS);
	tcase_add_loop_test(t, a_descriptor_that_is_no_directory_is_told, 0, WAYS);
	tcase_add_loop_test(t, a_child_starts_where_it_was_told, 0, WAYS);
	tcase_add_loop_test(t, dirfd_may_be_a_number_that_becomes_something_else, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_caller_whose_directory_is_gone_starts_children, 0, WAYS);
	suite_add_tcase(s, t);

	return s;
}

RUN_SUITE(steps_suite)
