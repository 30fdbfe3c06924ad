/* test_stop.c - wean_stop(): who is ended, how, with what status, and who is not. */
#define _GNU_SOURCE
#include "waiting.h"

/* Longer than a test may last: whoever waits it out fails. */
enum { LONG = 600000 };

/* Far more than a stop may take, however busy the machine is. */
enum { BOUND = 6000 };

static struct wean_status stop(struct wean_child *child, int grace_ms)
{
	struct wean_status status;
	struct baseline b;
	long long begin = now_ms();

	baseline_take(&b);
	int error = wean_stop(child, grace_ms, &status);
	baseline_kept(&b);
	ck_assert_msg(!error, "stop: %s", strerror(error));
	if (grace_ms < LONG)
		ck_assert_int_lt(now_ms() - begin, grace_ms + 1000 + BOUND);
	return status;
}

static void assert_gone(const struct wean_child *child)
{
	ck_assert_int_eq(waitpid(child->pid, NULL, WNOHANG), -1);
	ck_assert_int_eq(wean_kill(child, 0), ESRCH);
}

/* It and its end, each way to start, with a group or none, with a pidfd or none. */
enum { KINDS = 8 };

static void start_kind(struct wean_child *child, int kind, char *const argv[],
                       struct wean_options opt)
{
	opt.flags |= way(kind % 2) | (kind / 2 % 2 ? WEAN_NEW_GROUP : 0);
	start(child, argv, &opt);
	if (kind / 4)
		without_pidfd(child);
}

/* ---- the child alone ---- */

START_TEST(sigterm_is_enough_for_most)
{
	struct wean_child child;
	struct wean_status status;

	start_kind(&child, _i, KID("pause"), (struct wean_options){ 0 });
	status = stop(&child, LONG);
	assert_signaled(&status, SIGTERM);
	assert_gone(&child);
	wean_release(&child);
}
END_TEST

START_TEST(who_handles_sigterm_leaves_with_its_own_status)
{
	struct wean_child child;
	struct wean_status status;

	start_kind(&child, _i, KID("on", "15", "42", "--then", "say", "1", "ready",
	                           "--then", "pause"),
	           (struct wean_options){ .out = WEAN_PIPE });
	await_ready(child.out);
	status = stop(&child, LONG);
	assert_exited(&status, 42);
	wean_release(&child);
}
END_TEST

START_TEST(who_ignores_sigterm_is_killed_after_the_grace)
{
	struct wean_child child;
	struct wean_status status;
	long long begin;

	start_kind(&child, _i, KID("pause"),
	           (struct wean_options){ .sigignore = WEAN_SIG(SIGTERM) });
	begin = now_ms();
	status = stop(&child, 60);
	ck_assert_int_ge(now_ms() - begin, 60);
	assert_signaled(&status, SIGKILL);
	assert_gone(&child);
	wean_release(&child);
}
END_TEST

START_TEST(without_grace_it_is_killed_at_once)
{
	for (int i = 0; i < scaled(10); i++) {
		struct wean_child child;
		start_kind(&child, _i, KID("pause"), (struct wean_options){ 0 });
		struct wean_status status = stop(&child, 0);
		assert_signaled(&status, SIGKILL);
		wean_release(&child);
	}
}
END_TEST

START_TEST(who_is_stopped_is_woken_to_end)
{
	static const struct { int ignores, grace, sig; } rows[] = {
		{ 0, LONG, SIGTERM }, { SIGTERM, 50, SIGKILL }, { 0, 0, SIGKILL },
	};
	struct wean_child child;
	siginfo_t si;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsigned long long ignored = rows[i].ignores ? WEAN_SIG(SIGTERM) : 0;
		start_kind(&child, _i, KID("stop", "--then", "pause"),
		           (struct wean_options){ .sigignore = ignored });
		ck_assert_int_eq(waitid(P_PID, (id_t)child.pid, &si, WSTOPPED | WNOWAIT),
		                 0);
		struct wean_status status = stop(&child, rows[i].grace);
		assert_signaled(&status, rows[i].sig);
		wean_release(&child);
	}
}
END_TEST

START_TEST(who_is_over_already_gives_its_status_at_once)
{
	struct wean_child child;
	struct wean_status status;

	for (int waited = 0; waited < 2; waited++) {
		start_kind(&child, _i, KID("exit", "11"), (struct wean_options){ 0 });
		await_zombie(child.pid);
		if (waited)
			ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
		for (int i = 0; i < 3; i++) {
			status = stop(&child, i == 1 ? 0 : LONG);
			assert_exited(&status, 11);
			assert_gone(&child);
		}
		ck_assert_int_eq(wean_stop(&child, LONG, NULL), 0);
		wean_release(&child);
	}
}
END_TEST

