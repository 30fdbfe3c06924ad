/* test_command.c - wean(1), run as a user runs it. */
#define _GNU_SOURCE
#include "commanding.h"

#include <regex.h>

/* ---- helpers ------------------------------------------------------------ */

/* Its group is one that Check does not end, so its input is one that ends with the
   test. */
static pid_t begin_held(char *const argv[], int out, int err, void (*prepare)(void))
{
	int input[2];

	ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
	pid_t pid = begin_with(argv, input[0], out, err, prepare);
	close(input[0]);
	return pid;
}

static struct result result(char *const argv[])
{
	return result_of(argv, NULL);
}

static void leaves_with(int code, char *const argv[])
{
	struct result r = result(argv);

	ck_assert_int_eq(r.code, code);
	ck_assert_str_eq(r.err, "");
	ck_assert_str_eq(r.out, "");
}

/* On descriptor 2; in it %s is scratch. */
static void complains(int code, char *const argv[], const char *format)
{
	struct result r = result(argv);
	char wanted[PATH_MAX];

	snprintf(wanted, sizeof wanted, format, scratch);
	ck_assert_str_eq(r.err, wanted);
	ck_assert_str_eq(r.out, "");
	ck_assert_int_eq(r.code, code);
}

static void assert_matches(const char *text, const char *pattern)
{
	regex_t regex;

	ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	ck_assert_msg(!regexec(&regex, text, 0, NULL, 0), "'%s' is not %s", text,
	              pattern);
	regfree(&regex);
}

/* ---- the status --------------------------------------------------------- */

START_TEST(it_leaves_with_the_status_of_the_program)
{
	leaves_with(0, WEAN(kid(), "exit", "0"));
	leaves_with(3, WEAN(kid(), "exit", "3"));
	leaves_with(255, WEAN("--", kid(), "exit", "255"));
	leaves_with(128 + SIGTERM, WEAN(kid(), "kill", "15"));
	leaves_with(128 + SIGKILL, WEAN("--", kid(), "kill", "9"));
}
END_TEST

#define ENOENT_TEXT ": No such file or directory\n"
#define EACCES_TEXT ": Permission denied\n"

START_TEST(what_could_not_start_is_127_or_126_with_the_reason)
{
	make_dir("dir");
	write_text("text", 0755, "text\n");
	setenv("PATH", "/a:/b", 1);
	complains(127, WEAN("absent"), "wean: cannot find 'absent' in PATH '/a:/b'"
	          ENOENT_TEXT);
	complains(127, WEAN("--", "/absent/x"),
	          "wean: cannot run '/absent/x'" ENOENT_TEXT);
	complains(126, WEAN(at("dir")), "wean: cannot run '%s/dir' (it is a directory)"
	          EACCES_TEXT);
	complains(126, WEAN(at("text")),
	          "wean: cannot run '%s/text' (neither a program for this machine nor a "
	          "script with a #! line): Exec format error\n");
	complains(126, WEAN("-C", "/absent", kid(), "exit", "0"),
	          "wean: cannot enter directory '/absent'" ENOENT_TEXT);
	complains(126, WEAN("-k", "77", kid(), "exit", "0"),
	          "wean: cannot pass descriptor 77 as 77 (77 is not open): "
	          "Bad file descriptor\n");
}
END_TEST

#define HINT "\nTry 'wean --help'.\n"

START_TEST(a_wrong_command_line_is_125_and_starts_nothing)
{
	static char *const numbers[] = { "", "x", "3x", " ", "-1", "2147483648",
	                                 "99999999999999999999" };
	char wanted[256];

	complains(125, WEAN(NULL), "wean: no program is named" HINT);
	complains(125, WEAN("-v"), "wean: no program is named" HINT);
	complains(125, WEAN("--"), "wean: no program is named" HINT);
	complains(125, WEAN("-k"), "wean: -k needs an argument" HINT);
	complains(125, WEAN("-C"), "wean: -C needs an argument" HINT);
	complains(125, WEAN("-x", kid(), "echo", "started"),
	          "wean: there is no option -x" HINT);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		snprintf(wanted, sizeof wanted, "wean: '%s' is not a descriptor" HINT,
		         numbers[i]);
		complains(125, WEAN("-k", numbers[i], kid(), "echo", "started"), wanted);
	}
}
END_TEST

/* Inherited from a host that ignores SIGCHLD: never 0 for a failure. */
static void ignore_children(void)
{
	signal(SIGCHLD, SIG_IGN);
}

START_TEST(an_ignored_sigchld_hides_no_status)
{
	struct result r = result_of(WEAN(kid(), "exit", "3"), ignore_children);

	ck_assert_int_eq(r.code, kernel_has(6, 15) ? 3 : 255);
}
END_TEST

/* ---- what the program gets ---------------------------------------------- */

static void open_several(void)
{
	const int numbers[] = { 5, 63, 300 };

	for (size_t i = 0; i < 3; i++)
		if (dup2(1, numbers[i]) < 0)
			_exit(98);
}

