/* test_open.c - what the child opens itself, what it copies of itself, and the directory
   that it is given as a descriptor. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "spawning.h"

#include <sys/file.h>

static char *here(void)
{
	return for_good(getcwd(NULL, 0));
}

static void go_to(const char *dir)
{
	ck_assert_int_eq(chdir(dir), 0);
}

/* What the file in scratch holds; to be freed. */
static char *content(const char *name)
{
	char *path = at(name);
	size_t len;
	char *text = read_all(path, &len);

	free(path);
	return text;
}

static mode_t mode_of(const char *name)
{
	char *path = at(name);
	struct stat st;

	ck_assert_msg(!stat(path, &st), "%s: %s", path, strerror(errno));
	free(path);
	return st.st_mode & 07777;
}

/* ---- flags --------------------------------------------------------------- */

static const struct {
	int oflag, access;
} accesses[] = {
	{ O_RDONLY, 'r' }, { O_WRONLY, 'w' }, { O_RDWR, 'b' }, { O_PATH, 'p' },
	{ O_WRONLY | O_APPEND, 'w' }, { O_RDWR | O_NONBLOCK | O_SYNC, 'b' },
	{ O_RDONLY | O_CLOEXEC, 'r' }, { O_RDWR | O_CLOEXEC | O_APPEND, 'b' },
};

START_TEST(a_file_is_opened_with_the_flags_given_but_never_close_on_exec)
{
	const int status = O_APPEND | O_NONBLOCK | O_SYNC | O_PATH;
	char *path = write_text("file", 0600, "");

	for (size_t i = 0; i < COUNT(accesses); i++) {
		struct wean_options o = {
			/* 0 is where the system itself would put it */
			FDS(OPEN(0, path, .oflag = accesses[i].oflag),
			    OPEN(7, path, .oflag = accesses[i].oflag)),
			.flags = way(_i),
		};
		struct report *r = given(&o);

		ck_assert_str_eq(report_fd_list(r), "0 1 2 7");
		for (int fd = 0; fd <= 7; fd += 7) {
			const struct report_fd *f = report_fd(r, fd);
			ck_assert_str_eq(f->link, path);
			ck_assert_int_eq(f->access, accesses[i].access);
			ck_assert_int_eq(f->fl_flags & status, accesses[i].oflag & status);
		}
		report_free(r);
	}
}
END_TEST

static const struct {
	mode_t umask;
	unsigned mode;
	mode_t made;
} modes[] = {
	{ 0, 0, 0666 }, { 022, 0, 0644 }, { 077, 0, 0600 }, { 0, 0640, 0640 },
	{ 027, 0777, 0750 }, { 0777, 0666, 0 }, { 022, 0400, 0400 },
};

START_TEST(a_created_file_has_the_mode_under_the_callers_umask)
{
	char *path = at("created");

	for (size_t i = 0; i < COUNT(modes); i++) {
		struct wean_options o = {
			FDS(OPEN(1, path, .oflag = O_WRONLY | O_CREAT | O_EXCL,
			         .mode = modes[i].mode)),
			.flags = way(_i),
		};

		umask(modes[i].umask);
		ck_assert_int_eq(run(KID("echo", "made"), &o), 0);
		ck_assert_uint_eq(mode_of("created"), modes[i].made);
		unlink(path);
	}
}
END_TEST

START_TEST(a_file_is_cut_or_appended_to_as_the_flags_say)
{
	char *path = write_text("log", 0600, "old text\n");
	struct wean_options append = {
		FDS(OPEN(1, path, .oflag = O_WRONLY | O_APPEND)), .flags = way(_i),
	};
	struct wean_options cut = {
		FDS(OPEN(1, path, .oflag = O_WRONLY | O_TRUNC)), .flags = way(_i),
	};

	ck_assert_int_eq(run(KID("echo", "new"), &append), 0);
	ck_assert_str_eq(content("log"), "old text\nnew\n");
	ck_assert_int_eq(run(KID("echo", "newer"), &cut), 0);
	ck_assert_str_eq(content("log"), "newer\n");
}
END_TEST

