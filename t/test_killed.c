/* test_killed.c - a child that dies on the way to its program was not started. */
#define _GNU_SOURCE
#include "spawning.h"

#include <sched.h>

START_TEST(a_child_killed_while_it_opens_a_file_is_an_error)
{
	struct wean_child child;
	struct trap trap;

	if (!trap_set(&trap, "held", act_kill))
		SKIP("no leases on %s", scratch);
	const struct wean_fd fds[] = {
		{ .kind = WEAN_NULL, .target = 7 },
		{ .kind = WEAN_OPEN, .target = 8, .path = trap.path },
		{ .kind = WEAN_NULL, .target = 9 },
	};
	struct wean_options opt = { .fds = fds, .nfds = 3, .in = WEAN_PIPE,
	                            .flags = way(_i) };
	refused_in(&trap, &child, KID("exit", "0"), &opt,
	           (struct refusal){ ECANCELED, WEAN_STAGE_OPEN, 1 });
}
END_TEST

START_TEST(a_child_killed_while_it_executes_is_an_error)
{
	struct wean_child child;
	struct trap trap;

	if (!trap_set(&trap, "program", act_kill))
		SKIP("no leases on %s", scratch);
	char *list[] = { "/absent", trap.path, "/absent", NULL };
	struct wean_options opt = { .candidates = list, .flags = way(_i) };
	refused_in(&trap, &child, KID("exit", "0"), &opt,
	           (struct refusal){ ECANCELED, WEAN_STAGE_EXEC, 1 });
}
END_TEST

static void *reap_with_all(void *arg)
{
	while (waitpid(-1, NULL, __WALL) > 0 || !__atomic_load_n((int *)arg, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

/* Whoever of the two gets to reap it. */
START_TEST(a_killed_child_that_the_host_reaps_is_an_error_too)
{
	int over = 0;
	pthread_t reaper;
	sigset_t all, old;

	/* The trap's signal is not for the reaper, from its first moment on. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ck_assert_int_eq(pthread_create(&reaper, NULL, reap_with_all, &over), 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	for (int i = 0; i < 20; i++) {
		struct wean_child child;
		struct trap trap;
		if (!trap_set(&trap, "held", act_kill))
			SKIP("no leases on %s", scratch);
		const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 8,
		                            .path = trap.path };
		struct wean_options opt = { .fds = &fd, .nfds = 1, .flags = way(_i) };
		refused_in(&trap, &child, KID("exit", "0"), &opt,
		           (struct refusal){ ECANCELED, WEAN_STAGE_OPEN, 0 });
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(reaper, NULL), 0);
}
END_TEST

/* SIGTERM has a handler here: it must not run in the child. */
START_TEST(a_signal_that_comes_during_the_start_kills_before_the_program)
{
	struct wean_child child;
	struct trap trap;

	handle(SIGTERM, on_tick);
	if (!trap_set(&trap, "opened", act_term))
		SKIP("no leases on %s", scratch);
	const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 8, .path = trap.path };
	struct wean_options opt = { .fds = &fd, .nfds = 1, .flags = way(_i) };
	refused_in(&trap, &child, KID("exit", "0"), &opt,
	           (struct refusal){ ECANCELED, WEAN_STAGE_SIGNALS, -1 });
	ck_assert_int_eq(ticks, 0);
}
END_TEST

START_TEST(a_child_that_was_held_and_let_go_starts)
{
	struct trap trap;

	if (!trap_set(&trap, "free", act_nothing))
		SKIP("no leases on %s", scratch);
	char *argv[] = { trap.path, "exit", "9", NULL };
	struct wean_options opt = { .flags = way(_i) };
	ck_assert_int_eq(run(argv, &opt), 9);
	trap_sprung(&trap);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *killed_suite(void)
{
	Suite *s = suite_create("killed");
	TCase *t = tcase_create("killed");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_child_killed_while_it_opens_a_file_is_an_error, 0, WAYS);
	tcase_add_loop_test(t, a_child_killed_while_it_executes_is_an_error, 0, WAYS);
	tcase_add_loop_test(t, a_killed_child_that_the_host_reaps_is_an_error_too, 0,
	                    WAYS);
	tcase_add_loop_test(t,
	                    a_signal_that_comes_during_the_start_kills_before_the_program,
	                    0, WAYS);
	tcase_add_loop_test(t, a_child_that_was_held_and_let_go_starts, 0, WAYS);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(killed_suite)
