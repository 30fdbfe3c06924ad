/* test_cmd_text.c - a command as a line: a shell that runs it does what the library
 * does. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "talking.h"

#include <wean_cmd.h>

#define OK(call) ck_assert_int_eq(call, 0)

static wean_cmd *make(const char *file)
{
	wean_cmd *cmd = wean_cmd_new(file);

	ck_assert_ptr_nonnull(cmd);
	return cmd;
}

static char *line_of(wean_cmd *cmd)
{
	enum { ROOM = 1 << 16 };
	char *text = for_good(malloc(ROOM));

	OK(wean_cmd_tostring(cmd, text, ROOM));
	return text;
}

static void assert_line(wean_cmd *cmd, const char *wanted)
{
	ck_assert_str_eq(line_of(cmd), wanted);
	wean_cmd_free(cmd);
}

/* ---- as it looks --------------------------------------------------------- */

START_TEST(plain_words_stand_as_they_are)
{
	wean_cmd *cmd = make("ls");

	OK(wean_cmd_arg(cmd, "-l"));
	OK(wean_cmd_arg(cmd, "/tmp/a_b.c:%+,@"));
	assert_line(cmd, "ls -l /tmp/a_b.c:%+,@");
}
END_TEST

START_TEST(other_words_stand_in_quotes)
{
	wean_cmd *cmd = make("a=b");

	OK(wean_cmd_arg(cmd, ""));
	OK(wean_cmd_arg(cmd, "a b"));
	OK(wean_cmd_arg(cmd, "it's"));
	OK(wean_cmd_arg(cmd, "if"));
	assert_line(cmd, "'a=b' '' 'a b' 'it'\\''s' if");
}
END_TEST

START_TEST(a_word_of_the_shells_own_is_quoted_where_a_command_begins)
{
	static const char *const own[] = { "if", "case", "while", "time", "coproc" };

	for (size_t i = 0; i < COUNT(own); i++) {
		char wanted[20];

		snprintf(wanted, sizeof wanted, "'%s'", own[i]);
		assert_line(make(own[i]), wanted);
	}
	assert_line(make("i"), "i"); /* a part of one */
	assert_line(make("hile"), "hile");
}
END_TEST

START_TEST(environment_directory_umask_and_limits_stand_before)
{
	wean_cmd *cmd = make("p");

	OK(wean_cmd_dir(cmd, "a b"));
	OK(wean_cmd_set(cmd, "umask", 022));
	OK(wean_cmd_limit(cmd, RLIMIT_CORE, 0, 0));
	OK(wean_cmd_limit(cmd, RLIMIT_NOFILE, 64, 128));
	OK(wean_cmd_limit(cmd, RLIMIT_STACK, 1 << 20, ~0ULL));
	OK(wean_cmd_setenv(cmd, "A", "1 2"));
	OK(wean_cmd_setenv(cmd, "GONE", NULL));
	assert_line(cmd, "cd ./'a b' && umask 022 && ulimit -c 0 && ulimit -S -n 64 && "
	                 "ulimit -H -n 128 && ulimit -S -s 1024 && ulimit -H -s unlimited && "
	                 "env -u GONE 'A=1 2' p");
	cmd = make("p");
	OK(wean_cmd_clearenv(cmd));
	OK(wean_cmd_setenv(cmd, "GONE", NULL));
	OK(wean_cmd_setenv(cmd, "A", ""));
	OK(wean_cmd_set(cmd, "dirfd", 7));
	assert_line(cmd, "cd /dev/fd/7 && env -i 'A=' p");
	cmd = make("p");
	OK(wean_cmd_set(cmd, "dirfd", 7));
	OK(wean_cmd_dir(cmd, "sub"));
	assert_line(cmd, "cd /dev/fd/7/sub && p");
	cmd = make("-p");
	OK(wean_cmd_setenv(cmd, "GONE", NULL));
	assert_line(cmd, "env -u GONE -- -p");
	cmd = make("-p");
	OK(wean_cmd_setenv(cmd, "GONE", NULL));
	OK(wean_cmd_setenv(cmd, "A", "1"));
	assert_line(cmd, "env -u GONE 'A=1' -p");
	cmd = make("-p=q"); /* which exec of bash takes for an option */
	OK(wean_cmd_setenv(cmd, "A", "1"));
	assert_line(cmd, "env 'A=1' sh -c '\"$0\" \"$@\"' '-p=q'");
}
END_TEST

