/* test_popen.c - wean_popen() and its family: what goes through a stream, how it ends, and
 * streams that are closed in other ways. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "talking.h"

#include "count.h"

#include <stdio_ext.h>
#include <wean_popen.h>

/* ---- helpers ---- */

static FILE *open_kid(char *const argv[], const char *mode)
{
	errno = BASELINE_ERRNO;
	FILE *f = wean_popenv(argv, mode);
	ck_assert_msg(f, "%s: %s", argv[1], strerror(errno));
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	return f;
}

static int close_it(FILE *f)
{
	errno = BASELINE_ERRNO;
	int status = wean_pclose(f);
	if (status != -1)
		ck_assert_int_eq(errno, BASELINE_ERRNO);
	return status;
}

static int exited(int value)
{
	return value << 8;
}

static char *read_stream(FILE *f)
{
	char *text = for_good(malloc(1 << 20));
	size_t n = fread(text, 1, (1 << 20) - 1, f);

	ck_assert(feof(f));
	text[n] = '\0';
	return text;
}

static void refuses(FILE *f, int error)
{
	ck_assert_ptr_null(f);
	ck_assert_int_eq(errno, error);
}

/* Of one that is no stream of ours. */
static void is_not_ours(FILE *f)
{
	ck_assert_int_eq(wean_pclose(f), -1);
	ck_assert_int_eq(errno, EINVAL);
	errno = BASELINE_ERRNO;
	ck_assert_int_eq(wean_pclose_status(f, 0, NULL), EINVAL);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
}

