/* test_cmd.c - a command that is put together step by step: what its children get, and
 * its errors. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "talking.h"

#include <wean_cmd.h>

static wean_cmd *make(const char *file)
{
	wean_cmd *cmd = wean_cmd_new(file);

	ck_assert_ptr_nonnull(cmd);
	return cmd;
}

#define OK(call) ck_assert_int_eq(call, 0)

/* A kid that will report; a path for it. */
static wean_cmd *make_reporting(char **path)
{
	wean_cmd *cmd = make(kid());

	*path = report_path();
	OK(wean_cmd_arg(cmd, "report"));
	OK(wean_cmd_arg(cmd, *path));
	return cmd;
}

static int run_once(wean_cmd *cmd)
{
	struct wean_child child;
	int error = wean_cmd_spawn(cmd, &child);

	ck_assert_msg(!error, "%s at %s, index %d", strerror(error),
	              wean_stage_name(child.stage), child.index);
	return finish(&child).code;
}

static struct report *report_of(wean_cmd *cmd, char *path)
{
	ck_assert_int_eq(run_once(cmd), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	return r;
}

/* ---- what a child gets --------------------------------------------------- */

START_TEST(arguments_come_in_their_order_and_are_copied)
{
	char *path, text[] = "0";
	wean_cmd *cmd = make_reporting(&path);

	for (int i = 0; i < 50; i++) {
		text[0] = (char)('0' + i);
		OK(wean_cmd_arg(cmd, text));
	}
	text[0] = '?';
	struct report *r = report_of(cmd, path);
	ck_assert_str_eq(report_arg(r, 0, NULL), kid());
	ck_assert_int_eq(report_number(r, "argc"), 53);
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(report_arg(r, (size_t)i + 3, NULL)[0], '0' + i);
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

START_TEST(variables_are_set_and_removed_over_the_callers)
{
	char *path;
	wean_cmd *cmd = make_reporting(&path);

	setenv("KEPT", "1", 1);
	setenv("GONE", "1", 1);
	setenv("CHANGED", "1", 1);
	OK(wean_cmd_setenv(cmd, "GONE", NULL));
	OK(wean_cmd_setenv(cmd, "CHANGED", "2"));
	OK(wean_cmd_setenv(cmd, "NEW", ""));
	OK(wean_cmd_setenv(cmd, "TWICE", "1"));
	OK(wean_cmd_setenv(cmd, "TWICE", "a=b"));
	OK(wean_cmd_setenv(cmd, "BACK", "1"));
	OK(wean_cmd_setenv(cmd, "BACK", NULL));
	OK(wean_cmd_setenv(cmd, "GO", NULL)); /* the beginning of another's name */
	setenv("LATE", "1", 1);
	struct report *r = report_of(cmd, path);
	ck_assert_str_eq(report_getenv(r, "KEPT"), "1");
	ck_assert_str_eq(report_getenv(r, "CHANGED"), "2");
	ck_assert_str_eq(report_getenv(r, "NEW"), "");
	ck_assert_str_eq(report_getenv(r, "TWICE"), "a=b");
	ck_assert_str_eq(report_getenv(r, "LATE"), "1");
	ck_assert_ptr_null(report_getenv(r, "GONE"));
	ck_assert_ptr_null(report_getenv(r, "BACK"));
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

START_TEST(a_cleared_environment_has_what_is_set_afterwards)
{
	char *path;
	wean_cmd *cmd = make_reporting(&path);

	OK(wean_cmd_setenv(cmd, "BEFORE", "1"));
	OK(wean_cmd_clearenv(cmd));
	OK(wean_cmd_setenv(cmd, "A", "1"));
	OK(wean_cmd_setenv(cmd, "B", "2"));
	struct report *r = report_of(cmd, path);
	ck_assert_int_eq(report_number(r, "envc"), 2);
	ck_assert_str_eq(report_getenv(r, "A"), "1");
	ck_assert_str_eq(report_getenv(r, "B"), "2");
	report_free(r);
	OK(wean_cmd_clearenv(cmd));
	r = report_of(cmd, path);
	ck_assert_int_eq(report_number(r, "envc"), 0);
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

START_TEST(the_directory_is_the_last_that_was_given)
{
	char *path, name[] = "/usr";
	wean_cmd *cmd = make_reporting(&path);
	char here[PATH_MAX];

	OK(wean_cmd_dir(cmd, "/missing"));
	OK(wean_cmd_dir(cmd, name));
	name[0] = '?';
	struct report *r = report_of(cmd, path);
	ck_assert_str_eq(report_value(r, "cwd"), "/usr");
	report_free(r);
	OK(wean_cmd_dir(cmd, NULL));
	r = report_of(cmd, path);
	ck_assert_str_eq(report_value(r, "cwd"), getcwd(here, sizeof here));
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

START_TEST(descriptors_are_entries_in_their_order)
{
	char *path, *file = for_good(strdup(at("file")));
	wean_cmd *cmd = make_reporting(&path);

	open_at(5);
	open_at(6);
	OK(wean_cmd_fd(cmd, WEAN_DUP, 7, 5));
	OK(wean_cmd_fd(cmd, WEAN_KEEP, 6, 0));
	OK(wean_cmd_fd(cmd, WEAN_SAME, 8, 7));
	OK(wean_cmd_fd(cmd, WEAN_NULL, 0, 0));
	OK(wean_cmd_fd(cmd, WEAN_CLOSED, 2, 0));
	OK(wean_cmd_open(cmd, 9, file, O_CREAT | O_WRONLY, 0640));
	memset(file, '?', strlen(file));
	struct report *r = report_of(cmd, path);
	ck_assert_str_eq(report_fd_list(r), "0 1 6 7 8 9");
	HOLDS(r, 7, 5);
	HOLDS(r, 6, 6);
	HOLDS(r, 8, 5);
	HOLDS(r, 0, -1);
	ck_assert_str_eq(report_fd(r, 9)->link, at("file"));
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

START_TEST(limits_are_set)
{
	unsigned long long soft, hard;
	char *path;
	wean_cmd *cmd = make_reporting(&path);

	OK(wean_cmd_limit(cmd, RLIMIT_CORE, 0, 0));
	OK(wean_cmd_limit(cmd, RLIMIT_NOFILE, 50, 60));
	struct report *r = report_of(cmd, path);
	report_limit(r, RLIMIT_CORE, &soft, &hard);
	ck_assert_uint_eq(soft + hard, 0);
	report_limit(r, RLIMIT_NOFILE, &soft, &hard);
	ck_assert_uint_eq(soft, 50);
	ck_assert_uint_eq(hard, 60);
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

/* ---- members by name ----------------------------------------------------- */

START_TEST(members_are_set_with_their_flags)
{
	char *path;
	wean_cmd *cmd = make_reporting(&path);
	int dir = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	OK(wean_cmd_set(cmd, "umask", 027));
	OK(wean_cmd_set(cmd, "nice", 19));
	OK(wean_cmd_set(cmd, "sigmask", (long long)(WEAN_SIG(SIGUSR1) | WEAN_SIG(64))));
	OK(wean_cmd_set(cmd, "sigignore", WEAN_SIG(SIGUSR2)));
	OK(wean_cmd_set(cmd, "sigdefault", WEAN_SIG(SIGHUP)));
	OK(wean_cmd_set(cmd, "pdeathsig", SIGTERM));
	OK(wean_cmd_set(cmd, "dirfd", dir));
	OK(wean_cmd_set(cmd, "in", WEAN_CLOSED));
	OK(wean_cmd_set(cmd, "err", WEAN_MERGE));
	OK(wean_cmd_set(cmd, "flags", WEAN_NEW_GROUP));
	OK(wean_cmd_set(cmd, "flags", WEAN_NO_NEW_PRIVS));
	signal(SIGHUP, SIG_IGN);
	struct report *r = report_of(cmd, path);
	ck_assert_uint_eq(report_mask(r, "umask"), 027);
	ck_assert_int_eq(report_number(r, "nice"), 19);
	ck_assert_uint_eq(report_mask(r, "sigblk"), WEAN_SIG(SIGUSR1) | WEAN_SIG(64));
	ck_assert_uint_eq(report_mask(r, "sigign") & (WEAN_SIG(SIGUSR2) | WEAN_SIG(SIGHUP)),
	                  WEAN_SIG(SIGUSR2));
	ck_assert_int_eq(report_number(r, "pdeathsig"), SIGTERM);
	ck_assert_str_eq(report_value(r, "cwd"), "/usr");
	ck_assert_str_eq(report_fd_list(r), "1 2");
	ck_assert_int_eq(report_number(r, "pgid"), report_number(r, "pid"));
	ck_assert_int_eq(report_number(r, "nonewprivs"), 1);
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

START_TEST(a_group_is_joined_by_its_number)
{
	char *path;
	wean_cmd *cmd = make_reporting(&path);

	OK(wean_cmd_set(cmd, "pgid", getpgrp()));
	struct report *r = report_of(cmd, path);
	ck_assert_int_eq(report_number(r, "pgid"), getpgrp());
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

START_TEST(ids_are_set_with_their_flags)
{
	char *path;
	wean_cmd *cmd = make_reporting(&path);

	if (geteuid() != 0)
		SKIP("needs root");
	OK(wean_cmd_set(cmd, "uid", 3000000000));
	OK(wean_cmd_set(cmd, "gid", 4343));
	OK(wean_cmd_set(cmd, "flags", WEAN_SET_GROUPS));
	chmod(path, 0666);
	struct report *r = report_of(cmd, path);
	ck_assert_str_eq(report_value(r, "uid"), "3000000000 3000000000 3000000000");
	ck_assert_str_eq(report_value(r, "gid"), "4343 4343 4343");
	ck_assert_str_eq(report_value(r, "groups"), "0");
	report_free(r);
	wean_cmd_free(cmd);
	unlink(path);
}
END_TEST

/* Where the flag is missing, or what it needs, the start says so. */
START_TEST(a_member_reaches_the_start_that_judges_it)
{
	static const struct {
		const char *member;
		long long value;
		int error, stage;
	} rows[] = {
		{ "cgroupfd", 444, EBADF, WEAN_STAGE_CGROUP },
		{ "dirfd", 444, EBADF, WEAN_STAGE_DIR },
		{ "ttyfd", 444, EINVAL, WEAN_STAGE_OPTIONS },
		{ "nice", 20, EINVAL, WEAN_STAGE_OPTIONS },
		{ "pgid", 0, EINVAL, WEAN_STAGE_OPTIONS },
		{ "uid", 0xffffffffLL, EINVAL, WEAN_STAGE_OPTIONS },
		{ "flags", 1LL << 40, EINVAL, WEAN_STAGE_OPTIONS },
		{ "out", 77, EINVAL, WEAN_STAGE_OPTIONS },
	};
	struct wean_child child;
	wean_cmd *cmd = make(kid());

	OK(wean_cmd_set(cmd, rows[_i].member, rows[_i].value));
	for (int i = 0; i < 2; i++) { /* it does not stick */
		ck_assert_int_eq(wean_cmd_spawn(cmd, &child), rows[_i].error);
		ck_assert_int_eq(child.stage, rows[_i].stage);
	}
	OK(wean_cmd_arg(cmd, "more"));
	wean_cmd_free(cmd);
}
END_TEST

/* ---- errors -------------------------------------------------------------- */

static const struct {
	const char *member;
	long long value;
	int error;
} bad_members[] = {
	{ "no-such-member", 0, EINVAL }, { "", 0, EINVAL }, { NULL, 0, EINVAL },
	{ "file", 0, EINVAL }, { "nfds", 1, EINVAL }, { "nlimits", 1, EINVAL },
	{ "ngroups", 0, EINVAL }, { "reserved_int", 0, EINVAL },
	{ "umask", 1LL << 31, ERANGE }, { "in", -(1LL << 31) - 1, ERANGE },
	{ "uid", -1, ERANGE }, { "gid", 1LL << 32, ERANGE },
};

START_TEST(a_bad_member_or_value_is_refused)
{
	wean_cmd *cmd = make(kid());

	ck_assert_int_eq(wean_cmd_set(cmd, bad_members[_i].member, bad_members[_i].value),
	                 bad_members[_i].error);
	ck_assert_int_eq(wean_cmd_arg(cmd, "more"), bad_members[_i].error);
	wean_cmd_free(cmd);
}
END_TEST

/* Every call of one that is stuck, or of none. */
static void assert_all_return(wean_cmd *cmd, int error)
{
	struct wean_child child;
	struct wean_result result;
	struct baseline b;
	char text[10] = "?";

	memset(&child, 0xa5, sizeof child);
	memset(&result, 0xa5, sizeof result);
	baseline_take(&b);
	ck_assert_int_eq(wean_cmd_arg(cmd, "x"), error);
	ck_assert_int_eq(wean_cmd_dir(cmd, "/"), error);
	ck_assert_int_eq(wean_cmd_setenv(cmd, "A", "1"), error);
	ck_assert_int_eq(wean_cmd_clearenv(cmd), error);
	ck_assert_int_eq(wean_cmd_fd(cmd, WEAN_NULL, 0, 0), error);
	ck_assert_int_eq(wean_cmd_open(cmd, 0, "/dev/null", 0, 0), error);
	ck_assert_int_eq(wean_cmd_limit(cmd, RLIMIT_CORE, 0, 0), error);
	ck_assert_int_eq(wean_cmd_set(cmd, "in", WEAN_NULL), error);
	ck_assert_int_eq(wean_cmd_tostring(cmd, text, sizeof text), error);
	ck_assert_int_eq(wean_cmd_spawn(cmd, NULL), error);
	ck_assert_int_eq(wean_cmd_run(cmd, NULL, NULL), error);
	ck_assert_int_eq(wean_cmd_run(cmd, NULL, &result), error);
	int got = wean_cmd_spawn(cmd, &child);
	baseline_same(&b);
	struct refusal r = { error, WEAN_STAGE_OPTIONS, -1 };
	assert_refused(&child, "spawn", got, r);
	assert_refused(&result.child, "run", error, r);
	ck_assert_ptr_null(result.out);
	wean_result_free(&result);
	ck_assert_str_eq(text, "");
}

START_TEST(the_first_error_sticks_and_every_later_call_returns_it)
{
	wean_cmd *cmd = make(kid());

	ck_assert_int_eq(wean_cmd_set(cmd, "uid", -1), ERANGE);
	ck_assert_int_eq(wean_cmd_arg(cmd, NULL), ERANGE);
	assert_all_return(cmd, ERANGE);
	wean_cmd_free(cmd);
}
END_TEST

START_TEST(no_command_is_an_error_and_freed_without_harm)
{
	assert_all_return(NULL, EINVAL);
	wean_cmd_free(NULL);
}
END_TEST

static int bad_arg(wean_cmd *cmd) { return wean_cmd_arg(cmd, NULL); }
static int bad_name(wean_cmd *cmd) { return wean_cmd_setenv(cmd, "A=B", "1"); }
static int empty_name(wean_cmd *cmd) { return wean_cmd_setenv(cmd, "", "1"); }
static int no_name(wean_cmd *cmd) { return wean_cmd_setenv(cmd, NULL, "1"); }
static int bad_removal(wean_cmd *cmd) { return wean_cmd_setenv(cmd, "A=", NULL); }
static int no_path(wean_cmd *cmd) { return wean_cmd_open(cmd, 3, NULL, 0, 0); }
static int fd_open_(wean_cmd *cmd) { return wean_cmd_fd(cmd, WEAN_OPEN, 3, 0); }
static int fd_pipe(wean_cmd *cmd) { return wean_cmd_fd(cmd, WEAN_PIPE, 1, 0); }
static int fd_zero(wean_cmd *cmd) { return wean_cmd_fd(cmd, 0, 1, 0); }

static int (*const bad_calls[])(wean_cmd *) = {
	bad_arg, bad_name, empty_name, no_name, bad_removal, no_path, fd_open_, fd_pipe, fd_zero,
};

START_TEST(a_call_with_what_cannot_be_is_refused)
{
	wean_cmd *cmd = make(kid());

	ck_assert_int_eq(bad_calls[_i](cmd), EINVAL);
	assert_all_return(cmd, EINVAL);
	wean_cmd_free(cmd);
}
END_TEST

START_TEST(no_program_makes_no_command_and_errno_says_why)
{
	errno = 0;
	ck_assert_ptr_null(wean_cmd_new(NULL));
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(without_a_place_for_the_child_nothing_starts)
{
	wean_cmd *cmd = make(kid());
	char text[2];

	ck_assert_int_eq(wean_cmd_spawn(cmd, NULL), EINVAL);
	ck_assert_int_eq(wean_cmd_run(cmd, NULL, NULL), EINVAL);
	ck_assert_int_eq(wean_cmd_tostring(cmd, NULL, 5), EINVAL);
	ck_assert_int_eq(wean_cmd_tostring(cmd, text, 0), EINVAL);
	OK(wean_cmd_arg(cmd, "it does not stick"));
	wean_cmd_free(cmd);
}
END_TEST

/* ---- its life ------------------------------------------------------------ */

START_TEST(one_command_is_started_as_often_as_wanted_and_changed_meanwhile)
{
	wean_cmd *cmd = make(kid());
	struct wean_child children[3];

	OK(wean_cmd_set(cmd, "in", WEAN_PIPE));
	OK(wean_cmd_arg(cmd, "cat"));
	OK(wean_cmd_spawn(cmd, &children[0]));
	OK(wean_cmd_arg(cmd, "--then"));
	OK(wean_cmd_arg(cmd, "exit"));
	OK(wean_cmd_arg(cmd, "7"));
	OK(wean_cmd_spawn(cmd, &children[1]));
	OK(wean_cmd_spawn(cmd, &children[2]));
	wean_cmd_free(cmd);
	for (int i = 0; i < 3; i++) {
		let_go(&children[i]);
		ck_assert_int_eq(finish(&children[i]).code, i ? 7 : 0);
	}
}
END_TEST

START_TEST(a_run_collects_and_its_result_outlives_the_command)
{
	struct wean_io io = { .input = "in and out", .input_len = 10 };
	struct wean_result r;
	wean_cmd *cmd = make(kid());

	OK(wean_cmd_arg(cmd, "tee"));
	OK(wean_cmd_run(cmd, &io, &r));
	wean_cmd_free(cmd);
	assert_text(r.out, r.out_len, "in and out");
	assert_text(r.err, r.err_len, "in and out");
	wean_result_free(&r);
}
END_TEST

START_TEST(a_command_outlives_its_children)
{
	wean_cmd *cmd = make("/missing/program");
	struct wean_child child;

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(wean_cmd_spawn(cmd, &child), ENOENT);
		ck_assert_int_eq(child.stage, WEAN_STAGE_EXEC);
		wean_release(&child);
	}
	wean_cmd_free(cmd);
}
END_TEST

static Suite *cmd_suite(void)
{
	Suite *s = suite_create("cmd");
	TCase *given = tcase_create("given"), *members = tcase_create("members");
	TCase *errors = tcase_create("errors"), *life = tcase_create("life");
	TCase *root = case_that_needs(s, "root");

	suite_add_tcase(s, given);
	suite_add_tcase(s, members);
	suite_add_tcase(s, errors);
	suite_add_tcase(s, life);
	tcase_add_unchecked_fixture(given, scratch_make, scratch_remove);
	tcase_add_test(given, arguments_come_in_their_order_and_are_copied);
	tcase_add_test(given, variables_are_set_and_removed_over_the_callers);
	tcase_add_test(given, a_cleared_environment_has_what_is_set_afterwards);
	tcase_add_test(given, the_directory_is_the_last_that_was_given);
	tcase_add_test(given, descriptors_are_entries_in_their_order);
	given = case_that_needs(s, "table");
	tcase_add_unchecked_fixture(given, scratch_make, scratch_remove);
	tcase_add_test(given, limits_are_set);
	given = case_that_needs(s, "kernel");
	tcase_add_unchecked_fixture(given, scratch_make, scratch_remove);
	tcase_add_test(given, members_are_set_with_their_flags);
	tcase_add_test(members, a_group_is_joined_by_its_number);
	tcase_add_test(root, ids_are_set_with_their_flags);
	tcase_add_loop_test(members, a_member_reaches_the_start_that_judges_it, 0, 8);
	tcase_add_loop_test(errors, a_bad_member_or_value_is_refused, 0, COUNT(bad_members));
	tcase_add_test(errors, the_first_error_sticks_and_every_later_call_returns_it);
	tcase_add_test(errors, no_command_is_an_error_and_freed_without_harm);
	tcase_add_loop_test(errors, a_call_with_what_cannot_be_is_refused, 0,
	                    COUNT(bad_calls));
	tcase_add_test(errors, no_program_makes_no_command_and_errno_says_why);
	tcase_add_test(errors, without_a_place_for_the_child_nothing_starts);
	tcase_add_test(life, one_command_is_started_as_often_as_wanted_and_changed_meanwhile);
	tcase_add_test(life, a_run_collects_and_its_result_outlives_the_command);
	tcase_add_test(life, a_command_outlives_its_children);
	return s;
}

RUN_WITH_STDIO_ALONE(cmd_suite)
