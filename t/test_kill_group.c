/* test_kill_group.c - wean_kill_group(): all of the child's group and nobody else, also
   when the leader is over, waited for, or its number is another's. */
#define _GNU_SOURCE
#include "waiting.h"

#include <sched.h>

#include "count.h"

static int kill_group(const struct wean_child *child, int sig)
{
	struct baseline b;

	baseline_take(&b);
	int error = wean_kill_group(child, sig);
	baseline_kept(&b);
	return error;
}

static const struct wean_options group = { .out = WEAN_PIPE, .flags = WEAN_NEW_GROUP };

/* ---- the group ---- */

START_TEST(the_signal_reaches_the_whole_group)
{
	struct wean_options opt = group;
	struct wean_child child;
	struct orphan held;

	opt.flags = way(_i % 2) | (_i / 2 % 2 ? WEAN_NEW_SESSION : WEAN_NEW_GROUP);
	start_two(&child, &held, "pause", NULL, &opt);
	if (_i / 4)
		without_pidfd(&child);
	ck_assert_int_eq(kill_group(&child, 0), 0);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
	ck_assert_int_eq(kill_group(&child, SIGUSR2), 0);
	assert_signaled((struct wean_status[]){ finish(&child) }, SIGUSR2);
	ck_assert_int_eq(orphan_code(&held), 128 + SIGUSR2);
}
END_TEST

START_TEST(a_leader_that_is_over_still_has_its_group)
{
	struct wean_child child;
	struct orphan held;

	start_two(&child, &held, "exit", "6", &group);
	await_zombie(child.pid);
	if (_i)
		without_pidfd(&child);
	ck_assert_int_eq(kill_group(&child, SIGUSR2), 0);
	ck_assert_int_eq(orphan_code(&held), 128 + SIGUSR2);
	ck_assert_int_eq(finish(&child).code, 6);
}
END_TEST

/* Or not at all. */
START_TEST(once_waited_for_its_group_is_reached_without_the_number)
{
	int reachable = !_i && kernel_has(6, 9);
	struct wean_child child;
	struct orphan held;

	start_two(&child, &held, "exit", "6", &group);
	if (_i)
		without_pidfd(&child);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(kill_group(&child, 0), reachable ? 0 : ESRCH);
		ck_assert_int_eq(kill(held.pid, 0), 0);
	}
	ck_assert_int_eq(kill_group(&child, SIGUSR2), reachable ? 0 : ESRCH);
	if (reachable)
		ck_assert_int_eq(orphan_code(&held), 128 + SIGUSR2);
	else
		orphan_end(&held);
	ck_assert_int_eq(kill_group(&child, 0), ESRCH);
	ck_assert_int_eq(kill_group(&child, SIGKILL), ESRCH);
	wean_release(&child);
}
END_TEST

START_TEST(once_waited_for_a_group_of_one_is_gone)
{
	struct wean_options opt = { .flags = WEAN_NEW_GROUP | way(_i % 2) };
	struct wean_child child;

	start(&child, KID("exit", "6"), &opt);
	if (_i / 2)
		without_pidfd(&child);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	ck_assert_int_eq(kill_group(&child, 0), ESRCH);
	ck_assert_int_eq(kill_group(&child, SIGKILL), ESRCH);
	wean_release(&child);
}
END_TEST

/* ---- refusals ---- */

/* A signal to the group would be one to this test. */
START_TEST(who_leads_no_group_has_none_to_kill)
{
	struct wean_child leader, child;
	struct wean_options opt = { HELD, .flags = way(_i) };

	start_held(&leader, 1, &(struct wean_options){ HELD, .flags = WEAN_NEW_GROUP });
	for (int joins = 0; joins < 2; joins++) {
		opt.flags = way(_i) | (joins ? WEAN_JOIN_GROUP : 0);
		opt.pgid = joins ? leader.pid : 0;
		start_held(&child, 2, &opt);
		ck_assert_int_eq(kill_group(&child, 0), EINVAL);
		ck_assert_int_eq(kill_group(&child, SIGKILL), EINVAL);
		ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
		let_go(&child);
		ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
		ck_assert_int_eq(kill_group(&child, SIGKILL), EINVAL);
		ck_assert_int_eq(finish(&child).code, 2);
	}
	let_go(&leader);
	ck_assert_int_eq(finish(&leader).code, 1);
}
END_TEST

