/* test_pipeline.c - what goes through a pipeline, how its stages end, alone or all
 * together, and in which groups they are. */
#define _GNU_SOURCE
#include "piping.h"

/* ---- what goes through --------------------------------------------------- */

enum { SIZE = (1 << 20) + 7 };

START_TEST(what_the_first_writes_comes_out_of_the_last)
{
	struct line l;
	struct wean_result r = { 0 };
	size_t n = (size_t)_i + 1;

	lay(&l, n);
	l.argvs[0] = KID("write", "1", "1048583", "5000");
	l.o[n - 1].out = WEAN_PIPE;
	must_open(&l);
	ck_assert_int_eq(wean_communicate(&l.children[n - 1], NULL, &r), 0);
	assert_pattern(r.out, r.out_len, SIZE);
	wean_result_free(&r);
	close_line(&l);
}
END_TEST

START_TEST(the_whole_is_fed_and_read_by_its_last_child)
{
	struct line l;
	struct wean_result r = { 0 };
	size_t n = (size_t)_i + 1;
	struct wean_io io = { .input = pattern(SIZE), .input_len = SIZE };

	lay(&l, n);
	l.o[0].in = l.o[n - 1].out = WEAN_PIPE;
	must_open(&l);
	if (n > 1) {
		l.children[n - 1].in = l.children[0].in;
		l.children[0].in = -1;
	}
	ck_assert_int_eq(wean_communicate(&l.children[n - 1], &io, &r), 0);
	assert_pattern(r.out, r.out_len, SIZE);
	ck_assert_uint_eq(r.in_written, SIZE);
	wean_result_free(&r);
	close_line(&l);
}
END_TEST

START_TEST(without_options_it_reads_and_writes_what_the_caller_does)
{
	char **const argvs[] = { KID("echo", "through"), KID("cat"), KID("cat") };
	struct wean_child children[3];
	int ends[2], kept = dup(1);

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	dup2(ends[1], 1);
	close(ends[1]);
	int error = wean_pipeline(children, argvs, NULL, 3);
	dup2(kept, 1);
	close(kept);
	ck_assert_int_eq(error, 0);
	ck_assert_str_eq(read_end(ends[0]), "through\n");
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(finish(&children[i]).code, 0);
}
END_TEST

START_TEST(merged_errors_of_a_stage_go_to_the_next)
{
	struct line l;

	lay(&l, 3);
	l.argvs[0] = KID("say", "2", "one", "--then", "say", "1", "two");
	l.argvs[1] = KID("say", "2", "three", "--then", "cat");
	l.o[0].err = l.o[1].err = WEAN_MERGE;
	l.o[2].out = WEAN_PIPE;
	must_open(&l);
	char *text = read_end(l.children[2].out);
	l.children[2].out = -1;
	ck_assert_ptr_nonnull(strstr(text, "one\ntwo\n"));
	ck_assert_ptr_nonnull(strstr(text, "three\n"));
	ck_assert_uint_eq(strlen(text), strlen("one\ntwo\nthree\n"));
	close_line(&l);
}
END_TEST

START_TEST(each_stage_has_an_error_output_of_its_own)
{
	struct line l;

	lay(&l, 2);
	l.argvs[0] = KID("say", "2", "one");
	l.argvs[1] = KID("say", "2", "two", "--then", "cat");
	l.o[0].err = l.o[1].err = WEAN_PIPE;
	must_open(&l);
	ck_assert_str_eq(read_end(l.children[0].err), "one\n");
	ck_assert_str_eq(read_end(l.children[1].err), "two\n");
	l.children[0].err = l.children[1].err = -1;
	close_line(&l);
}
END_TEST

START_TEST(descriptors_of_a_stage_are_placed_beside_its_pipes)
{
	struct line l;
	int file = memfd_create("given", MFD_CLOEXEC);
	struct wean_fd fds[] = { DUP(7, file), SAME(8, 1), SAME(9, 0) };

	lay(&l, 3);
	l.argvs[1] = KID("say", "7", "kept", "--then", "say", "8", "on", "--then", "close", "0",
	                 "8", "9");
	l.o[1].fds = fds;
	l.o[1].nfds = COUNT(fds);
	l.o[0].in = WEAN_NULL;
	l.o[2].out = WEAN_PIPE;
	must_open(&l);
	ck_assert_str_eq(read_end(l.children[2].out), "on\n");
	l.children[2].out = -1;
	close_line(&l);
	lseek(file, 0, SEEK_SET);
	ck_assert_str_eq(read_end(file), "kept\n");
}
END_TEST

/* ---- how stages end ------------------------------------------------------ */

