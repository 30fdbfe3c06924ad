/* test_races.c - what several threads may do at once, for a checker of data races to look
   at; and more starts in one thread than such a checker has room for if it was let into
   the children. */
#define _GNU_SOURCE
#include "waiting.h"

/* ---- many starts in one thread ---- */

/* A child that was instrumented enters functions that it never leaves: its parent's
   checker then ends the program after 65,536. */
#ifdef __SANITIZE_THREAD__
enum { STARTS = 100000, ROUNDS = 50 };
#else
# define STARTS scaled(2000)
# define ROUNDS scaled(40)
#endif
enum { ONE_IN = 50 }; /* finds a program; the others are children as well */

struct starts {
	int right, error, stage, code; /* the last three of what was not right */
};

static void start_one(struct starts *s, int i)
{
	struct wean_options opt = { .file = i % ONE_IN ? "/absent" : NULL };
	struct wean_status status = { 0 };
	struct wean_child child;
	int error = wean_spawn(&child, KID("exit", "7"), &opt), right;

	if (i % ONE_IN)
		right = error == ENOENT && child.stage == WEAN_STAGE_EXEC;
	else
		right = !error && !wean_wait(&child, -1, &status) && status.code == 7;
	if (!right)
		*s = (struct starts){ s->right, error, child.stage, status.code };
	s->right += right;
	wean_release(&child);
}

static void *start_many(void *arg)
{
	for (int i = 0; i < STARTS; i++)
		start_one(arg, i);
	return NULL;
}

START_TEST(one_thread_starts_a_hundred_thousand)
{
	struct starts s = { 0 };
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, start_many, &s), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_msg(s.right == STARTS, "%d are right; %s at %s, status %d", s.right,
	              strerror(s.error), wean_stage_name(s.stage), s.code);
}
END_TEST

/* ---- several threads, one child ---- */

enum { WAITERS = 4, KILLERS = 2, STARTERS = 2, THREADS = WAITERS + KILLERS + STARTERS };

struct thread {
	pthread_t id;
	struct wean_child *child; /* everybody's */
	int wrong;                /* the number of what failed; no assertion: Check's are
	                             not for threads */
};

static void *wait_for_it(void *arg)
{
	struct thread *t = arg;
	struct wean_status status = { 0 };

	while (wean_wait(t->child, 1, NULL) == ETIMEDOUT)
		;
	if (wean_wait(t->child, -1, &status))
		t->wrong = 1;
	else if (status.kind != WEAN_SIGNALED || status.value != SIGTERM)
		t->wrong = 2;
	return NULL;
}

/* Until somebody has waited for it. */
static void *kill_it(void *arg)
{
	struct thread *t = arg;
	int error = 0, group;

	for (int i = 0; !error; i++) {
		error = wean_kill(t->child, i == 50 ? SIGTERM : SIGCONT);
		group = wean_kill_group(t->child, SIGCONT);
		if (group && group != ESRCH)
			t->wrong = 3;
	}
	if (error != ESRCH)
		t->wrong = 4;
	return NULL;
}

/* Children of its own. */
static void *start_and_wait_any(void *arg)
{
	struct thread *t = arg;
	struct wean_child children[3];
	struct wean_status status;
	size_t which;
	int seen = 0;

	for (int i = 0; i < 3; i++)
		if (wean_spawn(&children[i], KID("exit", (char[]){ (char)('1' + i), '\0' }),
		               &(struct wean_options){ .flags = way(i % 2) }))
			t->wrong = 5;
	for (int i = 0; i < 3; i++) {
		if (wean_wait_any(children, 3, -1, &which) ||
		    wean_wait(&children[which], -1, &status))
			t->wrong = 6;
		else if (status.code == (int)which + 1)
			seen |= 1 << which;
	}
	if (seen != 7 || wean_wait_any(children, 3, -1, NULL) != ESRCH)
		t->wrong = 7;
	for (int i = 0; i < 3; i++)
		wean_release(&children[i]);
	return NULL;
}

static void *(*const work[THREADS])(void *) = {
	wait_for_it, kill_it, start_and_wait_any, wait_for_it, wait_for_it, kill_it,
	start_and_wait_any, wait_for_it,
};

/* With a pidfd and without. */
START_TEST(threads_wait_for_kill_and_start_at_once)
{
	struct wean_options opt = { HELD, .flags = WEAN_NEW_GROUP };

	kid();
	for (int round = 0; round < ROUNDS; round++) {
		struct thread threads[THREADS];
		struct wean_child child;

		start_held(&child, 0, &opt);
		if (_i)
			without_pidfd(&child);
		for (int i = 0; i < THREADS; i++) {
			threads[i] = (struct thread){ .child = &child };
			ck_assert_int_eq(pthread_create(&threads[i].id, NULL, work[i],
			                                &threads[i]), 0);
		}
		for (int i = 0; i < THREADS; i++) {
			ck_assert_int_eq(pthread_join(threads[i].id, NULL), 0);
			ck_assert_int_eq(threads[i].wrong, 0);
		}
		wean_release(&child);
	}
}
END_TEST

static Suite *races_suite(void)
{
	Suite *s = suite_create("races");
	TCase *t = tcase_create("races");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 180);
	tcase_add_test(t, one_thread_starts_a_hundred_thousand);
	tcase_add_loop_test(t, threads_wait_for_kill_and_start_at_once, 0, 2);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(races_suite)
