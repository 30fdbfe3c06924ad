/* test_stranger.c - wean_adopt() of a process that is no child of ours: nothing can be
   waited for, but it is seen when it is over, and not before. */
#define _GNU_SOURCE
#include "adopting.h"

START_TEST(a_parent_can_be_watched_and_does_not_seem_over)
{
	struct wean_child parent;
	struct wean_status status;
	struct baseline b;

	baseline_take(&b);
	adopt(&parent, getppid(), 0);
	if (_i)
		without_pidfd(&parent);
	for (int ms = 0; ms < 20; ms += 5) {
		ck_assert_int_eq(wean_wait(&parent, ms, &status), ETIMEDOUT);
		ck_assert_int_eq(wean_wait_any(&parent, 1, ms, NULL), ETIMEDOUT);
		ck_assert_int_eq(wean_wait_all(&parent, 1, ms, &status), ETIMEDOUT);
		assert_zero(&status);
	}
	ck_assert_int_eq(wean_kill(&parent, 0), 0);
	wean_release(&parent);
	baseline_same(&b);
}
END_TEST

/* A grandchild, whose parent reaps it at once, or not before it is let go. */
struct grandchild {
	struct own parent;
	pid_t pid;
};

static void be_parent(int tell, int hold, int reaps)
{
	char byte;

	signal(SIGTERM, SIG_DFL); /* Check's would end the whole test */
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		for (;;)
			pause();
	}
	setpgid(pid, pid);
	if (write(tell, &pid, sizeof pid) != sizeof pid)
		_exit(1);
	if (reaps)
		waitpid(pid, NULL, 0);
	_exit(read(hold, &byte, 1) != 0);
}

static void fork_grandchild(struct grandchild *g, int reaps)
{
	int tell[2], hold[2];

	ck_assert_int_eq(pipe2(tell, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(hold, O_CLOEXEC), 0);
	ck_assert_int_ge(g->parent.pid = fork(), 0);
	if (g->parent.pid == 0) {
		close(hold[1]);
		be_parent(tell[1], hold[0], reaps);
	}
	ck_assert_int_eq(read(tell[0], &g->pid, sizeof g->pid), sizeof g->pid);
	close(tell[0]);
	close(tell[1]);
	close(hold[0]);
	g->parent.hold = hold[1];
}

static void reap_parent(struct grandchild *g)
{
	int status;

	end_own(&g->parent);
	ck_assert_int_eq(waitpid(g->parent.pid, &status, 0), g->parent.pid);
	ck_assert_int_eq(status, 0);
}

static void assert_unknown(const struct wean_status *status)
{
	ck_assert_int_eq(status->kind, WEAN_UNKNOWN);
	ck_assert_int_eq(status->code, 255);
	ck_assert_int_eq(status->value, 0);
	ck_assert_int_eq(status->core, 0);
}

static void *kill_it(void *arg)
{
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	kill(*(pid_t *)arg, SIGKILL);
	return NULL;
}

START_TEST(who_is_no_child_ends_with_an_unknown_status)
{
	struct wean_status status = { 0 };
	struct wean_child child;
	struct grandchild g;
	pthread_t thread;

	fork_grandchild(&g, 1);
	adopt(&child, g.pid, 0);
	if (_i % 2)
		without_pidfd(&child);
	ck_assert_int_eq(wean_wait(&child, 0, &status), ETIMEDOUT);
	ck_assert_int_eq(pthread_create(&thread, NULL, kill_it, &g.pid), 0);
	if (_i / 2)
		ck_assert_int_eq(wean_wait_any(&child, 1, -1, NULL), 0);
	ck_assert_int_eq(wean_wait(&child, _i / 2 ? 0 : -1, &status), 0);
	assert_unknown(&status);
	memset(&status, 0, sizeof status);
	ck_assert_int_eq(wean_wait(&child, 0, &status), 0);
	assert_unknown(&status);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	pthread_join(thread, NULL);
	wean_release(&child);
	reap_parent(&g);
}
END_TEST

START_TEST(who_is_no_child_is_stopped_too)
{
	struct wean_status status;
	struct wean_child child;
	struct grandchild g;

	fork_grandchild(&g, 1);
	adopt(&child, g.pid, _i / 4 ? 0 : WEAN_NEW_GROUP);
	if (_i % 2)
		without_pidfd(&child);
	if (_i / 2 % 2)
		ck_assert_int_eq(wean_kill(&child, SIGSTOP), 0);
	ck_assert_int_eq(wean_stop(&child, _i / 2 % 2 ? 0 : 600000, &status), 0);
	assert_unknown(&status);
	wean_release(&child);
	reap_parent(&g); /* which waited for it */
	ck_assert_int_eq(kill(g.pid, 0), -1);
}
END_TEST

START_TEST(who_is_no_child_is_over_when_it_is_dead_though_not_reaped)
{
	struct wean_status status;
	struct wean_child child;
	struct grandchild g;

	fork_grandchild(&g, 0);
	adopt(&child, g.pid, 0);
	if (_i)
		without_pidfd(&child);
	ck_assert_int_eq(kill(g.pid, SIGKILL), 0);
	ck_assert_int_eq(wean_wait(&child, 3000, &status), 0);
	assert_unknown(&status);
	ck_assert_int_eq(kill(g.pid, 0), 0);
	wean_release(&child);
	reap_parent(&g);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *stranger_suite(void)
{
	Suite *s = suite_create("stranger");
	TCase *t = tcase_create("stranger");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, a_parent_can_be_watched_and_does_not_seem_over, 0, 2);
	tcase_add_loop_test(t, who_is_no_child_ends_with_an_unknown_status, 0, 4);
	tcase_add_loop_test(t, who_is_no_child_is_stopped_too, 0, 8);
	tcase_add_loop_test(t, who_is_no_child_is_over_when_it_is_dead_though_not_reaped,
	                    0, 2);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(stranger_suite)
