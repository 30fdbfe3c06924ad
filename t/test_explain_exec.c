/* test_explain_exec.c - the sentence for a program that could not be executed. */
#define _GNU_SOURCE
#include "explaining.h"

#include <link.h>
#include <sched.h>
#include <sys/mount.h>

/* ---- the program -------------------------------------------------------- */

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
	write_text("bin/both", 0644, "#!/absent/interp\n");
	mkfifo(at("fifo"), 0755);
	setenv("PATH", at("bin"), 1);
	says_of(at("bin/text"), "cannot run '%s/bin/text'" UNEXECUTABLE);
	says_of(at("bin/elf"), "cannot run '%s/bin/elf'" UNEXECUTABLE);
	says_of(at("bin/script"), "cannot run '%s/bin/script'" UNEXECUTABLE);
	says_of(at("bin/both"), "cannot run '%s/bin/both'" UNEXECUTABLE);
	says_of("text", "cannot run '%s/bin/text'" UNEXECUTABLE);
	says_of("elf", "cannot run '%s/bin/elf'" UNEXECUTABLE);
	says_of("script", "cannot run '%s/bin/script'" UNEXECUTABLE);
	says_of("both", "cannot run '%s/bin/both'" UNEXECUTABLE);
	says_of(at("dir"), "cannot run '%s/dir' (it is a directory)" EACCES_TEXT);
	says_of(at("fifo"),
	        "cannot run '%s/fifo' (it is not a regular file)" EACCES_TEXT);
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
		        "cannot run '%s/bin/barred': its interpreter '/etc/passwd' "
		        "(it has no execute permission)" EACCES_TEXT);
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
	says_of("x",
	        "cannot run '%s/c/x' (neither a program for this machine nor a script "
	        "with a #! line): Exec format error");
}
END_TEST

START_TEST(a_missing_loader_is_named)
{
	size_t len;
	char *image = read_all("/proc/self/exe", &len), wanted[TEXT];
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

/* ------------------------------------------------------------------------- */

static Suite *explain_exec_suite(void)
{
	Suite *s = suite_create("explain exec");
	TCase *t = tcase_create("sentences");

	tcase_set_tags(t, "exec");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, a_missing_program_is_told_from_one_that_is_not_found);
	tcase_add_test(t, a_program_that_may_not_be_executed_is_named);
	tcase_add_test(t, a_missing_interpreter_is_named);
	tcase_add_test(t, of_several_that_were_found_the_one_that_refused_is_named);
	tcase_add_test(t, a_missing_loader_is_named);
	tcase_add_test(t, a_relative_program_is_looked_at_where_it_was_run);
	tcase_add_test(t, the_candidate_that_counts_is_named);
	tcase_add_test(t, what_is_no_program_is_named);
	tcase_add_test(t, what_is_too_long_is_named);
	tcase_add_test(t, too_much_of_everything_is_named);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "exec root");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, what_a_user_may_not_execute_is_not_blamed_on_the_interpreter);
	tcase_add_test(t,
	               a_file_system_without_execution_is_not_blamed_on_the_interpreter);
	return s;
}

RUN_SUITE(explain_exec_suite)