static struct report *report_of(char *const argv[])
{
	struct result r = result_of(argv, open_several);

	ck_assert_str_eq(r.err, "");
	ck_assert_int_eq(r.code, 0);
	struct report *report = report_read_file(at("out"));
	ck_assert_ptr_nonnull(report);
	return report;
}

static void inherits(char *const argv[], const char *list)
{
	struct report *r = report_of(argv);

	ck_assert_str_eq(report_fd_list(r), list);
	report_free(r);
}

START_TEST(a_program_inherits_what_it_is_given_and_nothing_else)
{
	inherits(WEAN(kid(), "report"), "0 1 2");
	inherits(WEAN("-k", "63", kid(), "report"), "0 1 2 63");
	inherits(WEAN("-k300", "-k", "5", "--", kid(), "report"), "0 1 2 5 300");
	inherits(WEAN("-k", "5", "-k", "63", "-k", "300", kid(), "report"),
	         "0 1 2 5 63 300");
	inherits(WEAN("-k", "1", "-k", "0", kid(), "report"), "0 1 2");
	complains(125, WEAN("-k", "1", "-k", "1", kid(), "exit", "0"),
	          "wean: descriptor 1 is given twice\nTry 'wean --help'.\n");
}
END_TEST

START_TEST(arguments_pass_untouched)
{
	static const char *const wanted[] = { "report", "1", "-v", "--", "", "-k", "-C x",
	                                      "--help" };

	for (int dashes = 0; dashes < 2; dashes++) {
		struct report *r = report_of(
			dashes ? WEAN("--", kid(), "report", "1", "-v", "--", "", "-k",
			              "-C x", "--help")
			       : WEAN(kid(), "report", "1", "-v", "--", "", "-k", "-C x",
			              "--help"));
		for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
			ck_assert_str_eq(report_arg(r, i + 1, NULL), wanted[i]);
		ck_assert_ptr_null(report_arg(r, sizeof wanted / sizeof *wanted + 1,
		                              NULL));
		ck_assert_str_eq(report_arg(r, 0, NULL), kid());
		report_free(r);
	}
}
END_TEST

START_TEST(environment_directory_and_signals_are_those_of_the_command)
{
	make_dir("sub");
	ck_assert_int_eq(setenv("MARK", "a b", 1), 0);
	ck_assert_int_eq(chdir(scratch), 0);
	struct report *r = report_of(WEAN(kid(), "report"));
	for (size_t i = 0; environ[i]; i++)
		ck_assert_str_eq(report_env(r, i, NULL), environ[i]);
	ck_assert_str_eq(report_value(r, "cwd"), scratch);
	ck_assert_uint_eq(report_mask(r, "sigblk"), 0);
	ck_assert_uint_eq(report_mask(r, "sigign") & 0x7fffffff, 0);
	report_free(r);
	r = report_of(WEAN("-C", "sub", kid(), "report"));
	ck_assert_str_eq(report_value(r, "cwd"), at("sub"));
	report_free(r);
}
END_TEST

START_TEST(v_tells_what_was_done)
{
	struct result r = result_of(WEAN("-v", "-k", "63", "-k5", kid(), "echo", "x"),
	                            open_several);
	char pattern[PATH_MAX + 128];

	ck_assert_int_eq(r.code, 0);
	ck_assert_str_eq(r.out, "x\n");
	snprintf(pattern, sizeof pattern, "^wean: %s started as [1-9][0-9]* by "
	         "[a-z0-9_]+\\+[a-z_]+ in [0-9]+ us, given 0 1 2 63 5\n$", kid());
	assert_matches(r.err, pattern);
	r = result(WEAN("-v", "--", kid(), "exit", "4"));
	ck_assert_int_eq(r.code, 4);
	assert_matches(r.err, " us, given 0 1 2\n$");
	complains(127, WEAN("-v", "/absent"), "wean: cannot run '/absent'" ENOENT_TEXT);
}
END_TEST

/* ---- signals ------------------------------------------------------------ */

/* One of the sets in /proc/PID/status. */
static int is_in(pid_t pid, int sig, const char *key)
{
	char path[64], line[256];
	unsigned long long set = 0;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, key, strlen(key)))
			set = strtoull(line + strlen(key), NULL, 16);
	fclose(f);
	return (set & WEAN_SIG(sig)) != 0;
}

/* Its program has said that it is ready. */
static pid_t begin_ready(char *const argv[], void (*prepare)(void), int err)
{
	int ends[2];
	char c;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = begin_held(argv, ends[1], err, prepare);
	close(ends[1]);
	do
		ck_assert_int_eq(read(ends[0], &c, 1), 1);
	while (c != '\n');
	close(ends[0]);
	return pid;
}

#define ON(sig, code) \
	WEAN(kid(), "on", sig, code, "--then", "echo", "ready", "--then", "cat")

