/* test_wait.c - the end of a child: its status, once and for ever, whoever else waits,
   reaps, traces or interrupts. */
#define _GNU_SOURCE
#include "spawning.h"

#include <poll.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <time.h>

/* ---- helpers ------------------------------------------------------------ */

static void close_pidfd(struct wean_child *child)
{
	ck_assert_int_ge(child->pidfd, 0);
	ck_assert_int_eq(close(child->pidfd), 0);
	child->pidfd = -1;
}

/* Leaves when told, by end_it(). */
static void start_held(struct wean_child *child, char *const argv[], int with_pidfd)
{
	struct wean_options opt = { .in = WEAN_PIPE };

	start(child, argv, &opt);
	if (!with_pidfd)
		close_pidfd(child);
}

static void end_it(struct wean_child *child)
{
	ck_assert_int_eq(close(child->in), 0);
	child->in = -1;
}

static void assert_exited(const struct wean_status *s, int value)
{
	ck_assert_int_eq(s->kind, WEAN_EXITED);
	ck_assert_int_eq(s->value, value);
	ck_assert_int_eq(s->code, value);
	ck_assert_int_eq(s->core, 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(s->reserved[i], 0);
}

static void assert_killed(const struct wean_status *s, int sig)
{
	ck_assert_int_eq(s->kind, WEAN_SIGNALED);
	ck_assert_int_eq(s->value, sig);
	ck_assert_int_eq(s->code, 128 + sig);
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static char process_state(pid_t pid)
{
	char path[64], line[512] = "", *end;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
	close(fd);
	end = n > 0 ? strrchr(line, ')') : NULL;
	return end ? end[2] : '?';
}

static void await_state(pid_t pid, char state)
{
	while (process_state(pid) != state)
		sched_yield();
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
		if (sig == SIGCHLD || (sig >= SIGCONT && sig <= SIGURG) || sig == SIGWINCH)
			continue;
		int wanted = status_by_fork(KID("kill", text));
		ck_assert_msg(WIFSIGNALED(wanted), "%d", sig);
		start(&child, KID("kill", text), NULL);
		ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
		assert_killed(&s, sig);
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
	ck_assert_int_eq(s.user_us, all.ru_utime.tv_sec * 1000000LL + all.ru_utime.tv_usec);
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

	start_held(&child, KID("exit-on-eof", "--then", "exit", "9"), _i);
	ck_assert_int_eq(wean_kill(&child, SIGUSR1), 0);
	ck_assert_int_eq(wean_wait(&child, -1, &first), 0);
	assert_killed(&first, SIGUSR1);
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

	start_held(&child, KID("cat", "--then", "exit", "6"), _i);
	ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
	for (int ms = 1; ms < 40; ms += 9) {
		long long begin = now_ms();
		ck_assert_int_eq(wean_wait(&child, ms, &s), ETIMEDOUT);
		ck_assert_int_ge(now_ms() - begin, ms);
	}
	end_it(&child);
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
			close_pidfd(&child);
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
		int error = wean_spawn(&child, KID("sleep", "20", "--then", "exit", "9"), NULL);
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
		close_pidfd(&child);
	ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
	assert_exited(&s, 3);
	wean_release(&child);
	start_held(&child, KID("cat", "--then", "exit", "4"), _i);
	long long begin = now_ms();
	ck_assert_int_eq(wean_wait(&child, 50, &s), ETIMEDOUT);
	ck_assert_int_ge(now_ms() - begin, 50);
	ck_assert_int_gt(ticks, 10);
	end_it(&child);
	ck_assert_int_eq(wean_wait(&child, 60000, &s), 0);
	assert_exited(&s, 4);
	stop_ticking();
	wean_release(&child);
}
END_TEST

/* ---- the pidfd ---------------------------------------------------------- */

START_TEST(poll_finds_the_pidfd_readable_once_the_child_is_over)
{
	struct wean_child child;
	struct wean_status s;

	start_held(&child, KID("cat", "--then", "exit", "4"), 1);
	struct pollfd p = { .fd = child.pidfd, .events = POLLIN };
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	end_it(&child);
	ck_assert_int_eq(poll(&p, 1, -1), 1);
	ck_assert(p.revents & POLLIN);
	ck_assert_int_eq(wean_wait(&child, 0, &s), 0);
	assert_exited(&s, 4);
	wean_release(&child);
}
END_TEST

/* ---- several threads ---------------------------------------------------- */

static struct wean_child shared;

struct waiter {
	pthread_t thread;
	int timeout, error;
	struct wean_status status;
};

static void *wait_for_shared(void *arg)
{
	struct waiter *w = arg;

	do
		w->error = wean_wait(&shared, w->timeout, &w->status);
	while (w->error == ETIMEDOUT);
	return NULL;
}

START_TEST(each_of_several_threads_gets_the_status)
{
	enum { N = 8 };
	static const int timeouts[] = { -1, 60000, 1, 0 };
	struct waiter waiters[N];

	for (int round = 0; round < 30; round++) {
		start_held(&shared, KID("cat", "--then", "exit", "77"), _i);
		for (int i = 0; i < N; i++) {
			waiters[i].timeout = timeouts[i % 4];
			memset(&waiters[i].status, 0, sizeof waiters[i].status);
			ck_assert_int_eq(pthread_create(&waiters[i].thread, NULL,
			                                wait_for_shared, &waiters[i]), 0);
		}
		end_it(&shared);
		for (int i = 0; i < N; i++) {
			ck_assert_int_eq(pthread_join(waiters[i].thread, NULL), 0);
			ck_assert_int_eq(waiters[i].error, 0);
			assert_exited(&waiters[i].status, 77);
			ck_assert_mem_eq(&waiters[i].status, &waiters[0].status,
			                 sizeof(struct wean_status));
		}
		wean_release(&shared);
	}
}
END_TEST

/* ---- somebody else reaps ------------------------------------------------ */

/* Right, or honestly unknown where the kernel does not tell: never a success that
   nobody saw. */
static void assert_right_or_unknown(const struct wean_status *s, int exact, int kind,
                                    int value)
{
	if (exact || s->kind != WEAN_UNKNOWN) {
		ck_assert_int_eq(s->kind, kind);
		ck_assert_int_eq(s->value, value);
		ck_assert_int_eq(s->code, kind == WEAN_EXITED ? value : 128 + value);
	} else {
		ck_assert_int_eq(s->value, 0);
		ck_assert_int_eq(s->code, 255);
		ck_assert_int_eq(s->core, 0);
	}
}

/* Each way to wait, on children that end so or so. */
static void waits_where_others_reap(int with_pidfd)
{
	static const int timeouts[] = { -1, 60000, 0 };
	int exact = with_pidfd && kernel_has(6, 15);

	for (int i = 0; i < 36; i++) {
		char *argv[] = { kid(), "cat", "--then", i % 3 < 2 ? "exit" : "kill",
		                 i % 3 == 0 ? "0" : i % 3 == 1 ? "5" : "9", NULL };
		struct wean_child child;
		struct wean_status s, again;
		start_held(&child, argv, with_pidfd);
		ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
		end_it(&child);
		int error, timeout = timeouts[i / 3 % 3];
		while ((error = wean_wait(&child, timeout, &s)) == ETIMEDOUT && timeout == 0)
			;
		ck_assert_int_eq(error, 0);
		assert_right_or_unknown(&s, exact, i % 3 < 2 ? WEAN_EXITED : WEAN_SIGNALED,
		                        i % 3 == 0 ? 0 : i % 3 == 1 ? 5 : 9);
		ck_assert_int_eq(wean_wait(&child, -1, &again), 0);
		ck_assert_mem_eq(&s, &again, sizeof s);
		ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
		wean_release(&child);
	}
}

START_TEST(a_host_that_ignores_sigchld_gets_a_status)
{
	ck_assert(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	waits_where_others_reap(_i);
}
END_TEST

static void reap_everything(int sig)
{
	int error = errno;

	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = error;
}

START_TEST(a_host_whose_handler_reaps_gets_a_status)
{
	handle(SIGCHLD, reap_everything);
	waits_where_others_reap(_i);
}
END_TEST

static volatile int stop;

static void *reap_in_a_loop(void *arg)
{
	while (!stop)
		if (waitpid(-1, NULL, 0) < 0)
			sched_yield();
	return arg;
}

START_TEST(a_host_whose_thread_reaps_gets_a_status)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, reap_in_a_loop, NULL), 0);
	waits_where_others_reap(_i);
	stop = 1;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(a_child_reaped_long_before_the_wait_is_over)
{
	struct wean_child child;
	struct wean_status s;
	int status;

	start_held(&child, KID("cat", "--then", "exit", "8"), _i);
	end_it(&child);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert_int_eq(wean_wait(&child, 60000, &s), 0);
	assert_right_or_unknown(&s, _i && kernel_has(6, 15), WEAN_EXITED, 8);
	wean_release(&child);
}
END_TEST

/* ---- stopped, traced ---------------------------------------------------- */

START_TEST(a_stopped_child_is_not_over)
{
	struct wean_child child;
	struct wean_status s;

	start_held(&child, KID("stop", "--then", "exit", "5"), _i);
	await_state(child.pid, 'T');
	ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
	ck_assert_int_eq(wean_wait(&child, 20, &s), ETIMEDOUT);
	ck_assert_int_eq(wean_kill(&child, SIGCONT), 0);
	ck_assert_int_eq(wean_wait(&child, -1, &s), 0);
	assert_exited(&s, 5);
	wean_release(&child);
}
END_TEST

/* Traces the child, tells so, and keeps its end to itself until told to let go. */
static pid_t start_tracer(pid_t child, int tell, int let_go)
{
	pid_t pid = fork();
	char c;

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	if (ptrace(PTRACE_SEIZE, child, NULL, NULL) || write(tell, "", 1) != 1)
		_exit(errno);
	while (read(let_go, &c, 1) < 0)
		;
	_exit(waitpid(child, NULL, __WALL) == child ? 0 : 99);
}

START_TEST(a_traced_child_is_not_lost)
{
	int told[2], go[2], status = 0;
	struct wean_child child;
	struct wean_status s;
	char c;

	start_held(&child, KID("cat", "--then", "exit", "5"), _i);
	ck_assert_int_eq(pipe2(told, O_CLOEXEC) | pipe2(go, O_CLOEXEC), 0);
	pid_t tracer = start_tracer(child.pid, told[1], go[0]);
	close(told[1]);
	if (read(told[0], &c, 1) != 1) {
		ck_assert_int_eq(waitpid(tracer, &status, 0), tracer);
		wean_kill(&child, SIGKILL);
		finish(&child);
		SKIP("cannot trace: %s", strerror(WEXITSTATUS(status)));
	}
	/* The tracer has an end of it too. */
	ck_assert_int_eq(wean_kill(&child, SIGUSR1), 0);
	await_state(child.pid, 't');
	ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), 0);
	await_state(child.pid, 'Z');
	ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
	ck_assert_int_eq(wean_wait(&child, 20, &s), ETIMEDOUT);
	ck_assert_int_eq(write(go[1], "", 1), 1);
	ck_assert_int_eq(wean_wait(&child, 60000, &s), 0);
	assert_killed(&s, SIGKILL);
	ck_assert_int_eq(waitpid(tracer, &status, 0), tracer);
	ck_assert_int_eq(WEXITSTATUS(status), 0);
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
	tcase_add_test(t, the_resources_used_are_told);
	tcase_add_loop_test(t, a_child_that_is_over_gives_the_same_status_for_ever, 0, 2);
	tcase_add_loop_test(t, a_wait_that_ran_out_is_no_end, 0, 2);
	tcase_add_loop_test(t, a_wait_ends_with_the_child, 0, 2);
	tcase_add_test(t, without_any_descriptor_left_a_child_is_waited_for);
	tcase_add_loop_test(t, a_handler_that_interrupts_changes_nothing, 0, 2);
	tcase_add_test(t, poll_finds_the_pidfd_readable_once_the_child_is_over);
	suite_add_tcase(s, t);

	t = tcase_create("others");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, each_of_several_threads_gets_the_status, 0, 2);
	tcase_add_loop_test(t, a_host_that_ignores_sigchld_gets_a_status, 0, 2);
	tcase_add_loop_test(t, a_host_whose_handler_reaps_gets_a_status, 0, 2);
	tcase_add_loop_test(t, a_host_whose_thread_reaps_gets_a_status, 0, 2);
	tcase_add_loop_test(t, a_child_reaped_long_before_the_wait_is_over, 0, 2);
	tcase_add_loop_test(t, a_stopped_child_is_not_over, 0, 2);
	tcase_add_loop_test(t, a_traced_child_is_not_lost, 0, 2);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(wait_suite)
