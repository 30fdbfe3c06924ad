/* test_reaped.c - a child's end where somebody else waits, reaps, stops or traces. */
#define _GNU_SOURCE
#include "waiting.h"

#include "count.h"

#include <poll.h>
#include <sched.h>
#include <sys/ptrace.h>

/* Goes on, as the words say, when it is let go. */
static void start_told(struct wean_child *child, char *const argv[], int with_pidfd)
{
	struct wean_options opt = { HELD };

	start(child, argv, &opt);
	if (!with_pidfd)
		without_pidfd(child);
}

/* ---- several threads ---------------------------------------------------- */

static struct wean_child shared;

struct waiter {
	pthread_t thread;
	pid_t number;
	int timeout, error;
	struct wean_status status;
};

static void *wait_for_shared(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->number, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
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

	for (int round = scaled(30); round > 0; round--) {
		start_told(&shared, KID("cat", "--then", "exit", "77"), _i);
		for (int i = 0; i < N; i++) {
			waiters[i].timeout = timeouts[i % 4];
			memset(&waiters[i].status, 0, sizeof waiters[i].status);
			ck_assert_int_eq(pthread_create(&waiters[i].thread, NULL,
			                                wait_for_shared, &waiters[i]), 0);
		}
		let_go(&shared);
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

static void start_waiter(struct waiter *w)
{
	pid_t number;

	ck_assert_int_eq(pthread_create(&w->thread, NULL, wait_for_shared, w), 0);
	while (!(number = __atomic_load_n(&w->number, __ATOMIC_ACQUIRE)))
		sched_yield();
	await_state(number, 'S');
}

/* In which the thread that is to reap the child is missing. */
static int look_in_a_copy(void)
{
	struct pollfd over = { .fd = shared.pidfd, .events = POLLIN };

	signal(SIGALRM, SIG_DFL);
	alarm(20);
	let_go(&shared);
	if (over.fd >= 0)
		poll(&over, 1, -1);
	return wean_wait(&shared, 0, NULL);
}

START_TEST(a_copy_that_is_forked_while_a_thread_waits_does_not_hang)
{
	struct waiter w = { .timeout = -1 };
	int status;

	start_told(&shared, KID("cat", "--then", "exit", "4"), _i);
	start_waiter(&w);
	pid_t copy = fork();
	ck_assert_int_ge(copy, 0);
	if (copy == 0)
		_exit(look_in_a_copy());
	let_go(&shared);
	ck_assert_int_eq(waitpid(copy, &status, 0), copy);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(pthread_join(w.thread, NULL), 0);
	assert_exited(&w.status, 4);
	wean_release(&shared);
}
END_TEST

static int stays, may_go;

static void stay(int sig)
{
	(void)sig;
	__atomic_store_n(&stays, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&may_go, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* The thread that was to reap it finds the status, though the kernel tells it no more. */
START_TEST(a_thread_that_is_held_up_by_a_handler_holds_up_no_other)
{
	struct waiter w = { .timeout = -1 };
	struct wean_status s, again;

	start_told(&shared, KID("cat", "--then", "exit", "4"), 1);
	handle(SIGUSR1, stay);
	start_waiter(&w);
	ck_assert_int_eq(pthread_kill(w.thread, SIGUSR1), 0);
	while (!__atomic_load_n(&stays, __ATOMIC_ACQUIRE))
		sched_yield();
	let_go(&shared);
	await_zombie(shared.pid);
	ck_assert_int_eq(wean_wait(&shared, 0, &s), 0);
	assert_exited(&s, 4);
	__atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
	ck_assert_int_eq(pthread_join(w.thread, NULL), 0);
	ck_assert_int_eq(wean_wait(&shared, 0, &again), 0);
	ck_assert_mem_eq(&w.status, &s, sizeof s);
	ck_assert_mem_eq(&again, &s, sizeof s);
	wean_release(&shared);
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
	int exact = with_pidfd && kernel_keeps_statuses();

	for (int i = 0; i < 9 * scaled(4); i++) {
		char *argv[] = { kid(), "cat", "--then", i % 3 < 2 ? "exit" : "kill",
		                 i % 3 == 0 ? "0" : i % 3 == 1 ? "5" : "9", NULL };
		struct wean_child child;
		struct wean_status s, again;
		start_told(&child, argv, with_pidfd);
		ck_assert_int_eq(wean_wait(&child, 0, &s), ETIMEDOUT);
		let_go(&child);
		int error, timeout = timeouts[i / 3 % 3];
		while ((error = wean_wait(&child, timeout, &s)) == ETIMEDOUT &&
		       timeout == 0)
			;
		ck_assert_int_eq(error, 0);
		assert_right_or_unknown(&s, exact,
		                        i % 3 < 2 ? WEAN_EXITED : WEAN_SIGNALED,
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

static int stop;

static void *reap_in_a_loop(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (waitpid(-1, NULL, 0) < 0)
			sched_yield();
	return arg;
}

START_TEST(a_host_whose_thread_reaps_gets_a_status)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, reap_in_a_loop, NULL), 0);
	waits_where_others_reap(_i);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(a_child_reaped_long_before_the_wait_is_over)
{
	struct wean_child child;
	struct wean_status s;
	int status;

	start_told(&child, KID("cat", "--then", "exit", "8"), _i);
	let_go(&child);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert_int_eq(wean_wait(&child, 60000, &s), 0);
	assert_right_or_unknown(&s, _i && kernel_keeps_statuses(), WEAN_EXITED, 8);
	wean_release(&child);
}
END_TEST

/* ---- stopped, traced ---------------------------------------------------- */

START_TEST(a_stopped_child_is_not_over)
{
	struct wean_child child;
	struct wean_status s;

	start_told(&child, KID("stop", "--then", "exit", "5"), _i);
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

	start_told(&child, KID("cat", "--then", "exit", "5"), _i);
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
	assert_signaled(&s, SIGKILL);
	ck_assert_int_eq(waitpid(tracer, &status, 0), tracer);
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	wean_release(&child);
}
END_TEST

/* Its pidfd is readable, it is not over yet, and a pipe of it is open all the time. */
static int communicate_with_traced(void *arg)
{
	struct wean_io io = { .timeout_ms = 150 };
	struct wean_result r = { 0 };
	struct wean_child child;
	int told[2], go[2], out[2], error;
	char c;

	(void)arg;
	start_told(&child, KID("cat"), 1);
	if (pipe2(told, O_CLOEXEC) || pipe2(go, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return -1;
	await_state(child.pid, 'S'); /* it reads: t/count.c has let go of it at the exec */
	pid_t tracer = start_tracer(child.pid, told[1], go[0]);
	close(told[1]);
	if (read(told[0], &c, 1) != 1)
		return -1;
	wean_kill(&child, SIGKILL);
	await_state(child.pid, 'Z');
	let_go(&child);
	child.out = out[0];
	count_begin();
	error = wean_communicate(&child, &io, &r);
	count_end();
	if (write(go[1], "", 1) != 1 || waitpid(tracer, NULL, 0) != tracer)
		return -1;
	wean_wait(&child, -1, NULL);
	wean_result_free(&r);
	wean_release(&child);
	return error == ETIMEDOUT ? 0 : -1;
}

START_TEST(a_traced_child_is_no_reason_to_spin)
{
	struct count c;

	kid();
	int error = count_calls(&c, communicate_with_traced, NULL);
	if (error > 0)
		SKIP("no counting here: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	ck_assert_uint_lt(count_total(&c, COUNT_PARENT), 60);
	count_free(&c);
}
END_TEST

/* ------------------------------------------------------------------------- */

/* Each with a pidfd, 1, and without one, 0. */
static Suite *reaped_suite(void)
{
	Suite *s = suite_create("reaped");
	TCase *t = tcase_create("reaped");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, each_of_several_threads_gets_the_status, 0, 2);
	tcase_add_loop_test(t, a_copy_that_is_forked_while_a_thread_waits_does_not_hang, 0,
	                    2);
	tcase_add_loop_test(t, a_host_that_ignores_sigchld_gets_a_status, 0, 2);
	tcase_add_loop_test(t, a_host_whose_handler_reaps_gets_a_status, 0, 2);
	tcase_add_loop_test(t, a_host_whose_thread_reaps_gets_a_status, 0, 2);
	tcase_add_loop_test(t, a_child_reaped_long_before_the_wait_is_over, 0, 2);
	tcase_add_loop_test(t, a_stopped_child_is_not_over, 0, 2);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "signals");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, a_thread_that_is_held_up_by_a_handler_holds_up_no_other);

	t = case_that_needs(s, "ptrace");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, a_traced_child_is_not_lost, 0, 2);
	tcase_add_test(t, a_traced_child_is_no_reason_to_spin);
	return s;
}

RUN_SUITE(reaped_suite)
