/* test_command_time.c - wean(1): the time limit, which ends the whole group, and the
   signals that a program in a group of its own gets by way of the command. */
#define _GNU_SOURCE
#include "commanding.h"

/* A command, its output, and a process that its program has forked. */
struct running {
	pid_t pid;
	int out;
	struct orphan held;
};

static int end(struct running *r)
{
	close(r->out);
	return code_of(r->pid);
}

/* ---- the limit --------------------------------------------------------- */

START_TEST(who_is_in_time_leaves_with_its_own_status)
{
	gives(7, "x\n", "", WEAN("-t", "600", kid(), "echo", "x", "--then", "exit", "7"));
	gives(0, "", "", WEAN("--timeout=600.5", kid(), "exit", "0"));
	gives(128 + SIGUSR1, "", "", WEAN("-t600", kid(), "kill", "10"));
	gives(127, "", "wean: cannot run '/absent': No such file or directory\n",
	      WEAN("-t", "600", "/absent"));
}
END_TEST

START_TEST(who_is_too_late_is_ended_with_124)
{
	long long begin = now_ms();

	gives(124, "", "", WEAN("-t", "0.06", kid(), "pause"));
	ck_assert_int_ge(now_ms() - begin, 60);
	gives(124, "", "", WEAN("-t", "0", kid(), "pause"));
	gives(124, "", "", WEAN("-t", "0.01", "--session", kid(), "pause"));
	gives(124, "", "", WEAN("-t", "0.01", "--grace", "0", kid(), "pause"));
	gives(124, "", "", WEAN("-t", "0.05", kid(), "on", "15", "3", "--then", "pause"));
	gives(124, "", "", WEAN("-t", "0.05", kid(), "stop", "--then", "exit", "5"));
}
END_TEST

/* What the command was started with ignored, its program ignores too. */
static void ignore_sigterm(void)
{
	signal(SIGTERM, SIG_IGN);
}

START_TEST(who_ignores_sigterm_has_the_grace_and_no_more)
{
	long long begin = now_ms();
	struct result r = result_of(WEAN("-t", "0.05", "--grace", "0.2", kid(), "pause"),
	                            ignore_sigterm);

	ck_assert_int_ge(now_ms() - begin, 250);
	ck_assert_int_eq(r.code, 124);
	begin = now_ms();
	r = result_of(WEAN("-t", "0.05", kid(), "pause"), ignore_sigterm);
	ck_assert_int_ge(now_ms() - begin, 2050);
	ck_assert_int_eq(r.code, 124);
	begin = now_ms();
	r = result_of(WEAN("--grace=0", "-t=.05", kid(), "pause"), ignore_sigterm);
	ck_assert_int_eq(r.code, 125);
	r = result_of(WEAN("--grace=0", "-t.05", kid(), "pause"), ignore_sigterm);
	ck_assert_int_lt(now_ms() - begin, 1900);
	ck_assert_int_eq(r.code, 124);
}
END_TEST

/* What a program left behind is in its group until it is reaped, which is for us. */
static void reap_until(pid_t last)
{
	siginfo_t si;

	while (waitid(P_ALL, 0, &si, WEXITED | WNOWAIT) == 0 && si.si_pid != last)
		waitpid(si.si_pid, NULL, 0);
}

/* The limit doubles until it is enough for the program to get as far as that. */
static void run_into_limit(struct running *r, char *verb, char *grace, char *extra)
{
	char limit[16], line[16] = "";

	adopt_orphans();
	for (int ms = 100; !line[0] && ms < 10000; ms *= 2) {
		snprintf(limit, sizeof limit, "%d.%03d", ms / 1000, ms % 1000);
		r->pid = begin_piped(WEAN("-t", limit, "--grace", grace, extra, kid(),
		                          verb, "600000", "--then", "pause"), &r->out);
		ssize_t n = read(r->out, line, sizeof line - 1);
		ck_assert_int_ge(n, 0);
		if (n == 0) {
			reap_until(r->pid);
			ck_assert_int_eq(end(r), 124);
		}
	}
	ck_assert_ptr_nonnull(strchr(line, '\n'));
	orphan_watch(&r->held, atoi(line));
}

START_TEST(the_limit_ends_the_whole_group)
{
	static char *const extras[] = { "-eA=1", "--session" };
	struct running r;

	run_into_limit(&r, "fork-hold", _i / 2 ? "0" : "60", extras[_i % 2]);
	ck_assert_int_eq(end(&r), 124);
	ck_assert_int_eq(orphan_code(&r.held), 128 + (_i / 2 ? SIGKILL : SIGTERM));
}
END_TEST

START_TEST(the_limit_does_not_reach_a_session_of_its_own)
{
	struct running r;

	run_into_limit(&r, "setsid-hold", "60", "-eA=1");
	ck_assert_int_eq(end(&r), 124);
	orphan_end(&r.held);
}
END_TEST

