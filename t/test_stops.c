/* test_stops.c - a stop from the terminal, as by Ctrl-Z, meets a child on its way to its
   program.  It must not be left there: the caller would wait with it, for ever. */
#define _GNU_SOURCE
#include <sched.h>

#include "pty.h"

static const int stops[] = { SIGTSTP, SIGTTIN, SIGTTOU };

enum { STOPS = sizeof stops / sizeof *stops };

/* ---- before the mask is the program's ---- */

static void act_stops(pid_t child)
{
	for (int i = 0; i < STOPS; i++)
		kill(child, stops[i]);
}

/* The child is held while it opens a file, and is not even stopped for a moment: its
   caller would get a SIGCHLD.  0: nothing holds it here. */
static int survives_stops(struct wean_options opt)
{
	struct wean_child child;
	struct trap trap;

	ticks = 0;
	handle(SIGCHLD, on_tick);
	if (!trap_set(&trap, "opened", act_stops))
		return 0;
	const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 8, .path = trap.path };
	opt.fds = &fd;
	opt.nfds = 1;
	opt.in = WEAN_PIPE;
	start(&child, KID("exit-on-eof"), &opt);
	trap_sprung(&trap);
	ck_assert_int_eq(ticks, 0);
	close(child.in);
	child.in = -1;
	ck_assert_int_eq(finish(&child).code, 0);
	return 1;
}

static void stop_new_groups_in_front(const struct pty *p)
{
	for (int i = 0; i < WAYS; i++) {
		const struct wean_options opt = {
			.ttyfd = p->slave,
			.flags = WEAN_FOREGROUND | WEAN_NEW_GROUP | way(i),
		};
		if (!survives_stops(opt))
			SKIP("no leases on %s", scratch);
	}
}

START_TEST(stops_that_wait_for_who_goes_in_front_are_forgotten)
{
	in_session(stop_new_groups_in_front);
}
END_TEST

/* The caller's own, which is as good as any. */
static struct wean_options joining(int i)
{
	return (struct wean_options){ .pgid = getpgrp(),
	                              .flags = WEAN_JOIN_GROUP | way(i) };
}

START_TEST(stops_that_wait_for_who_joins_a_group_are_forgotten)
{
	if (!survives_stops(joining(_i)))
		SKIP("no leases on %s", scratch);
}
END_TEST

/* Forgetting must not leave a trace in the program's dispositions. */
static void look_at_dispositions(const struct pty *p)
{
	const unsigned long long all = WEAN_SIG(SIGTSTP) | WEAN_SIG(SIGTTIN)
	                               | WEAN_SIG(SIGTTOU);

	for (int i = 0; i < WAYS; i++)
		for (int ignored = 0; ignored < 8; ignored++) {
			struct wean_options opt = {
				.ttyfd = p->slave,
				.flags = WEAN_FOREGROUND | WEAN_NEW_GROUP | way(i),
			};
			for (int s = 0; s < STOPS; s++)
				if (ignored >> s & 1)
					opt.sigignore |= WEAN_SIG(stops[s]);
			struct report *r = reported(&opt);
			ck_assert_uint_eq(report_mask(r, "sigign") & all, opt.sigignore);
			ck_assert_uint_eq(report_mask(r, "sigcgt"), 0);
			ck_assert_uint_eq(report_mask(r, "sigpnd"), 0);
			report_free(r);
		}
}

START_TEST(the_stops_are_ignored_in_the_program_only_where_asked_for)
{
	in_session(look_at_dispositions);
}
END_TEST

/* ---- between the mask and the exec ---- */

static int status_line(pid_t pid, const char *prefix, char *line, int size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	read_line(path, prefix, line, size);
	return *line != '\0';
}

static int is_pending(pid_t pid, int sig)
{
	char line[128];
	unsigned long long set = 0;

	if (status_line(pid, "ShdPnd:", line, sizeof line))
		sscanf(line, "ShdPnd: %llx", &set);
	return (set >> (sig - 1) & 1) != 0;
}

static char state(pid_t pid)
{
	char line[128], c = '?';

	if (status_line(pid, "State:", line, sizeof line))
		sscanf(line, "State: %c", &c);
	return c;
}

/* By when it waits again, it has seen the signal.  Whether it is stopped then or not:
   nobody here lets it go on. */
