/* test_wait_many.c - wean_wait_any() and wean_wait_all(): which are over, in time, with
   and without pidfds, and nobody else's child is touched. */
#define _GNU_SOURCE
#include "waiting.h"

#include "deny.h"

enum { FEW = 5, MANY = 200, LOW_LIMIT = 32 };

/* So many of MANY; always more than the low limit. */
static int many(void)
{
	int n = scaled(MANY);

	return n > MANY ? MANY : n < LOW_LIMIT + 8 ? LOW_LIMIT + 8 : n;
}

/* ---- any: which one ---- */

static size_t any(struct wean_child *children, size_t n, int timeout_ms)
{
	struct baseline b;
	size_t which = SIZE_MAX;

	baseline_take(&b);
	int error = wean_wait_any(children, n, timeout_ms, &which);
	baseline_kept(&b);
	ck_assert_msg(!error, "wait_any: %s", strerror(error));
	return which;
}

START_TEST(any_gives_the_one_that_is_over)
{
	struct wean_child children[FEW];

	start_several(children, FEW, way(_i));
	let_go(&children[3]);
	ck_assert_uint_eq(any(children, FEW, -1), 3);
	finish_several(children, FEW);
}
END_TEST

START_TEST(any_does_not_reap)
{
	struct wean_child children[FEW];
	struct wean_status status;
	siginfo_t si = { 0 };

	start_several(children, FEW, way(_i));
	let_go(&children[2]);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(any(children, FEW, -1), 2);
	ck_assert_int_eq(waitid(P_PID, (id_t)children[2].pid, &si,
	                        WEXITED | WNOWAIT | WNOHANG), 0);
	ck_assert_int_eq(si.si_pid, children[2].pid);
	ck_assert_int_eq(wean_wait(&children[2], 0, &status), 0);
	assert_exited(&status, 2);
	ck_assert_int_eq(wean_wait_any(children, FEW, 0, NULL), ETIMEDOUT);
	finish_several(children, FEW);
}
END_TEST

START_TEST(any_gives_each_child_once_if_it_is_waited_for_in_between)
{
	struct wean_child children[FEW];
	struct wean_status status;
	int given[FEW] = { 0 };
	size_t which;

	start_several(children, FEW, 0);
	for (int i = 0; i < FEW; i++)
		let_go(&children[i]);
	for (int i = 0; i < FEW; i++) {
		which = any(children, FEW, -1);
		ck_assert_uint_lt(which, FEW);
		ck_assert_int_eq(given[which]++, 0);
		ck_assert_int_eq(wean_wait(&children[which], 0, &status), 0);
		assert_exited(&status, (int)which);
	}
	ck_assert_int_eq(wean_wait_any(children, FEW, -1, &which), ESRCH);
	finish_several(children, FEW);
}
END_TEST

START_TEST(any_finds_each_of_many_in_whatever_order_they_end)
{
	static struct wean_child children[MANY];
	struct wean_status status;
	int n = many();
	size_t which = MANY;

	start_several(children, n, 0);
	for (int i = 0; i < n; i++) {
		int next = (i * 211 + 13) % n; /* every one, in no order */

		let_go(&children[next]);
		ck_assert_int_eq(wean_wait_any(children, (size_t)n, -1, &which), 0);
		ck_assert_uint_eq(which, (size_t)next);
		ck_assert_int_eq(wean_wait(&children[next], 0, &status), 0);
		assert_exited(&status, next);
	}
	ck_assert_int_eq(wean_wait_any(children, (size_t)n, -1, NULL), ESRCH);
	finish_several(children, n);
}
END_TEST

