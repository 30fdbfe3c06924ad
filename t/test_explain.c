/* test_explain.c - the sentence for a start that failed, from the start that failed. */
#define _GNU_SOURCE
#include "explaining.h"

/* ---- the request -------------------------------------------------------- */

static const struct wean_fd one_fd = { .kind = WEAN_CLOSED, .target = 1 };

static const struct {
	struct wean_options opt;
	const char *sentence;
} bad_requests[] = {
	{ { .flags = 1ULL << 63 }, "an unknown flag is set" },
	{ { .reserved_int = { 0, 1 } }, "a reserved member is set" },
	{ { .reserved_ptr = { "" } }, "a reserved member is set" },
	{ { .pgid = 1 }, "pgid is set without WEAN_JOIN_GROUP" },
	{ { .umask = 1 }, "umask is set without WEAN_SET_UMASK" },
	{ { .nice = 1 }, "nice is set without WEAN_SET_NICE" },
	{ { .uid = 1 }, "uid is set without WEAN_SET_UID" },
	{ { .gid = 1 }, "gid is set without WEAN_SET_GID" },
	{ { .ngroups = 1 }, "groups are set without WEAN_SET_GROUPS" },
	{ { .dirfd = 1 }, "dirfd is set without WEAN_DIR_FD" },
	{ { .ttyfd = 1 }, "ttyfd is set without WEAN_CONTROL_TTY or WEAN_FOREGROUND" },
	{ { .cgroupfd = 1 }, "cgroupfd is set without WEAN_IN_CGROUP" },
	{ { .flags = WEAN_JOIN_GROUP | WEAN_NEW_GROUP, .pgid = 1 },
	  "WEAN_JOIN_GROUP goes with no group or session of its own" },
	{ { .flags = WEAN_CONTROL_TTY }, "WEAN_CONTROL_TTY needs WEAN_NEW_SESSION" },
	{ { .flags = WEAN_RESET_SIGNALS | WEAN_KEEP_IGNORED },
	  "WEAN_RESET_SIGNALS contradicts WEAN_KEEP_IGNORED" },
	{ { .flags = WEAN_JOIN_GROUP }, "pgid is not a group" },
	{ { .flags = WEAN_SET_UMASK, .umask = 01000 }, "umask is not 0 to 0777" },
	{ { .flags = WEAN_SET_NICE, .nice = 20 }, "nice is not -20 to 19" },
	{ { .pdeathsig = 65 }, "pdeathsig is not a signal" },
	{ { .flags = WEAN_SET_UID, .uid = ~0U }, "uid means no change to the kernel" },
	{ { .flags = WEAN_SET_GID, .gid = ~0U }, "gid means no change to the kernel" },
	{ { .sigdefault = 1, .sigignore = 1 },
	  "a signal is in sigdefault and in sigignore" },
	{ { .file = "x", .candidates = (char *[]){ NULL } },
	  "file and candidates are both set" },
	{ { .nfds = 1 }, "nfds is set without fds" },
	{ { .nlimits = 1 }, "nlimits is set without limits" },
	{ { .flags = WEAN_SET_GROUPS, .ngroups = 1 }, "ngroups is set without groups" },
	{ { .fds = &one_fd, .nfds = SIZE_MAX }, "a list is too long" },
	{ { .in = -1 }, "in is of no kind for it" },
	{ { .in = WEAN_MERGE }, "in is of no kind for it" },
	{ { .out = WEAN_SAME }, "out is of no kind for it" },
	{ { .out = WEAN_PIPE, .fds = &one_fd, .nfds = 1 },
	  "out is given by an entry of fds too" },
	{ { .out = WEAN_CLOSED, .err = WEAN_MERGE },
	  "err is to be the same as what is not open, or as itself" },
	{ { .candidates = (char *[]){ NULL } }, "the request names no program" },
	{ { .env_edit = (char *[]){ "A", "=1", NULL } }, "'=1' in env_edit names no variable" },
	{ { .env_edit = (char *[]){ "", NULL } }, "'' in env_edit names no variable" },
};

START_TEST(a_bad_request_is_named)
{
	char wanted[TEXT];

	snprintf(wanted, sizeof wanted, "%s: Invalid argument", bad_requests[_i].sentence);
	says(KID("exit"), &bad_requests[_i].opt, wanted);
}
END_TEST

static const struct {
	struct wean_fd fd;
	const char *sentence;
} bad_entries[] = {
	{ { .kind = 0 }, "is of no kind for fds" },
	{ { .kind = WEAN_PIPE }, "is of no kind for fds" },
	{ { .kind = WEAN_NULL, .target = -1 }, "has a negative target" },
	{ { .kind = WEAN_NULL, .reserved = 1 }, "has a reserved member set" },
	{ { .kind = WEAN_OPEN }, "has no path" },
	{ { .kind = WEAN_DUP, .mode = 1 }, "opens nothing, and uses no path, oflag or mode" },
	{ { .kind = WEAN_KEEP, .target = 1, .source = 2 },
	  "keeps its number, and source is another" },
	{ { .kind = WEAN_NULL, .source = 1 }, "uses no source" },
	{ { .kind = WEAN_SAME, .target = 5, .source = 5 },
	  "is to be the same as what is not open, or as itself" },
	{ { .kind = WEAN_CLOSED, .target = 7 }, "gives descriptor 7 a second time" },
};

