/* test_denied.c - where a filter or an old kernel refuses calls, a start takes the next
   way, gives the child exactly what was asked for, and is waited for all the same. */
#define _GNU_SOURCE
#include "denying.h"
#include "waiting.h"

#define PIDFD_FLAG 0x1000U /* CLONE_PIDFD */

/* ---- machines ------------------------------------------------------------ */

static const struct machine machines[] = {
	{ "clone3", { CLONE3 }, NULL, "clone+unshare", "fork+close_range", 0 },
	{ "shared memory", { CLONE3, CLONE_WITH(CLONE_VM) }, NULL,
	  "fork+close_range", "fork+close_range", 0 },
	{ "a wait for the exec", { CLONE3, CLONE_WITH(CLONE_VFORK) }, NULL,
	  "fork+close_range", "fork+close_range", 0 },
	{ "pidfds from clone", { CLONE3, CLONE_WITH(PIDFD_FLAG) }, NULL,
	  "clone+unshare", "fork+close_range", 0 },
	{ "pidfds from anywhere", { CLONE3, CLONE_WITH(PIDFD_FLAG), PIDFD_OPEN }, NULL,
	  "clone+unshare", "fork+close_range", 1 },
#ifdef SYS_fork
	{ "all but fork", { CLONE3, CLONE }, NULL,
	  "fork+close_range", "fork+close_range", 0 },
	{ "all but fork, and pidfds", { CLONE3, CLONE, PIDFD_OPEN }, NULL,
	  "fork+close_range", "fork+close_range", 1 },
#endif
	{ "unshare", { UNSHARE }, NULL, "clone3+unshare", "clone3copy+unshare", 0 },
	{ "pidfd_open", { PIDFD_OPEN }, NULL, "clone3+unshare", "clone3copy+unshare", 0 },
	{ "pidfd_getfd", { PIDFD_GETFD }, NULL, "clone3+unshare", "clone3copy+unshare", 0 },
	{ "pidfd_send_signal", { PIDFD_KILL }, NULL,
	  "clone3+unshare", "clone3copy+unshare", 0 },
	{ "pselect6", { PSELECT }, NULL, "clone3+unshare", "clone3copy+unshare", 0 },
	{ "ppoll", { PPOLL }, NULL, "clone3+unshare", "clone3copy+unshare", 0 },
	{ "ppoll, and all but fork", { PPOLL, CLONE3, CLONE_WITH(CLONE_VM) }, NULL,
	  "fork+close_range", "fork+close_range", 0 },
#ifdef SYS_fork
	{ "ppoll, and clone", { PPOLL, CLONE3, CLONE }, NULL,
	  "fork+close_range", "fork+close_range", 0 },
#endif
	{ "a table of the child's own", { RANGE, UNSHARE }, NULL,
	  "clone3+procfs", "clone3copy+procfs", 0 },
	{ "all of these", { CLONE3, RANGE, UNSHARE, PIDFD_OPEN, PIDFD_GETFD, PIDFD_KILL,
	                    CLONE_WITH(PIDFD_FLAG), WAITID_BY_PIDFD }, NULL,
	  "clone+procfs", "fork+procfs", 1 },
};

#define ENOSYS_(call)  { .nr = SYS_##call, .error = ENOSYS }
#define EPERM_(call)   { .nr = SYS_##call, .error = EPERM }

/* With errors of their own. */
static const struct machine known[] = {
	{ "a container", { ENOSYS_(clone3), EPERM_(unshare), EPERM_(pidfd_getfd) }, NULL,
	  "clone+unshare", "fork+close_range", 0 },
	{ "a container that knows no new calls", {
	  EPERM_(clone3), EPERM_(unshare), EPERM_(close_range), EPERM_(pidfd_open),
	  EPERM_(pidfd_getfd), EPERM_(pidfd_send_signal) }, NULL,
	  "clone+procfs", "fork+procfs", 0 },
	{ "an old kernel", {
	  ENOSYS_(clone3), ENOSYS_(close_range), ENOSYS_(pidfd_open), ENOSYS_(pidfd_getfd),
	  ENOSYS_(pidfd_send_signal), WAITID_BY_PIDFD }, NULL,
	  "clone+procfs", "fork+procfs", 0 },
};