START_TEST(each_stage_has_a_status_of_its_own)
{
	struct line l;
	struct wean_status s[MOST];

	lay(&l, MOST);
	l.argvs[0] = KID("cat", "--then", "exit", "1");
	l.argvs[1] = KID("cat", "--then", "kill", "9");
	l.argvs[3] = KID("cat", "--then", "exit", "3");
	l.argvs[4] = KID("cat", "--then", "exit", "4");
	l.o[0].in = WEAN_PIPE;
	must_open(&l);
	close(l.children[0].in);
	l.children[0].in = -1;
	ck_assert_int_eq(wean_wait_all(l.children, l.n, LONG, s), 0);
	assert_exited(&s[0], 1);
	assert_signaled(&s[1], SIGKILL);
	assert_exited(&s[2], 0);
	assert_exited(&s[3], 3);
	assert_exited(&s[4], 4);
	release_line(&l);
}
END_TEST

/* Were there another end of its pipe that reads, it would write on, and wait. */
START_TEST(a_producer_that_nobody_reads_any_more_gets_sigpipe)
{
	struct line l;
	struct wean_status s[MOST];

	lay(&l, 3);
	l.argvs[0] = KID("write", "1", "100000000");
	l.argvs[2] = KID("exit", "5");
	must_open(&l);
	ck_assert_int_eq(wean_wait_all(l.children, 3, LONG, s), 0);
	assert_signaled(&s[0], SIGPIPE);
	assert_signaled(&s[1], SIGPIPE);
	assert_exited(&s[2], 5);
	release_line(&l);
}
END_TEST

/* Were there another end that writes, it would wait for more. */
START_TEST(the_stage_behind_one_that_ended_finds_its_end)
{
	struct line l;

	lay(&l, 4);
	l.argvs[0] = KID("pause");
	l.argvs[1] = KID("exit", "0");
	l.o[0].flags = l.o[1].flags = WEAN_INHERIT_ALL; /* but none of ours */
	must_open(&l);
	ck_assert_int_eq(wean_wait(&l.children[2], LONG, NULL), 0);
	ck_assert_int_eq(wean_wait(&l.children[3], LONG, NULL), 0);
	ck_assert_int_eq(wean_wait(&l.children[0], 0, NULL), ETIMEDOUT);
	ck_assert_int_eq(wean_stop(&l.children[0], 0, NULL), 0);
	release_line(&l);
}
END_TEST

/* Children that live on, begun at any moment of the others' start. */
static int all_is_done;

static void *start_without_pause(void *arg)
{
	enum { ALIVE = 16 };
	static struct wean_child alive[ALIVE];
	struct wean_options o = { .in = WEAN_NULL, .flags = (size_t)arg ? WEAN_INHERIT_ALL : 0 };
	size_t i = 0;

	while (!__atomic_load_n(&all_is_done, __ATOMIC_RELAXED)) {
		struct wean_child *child = &alive[i++ % ALIVE];

		if (child->pid)
			wean_stop(child, 0, NULL);
		wean_release(child);
		if (wean_spawn(child, KID("pause"), &o))
			memset(child, 0, sizeof *child);
	}
	for (i = 0; i < ALIVE; i++) {
		wean_stop(&alive[i], 0, NULL);
		wean_release(&alive[i]);
	}
	return NULL;
}

