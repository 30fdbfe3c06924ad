/* test_high_hosts.c - hosts where the same number means several files: threads with
   tables of their own, a main thread that is gone, namespaces of processes. */
#define _GNU_SOURCE
#include "high.h"

#include <sys/mount.h>

#include "deny.h"

/* ---- threads ------------------------------------------------------------- */

/* In a table of its own, with other files than the process has on those numbers. */
static int right_start_unshared(void *asked)
{
	if (unshare(CLONE_FILES))
		return -1;
	for (int i = 0; i < 3; i++) {
		close(FILES + i);
		open_at(FILES + i);
	}
	return right_start(asked);
}

static int right_start_in_an_own_table(void *asked)
{
	return in_a_thread(right_start_unshared, asked);
}

/* Its own: the process's are other ones. */
START_TEST(the_files_of_a_threads_own_table_are_fetched)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES, .flags = way(_i) } };

	NEED_DESCRIPTORS(FILES + 10);
	if (!may_fetch() || !kernel_has(6, 9))
		SKIP("a thread's own files can't be fetched");
	open_three_files();
	GOES_STRAIGHT(right_start_in_an_own_table, &a, 3, 3, 2);
}
END_TEST

/* A handle on the process alone would bring the process's files. */
static int deny_handles_on_threads(void)
{
	return !deny(SYS_pidfd_open, EINVAL);
}

START_TEST(before_there_are_handles_on_threads_their_files_are_copied)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES, .flags = way(_i) },
	                   .before = deny_handles_on_threads };

	NEED_DESCRIPTORS(FILES + 10);
	if (!can_deny())
		SKIP("no system call can be denied here");
	open_three_files();
	GOES(right_start_in_an_own_table, &a, .children = 2, .opens = 3, .opened = 3,
	     .handles = 1, .cut = FILES + 3);
}
END_TEST

static void *outlive_main(void *asked)
{
	while (!main_is_gone())
		sched_yield();
	_exit(right_start(asked) != 0);
}

static int right_start_without_main(void *asked)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, outlive_main, asked))
		return -1;
	pthread_exit(NULL);
}

START_TEST(a_main_thread_that_is_gone_is_not_missed)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES, .flags = way(_i) } };

	NEED_DESCRIPTORS(FILES + 10);
	if (!may_fetch() || !kernel_has(6, 9))
		SKIP("a thread's own files can't be fetched");
	open_three_files();
	GOES_STRAIGHT(right_start_without_main, &a, 3, 3, 2);
}
END_TEST

/* ---- namespaces ---------------------------------------------------------- */

enum { NOT_PERMITTED = 77 };

/* In a fork; its exit value. */
static int in_a_fork(int (*act)(void *), void *arg)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		exit(act(arg));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What a child must not be given: on the numbers of the pipes and the files. */
static void open_decoys(void)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	for (int n = PIPES; n <= LAST_PIPE; n++)
		ck_assert_int_eq(dup2(ends[0], n), n);
	for (int n = FILES; n < FILES + 3; n++)
		ck_assert_int_eq(dup2(ends[0], n), n);
	close(ends[0]);
	close(ends[1]);
}

static int end_decoys(void)
{
	for (int n = PIPES; n <= LAST_PIPE; n++)
		close(n);
	for (int n = FILES; n < FILES + 3; n++)
		close(n);
	open_three_files();
	return 0;
}

struct host {
	int (*act)(void *);
	void *arg;
};

/* Process 1 of a namespace, with its own /proc and decoys; the host is one of another
   namespace below it, under the same /proc.  Its number is that of a process with decoys
   there: 1 is this one, 2 the first of the namespace below. */
static int hold_decoys(void *arg)
{
	struct host *h = arg;

	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/proc", "proc", 0, NULL))
		return NOT_PERMITTED;
	open_decoys();
	if (unshare(CLONE_NEWPID))
		return NOT_PERMITTED;
	return in_a_fork(h->act, h->arg);
}

static int under_an_outer_proc(int (*act)(void *), void *arg)
{
	struct host h = { act, arg };

	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		return NOT_PERMITTED;
	return in_a_fork(hold_decoys, &h);
}

static struct trip trip;

/* As process 2, which the counter makes. */
static int counted_start(void *asked)
{
	return take_trip(&trip, right_start, asked) ? 0 : NOT_PERMITTED;
}

static int assert_another_was_opened(void *asked)
{
	int error = counted_start(asked);

	ck_assert_int_eq(getpid(), 1);
	if (!error)
		assert_trip(&trip, &(struct trip){ .children = 2, .opens = 1, .opened = 1,
		                                   .cut = LAST_PIPE + 1 });
	return error;
}

/* The first path leads to the other process's pipe. */
START_TEST(a_pipe_of_another_process_with_this_number_is_not_taken)
{
	struct asked a = { .o = { THREE_PIPES, .flags = way(_i) }, .before = end_decoys };

	NEED_DESCRIPTORS(FILES + 10);
	int value = under_an_outer_proc(assert_another_was_opened, &a);
	if (value == NOT_PERMITTED)
		SKIP("no namespaces, or no counting, here");
	ck_assert_int_eq(value, 0);
}
END_TEST