START_TEST(descriptors_stand_behind)
{
	wean_cmd *cmd = make("p");

	OK(wean_cmd_set(cmd, "in", WEAN_NULL));
	OK(wean_cmd_set(cmd, "err", WEAN_MERGE));
	OK(wean_cmd_open(cmd, 1, "a b", O_WRONLY | O_CREAT | O_TRUNC, 0));
	OK(wean_cmd_open(cmd, 3, "x", O_RDWR, 0));
	OK(wean_cmd_open(cmd, 4, "log", O_WRONLY | O_CREAT | O_APPEND, 0));
	OK(wean_cmd_open(cmd, 5, "keeps", O_WRONLY, 0));
	OK(wean_cmd_open(cmd, 6, "read", O_RDONLY, 0));
	OK(wean_cmd_fd(cmd, WEAN_CLOSED, 7, 0));
	OK(wean_cmd_fd(cmd, WEAN_NULL, 8, 0));
	OK(wean_cmd_fd(cmd, WEAN_KEEP, 9, 0));
	assert_line(cmd, "p </dev/null >'a b' 3<>x 4>>log 5<>keeps 6<read 7>&- "
	                 "8<>/dev/null 2>&1");
	cmd = make("p");
	OK(wean_cmd_set(cmd, "in", WEAN_CLOSED));
	OK(wean_cmd_set(cmd, "out", WEAN_NULL));
	OK(wean_cmd_set(cmd, "err", WEAN_PIPE));
	OK(wean_cmd_dir(cmd, "/"));
	OK(wean_cmd_open(cmd, 10, "too high", O_RDONLY, 0));
	OK(wean_cmd_fd(cmd, WEAN_DUP, 3, 12));
	assert_line(cmd, "(cd / && p) <&- >/dev/null");
}
END_TEST

START_TEST(what_is_the_same_as_merged_errors_comes_after_them)
{
	wean_cmd *cmd = make("p");

	OK(wean_cmd_set(cmd, "err", WEAN_MERGE));
	OK(wean_cmd_fd(cmd, WEAN_SAME, 7, 2));
	OK(wean_cmd_fd(cmd, WEAN_SAME, 1, 3));
	assert_line(cmd, "p >&3 2>&1 7>&2");
}
END_TEST

START_TEST(a_circle_turns_by_a_number_that_is_set_later)
{
	wean_cmd *cmd = make("p");

	OK(wean_cmd_fd(cmd, WEAN_DUP, 3, 4));
	OK(wean_cmd_fd(cmd, WEAN_DUP, 4, 3));
	for (int fd = 5; fd < 8; fd++)
		OK(wean_cmd_fd(cmd, WEAN_KEEP, fd, 0));
	OK(wean_cmd_fd(cmd, WEAN_NULL, 8, 0));
	OK(wean_cmd_fd(cmd, WEAN_KEEP, 9, 0));
	assert_line(cmd, "p 8>&3 3>&4 4>&8 8>&- 8<>/dev/null");
}
END_TEST

START_TEST(what_is_too_long_is_cut_and_terminated)
{
	wean_cmd *cmd = make("program");
	char text[32];

	OK(wean_cmd_set(cmd, "err", WEAN_MERGE));
	for (size_t size = 1; size <= 13; size++) {
		memset(text, '?', sizeof text);
		ck_assert_int_eq(wean_cmd_tostring(cmd, text, size), size == 13 ? 0 : EMSGSIZE);
		ck_assert_uint_eq(strlen(text), size - 1);
		ck_assert_int_eq(strncmp(text, "program 2>&1", size - 1), 0);
		ck_assert_int_eq(text[size], '?');
	}
	wean_cmd_free(cmd);
}
END_TEST

/* ---- as a shell runs it -------------------------------------------------- */

static void run_line(wean_cmd *cmd)
{
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, line_of(cmd), NULL };
	struct wean_options o = { .flags = WEAN_INHERIT_ALL };

	ck_assert_msg(run(argv, &o) == 0, "%s", argv[2]);
}

static wean_cmd *make_reporting(const char *program, char *path)
{
	wean_cmd *cmd = make(program);

	OK(wean_cmd_arg(cmd, "report"));
	OK(wean_cmd_arg(cmd, path));
	return cmd;
}

/* Once by the library, once by a shell. */
static void report_twice(wean_cmd *cmd, char *path, struct report *r[2])
{
	struct wean_child child;

	OK(wean_cmd_spawn(cmd, &child));
	ck_assert_int_eq(finish(&child).code, 0);
	r[0] = report_read_file(path);
	ck_assert_int_eq(truncate(path, 0), 0);
	run_line(cmd);
	r[1] = report_read_file(path);
	ck_assert_ptr_nonnull(r[0]);
	ck_assert_ptr_nonnull(r[1]);
	unlink(path);
}