START_TEST(a_struct_without_a_child_cannot_be_stopped)
{
	static const int graces[] = { 0, LONG };
	char *missing[] = { (char[]){ "/nonexistent" }, NULL };
	struct wean_child none = { 0 }, failed, ends, released;
	struct wean_status status = { .kind = 7 };
	struct baseline b;

	baseline_take(&b);
	ck_assert_int_eq(wean_spawn(&failed, missing, NULL), ENOENT);
	ck_assert_int_eq(wean_adopt(&ends, 0, 0), 0);
	start(&released, KID("exit", "0"), NULL);
	finish(&released);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(wean_stop(NULL, graces[i], &status), EINVAL);
		ck_assert_int_eq(wean_stop(&none, graces[i], &status), ESRCH);
		ck_assert_int_eq(wean_stop(&failed, graces[i], &status), ESRCH);
		ck_assert_int_eq(wean_stop(&ends, graces[i], NULL), ESRCH);
		ck_assert_int_eq(wean_stop(&released, graces[i], NULL), ESRCH);
	}
	baseline_same(&b);
	ck_assert_int_eq(status.kind, 7);
}
END_TEST

START_TEST(what_may_not_be_killed_is_not_waited_for_without_end)
{
	struct wean_child child;
	long long begin;

	if (geteuid() != 0)
		SKIP("needs root, to start what it then may not kill");
	start_held(&child, 3, &(struct wean_options){ HELD, .flags = WEAN_NEW_GROUP });
	become_nobody();
	ck_assert_int_eq(wean_kill_group(&child, SIGKILL), EPERM);
	begin = now_ms();
	ck_assert_int_eq(wean_stop(&child, 50, NULL), ETIMEDOUT);
	ck_assert_int_ge(now_ms() - begin, 1000);
	ck_assert_int_lt(now_ms() - begin, 1050 + BOUND);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
	let_go(&child);
	ck_assert_int_eq(finish(&child).code, 3);
}
END_TEST

/* ---- with a group ---- */

static const struct wean_options group = { .out = WEAN_PIPE, .flags = WEAN_NEW_GROUP };
static const struct wean_options stubborn_group = {
	.out = WEAN_PIPE, .flags = WEAN_NEW_GROUP, .sigignore = WEAN_SIG(SIGTERM),
};

START_TEST(the_group_ends_with_its_leader)
{
	struct wean_options opt = group;
	struct wean_child child;
	struct orphan held;

	opt.flags = _i % 2 ? WEAN_NEW_SESSION : WEAN_NEW_GROUP;
	start_two(&child, &held, "pause", NULL, &opt);
	if (_i / 2)
		without_pidfd(&child);
	struct wean_status status = stop(&child, LONG);
	assert_signaled(&status, SIGTERM);
	ck_assert_int_eq(orphan_code(&held), 128 + SIGTERM);
	wean_release(&child);
}
END_TEST

START_TEST(a_group_that_ignores_sigterm_is_killed_after_the_grace)
{
	struct wean_child child;
	struct orphan held;

	start_two(&child, &held, "pause", NULL, &stubborn_group);

	if (_i / 2)
		without_pidfd(&child);
	struct wean_status status = stop(&child, _i % 2 ? 60 : 0);
	assert_signaled(&status, SIGKILL);
	ck_assert_int_eq(orphan_code(&held), 128 + SIGKILL);
	wean_release(&child);
}
END_TEST

/* The leader is over before the call; the group is found by what still bears its
   number. */
START_TEST(what_a_leader_left_behind_is_ended)
{
	int stubborn = _i % 2, grace = _i / 2 % 2 ? 60 : 0;
	int with_pidfd = _i / 4 % 2 == 0, waited = _i / 8;
	struct wean_child child;
	struct orphan held;

	if (waited && !kernel_has(6, 9))
		SKIP("this kernel can't reach a group whose number is given up");
	start_two(&child, &held, "exit", "21", stubborn ? &stubborn_group : &group);
	await_zombie(child.pid);
	if (waited)
		ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	if (!with_pidfd)
		without_pidfd(&child);
	with_pidfd = child.pidfd >= 0;
	struct wean_status status = stop(&child, grace);
	assert_exited(&status, 21);
	int code = orphan_code(&held);
	if (stubborn || !grace)
		ck_assert_int_eq(code, 128 + SIGKILL);
	else if (with_pidfd && kernel_has(6, 9))
		ck_assert_int_eq(code, 128 + SIGTERM);
	else
		ck_assert(code == 128 + SIGTERM || code == 128 + SIGKILL);
	wean_release(&child);
}
END_TEST

