/* test_parent_death.c - the signal that a child gets when its parent ends. */
#define _GNU_SOURCE
#include <sched.h>

#include "attributes.h"
#include "descriptors.h"

enum { USER = 4242 };

static void make_kid(void)
{
	scratch_make();
	free(copy_kid("kid", 0755));
}

START_TEST(the_signal_is_set_where_asked_for_even_for_a_user)
{
	const int signals[] = { SIGHUP, SIGKILL, SIGTERM, 32, 64 };
	struct wean_options opt = { .flags = way(_i), .file = at("kid") };
	char want[8];

	reports(&opt, "pdeathsig", "0");
	for (size_t i = 0; i < COUNT(signals); i++) {
		opt.pdeathsig = signals[i];
		opt.flags = way(_i);
		snprintf(want, sizeof want, "%d", signals[i]);
		reports(&opt, "pdeathsig", want);
		if (geteuid() != 0)
			continue;
		opt.flags |= WEAN_SET_UID | WEAN_SET_GID | WEAN_SET_GROUPS;
		opt.uid = opt.gid = USER;
		reports(&opt, "pdeathsig", want);
		opt.uid = opt.gid = 0;
	}
}
END_TEST

static const int no_signals[] = { -1, 65, INT_MAX, INT_MIN };

START_TEST(a_number_that_is_no_signal_is_refused)
{
	refused_as_invalid(&(struct wean_options){ .pdeathsig = no_signals[_i] });
}
END_TEST

struct request {
	struct wean_options opt;
	struct wean_child child;
	pid_t thread;
};

static void *start_in_thread(void *arg)
{
	struct request *r = arg;

	r->thread = (pid_t)syscall(SYS_gettid);
	start(&r->child, KID("exit-on-eof"), &r->opt);
	return NULL;
}

/* Joined is not over: the kernel sends the signal a little later. */
static void start_and_end_the_thread(struct request *r)
{
	char path[64];
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, start_in_thread, r), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	snprintf(path, sizeof path, "/proc/self/task/%d", (int)r->thread);
	while (access(path, F_OK) == 0)
		sched_yield();
}

START_TEST(the_signal_comes_when_the_starting_thread_ends)
{
	struct request r = { .opt = { .in = WEAN_PIPE, .pdeathsig = SIGUSR1,
	                              .flags = way(_i) } };

	start_and_end_the_thread(&r);
	struct wean_status status = finish(&r.child);
	ck_assert_int_eq(status.kind, WEAN_SIGNALED);
	ck_assert_int_eq(status.value, SIGUSR1);
}
END_TEST

START_TEST(a_child_without_it_outlives_the_starting_thread)
{
	struct request r = { .opt = { .in = WEAN_PIPE, .flags = way(_i) } };

	start_and_end_the_thread(&r);
	ck_assert_int_eq(wean_wait(&r.child, 0, NULL), ETIMEDOUT);
	close(r.child.in);
	r.child.in = -1;
	ck_assert_int_eq(finish(&r.child).code, 0);
}
END_TEST

/* ---- a parent that dies on the way ---- */

/* The only child of the test is the parent of the one that is held. */
static void act_end(pid_t parent)
{
	kill(parent, SIGKILL);
	ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
}

static void spawn_held(const struct trap *trap, int out, int pdeathsig,
                       unsigned long long flags)
{
	const struct wean_options opt = {
		FDS(OPEN(8, trap->path), DUP(1, out)), .pdeathsig = pdeathsig,
		.flags = flags,
	};
	struct wean_child child;

	wean_spawn(&child, KID("echo", "I", "run"), &opt);
}

/* What a program wrote whose parent was dead and gone while it opened a file; NULL:
   nothing holds it here. */
static char *orphan_says(int pdeathsig, unsigned long long flags)
{
	struct trap trap;
	int ends[2];
	pid_t pid;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	if (!trap_set(&trap, "opened", act_end))
		return NULL;
	ck_assert_int_ge(pid = fork(), 0);
	if (pid == 0) {
		spawn_held(&trap, ends[1], pdeathsig, flags);
		_exit(0);
	}
	close(ends[1]);
	trap_sprung(&trap);
	ck_assert_int_eq(trap.child, pid);
	return read_end(ends[0]);
}

START_TEST(a_program_is_not_run_whose_parent_is_dead_already)
{
	char *text = orphan_says(0, way(_i));

	if (!text)
		SKIP("no leases on %s", scratch);
	ck_assert_str_eq(text, "I run\n");
	free(text);
	text = orphan_says(SIGTERM, way(_i));
	ck_assert_str_eq(text, "");
	free(text);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *parent_death_suite(void)
{
	Suite *s = suite_create("parent death");
	TCase *t = tcase_create("parent death");

	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, the_signal_is_set_where_asked_for_even_for_a_user, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_number_that_is_no_signal_is_refused, 0,
	                    COUNT(no_signals));
	tcase_add_loop_test(t, the_signal_comes_when_the_starting_thread_ends, 0, WAYS);
	tcase_add_loop_test(t, a_child_without_it_outlives_the_starting_thread, 0, WAYS);
	tcase_add_loop_test(t, a_program_is_not_run_whose_parent_is_dead_already, 0,
	                    WAYS);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(parent_death_suite)
