/* test_adopt.c - wean_adopt(): a process that the host started by itself, or none at all,
   only the ends of pipes. */
#define _GNU_SOURCE
#include "adopting.h"
#include "deny.h"

/* ---- the host's own forks ---- */

START_TEST(a_fork_of_the_hosts_own_is_waited_for)
{
	struct wean_child child;
	struct wean_status status, again;
	struct baseline b;
	struct own own;

	baseline_take(&b);
	fork_own(&own, 12, 0);
	adopt(&child, own.pid, 0);
	ck_assert_int_gt(child.pidfd, 2);
	ck_assert_int_eq(fcntl(child.pidfd, F_GETFD), FD_CLOEXEC);
	if (_i)
		without_pidfd(&child);
	ck_assert_int_eq(wean_wait(&child, 0, &status), ETIMEDOUT);
	ck_assert_int_eq(wean_wait_any(&child, 1, 10, NULL), ETIMEDOUT);
	ck_assert_int_eq(wean_kill(&child, 0), 0);
	ck_assert_int_eq(wean_kill_group(&child, 0), EINVAL);
	end_own(&own);
	ck_assert_int_eq(wean_wait(&child, -1, &status), 0);
	assert_exited(&status, 12);
	ck_assert_int_ge(status.maxrss_kb, 1);
	ck_assert_int_eq(wean_wait(&child, -1, &again), 0);
	ck_assert_mem_eq(&status, &again, sizeof again);
	ck_assert_int_eq(wean_kill(&child, 0), ESRCH);
	wean_release(&child);
	errno = b.error;
	baseline_same(&b);
}
END_TEST

START_TEST(a_fork_that_is_over_gives_its_status)
{
	struct wean_child child;
	struct wean_status status;
	struct own own;

	fork_own(&own, 13, 0);
	end_own(&own);
	await_zombie(own.pid);
	adopt(&child, own.pid, WEAN_NEED_PIDFD);
	ck_assert_int_eq(wean_wait_any(&child, 1, 0, NULL), 0);
	ck_assert_int_eq(wean_wait(&child, 0, &status), 0);
	assert_exited(&status, 13);
	wean_release(&child);
}
END_TEST

START_TEST(an_adopted_leader_is_stopped_with_its_group)
{
	struct wean_child leader;
	struct wean_options join = { .flags = WEAN_JOIN_GROUP };
	struct wean_child member;
	struct own own;

	fork_own(&own, 0, 1);
	adopt(&leader, own.pid, WEAN_NEW_GROUP);
	join.pgid = own.pid;
	start(&member, KID("pause"), &join);
	ck_assert_int_eq(wean_kill_group(&leader, SIGUSR2), 0);
	assert_signaled((struct wean_status[]){ finish(&member) }, SIGUSR2);
	assert_signaled((struct wean_status[]){ finish(&leader) }, SIGUSR2);
	close(own.hold);

	fork_own(&own, 0, 1);
	adopt(&leader, own.pid, WEAN_NEW_GROUP);
	join.pgid = own.pid;
	start(&member, KID("pause"), &join);
	ck_assert_int_eq(wean_stop(&leader, 0, NULL), 0);
	assert_signaled((struct wean_status[]){ finish(&member) }, SIGKILL);
	assert_signaled((struct wean_status[]){ finish(&leader) }, SIGKILL);
	close(own.hold);
}
END_TEST

START_TEST(the_flag_for_handlers_counts_for_an_adopted_process_too)
{
	struct wean_child child;
	struct own own;

	fork_own(&own, 14, 0);
	adopt(&child, own.pid, WEAN_EINTR);
	tick();
	ck_assert_int_eq(wean_wait(&child, 10000, NULL), EINTR);
	ck_assert_int_eq(wean_wait_any(&child, 1, 10000, NULL), EINTR);
	stop_ticking();
	end_own(&own);
	ck_assert_int_eq(finish(&child).code, 14);

	fork_own(&own, 14, 0);
	adopt(&child, own.pid, 0);
	tick();
	ck_assert_int_eq(wean_wait(&child, 30, NULL), ETIMEDOUT);
	stop_ticking();
	end_own(&own);
	ck_assert_int_eq(finish(&child).code, 14);
}
END_TEST

/* ---- refusals ---- */

static void refused_adoption(int pid, unsigned long long flags, int wanted)
{
	struct wean_child child;
	struct baseline b;

	memset(&child, 0xa5, sizeof child);
	baseline_take(&b);
	int error = wean_adopt(&child, pid, flags);
	baseline_kept(&b);
	ck_assert_msg(error == wanted, "%d, %#llx: %s", pid, flags, strerror(error));
	ck_assert_int_eq(child.stage, WEAN_STAGE_NONE);
	ck_assert_int_eq(child.index, -1);
	ck_assert_int_eq(wean_stop(&child, 0, NULL), ESRCH);
	ck_assert_int_eq(wean_kill_group(&child, SIGKILL), ESRCH);
	assert_holds_nothing(&child);
}

