/* test_denied_flags.c - clone3(2) that refuses some of its flags, as older kernels do: they
   are done without, and the call itself is not given up. */
#define _GNU_SOURCE
#include "denying.h"
#include "talking.h"

#include "../src/clone3.h"
#include "../src/sys.h"

/* ---- between the library and the kernel ---------------------------------- */

static struct {
	unsigned long long flags; /* that are refused; 0: every call is */
	int error;                /* 0: none is */
	int calls;
	unsigned long long tried; /* flags of the call that went through, or of the last */
	int pidfd;                /* the number that a refused call gives; 0: none */
} gate;

long __real_wean_clone3(void *args, size_t size, int (*go)(void *), void *arg);
long __wrap_wean_clone3(void *args, size_t size, int (*go)(void *), void *arg);

/* The linker brings the library's calls here. */
long __wrap_wean_clone3(void *args, size_t size, int (*go)(void *), void *arg)
{
	unsigned long long flags = *(uint64_t *)args;

	gate.calls++;
	gate.tried = flags;
	if (gate.error && (!gate.flags || flags & gate.flags)) {
		if (gate.pidfd)
			*(int *)(uintptr_t)((uint64_t *)args)[1] = gate.pidfd;
		return -gate.error;
	}
	return __real_wean_clone3(args, size, go, arg);
}

static void refuse(unsigned long long flags, int error)
{
	gate.flags = flags;
	gate.error = error;
	gate.calls = 0;
}

/* ---- flags --------------------------------------------------------------- */

static const struct {
	const char *name;
	unsigned long long flags;
	const char *shared, *copied;
} rows[] = {
	{ "reset handlers", SYS_CLEAR_SIGHAND, "clone3+unshare", "clone3copy+unshare" },
	{ "pidfd", SYS_PIDFD, "clone3+unshare", "clone3copy+unshare" },
	{ "shared table", SYS_FILES, "clone3+close_range", "clone3copy+close_range" },
	{ "shared memory", SYS_VM, "clone+unshare", "clone3copy+unshare" },
	{ "handlers, pidfd", SYS_CLEAR_SIGHAND | SYS_PIDFD,
	  "clone3+unshare", "clone3copy+unshare" },
	{ "handlers, pidfd, table", SYS_CLEAR_SIGHAND | SYS_PIDFD | SYS_FILES,
	  "clone3+close_range", "clone3copy+close_range" },
	{ "wait for the exec", SYS_VFORK, "clone+unshare", "fork+close_range" },
};

static const int errors[] = { ENOSYS, EPERM, EACCES, EINVAL, E2BIG, ENOTSUP };

static void assert_same_signals(const struct report *x, const struct report *y)
{
	static const char *const keys[] = { "sigblk", "sigpnd", "sigign", "sigcgt" };

	for (size_t i = 0; i < COUNT(keys); i++)
		ck_assert_uint_eq(report_mask(x, keys[i]), report_mask(y, keys[i]));
}

START_TEST(flags_that_are_refused_are_done_without)
{
	unsigned long long memory = way(_i % WAYS);
	const struct wean_options o = { FDS(DUP(9, 5000)), .flags = memory };
	const char *shared = memory ? "clone3copy+unshare" : "clone3+unshare";
	unsigned long long all;

	NEED_DESCRIPTORS(5001);
	open_far_ones();
	handle(SIGUSR1, on_tick);
	signal(SIGUSR2, SIG_IGN);
	struct report *plain = given_by(shared, &o);
	all = gate.tried;
	for (size_t n = 0; n < COUNT(errors); n++) {
		refuse(rows[_i / WAYS].flags, errors[n]);
		struct report *r = given_by(memory ? rows[_i / WAYS].copied
		                                      : rows[_i / WAYS].shared, &o);
		ck_assert_str_eq(report_fd_list(r), "0 1 2 9");
		HOLDS(r, 9, 5000);
		assert_same_signals(plain, r);
		ck_assert_int_gt(gate.calls, 0);
		report_free(r);
		if (rows[_i / WAYS].flags & (SYS_VM | SYS_VFORK))
			break; /* the call as it has to be is refused, which is remembered */
		refuse(0, 0);
		report_free(given_by(shared, &o));
		ck_assert_uint_eq(gate.tried, all);
	}
	report_free(plain);
}
END_TEST

START_TEST(a_failure_is_told_without_them_too)
{
	const struct wean_options o = { .flags = way(_i % WAYS) };
	char *absent[] = { (char[]){ "/absent" }, NULL };

	for (size_t n = 0; n < COUNT(errors); n++) {
		refuse(rows[_i / WAYS].flags, errors[n]);
		refused(absent, &o, ENOENT, WEAN_STAGE_EXEC, -1);
	}
}
END_TEST

/* As in a time namespace of older kernels: its memory would be shared, so both calls
   refuse. */