static void assert_no_child(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

/* Until some child is over; it is not reaped. */
static pid_t await_any_zombie(void)
{
	siginfo_t si;

	ck_assert_int_eq(waitid(P_ALL, 0, &si, WEXITED | WNOWAIT), 0);
	return si.si_pid;
}

/* A child that is over when its input ends, and an end of that input which its stream is
   not. */
struct held {
	FILE *stream;
	int end;
};

static struct held open_held(const char *value)
{
	struct held h;

	h.stream = open_kid(KID("cat", "--then", "exit", (char *)(uintptr_t)value), "w");
	h.end = fcntl(fileno(h.stream), F_DUPFD_CLOEXEC, 50);
	ck_assert_int_ge(h.end, 50);
	return h;
}

/* ---- a stream ---- */

START_TEST(a_stream_reads_what_its_command_writes)
{
	struct baseline b;

	wean_pclose(open_kid(KID("exit", "0"), "r"));
	baseline_take(&b);
	FILE *f = open_kid(KID("say", "1", "a line", "--then", "exit", "3"), "r");
	ck_assert_str_eq(read_stream(f), "a line\n");
	ck_assert_int_eq(close_it(f), exited(3));
	baseline_same(&b);
}
END_TEST

START_TEST(a_stream_writes_what_its_command_reads)
{
	char *path = write_text("out", 0644, "");
	size_t len;
	struct baseline b;
	char *argv[] = { kid(), (char[]){ "cat" }, NULL };
	int kept = fcntl(1, F_DUPFD_CLOEXEC, 30);

	baseline_take(&b);
	int file = open(path, O_WRONLY | O_CLOEXEC);
	dup2(file, 1);
	FILE *f = open_kid(argv, "w");
	fputs("some\nwords", f);
	int status = close_it(f);
	dup2(kept, 1);
	close(file);
	ck_assert_int_eq(status, 0);
	baseline_same(&b);
	ck_assert_str_eq(read_all(path, &len), "some\nwords");
}
END_TEST

START_TEST(both_ways_it_may_be_a_command_text)
{
	char text[PATH_MAX + 50];

	snprintf(text, sizeof text, "%s echo plain words", kid());
	FILE *f = wean_popen(text, "r");
	ck_assert_str_eq(read_stream(f), "plain words\n");
	ck_assert_int_eq(close_it(f), 0);
	snprintf(text, sizeof text, "'%s' exit-on-eof; exit 4", kid());
	f = wean_popen(text, "w");
	fputs("x", f);
	ck_assert_int_eq(close_it(f), exited(4));
}
END_TEST

static const char *const modes[] = {
	"r", "w", "re", "we", "rs", "ws", "res", "rse", "wes", "wse",
};

START_TEST(a_mode_is_r_or_w_and_then_e_and_s)
{
	FILE *f = wean_popen("exit 5", modes[_i]);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fcntl(fileno(f), F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(fileno(f), F_GETFL) & O_ACCMODE,
	                 modes[_i][0] == 'r' ? O_RDONLY : O_WRONLY);
	ck_assert_int_eq(close_it(f), exited(5));
}
END_TEST

static const char *const bad_modes[] = {
	"", "x", "e", "er", "rw", "wr", "r+", "rb", "r ", "R", "rx", "rex",
};

START_TEST(any_other_mode_is_refused)
{
	struct baseline b;

	baseline_take(&b);
	refuses(wean_popen("exit 5", bad_modes[_i]), EINVAL);
	refuses(wean_popenv(KID("exit", "5"), bad_modes[_i]), EINVAL);
	errno = b.error;
	baseline_same(&b);
}
END_TEST

START_TEST(nothing_at_all_is_refused)
{
	char *none[] = { NULL };

	refuses(wean_popen(NULL, "r"), EINVAL);
	refuses(wean_popen("exit 5", NULL), EINVAL);
	refuses(wean_popenv(NULL, "r"), EINVAL);
	refuses(wean_popenv(none, "r"), EINVAL);
	refuses(wean_popenv(KID("exit", "5"), NULL), EINVAL);
	assert_no_child();
}
END_TEST

START_TEST(an_argument_is_passed_as_it_is)
{
	static const char *const hard[] = {
		"a b", "'", "\"", "$(exit 3)", "`exit 3`", "$HOME", "a\nb", "*", "\\", "", "-c", "~",
		";", "\xff\xfe",
	};
	char *path = report_path(), *argv[3 + COUNT(hard) + 1] = { kid(), (char[]){ "report" },
	                                                           path };

	for (size_t i = 0; i < COUNT(hard); i++)
		argv[3 + i] = (char *)(uintptr_t)hard[i];
	ck_assert_int_eq(close_it(open_kid(argv, "r")), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	for (size_t i = 0; i < COUNT(hard); i++)
		ck_assert_str_eq(report_arg(r, 3 + i, NULL), hard[i]);
	ck_assert_ptr_null(report_arg(r, 3 + COUNT(hard), NULL));
	report_free(r);
	unlink(path);
}
END_TEST

START_TEST(a_missing_program_is_told_at_once_and_by_a_shell_at_the_end)
{
	char *argv[] = { (char[]){ "/missing/program" }, NULL };
	struct baseline b;

	baseline_take(&b);
	refuses(wean_popenv(argv, "r"), ENOENT);
	refuses(wean_popenv(argv, "w"), ENOENT);
	argv[0] = scratch;
	refuses(wean_popenv(argv, "r"), EACCES);
	errno = b.error;
	baseline_same(&b);
	int kept = fcntl(2, F_DUPFD_CLOEXEC, 30), null = open("/dev/null", O_WRONLY);
	dup2(null, 2);
	FILE *f = wean_popen("/missing/program", "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_str_eq(read_stream(f), "");
	ck_assert_int_eq(close_it(f), exited(127));
	dup2(kept, 2);
}
END_TEST

START_TEST(left_with_3_killed_by_9_and_not_started_are_three_things)
{
	char *missing[] = { (char[]){ "/missing/program" }, NULL };

	int status = close_it(open_kid(KID("exit", "3"), "r"));
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	status = close_it(open_kid(KID("kill", "9"), "r"));
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == 9);
	refuses(wean_popenv(missing, "r"), ENOENT);
}
END_TEST

START_TEST(no_memory_for_a_stream_is_told)
{
	char *argv[] = { kid(), (char[]){ "exit" }, (char[]){ "0" }, NULL };
	uint64_t before = soft_limit(RLIMIT_AS, 65536);
	void *volatile block;

	while ((block = malloc(32768)) != NULL)
		;
	FILE *f = wean_popenv(argv, "r");
	int error = errno;
	soft_limit(RLIMIT_AS, before);
	ck_assert_ptr_null(f);
	ck_assert_int_eq(error, ENOMEM);
	assert_no_child();
}
END_TEST

START_TEST(a_core_is_told)
{
	soft_limit(RLIMIT_CORE, 0);
	int status = close_it(open_kid(KID("kill", "6"), "r"));
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !WCOREDUMP(status));
	ck_assert_int_eq(chdir(scratch), 0);
	struct limits limit = limit_of(RLIMIT_CORE);
	soft_limit(RLIMIT_CORE, limit.hard);
	pid_t pid = fork();
	if (pid == 0)
		abort();
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (!WCOREDUMP(status))
		SKIP("no core is dumped here");
	status = close_it(open_kid(KID("kill", "6"), "r"));
	ck_assert(WCOREDUMP(status));
}
END_TEST

START_TEST(what_the_caller_has_not_flushed_comes_once)
{
	char *path = write_text("out", 0644, "");
	char *missing[] = { (char[]){ "/missing/program" }, NULL };
	size_t len;
	FILE *f = fopen(path, "we");

	setvbuf(f, NULL, _IOFBF, 4096);
	fputs("once\n", f);
	refuses(wean_popenv(missing, "r"), ENOENT);
	wean_system("exit 3");
	wean_pclose(open_kid(KID("exit", "0"), "r"));
	ck_assert_uint_eq(strlen(read_all(path, &len)), 0);
	fclose(f);
	ck_assert_str_eq(read_all(path, &len), "once\n");
}
END_TEST

START_TEST(the_buffer_is_of_64_KiB_at_least)
{
	FILE *f = open_kid(KID("exit", "0"), "r");

	ck_assert_uint_ge(__fbufsize(f), 65536);
	close_it(f);
	f = open_kid(KID("exit-on-eof"), "w");
	ck_assert_uint_ge(__fbufsize(f), 65536);
	close_it(f);
}
END_TEST

START_TEST(lines_of_any_length_come_whole)
{
	static const char *const sizes[] = { "1", "65535", "65536", "65537", "1000000" };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t len = (size_t)atol(sizes[i]), got;
		FILE *f = open_kid(KID("write", "1", (char *)(uintptr_t)sizes[i]), "r");
		char *text = for_good(malloc(len + 1));

		got = fread(text, 1, len + 1, f);
		text[len] = '\0';
		assert_pattern(text, got, len);
		ck_assert_int_eq(close_it(f), 0);
	}
}
END_TEST