/* However many programs are tried. */
START_TEST(a_file_is_opened_once)
{
	char *path = at("once"), *list[] = { (char[]){ "/absent" }, kid(), NULL };
	struct wean_options o = {
		FDS(OPEN(1, path, .oflag = O_WRONLY | O_CREAT | O_EXCL)),
		.candidates = list, .flags = way(_i),
	};

	ck_assert_int_eq(run(KID("echo", "once"), &o), 0);
	ck_assert_str_eq(content("once"), "once\n");
	unlink(path);
	list[1] = list[0];
	refused(KID("exit", "0"), &o, ENOENT, WEAN_STAGE_EXEC, 1);
	unlink(path);
}
END_TEST

/* ---- names and order ----------------------------------------------------- */

START_TEST(a_relative_path_counts_from_the_callers_directory)
{
	char *callers = make_dir("callers"), *childs = make_dir("childs");
	struct wean_options o = {
		FDS(OPEN(7, "../callers/file"), OPEN(8, "file")),
		.dir = childs, .flags = way(_i),
	};
	int dir = open(childs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	write_text("callers/file", 0600, "callers");
	write_text("childs/file", 0600, "childs");
	go_to(callers);
	for (int i = 0; i < 2; i++) {
		struct report *r = given(&o);
		ck_assert_str_eq(report_value(r, "cwd"), childs);
		ck_assert_str_eq(report_fd(r, 7)->link, at("callers/file"));
		ck_assert_str_eq(report_fd(r, 8)->link, at("callers/file"));
		report_free(r);
		o.dir = NULL;
		o.dirfd = dir;
		o.flags |= WEAN_DIR_FD;
	}
}
END_TEST

/* Targets that go up and down, so that no sorting by them can pass for it. */
START_TEST(files_are_opened_in_the_order_of_the_list)
{
	char *path = at("both");
	struct wean_fd first = OPEN(9, path, .oflag = O_WRONLY | O_CREAT | O_EXCL);
	struct wean_fd then = OPEN(4, path);
	struct wean_fd fds[2];
	struct wean_options o = { .fds = fds, .nfds = 2, .flags = way(_i) };

	for (int up = 0; up < 2; up++) {
		first.target = up ? 4 : 9;
		then.target = up ? 9 : 4;
		fds[0] = then;
		fds[1] = first;
		refused(KID("exit", "0"), &o, ENOENT, WEAN_STAGE_OPEN, 0);
		ck_assert_int_ne(access(path, F_OK), 0);
		fds[0] = first;
		fds[1] = then;
		ck_assert_int_eq(run(KID("exit", "0"), &o), 0);
		refused(KID("exit", "0"), &o, EEXIST, WEAN_STAGE_OPEN, 0);
		unlink(path);
	}
}
END_TEST

/* All is closed and moved before anything is opened. */
START_TEST(a_file_may_be_opened_where_a_source_was)
{
	char *path = write_text("file", 0600, "");
	struct wean_options o = {
		FDS(OPEN(20, path), DUP(21, 20), OPEN(0, path), DUP(5, 0)), .flags = way(_i),
	};

	open_at(20);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 5 20 21");
	HOLDS(r, 21, 20);
	HOLDS(r, 5, 0);
	ck_assert_str_eq(report_fd(r, 20)->link, path);
	ck_assert_str_eq(report_fd(r, 0)->link, path);
	report_free(r);
}
END_TEST

/* /proc/self is the child, whose table is already as it is to be. */
START_TEST(a_file_is_opened_after_the_descriptors_are_placed)
{
	struct wean_options o = { FDS(DUP(10, 20), OPEN(11, "/proc/self/fd/10")),
	                          .flags = way(_i) };
	struct wean_options gone = { FDS(OPEN(11, "/proc/self/fd/20")), .flags = way(_i) };

	open_at(20);
	struct report *r = given(&o);
	HOLDS(r, 11, 20);
	report_free(r);
	refused(KID("exit", "0"), &gone, ENOENT, WEAN_STAGE_OPEN, 0);
}
END_TEST

START_TEST(what_cannot_be_opened_is_told_by_its_index)
{
	char *file = write_text("file", 0600, ""), *loop = at("loop"), *deep = at("file/x");
	const struct {
		const char *path;
		int oflag, error;
	} bad[] = {
		{ at("missing"), O_RDONLY, ENOENT }, { at("no/dir"), O_CREAT | O_WRONLY, ENOENT },
		{ deep, O_RDONLY, ENOTDIR }, { scratch, O_WRONLY, EISDIR },
		{ loop, O_RDONLY, ELOOP }, { file, O_CREAT | O_EXCL, EEXIST },
		{ file, O_DIRECTORY, ENOTDIR }, { "", O_RDONLY, ENOENT },
	};

	ck_assert_int_eq(symlink(loop, loop), 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct wean_options o = {
			FDS(NUL(9), OPEN(5, "/dev/null"),
			    OPEN(4, bad[i].path, .oflag = bad[i].oflag), OPEN(3, "/missing")),
			.flags = way(_i), .out = WEAN_PIPE, .in = WEAN_NULL,
		};

		refused(KID("exit", "0"), &o, bad[i].error, WEAN_STAGE_OPEN, 2);
	}
}
END_TEST

START_TEST(a_file_that_may_not_be_opened_is_told)
{
	char *secret = at("secret");
	struct wean_options o = { FDS(OPEN(5, secret)), .flags = way(_i) };

	if (access(secret, F_OK))
		write_text("secret", 0, "");
	become_nobody();
	refused(KID("exit", "0"), &o, EACCES, WEAN_STAGE_OPEN, 0);
}
END_TEST

/* A lock of fcntl belongs to a process, which loses it by closing any descriptor of the
   file: so the file is not opened in the caller. */
START_TEST(the_callers_locks_on_a_file_that_the_child_opens_stay)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *path = write_text("lock", 0600, ""), expected[64];
	struct wean_options o = { FDS(OPEN(7, path, .oflag = O_RDWR)), .flags = way(_i) };
	int fd = open(path, O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(fcntl(fd, F_SETLK, &lock), 0);
	snprintf(expected, sizeof expected, "flock free\nfcntl %d\n", (int)getpid());
	for (int i = 0; i < 2; i++) {
		char *text = output(KID("lock-test", "7"), &o);
		ck_assert_str_eq(text, expected);
		free(text);
	}
}
END_TEST

/* ---- SAME ---------------------------------------------------------------- */

START_TEST(same_is_one_open_file_with_one_position)
{
	char *path = at("out");
	struct wean_options merged = {
		FDS(OPEN(1, path, .oflag = O_WRONLY | O_CREAT)), .err = WEAN_MERGE,
		.flags = way(_i),
	};
	struct wean_options same = {
		FDS(SAME(1, 7), OPEN(7, path, .oflag = O_WRONLY | O_CREAT), SAME(2, 1)),
		.flags = way(_i),
	};

	ck_assert_int_eq(run(KID("say", "1", "a", "--then", "say", "2", "b", "--then", "say",
	                         "1", "c"), &merged), 0);
	ck_assert_str_eq(content("out"), "a\nb\nc\n");
	unlink(path);
	ck_assert_int_eq(run(KID("say", "1", "a", "--then", "say", "2", "b", "--then", "say",
	                         "7", "c"), &same), 0);
	ck_assert_str_eq(content("out"), "a\nb\nc\n");
}
END_TEST

START_TEST(a_chain_of_same_ends_where_something_is)
{
	struct wean_options o = {
		FDS(SAME(3, 4), SAME(4, 5), SAME(5, 9), DUP(9, 20), SAME(20, 0), SAME(8, 2),
		    SAME(7, 10), SAME(11, 7), NUL(10)),
		.flags = way(_i), .in = WEAN_NULL,
	};

	open_at(20);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 3 4 5 7 8 9 10 11 20");
	for (int fd = 3; fd <= 5; fd++)
		HOLDS(r, fd, 20);
	HOLDS(r, 9, 20);
	HOLDS(r, 20, -1);
	HOLDS(r, 8, 2);
	HOLDS(r, 7, -1);
	HOLDS(r, 11, -1);
	report_free(r);
}
END_TEST

START_TEST(a_hundred_links_of_same_make_one_chain)
{
	struct wean_fd fds[101];
	struct wean_options o = { .fds = fds, .nfds = 101, .flags = way(_i) };

	for (int i = 0; i < 100; i++)
		fds[i] = (struct wean_fd)SAME(10 + i * 37 % 100, 10 + i * 37 % 100 + 1);
	fds[100] = (struct wean_fd)DUP(110, open_at(300));
	struct report *r = given(&o);
	ck_assert_uint_eq(report_fds(r, NULL, 0), 104);
	for (int fd = 10; fd <= 110; fd++)
		HOLDS(r, fd, 300);
	report_free(r);
}
END_TEST

START_TEST(same_of_a_pipe_is_its_other_number)
{
	struct wean_options o = { FDS(SAME(9, 1), SAME(8, 9)), .out = WEAN_PIPE,
	                          .err = WEAN_MERGE, .flags = way(_i) };

	char *text = output(KID("say", "9", "nine", "--then", "say", "8", "eight", "--then",
	                        "say", "2", "two", "--then", "say", "1", "one"), &o);
	ck_assert_str_eq(text, "nine\neight\ntwo\none\n");
	free(text);
}
END_TEST

/* ---- the directory ------------------------------------------------------- */

/* Numbers to open it at: also 0, which the child inherits as what it is, and ones high
   enough to be fetched. */
static const int dir_numbers[] = { 0, 2, 4, 63, 200, 5000 };

static void open_dir_at(int number)
{
	int fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(dup2(fd, number), number);
	if (fd != number)
		close(fd);
}

static void must_be_in(struct wean_options *o, const char *dir, const char *list)
{
	struct report *r = given(o);

	ck_assert_str_eq(report_value(r, "cwd"), dir);
	ck_assert_str_eq(report_fd_list(r), list);
	report_free(r);
}

START_TEST(a_directory_given_by_descriptor_is_entered_and_not_passed_on)
{
	char *sub = make_dir("sub"), *was = here();

	NEED_DESCRIPTORS(5001);
	for (int k = 0; k < WAYS * (int)COUNT(dir_numbers); k++) {
		int number = dir_numbers[k / WAYS], saved = fcntl(number, F_DUPFD_CLOEXEC, 300);
		struct wean_options o = { .dirfd = number, .flags = WEAN_DIR_FD | way(k % WAYS) };

		open_dir_at(number);
		must_be_in(&o, scratch, "0 1 2");
		o.dir = "sub";
		must_be_in(&o, sub, "0 1 2");
		o.dir = "/";
		must_be_in(&o, "/", "0 1 2");
		close(number);
		if (saved >= 0)
			dup2(saved, number);
		close(saved);
	}
	char *now = here();
	ck_assert_str_eq(now, was);
}
END_TEST

/* It is a source, and a number that something else goes to. */
START_TEST(a_directory_among_the_entries_is_entered_all_the_same)
{
	static const int numbers[] = { 1, 5, 300 };

	for (size_t i = 0; i < COUNT(numbers); i++) {
		int n = numbers[i];
		struct wean_options kept = { FDS(KEEP(n)), .dirfd = n };
		struct wean_options copied = { FDS(DUP(9, n), DUP(n, 10)), .dirfd = n };
		struct wean_options swapped = { FDS(DUP(10, n), DUP(n, 10)), .dirfd = n };
		struct wean_options null = { FDS(NUL(n)), .dirfd = n };
		struct wean_options closed = { FDS(CLOSED(n)), .dirfd = n };
		const struct { struct wean_options *o; const char *lists[3]; } all[] = {
			{ &kept, { "0 1 2", "0 1 2 5", "0 1 2 300" } },
			{ &copied, { "0 1 2 9", "0 1 2 5 9", "0 1 2 9 300" } },
			{ &swapped, { "0 1 2 10", "0 1 2 5 10", "0 1 2 10 300" } },
			{ &null, { "0 1 2", "0 1 2 5", "0 1 2 300" } },
			{ &closed, { "0 2", "0 1 2", "0 1 2" } },
		};

		open_dir_at(n);
		if (i == 0)
			open_at(10);
		for (size_t k = 0; k < COUNT(all); k++) {
			all[k].o->flags = WEAN_DIR_FD | way(_i);
			must_be_in(all[k].o, scratch, all[k].lists[i]);
		}
	}
}
END_TEST

START_TEST(what_is_no_directory_is_told)
{
	struct wean_options o = { .flags = WEAN_DIR_FD | way(_i), .dirfd = open_at(9),
	                          .out = WEAN_PIPE };

	refused(KID("exit", "0"), &o, ENOTDIR, WEAN_STAGE_DIR, -1);
	open_at(500);
	o.dirfd = 500;
	refused(KID("exit", "0"), &o, ENOTDIR, WEAN_STAGE_DIR, -1);
}
END_TEST

static void add_open(TCase *c)
{
	tcase_add_loop_test(c, a_file_is_opened_with_the_flags_given_but_never_close_on_exec,
	                    0, WAYS);
	tcase_add_loop_test(c, a_created_file_has_the_mode_under_the_callers_umask, 0, WAYS);
	tcase_add_loop_test(c, a_file_is_cut_or_appended_to_as_the_flags_say, 0, WAYS);
	tcase_add_loop_test(c, a_file_is_opened_once, 0, WAYS);
	tcase_add_loop_test(c, a_relative_path_counts_from_the_callers_directory, 0, WAYS);
	tcase_add_loop_test(c, files_are_opened_in_the_order_of_the_list, 0, WAYS);
	tcase_add_loop_test(c, a_file_may_be_opened_where_a_source_was, 0, WAYS);
	tcase_add_loop_test(c, a_file_is_opened_after_the_descriptors_are_placed, 0, WAYS);
	tcase_add_loop_test(c, what_cannot_be_opened_is_told_by_its_index, 0, WAYS);
	tcase_add_loop_test(c, the_callers_locks_on_a_file_that_the_child_opens_stay, 0,
	                    WAYS);
}

static Suite *open_suite(void)
{
	Suite *s = suite_create("open");
	TCase *open = tcase_create("open"), *same = tcase_create("same");
	TCase *dir = tcase_create("directory"), *denied = tcase_create("denied");

	tcase_add_checked_fixture(open, scratch_make, scratch_remove);
	add_open(open);
	tcase_add_checked_fixture(same, scratch_make, scratch_remove);
	tcase_add_loop_test(same, same_is_one_open_file_with_one_position, 0, WAYS);
	tcase_add_loop_test(same, a_chain_of_same_ends_where_something_is, 0, WAYS);
	tcase_add_loop_test(same, a_hundred_links_of_same_make_one_chain, 0, WAYS);
	tcase_add_loop_test(same, same_of_a_pipe_is_its_other_number, 0, WAYS);
	tcase_add_checked_fixture(dir, scratch_make, scratch_remove);
	tcase_add_test(dir, a_directory_given_by_descriptor_is_entered_and_not_passed_on);
	tcase_add_loop_test(dir, a_directory_among_the_entries_is_entered_all_the_same, 0,
	                    WAYS);
	tcase_add_loop_test(dir, what_is_no_directory_is_told, 0, WAYS);
	/* removed by who still may */
	tcase_add_unchecked_fixture(denied, scratch_make, scratch_remove);
	tcase_add_loop_test(denied, a_file_that_may_not_be_opened_is_told, 0, WAYS);
	suite_add_tcase(s, open);
	suite_add_tcase(s, denied);
	suite_add_tcase(s, same);
	suite_add_tcase(s, dir);
	return s;
}

RUN_WITH_STDIO_ALONE(open_suite)