static int assert_files_were_fetched(void *asked)
{
	int error = counted_start(asked);

	if (!error)
		assert_trip(&trip, &(struct trip){ .children = 1, .handles = 1, .fetches = 3,
		                                   .fetched = 3, .cut = 3 });
	return error;
}

/* Handles count in the namespace that the host is in. */
START_TEST(files_are_fetched_whatever_proc_is_mounted)
{
	struct asked a = { .o = { THREE_FILES, .flags = way(_i) }, .before = end_decoys };

	NEED_DESCRIPTORS(FILES + 10);
	if (!may_fetch())
		SKIP("pidfd_getfd is not permitted");
	int value = under_an_outer_proc(assert_files_were_fetched, &a);
	if (value == NOT_PERMITTED)
		SKIP("no namespaces, or no counting, here");
	ck_assert_int_eq(value, 0);
}
END_TEST

/* ---- a host whose children are in another namespace ------------------------ */

/* The first child there is its init: with it the namespace ends, so that there is no
   second try. */
static int send_children_elsewhere(void)
{
	return unshare(CLONE_NEWPID);
}

static int hide_proc_too(void)
{
	return unshare(CLONE_NEWPID | CLONE_NEWNS) ||
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("none", "/proc", "tmpfs", 0, NULL);
}

static int may_send_elsewhere(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(hide_proc_too() != 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return !status;
}

START_TEST(children_that_go_elsewhere_get_copies_of_files_at_once)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES, .flags = way(_i) },
	                   .before = send_children_elsewhere };

	NEED_DESCRIPTORS(FILES + 10);
	if (!may_send_elsewhere())
		SKIP("no namespaces here");
	open_three_files();
	GOES_STRAIGHT(right_start, &a, 0, 0, FILES + 2);
	a.before = hide_proc_too;
	GOES_STRAIGHT(right_start, &a, 0, 0, FILES + 2);
}
END_TEST

/* It needs neither /proc, which may be another namespace's, nor a second child. */
START_TEST(the_first_child_that_goes_elsewhere_has_its_pipes_in_a_copy)
{
	struct asked a = { .o = { THREE_PIPES, .flags = way(_i) },
	                   .before = send_children_elsewhere };

	NEED_DESCRIPTORS(FILES + 10);
	if (!may_send_elsewhere())
		SKIP("no namespaces here");
	GOES(right_start, &a, .children = 1, .cut = ~0U);
	a.before = hide_proc_too;
	GOES(right_start, &a, .children = 1, .cut = ~0U);
}
END_TEST

/* While its init lives, a namespace takes one child after the other. */
static int send_a_second_child_elsewhere(void)
{
	struct wean_options o = { .in = WEAN_PIPE };
	static struct wean_child init;

	return send_children_elsewhere() || wean_spawn(&init, KID("cat"), &o);
}

START_TEST(later_children_that_go_elsewhere_open_their_pipes_anew)
{
	struct asked a = { .o = { THREE_PIPES, .flags = way(_i) },
	                   .before = send_a_second_child_elsewhere };

	NEED_DESCRIPTORS(FILES + 10);
	if (!may_send_elsewhere())
		SKIP("no namespaces here");
	GOES_STRAIGHT(right_start, &a, 3, 0, 2);
}
END_TEST

static Suite *hosts_suite(void)
{
	Suite *s = suite_create("high, hosts");
	TCase *threads = tcase_create("threads"), *old = tcase_create("old");
	TCase *spaces = tcase_create("namespaces");

	tcase_set_tags(threads, "default ptrace native");
	tcase_set_timeout(threads, 60);
	tcase_set_tags(old, "default ptrace seccomp native");
	tcase_set_timeout(old, 60);
	tcase_set_tags(spaces, "default ptrace root native");
	tcase_set_timeout(spaces, 60);
	tcase_add_loop_test(threads, the_files_of_a_threads_own_table_are_fetched, 0, WAYS);
	tcase_add_loop_test(threads, a_main_thread_that_is_gone_is_not_missed, 0, WAYS);
	tcase_add_loop_test(old, before_there_are_handles_on_threads_their_files_are_copied,
	                    0, WAYS);
	tcase_add_loop_test(spaces, a_pipe_of_another_process_with_this_number_is_not_taken,
	                    0, WAYS);
	tcase_add_loop_test(spaces, files_are_fetched_whatever_proc_is_mounted, 0, WAYS);
	tcase_add_loop_test(spaces, children_that_go_elsewhere_get_copies_of_files_at_once,
	                    0, WAYS);
	tcase_add_loop_test(spaces,
	        the_first_child_that_goes_elsewhere_has_its_pipes_in_a_copy, 0, WAYS);
	tcase_add_loop_test(spaces, later_children_that_go_elsewhere_open_their_pipes_anew,
	                    0, WAYS);
	suite_add_tcase(s, threads);
	suite_add_tcase(s, old);
	suite_add_tcase(s, spaces);
	return s;
}

RUN_WITH_STDIO_ALONE(hosts_suite)