/* What is asked about a process there is asked in vain: no shared memory is dared. */
static const struct machine without_proc[] = {
	{ "nothing", { { 0, 0, 0, 0, 0 } }, proc_empty,
	  "clone3+unshare", "clone3copy+unshare", 0 },
	{ "clone3", { CLONE3 }, proc_empty, "fork+close_range", "fork+close_range", 0 },
	{ "clone3, by directories", { CLONE3 }, proc_fake,
	  "fork+close_range", "fork+close_range", 0 },
	{ "fetches", { PIDFD_OPEN, PIDFD_GETFD, PIDFD_KILL }, proc_empty,
	  "clone3+unshare", "clone3copy+unshare", 0 },
};

/* The first table with each of the errors, the last with one of them in turn. */
enum {
	RUNS = COUNT(machines) * REFUSALS,
	RUNS_KNOWN = RUNS + COUNT(known),
	RUNS_ALL = RUNS_KNOWN + COUNT(without_proc)
};

static const struct machine *machine_of(int i)
{
	if (i < RUNS)
		return &machines[i / REFUSALS];
	return i < RUNS_KNOWN ? &known[i - RUNS] : &without_proc[i - RUNS_KNOWN];
}

#define ENTER(m, i) \
	const struct machine *m = machine_of(i); \
	if (!enter(m, refusals[(i) % REFUSALS])) \
		SKIP("%s: no filter of system calls, or no mounts", m->name)

/* ---- what every machine gives -------------------------------------------- */

static void gives_nothing_else(const struct machine *m, unsigned long long flags)
{
	const struct wean_options none = { .flags = flags };
	const struct wean_options some = {
		FDS(DUP(9, 5000), KEEP(300), OPEN(5, "/dev/null", .oflag = O_WRONLY)),
		.flags = flags,
	};

	struct report *r = given_by(method_of(m, flags), &none);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	report_free(r);
	r = given_by(method_of(m, flags), &some);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 5 9 300");
	HOLDS(r, 9, 5000);
	HOLDS(r, 300, 300);
	report_free(r);
}

START_TEST(a_start_takes_the_next_way_and_gives_what_was_asked_for)
{
	NEED_DESCRIPTORS(5001);
	open_far_ones();
	ENTER(m, _i);
	for (int i = 0; i < WAYS; i++)
		gives_nothing_else(m, way(i));
	ck_assert_int_eq(set_soft_limit(400), 0);
	for (int i = 0; i < WAYS; i++)
		gives_nothing_else(m, way(i));
}
END_TEST

static void refuses_right(unsigned long long flags)
{
	const struct wean_options plain = { .flags = flags };
	const struct wean_options in_absent = { .dir = "/absent", .flags = flags };
	const struct wean_options open_absent = {
		FDS(KEEP(300), OPEN(7, "/absent/file")), .flags = flags };
	const struct wean_options of_closed = { FDS(KEEP(300), DUP(9, 301)), .flags = flags };
	char *locked = write_text("locked", 0644, "");
	char *list[] = { "/absent", locked, "/absent", NULL };
	const struct wean_options candidates = { .candidates = list, .flags = flags };
	char *absent[] = { "/absent", NULL };

	refused(absent, &plain, ENOENT, WEAN_STAGE_EXEC, -1);
	refused((char *[]){ locked, NULL }, &plain, EACCES, WEAN_STAGE_EXEC, -1);
	refused((char *[]){ "there-is-no-such-program", NULL }, &plain, ENOENT,
	        WEAN_STAGE_EXEC, -1);
	refused(KID("exit", "0"), &candidates, EACCES, WEAN_STAGE_EXEC, 1);
	refused(KID("exit", "0"), &in_absent, ENOENT, WEAN_STAGE_DIR, -1);
	refused(KID("exit", "0"), &open_absent, ENOENT, WEAN_STAGE_OPEN, 1);
	refused(KID("exit", "0"), &of_closed, EBADF, WEAN_STAGE_FD, 1);
	ck_assert_int_eq(run(KID("exit", "7"), &plain), 7);
	free(locked);
}

START_TEST(a_failure_is_told_with_its_place)
{
	open_at(50);
	open_at(300);
	ENTER(m, _i);
	refuses_right(way(_i % WAYS)); /* of each machine both ways, by other errors */
}
END_TEST