/* poll(2) then refuses the list. */
START_TEST(any_takes_more_children_than_descriptors_are_allowed)
{
	static struct wean_child children[MANY];
	struct rlimit limit, low;
	int n = many();

	start_several(children, n, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){ .rlim_cur = LOW_LIMIT, .rlim_max = limit.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	ck_assert_int_eq(wean_wait_any(children, (size_t)n, 30, NULL), ETIMEDOUT);
	let_go(&children[n - 1]);
	ck_assert_uint_eq(any(children, (size_t)n, -1), (size_t)n - 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	finish_several(children, n);
}
END_TEST

START_TEST(any_finds_children_without_pidfd)
{
	struct wean_child children[FEW];
	size_t which = SIZE_MAX;

	start_several(children, FEW, 0);
	for (int i = _i; i < FEW; i++) /* all of them, or the last two */
		without_pidfd(&children[i]);
	ck_assert_int_eq(wean_wait_any(children, FEW, 30, &which), ETIMEDOUT);
	let_go(&children[4]);
	ck_assert_uint_eq(any(children, FEW, -1), 4);
	finish(&children[4]);
	let_go(&children[0]);
	ck_assert_uint_eq(any(children, FEW, 10000), 0);
	finish(&children[0]);
	ck_assert_int_eq(wean_wait_any(children, FEW, 0, &which), ETIMEDOUT);
	for (int i = 1; i < 4; i++) {
		let_go(&children[i]);
		ck_assert_int_eq(finish(&children[i]).code, i);
	}
}
END_TEST

/* More than a list on the stack takes, and no memory for another. */
START_TEST(any_does_without_memory)
{
	enum { VERY_MANY = 200000 };
	static struct wean_child children[VERY_MANY];
	struct rlimit limit, low;

	start_several(&children[VERY_MANY - 1], 1, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
	low = (struct rlimit){ .rlim_cur = 1, .rlim_max = limit.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &low), 0);
	errno = BASELINE_ERRNO;
	int error = wean_wait_any(children, VERY_MANY, 30, NULL);
	int left = errno;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_int_eq(error, ETIMEDOUT);
	ck_assert_int_eq(left, BASELINE_ERRNO);
	let_go(&children[VERY_MANY - 1]);
	ck_assert_uint_eq(any(children, VERY_MANY, -1), VERY_MANY - 1);
	finish(&children[VERY_MANY - 1]);
}
END_TEST

START_TEST(any_without_a_place_to_write_to_still_waits)
{
	struct wean_child child;

	start_several(&child, 1, 0);
	ck_assert_int_eq(wean_wait_any(&child, 1, 0, NULL), ETIMEDOUT);
	let_go(&child);
	ck_assert_int_eq(wean_wait_any(&child, 1, -1, NULL), 0);
	finish(&child);
}
END_TEST

START_TEST(a_child_that_is_stopped_is_not_over)
{
	struct wean_child child;
	struct wean_status status;
	siginfo_t si;

	start(&child, KID("stop", "--then", "exit", "5"), NULL);
	ck_assert_int_eq(waitid(P_PID, (id_t)child.pid, &si, WSTOPPED | WNOWAIT), 0);
	ck_assert_int_eq(wean_wait_any(&child, 1, 30, NULL), ETIMEDOUT);
	ck_assert_int_eq(wean_wait_all(&child, 1, 30, &status), ETIMEDOUT);
	assert_zero(&status);
	ck_assert_int_eq(wean_kill(&child, SIGCONT), 0);
	ck_assert_uint_eq(any(&child, 1, -1), 0);
	ck_assert_int_eq(wean_wait_all(&child, 1, -1, &status), 0);
	assert_exited(&status, 5);
	wean_release(&child);
}
END_TEST

/* ---- any: nothing to wait for ---- */

/* Structs of every kind that has nothing to wait for. */
static void start_idle(struct wean_child idle[4])
{
	char *missing[] = { (char[]){ "/nonexistent" }, NULL };

	memset(&idle[0], 0, sizeof idle[0]);
	ck_assert_int_eq(wean_spawn(&idle[1], missing, NULL), ENOENT);
	ck_assert_int_eq(wean_adopt(&idle[2], 0, 0), 0);
	start(&idle[3], KID("exit", "9"), NULL);
	ck_assert_int_eq(wean_wait(&idle[3], -1, NULL), 0);
}

START_TEST(with_nothing_to_wait_for_any_answers_at_once)
{
	static const int timeouts[] = { 0, 60000, -1 };
	int timeout = timeouts[_i];
	struct wean_child idle[4];
	struct baseline b;
	size_t which;

	start_idle(idle);
	baseline_take(&b);
	ck_assert_int_eq(wean_wait_any(NULL, 0, timeout, &which), ESRCH);
	ck_assert_int_eq(wean_wait_any(idle, 0, timeout, &which), ESRCH);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(wean_wait_any(&idle[i], 1, timeout, &which), ESRCH);
	ck_assert_int_eq(wean_wait_any(idle, 4, timeout, NULL), ESRCH);
	baseline_same(&b);
	wean_release(&idle[3]);
	ck_assert_int_eq(wean_wait_any(idle, 4, timeout, &which), ESRCH);
}
END_TEST

START_TEST(any_skips_what_it_cannot_wait_for)
{
	struct wean_child children[FEW + 4];

	start_idle(children);
	start_several(children + 4, FEW, 0);
	ck_assert_int_eq(wean_wait_any(children, FEW + 4, 0, NULL), ETIMEDOUT);
	let_go(&children[7]);
	ck_assert_uint_eq(any(children, FEW + 4, -1), 7);
	wean_release(&children[3]);
	finish_several(children + 4, FEW);
}
END_TEST

START_TEST(a_released_child_is_the_hosts_and_is_not_waited_for)
{
	struct wean_child children[2];
	struct wean_status statuses[2];
	int status, pid;

	start_several(children, 2, 0);
	pid = children[0].pid;
	wean_release(&children[0]); /* closes its input too */
	await_zombie(pid);
	ck_assert_int_eq(wean_wait_any(children, 2, 0, NULL), ETIMEDOUT);
	let_go(&children[1]);
	ck_assert_int_eq(wean_wait_all(children, 2, -1, statuses), 0);
	assert_zero(&statuses[0]);
	assert_exited(&statuses[1], 1);
	ck_assert_int_eq(wean_wait_any(children, 2, -1, NULL), ESRCH);
	ck_assert_int_eq(waitpid(pid, &status, WNOHANG), pid);
	wean_release(&children[1]);
}
END_TEST

START_TEST(a_missing_array_is_refused)
{
	struct wean_status status = { .kind = 7 };
	struct baseline b;
	size_t which;

	baseline_take(&b);
	ck_assert_int_eq(wean_wait_any(NULL, 1, 0, &which), EINVAL);
	ck_assert_int_eq(wean_wait_any(NULL, SIZE_MAX, -1, NULL), EINVAL);
	ck_assert_int_eq(wean_wait_all(NULL, 1, 0, &status), EINVAL);
	ck_assert_int_eq(wean_wait_all(NULL, 1, -1, NULL), EINVAL);
	ck_assert_int_eq(wean_wait_all(NULL, 0, -1, NULL), 0);
	ck_assert_int_eq(wean_wait_all(NULL, 0, 0, &status), 0);
	baseline_same(&b);
	ck_assert_int_eq(status.kind, 7);
}
END_TEST

/* ---- time ---- */

START_TEST(a_time_limit_is_kept_and_not_cut_short)
{
	struct wean_child children[FEW];
	struct wean_status statuses[FEW];

	start_several(children, FEW, 0);
	if (_i)
		without_pidfd(&children[1]);
	for (int limit = 0; limit <= 60; limit += 20) {
		long long begin = now_ms();
		ck_assert_int_eq(wean_wait_any(children, FEW, limit, NULL), ETIMEDOUT);
		ck_assert_int_ge(now_ms() - begin, limit);
		begin = now_ms();
		ck_assert_int_eq(wean_wait_all(children, FEW, limit, statuses),
		                 ETIMEDOUT);
		ck_assert_int_ge(now_ms() - begin, limit);
	}
	finish_several(children, FEW);
}
END_TEST

/* Each ends well within the limit after the one before it. */
START_TEST(all_has_one_limit_for_all)
{
	struct wean_child children[8];
	long long begin;
	char ms[12];

	for (int i = 0; i < 8; i++) {
		snprintf(ms, sizeof ms, "%d", 300 * (i + 1));
		start(&children[i], KID("sleep", ms), NULL);
	}
	begin = now_ms();
	ck_assert_int_eq(wean_wait_all(children, 8, 450, NULL), ETIMEDOUT);
	ck_assert_int_lt(now_ms() - begin, 450 + 5000);
	for (int i = 0; i < 8; i++) {
		wean_stop(&children[i], 0, NULL);
		wean_release(&children[i]);
	}
}
END_TEST

/* ---- all ---- */

START_TEST(all_gives_every_status)
{
	static struct wean_child children[MANY];
	static struct wean_status statuses[MANY], again[MANY];
	int n = many();

	memset(statuses, 0xa5, sizeof statuses);
	start_several(children, n, WEAN_RESET_SIGNALS);
	for (int i = 0; i < n; i += 2)
		ck_assert_int_eq(wean_kill(&children[i], 1 + i % 15), 0);
	for (int i = 0; i < n; i++)
		let_go(&children[i]);
	ck_assert_int_eq(wean_wait_all(children, (size_t)n, -1, statuses), 0);
	ck_assert_int_eq(wean_wait_all(children, (size_t)n, 0, again), 0);
	ck_assert_mem_eq(statuses, again, (size_t)n * sizeof *again);
	for (int i = 0; i < n; i++) {
		if (i % 2 == 0)
			assert_signaled(&statuses[i], 1 + i % 15);
		else
			assert_exited(&statuses[i], i);
		ck_assert_int_eq(waitpid(children[i].pid, NULL, WNOHANG), -1);
		wean_release(&children[i]);
	}
}
END_TEST

START_TEST(all_fills_what_is_over_wherever_it_stands)
{
	struct wean_child children[FEW + 4];
	struct wean_status statuses[FEW + 4];
	struct baseline b;

	memset(statuses, 0xa5, sizeof statuses);
	start_idle(children + FEW);
	start_several(children, FEW, way(_i));
	let_go(&children[1]);
	let_go(&children[4]);
	await_zombie(children[1].pid);
	await_zombie(children[4].pid);
	baseline_take(&b);
	ck_assert_int_eq(wean_wait_all(children, FEW + 4, 20, statuses), ETIMEDOUT);
	baseline_kept(&b);
	for (int i = 0; i < FEW + 3; i++)
		if (i == 1 || i == 4)
			assert_exited(&statuses[i], i);
		else
			assert_zero(&statuses[i]);
	assert_exited(&statuses[FEW + 3], 9);
	ck_assert_int_eq(wean_wait_all(children, FEW, 0, NULL), ETIMEDOUT);
	wean_release(&children[FEW + 3]);
	finish_several(children, FEW);
}
END_TEST

START_TEST(all_waits_for_children_without_pidfd)
{
	struct wean_child children[FEW];
	struct wean_status statuses[FEW];

	start_several(children, FEW, 0);
	for (int i = _i; i < FEW; i++)
		without_pidfd(&children[i]);
	ck_assert_int_eq(wean_wait_all(children, FEW, 20, statuses), ETIMEDOUT);
	for (int i = 0; i < FEW; i++)
		let_go(&children[i]);
	ck_assert_int_eq(wean_wait_all(children, FEW, -1, statuses), 0);
	for (int i = 0; i < FEW; i++)
		assert_exited(&statuses[i], i);
	finish_several(children, FEW);
}
END_TEST

START_TEST(whoever_waits_for_nothing_gets_no_status)
{
	struct wean_child idle[4];
	struct wean_status statuses[4];

	start_idle(idle);
	memset(statuses, 0xa5, sizeof statuses);
	ck_assert_int_eq(wean_wait_all(idle, 4, -1, statuses), 0);
	for (int i = 0; i < 3; i++)
		assert_zero(&statuses[i]);
	assert_exited(&statuses[3], 9);
	wean_release(&idle[3]);
}
END_TEST

/* ---- other children, other threads, other reapers ---- */

START_TEST(children_of_the_hosts_own_are_left_alone)
{
	struct wean_child child;
	struct wean_status status;
	int own_status;
	pid_t own = fork();

	if (own == 0)
		_exit(33);
	await_zombie(own);
	start_several(&child, 1, 0);
	ck_assert_int_eq(wean_wait_any(&child, 1, 20, NULL), ETIMEDOUT);
	let_go(&child);
	ck_assert_uint_eq(any(&child, 1, -1), 0);
	ck_assert_int_eq(wean_wait_all(&child, 1, -1, &status), 0);
	assert_exited(&status, 0);
	wean_release(&child);
	ck_assert_int_eq(waitpid(own, &own_status, WNOHANG), own);
	ck_assert_int_eq(WEXITSTATUS(own_status), 33);
}
END_TEST

/* Where nobody kept the status it is 15 or not known, never 0. */
START_TEST(what_another_reaped_is_over)
{
	struct wean_child children[2];
	struct wean_status statuses[2];

	if (_i)
		handle(SIGCHLD, SIG_IGN);
	start_held(&children[0], 15, &(struct wean_options){ HELD });
	start_held(&children[1], 16, &(struct wean_options){ HELD });
	let_go(&children[0]);
	if (!_i)
		ck_assert_int_eq(waitpid(children[0].pid, NULL, 0), children[0].pid);
	ck_assert_uint_eq(any(children, 2, -1), 0);
	ck_assert_int_eq(wean_wait_all(children, 2, 0, statuses), ETIMEDOUT);
	if (kernel_keeps_statuses() || statuses[0].kind != WEAN_UNKNOWN)
		assert_exited(&statuses[0], 15);
	else
		ck_assert_int_eq(statuses[0].code, 255);
	assert_zero(&statuses[1]);
	let_go(&children[1]);
	ck_assert_uint_eq(any(children, 2, -1), 1);
	wean_release(&children[0]);
	finish(&children[1]);
}
END_TEST

static void *wait_for_own(void *arg)
{
	static const int order[FEW] = { 3, 0, 4, 1, 2 };
	struct wean_child children[FEW];
	struct wean_status status;
	size_t which = FEW;

	start_several(children, FEW, 0);
	for (int i = 0; i < FEW; i++) {
		let_go(&children[order[i]]);
		if (wean_wait_any(children, FEW, -1, &which) || which >= FEW ||
		    (int)which != order[i] || wean_wait(&children[which], 0, &status) ||
		    status.code != order[i])
			return NULL;
	}
	for (int i = 0; i < FEW; i++)
		wean_release(&children[i]);
	return arg;
}

START_TEST(threads_wait_for_children_of_their_own)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	struct baseline b;
	void *result;

	warm_up_threads();
	baseline_take(&b);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_for_own, &b), 0);
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &result), 0);
		ck_assert_ptr_eq(result, &b);
	}
	baseline_same(&b);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *wait_many_suite(void)
{
	Suite *s = suite_create("wait_many");
	TCase *t = tcase_create("any");

	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, any_gives_the_one_that_is_over, 0, WAYS);
	tcase_add_loop_test(t, any_does_not_reap, 0, WAYS);
	tcase_add_test(t, any_gives_each_child_once_if_it_is_waited_for_in_between);
	tcase_add_test(t, any_finds_each_of_many_in_whatever_order_they_end);
	tcase_add_test(t, any_takes_more_children_than_descriptors_are_allowed);
	tcase_add_loop_test(t, any_finds_children_without_pidfd, 0, 4);
	tcase_add_test(t, any_without_a_place_to_write_to_still_waits);
	tcase_add_test(t, a_child_that_is_stopped_is_not_over);
	tcase_add_loop_test(t, with_nothing_to_wait_for_any_answers_at_once, 0, 3);
	tcase_add_test(t, any_skips_what_it_cannot_wait_for);
	tcase_add_test(t, a_released_child_is_the_hosts_and_is_not_waited_for);
	tcase_add_test(t, a_missing_array_is_refused);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "native"); /* an instrument wants memory of its own */
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, any_does_without_memory, 0, !SANITIZED);

	t = tcase_create("all");
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, a_time_limit_is_kept_and_not_cut_short, 0, 2);
	tcase_add_test(t, all_has_one_limit_for_all);
	tcase_add_test(t, all_gives_every_status);
	tcase_add_loop_test(t, all_fills_what_is_over_wherever_it_stands, 0, WAYS);
	tcase_add_loop_test(t, all_waits_for_children_without_pidfd, 0, 4);
	tcase_add_test(t, whoever_waits_for_nothing_gets_no_status);
	tcase_add_test(t, children_of_the_hosts_own_are_left_alone);
	tcase_add_loop_test(t, what_another_reaped_is_over, 0, 2);
	tcase_add_test(t, threads_wait_for_children_of_their_own);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(wait_many_suite)
