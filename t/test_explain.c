/* test_explain.c - the sentence for a start that failed, from the start that failed. */
#define _GNU_SOURCE
#include "spawning.h"

#include <link.h>
#include <sched.h>
#include <sys/mount.h>

/* Long enough for every sentence here but one about a long name. */
enum { TEXT = 8192 };

static void explains(const struct wean_child *child, char *const argv[],
                     const struct wean_options *opt, int error, const char *wanted)
{
	char text[TEXT];
	struct baseline b;

	memset(text, 'x', sizeof text);
	baseline_take(&b);
	int result = wean_explain(child, argv, opt, error, text, sizeof text);
	baseline_same(&b);
	ck_assert_int_eq(result, 0);
	ck_assert_ptr_nonnull(memchr(text, '\0', sizeof text));
	ck_assert_str_eq(text, wanted);
}

/* The start has to fail; in the sentence %s is scratch. */
static void says(char *const argv[], const struct wean_options *opt, const char *format)
{
	struct wean_child child;
	char wanted[TEXT];
	int error = wean_spawn(&child, argv, opt);

	ck_assert_msg(error, "it started: %s", format);
	ck_assert_int_lt(snprintf(wanted, sizeof wanted, format, scratch, scratch), TEXT);
	explains(&child, argv, opt, error, wanted);
}

static void says_of(const char *program, const char *format)
{
	char *argv[] = { (char *)program, NULL };

	says(argv, NULL, format);
}

/* ---- the request -------------------------------------------------------- */

START_TEST(a_bad_request_is_named)
{
	const struct wean_fd fds[] = {
		{ .kind = WEAN_NULL, .target = 7 },
		{ .kind = WEAN_KEEP, .target = 7 },
		{ .kind = WEAN_OPEN, .target = 8 },
	};
	struct wean_options opt = { .flags = 1ULL << 63 };
	char *none[] = { NULL };

	says(KID("exit"), &opt, "the request is not valid: Invalid argument");
	says(none, NULL, "the request is not valid: Invalid argument");
	opt = (struct wean_options){ .in = -1 };
	says(KID("exit"), &opt, "in is not valid: Invalid argument");
	opt = (struct wean_options){ .out = WEAN_SAME, .fds = fds, .nfds = 1 };
	says(KID("exit"), &opt, "out is not valid: Invalid argument");
	opt = (struct wean_options){ .out = WEAN_CLOSED, .err = WEAN_MERGE };
	says(KID("exit"), &opt, "err is not valid: Invalid argument");
	opt = (struct wean_options){ .fds = fds, .nfds = 2 };
	says(KID("exit"), &opt,
	     "entry 1 of fds gives descriptor 7 a second time: Invalid argument");
	opt = (struct wean_options){ .fds = fds + 2, .nfds = 1 };
	says(KID("exit"), &opt, "entry 0 of fds is not valid: Invalid argument");
}
END_TEST