START_TEST(with_a_limit_the_program_leads_a_group)
{
	struct report *r = REPORT("-t", "600");
	long pid = report_number(r, "pid");

	reports_number(r, "pgid", pid);
	ck_assert_int_ne(report_number(r, "sid"), pid);
	report_free(r);
	r = REPORT("-t", "600", "--session");
	pid = report_number(r, "pid");
	reports_number(r, "pgid", pid);
	reports_number(r, "sid", pid);
	report_free(r);
	r = REPORT("-t", "600", "--group");
	reports_number(r, "pgid", report_number(r, "pid"));
	report_free(r);
	r = REPORT("--grace", "600");
	reports_number(r, "pgid", report_number(r, "ppid"));
	report_free(r);
}
END_TEST

/* ---- signals ----------------------------------------------------------- */

static const struct {
	int sig;
	char *number;
} forwarded[] = {
	{ SIGTERM, "15" }, { SIGHUP, "1" }, { SIGINT, "2" }, { SIGQUIT, "3" },
};

enum { FORWARDED = sizeof forwarded / sizeof *forwarded };

static char *const apart[] = { "--group", "--session", "-t600" };

enum { APART = sizeof apart / sizeof *apart };

/* Ready is told on 2. */
static void begin_ready(struct running *r, char *const argv[])
{
	int out[2], err[2];

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
	r->pid = begin(argv, out[1], err[1], NULL);
	r->out = out[0];
	close(out[1]);
	close(err[1]);
	await_ready(err[0]);
	close(err[0]);
}

static void await_handler(pid_t pid, int sig)
{
	while (!catches(pid, sig))
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* And its grandchild, which has no handler of its own. */
START_TEST(a_signal_to_the_command_reaches_the_programs_group)
{
	int sig = forwarded[_i / APART].sig;
	struct running r;

	adopt_orphans();
	begin_ready(&r, WEAN(apart[_i % APART], kid(), "fork-hold", "600000", "--then",
	                     "on", forwarded[_i / APART].number, "40", "--then", "say",
	                     "2", "ready", "--then", "pause"));
	orphan_watch(&r.held, read_pid(r.out));
	await_handler(r.pid, sig);
	ck_assert_int_eq(kill(r.pid, sig), 0);
	ck_assert_int_eq(end(&r), 40);
	ck_assert_int_eq(orphan_code(&r.held), 128 + sig);
}
END_TEST

/* The terminal would send them to both. */
START_TEST(who_shares_the_group_is_not_sent_the_terminals_signals)
{
	int sig = _i ? SIGQUIT : SIGINT;
	struct running r;

	begin_ready(&r, WEAN(kid(), "on", "15", "41", "--then", "say", "2", "ready",
	                     "--then", "pause"));
	await_handler(r.pid, SIGTERM);
	ck_assert_int_eq(kill(r.pid, sig), 0);
	ck_assert_int_eq(kill(r.pid, SIGTERM), 0);
	ck_assert_int_eq(end(&r), 41);
}
END_TEST

/* Also when it comes after the limit: nothing else is expected of a machine that needs
   a second for the start. */
START_TEST(a_program_that_survives_a_signal_is_still_under_the_limit)
{
	char text[64] = "";
	int err[2];

	ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
	pid_t pid = begin(WEAN("-t", "1", "--grace", "0", kid(), "ignore", "1", "--then",
	                       "say", "2", "ready", "--then", "pause"), 1, err[1], NULL);
	close(err[1]);
	while (!strchr(text, '\n') && read(err[0], text + strlen(text), 1) == 1)
		;
	if (text[0] && catches(pid, SIGHUP))
		ck_assert_int_eq(kill(pid, SIGHUP), 0);
	ck_assert_int_eq(code_of(pid), 124);
	close(err[0]);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *command_time_suite(void)
{
	Suite *s = suite_create("command_time");
	TCase *t = tcase_create("command_time");

	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_tags(t, "signals");
	tcase_set_timeout(t, 20);
	tcase_add_test(t, who_is_in_time_leaves_with_its_own_status);
	tcase_add_test(t, who_is_too_late_is_ended_with_124);
	tcase_add_test(t, who_ignores_sigterm_has_the_grace_and_no_more);
	tcase_add_loop_test(t, the_limit_ends_the_whole_group, 0, 4);
	tcase_add_test(t, the_limit_does_not_reach_a_session_of_its_own);
	tcase_add_test(t, with_a_limit_the_program_leads_a_group);
	tcase_add_loop_test(t, a_signal_to_the_command_reaches_the_programs_group, 0,
	                    FORWARDED * APART);
	tcase_add_loop_test(t, who_shares_the_group_is_not_sent_the_terminals_signals, 0,
	                    2);
	tcase_add_test(t, a_program_that_survives_a_signal_is_still_under_the_limit);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(command_time_suite)
