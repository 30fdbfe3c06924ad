/* test_wall_clock.c - a clock that is set, forth or back, has no effect: nobody asks for
   the time of day, and nothing waits for one. */
#define _GNU_SOURCE
#include "waiting.h"

#include <sys/time.h>

#include "count.h"

/* ---- a wall clock that jumps by years with every look at it ---------------- */

static int looks, monotonic_looks;

static time_t jump(void)
{
	int years = __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) % 20;

	return 1000000000 + 86400 * 365 * (time_t)years;
}

/* The kernel's call for this time_t. */
#if defined SYS_clock_gettime64
# define CLOCK_CALL \
	(sizeof(time_t) > sizeof(long) ? SYS_clock_gettime64 : SYS_clock_gettime)
#else
# define CLOCK_CALL SYS_clock_gettime
#endif

int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (clock == CLOCK_MONOTONIC) {
		__atomic_fetch_add(&monotonic_looks, 1, __ATOMIC_RELAXED);
		return (int)syscall(CLOCK_CALL, clock, t);
	}
	*t = (struct timespec){ jump(), 0 };
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	(void)zone;
	*t = (struct timeval){ jump(), 0 };
	return 0;
}

time_t time(time_t *t)
{
	time_t now = jump();

	return t ? *t = now : now;
}

#if defined SYS_ppoll_time64
# define PPOLL_TIME64 SYS_ppoll_time64
#else
# define PPOLL_TIME64 SYS_ppoll
#endif

/* ---- every call that takes a limit ----------------------------------------- */

enum { LIMIT = 40, CHILDREN = 3 };

/* Who ignores SIGTERM, and is there to ignore it. */
static void start_stubborn(struct wean_child *child)
{
	struct wean_options o = { .out = WEAN_PIPE };
	char sig[8];

	snprintf(sig, sizeof sig, "%d", SIGTERM);
	start(child, KID("ignore", sig, "--then", "echo", "ready", "--then", "pause"), &o);
	await_ready(child->out);
}

static int talks_run_out(struct wean_child *children)
{
	struct wean_io io = { .timeout_ms = LIMIT };
	struct wean_result r = { 0 };
	wean_reader *reader = NULL;
	const char *data;
	size_t len;
	int ran_out = wean_communicate(&children[1], &io, &r) == ETIMEDOUT &&
	              !wean_reader_new(&reader, children[2].out, 0) &&
	              !wean_reader_timeout(reader, LIMIT) &&
	              wean_read_line(reader, &data, &len) == ETIMEDOUT;

	wean_result_free(&r);
	wean_reader_free(reader);
	return ran_out;
}

/* 1: each limit ran out, and not before the grace the stubborn was killed. */
static int limits_run_out(struct wean_child *children)
{
	struct wean_status status = { 0 }, all[CHILDREN];
	size_t index;

	for (int ms = 0; ms <= LIMIT; ms += LIMIT)
		if (wean_wait(&children[0], ms, &status) != ETIMEDOUT ||
		    wean_wait_any(children, CHILDREN, ms, &index) != ETIMEDOUT ||
		    wean_wait_all(children, CHILDREN, ms, all) != ETIMEDOUT)
			return 0;
	if (!talks_run_out(children))
		return 0;
	return !wean_stop(&children[0], LIMIT, &status) &&
	       status.kind == WEAN_SIGNALED && status.value == SIGKILL;
}

static void start_all(struct wean_child *children, int has_pidfd)
{
	for (int i = 0; i < CHILDREN; i++) {
		start_stubborn(&children[i]);
		if (!has_pidfd)
			without_pidfd(&children[i]);
	}
}

static void end_all(struct wean_child *children)
{
	for (int i = 0; i < CHILDREN; i++) {
		ck_assert_int_eq(wean_stop(&children[i], 0, NULL), 0);
		wean_release(&children[i]);
	}
}

START_TEST(no_limit_looks_at_the_wall_clock)
{
	struct wean_child children[CHILDREN];

	ck_assert_int_lt(time(NULL), time(NULL)); /* it does jump */
	start_all(children, _i);
	looks = monotonic_looks = 0;
	long long begin = now_ms();
	int right = limits_run_out(children);
	long long took = now_ms() - begin;
	ck_assert_int_eq(right, 1);
	ck_assert_int_eq(looks, 0);
	ck_assert_int_gt(monotonic_looks, 2);
	ck_assert_int_ge(took, 4 * LIMIT); /* cut short by no jump */
	end_all(children);
	ck_assert_int_eq(looks, 0);
}
END_TEST

/* ---- the kernel is not asked to wait for a time of day either --------------- */

static int counted_limits(void *has_pidfd)
{
	struct wean_child children[CHILDREN];

	start_all(children, *(int *)has_pidfd);
	count_begin();
	int right = limits_run_out(children);
	count_end();
	end_all(children);
	return !right;
}

/* A call that tells the time of day, or waits for one; FUTEX_CLOCK_REALTIME is 256. */
static int is_about_the_time_of_day(const struct count_call *c)
{
	switch (c->nr) {
	case SYS_clock_gettime:
	case SYS_clock_nanosleep:
	case SYS_timerfd_create:
	case SYS_timer_create:
		return (int)c->args[0] != CLOCK_MONOTONIC;
	case SYS_futex:
		return (c->args[1] & 256) != 0;
	case SYS_gettimeofday:
#ifdef SYS_time
	case SYS_time:
#endif
	case SYS_timerfd_settime:
	case SYS_timer_settime:
		return 1;
	default:
		return 0;
	}
}

START_TEST(no_call_waits_for_a_time_of_day)
{
	struct count c;
	int error = count_calls(&c, counted_limits, &_i);

	if (error > 0)
		SKIP("calls can't be counted here");
	ck_assert_int_eq(error, 0);
	if (getenv("WEAN_DUMP"))
		count_dump(&c, stderr);
	for (size_t i = 0; i < c.n; i++)
		ck_assert_msg(!is_about_the_time_of_day(&c.calls[i]), "%s",
		              count_name(c.calls[i].nr));
	/* What it does wait by takes a length of time. */
	ck_assert_uint_gt(count_of(&c, COUNT_PARENT, SYS_ppoll) +
	                  count_of(&c, COUNT_PARENT, PPOLL_TIME64), 0);
	count_free(&c);
}
END_TEST

/* A start has no limit, and asks for no time at all. */
START_TEST(no_start_looks_at_a_clock)
{
	struct wean_options o = { .in = WEAN_PIPE, .out = WEAN_PIPE, .flags = way(_i) };
	struct wean_child child;

	kid();
	looks = monotonic_looks = 0;
	int error = wean_spawn(&child, KID("exit", "3"), &o);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	wean_release(&child);
	ck_assert_int_eq(looks, 0);
	ck_assert_int_eq(monotonic_looks, 0);
}
END_TEST

static Suite *wall_clock_suite(void)
{
	Suite *s = suite_create("wall clock");
	TCase *own = tcase_create("own clock"), *counted = tcase_create("counted");

	tcase_set_tags(counted, "ptrace");
	tcase_set_timeout(own, 60);
	tcase_set_timeout(counted, 60);
	tcase_add_loop_test(own, no_limit_looks_at_the_wall_clock, 0, 2);
	tcase_add_loop_test(own, no_start_looks_at_a_clock, 0, WAYS);
	tcase_add_loop_test(counted, no_call_waits_for_a_time_of_day, 0, 2);
	suite_add_tcase(s, own);
	suite_add_tcase(s, counted);
	return s;
}

RUN_SUITE(wall_clock_suite)
