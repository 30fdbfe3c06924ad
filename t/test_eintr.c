/* test_eintr.c - a handler that runs while a call waits: with WEAN_EINTR the call comes
   back, without it goes on. */
#define _GNU_SOURCE
#include "waiting.h"

/* ---- the calls that wait ---- */

enum { FOR_EVER = -1, LONG = 600000, LAST = 2 };

static int wait_one(struct wean_child *children, int timeout_ms)
{
	return wean_wait(&children[LAST], timeout_ms, NULL);
}

static int wait_any(struct wean_child *children, int timeout_ms)
{
	return wean_wait_any(children, LAST + 1, timeout_ms, NULL);
}

static int wait_all(struct wean_child *children, int timeout_ms)
{
	return wean_wait_all(children, LAST + 1, timeout_ms, NULL);
}

static int stop(struct wean_child *children, int grace_ms)
{
	return wean_stop(&children[LAST], grace_ms < 0 ? LONG : grace_ms, NULL);
}

static const struct waiting_call {
	const char *name;
	int (*wait)(struct wean_child *children, int timeout_ms);
	int timeout, without_pidfd;
} calls[] = {
	{ "wait", wait_one, FOR_EVER, 0 },
	{ "wait, a limit", wait_one, LONG, 0 },
	{ "wait, no pidfd", wait_one, FOR_EVER, 1 },
	{ "wait, no pidfd, a limit", wait_one, LONG, 1 },
	{ "wait_any", wait_any, FOR_EVER, 0 },
	{ "wait_any, a limit", wait_any, LONG, 0 },
	{ "wait_any, no pidfd", wait_any, FOR_EVER, 1 },
	{ "wait_all", wait_all, FOR_EVER, 0 },
	{ "wait_all, a limit", wait_all, LONG, 0 },
	{ "wait_all, no pidfd", wait_all, FOR_EVER, 1 },
	{ "stop", stop, LONG, 0 },
	{ "stop, no pidfd", stop, LONG, 1 },
};

enum { CALLS = sizeof calls / sizeof *calls };

/* Three that take no notice of SIGTERM, the last with these flags. */
static void start_stubborn(struct wean_child *children, unsigned long long flags)
{
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE,
	                            .sigignore = WEAN_SIG(SIGTERM) };

	for (int i = 0; i <= LAST; i++) {
		opt.flags = i == LAST ? flags : 0;
		start(&children[i], KID("cat", "--then", "exit", "6"), &opt);
		close(children[i].out);
		children[i].out = -1;
	}
}

static void finish_stubborn(struct wean_child *children)
{
	for (int i = 0; i <= LAST; i++) {
		if (children[i].in >= 0)
			let_go(&children[i]);
		ck_assert_int_eq(finish(&children[i]).code, 6);
	}
}

/* ---- with the flag ---- */

/* Also after a handler that wants calls to be taken up again. */
START_TEST(with_the_flag_a_handler_ends_the_wait)
{
	const struct waiting_call *call = &calls[_i % CALLS];
	struct wean_child children[LAST + 1];
	struct baseline b;

	start_stubborn(children, WEAN_EINTR | way(_i % 2));
	if (call->without_pidfd)
		without_pidfd(&children[LAST]);
	tick();
	if (_i >= CALLS)
		restart_after(SIGALRM);
	for (int i = 0; i < 3; i++) {
		baseline_take(&b);
		int error = call->wait(children, call->timeout);
		ck_assert_msg(error == EINTR, "%s: %s", call->name, strerror(error));
		baseline_kept(&b);
		ck_assert_int_eq(wean_wait(&children[LAST], 0, NULL), ETIMEDOUT);
	}
	stop_ticking();
	finish_stubborn(children);
}
END_TEST

/* For any and all, wherever it stands. */
START_TEST(the_flag_of_one_child_is_enough)
{
	struct wean_child children[LAST + 1], moved;
	int error;

	start_stubborn(children, WEAN_EINTR);
	moved = children[_i];
	children[_i] = children[LAST];
	children[LAST] = moved;
	tick();
	error = wean_wait_any(children, LAST + 1, 3000, NULL);
	ck_assert_msg(error == EINTR, "any: %s", strerror(error));
	error = wean_wait_all(children, LAST + 1, 3000, NULL);
	ck_assert_msg(error == EINTR, "all: %s", strerror(error));
	stop_ticking();
	finish_stubborn(children);
}
END_TEST

START_TEST(with_the_flag_the_end_of_a_child_comes_before_a_handler)
{
	struct wean_options opt = { .flags = WEAN_EINTR };
	struct wean_child children[LAST + 1];
	struct wean_status statuses[LAST + 1];
	size_t which = 7;

	for (int i = 0; i <= LAST; i++) {
		start(&children[i], KID("exit", "3"), &opt);
		await_zombie(children[i].pid);
	}
	tick();
	for (int i = 0; i < 3000; i++)
		ck_assert_int_eq(wean_wait_any(children, LAST + 1, -1, &which), 0);
	ck_assert_int_eq(wean_wait_all(children, LAST + 1, -1, statuses), 0);
	stop_ticking();
	for (int i = 0; i <= LAST; i++) {
		assert_exited(&statuses[i], 3);
		wean_release(&children[i]);
	}
}
END_TEST