static void waits_for_one(unsigned long long flags, int has_pidfd)
{
	const struct wean_options o = { HELD, .flags = flags };
	struct wean_child child;
	struct wean_status status;
	size_t which;

	start_held(&child, 7, &o);
	ck_assert_int_eq(child.pidfd >= 0, has_pidfd);
	ck_assert_int_eq(wean_wait(&child, 0, &status), ETIMEDOUT);
	ck_assert_int_eq(wean_wait(&child, 5, &status), ETIMEDOUT);
	ck_assert_int_eq(wean_wait_any(&child, 1, 5, &which), ETIMEDOUT);
	ck_assert_int_eq(wean_kill(&child, 0), 0);
	let_go(&child);
	ck_assert_int_eq(wean_wait(&child, -1, &status), 0);
	assert_exited(&status, 7);
	ck_assert_int_eq(wean_wait(&child, 0, &status), 0);
	assert_exited(&status, 7);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), ESRCH);
	wean_release(&child);
}

static void waits_for_several(unsigned long long flags)
{
	struct wean_child children[3];
	struct wean_status statuses[3];
	size_t which;

	start_several(children, 3, flags);
	let_go(&children[1]);
	ck_assert_int_eq(wean_wait_any(children, 3, -1, &which), 0);
	ck_assert_uint_eq(which, 1);
	ck_assert_int_eq(wean_wait_all(children, 3, 5, statuses), ETIMEDOUT);
	assert_zero(&statuses[0]);
	assert_exited(&statuses[1], 1);
	finish_several(children, 3);
}

static void ends_it(unsigned long long flags)
{
	const struct wean_options held = { HELD, .flags = flags | WEAN_NEW_GROUP };
	const struct wean_options said = { .out = WEAN_PIPE, .flags = flags };
	struct wean_child child;
	struct wean_status status;

	start_held(&child, 0, &held);
	ck_assert_int_eq(wean_kill_group(&child, 0), 0);
	ck_assert_int_eq(wean_kill(&child, SIGUSR1), 0);
	status = finish(&child);
	assert_signaled(&status, SIGUSR1);
	start_held(&child, 0, &held);
	ck_assert_int_eq(wean_stop(&child, 60000, &status), 0);
	assert_signaled(&status, SIGTERM);
	wean_release(&child);
	start(&child, KID("ignore", "15", "--then", "say", "1", "ready", "--then", "pause"),
	      &said);
	await_ready(child.out);
	ck_assert_int_eq(wean_stop(&child, 5, &status), 0);
	assert_signaled(&status, SIGKILL);
	wean_release(&child);
}

START_TEST(a_child_is_waited_for_and_killed)
{
	struct baseline b;

	ENTER(m, _i);
	baseline_take(&b);
	waits_for_one(way(_i % WAYS), !m->no_pidfd);
	waits_for_several(way(_i % WAYS));
	ends_it(way(_i % WAYS));
	errno = b.error;
	baseline_same(&b);
}
END_TEST

/* Whether it can be had is known only when one was asked for. */
START_TEST(who_needs_a_pidfd_gets_one_or_no_child)
{
	const struct wean_options needs = { .flags = WEAN_NEED_PIDFD | way(_i % WAYS) };
	struct wean_child child;
	struct baseline b;

	ENTER(m, _i / WAYS);
	for (int again = 0; again < 2; again++) {
		baseline_take(&b);
		int error = wean_spawn(&child, KID("exit", "0"), &needs);
		ck_assert_int_eq(child.stage, error ? WEAN_STAGE_LAUNCH : WEAN_STAGE_NONE);
		ck_assert_int_eq(error != 0, m->no_pidfd);
		ck_assert_int_eq(child.pidfd >= 0, !error);
		if (!error) {
			ck_assert_str_eq(wean_method_name(child.method),
			                 method_of(m, needs.flags));
			ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
			wean_release(&child);
		}
		baseline_same(&b);
	}
}
END_TEST

/* ---- a filter that comes later ------------------------------------------- */

