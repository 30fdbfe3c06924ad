/* test_wait.c - the end of a child: its status, once and for ever, in time. */
#define _GNU_SOURCE
#include "waiting.h"

#include <poll.h>

/* Goes on, as the words say, when it is let go. */
static void start_told(struct wean_child *child, char *const argv[], int with_pidfd)
{
	struct wean_options opt = { HELD };

	start(child, argv, &opt);
	if (!with_pidfd)
		without_pidfd(child);
}

/* ---- the status --------------------------------------------------------- */

START_TEST(every_exit_value_is_told)
{
	for (int value = 0; value < 256; value++) {
		struct wean_child child;
		struct wean_status s;
		char text[8];
		snprintf(text, sizeof text, "%d", value);
		start(&child, KID("exit", text), NULL);
		memset(&s, 0xa5, sizeof s);
		ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
		assert_exited(&s, value);
		wean_release(&child);
	}
}
END_TEST

/* What the kernel tells of the same death without the library. */
static int status_by_fork(char *const argv[])
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execv(argv[0], argv);
		_exit(126);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* _i: with a core file where the system makes one. */
START_TEST(every_deadly_signal_is_told)
{
	struct rlimit limit;
	int cores = 0;

	getrlimit(RLIMIT_CORE, &limit);
	limit.rlim_cur = _i ? limit.rlim_max : 0;
	ck_assert_int_eq(setrlimit(RLIMIT_CORE, &limit), 0);
	ck_assert_int_eq(chdir(scratch), 0);
	for (int sig = 1; sig <= 64; sig++) {
		struct wean_status s;
		struct wean_child child;
		char text[8];
		snprintf(text, sizeof text, "%d", sig);
		signal(sig, SIG_DFL);
		if (sig == SIGCHLD || (sig >= SIGCONT && sig <= SIGURG) ||
		    sig == SIGWINCH)
			continue;
		int wanted = status_by_fork(KID("kill", text));
		ck_assert_msg(WIFSIGNALED(wanted), "%d", sig);
		start(&child, KID("kill", text), NULL);
		ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
		assert_signaled(&s, sig);
		ck_assert_int_eq(s.core, !!WCOREDUMP(wanted));
		cores += s.core;
		wean_release(&child);
	}
	if (_i && limit.rlim_max && !cores)
		SKIP("no core is dumped here");
}
END_TEST

START_TEST(the_resources_used_are_told)
{
	struct wean_child child;
	struct wean_status s;
	struct rusage all;

	start(&child, KID("burn", "40"), NULL);
	ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
	wean_release(&child);
	getrusage(RUSAGE_CHILDREN, &all);
	ck_assert_int_ge(s.user_us + s.system_us, 39000);
	ck_assert_int_eq(s.user_us,
	                 all.ru_utime.tv_sec * 1000000LL + all.ru_utime.tv_usec);
	ck_assert_int_eq(s.system_us,
	                 all.ru_stime.tv_sec * 1000000LL + all.ru_stime.tv_usec);
	ck_assert_int_gt(s.maxrss_kb, 100);
	ck_assert_int_eq(s.maxrss_kb, all.ru_maxrss);
}
END_TEST

START_TEST(a_child_that_is_over_gives_the_same_status_for_ever)
{
	struct wean_child child;
	struct wean_status first, again;
	static const int timeouts[] = { 0, -1, 1, INT_MAX, INT_MIN };

	start_told(&child, KID("exit-on-eof", "--then", "exit", "9"), _i);
	ck_assert_int_eq(wean_kill(&child, SIGUSR1), 0);
	ck_assert_int_eq(wean_wait(&child, -1, &first), 0);
	assert_signaled(&first, SIGUSR1);
	for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; i++) {
		memset(&again, 0xa5, sizeof again);
		ck_assert_int_eq(wean_wait(&child, timeouts[i], &again), 0);
		ck_assert_mem_eq(&again, &first, sizeof first);
		ck_assert_int_eq(wean_wait(&child, timeouts[i], NULL), 0);
	}
	wean_release(&child);
	ck_assert_int_eq(wean_wait(&child, 0, &again), ESRCH);
}
END_TEST

