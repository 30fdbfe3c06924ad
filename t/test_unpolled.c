/* test_unpolled.c - where poll(2) is refused a wait naps, and what can't do without it tells
   so; nothing spins. */
#define _GNU_SOURCE
#include "denying.h"
#include "talking.h"

/* A filter's errno, or what poll itself says where no descriptor is permitted. */
enum { WAYS_TO_REFUSE = 3 };

static int refuse_polls(int way_)
{
	static const int errors[] = { EPERM, ENOSYS };

	if (way_ == 2) {
		soft_limit(RLIMIT_NOFILE, 0);
		return EINVAL;
	}
	ck_assert(deny(SYS_ppoll, errors[way_]));
	return errors[way_];
}

#define NEED_REFUSAL(way_) \
	do { \
		if ((way_) < 2 && !can_deny()) \
			SKIP("no filter of system calls"); \
	} while (0)

/* ---- naps ---------------------------------------------------------------- */

enum { LIMIT = 150 };

static int waits(struct wean_child *c)
{
	return wean_wait(c, LIMIT, NULL);
}

static int waits_without_pidfd(struct wean_child *c)
{
	close(c->pidfd);
	c->pidfd = -1;
	return wean_wait(c, LIMIT, NULL);
}

static int waits_for_any(struct wean_child *c)
{
	return wean_wait_any(c, 1, LIMIT, NULL);
}

static int waits_for_all(struct wean_child *c)
{
	return wean_wait_all(c, 1, LIMIT, NULL);
}

/* Its group lives on after it. */
static int stops(struct wean_child *c)
{
	int error = wean_stop(c, LIMIT, NULL);

	return error ? error : ETIMEDOUT;
}

static const struct napping {
	int (*act)(struct wean_child *);
	unsigned long long sigignore;
} nappings[] = {
	{ waits, 0 }, { waits_without_pidfd, 0 }, { waits_for_any, 0 }, { waits_for_all, 0 },
	{ stops, WEAN_SIG(SIGTERM) },
};

struct nap {
	const struct napping *n;
	int way_;
};

static int take_naps(void *arg)
{
	const struct nap *nap = arg;
	struct wean_options o = { .in = WEAN_PIPE, .flags = WEAN_NEW_GROUP,
	                          .sigignore = nap->n->sigignore };
	struct wean_child child;
	int error;

	if (wean_spawn(&child, KID("cat"), &o))
		return -1;
	refuse_polls(nap->way_);
	count_begin();
	error = nap->n->act(&child);
	count_end();
	wean_kill(&child, SIGKILL);
	wean_wait(&child, -1, NULL);
	wean_release(&child);
	return error == ETIMEDOUT ? 0 : -1;
}

START_TEST(a_wait_naps)
{
	enum { MANY = 120 }; /* of a spin they would be a hundred thousand */
	struct nap nap = { &nappings[_i / WAYS_TO_REFUSE], _i % WAYS_TO_REFUSE };
	struct count c;

	NEED_REFUSAL(nap.way_);
	kid();
	int error = count_calls(&c, take_naps, &nap);
	if (error > 0)
		SKIP("no counting here: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	if (nap.way_ < 2)
		ck_assert_uint_gt(count_failed(&c, COUNT_PARENT, SYS_ppoll, 0), 0);
	ck_assert_uint_lt(count_total(&c, COUNT_PARENT), MANY);
	count_free(&c);
}
END_TEST

/* One that another has reaped, and that is no child of ours. */
START_TEST(the_end_of_a_child_is_seen)
{
	struct wean_status status;
	struct wean_child child;

	NEED_REFUSAL(_i % WAYS_TO_REFUSE);
	start_held(&child, 5, &(struct wean_options){ HELD });
	refuse_polls(_i % WAYS_TO_REFUSE);
	let_go(&child);
	if (_i / WAYS_TO_REFUSE)
		ck_assert_int_eq(waitpid(child.pid, NULL, 0), child.pid);
	ck_assert_int_eq(wean_wait(&child, LONG, &status), 0);
	if (_i / WAYS_TO_REFUSE && !kernel_has(6, 15))
		ck_assert_int_eq(status.kind, WEAN_UNKNOWN);
	else
		assert_exited(&status, 5);
	wean_release(&child);
}
END_TEST

/* ---- what can't do without ----------------------------------------------- */

START_TEST(a_communication_tells_and_leaves_all_as_it_was)
{
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE };
	struct wean_io io = { .input = "x", .input_len = 1 };
	struct wean_result r = { 0 };
	struct wean_child child;

	NEED_REFUSAL(_i);
	start(&child, KID("cat"), &opt);
	uint64_t before = limit_of(RLIMIT_NOFILE).soft;
	int refused_with = refuse_polls(_i);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(wean_communicate(&child, &io, &r), refused_with);
		ck_assert_int_eq(is_nonblocking(child.in), 0);
		ck_assert_int_ge(child.out, 0);
		ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
	}
	if (_i == 2) {
		soft_limit(RLIMIT_NOFILE, before);
		ck_assert_int_eq(wean_communicate(&child, &io, &r), 0);
		assert_text(r.out, r.out_len, "x");
	} else {
		ck_assert_int_eq(wean_stop(&child, 0, NULL), 0);
	}
	wean_result_free(&r);
	wean_release(&child);
}
END_TEST

START_TEST(a_run_tells_and_leaves_no_child)
{
	struct wean_options opt = { .sigignore = WEAN_SIG(SIGTERM) };
	struct wean_result r;
	struct baseline b;

	NEED_REFUSAL(_i);
	kid();
	int refused_with = refuse_polls(_i);
	baseline_take(&b);
	int error = wean_run(KID("pause"), &opt,
	                     &(struct wean_io){ .timeout_ms = LONG, .grace_ms = 30 }, &r);
	ck_assert_int_eq(error, refused_with);
	assert_signaled(&r.status, SIGKILL);
	wean_result_free(&r);
	baseline_same(&b);
}
END_TEST

START_TEST(a_reader_with_a_limit_tells_and_loses_nothing)
{
	wean_reader *r = NULL;
	const char *data;
	int ends[2];
	size_t len;

	NEED_REFUSAL(_i);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(write(ends[1], "line\n", 5), 5);
	ck_assert_int_eq(wean_reader_new(&r, ends[0], 0), 0);
	ck_assert_int_eq(wean_reader_timeout(r, LONG), 0);
	int refused_with = refuse_polls(_i);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(wean_read_line(r, &data, &len), refused_with);
	ck_assert_int_eq(wean_reader_timeout(r, -1), 0);
	ck_assert_int_eq(wean_read_line(r, &data, &len), 0);
	assert_text(data, len, "line");
	wean_reader_free(r);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *unpolled_suite(void)
{
	Suite *s = suite_create("unpolled");
	TCase *t = case_that_needs(s, "seccomp native");

	tcase_add_loop_test(t, the_end_of_a_child_is_seen, 0, 2 * WAYS_TO_REFUSE);
	tcase_add_loop_test(t, a_communication_tells_and_leaves_all_as_it_was, 0,
	                    WAYS_TO_REFUSE);
	tcase_add_loop_test(t, a_run_tells_and_leaves_no_child, 0, 2);
	tcase_add_loop_test(t, a_reader_with_a_limit_tells_and_loses_nothing, 0,
	                    WAYS_TO_REFUSE);
	t = case_that_needs(s, "seccomp native ptrace");
	tcase_add_loop_test(t, a_wait_naps, 0, COUNT(nappings) * WAYS_TO_REFUSE);
	return s;
}

RUN_SUITE(unpolled_suite)