START_TEST(where_no_memory_may_be_shared_it_is_copied)
{
	const struct denial shared = { .nr = SYS_clone, .when = DENY_WITH, .arg = 0,
	                               .bits = CLONE_VM, .error = EINVAL };
	const struct wean_options o = { FDS(DUP(9, 5000)) };
	char *absent[] = { (char[]){ "/absent" }, NULL };

	if (!can_deny())
		SKIP("no filter of system calls");
	NEED_DESCRIPTORS(5001);
	open_far_ones();
	ck_assert(deny_these(&shared, 1));
	for (int again = 0; again < 2; again++) {
		refuse(SYS_VM, EINVAL);
		struct report *r = given_by("clone3copy+unshare", &o);
		ck_assert_str_eq(report_fd_list(r), "0 1 2 9");
		ck_assert_int_eq(again && gate.calls > 1, 0);
		report_free(r);
		refused(absent, &o, ENOENT, WEAN_STAGE_EXEC, -1);
	}
}
END_TEST

/* A cgroup that may not be joined says nothing about the call. */
START_TEST(a_cgroup_that_is_refused_does_not_give_up_the_call)
{
	struct wean_options o = { .flags = WEAN_IN_CGROUP };

	ck_assert_int_ge(o.cgroupfd = open("/", O_RDONLY | O_CLOEXEC), 0);
	for (size_t n = 0; n < COUNT(errors); n++) {
		refuse(SYS_INTO_CGROUP, errors[n]);
		refused(KID("exit", "0"), &o, EBADF, WEAN_STAGE_CGROUP, -1);
		refuse(0, 0);
		report_free(given_by("clone3+unshare", NULL));
		const struct wean_options copy = { .flags = WEAN_NO_SHARED_MEMORY };
		report_free(given_by("clone3copy+unshare", &copy));
	}
	close(o.cgroupfd);
}
END_TEST

/* ---- the call ------------------------------------------------------------ */

START_TEST(a_call_that_is_refused_bare_is_not_made_again)
{
	refuse(0, errors[_i]);
	report_free(given_by("clone+unshare", NULL));
	ck_assert_int_gt(gate.calls, 0);
	refuse(0, 0);
	report_free(given_by("clone+unshare", NULL));
	ck_assert_int_eq(gate.calls, 0);
}
END_TEST

START_TEST(what_has_run_out_is_told_and_not_remembered)
{
	const struct wean_options o = { .flags = way(_i) };
	static const int shortages[] = { EAGAIN, ENOMEM };

	for (size_t n = 0; n < COUNT(shortages); n++) {
		refuse(0, shortages[n]);
		refused(KID("exit", "0"), &o, shortages[n], WEAN_STAGE_LAUNCH, -1);
		ck_assert_int_eq(gate.calls, 1);
		refuse(0, 0);
		report_free(given_by(_i ? "clone3copy+unshare" : "clone3+unshare", &o));
	}
}
END_TEST

/* As where no descriptor is left for it. */
START_TEST(without_room_for_a_pidfd_a_child_is_started_unless_it_is_needed)
{
	static const int shortages[] = { EMFILE, ENFILE };
	const struct wean_options o = { .flags = way(_i) };
	const struct wean_options needs = { .flags = way(_i) | WEAN_NEED_PIDFD };

	for (size_t n = 0; n < COUNT(shortages); n++) {
		refuse(SYS_PIDFD, shortages[n]);
		report_free(given_by(_i ? "clone3copy+unshare" : "clone3+unshare", &o));
		ck_assert_int_eq(gate.calls, 2);
		refused(KID("exit", "0"), &needs, shortages[n], WEAN_STAGE_LAUNCH, -1);
	}
}
END_TEST

/* Where a control group may have no more processes, the kernel has made the pidfd and told
   its number before it finds that out, and takes it back: then the number is anybody's. */
START_TEST(a_number_that_a_refused_call_gave_is_nobodys_pidfd)
{
	const struct wean_options o = { .flags = way(_i) };
	struct wean_child child;

	gate.pidfd = open_at(20);
	refuse(0, EAGAIN);
	refused(KID("exit", "0"), &o, EAGAIN, WEAN_STAGE_LAUNCH, -1);
	ck_assert_int_eq(fcntl(20, F_GETFD), 0);
	refuse(SYS_PIDFD, EMFILE);
	start(&child, KID("exit", "0"), &o);
	ck_assert_int_ne(child.pidfd, 20);
	finish(&child);
	ck_assert_int_eq(fcntl(20, F_GETFD), 0);
}
END_TEST

/* ---- a look that comes late ---------------------------------------------- */

static int late; /* the caller's first look for a stop is to be */
static int held; /* it was */
static int until_gone; /* the caller learns of the exec when the child is over */
static int kills;

/* The look that is the last before the limit passes is to be this one of them. */
static struct last_look { int input, after, ms; } last_look;

static void let_it_write(pid_t pid)
{
	close(last_look.input);
	await_zombie(pid);
	usleep((useconds_t)last_look.ms * 1000);
}

int __real_wean_sys_wait(int pidfd, int pid, int flags, struct wean_status *status);
int __wrap_wean_sys_wait(int pidfd, int pid, int flags, struct wean_status *status);