/* ---- time --------------------------------------------------------------- */

START_TEST(a_wait_that_ran_out_is_no_end)
{
	struct wean_child child;
	struct wean_status s;

	start_told(&child, KID("cat", "--then", "exit", "6"), _i);
	ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
	for (int ms = 1; ms < 40; ms += 9) {
		long long begin = now_ms();
		ck_assert_int_eq(wean_wait(&child, ms, &s), ETIMEDOUT);
		ck_assert_int_ge(now_ms() - begin, ms);
	}
	let_go(&child);
	ck_assert_int_eq(wean_wait(&child, INT_MAX, &s), 0);
	assert_exited(&s, 6);
	wean_release(&child);
}
END_TEST

START_TEST(a_wait_ends_with_the_child)
{
	for (int timeout = -1; timeout < 60000; timeout += 30000) {
		struct wean_child child;
		struct wean_status s;
		start(&child, KID("sleep", "20", "--then", "exit", "6"), NULL);
		if (!_i)
			without_pidfd(&child);
		ck_assert_int_eq(wean_wait(&child, timeout, &s), 0);
		assert_exited(&s, 6);
		wean_release(&child);
	}
}
END_TEST

/* No number is left for a pidfd, neither at the start nor for the wait. */
START_TEST(without_any_descriptor_left_a_child_is_waited_for)
{
	struct rlimit limit, used_up;
	struct wean_child child;
	struct wean_status s;

	for (int fd = 0; fd < 4; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open_at(fd);
	getrlimit(RLIMIT_NOFILE, &limit);
	used_up = limit;
	used_up.rlim_cur = 4;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &used_up), 0);
		int error = wean_spawn(&child, KID("sleep", "20", "--then", "exit", "9"),
		                       NULL);
		int waited = error ? -1 : wean_wait(&child, i ? -1 : 60000, &s);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		ck_assert_int_eq(error, 0);
		ck_assert_int_eq(child.pidfd, -1);
		ck_assert_int_eq(waited, 0);
		assert_exited(&s, 9);
		wean_release(&child);
	}
}
END_TEST

START_TEST(a_handler_that_interrupts_changes_nothing)
{
	struct wean_child child;
	struct wean_status s;

	tick();
	start(&child, KID("sleep", "50", "--then", "exit", "3"), NULL);
	if (!_i)
		without_pidfd(&child);
	ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
	assert_exited(&s, 3);
	wean_release(&child);
	start_told(&child, KID("cat", "--then", "exit", "4"), _i);
	long long begin = now_ms();
	ck_assert_int_eq(wean_wait(&child, 50, &s), ETIMEDOUT);
	ck_assert_int_ge(now_ms() - begin, 50);
	ck_assert_int_gt(ticks, 10);
	let_go(&child);
	ck_assert_int_eq(wean_wait(&child, 60000, &s), 0);
	assert_exited(&s, 4);
	stop_ticking();
	wean_release(&child);
}
END_TEST

/* ---- the pidfd ---------------------------------------------------------- */

START_TEST(a_pidfd_that_was_closed_but_left_in_the_struct_is_told)
{
	struct wean_child child;
	struct wean_status s;
	size_t which;

	start_told(&child, KID("cat", "--then", "exit", "4"), 1);
	close(child.pidfd);
	ck_assert_int_eq(wean_wait(&child, 0, &s), EBADF);
	ck_assert_int_eq(wean_wait(&child, -1, &s), EBADF);
	ck_assert_int_eq(wean_wait_any(&child, 1, 0, &which), EBADF);
	ck_assert_int_eq(wean_kill(&child, 0), EBADF);
	child.pidfd = -1;
	let_go(&child);
	ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
	assert_exited(&s, 4);
	wean_release(&child);
}
END_TEST