START_TEST(what_is_sent_to_the_command_reaches_the_program)
{
	pid_t pid = begin_ready(ON("15", "7"), NULL, 2);

	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(code_of(pid), 7);
	pid = begin_ready(ON("1", "8"), NULL, 2);
	ck_assert_int_eq(kill(pid, SIGHUP), 0);
	ck_assert_int_eq(code_of(pid), 8);
	pid = begin_ready(ON("1", "8"), NULL, 2);
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(code_of(pid), 128 + SIGTERM);
}
END_TEST

/* As the terminal does: to the whole group. */
START_TEST(the_terminals_signals_are_the_programs_to_handle)
{
	static const int sigs[] = { SIGINT, SIGQUIT };
	static char *const numbers[] = { "2", "3" };

	for (int i = 0; i < 2; i++) {
		pid_t pid = begin_ready(ON(numbers[i], "9"), NULL, 2);
		ck_assert_int_eq(kill(-pid, sigs[i]), 0);
		ck_assert_int_eq(code_of(pid), 9);
		/* To pass it on as well would be once too often. */
		pid = begin_ready(ON(numbers[i], "9"), NULL, 2);
		ck_assert_int_eq(kill(pid, sigs[i]), 0);
		ck_assert_int_eq(kill(pid, SIGTERM), 0);
		ck_assert_int_eq(code_of(pid), 128 + SIGTERM);
	}
}
END_TEST

static void ignore_hangups(void)
{
	signal(SIGHUP, SIG_IGN);
}

START_TEST(what_the_command_was_told_to_ignore_it_ignores)
{
	pid_t pid = begin_ready(ON("15", "7"), ignore_hangups, 2);

	ck_assert(is_in(pid, SIGHUP, "SigIgn:"));
	ck_assert_int_eq(kill(pid, SIGHUP), 0);
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(code_of(pid), 7);
}
END_TEST

/* The trap holds the program's start, and sends SIGTERM to its own only child, which is
   the command: that may neither die of it nor forget it. */
START_TEST(a_signal_during_the_start_reaches_the_program)
{
	struct trap trap;

	if (!trap_set(&trap, "held", act_term))
		SKIP("no leases on %s", scratch);
	pid_t pid = begin_held(WEAN(trap.path, "on", "15", "7", "--then", "cat"), 1, 2,
	                  NULL);
	int code = code_of(pid);
	trap_sprung(&trap);
	/* The program may not have its handler yet. */
	ck_assert_msg(code == 7 || code == 128 + SIGTERM, "%d", code);
}
END_TEST

/* ---- privileges --------------------------------------------------------- */

static void drop(void)
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	    setresuid(65534, 65534, 65534))
		_exit(97);
}

static int has_effect(char *set_uid_kid)
{
	struct result r = result_of((char *[]){ set_uid_kid, "report", NULL }, drop);
	struct report *report = report_read_file(at("out"));

	ck_assert_int_eq(r.code, 0);
	ck_assert_ptr_nonnull(report);
	int effective = !strcmp(report_value(report, "uid"), "65534 0 0");
	report_free(report);
	return effective;
}

/* Whoever sets PATH would choose what runs with another's rights. */
START_TEST(a_set_uid_program_may_not_search)
{
	if (geteuid() != 0)
		SKIP("needs to make a set-uid program");
	char *privileged = copy_program(command(), "privileged", 04755);
	char *program = copy_kid("program", 0755);
	if (!has_effect(copy_kid("set-uid", 04755)))
		SKIP("set-uid has no effect on %s", scratch);
	setenv("PATH", scratch, 1);
	struct result r = result_of((char *[]){ privileged, program, "exit", "5", NULL },
	                            drop);
	ck_assert_int_eq(r.code, 5);
	r = result_of((char *[]){ privileged, "program", "exit", "5", NULL }, drop);
	ck_assert_int_eq(r.code, 126);
	ck_assert_str_eq(r.err,
	                 "wean: a set-uid program may not search 'program' in PATH: "
	                 "Operation not permitted\n");
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *command_suite(void)
{
	Suite *s = suite_create("command");
	TCase *t = tcase_create("command");

	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 10);
	tcase_add_test(t, it_leaves_with_the_status_of_the_program);
	tcase_add_test(t, what_could_not_start_is_127_or_126_with_the_reason);
	tcase_add_test(t, a_wrong_command_line_is_125_and_starts_nothing);
	tcase_add_test(t, an_ignored_sigchld_hides_no_status);
	tcase_add_test(t, a_program_inherits_what_it_is_given_and_nothing_else);
	tcase_add_test(t, arguments_pass_untouched);
	tcase_add_test(t, environment_directory_and_signals_are_those_of_the_command);
	tcase_add_test(t, v_tells_what_was_done);
	tcase_add_test(t, a_signal_during_the_start_reaches_the_program);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "signals");
	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 10);
	tcase_add_test(t, what_is_sent_to_the_command_reaches_the_program);
	tcase_add_test(t, the_terminals_signals_are_the_programs_to_handle);
	tcase_add_test(t, what_the_command_was_told_to_ignore_it_ignores);

	t = case_that_needs(s, "root");
	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 10);
	tcase_add_test(t, a_set_uid_program_may_not_search);
	return s;
}

RUN_SUITE(command_suite)