START_TEST(a_descriptor_is_named)
{
	const struct wean_fd fds[] = {
		{ .kind = WEAN_DUP, .target = 9, .source = 777 },
		{ .kind = WEAN_KEEP, .target = 778 },
		{ .kind = WEAN_NULL, .target = INT_MAX },
		{ .kind = WEAN_SAME, .target = INT_MAX, .source = 1 },
		{ .kind = WEAN_OPEN, .target = 1, .path = "/absent/file" },
	};
	static const char *const sentences[] = {
		"cannot pass descriptor 777 as 9: Bad file descriptor",
		"cannot pass descriptor 778 as 778: Bad file descriptor",
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

	says_under(0, &opt, "cannot make a pipe for descriptor 0: Too many open files");
	opt = (struct wean_options){ .err = WEAN_PIPE };
	says_under(0, &opt, "cannot make a pipe for descriptor 2: Too many open files");
	opt = (struct wean_options){ .flags = WEAN_NEED_PIDFD };
	says_under(0, &opt, "cannot make a process: Too many open files");
	opt = (struct wean_options){ .in = WEAN_CLOSED, .out = WEAN_NULL };
	says_under(0, &opt, "cannot open '/dev/null' as descriptor 1: Too many open files");
}
END_TEST

/* ---- the program -------------------------------------------------------- */

#define ENOENT_TEXT ": No such file or directory"
#define EACCES_TEXT ": Permission denied"
#define UNEXECUTABLE " (it has no execute permission)" EACCES_TEXT

START_TEST(a_missing_program_is_told_from_one_that_is_not_found)
{
	char *env[] = { "PATH=/c", NULL }, *edit[] = { "PATH=/d", NULL };
	char *removed[] = { "PATH", NULL }, *argv[] = { "absent", NULL };
	struct wean_options opt = { .env = env };

	setenv("PATH", "/a:/b", 1);
	says_of("/absent/prog", "cannot run '/absent/prog'" ENOENT_TEXT);
	says_of("", "cannot find '' in PATH '/a:/b'" ENOENT_TEXT);
	says(argv, NULL, "cannot find 'absent' in PATH '/a:/b'" ENOENT_TEXT);
	says(argv, &opt, "cannot find 'absent' in PATH '/a:/b'" ENOENT_TEXT);
	opt.flags = WEAN_CHILD_PATH;
	says(argv, &opt, "cannot find 'absent' in PATH '/c'" ENOENT_TEXT);
	opt.env_edit = edit;
	says(argv, &opt, "cannot find 'absent' in PATH '/d'" ENOENT_TEXT);
	opt.env_edit = removed;
	says(argv, &opt,
	     "cannot find 'absent' in PATH '/usr/local/bin:/usr/bin:/bin'" ENOENT_TEXT);
	setenv("PATH", "", 1);
	says(argv, NULL, "cannot find 'absent' in PATH ''" ENOENT_TEXT);
	opt = (struct wean_options){ .file = "other" };
	says(argv, &opt, "cannot find 'other' in PATH ''" ENOENT_TEXT);
}
END_TEST

/* Whatever it is inside, and however it was come upon. */
START_TEST(a_program_that_may_not_be_executed_is_named)
{
	make_dir("dir");
	make_dir("bin");
	copy_kid("bin/elf", 0644);
	write_text("bin/script", 0644, "#!/bin/sh\nexit 0\n");
	write_text("bin/text", 0644, "exit 0\n");
	mkfifo(at("fifo"), 0755);
	setenv("PATH", at("bin"), 1);
	says_of(at("bin/text"), "cannot run '%s/bin/text'" UNEXECUTABLE);
	says_of(at("bin/elf"), "cannot run '%s/bin/elf'" UNEXECUTABLE);
	says_of(at("bin/script"), "cannot run '%s/bin/script'" UNEXECUTABLE);
	says_of("text", "cannot run '%s/bin/text'" UNEXECUTABLE);
	says_of("elf", "cannot run '%s/bin/elf'" UNEXECUTABLE);
	says_of("script", "cannot run '%s/bin/script'" UNEXECUTABLE);
	says_of(at("dir"), "cannot run '%s/dir' (it is a directory)" EACCES_TEXT);
	says_of(at("fifo"), "cannot run '%s/fifo' (it is not a regular file)" EACCES_TEXT);
}
END_TEST

START_TEST(what_a_user_may_not_execute_is_not_blamed_on_the_interpreter)
{
	if (geteuid() != 0)
		SKIP("needs another user's file");
	char *path = write_text("roots", 0744, "#!/bin/sh\nexit 0\n");
	become_nobody();
	says_of(path, "cannot run '%s/roots'" EACCES_TEXT);
}
END_TEST

START_TEST(a_file_system_without_execution_is_not_blamed_on_the_interpreter)
{
	char *dir = make_dir("noexec");

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", MS_NOEXEC, NULL))
		SKIP("no permission to mount");
	says_of(copy_kid("noexec/kid", 0755), "cannot run '%s/noexec/kid'" EACCES_TEXT);
	ck_assert_int_eq(umount(dir), 0);
}
END_TEST

START_TEST(a_missing_interpreter_is_named)
{
	make_dir("bin");
	write_text("bin/plain", 0755, "#!/absent/interp\n");
	write_text("bin/spaced", 0755, "#! \t/absent/interp -x y\n");
	write_text("bin/cr", 0755, "#!/bin/sh\r\nexit 0\r\n");
	write_text("bin/barred", 0755, "#!/etc/passwd\n");
	setenv("PATH", at("bin"), 1);
	for (int searched = 0; searched < 2; searched++) {
		says_of(searched ? "plain" : at("bin/plain"),
		        "cannot run '%s/bin/plain': its interpreter '/absent/interp'"
		        ENOENT_TEXT);
		says_of(searched ? "spaced" : at("bin/spaced"),
		        "cannot run '%s/bin/spaced': its interpreter '/absent/interp'"
		        ENOENT_TEXT);
		says_of(searched ? "cr" : at("bin/cr"),
		        "cannot run '%s/bin/cr': its interpreter '/bin/sh\\r' (the line "
		        "ends in a carriage return)" ENOENT_TEXT);
		says_of(searched ? "barred" : at("bin/barred"),
		        "cannot run '%s/bin/barred': its interpreter '/etc/passwd'"
		        EACCES_TEXT);
	}
}
END_TEST

/* The search went past the others. */
START_TEST(of_several_that_were_found_the_one_that_refused_is_named)
{
	char path[256];

	make_dir("a");
	make_dir("b");
	make_dir("c");
	write_text("a/x", 0755, "#!/absent/interp\n");
	write_text("b/x", 0644, "");
	write_text("c/x", 0755, "text\n");
	snprintf(path, sizeof path, "%s:%s", at("a"), at("b"));
	setenv("PATH", path, 1);
	says_of("x", "cannot run '%s/b/x'" UNEXECUTABLE);
	snprintf(path, sizeof path, "%s:%s:%s", at("a"), at("b"), at("c"));
	setenv("PATH", path, 1);
	says_of("x", "cannot run '%s/c/x' (neither a program for this machine nor a script "
	        "with a #! line): Exec format error");
}
END_TEST

START_TEST(a_missing_loader_is_named)
{
	size_t len;
	char *image = read_all(kid(), &len), wanted[TEXT];
	ElfW(Ehdr) *head = (void *)image;
	ElfW(Phdr) *segment = (void *)(image + head->e_phoff);

	while (segment->p_type != PT_INTERP)
		segment++;
	memcpy(image + segment->p_offset, "/no", 3);
	snprintf(wanted, sizeof wanted, "cannot run '%%s/no-loader': its interpreter '%s'"
	         ENOENT_TEXT, image + segment->p_offset);
	says_of(write_file("no-loader", 0755, image, len), wanted);
}
END_TEST

START_TEST(a_relative_program_is_looked_at_where_it_was_run)
{
	char *list[] = { "absent", "script", NULL }, *argv[] = { "./script", NULL };
	struct wean_options opt = { .dir = make_dir("deep") };

	write_text("deep/script", 0755, "#!/absent/interp\n");
	write_text("script", 0644, "elsewhere\n");
	ck_assert_int_eq(chdir(scratch), 0);
	says(argv, &opt,
	     "cannot run './script': its interpreter '/absent/interp'" ENOENT_TEXT);
	opt.candidates = list;
	says(argv, &opt,
	     "cannot run 'script': its interpreter '/absent/interp'" ENOENT_TEXT);
	opt.dir = "deep";
	opt.flags = WEAN_DIR_FD;
	ck_assert_int_ge(opt.dirfd = open(scratch, O_PATH | O_CLOEXEC), 0);
	ck_assert_int_eq(chdir("/"), 0);
	says(argv, &opt,
	     "cannot run 'script': its interpreter '/absent/interp'" ENOENT_TEXT);
}
END_TEST

START_TEST(the_candidate_that_counts_is_named)
{
	char *list[] = { "/absent/1", NULL, "/absent/3", NULL };
	struct wean_options opt = { .candidates = list };

	list[1] = write_text("barred", 0644, "");
	says(KID("exit"), &opt, "cannot run '%s/barred'" UNEXECUTABLE);
	list[1] = "/absent/2";
	says(KID("exit"), &opt, "cannot run '/absent/3'" ENOENT_TEXT);
}
END_TEST

START_TEST(what_is_no_program_is_named)
{
	char *busy = copy_kid("busy", 0755);
	int fd = open(busy, O_WRONLY | O_CLOEXEC);

	says_of(write_text("text", 0755, "text\n"),
	        "cannot run '%s/text' (neither a program for this machine nor a script "
	        "with a #! line): Exec format error");
	says_of(busy, "cannot run '%s/busy': Text file busy");
	close(fd);
}
END_TEST

/* ---- too long ----------------------------------------------------------- */

static char *long_text(const char *begin, size_t len)
{
	char *text = malloc(len + 1);

	memset(text, 'x', len);
	memcpy(text, begin, strlen(begin));
	text[len] = '\0';
	return text;
}

START_TEST(what_is_too_long_is_named)
{
	size_t most = (size_t)sysconf(_SC_PAGESIZE) * 32;
	char *big = long_text("BIG=", most + 5), *env[] = { "A=1", big, NULL };
	char *argv[] = { "exit", "0", NULL, NULL };
	struct wean_options opt = { .file = "/bin/sh", .env = env };
	char wanted[TEXT];

	snprintf(wanted, sizeof wanted, "cannot run '/bin/sh': environment variable BIG "
	         "has %zu bytes, more than one string may have: Argument list too long",
	         most + 5);
	says(argv, &opt, wanted);
	opt.env = NULL;
	opt.env_edit = env;
	says(argv, &opt, wanted);
	opt.env_edit = NULL;
	argv[2] = long_text("", most);
	snprintf(wanted, sizeof wanted, "cannot run '/bin/sh': argument 2 has %zu bytes, "
	         "more than one string may have: Argument list too long", most);
	says(argv, &opt, wanted);
}
END_TEST

/* A quarter of the stack's limit is for all; what does not reach the child counts
   for nothing. */
START_TEST(too_much_of_everything_is_named)
{
	size_t most = (size_t)sysconf(_SC_PAGESIZE) * 32;
	char *argv[] = { "x", long_text("", most - 1), NULL };
	char *env[] = { long_text("A=", most - 1), long_text("REMOVED=", most), NULL };
	char *edit[] = { "REMOVED", long_text("A=", most - 1), NULL };
	struct wean_options opt = { .file = "/bin/sh", .env = env, .env_edit = edit };
	char wanted[TEXT];
	struct rlimit stack;

	ck_assert_int_eq(getrlimit(RLIMIT_STACK, &stack), 0);
	stack.rlim_cur = most * 4;
	ck_assert_int_eq(setrlimit(RLIMIT_STACK, &stack), 0);
	/* Each string with its NUL and its pointer. */
	snprintf(wanted, sizeof wanted, "cannot run '/bin/sh': arguments and environment "
	         "have %zu bytes, more than both may have: Argument list too long",
	         2 + most + most + 3 * sizeof(char *));
	says(argv, &opt, wanted);
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
	        "cannot run '/absent/\\t\\n\\r\\x01\\x1f\\x7f \xc3\xa9\xff%%s''" ENOENT_TEXT);
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
	struct wean_child child = { .stage = WEAN_STAGE_EXEC, .index = -1 };
	char text[TEXT];

	for (int error = 1; error < 134; error++)
		ck_assert_int_eq(wean_explain(&child, NULL, NULL, error, text, sizeof text), 0);
	ck_assert_int_eq(wean_spawn(&child, NULL, NULL), EINVAL);
	explains(&child, NULL, NULL, EINVAL, "the request is not valid: Invalid argument");
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *explain_suite(void)
{
	Suite *s = suite_create("explain");
	TCase *t = tcase_create("sentences");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, a_bad_request_is_named);
	tcase_add_test(t, a_descriptor_is_named);
	tcase_add_test(t, a_directory_is_named);
	tcase_add_test(t, a_shortage_of_descriptors_is_named);
	tcase_add_test(t, a_missing_program_is_told_from_one_that_is_not_found);
	tcase_add_test(t, a_program_that_may_not_be_executed_is_named);
	tcase_add_test(t, what_a_user_may_not_execute_is_not_blamed_on_the_interpreter);
	tcase_add_test(t, a_file_system_without_execution_is_not_blamed_on_the_interpreter);
	tcase_add_test(t, a_missing_interpreter_is_named);
	tcase_add_test(t, of_several_that_were_found_the_one_that_refused_is_named);
	tcase_add_test(t, a_missing_loader_is_named);
	tcase_add_test(t, a_relative_program_is_looked_at_where_it_was_run);
	tcase_add_test(t, the_candidate_that_counts_is_named);
	tcase_add_test(t, what_is_no_program_is_named);
	tcase_add_test(t, what_is_too_long_is_named);
	tcase_add_test(t, too_much_of_everything_is_named);
	tcase_add_test(t, a_death_before_the_program_is_named);
	suite_add_tcase(s, t);

	t = tcase_create("text");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, what_is_not_visible_is_written_out);
	tcase_add_test(t, a_text_that_is_too_small_is_cut_and_terminated);
	tcase_add_test(t, without_a_place_for_the_text_there_is_an_error);
	tcase_add_test(t, a_request_without_argv_is_explained);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(explain_suite)