START_TEST(a_stream_is_never_0_1_or_2)
{
	int kept = fcntl(0, F_DUPFD_CLOEXEC, 30);

	close(0);
	FILE *f = open_kid(KID("exit", "0"), "r");
	ck_assert_int_gt(fileno(f), 2);
	ck_assert_int_eq(fcntl(0, F_GETFD), -1);
	close_it(f);
	dup2(kept, 0);
}
END_TEST

/* ---- several ---- */

START_TEST(of_two_write_streams_the_first_may_be_closed_first)
{
	FILE *first = open_kid(KID("exit-on-eof"), "w"), *second;

	second = open_kid(KID("exit-on-eof"), "w");
	ck_assert_int_eq(close_it(first), 0);
	ck_assert_int_eq(close_it(second), 0);
}
END_TEST

START_TEST(no_stream_gets_into_another_command)
{
	FILE *f[6];

	for (int i = 0; i < 6; i++)
		f[i] = open_kid(KID("exit-on-eof"), "w");
	char *path = report_path();
	ck_assert_int_eq(close_it(open_kid(KID("report", path), "r")), 0);
	struct report *r = report_read_file(path);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	report_free(r);
	ck_assert_int_eq(wean_systemv(KID("report", path)), 0);
	r = report_read_file(path);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	report_free(r);
	unlink(path);
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(close_it(f[i]), 0);
}
END_TEST

START_TEST(hundreds_are_told_apart)
{
	enum { MANY = 200 };
	static struct held h[MANY];

	NEED_DESCRIPTORS(3 * MANY + 100);
	for (int i = 0; i < MANY; i++) {
		char value[12];

		sprintf(value, "%d", i % 100);
		h[i] = open_held(value);
		close(h[i].end);
	}
	for (int i = 0; i < MANY; i++) {
		int at = i * 77 % MANY;

		ck_assert_int_eq(close_it(h[at].stream), exited(at % 100));
	}
	assert_no_child();
}
END_TEST

/* ---- the cost ---- */

static int counted(void *text)
{
	char *argv[] = { kid(), (char[]){ "exit" }, (char[]){ "0" }, NULL };

	for (int i = 0; i < 2; i++) {
		if (i)
			count_begin(); /* what is remembered is there from the first time */
		FILE *f = text ? wean_popen(text, "r") : wean_popenv(argv, "r");
		int error = !f || wean_pclose(f) != 0;
		if (i)
			count_end();
		if (error)
			return -1;
	}
	return 0;
}