START_TEST(children_of_other_threads_hold_no_end)
{
	struct line l;
	pthread_t thread;

	kid();
	ck_assert_int_eq(pthread_create(&thread, NULL, start_without_pause,
	                                (void *)(size_t)_i), 0);
	for (int i = 0; i < scaled(10); i++) {
		lay(&l, 3);
		l.o[0].in = l.o[2].out = WEAN_PIPE;
		must_open(&l);
		close(l.children[0].in);
		l.children[0].in = -1;
		ck_assert_str_eq(read_end(l.children[2].out), "");
		l.children[2].out = -1;
		close_line(&l);
	}
	__atomic_store_n(&all_is_done, 1, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

/* ---- groups -------------------------------------------------------------- */

static void assert_groups(const struct line *l, int leader)
{
	for (size_t i = 0; i < l->n; i++)
		ck_assert_int_eq(getpgid(l->children[i].pid),
		                 leader ? leader : l->children[i].pid);
}

static void lay_pausing(struct line *l, size_t n, unsigned long long first,
                        unsigned long long others)
{
	static char *pause_argv[3];

	lay(l, n);
	memcpy(pause_argv, KID("pause"), sizeof pause_argv);
	for (size_t i = 0; i < n; i++) {
		l->argvs[i] = pause_argv;
		l->o[i].flags = i ? others : first;
	}
}

START_TEST(by_default_all_are_in_the_callers_group)
{
	struct line l;

	lay_pausing(&l, 3, 0, 0);
	must_open(&l);
	assert_groups(&l, getpgrp());
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(wean_stop(&l.children[i], 0, NULL), 0);
	release_line(&l);
}
END_TEST

START_TEST(a_group_of_the_first_is_that_of_all_and_ends_with_it)
{
	struct line l;
	struct wean_status s[MOST];

	lay_pausing(&l, MOST, WEAN_NEW_GROUP, _i ? WEAN_NEW_GROUP : 0);
	must_open(&l);
	assert_groups(&l, l.children[0].pid);
	ck_assert_int_eq(wean_kill_group(&l.children[1], 0), EINVAL);
	if (_i)
		ck_assert_int_eq(wean_kill_group(&l.children[0], SIGTERM), 0);
	else
		ck_assert_int_eq(wean_stop(&l.children[0], 0, NULL), 0);
	ck_assert_int_eq(wean_wait_all(l.children, MOST, LONG, s), 0);
	for (size_t i = 0; i < MOST; i++)
		assert_signaled(&s[i], _i ? SIGTERM : SIGKILL);
	release_line(&l);
}
END_TEST

START_TEST(groups_of_later_stages_are_their_own)
{
	struct line l;

	lay_pausing(&l, 3, 0, WEAN_NEW_GROUP);
	must_open(&l);
	ck_assert_int_eq(getpgid(l.children[0].pid), getpgrp());
	for (size_t i = 1; i < 3; i++)
		ck_assert_int_eq(getpgid(l.children[i].pid), l.children[i].pid);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(wean_stop(&l.children[i], 0, NULL), 0);
	release_line(&l);
}
END_TEST

/* The next stage is held in its start until the leader is over. */
static pid_t leader_of;

static void act_await_leader(pid_t child)
{
	siginfo_t si;

	(void)child;
	while (waitid(P_ALL, 0, &si, WEXITED | WNOWAIT) != 0)
		;
	leader_of = si.si_pid;
}

START_TEST(a_group_outlives_its_leader)
{
	static char *held[3];
	struct line l;
	struct trap t;

	lay(&l, 2);
	if (!trap_set(&t, "held", act_await_leader))
		SKIP("no leases here");
	memcpy(held, KID("pause"), sizeof held);
	held[0] = t.path;
	l.argvs[0] = KID("exit", "7");
	l.argvs[1] = held;
	l.o[0].flags = WEAN_NEW_GROUP;
	must_open(&l);
	trap_sprung(&t);
	ck_assert_int_eq(leader_of, l.children[0].pid);
	ck_assert_int_eq(getpgid(l.children[1].pid), l.children[0].pid);
	ck_assert_int_eq(wean_kill_group(&l.children[0], SIGKILL), 0);
	ck_assert_int_eq(finish(&l.children[0]).code, 7);
	ck_assert_int_eq(finish(&l.children[1]).code, 128 + SIGKILL);
}
END_TEST

static Suite *pipeline_suite(void)
{
	Suite *s = suite_create("pipeline");
	TCase *flow = tcase_create("flow"), *ends = tcase_create("ends");
	TCase *groups = tcase_create("groups");
	TCase *held = case_that_needs(s, "default native");

	suite_add_tcase(s, flow);
	suite_add_tcase(s, ends);
	suite_add_tcase(s, groups);
	tcase_add_loop_test(flow, what_the_first_writes_comes_out_of_the_last, 0, MOST);
	tcase_add_loop_test(flow, the_whole_is_fed_and_read_by_its_last_child, 0, MOST);
	tcase_add_test(flow, without_options_it_reads_and_writes_what_the_caller_does);
	tcase_add_test(flow, merged_errors_of_a_stage_go_to_the_next);
	tcase_add_test(flow, each_stage_has_an_error_output_of_its_own);
	tcase_add_test(flow, descriptors_of_a_stage_are_placed_beside_its_pipes);
	tcase_add_test(ends, each_stage_has_a_status_of_its_own);
	tcase_add_test(ends, a_producer_that_nobody_reads_any_more_gets_sigpipe);
	tcase_add_test(ends, the_stage_behind_one_that_ended_finds_its_end);
	tcase_add_loop_test(ends, children_of_other_threads_hold_no_end, 0, 2);
	tcase_add_test(groups, by_default_all_are_in_the_callers_group);
	tcase_add_loop_test(groups, a_group_of_the_first_is_that_of_all_and_ends_with_it, 0, 2);
	tcase_add_test(groups, groups_of_later_stages_are_their_own);
	tcase_add_unchecked_fixture(held, scratch_make, scratch_remove);
	tcase_add_test(held, a_group_outlives_its_leader);
	return s;
}

RUN_WITH_STDIO_ALONE(pipeline_suite)
