/* test_kill.c - a signal reaches the child, and nobody else. */
#define _GNU_SOURCE
#include "waiting.h"

#include <sched.h>

/* ---- helpers ------------------------------------------------------------ */

static struct wean_child child;

/* Ready when this returns: whatever the words before "pause" do is done. */
#define start_ready(with_pidfd, ...) \
	start_and_read(with_pidfd, KID(__VA_ARGS__, "--then", "echo", "ready", "--then", \
	                               "pause"))

static void start_and_read(int with_pidfd, char *const argv[])
{
	struct wean_options opt = { .out = WEAN_PIPE };

	start(&child, argv, &opt);
	await_ready(child.out);
	if (!with_pidfd)
		without_pidfd(&child);
}

/* ---- what a signal does ------------------------------------------------- */

START_TEST(a_signal_arrives)
{
	struct wean_status s;

	start_ready(_i, "on", "10", "42");
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(wean_kill(&child, 0), 0);
	ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
	ck_assert_int_eq(wean_kill(&child, SIGUSR1), 0);
	ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
	ck_assert_int_eq(s.kind, WEAN_EXITED);
	ck_assert_int_eq(s.value, 42);
	wean_release(&child);
	start_ready(_i, "ignore", "15");
	ck_assert_int_eq(wean_kill(&child, SIGTERM), 0);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), 0);
	s = finish(&child);
	ck_assert_int_eq(s.kind, WEAN_SIGNALED);
	ck_assert_int_eq(s.value, SIGKILL);
}
END_TEST

START_TEST(a_zombie_takes_signals_and_a_child_waited_for_does_not)
{
	struct wean_status s;

	start(&child, KID("exit", "3"), NULL);
	if (!_i)
		without_pidfd(&child);
	await_zombie(child.pid);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(wean_kill(&child, 0), 0);
		ck_assert_int_eq(wean_kill(&child, SIGTERM), 0);
		ck_assert_int_eq(wean_kill(&child, SIGKILL), 0);
	}
	ck_assert_int_eq(wean_wait(&child, 0, &s), 0);
	ck_assert_int_eq(s.kind, WEAN_EXITED);
	ck_assert_int_eq(s.value, 3);
	ck_assert_int_eq(wean_kill(&child, 0), ESRCH);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	wean_release(&child);
	ck_assert_int_eq(wean_kill(&child, 0), ESRCH);
}
END_TEST

START_TEST(a_signal_that_there_is_not_is_refused)
{
	static const int none[] = { -1, 65, 1000, INT_MAX, INT_MIN };

	start_ready(_i, "ignore", "1");
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		ck_assert_int_eq(wean_kill(&child, none[i]), EINVAL);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), 0);
	finish(&child);
}
END_TEST

/* It is the caller whose ids change here; to the kernel that is the same.  The child
   ends with its input. */
START_TEST(a_child_with_other_ids_gives_eperm)
{
	struct wean_options opt = { .in = WEAN_PIPE };

	if (geteuid() != 0)
		SKIP("needs a child of another user");
	start(&child, KID("exit-on-eof"), &opt);
	if (!_i)
		without_pidfd(&child);
	become_nobody();
	ck_assert_int_eq(wean_kill(&child, 0), EPERM);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), EPERM);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
	close(child.in);
	child.in = -1;
	ck_assert_int_eq(finish(&child).code, 0);
}
END_TEST

/* ---- from a handler ----------------------------------------------------- */

static volatile sig_atomic_t first_result = -1, worst, kept_errno = 1;

static void kill_in_handler(int sig)
{
	int error = errno;

	(void)sig;
	errno = BASELINE_ERRNO;
	int result = wean_kill(&child, SIGTERM);
	if (errno != BASELINE_ERRNO)
		kept_errno = 0;
	if (first_result < 0)
		first_result = result;
	if (result && result != ESRCH)
		worst = result;
	errno = error;
}

