/* test_popen_close.c - how a stream ends: closed in other ways, to a limit, with SIGPIPE,
 * in a copy of the process. */
#define _GNU_SOURCE
#include "streaming.h"

/* ---- closed in another way ---- */

static void call_popen(void)
{
	close_it(open_kid(KID("exit", "0"), "r"));
}

static void call_popen_in_vain(void)
{
	char *missing[] = { (char[]){ "/missing/program" }, NULL };

	refuses(wean_popenv(missing, "r"), ENOENT);
}

static void call_pclose(void)
{
	FILE *f = fopen("/dev/null", "re");

	is_not_ours(f);
	fclose(f);
}

static void call_pclose_status(void)
{
	ck_assert_int_eq(wean_pclose_status(NULL, 0, NULL), EINVAL);
}

static void call_system(void)
{
	wean_systemv(KID("exit", "0"));
}

static void (*const calls[])(void) = {
	call_popen, call_popen_in_vain, call_pclose, call_pclose_status, call_system,
};

START_TEST(after_fclose_the_next_call_reaps)
{
	struct baseline b;
	FILE *open = open_kid(KID("exit-on-eof"), "w");

	fclose(open_kid(KID("exit", "0"), "r")); /* what is kept for it is there from here on */
	await_any_zombie();
	call_system();
	errno = BASELINE_ERRNO;
	baseline_collect(&b);
	fclose(open_kid(KID("exit", "0"), "r"));
	pid_t pid = await_any_zombie();
	calls[_i]();
	ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), -1);
	errno = b.error = BASELINE_ERRNO;
	baseline_kept(&b);
	ck_assert_int_eq(close_it(open), 0);
	assert_no_child();
}
END_TEST

START_TEST(after_fclose_a_child_that_runs_is_reaped_when_it_is_over)
{
	struct held h = open_held("3");

	fclose(h.stream);
	call_system();
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), 0); /* it runs */
	FILE *f = open_kid(KID("exit", "4"), "r");
	ck_assert_int_eq(close_it(f), exited(4));
	close(h.end);
	await_any_zombie();
	call_system();
	assert_no_child();
}
END_TEST

enum { TRIES = 100 };

/* glibc gives the same memory to the next one, another libc perhaps to one of the next. */
START_TEST(a_stream_at_the_same_address_answers_for_its_own_command)
{
	FILE *before = open_kid(KID("exit", "5"), "r"); /* whose place the next one takes */
	struct held h = open_held("3");
	uintptr_t address = (uintptr_t)h.stream;

	ck_assert_int_eq(close_it(before), exited(5));
	before = fopen("/dev/null", "re");
	fclose(h.stream);
	FILE *f[TRIES];
	int n = 0;
	do
		f[n] = open_kid(KID("exit", "4"), "r");
	while ((uintptr_t)f[n++] != address && n < TRIES);
	if ((uintptr_t)f[n - 1] != address)
		SKIP("always another address");
	while (n > 0)
		ck_assert_int_eq(close_it(f[--n]), exited(4));
	fclose(before);
	close(h.end);
	await_any_zombie();
	call_system();
	assert_no_child();
}
END_TEST

enum { SAME_NUMBER, ANOTHER_NUMBER, NUMBER_CLOSED, NUMBERS };

START_TEST(a_file_at_the_same_address_is_left_alone)
{
	struct held h = open_held("3");
	int number = fileno(h.stream);
	uintptr_t address = (uintptr_t)h.stream;

	fclose(h.stream);
	int taken = _i != SAME_NUMBER ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	FILE *f = fopen("/dev/zero", "re");
	for (int i = 0; (uintptr_t)f != address && i < TRIES; i++) {
		close(fileno(f)); /* the number is for the next one */
		f = fopen("/dev/zero", "re");
	}
	if ((uintptr_t)f != address)
		SKIP("always another address");
	ck_assert_int_eq(fileno(f) == number, _i == SAME_NUMBER);
	if (_i == NUMBER_CLOSED)
		close(taken);
	is_not_ours(f);
	ck_assert_int_eq(getc(f), 0);
	close(h.end);
	await_any_zombie();
	is_not_ours(f);
	assert_no_child();
	call_popen();
	is_not_ours(f);
	ck_assert_int_eq(getc(f), 0);
	ck_assert_int_eq(fclose(f), 0);
	if (_i == ANOTHER_NUMBER)
		close(taken);
}
END_TEST

/* Also where meanwhile the child was reaped. */
START_TEST(a_stream_whose_descriptor_was_closed_still_gives_the_status)
{
	FILE *f = open_kid(KID("exit", "3"), "r");

	ck_assert_int_eq(close(fileno(f)), 0);
	if (_i) {
		await_any_zombie();
		wean_pclose(NULL);
		assert_no_child();
	}
	ck_assert_int_eq(close_it(f), exited(3));
	assert_no_child();
}
END_TEST