START_TEST(one_that_is_gone_cannot_be_adopted)
{
	struct own own;

	fork_own(&own, 0, 0);
	end_own(&own);
	ck_assert_int_eq(waitpid(own.pid, NULL, 0), own.pid);
	refused_adoption(own.pid, 0, ESRCH);
	refused_adoption(own.pid, WEAN_NEED_PIDFD | WEAN_NEW_GROUP | WEAN_EINTR, ESRCH);
	refused_adoption(INT_MAX, 0, ESRCH);
}
END_TEST

START_TEST(no_number_of_a_process_is_below_0)
{
	refused_adoption(-1, 0, EINVAL);
	refused_adoption(-getpid(), WEAN_NEW_GROUP, EINVAL);
	refused_adoption(INT_MIN, 0, EINVAL);
	ck_assert_int_eq(wean_adopt(NULL, getppid(), 0), EINVAL);
	ck_assert_int_eq(wean_adopt(NULL, 0, 0), EINVAL);
	ck_assert_int_eq(wean_adopt(NULL, -1, ~0ULL), EINVAL);
}
END_TEST

START_TEST(every_other_flag_is_refused)
{
	const unsigned long long known = WEAN_NEW_GROUP | WEAN_NEED_PIDFD | WEAN_EINTR;
	struct own own;

	fork_own(&own, 15, 0);
	for (int bit = 0; bit < 64; bit++)
		if (!(known & 1ULL << bit)) {
			refused_adoption(own.pid, 1ULL << bit, EINVAL);
			refused_adoption(own.pid, 1ULL << bit | known, EINVAL);
			refused_adoption(0, 1ULL << bit, EINVAL);
		}
	end_own(&own);
	ck_assert_int_eq(waitpid(own.pid, NULL, 0), own.pid);
}
END_TEST

static void limit_descriptors(rlim_t soft)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = soft;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(without_a_number_for_a_pidfd_it_is_adopted_all_the_same)
{
	struct wean_child child;
	struct rlimit limit;
	struct own own;

	fork_own(&own, 16, 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit_descriptors(0);
	ck_assert_int_eq(wean_adopt(&child, own.pid, WEAN_NEED_PIDFD), EMFILE);
	ck_assert_int_eq(child.pid, 0);
	ck_assert_int_eq(child.pidfd, -1);
	ck_assert_int_eq(wean_adopt(&child, own.pid, 0), 0);
	ck_assert_int_eq(child.pid, own.pid);
	ck_assert_int_eq(child.pidfd, -1);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
	limit_descriptors(limit.rlim_cur);
	end_own(&own);
	ck_assert_int_eq(finish(&child).code, 16);
}
END_TEST

/* As on a kernel before Linux 5.3, or where the whole system has no file left. */
START_TEST(without_pidfds_it_is_adopted_unless_one_is_needed)
{
	static const int errors[] = { ENOSYS, ENFILE, EPERM };
	struct wean_child child;
	struct wean_status status;
	struct own own;

	if (!can_deny())
		SKIP("no filter of system calls");
	fork_own(&own, 19, 0);
	ck_assert(deny(SYS_pidfd_open, errors[_i]));
	refused_adoption(own.pid, WEAN_NEED_PIDFD, errors[_i]);
	refused_adoption(own.pid, WEAN_NEED_PIDFD | WEAN_EINTR, errors[_i]);
	adopt(&child, own.pid, 0);
	ck_assert_int_eq(child.pidfd, -1);
	ck_assert_int_eq(wean_kill(&child, 0), 0);
	ck_assert_int_eq(wean_wait(&child, 10, NULL), ETIMEDOUT);
	ck_assert_int_eq(wean_wait_any(&child, 1, 10, NULL), ETIMEDOUT);
	end_own(&own);
	ck_assert_int_eq(wean_wait(&child, -1, &status), 0);
	assert_exited(&status, 19);
	wean_release(&child);
	refused_adoption(own.pid, 0, ESRCH);
}
END_TEST

static pid_t thread_id;
static pthread_barrier_t told;

static void *tell_id(void *arg)
{
	thread_id = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&told);
	pthread_barrier_wait(&told);
	return arg;
}