/* Twelve to start it, of which the start itself and its pipe are six and libc's fdopen(3)
   is one; five to close it and wait.  A text costs two, to see that PWD is right. */
static const struct {
	int open, is_text;
	size_t parent, child;
} costs[] = {
	{ 0, 0, 17, 10 }, { 0, 1, 19, 10 }, { 2000, 0, 20, 13 }, { 2000, 1, 22, 13 },
};

START_TEST(a_stream_costs_few_calls_however_many_are_open)
{
	struct filling fill = { NULL, 0 };
	char text[PATH_MAX + 50], parent[600], child[600];
	struct count c;

	NEED_DESCRIPTORS(2100);
	snprintf(text, sizeof text, "%s exit 0", kid());
	fill_descriptors(&fill, costs[_i].open + 1);
	int error = count_calls(&c, counted, costs[_i].is_text ? text : NULL);
	release_descriptors(&fill);
	if (error > 0)
		SKIP("no counting here: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(c.children, 1);
	count_names(&c, COUNT_PARENT, parent, sizeof parent);
	count_names(&c, COUNT_CHILD, child, sizeof child);
	ck_assert_msg(count_total(&c, COUNT_PARENT) <= costs[_i].parent, "%zu: %s",
	              count_total(&c, COUNT_PARENT), parent);
	ck_assert_msg(count_total(&c, COUNT_CHILD) <= costs[_i].child, "%zu: %s",
	              count_total(&c, COUNT_CHILD), child);
	count_free(&c);
}
END_TEST

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

/* glibc gives the same memory to the next one, musl to one of the next. */
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

static Suite *popen_suite(void)
{
	Suite *s = suite_create("popen");
	TCase *t = tcase_create("popen");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, a_stream_reads_what_its_command_writes);
	tcase_add_test(t, a_stream_writes_what_its_command_reads);
	tcase_add_test(t, both_ways_it_may_be_a_command_text);
	tcase_add_loop_test(t, a_mode_is_r_or_w_and_then_e_and_s, 0, COUNT(modes));
	tcase_add_loop_test(t, any_other_mode_is_refused, 0, COUNT(bad_modes));
	tcase_add_test(t, nothing_at_all_is_refused);
	tcase_add_test(t, an_argument_is_passed_as_it_is);
	tcase_add_test(t, a_missing_program_is_told_at_once_and_by_a_shell_at_the_end);
	tcase_add_test(t, left_with_3_killed_by_9_and_not_started_are_three_things);
	tcase_add_test(t, the_buffer_is_of_64_KiB_at_least);
	tcase_add_test(t, lines_of_any_length_come_whole);
	tcase_add_test(t, a_stream_is_never_0_1_or_2);
	tcase_add_test(t, of_two_write_streams_the_first_may_be_closed_first);
	tcase_add_test(t, no_stream_gets_into_another_command);
	tcase_add_test(t, hundreds_are_told_apart);
	suite_add_tcase(s, t);
	t = tcase_create("closed otherwise");
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
	tcase_add_test(t, a_duplicate_that_holds_the_pipe_open_does_not_hold_the_limit);
	tcase_add_test(t, a_write_that_nobody_reads_raises_sigpipe_as_stdio_does);
	tcase_add_test(t, with_a_limit_it_raises_none);
	tcase_add_test(t, a_command_that_writes_in_vain_is_ended_by_sigpipe);
	tcase_add_test(t, handlers_do_not_end_the_waiting);
	tcase_add_test(t, a_copy_of_the_process_has_no_child_to_wait_for);
	tcase_add_test(t, a_child_that_another_has_reaped_is_told_of_or_gives_echild);
	suite_add_tcase(s, t);
	t = case_that_needs(s, "exec"); /* valgrind flushes what a child that failed has */
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, what_the_caller_has_not_flushed_comes_once);
	t = case_that_needs(s, "default ptrace");
	tcase_add_loop_test(t, a_stream_costs_few_calls_however_many_are_open, 0, COUNT(costs));
	t = case_that_needs(s, "native"); /* libc's allocator; cores */
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, a_stream_at_the_same_address_answers_for_its_own_command);
	tcase_add_loop_test(t, a_file_at_the_same_address_is_left_alone, 0, NUMBERS);
	tcase_add_test(t, no_memory_for_a_stream_is_told);
	tcase_add_test(t, a_core_is_told);
	return s;
}

RUN_WITH_STDIO_ALONE(popen_suite)