START_TEST(a_stream_of_another_kind_is_refused)
{
	FILE *f = tmpfile();

	is_not_ours(f);
	is_not_ours(NULL);
	ck_assert_int_eq(fclose(f), 0);
}
END_TEST

START_TEST(a_stream_may_be_closed_before_its_command_is_done)
{
	FILE *f = open_kid(KID("sleep", "30", "--then", "exit", "3"), "r");

	ck_assert_int_eq(close_it(f), exited(3));
}
END_TEST

/* ---- to a limit ---- */

static int close_within(FILE *f, int ms, struct wean_status *status)
{
	memset(status, 0xa5, sizeof *status);
	errno = BASELINE_ERRNO;
	int error = wean_pclose_status(f, ms, status);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	return error;
}

START_TEST(within_the_limit_the_status_is_given)
{
	struct wean_status status;
	int limits[] = { -1, LONG };

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(close_within(open_kid(KID("exit", "3"), "r"), limits[i],
		                              &status), 0);
		assert_exited(&status, 3);
		ck_assert_int_eq(close_within(open_kid(KID("kill", "9"), "w"), limits[i],
		                              &status), 0);
		assert_signaled(&status, 9);
	}
	ck_assert_int_eq(wean_pclose_status(open_kid(KID("exit", "3"), "r"), -1, NULL), 0);
	assert_no_child();
}
END_TEST

START_TEST(at_the_limit_the_command_is_killed)
{
	struct wean_status status;
	struct baseline b;
	char *verbs[] = { (char[]){ "r" }, (char[]){ "w" } };

	call_popen();
	baseline_take(&b);
	for (int i = 0; i < 2; i++) {
		FILE *f = open_kid(KID("pause"), verbs[i]);

		ck_assert_int_eq(close_within(f, 20 * i, &status), ETIMEDOUT);
		assert_signaled(&status, SIGKILL);
	}
	ck_assert_int_eq(wean_pclose_status(open_kid(KID("pause"), "r"), 0, NULL), ETIMEDOUT);
	baseline_same(&b);
}
END_TEST

/* The pipe is full, and the stream's buffer too. */
START_TEST(the_limit_holds_for_what_is_still_to_be_written)
{
	enum { PIPE = 65536, HELD_BACK = 60000 };
	FILE *f = open_kid(KID("pause"), "w");
	struct wean_status status;

	ck_assert_int_eq(write(fileno(f), pattern(PIPE), PIPE), PIPE);
	ck_assert_uint_eq(fwrite(pattern(HELD_BACK), 1, HELD_BACK, f), HELD_BACK);
	ck_assert_int_eq(close_within(f, 50, &status), ETIMEDOUT);
	assert_signaled(&status, SIGKILL);
	assert_no_child();
}
END_TEST

START_TEST(what_the_stream_holds_comes_whole)
{
	static const char *const sizes[] = { "0", "1", "4096", "4097", "65535", "65536", "1000000" };
	char *text = pattern(1000000), *path = write_text("out", 0644, "");

	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t n = (size_t)atol(sizes[i]), len;
		struct wean_status status;
		int kept = fcntl(1, F_DUPFD_CLOEXEC, 30), file;

		file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		dup2(file, 1);
		FILE *f = open_kid(KID("cat"), "w");
		fwrite(text, 1, n, f);
		int error = close_within(f, LONG, &status);
		dup2(kept, 1);
		close(kept);
		close(file);
		ck_assert_int_eq(error, 0);
		assert_exited(&status, 0);
		char *got = read_all(path, &len);
		assert_pattern(got, len, n);
	}
}
END_TEST

/* A pipe is no file.  But Check's record is one: it says nothing under the limit. */
START_TEST(a_limit_on_files_is_none_for_what_the_stream_holds)
{
	struct rlimit may, none;
	struct wean_status status;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &may), 0);
	none = (struct rlimit){ 0, may.rlim_max };
	FILE *f = open_kid(KID("exit-on-eof"), "w");
	fputs("held", f);
	setrlimit(RLIMIT_FSIZE, &none);
	int error = wean_pclose_status(f, LONG, &status);
	setrlimit(RLIMIT_FSIZE, &may);
	ck_assert_int_eq(error, 0);
	assert_exited(&status, 0);
}
END_TEST

START_TEST(a_duplicate_that_holds_the_pipe_open_does_not_hold_the_limit)
{
	struct held h = open_held("3");
	struct wean_status status;

	ck_assert_int_eq(close_within(h.stream, 20, &status), ETIMEDOUT);
	assert_signaled(&status, SIGKILL);
	close(h.end);
}
END_TEST

/* ---- SIGPIPE ---- */