static void act_stop(pid_t child)
{
	kill(child, SIGTSTP);
	while (is_pending(child, SIGTSTP) || state(child) == 'R')
		sched_yield();
}

static int stop_one_in_the_exec(struct wean_options opt)
{
	struct wean_child child;
	struct trap trap;

	if (!trap_set(&trap, "executed", act_stop))
		return 0;
	opt.file = trap.path;
	start(&child, KID("exit", "6"), &opt);
	trap_sprung(&trap);
	ck_assert_int_eq(finish(&child).code, 6);
	return 1;
}

static void stop_in_the_exec(const struct pty *p)
{
	for (int i = 0; i < WAYS; i++)
		if (!stop_one_in_the_exec((struct wean_options){
			.ttyfd = p->slave,
			.flags = WEAN_FOREGROUND | WEAN_NEW_GROUP | way(i) }))
			SKIP("no leases on %s", scratch);
}

START_TEST(a_stop_that_meets_a_slow_exec_does_not_hold_the_caller)
{
	in_session(stop_in_the_exec);
}
END_TEST

START_TEST(a_stop_in_a_joined_group_does_not_hold_the_caller_either)
{
	if (!stop_one_in_the_exec(joining(_i)))
		SKIP("no leases on %s", scratch);
}
END_TEST

/* ---- as it comes ---- */

enum { STARTS = 300, SECONDS = 60 };

static volatile int *started; /* of STARTS; the test and its forks share it */

/* The program itself may be stopped at any time: only SIGKILL is certain. */
static void start_under_ctrl_z(const struct pty *p)
{
	struct wean_child child;

	handle(SIGTSTP, on_tick); /* meant for the child, by whoever presses the key */
	for (*started = 0; *started < STARTS; ++*started) {
		const struct wean_options opt = {
			.ttyfd = p->slave, .in = WEAN_NULL,
			.flags = WEAN_FOREGROUND | WEAN_NEW_GROUP | way(*started % WAYS),
		};
		start(&child, KID("pause"), &opt);
		ck_assert_int_eq(wean_kill(&child, SIGKILL), 0);
		ck_assert_int_eq(finish(&child).value, SIGKILL);
	}
}

static pid_t press_ctrl_z(const struct pty *p)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (write(p->master, "\x1a", 1) == 1)
			;
		_exit(0);
	}
	return pid;
}

static void silence(const struct pty *p)
{
	struct termios t;

	ck_assert_int_eq(tcgetattr(p->slave, &t), 0);
	t.c_lflag &= ~(tcflag_t)ECHO;
	ck_assert_int_eq(tcsetattr(p->slave, TCSANOW, &t), 0);
}

static pid_t lead_under_ctrl_z(const struct pty *p)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		lead_session(p);
		start_under_ctrl_z(p);
		_exit(0);
	}
	return pid;
}

START_TEST(however_often_ctrl_z_is_pressed_every_start_returns)
{
	struct pty p = pty_open();
	int status;

	started = mmap(NULL, sizeof *started, PROT_READ | PROT_WRITE,
	               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne((void *)(uintptr_t)started, MAP_FAILED);
	silence(&p);
	pid_t leader = lead_under_ctrl_z(&p), presser = press_ctrl_z(&p);
	handle(SIGALRM, on_tick);
	alarm(SECONDS);
	pid_t over = waitpid(leader, &status, 0);
	kill(presser, SIGKILL);
	if (over != leader) {
		pid_t group = tcgetpgrp(p.master);
		kill(leader, SIGKILL);
		kill(-group, SIGKILL);
		ck_abort_msg("start %d never returned", *started);
	}
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(*started, STARTS);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *stops_suite(void)
{
	Suite *s = suite_create("stops");
	TCase *t = tcase_create("on the way");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, stops_that_wait_for_who_goes_in_front_are_forgotten);
	tcase_add_loop_test(t, stops_that_wait_for_who_joins_a_group_are_forgotten, 0,
	                    WAYS);
	tcase_add_test(t, the_stops_are_ignored_in_the_program_only_where_asked_for);
	tcase_add_test(t, a_stop_that_meets_a_slow_exec_does_not_hold_the_caller);
	tcase_add_loop_test(t, a_stop_in_a_joined_group_does_not_hold_the_caller_either,
	                    0, WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("as it comes");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, SECONDS + 10);
	tcase_add_test(t, however_often_ctrl_z_is_pressed_every_start_returns);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(stops_suite)