/* Longer than the leader, which has nothing to do, needs. */
START_TEST(what_a_leader_leaves_behind_has_the_rest_of_the_grace)
{
	struct wean_options opt = group;
	struct wean_child child;
	struct orphan held;

	if (!kernel_has(6, 9))
		SKIP("this kernel can't ask about a group whose number is given up");
	opt.err = WEAN_PIPE;
	adopt_orphans();
	start(&child, KID("on", "15", "9", "200", "--then", "fork-hold", "600000",
	                  "--then", "on", "15", "3", "--then", "say", "2", "ready",
	                  "--then", "pause"), &opt);
	orphan_watch(&held, read_pid(child.out));
	await_ready(child.err);
	struct wean_status status = stop(&child, LONG);
	assert_exited(&status, 3);
	ck_assert_int_eq(orphan_code(&held), 9);
	wean_release(&child);
}
END_TEST

START_TEST(a_grandchild_in_a_session_of_its_own_survives)
{
	struct wean_child child;
	struct orphan held;

	adopt_orphans();
	start(&child, KID("setsid-hold", "600000", "--then", "pause"), &group);
	orphan_watch(&held, read_pid(child.out));
	struct wean_status status = stop(&child, _i ? LONG : 0);
	assert_signaled(&status, _i ? SIGTERM : SIGKILL);
	orphan_end(&held);
	wean_release(&child);
}
END_TEST

/* This test is in that group itself. */
START_TEST(who_leads_no_group_ends_alone)
{
	const struct wean_options opt = { .out = WEAN_PIPE };
	struct wean_child child;
	struct orphan held;

	start_two(&child, &held, "pause", NULL, &opt);

	if (_i / 2)
		without_pidfd(&child);
	struct wean_status status = stop(&child, _i % 2 ? LONG : 0);
	assert_signaled(&status, _i % 2 ? SIGTERM : SIGKILL);
	orphan_end(&held);
	wean_release(&child);
}
END_TEST

/* ---- other threads, other reapers, other processes ---- */

static void *await_stopped(void *arg)
{
	struct wean_status status;
	int error = wean_wait(arg, -1, &status);

	if (error || status.kind != WEAN_SIGNALED || status.value != SIGTERM)
		return NULL;
	return arg;
}

START_TEST(who_joined_a_group_does_not_take_it_along)
{
	struct wean_child leader, member;
	struct wean_options join = { .flags = WEAN_JOIN_GROUP };
	struct wean_status status;

	start_held(&leader, 5, &(struct wean_options){ HELD, .flags = WEAN_NEW_GROUP });
	join.pgid = leader.pid;
	start(&member, KID("pause"), &join);
	status = stop(&member, LONG);
	assert_signaled(&status, SIGTERM);
	wean_release(&member);
	ck_assert_int_eq(wean_wait(&leader, 0, NULL), ETIMEDOUT);
	let_go(&leader);
	ck_assert_int_eq(finish(&leader).code, 5);
}
END_TEST

/* What nobody reaped is left in the group, so another thread waits for it. */
START_TEST(who_joined_a_group_ends_with_its_leader)
{
	struct wean_child leader, member;
	struct wean_options join = { .flags = WEAN_JOIN_GROUP };
	pthread_t thread;
	void *result;

	start(&leader, KID("pause"), &(struct wean_options){ .flags = WEAN_NEW_GROUP });
	join.pgid = leader.pid;
	start(&member, KID("pause"), &join);
	ck_assert_int_eq(pthread_create(&thread, NULL, await_stopped, &member), 0);
	struct wean_status status = stop(&leader, LONG);
	assert_signaled(&status, SIGTERM);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, &member);
	wean_release(&leader);
	wean_release(&member);
}
END_TEST

START_TEST(threads_that_wait_get_the_status_too)
{
	enum { THREADS = 4 };
	struct wean_child child;
	pthread_t threads[THREADS];
	void *result;

	start_kind(&child, _i, KID("pause"), (struct wean_options){ 0 });
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, await_stopped, &child),
		                 0);
	struct wean_status status;
	ck_assert_int_eq(wean_stop(&child, LONG, &status), 0);
	assert_signaled(&status, SIGTERM);
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &result), 0);
		ck_assert_ptr_eq(result, &child);
	}
	wean_release(&child);
}
END_TEST