START_TEST(what_is_no_signal_is_refused)
{
	static const int none[] = { -1, 65, 1000, INT_MAX, INT_MIN };
	struct wean_child child;
	struct wean_options opt = { HELD, .flags = WEAN_NEW_GROUP };

	start_held(&child, 4, &opt);
	if (_i)
		without_pidfd(&child);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		ck_assert_int_eq(kill_group(&child, none[i]), EINVAL);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
	let_go(&child);
	ck_assert_int_eq(finish(&child).code, 4);
}
END_TEST

START_TEST(a_group_of_another_user_is_refused)
{
	struct wean_child child;

	if (geteuid() != 0)
		SKIP("needs root, to start what it then may not kill");
	start_held(&child, 4, &(struct wean_options){ HELD, .flags = WEAN_NEW_GROUP });
	if (_i)
		without_pidfd(&child);
	become_nobody();
	ck_assert_int_eq(kill_group(&child, SIGKILL), EPERM);
	ck_assert_int_eq(kill_group(&child, 0), EPERM);
	let_go(&child);
	ck_assert_int_eq(finish(&child).code, 4);
}
END_TEST

/* The group that its leader left, too. */
START_TEST(a_group_of_another_user_without_its_leader_is_refused)
{
	struct wean_child child;
	struct orphan held;

	if (geteuid() != 0)
		SKIP("needs root, to start what it then may not kill");
	if (!kernel_has(6, 9))
		SKIP("this kernel can't reach a group whose number is given up");
	start_two(&child, &held, "exit", "4", &group);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) || setresuid(65534, 65534, 65534))
			_exit(100);
		_exit(wean_kill_group(&child, SIGKILL));
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	orphan_end(&held);
	ck_assert_int_eq(WEXITSTATUS(status), EPERM);
	wean_release(&child);
}
END_TEST

/* ---- never another process ---- */

static int kill_what_is_not_there(void *arg)
{
	struct wean_child idle[3];
	int wrong = 0;

	(void)arg;
	memset(idle, 0, sizeof idle);
	wrong |= wean_adopt(&idle[1], 0, WEAN_NEW_GROUP);
	wrong |= wean_spawn(&idle[2], KID("exit", "0"), NULL);
	wrong |= wean_wait(&idle[2], -1, NULL);
	wean_release(&idle[2]);
	count_begin();
	for (int i = 0; i < 3; i++) {
		wrong |= wean_kill(&idle[i], SIGKILL) != ESRCH;
		wrong |= wean_kill_group(&idle[i], SIGKILL) != ESRCH;
		wrong |= wean_stop(&idle[i], 10, NULL) != ESRCH;
		wrong |= wean_stop(&idle[i], 0, NULL) != ESRCH;
	}
	wrong |= wean_kill_group(NULL, SIGKILL) != EINVAL;
	getppid(); /* or nothing would be counted */
	count_end();
	return wrong;
}

START_TEST(what_is_not_there_is_not_sent_a_signal)
{
	struct count c;
	int error = count_calls(&c, kill_what_is_not_there, NULL);

	if (error == ENOTSUP || error == EPERM)
		SKIP("calls can't be counted here");
	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(count_of(&c, COUNT_PARENT, SYS_getppid), 1);
	ck_assert_uint_eq(count_total(&c, COUNT_PARENT), 1);
	count_free(&c);
}
END_TEST

/* By number its group would be -1: everybody. */
static int ask_group_of_init(void *arg)
{
	struct wean_child init;
	int error = wean_adopt(&init, 1, WEAN_NEW_GROUP);

	(void)arg;
	if (error)
		return error;
	if (init.pidfd >= 0)
		close(init.pidfd);
	init.pidfd = -1;
	count_begin();
	getppid();
	wean_kill_group(&init, 0);
	count_end();
	wean_release(&init);
	return 0;
}

START_TEST(a_group_with_number_1_is_not_everybody)
{
	struct count c;
	int error = count_calls(&c, ask_group_of_init, NULL);

	if (error == ENOTSUP || error == EPERM)
		SKIP("calls can't be counted here");
	ck_assert_int_eq(error, 0);
	for (size_t i = 0; i < c.n; i++)
		ck_assert_msg(c.calls[i].nr != SYS_kill || (int)c.calls[i].args[0] > 0 ||
		              (int)c.calls[i].args[0] < -1, "kill(%d, %d)",
		              (int)c.calls[i].args[0], (int)c.calls[i].args[1]);
	count_free(&c);
}
END_TEST