/* The linker brings the library's waits here. */
int __wrap_wean_sys_wait(int pidfd, int pid, int flags, struct wean_status *status)
{
	if (flags & SYS_STOPPED && late) {
		late = 0;
		__atomic_store_n(&held, 1, __ATOMIC_RELAXED);
		await_state(pid, 'T');
	}
	if (flags & SYS_NOREAP && last_look.after && --last_look.after == 0)
		let_it_write(pid);
	int r = __real_wean_sys_wait(pidfd, pid, flags, status);
	while (flags & SYS_UNBORN && r == -ECHILD && until_gone && !kill(pid, 0))
		sched_yield();
	return r;
}

int __real_wean_sys_kill(int pid, int sig);
int __wrap_wean_sys_kill(int pid, int sig);

int __wrap_wean_sys_kill(int pid, int sig)
{
	kills++;
	return __real_wean_sys_kill(pid, sig);
}

static void act_linger(pid_t child)
{
	(void)child;
	while (!__atomic_load_n(&held, __ATOMIC_RELAXED))
		sched_yield();
}

/* The caller looks for a stop as long as the exec takes.  While it is about to, the
   program begins, and stops itself. */
START_TEST(a_stop_of_the_programs_own_is_left_to_it)
{
	struct wean_options o = { .pgid = getpgrp(), .flags = WEAN_JOIN_GROUP | way(_i) };
	struct wean_child child;
	struct trap trap;
	int status;

	late = 1;
	if (!trap_set(&trap, "executed", act_linger))
		SKIP("no leases on %s", scratch);
	o.file = trap.path;
	start(&child, KID("kill", "19", "--then", "exit", "6"), &o);
	trap_sprung(&trap);
	ck_assert_int_eq(waitpid(child.pid, &status, WUNTRACED | WNOHANG), child.pid);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(wean_kill(&child, SIGCONT), 0);
	ck_assert_int_eq(finish(&child).code, 6);
}
END_TEST

/* The kernel reaps it at once, and its number may be another process's when the caller
   finds that it can't have the pidfd that it needs. */
START_TEST(a_child_that_is_gone_is_not_killed_by_its_number)
{
	const struct wean_options o = { .flags = WEAN_NEED_PIDFD | way(_i) };

	signal(SIGCHLD, SIG_IGN);
	refuse(SYS_PIDFD, EINVAL);
	until_gone = 1;
	refused(KID("exit", "0"), &o, ESRCH, WEAN_STAGE_LAUNCH, -1);
	ck_assert_int_eq(kills, 0);
}
END_TEST

/* It writes and ends between the last poll and the look that comes after it, at the
   limit. */
START_TEST(what_is_written_between_a_poll_and_a_look_is_read)
{
	struct wean_options o = { .in = WEAN_PIPE, .out = WEAN_PIPE };
	struct wean_io io = { .timeout_ms = 20 };
	struct wean_result r = { 0 };
	struct wean_child child;
	int input, error;

	start(&child, KID("cat", "--then", "say", "1", "late"), &o);
	without_pidfd(&child);
	input = child.in;
	child.in = -1;
	do
		last_look = (struct last_look){ .input = input, .after = 2, .ms = io.timeout_ms };
	while ((error = wean_communicate(&child, &io, &r)) == ETIMEDOUT && last_look.after);
	ck_assert_int_eq(error, 0);
	assert_text(r.out, r.out_len, "late\n");
	wean_result_free(&r);
	wean_release(&child);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *denied_flags_suite(void)
{
	Suite *s = suite_create("denied flags");
	TCase *t = tcase_create("flags"), *both = tcase_create("both calls");

	tcase_set_timeout(t, 30);
	tcase_set_tags(t, "default");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, flags_that_are_refused_are_done_without, 0,
	                    WAYS * COUNT(rows));
	tcase_add_loop_test(t, a_failure_is_told_without_them_too, 0, WAYS * COUNT(rows));
	tcase_add_test(t, a_cgroup_that_is_refused_does_not_give_up_the_call);
	tcase_add_loop_test(t, a_call_that_is_refused_bare_is_not_made_again, 0,
	                    COUNT(errors));
	tcase_add_loop_test(t, what_has_run_out_is_told_and_not_remembered, 0, WAYS);
	tcase_add_loop_test(t, without_room_for_a_pidfd_a_child_is_started_unless_it_is_needed,
	                    0, WAYS);
	tcase_add_loop_test(t, a_number_that_a_refused_call_gave_is_nobodys_pidfd, 0, WAYS);
	tcase_add_loop_test(t, a_stop_of_the_programs_own_is_left_to_it, 0, WAYS);
	tcase_add_loop_test(t, a_child_that_is_gone_is_not_killed_by_its_number, 0, WAYS);
	tcase_add_test(t, what_is_written_between_a_poll_and_a_look_is_read);
	suite_add_tcase(s, t);
	tcase_set_tags(both, "default seccomp");
	tcase_add_unchecked_fixture(both, scratch_make, scratch_remove);
	tcase_add_test(both, where_no_memory_may_be_shared_it_is_copied);
	suite_add_tcase(s, both);
	return s;
}

RUN_WITH_STDIO_ALONE(denied_flags_suite)
