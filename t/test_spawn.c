/* test_spawn.c - the least that wean_spawn() needs, and what is in its struct. */
#define _GNU_SOURCE
#include "spawning.h"

/* ---- all-zero ---- */

START_TEST(all_zero_options_and_null_mean_the_same)
{
	const struct wean_options zero = { .flags = way(_i) };
	const struct wean_options *both[] = { &zero, NULL };

	for (int i = 0; i < 2; i++) {
		struct wean_child child;
		struct baseline b;
		baseline_take(&b);
		ck_assert_int_eq(wean_spawn(&child, KID("exit", "7"), both[i]), 0);
		ck_assert_int_gt(child.pid, 0);
		ck_assert_int_gt(child.pidfd, 2);
		ck_assert_int_eq(fcntl(child.pidfd, F_GETFD), FD_CLOEXEC);
		ck_assert_int_eq(child.in, -1);
		ck_assert_int_eq(child.out, -1);
		ck_assert_int_eq(child.err, -1);
		ck_assert_int_eq(child.stage, WEAN_STAGE_NONE);
		ck_assert_int_eq(child.index, -1);
		ck_assert_int_eq(finish(&child).code, 7);
		baseline_same(&b);
	}
}
END_TEST

START_TEST(by_default_a_child_inherits_the_first_three_and_nothing_else)
{
	struct wean_options opt = { .flags = way(_i) };

	open_at(63);
	open_at(300);
	struct report *r = kid_report(&opt);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	ck_assert_int_eq(report_number(r, "ppid"), getpid());
	ck_assert_int_eq(report_number(r, "pgid"), getpgrp());
	report_free(r);
}
END_TEST

/* ---- argv ---- */

START_TEST(a_missing_argv_or_child_is_refused)
{
	struct wean_child child;
	struct wean_options opt = { .file = kid(), .flags = way(_i) };
	struct baseline b;

	memset(&child, 0xa5, sizeof child);
	baseline_take(&b);
	ck_assert_int_eq(wean_spawn(NULL, KID("exit", "0"), &opt), EINVAL);
	ck_assert_int_eq(wean_spawn(&child, NULL, &opt), EINVAL);
	baseline_same(&b);
	ck_assert_int_eq(child.stage, WEAN_STAGE_OPTIONS);
	ck_assert_int_eq(child.index, -1);
	assert_holds_nothing(&child);
}
END_TEST

START_TEST(a_missing_first_argument_needs_a_file_or_candidates)
{
	char *none[] = { NULL };
	char *list[] = { kid(), NULL };
	struct wean_options opt = { .flags = way(_i) };
	struct wean_options named = { .file = kid(), .flags = way(_i) };
	struct wean_options listed = { .candidates = list, .flags = way(_i) };

	refused(none, &opt, EINVAL, WEAN_STAGE_OPTIONS, -1);
	refused(none, NULL, EINVAL, WEAN_STAGE_OPTIONS, -1);
	/* kid without a verb leaves with 120: it ran. */
	ck_assert_int_eq(run(none, &named), 120);
	ck_assert_int_eq(run(none, &listed), 120);
}
END_TEST

START_TEST(an_empty_name_is_a_program_that_is_not_there)
{
	struct wean_options opt = { .file = "", .flags = way(_i) };
	char *empty[] = { "", NULL };

	refused(empty, NULL, ENOENT, WEAN_STAGE_EXEC, -1);
	refused(KID("exit", "0"), &opt, ENOENT, WEAN_STAGE_EXEC, -1);
}
END_TEST

/* ---- the struct ---- */

START_TEST(an_all_zero_child_holds_nothing)
{
	struct wean_child child = { 0 };
	struct wean_status status;
	struct baseline b;

	baseline_take(&b);
	for (int sig = 0; sig <= SIGTERM; sig++)
		ck_assert_int_eq(wean_kill(&child, sig), ESRCH);
	for (int timeout = -1; timeout <= 1; timeout++)
		ck_assert_int_eq(wean_wait(&child, timeout, &status), ESRCH);
	wean_release(&child);
	wean_release(&child);
	wean_release(NULL);
	ck_assert_int_eq(wean_wait(NULL, 0, &status), EINVAL);
	ck_assert_int_eq(wean_kill(NULL, 0), EINVAL);
	baseline_same(&b); /* 0, 1 and 2 are open still */
}
END_TEST