START_TEST(a_thread_is_no_process)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_barrier_init(&told, NULL, 2), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, tell_id, NULL), 0);
	pthread_barrier_wait(&told);
	refused_adoption(thread_id, 0, EINVAL);
	refused_adoption(thread_id, WEAN_NEED_PIDFD, EINVAL);
	pthread_barrier_wait(&told);
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_thread_is_no_process_where_no_pidfd_says_so)
{
	pthread_t thread;

	if (!can_deny())
		SKIP("no filter of system calls");
	ck_assert_int_eq(pthread_barrier_init(&told, NULL, 2), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, tell_id, NULL), 0);
	ck_assert(deny(SYS_pidfd_open, _i ? EPERM : ENOSYS));
	pthread_barrier_wait(&told);
	refused_adoption(thread_id, 0, EINVAL);
	pthread_barrier_wait(&told);
	pthread_join(thread, NULL);
	refused_adoption(thread_id, 0, ESRCH);
}
END_TEST

START_TEST(the_pidfd_does_not_become_a_standard_descriptor)
{
	struct wean_child child;
	struct own own;

	fork_own(&own, 17, 0);
	for (int fd = 0; fd <= 2; fd++) {
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, 10);
		close(fd);
		ck_assert_int_eq(wean_adopt(&child, own.pid, WEAN_NEED_PIDFD), 0);
		ck_assert_int_gt(child.pidfd, 2);
		ck_assert_int_eq(fcntl(child.pidfd, F_GETFD), FD_CLOEXEC);
		ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
		wean_release(&child);
		dup2(copy, fd);
		close(copy);
	}
	end_own(&own);
	ck_assert_int_eq(waitpid(own.pid, NULL, 0), own.pid);
}
END_TEST

/* ---- no process ---- */

START_TEST(pid_0_is_no_process_but_holds_ends)
{
	static const unsigned long long flags[] = { 0, WEAN_EINTR };
	struct wean_status status = { .kind = 7 };
	struct wean_child child;
	struct baseline b;
	int ends[3][2];

	baseline_take(&b);
	adopt(&child, 0, flags[_i]);
	ck_assert_int_eq(child.pidfd, -1);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pipe2(ends[i], O_CLOEXEC), 0);
	child.in = ends[0][1];
	child.out = ends[1][0];
	child.err = ends[2][0];
	ck_assert_int_eq(wean_wait(&child, -1, &status), ESRCH);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ESRCH);
	ck_assert_int_eq(wean_kill(&child, 0), ESRCH);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	ck_assert_int_eq(wean_kill_group(&child, SIGKILL), ESRCH);
	ck_assert_int_eq(wean_stop(&child, 10, &status), ESRCH);
	ck_assert_int_eq(status.kind, 7);
	for (int i = 0; i < 3; i++)
		ck_assert_int_ge(fcntl(ends[i][i == 0], F_GETFD), 0);
	wean_release(&child);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(fcntl(ends[i][i == 0], F_GETFD), -1);
		close(ends[i][i != 0]);
	}
	ck_assert_int_eq(child.in, -1);
	ck_assert_int_eq(child.out, -1);
	ck_assert_int_eq(child.err, -1);
	wean_release(&child);
	errno = b.error;
	baseline_same(&b);
}
END_TEST

START_TEST(a_release_closes_the_ends_set_for_an_adopted_process)
{
	struct wean_child child;
	struct own own;
	int ends[2];

	fork_own(&own, 18, 0);
	adopt(&child, own.pid, 0);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	child.out = ends[0];
	end_own(&own);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	ck_assert_int_ge(fcntl(ends[0], F_GETFD), 0);
	wean_release(&child);
	ck_assert_int_eq(fcntl(ends[0], F_GETFD), -1);
	ck_assert_int_eq(fcntl(ends[1], F_GETFD), FD_CLOEXEC);
	close(ends[1]);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *adopt_suite(void)
{
	Suite *s = suite_create("adopt");
	TCase *t = tcase_create("adopt");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, an_adopted_leader_is_stopped_with_its_group);
	tcase_add_test(t, the_flag_for_handlers_counts_for_an_adopted_process_too);
	tcase_add_test(t, no_number_of_a_process_is_below_0);
	tcase_add_test(t, every_other_flag_is_refused);
	tcase_add_loop_test(t, pid_0_is_no_process_but_holds_ends, 0, 2);
	tcase_add_test(t, a_release_closes_the_ends_set_for_an_adopted_process);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "pidfd");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, a_fork_of_the_hosts_own_is_waited_for, 0, 2);
	tcase_add_test(t, a_fork_that_is_over_gives_its_status);
	tcase_add_test(t, one_that_is_gone_cannot_be_adopted);
	tcase_add_test(t, without_a_number_for_a_pidfd_it_is_adopted_all_the_same);
	tcase_add_test(t, a_thread_is_no_process);
	tcase_add_test(t, the_pidfd_does_not_become_a_standard_descriptor);

	t = case_that_needs(s, "seccomp");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, without_pidfds_it_is_adopted_unless_one_is_needed, 0, 3);
	tcase_add_loop_test(t, a_thread_is_no_process_where_no_pidfd_says_so, 0, 2);
	return s;
}

RUN_SUITE(adopt_suite)