static void free_both(wean_cmd *cmd, struct report *r[2])
{
	report_free(r[0]);
	report_free(r[1]);
	wean_cmd_free(cmd);
}

static void assert_same_list(struct report *r[2],
                             const char *(*entry)(const struct report *, size_t, size_t *))
{
	for (size_t i = 0;; i++) {
		size_t len[2] = { 0, 0 };
		const char *a = entry(r[0], i, &len[0]), *b = entry(r[1], i, &len[1]);

		ck_assert_int_eq(!a, !b);
		if (!a)
			return;
		ck_assert_uint_eq(len[0], len[1]);
		ck_assert_mem_eq(a, b, len[0]);
	}
}

/* Alone, among others, twice, at either end. */
static void add_every_byte(wean_cmd *cmd)
{
	char all[256] = "";

	for (int c = 1; c < 256; c++) {
		const char b = (char)c;
		const char texts[][4] = {
			{ b }, { 'x', b }, { b, 'x' }, { b, b, 'x' }, { '\'', b, '\\' },
		};

		for (size_t i = 0; i < COUNT(texts); i++)
			OK(wean_cmd_arg(cmd, texts[i]));
		all[c - 1] = b;
	}
	OK(wean_cmd_arg(cmd, all));
	OK(wean_cmd_arg(cmd, ""));
	OK(wean_cmd_setenv(cmd, "ALL", all));
}

START_TEST(every_byte_comes_through_a_shell)
{
	char *path = report_path();
	wean_cmd *cmd = make_reporting(kid(), path);
	struct report *r[2];

	add_every_byte(cmd);
	OK(wean_cmd_clearenv(cmd));
	OK(wean_cmd_setenv(cmd, "-A", "'"));
	report_twice(cmd, path, r);
	ck_assert_int_gt(report_number(r[1], "argc"), 5 * 255);
	assert_same_list(r, report_arg);
	assert_same_list(r, report_env);
	free_both(cmd, r);
}
END_TEST

START_TEST(a_program_with_an_unusual_name_comes_through_a_shell)
{
	static const char *const names[] = { "a=b", "it's", "if", "-x", "~", "a b", "*" };
	char *path = report_path();
	struct report *r[2];

	wean_cmd *cmd = make_reporting(copy_kid(names[_i], 0755), path);
	OK(wean_cmd_clearenv(cmd));
	OK(wean_cmd_setenv(cmd, "ALL", "*"));
	report_twice(cmd, path, r);
	assert_same_list(r, report_arg);
	ck_assert_str_eq(report_getenv(r[1], "ALL"), "*");
	free_both(cmd, r);
}
END_TEST

START_TEST(directory_umask_and_limits_come_through_a_shell)
{
	static const char *const keys[] = { "cwd", "umask" };
	char *path = report_path();
	wean_cmd *cmd = make_reporting(kid(), path);
	struct report *r[2];

	OK(wean_cmd_dir(cmd, make_dir("- *")));
	OK(wean_cmd_set(cmd, "umask", 027));
	OK(wean_cmd_limit(cmd, RLIMIT_CORE, 0, 0));
	OK(wean_cmd_limit(cmd, RLIMIT_NOFILE, 60, 70));
	OK(wean_cmd_limit(cmd, RLIMIT_STACK, 1 << 20, 2 << 20));
	OK(wean_cmd_limit(cmd, RLIMIT_CPU, 1000, 2000));
	OK(wean_cmd_limit(cmd, RLIMIT_FSIZE, 1 << 20, 1 << 21));
	report_twice(cmd, path, r);
	for (size_t i = 0; i < COUNT(keys); i++)
		ck_assert_str_eq(report_value(r[0], keys[i]), report_value(r[1], keys[i]));
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		char key[20];

		snprintf(key, sizeof key, "limit %d", i);
		ck_assert_str_eq(report_value(r[0], key), report_value(r[1], key));
	}
	free_both(cmd, r);
}
END_TEST