START_TEST(a_handler_may_kill_the_child_that_is_waited_for)
{
	struct itimerval each = { { 0, 2000 }, { 0, 2000 } };
	struct wean_status s;

	start_ready(_i, "ignore", "1");
	handle(SIGALRM, kill_in_handler);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &each, NULL), 0);
	ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
	ck_assert_int_eq(s.kind, WEAN_SIGNALED);
	ck_assert_int_eq(s.value, SIGTERM);
	ck_assert_int_eq(first_result, 0);
	ck_assert_int_eq(worst, 0);
	ck_assert_int_eq(kept_errno, 1);
	wean_release(&child);
}
END_TEST

/* ---- at the moment of the end ------------------------------------------- */

static void *kill_until_gone(void *arg)
{
	int *error = arg;

	while ((*error = wean_kill(&child, 0)) == 0)
		sched_yield();
	return NULL;
}

START_TEST(threads_may_kill_while_another_one_waits)
{
	enum { N = 4 };
	pthread_t threads[N];
	int errors[N];

	for (int round = 0; round < 20; round++) {
		start(&child, KID("exit", "0"), NULL);
		for (int i = 0; i < N; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL,
			                                kill_until_gone, &errors[i]), 0);
		ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
		for (int i = 0; i < N; i++) {
			ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
			ck_assert_int_eq(errors[i], ESRCH);
		}
		wean_release(&child);
	}
}
END_TEST

START_TEST(at_the_moment_of_the_end_either_is_right)
{
	for (int i = 0; i < 200; i++) {
		start(&child, KID("exit", "7"), NULL);
		if (!_i)
			without_pidfd(&child);
		for (volatile int spin = 0; spin < i * 2000; spin++)
			;
		ck_assert_int_eq(wean_kill(&child, SIGTERM), 0);
		struct wean_status s = finish(&child);
		ck_assert_int_eq(s.value, s.kind == WEAN_EXITED ? 7 : SIGTERM);
	}
}
END_TEST

/* ---- nobody else -------------------------------------------------------- */

/* The kernel's struct, in the version that can ask for a pid. */
struct clone_request {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size;
};

/* A process of the caller's that has this pid. */
static pid_t fork_as(pid_t pid)
{
	struct clone_request r = { .exit_signal = SIGCHLD,
	                           .set_tid = (uint64_t)(uintptr_t)&pid,
	                           .set_tid_size = 1 };
	long got = syscall(SYS_clone3, &r, sizeof r);

	if (got == 0)
		for (;;)
			pause();
	return (pid_t)got;
}

/* Its pid is that of the child, which the host has reaped behind our back. */
START_TEST(a_stranger_with_the_same_pid_is_neither_killed_nor_waited_for)
{
	struct wean_status s;
	int status;

	start(&child, KID("exit", "6"), NULL);
	ck_assert_int_ge(child.pidfd, 0);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	pid_t stranger = fork_as(child.pid);
	if (stranger < 0)
		SKIP("cannot choose a pid: %s", strerror(errno));
	ck_assert_int_eq(stranger, child.pid);
	ck_assert_int_eq(wean_kill(&child, 0), ESRCH);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	ck_assert_int_eq(wean_wait(&child, 20, &s), 0);
	if (kernel_has(6, 15)) {
		ck_assert_int_eq(s.kind, WEAN_EXITED);
		ck_assert_int_eq(s.value, 6);
	} else {
		ck_assert_int_eq(s.kind, WEAN_UNKNOWN);
	}
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	wean_release(&child);
	ck_assert_int_eq(waitpid(stranger, &status, WNOHANG), 0);
	ck_assert_int_eq(kill(stranger, SIGUSR1), 0);
	ck_assert_int_eq(waitpid(stranger, &status, 0), stranger);
	ck_assert_int_eq(WTERMSIG(status), SIGUSR1);
}
END_TEST