START_TEST(a_host_that_ignores_sigchld_stops_all_the_same)
{
	struct wean_child child;

	handle(SIGCHLD, SIG_IGN);
	start_kind(&child, _i, KID("pause"), (struct wean_options){ 0 });
	struct wean_status status = stop(&child, LONG);
	if (status.kind == WEAN_UNKNOWN)
		ck_assert_int_eq(status.code, 255);
	else
		assert_signaled(&status, SIGTERM);
	if (kernel_keeps_statuses() && child.pidfd >= 0)
		ck_assert_int_eq(status.kind, WEAN_SIGNALED);
	wean_release(&child);
}
END_TEST

/* ------------------------------------------------------------------------- */

static pid_t fork_mover(int tell)
{
	pid_t ours = getpgrp(), pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		signal(SIGTERM, SIG_DFL); /* Check's would end the whole test */
		setpgid(0, 0);
		pid_t left = fork();
		if (left && (setpgid(0, ours) || write(tell, &left, sizeof left) < 0))
			_exit(1);
		for (;;)
			pause();
	}
	return pid;
}

/* And its own group lives on in another. */
START_TEST(a_leader_that_moved_to_another_group_is_stopped_too)
{
	struct wean_child child;
	int ends[2];
	pid_t left;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = fork_mover(ends[1]);
	ck_assert_int_eq(wean_adopt(&child, pid, WEAN_NEW_GROUP), 0);
	ck_assert_int_eq(read(ends[0], &left, sizeof left), sizeof left);
	struct wean_status status = stop(&child, _i ? 500 : 0);
	ck_assert_int_eq(status.kind, WEAN_SIGNALED);
	ck_assert_int_eq(status.value, _i ? SIGTERM : SIGKILL);
	wean_release(&child);
}
END_TEST

static void add_all(TCase *t)
{
	tcase_add_loop_test(t, sigterm_is_enough_for_most, 0, KINDS);
	tcase_add_loop_test(t, a_leader_that_moved_to_another_group_is_stopped_too, 0, 2);
	tcase_add_loop_test(t, who_handles_sigterm_leaves_with_its_own_status, 0, KINDS);
	tcase_add_loop_test(t, who_ignores_sigterm_is_killed_after_the_grace, 0, KINDS);
	tcase_add_loop_test(t, without_grace_it_is_killed_at_once, 0, KINDS);
	tcase_add_loop_test(t, who_is_stopped_is_woken_to_end, 0, KINDS);
	tcase_add_loop_test(t, who_is_over_already_gives_its_status_at_once, 0, KINDS);
	tcase_add_test(t, a_struct_without_a_child_cannot_be_stopped);
	tcase_add_test(t, who_joined_a_group_does_not_take_it_along);
	tcase_add_test(t, who_joined_a_group_ends_with_its_leader);
	tcase_add_loop_test(t, threads_that_wait_get_the_status_too, 0, KINDS);
	tcase_add_loop_test(t, a_host_that_ignores_sigchld_stops_all_the_same, 0, KINDS);
}

static void add_orphans(TCase *t)
{
	tcase_add_loop_test(t, the_group_ends_with_its_leader, 0, 4);
	tcase_add_loop_test(t, a_group_that_ignores_sigterm_is_killed_after_the_grace, 0,
	                    4);
	tcase_add_loop_test(t, what_a_leader_left_behind_is_ended, 0, 8);
	tcase_add_loop_test(t, a_grandchild_in_a_session_of_its_own_survives, 0, 2);
	tcase_add_loop_test(t, who_leads_no_group_ends_alone, 0, 4);
}

static Suite *stop_suite(void)
{
	Suite *s = suite_create("stop");
	TCase *t = tcase_create("stop");

	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	add_all(t);
	suite_add_tcase(s, t);

	/* A group whose number is given up is reached by a pidfd alone. */
	t = case_that_needs(s, "pidfd kernel");
	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, what_a_leader_left_behind_is_ended, 8, 12);
	tcase_add_test(t, what_a_leader_leaves_behind_has_the_rest_of_the_grace);

	t = case_that_needs(s, "kernel");
	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	add_orphans(t);

	t = case_that_needs(s, "root");
	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, what_may_not_be_killed_is_not_waited_for_without_end);
	return s;
}

RUN_SUITE(stop_suite)