static int in_a_copy(struct wean_child *child, int timeout_ms, int error, int kind)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct wean_status s = { .kind = -1 };
		_exit(wean_wait(child, timeout_ms, &s) != error || s.kind != kind);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* It can be waited for by its parent alone. */
START_TEST(a_forked_copy_of_the_host_neither_hangs_nor_invents_a_status)
{
	struct wean_child child;
	struct wean_status s;

	start_told(&child, KID("cat", "--then", "exit", "4"), 1);
	ck_assert_int_eq(in_a_copy(&child, 0, ETIMEDOUT, -1), 0);
	ck_assert_int_eq(in_a_copy(&child, 20, ETIMEDOUT, -1), 0);
	let_go(&child);
	ck_assert_int_eq(waitid(P_PID, (id_t)child.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT),
	                 0);
	ck_assert_int_eq(in_a_copy(&child, -1, 0, WEAN_UNKNOWN), 0);
	ck_assert_int_eq(wean_wait(&child, 0, &s), 0);
	assert_exited(&s, 4);
	wean_release(&child);
}
END_TEST

START_TEST(poll_finds_the_pidfd_readable_from_the_end_of_the_child_on)
{
	struct wean_child child;
	struct wean_status s;

	start_told(&child, KID("cat", "--then", "exit", "4"), 1);
	struct pollfd p = { .fd = child.pidfd, .events = POLLIN };
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	let_go(&child);
	ck_assert_int_eq(poll(&p, 1, -1), 1);
	ck_assert(p.revents & POLLIN);
	ck_assert_int_eq(wean_wait(&child, 0, &s), 0);
	assert_exited(&s, 4);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	ck_assert(p.revents & POLLIN);
	wean_release(&child);
}
END_TEST

/* As by the watchers of some event loops. */
START_TEST(a_pidfd_that_was_made_non_blocking_is_waited_for)
{
	static const int timeouts[] = { -1, 60000 };
	struct wean_child child;
	struct wean_status s;

	start_told(&child, KID("cat", "--then", "sleep", "20", "--then", "exit", "6"), 1);
	ck_assert_int_eq(fcntl(child.pidfd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
	let_go(&child);
	ck_assert_int_eq(wean_wait(&child, timeouts[_i], &s), 0);
	assert_exited(&s, 6);
	wean_release(&child);
}
END_TEST

/* ------------------------------------------------------------------------- */

/* Each with a pidfd, 1, and without one, 0. */
static Suite *wait_suite(void)
{
	Suite *s = suite_create("wait");
	TCase *t = tcase_create("status and time");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, every_exit_value_is_told);
	tcase_add_loop_test(t, every_deadly_signal_is_told, 0, 2);
	tcase_add_loop_test(t, a_child_that_is_over_gives_the_same_status_for_ever, 0, 2);
	tcase_add_loop_test(t, a_wait_that_ran_out_is_no_end, 0, 2);
	tcase_add_loop_test(t, a_wait_ends_with_the_child, 0, 2);
	tcase_add_test(t, without_any_descriptor_left_a_child_is_waited_for);
	tcase_add_loop_test(t, a_handler_that_interrupts_changes_nothing, 0, 2);
	tcase_add_test(t, a_pidfd_that_was_closed_but_left_in_the_struct_is_told);
	tcase_add_test(t, a_forked_copy_of_the_host_neither_hangs_nor_invents_a_status);
	tcase_add_loop_test(t, a_pidfd_that_was_made_non_blocking_is_waited_for, 0, 2);
	tcase_add_test(t, poll_finds_the_pidfd_readable_from_the_end_of_the_child_on);
	suite_add_tcase(s, t);
	/* The only child there was. */
	tcase_add_test(case_that_needs(s, "default"), the_resources_used_are_told);
	return s;
}

RUN_SUITE(wait_suite)