/* Each a filter more, and by what way a start goes then. */
static const struct later {
	struct denial denied;
	const char *shared, *copied;
} ladders[][5] = {
	{ { RANGE, "clone3+procfs", "clone3copy+procfs" },
	  { UNSHARE, "clone3+procfs", "clone3copy+procfs" },
	  { CLONE3, "clone+procfs", "fork+procfs" },
	  { CLONE_WITH(CLONE_VM), "fork+procfs", "fork+procfs" } },
	{ { CLONE3, "clone+unshare", "fork+close_range" },
	  { RANGE_WITH_FLAGS, "clone+close_range", "fork+close_range" },
	  { UNSHARE, "clone+close_range", "fork+close_range" },
	  { CLONE_WITH(CLONE_VM), "fork+close_range", "fork+close_range" },
	  { RANGE, "fork+procfs", "fork+procfs" } },
	{ { PIDFD_GETFD, "clone3+unshare", "clone3copy+unshare" },
	  { PIDFD_OPEN, "clone3+unshare", "clone3copy+unshare" },
	  { CLONE3, "clone+unshare", "fork+close_range" },
	  { CLONE_WITH(PIDFD_FLAG), "clone+unshare", "fork+close_range" },
	  { RANGE, "clone+procfs", "fork+procfs" } },
};

START_TEST(what_worked_before_may_be_refused_now)
{
	const struct later *later = ladders[_i / REFUSALS];
	const struct machine at_first = { .shared = "clone3+unshare",
	                                  .copied = "clone3copy+unshare" };

	if (!can_deny())
		SKIP("no filter of system calls");
	NEED_DESCRIPTORS(5001);
	open_far_ones();
	for (int i = 0; i < WAYS; i++)
		gives_nothing_else(&at_first, way(i));
	for (size_t n = 0; n < COUNT(*ladders) && later[n].shared; n++) {
		struct denial denied = later[n].denied;
		const struct machine now = { .shared = later[n].shared,
		                             .copied = later[n].copied };
		denied.error = refusals[_i % REFUSALS];
		ck_assert(deny_these(&denied, 1));
		for (int i = 0; i < WAYS; i++) {
			gives_nothing_else(&now, way(i));
			refuses_right(way(i));
		}
	}
}
END_TEST

/* Also where its pidfd serves no more. */
START_TEST(a_child_that_runs_already_is_waited_for_and_killed)
{
	const struct denial denied[] = {
		{ .nr = SYS_pidfd_send_signal, .error = refusals[_i] },
		{ .nr = SYS_pidfd_open, .error = refusals[_i] }, WAITID_BY_PIDFD,
	};
	const struct wean_options opt = { HELD, .flags = WEAN_NEW_GROUP };
	struct wean_child children[3];
	struct wean_status status;
	size_t which;

	if (!can_deny())
		SKIP("no filter of system calls");
	for (int i = 0; i < 3; i++)
		start_held(&children[i], i, &opt);
	ck_assert(deny_these(denied, COUNT(denied)));
	ck_assert_int_eq(wean_wait(&children[0], 5, NULL), ETIMEDOUT);
	ck_assert_int_eq(wean_wait_any(children, 3, 5, &which), ETIMEDOUT);
	ck_assert_int_eq(wean_kill(&children[0], SIGUSR1), 0);
	ck_assert_int_eq(wean_wait_any(children, 3, -1, &which), 0);
	ck_assert_uint_eq(which, 0);
	status = finish(&children[0]);
	assert_signaled(&status, SIGUSR1);
	ck_assert_int_eq(wean_kill_group(&children[1], SIGUSR2), 0);
	status = finish(&children[1]);
	assert_signaled(&status, SIGUSR2);
	ck_assert_int_eq(wean_stop(&children[2], 60000, &status), 0);
	assert_signaled(&status, SIGTERM);
	wean_release(&children[2]);
}
END_TEST

static void act_linger(pid_t child)
{
	(void)child;
	nanosleep(&(struct timespec){ 0, 40000000 }, NULL);
}

/* It cannot wait for children, but has to see them off: they may be in its memory. */
START_TEST(who_may_not_wait_goes_on_only_after_the_exec)
{
	struct wean_options opt = { .pgid = getpgrp(),
	                            .flags = WEAN_JOIN_GROUP | way(_i % WAYS) };
	struct wean_child child;
	struct trap trap;
	int status;

	if (!can_deny() || !trap_set(&trap, "opened", act_linger))
		SKIP("no filter of system calls, or no leases on %s", scratch);
	const struct wean_fd fd = OPEN(8, trap.path);
	opt.fds = &fd;
	opt.nfds = 1;
	ck_assert(deny(SYS_waitid, refusals[_i / WAYS]));
	start(&child, KID("exit", "6"), &opt);
	trap_sprung(&trap);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 6);
	wean_release(&child);
}
END_TEST