/* Without a pidfd the library's own word that it was waited for has to do. */
START_TEST(a_stranger_is_safe_once_the_child_was_waited_for)
{
	int status;

	start(&child, KID("exit", "6"), NULL);
	if (!_i)
		without_pidfd(&child);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	pid_t stranger = fork_as(child.pid);
	if (stranger < 0)
		SKIP("cannot choose a pid: %s", strerror(errno));
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	ck_assert_int_eq(waitpid(stranger, &status, WNOHANG), 0);
	wean_release(&child);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	ck_assert_int_eq(kill(stranger, SIGUSR1), 0);
	ck_assert_int_eq(waitpid(stranger, &status, 0), stranger);
	ck_assert_int_eq(WTERMSIG(status), SIGUSR1);
}
END_TEST

/* Pid 0 would be the caller's group, -1 everybody. */
START_TEST(a_struct_without_a_child_kills_nobody)
{
	char *argv[] = { "/absent", NULL };

	memset(&child, 0, sizeof child);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	ck_assert_int_eq(wean_spawn(&child, argv, NULL), ENOENT);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	child.pid = -1;
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
}
END_TEST

/* ---- a start that is not back yet ---------------------------------------- */

static struct wean_result started;
static pthread_t starter;
static int killed_alone, killed_group, seen_pid, seen_out;

static void look_at_start(int sig)
{
	(void)sig;
	seen_pid = started.child.pid;
	seen_out = started.child.out;
	killed_alone = wean_kill(&started.child, 0);
	killed_group = wean_kill_group(&started.child, SIGKILL);
}

static void act_interrupt(pid_t pid)
{
	(void)pid;
	pthread_kill(starter, SIGUSR1);
}

/* The trap holds the exec, and what comes meanwhile is let in before the call is back. */
START_TEST(a_handler_that_comes_during_the_start_finds_the_child)
{
	struct wean_options opt = { .out = WEAN_PIPE, .flags = WEAN_NEW_GROUP | way(_i % 2) };
	struct trap trap;
	int error;

	starter = pthread_self();
	handle(SIGUSR1, look_at_start);
	if (!trap_set(&trap, "held", act_interrupt))
		SKIP("no leases on %s", scratch);
	char *argv[] = { trap.path, (char[]){ "pause" }, NULL };
	error = _i / 2 ? wean_run(argv, &opt, NULL, &started)
	               : wean_spawn(&started.child, argv, &opt);
	trap_sprung(&trap);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(killed_alone, 0);
	ck_assert_int_eq(killed_group, 0);
	ck_assert_int_eq(seen_pid, started.child.pid);
	ck_assert_int_ge(seen_out, 0);
	ck_assert_int_eq(wean_wait(&started.child, -1, &started.status), 0);
	assert_signaled(&started.status, SIGKILL);
	wean_result_free(&started);
}
END_TEST

/* ------------------------------------------------------------------------- */

/* Each with a pidfd, 1, and without one, 0. */
static Suite *kill_suite(void)
{
	Suite *s = suite_create("kill");
	TCase *t = tcase_create("kill");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, a_signal_arrives, 0, 2);
	tcase_add_loop_test(t, a_zombie_takes_signals_and_a_child_waited_for_does_not, 0,
	                    2);
	tcase_add_loop_test(t, a_signal_that_there_is_not_is_refused, 0, 2);
	tcase_add_test(t, threads_may_kill_while_another_one_waits);
	tcase_add_loop_test(t, at_the_moment_of_the_end_either_is_right, 0, 2);
	tcase_add_test(t, a_struct_without_a_child_kills_nobody);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "signals");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, a_handler_may_kill_the_child_that_is_waited_for, 0, 2);
	tcase_add_loop_test(t, a_handler_that_comes_during_the_start_finds_the_child, 0, 4);

	t = case_that_needs(s, "root");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, a_child_with_other_ids_gives_eperm, 0, 2);
	tcase_add_test(t, a_stranger_with_the_same_pid_is_neither_killed_nor_waited_for);
	tcase_add_loop_test(t, a_stranger_is_safe_once_the_child_was_waited_for, 0, 2);
	return s;
}

RUN_SUITE(kill_suite)