START_TEST(a_write_that_nobody_reads_raises_sigpipe_as_stdio_does)
{
	FILE *f = open_kid(KID("close", "0", "--then", "exit", "3"), "w");

	handle(SIGPIPE, on_tick);
	await_any_zombie();
	fputs("x", f);
	ck_assert_int_eq(ticks, 0);
	ck_assert_int_eq(close_it(f), exited(3));
	ck_assert_int_eq(ticks, 1);
}
END_TEST

START_TEST(with_a_limit_it_raises_none)
{
	FILE *f = open_kid(KID("close", "0", "--then", "exit", "3"), "w");
	struct wean_status status;

	handle(SIGPIPE, on_tick);
	await_any_zombie();
	fputs("x", f);
	ck_assert_int_eq(close_within(f, LONG, &status), 0);
	assert_exited(&status, 3);
	ck_assert_int_eq(ticks, 0);
}
END_TEST

START_TEST(a_command_that_writes_in_vain_is_ended_by_sigpipe)
{
	signal(SIGPIPE, SIG_IGN);
	FILE *f = open_kid(KID("write", "1", "1000000"), "r");
	int status = close_it(f);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
}
END_TEST

START_TEST(handlers_do_not_end_the_waiting)
{
	FILE *f = open_kid(KID("sleep", "50", "--then", "exit", "3"), "r");

	tick();
	ck_assert_int_eq(close_it(f), exited(3));
	stop_ticking();
}
END_TEST

/* ---- whose child it is ---- */

/* In a copy that was forked the stream can be closed, and its child is not waited for. */
START_TEST(a_copy_of_the_process_has_no_child_to_wait_for)
{
	struct held h = open_held("3");
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		alarm(20);
		int r = wean_pclose(h.stream);
		int lost = r == -1 && errno == ECHILD;

		close(h.end);
		FILE *f = wean_popenv(KID("exit", "4"), "r");
		_exit(!(lost && f && wean_pclose(f) == exited(4)));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(h.end);
	ck_assert_int_eq(close_it(h.stream), exited(3));
}
END_TEST

/* The kernel tells the status of one that another has reaped since Linux 6.15. */
START_TEST(a_child_that_another_has_reaped_is_told_of_or_gives_echild)
{
	FILE *f = open_kid(KID("exit", "3"), "r");

	ck_assert_int_gt(waitpid(-1, NULL, 0), 0);
	int status = wean_pclose(f);
	ck_assert(status == exited(3) || (status == -1 && errno == ECHILD));
	f = open_kid(KID("exit", "3"), "r");
	ck_assert_int_gt(waitpid(-1, NULL, 0), 0);
	struct wean_status s;
	ck_assert_int_eq(close_within(f, -1, &s), 0);
	ck_assert(s.kind == WEAN_UNKNOWN || s.code == 3);
}
END_TEST

static Suite *popen_close_suite(void)
{
	Suite *s = suite_create("popen close");
	TCase *t = tcase_create("close");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, after_fclose_the_next_call_reaps, 0, COUNT(calls));
	tcase_add_test(t, after_fclose_a_child_that_runs_is_reaped_when_it_is_over);
	tcase_add_loop_test(t, a_stream_whose_descriptor_was_closed_still_gives_the_status, 0, 2);
	tcase_add_test(t, a_stream_of_another_kind_is_refused);
	tcase_add_test(t, a_stream_may_be_closed_before_its_command_is_done);
	tcase_add_test(t, within_the_limit_the_status_is_given);
	tcase_add_test(t, at_the_limit_the_command_is_killed);
	tcase_add_test(t, the_limit_holds_for_what_is_still_to_be_written);
	tcase_add_test(t, what_the_stream_holds_comes_whole);
	tcase_add_test(t, a_limit_on_files_is_none_for_what_the_stream_holds);
	tcase_add_test(t, a_duplicate_that_holds_the_pipe_open_does_not_hold_the_limit);
	tcase_add_test(t, a_write_that_nobody_reads_raises_sigpipe_as_stdio_does);
	tcase_add_test(t, with_a_limit_it_raises_none);
	tcase_add_test(t, a_command_that_writes_in_vain_is_ended_by_sigpipe);
	tcase_add_test(t, handlers_do_not_end_the_waiting);
	tcase_add_test(t, a_copy_of_the_process_has_no_child_to_wait_for);
	tcase_add_test(t, a_child_that_another_has_reaped_is_told_of_or_gives_echild);
	suite_add_tcase(s, t);
	t = case_that_needs(s, "native reuse");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, a_stream_at_the_same_address_answers_for_its_own_command);
	tcase_add_loop_test(t, a_file_at_the_same_address_is_left_alone, 0, NUMBERS);
	return s;
}

RUN_WITH_STDIO_ALONE(popen_close_suite)