START_TEST(a_bad_entry_is_named)
{
	const struct wean_fd fds[] = { { .kind = WEAN_NULL, .target = 7 }, bad_entries[_i].fd };
	struct wean_options opt = { .fds = fds, .nfds = 2 };
	char wanted[TEXT];

	snprintf(wanted, sizeof wanted, "entry 1 of fds %s: Invalid argument",
	         bad_entries[_i].sentence);
	says(KID("exit"), &opt, wanted);
}
END_TEST

/* As a caller makes them who forgets to zero them. */
START_TEST(options_that_were_never_set_are_explained)
{
	struct wean_options opt;
	struct wean_child child;
	char **argv = KID("exit", "0");

	for (int byte = 1; byte < 256; byte++) {
		memset(&opt, byte, sizeof opt);
		ck_assert_int_eq(wean_spawn(&child, argv, &opt), EINVAL);
		explains(&child, argv, &opt, EINVAL, "an unknown flag is set: Invalid argument");
	}
}
END_TEST

START_TEST(a_descriptor_is_named)
{
	const struct wean_fd fds[] = {
		{ .kind = WEAN_DUP, .target = 9, .source = 777 },
		{ .kind = WEAN_KEEP, .target = 778 },
		{ .kind = WEAN_DUP, .target = INT_MAX, .source = 2 },
		{ .kind = WEAN_NULL, .target = INT_MAX },
		{ .kind = WEAN_SAME, .target = INT_MAX, .source = 1 },
		{ .kind = WEAN_OPEN, .target = 1, .path = "/absent/file" },
	};
	static const char *const sentences[] = {
		"cannot pass descriptor 777 as 9 (777 is not open): Bad file descriptor",
		"cannot pass descriptor 778 as 778 (778 is not open): Bad file descriptor",
		("cannot pass descriptor 2 as 2147483647 (2147483647 is above the limit): "
		 "Bad file descriptor"),
		"cannot make descriptor 2147483647: Bad file descriptor",
		"cannot make descriptor 2147483647 the same as 1: Bad file descriptor",
		"cannot open '/absent/file' as descriptor 1: No such file or directory",
	};

	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
		struct wean_options opt = { .fds = &fds[i], .nfds = 1 };
		says(KID("exit"), &opt, sentences[i]);
	}
}
END_TEST

START_TEST(a_directory_is_named)
{
	struct wean_options opt = { .dir = "/absent" };
	char wanted[128];

	says(KID("exit"), &opt,
	     "cannot enter directory '/absent': No such file or directory");
	opt.dir = write_text("file", 0644, "");
	says(KID("exit"), &opt, "cannot enter directory '%s/file': Not a directory");
	opt = (struct wean_options){ .flags = WEAN_DIR_FD, .dirfd = 999 };
	says(KID("exit"), &opt,
	     "cannot enter directory of descriptor 999: Bad file descriptor");
	ck_assert_int_ge(opt.dirfd = open(scratch, O_PATH | O_CLOEXEC), 0);
	opt.dir = "absent";
	snprintf(wanted, sizeof wanted, "cannot enter directory 'absent' from descriptor "
	         "%d: No such file or directory", opt.dirfd);
	says(KID("exit"), &opt, wanted);
}
END_TEST

/* Under a limit of descriptors that holds for the start alone. */
static void says_under(rlim_t soft, const struct wean_options *opt, const char *wanted)
{
	struct rlimit limit, low;
	struct wean_child child;

	getrlimit(RLIMIT_NOFILE, &limit);
	low = limit;
	low.rlim_cur = soft;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	int error = wean_spawn(&child, KID("exit"), opt);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(error, EMFILE);
	explains(&child, KID("exit"), opt, error, wanted);
}

START_TEST(a_shortage_of_descriptors_is_named)
{
	struct wean_options opt = { .in = WEAN_PIPE };

	says_under(0, &opt, "cannot make a pipe for descriptor 0: " EMFILE_TEXT);
	opt = (struct wean_options){ .err = WEAN_PIPE };
	says_under(0, &opt, "cannot make a pipe for descriptor 2: " EMFILE_TEXT);
	opt = (struct wean_options){ .flags = WEAN_NEED_PIDFD };
	says_under(0, &opt, "cannot make a process: " EMFILE_TEXT);
	opt = (struct wean_options){ .in = WEAN_CLOSED, .out = WEAN_NULL };
	says_under(0, &opt,
	           "cannot open '/dev/null' as descriptor 1: " EMFILE_TEXT);
}
END_TEST