START_TEST(a_second_release_closes_nothing)
{
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE,
	                            .flags = way(_i) };
	struct wean_child child;
	struct baseline b;
	struct filling f;

	start(&child, KID("exit-on-eof"), &opt);
	ck_assert_int_eq(close(child.in), 0);
	child.in = -1;
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	int pid = child.pid;
	wean_release(&child);
	ck_assert_int_eq(child.pid, pid);
	ck_assert(child.out == -1 && child.err == -1 && child.pidfd == -1);
	fill_descriptors(&f, 8); /* the very numbers that were freed */
	baseline_take(&b);
	wean_release(&child);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ESRCH);
	ck_assert_int_eq(wean_kill(&child, 0), ESRCH);
	baseline_same(&b);
	release_descriptors(&f);
}
END_TEST

START_TEST(a_child_moved_by_assignment_is_the_child)
{
	struct wean_options opt = { .in = WEAN_PIPE, .flags = way(_i) };
	struct wean_child child, moved;
	struct baseline b;

	baseline_take(&b);
	start(&child, KID("exit-on-eof"), &opt);
	moved = child;
	memset(&child, 0, sizeof child);
	ck_assert_int_eq(wean_wait(&moved, 0, NULL), ETIMEDOUT);
	ck_assert_int_eq(close(moved.in), 0);
	moved.in = -1;
	ck_assert_int_eq(finish(&moved).kind, WEAN_EXITED);
	baseline_same(&b);
}
END_TEST

START_TEST(a_release_neither_kills_nor_reaps)
{
	struct wean_options opt = { .in = WEAN_NULL, .out = WEAN_PIPE,
	                            .flags = way(_i) };
	struct wean_child child;
	char c;
	int status;

	start(&child, KID("echo", "x", "--then", "pause"), &opt);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(read(child.out, &c, 1), 1);
	wean_release(&child);
	ck_assert_int_eq(waitpid(child.pid, &status, WNOHANG), 0);
	ck_assert_int_eq(kill(child.pid, SIGUSR1), 0);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
}
END_TEST

/* What a caller may keep in read-only memory is only read. */
START_TEST(the_request_is_not_written_to)
{
	struct request {
		struct wean_options opt;
		struct wean_fd fds[2];
		char *argv[4], *edit[2], file[8];
	} *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE,
	            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(r, MAP_FAILED);
	*r = (struct request){
		.opt = { .fds = r->fds, .nfds = 2, .env_edit = r->edit, .flags = way(_i),
		         .in = WEAN_PIPE },
		.fds = { { .kind = WEAN_DUP, .target = 1, .source = 2 },
		         { .kind = WEAN_KEEP, .target = 2 } },
		.argv = { kid(), "exit", "4" },
		.edit = { "A=1" },
	};
	ck_assert_int_eq(mprotect(r, sizeof *r, PROT_READ), 0);
	ck_assert_int_eq(run(r->argv, &r->opt), 4);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *spawn_suite(void)
{
	Suite *s = suite_create("spawn");
	TCase *t = tcase_create("requests");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, all_zero_options_and_null_mean_the_same, 0, WAYS);
	tcase_add_loop_test(t,
	                    by_default_a_child_inherits_the_first_three_and_nothing_else,
	                    0, WAYS);
	tcase_add_loop_test(t, a_missing_argv_or_child_is_refused, 0, WAYS);
	tcase_add_loop_test(t, an_empty_name_is_a_program_that_is_not_there, 0, WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("struct");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, an_all_zero_child_holds_nothing);
	tcase_add_loop_test(t, a_second_release_closes_nothing, 0, WAYS);
	tcase_add_loop_test(t, a_child_moved_by_assignment_is_the_child, 0, WAYS);
	tcase_add_loop_test(t, a_release_neither_kills_nor_reaps, 0, WAYS);
	tcase_add_loop_test(t, the_request_is_not_written_to, 0, WAYS);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "exec");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_missing_first_argument_needs_a_file_or_candidates, 0,
	                    WAYS);
	return s;
}

RUN_SUITE(spawn_suite)