/* It cannot learn how the child ended, but sees by the pidfd that it has. */
START_TEST(who_may_not_wait_still_gives_the_grace)
{
	const struct wean_options opt = { .out = WEAN_PIPE };
	struct wean_child child;
	int status;

	if (!can_deny())
		SKIP("no filter of system calls");
	start(&child, KID("on", "15", "6", "--then", "say", "1", "ready", "--then", "pause"),
	      &opt);
	await_ready(child.out);
	ck_assert(deny(SYS_waitid, refusals[_i]));
	ck_assert_int_eq(wean_stop(&child, 60000, NULL), refusals[_i]);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 6);
	wean_release(&child);
}
END_TEST

/* ---- what is remembered -------------------------------------------------- */

static int second_start(void *arg)
{
	const struct wean_options *o = arg;
	struct wean_child child;
	int error = 0;

	if (!deny(SYS_clone3, ENOSYS) || !deny(SYS_unshare, EPERM) ||
	    !deny(SYS_close_range, EPERM))
		return -1;
	for (int i = 0; i < 2 && !error; i++) {
		if (i == 1)
			count_begin();
		error = wean_spawn(&child, KID("exit", "0"), o);
		if (i == 1)
			count_end();
		if (!error)
			error = wean_wait(&child, -1, NULL);
		wean_release(&child);
	}
	return error;
}

START_TEST(what_was_refused_is_not_tried_again)
{
	struct wean_options o = { .flags = way(_i) };
	struct count c;

	if (!can_deny())
		SKIP("no filter of system calls");
	kid();
	int error = count_calls(&c, second_start, &o);
	if (error > 0)
		SKIP("no counting here: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(count_of(&c, COUNT_PARENT, SYS_clone3), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_unshare), 0);
	ck_assert_int_eq(c.children, 1);
	ck_assert_int_eq(c.executed, 1);
	count_free(&c);
}
END_TEST

/* ------------------------------------------------------------------------- */

static void add_case(Suite *s, const char *name, const char *tags, int from, int to)
{
	TCase *t = tcase_create(name);

	tcase_set_timeout(t, 30);
	tcase_set_tags(t, tags);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_start_takes_the_next_way_and_gives_what_was_asked_for,
	                    from, to);
	tcase_add_loop_test(t, a_failure_is_told_with_its_place, from, to);
	tcase_add_loop_test(t, a_child_is_waited_for_and_killed, from, to);
	tcase_add_loop_test(t, who_needs_a_pidfd_gets_one_or_no_child, WAYS * from,
	                    WAYS * to);
	suite_add_tcase(s, t);
}

static Suite *denied_suite(void)
{
	Suite *s = suite_create("denied");
	TCase *later = tcase_create("later"), *counted = tcase_create("remembered");

	add_case(s, "refused", "default seccomp native", 0, RUNS_KNOWN);
	add_case(s, "without proc", "default seccomp native root", RUNS_KNOWN, RUNS_ALL);
	tcase_set_timeout(later, 30);
	tcase_set_tags(later, "default seccomp native");
	tcase_add_unchecked_fixture(later, scratch_make, scratch_remove);
	tcase_add_loop_test(later, what_worked_before_may_be_refused_now, 0,
	                    COUNT(ladders) * REFUSALS);
	tcase_add_loop_test(later, a_child_that_runs_already_is_waited_for_and_killed, 0,
	                    REFUSALS);
	tcase_add_loop_test(later, who_may_not_wait_goes_on_only_after_the_exec, 0,
	                    REFUSALS * WAYS);
	tcase_add_loop_test(later, who_may_not_wait_still_gives_the_grace, 0, REFUSALS);
	suite_add_tcase(s, later);
	tcase_set_tags(counted, "seccomp ptrace native");
	tcase_add_loop_test(counted, what_was_refused_is_not_tried_again, 0, WAYS);
	suite_add_tcase(s, counted);
	return s;
}

RUN_WITH_STDIO_ALONE(denied_suite)
