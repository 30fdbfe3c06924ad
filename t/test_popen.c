/* test_popen.c - wean_popen() and its family: what goes through a stream, what is refused,
 * and what it costs. */
#define _GNU_SOURCE
#include "streaming.h"

#include "count.h"

#include <stdio_ext.h>

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

	snprintf(text, sizeof text, "%s echo plain words", kid_word());
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
	snprintf(text, sizeof text, "%s exit 0", kid_word());
	fill_descriptors(&fill, costs[_i].open + 1);
	int error = count_calls(&c, counted, costs[_i].is_text ? text : NULL);
	release_descriptors(&fill);
	if (error > 0)
		SKIP("no counting here: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(c.children, 1);
	count_names(&c, COUNT_PARENT, parent, sizeof parent);
	count_names(&c, COUNT_CHILD, child, sizeof child);
	/* What libc does for its heap is its own affair. */
	size_t calls = count_total(&c, COUNT_PARENT) - count_of(&c, COUNT_PARENT, SYS_mmap)
	             - count_of(&c, COUNT_PARENT, SYS_munmap);
	ck_assert_msg(calls <= costs[_i].parent, "%zu: %s", calls, parent);
	ck_assert_msg(count_total(&c, COUNT_CHILD) <= costs[_i].child, "%zu: %s",
	              count_total(&c, COUNT_CHILD), child);
	count_free(&c);
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
	t = case_that_needs(s, "exec"); /* valgrind flushes what a child that failed has */
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, what_the_caller_has_not_flushed_comes_once);
	t = case_that_needs(s, "default ptrace");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_stream_costs_few_calls_however_many_are_open, 0, COUNT(costs));
	t = case_that_needs(s, "native"); /* libc's allocator; cores */
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, no_memory_for_a_stream_is_told);
	tcase_add_test(t, a_core_is_told);
	return s;
}

RUN_WITH_STDIO_ALONE(popen_suite)