/* ---- killed ------------------------------------------------------------- */

START_TEST(a_death_before_the_program_is_named)
{
	struct wean_child child;
	struct trap trap;

	if (!trap_set(&trap, "held", act_kill))
		SKIP("no leases on %s", scratch);
	const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 8, .path = trap.path };
	struct wean_options opt = { .fds = &fd, .nfds = 1 };
	refused_in(&trap, &child, KID("exit", "0"), &opt,
	           (struct refusal){ ECANCELED, WEAN_STAGE_OPEN, 0 });
	explains(&child, KID("exit", "0"), &opt, ECANCELED,
	         "the child was killed before it ran the program, at step open: "
	         "Operation canceled");
}
END_TEST

/* ---- the text ----------------------------------------------------------- */

START_TEST(what_is_not_visible_is_written_out)
{
	says_of("/absent/\t\n\r\x01\x1f\x7f \xc3\xa9\xff%s'",
	        "cannot run '/absent/\\t\\n\\r\\x01\\x1f\\x7f \xc3\xa9\xff%%s''"
	        ENOENT_TEXT);
	setenv("PATH", "/a\tb", 1);
	says_of("x\ny", "cannot find 'x\\ny' in PATH '/a\\tb'" ENOENT_TEXT);
}
END_TEST

START_TEST(a_text_that_is_too_small_is_cut_and_terminated)
{
	static const char whole[] = "cannot run '/absent/\\x01prog'" ENOENT_TEXT;
	char *argv[] = { "/absent/\x01prog", NULL }, text[128];
	struct wean_child child;

	ck_assert_int_eq(wean_spawn(&child, argv, NULL), ENOENT);
	for (size_t size = 1; size <= sizeof whole; size++) {
		memset(text, '#', sizeof text);
		ck_assert_int_eq(wean_explain(&child, argv, NULL, ENOENT, text, size),
		                 size < sizeof whole ? EMSGSIZE : 0);
		ck_assert_uint_eq(strlen(text), size - 1);
		ck_assert_mem_eq(text, whole, size - 1);
		ck_assert_int_eq(text[size], '#');
	}
}
END_TEST

START_TEST(without_a_place_for_the_text_there_is_an_error)
{
	char *argv[] = { "/absent", NULL }, text[8] = "before";
	struct wean_child child;
	struct baseline b;

	ck_assert_int_eq(wean_spawn(&child, argv, NULL), ENOENT);
	baseline_take(&b);
	ck_assert_int_eq(wean_explain(&child, argv, NULL, ENOENT, text, 0), EINVAL);
	ck_assert_int_eq(wean_explain(&child, argv, NULL, ENOENT, NULL, 8), EINVAL);
	ck_assert_int_eq(wean_explain(NULL, argv, NULL, ENOENT, text, 8), EINVAL);
	baseline_same(&b);
	ck_assert_str_eq(text, "before");
}
END_TEST

START_TEST(a_request_without_argv_is_explained)
{
	const struct wean_options named[] = { { .file = "/absent" },
	                                      { .candidates = KID("exit") } };
	struct wean_child child = { .stage = WEAN_STAGE_EXEC, .index = -1 };
	char text[TEXT];

	for (int error = 1; error < 134; error++)
		ck_assert_int_eq(wean_explain(&child, NULL, NULL, error, text,
		                              sizeof text), 0);
	ck_assert_int_eq(wean_spawn(&child, NULL, NULL), EINVAL);
	explains(&child, NULL, NULL, EINVAL,
	         "the request names no program: Invalid argument");
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(wean_spawn(&child, NULL, &named[i]), EINVAL);
		explains(&child, NULL, &named[i], EINVAL, "argv is NULL: Invalid argument");
	}
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *explain_suite(void)
{
	Suite *s = suite_create("explain");
	TCase *t = tcase_create("sentences");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_bad_request_is_named, 0,
	                    sizeof bad_requests / sizeof *bad_requests);
	tcase_add_loop_test(t, a_bad_entry_is_named, 0,
	                    sizeof bad_entries / sizeof *bad_entries);
	tcase_add_test(t, options_that_were_never_set_are_explained);
	tcase_add_test(t, a_descriptor_is_named);
	tcase_add_test(t, a_directory_is_named);
	tcase_add_test(t, a_death_before_the_program_is_named);
	suite_add_tcase(s, t);

	t = tcase_create("text");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, what_is_not_visible_is_written_out);
	tcase_add_test(t, a_text_that_is_too_small_is_cut_and_terminated);
	tcase_add_test(t, without_a_place_for_the_text_there_is_an_error);
	tcase_add_test(t, a_request_without_argv_is_explained);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "pidfd default"); /* a fork makes a pipe before */
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, a_shortage_of_descriptors_is_named);
	return s;
}

RUN_SUITE(explain_suite)