/* A number and what it gets; kinds in the words of wean_cmd_fd(). */
static const struct map {
	const char *name;
	struct wean_fd fds[9];
} maps[] = {
	{ "a swap", { DUP(1, 6), DUP(6, 1) } },
	{ "a circle of three and one that follows",
	  { DUP(5, 6), DUP(6, 7), DUP(7, 5), DUP(8, 5), DUP(0, 7) } },
	{ "two circles", { DUP(5, 6), DUP(6, 5), DUP(7, 8), DUP(8, 7) } },
	{ "a chain", { DUP(5, 6), DUP(6, 7), DUP(7, 8) } },
	{ "fan-out", { DUP(0, 5), DUP(1, 5), DUP(2, 5), DUP(6, 5), CLOSED(5) } },
	{ "the same", { SAME(5, 6), SAME(6, 7), DUP(7, 5), NUL(8) } },
	{ "a file on a source", { DUP(6, 5), NUL(5), SAME(7, 5), CLOSED(8) } },
};

/* A shell passes on what is not named, and closes nothing. */
static void assert_same_fds(const struct map *m, struct report *r[2])
{
	for (size_t i = 0; i < COUNT(m->fds) && m->fds[i].kind; i++) {
		const struct report_fd *a = report_fd(r[0], m->fds[i].target);
		const struct report_fd *b = report_fd(r[1], m->fds[i].target);

		ck_assert_msg(!a == !b && (!a || (a->ino == b->ino && a->dev == b->dev)),
		              "%s: %d", m->name, m->fds[i].target);
	}
	ck_assert_ptr_null(report_fd(r[1], 9)); /* the spare one, if any */
}

START_TEST(descriptors_come_through_a_shell_as_if_moved_at_once)
{
	char *path = report_path();
	wean_cmd *cmd = make_reporting(kid(), path);
	struct report *r[2];

	for (int n = 5; n <= 8; n++)
		open_at(n);
	for (size_t i = 0; maps[_i].fds[i].kind; i++) {
		const struct wean_fd *e = &maps[_i].fds[i];
		OK(wean_cmd_fd(cmd, e->kind, e->target, e->source));
	}
	report_twice(cmd, path, r);
	assert_same_fds(&maps[_i], r);
	free_both(cmd, r);
}
END_TEST

START_TEST(files_are_opened_from_the_callers_directory_under_its_umask)
{
	wean_cmd *cmd = make(kid());
	struct stat st;

	ck_assert_int_eq(chdir(scratch), 0);
	make_dir("sub");
	umask(022);
	OK(wean_cmd_arg(cmd, "echo"));
	OK(wean_cmd_arg(cmd, "said"));
	OK(wean_cmd_dir(cmd, "sub"));
	OK(wean_cmd_set(cmd, "umask", 077));
	OK(wean_cmd_open(cmd, 1, "written", O_WRONLY | O_CREAT | O_TRUNC, 0));
	run_line(cmd);
	ck_assert_int_eq(stat(at("written"), &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0644);
	ck_assert_int_eq(st.st_size, 5);
	wean_cmd_free(cmd);
}
END_TEST

static Suite *cmd_text_suite(void)
{
	Suite *s = suite_create("cmd text");
	TCase *looks = tcase_create("looks"), *runs = tcase_create("runs");

	suite_add_tcase(s, looks);
	suite_add_tcase(s, runs);
	tcase_add_test(looks, plain_words_stand_as_they_are);
	tcase_add_test(looks, other_words_stand_in_quotes);
	tcase_add_test(looks, a_word_of_the_shells_own_is_quoted_where_a_command_begins);
	tcase_add_test(looks, environment_directory_umask_and_limits_stand_before);
	tcase_add_test(looks, descriptors_stand_behind);
	tcase_add_test(looks, what_is_the_same_as_merged_errors_comes_after_them);
	tcase_add_test(looks, a_circle_turns_by_a_number_that_is_set_later);
	tcase_add_test(looks, what_is_too_long_is_cut_and_terminated);
	tcase_add_unchecked_fixture(runs, scratch_make, scratch_remove);
	tcase_add_test(runs, every_byte_comes_through_a_shell);
	tcase_add_loop_test(runs, a_program_with_an_unusual_name_comes_through_a_shell, 0, 7);
	tcase_add_loop_test(runs, descriptors_come_through_a_shell_as_if_moved_at_once, 0,
	                    COUNT(maps));
	tcase_add_test(runs, files_are_opened_from_the_callers_directory_under_its_umask);
	runs = case_that_needs(s, "kernel table");
	tcase_add_unchecked_fixture(runs, scratch_make, scratch_remove);
	tcase_add_test(runs, directory_umask_and_limits_come_through_a_shell);
	return s;
}

RUN_WITH_STDIO_ALONE(cmd_text_suite)