/* The leader is over at once; what it left takes no notice of SIGTERM. */
START_TEST(with_the_flag_stop_comes_back_while_it_waits_for_the_group)
{
	struct wean_options opt = { .out = WEAN_PIPE,
	                            .flags = WEAN_NEW_GROUP | WEAN_EINTR,
	                            .sigignore = WEAN_SIG(SIGTERM) };
	struct wean_child child;
	struct wean_status status;
	struct orphan held;

	if (!kernel_has(6, 9))
		SKIP("this kernel can't ask about a group whose number is given up");
	adopt_orphans();
	start(&child, KID("fork-hold", "10000", "--then", "exit", "4"), &opt);
	orphan_watch(&held, read_pid(child.out));
	await_zombie(child.pid);
	tick();
	int error = wean_stop(&child, 3000, NULL);
	ck_assert_msg(error == EINTR, "%s", strerror(error));
	stop_ticking();
	ck_assert_int_eq(wean_stop(&child, 0, &status), 0);
	assert_exited(&status, 4);
	ck_assert_int_eq(orphan_code(&held), 128 + SIGKILL);
	wean_release(&child);
}
END_TEST

/* ---- without it ---- */

START_TEST(without_the_flag_a_wait_goes_on_over_forty_handlers)
{
	const struct waiting_call *call = &calls[_i % CALLS];
	struct wean_child children[LAST + 1];
	struct baseline b;

	start_stubborn(children, 0);
	if (call->without_pidfd)
		without_pidfd(&children[LAST]);
	if (call->wait == wait_all) { /* which waits for the last one only, then */
		let_go(&children[0]);
		let_go(&children[1]);
	}
	let_go_by_ticks(&children[LAST]);
	if (_i >= CALLS)
		restart_after(SIGALRM);
	baseline_take(&b);
	int error = call->wait(children, call->timeout);
	ck_assert_int_eq(errno, b.error);
	ck_assert_msg(!error, "%s: %s", call->name, strerror(error));
	ck_assert_int_ge(ticks, 40);
	stop_ticking();
	free(b.fds);
	finish_stubborn(children);
}
END_TEST

START_TEST(handlers_neither_stretch_nor_shorten_a_limit)
{
	static const int some[] = { 0, 4, 7 }; /* wait, wait_any, wait_all */
	struct wean_child children[LAST + 1];

	start_stubborn(children, 0);
	if (_i)
		without_pidfd(&children[LAST]);
	tick();
	for (int i = 0; i < 30; i++) {
		const struct waiting_call *call = &calls[some[i % 3]];
		long long begin = now_us(), took;
		ck_assert_int_eq(call->wait(children, 20), ETIMEDOUT);
		took = now_us() - begin;
		ck_assert_msg(took >= 20000 && took < 5000000, "%s: %lld us for 20 ms",
		              call->name, took);
	}
	stop_ticking();
	finish_stubborn(children);
}
END_TEST

/* ---- a handler in the middle of a look ---- */

/* Every 20 microseconds: some come within a system call that does not block. */
static void tick_fast(void)
{
	struct itimerval each = { { 0, 20 }, { 0, 20 } };

	handle(SIGALRM, on_tick);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &each, NULL), 0);
}

/* A busy machine has time for little else than the handler. */
enum { LOOKS = 1000, LOOKING_MS = 500 };

static void assert_only_looks(struct wean_child *child)
{
	long long end = now_ms() + LOOKING_MS;
	struct wean_status status;

	for (int i = 0; i < LOOKS && now_ms() < end; i++) {
		int error = wean_wait(child, 0, &status);
		ck_assert_msg(error == ETIMEDOUT, "look %d: wait: %s", i,
		              strerror(error));
		error = wean_wait_any(child, 1, 0, NULL);
		ck_assert_msg(error == ETIMEDOUT, "look %d: any: %s", i, strerror(error));
		error = wean_wait_all(child, 1, 0, &status);
		ck_assert_msg(error == ETIMEDOUT, "look %d: all: %s", i, strerror(error));
	}
}

START_TEST(a_handler_during_a_look_does_not_end_a_child)
{
	struct wean_child child;

	start_held(&child, 8, &(struct wean_options){ HELD });
	tick_fast();
	assert_only_looks(&child);
	stop_ticking();
	let_go(&child);
	ck_assert_int_eq(finish(&child).code, 8);
}
END_TEST

/* Of which only the pidfd tells whether it is over. */
START_TEST(a_handler_during_a_look_does_not_end_who_is_no_child)
{
	struct wean_child parent;

	ck_assert_int_eq(wean_adopt(&parent, getppid(), 0), 0);
	if (_i)
		without_pidfd(&parent);
	tick_fast();
	assert_only_looks(&parent);
	stop_ticking();
	wean_release(&parent);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *eintr_suite(void)
{
	Suite *s = suite_create("eintr");
	TCase *t = tcase_create("eintr");

	tcase_set_tags(t, "signals");
	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, with_the_flag_a_handler_ends_the_wait, 0, 2 * CALLS);
	tcase_add_loop_test(t, the_flag_of_one_child_is_enough, 0, LAST + 1);
	tcase_add_test(t, with_the_flag_the_end_of_a_child_comes_before_a_handler);
	tcase_add_test(t, with_the_flag_stop_comes_back_while_it_waits_for_the_group);
	tcase_add_loop_test(t, without_the_flag_a_wait_goes_on_over_forty_handlers, 0,
	                    2 * CALLS);
	tcase_add_loop_test(t, handlers_neither_stretch_nor_shorten_a_limit, 0, 2);
	tcase_add_test(t, a_handler_during_a_look_does_not_end_a_child);
	tcase_add_loop_test(t, a_handler_during_a_look_does_not_end_who_is_no_child, 0,
	                    2);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(eintr_suite)