/* ---- a number that is used again ---- */

/* Runs check() as the first process of a PID namespace, where the next number can be
   chosen.  What it returns is the line that failed, or 0. */
static int run_in_namespace(int (*check)(void))
{
	int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC), status;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		return -1;
	pid = fork();
	if (pid == 0)
		_exit(check() & 0xff);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(setns(own, CLONE_NEWPID), 0); /* threads can be made again */
	close(own);
	ck_assert_msg(WIFEXITED(status), "died by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static int next_pid_is(pid_t pid)
{
	char text[12];
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	int len = snprintf(text, sizeof text, "%d", pid - 1);
	int done = fd >= 0 && write(fd, text, (size_t)len) == len;

	if (fd >= 0)
		close(fd);
	return done;
}

enum { NO_NAMESPACE = 255 };

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			return 1; \
		} \
	} while (0)

static int with_pidfd;

/* One child waited for, and another one, a leader too, that got its number. */
static int another_has_the_number(void)
{
	struct wean_options opt = { HELD, .flags = WEAN_NEW_GROUP };
	struct wean_child old, other;
	struct wean_status status;

	CHECK(!wean_spawn(&old, KID("exit", "5"), &opt));
	CHECK(!wean_wait(&old, -1, NULL));
	if (!with_pidfd)
		without_pidfd(&old);
	if (!next_pid_is(old.pid))
		return NO_NAMESPACE;
	CHECK(!wean_spawn(&other, KID("cat", "--then", "exit", "8"), &opt));
	CHECK(other.pid == old.pid);
	CHECK(wean_kill(&old, SIGKILL) == ESRCH);
	CHECK(wean_kill_group(&old, 0) == ESRCH);
	CHECK(wean_kill_group(&old, SIGKILL) == ESRCH);
	CHECK(wean_wait_any(&old, 1, -1, NULL) == ESRCH);
	CHECK(!wean_stop(&old, 0, &status) && status.code == 5);
	long long begin = now_ms();
	CHECK(!wean_stop(&old, 4000, &status) && status.code == 5);
	CHECK(now_ms() - begin < 2000); /* nothing of it is left to wait for */
	CHECK(wean_wait(&other, 0, NULL) == ETIMEDOUT);
	let_go(&other);
	CHECK(!wean_wait(&other, -1, &status) && status.code == 8);
	return 0;
}

START_TEST(whoever_got_the_number_later_is_left_alone)
{
	with_pidfd = _i;
	int result = run_in_namespace(another_has_the_number);
	if (result < 0 || result == NO_NAMESPACE)
		SKIP("no PID namespace, or no choice of numbers in it");
	ck_assert_int_eq(result, 0);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *kill_group_suite(void)
{
	Suite *s = suite_create("kill_group");
	TCase *t = tcase_create("kill_group");

	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, the_signal_reaches_the_whole_group, 0, 8);
	tcase_add_loop_test(t, a_leader_that_is_over_still_has_its_group, 0, 2);
	tcase_add_loop_test(t, once_waited_for_a_group_of_one_is_gone, 0, 4);
	tcase_add_loop_test(t, who_leads_no_group_has_none_to_kill, 0, WAYS);
	tcase_add_loop_test(t, what_is_no_signal_is_refused, 0, 2);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "root");
	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_group_of_another_user_is_refused, 0, 2);
	tcase_add_test(t, a_group_of_another_user_without_its_leader_is_refused);
	tcase_add_loop_test(t, whoever_got_the_number_later_is_left_alone, 0, 2);

	t = case_that_needs(s, "ptrace");
	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, what_is_not_there_is_not_sent_a_signal);
	tcase_add_test(t, a_group_with_number_1_is_not_everybody);

	t = case_that_needs(s, "pidfd");
	tcase_set_timeout(t, 20);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, once_waited_for_its_group_is_reached_without_the_number, 0,
	                    2);
	return s;
}

RUN_SUITE(kill_group_suite)
