/* test_exec.c - scripts, and what execve(2) refuses. */
#define _GNU_SOURCE
#include "spawning.h"

#include <link.h>

/* ---- scripts ------------------------------------------------------------ */

/* Hands the arguments on to kid, which reports them. */
static char *reporting_script(const char *name, char *path)
{
	char text[3 * PATH_MAX];

	snprintf(text, sizeof text, "exec '%s' report '%s' \"$0\" \"$@\"\n", kid(), path);
	return write_text(name, 0755, text);
}

static struct report *script_report(char *const argv[], const struct wean_options *opt,
                                    char *path)
{
	ck_assert_int_eq(run(argv, opt), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	return r;
}

START_TEST(a_text_without_interpreter_goes_to_the_shell_if_asked_for)
{
	char *path = report_path(), *script = reporting_script("script", path);
	char *argv[] = { "anything", "one", "two  -x",
	                 NULL };
	struct wean_options opt = { .file = script, .flags = way(_i) };

	refused(argv, &opt, ENOEXEC, WEAN_STAGE_EXEC, -1);
	opt.flags |= WEAN_SHELL_SCRIPT;
	struct report *r = script_report(argv, &opt, path);
	ck_assert_str_eq(report_arg(r, 3, NULL), script);
	ck_assert_str_eq(report_arg(r, 4, NULL), "one");
	ck_assert_str_eq(report_arg(r, 5, NULL), "two  -x");
	ck_assert_ptr_null(report_arg(r, 6, NULL));
	report_free(r);
	argv[0] = NULL;
	r = script_report(argv, &opt, path);
	ck_assert_str_eq(report_arg(r, 3, NULL), script);
	ck_assert_ptr_null(report_arg(r, 4, NULL));
	report_free(r);
	unlink(path);
}
END_TEST

START_TEST(a_script_is_found_by_search_and_among_candidates)
{
	char *path = report_path(), *script = reporting_script("good-script", path);
	char *list[] = { "/absent", script, NULL };
	char *argv[] = { "good-script", NULL }, search[64];
	struct wean_options opt = { .flags = WEAN_SHELL_SCRIPT | way(_i) };

	snprintf(search, sizeof search, "/absent:%s", scratch);
	ck_assert_int_eq(setenv("PATH", search, 1), 0);
	struct report *r = script_report(argv, &opt, path);
	ck_assert_str_eq(report_arg(r, 3, NULL), script);
	report_free(r);
	opt.candidates = list;
	argv[0] = "x";
	r = script_report(argv, &opt, path);
	ck_assert_str_eq(report_arg(r, 3, NULL), script);
	report_free(r);
	unlink(path);
}
END_TEST

/* A shell would take it for options. */
START_TEST(a_script_whose_name_begins_with_a_dash_is_a_script)
{
	char *path = report_path();
	char *list[] = { "-e", NULL };
	char *argv[] = { "x", NULL };
	struct wean_options opt = { .candidates = list, .dir = scratch,
	                            .flags = WEAN_SHELL_SCRIPT | way(_i) };

	reporting_script("-e", path);
	report_free(script_report(argv, &opt, path));
	unlink(path);
}
END_TEST

/* ---- what execve(2) refuses --------------------------------------------- */

static void refused_file(char *path, unsigned long long flags, int error)
{
	char *argv[] = { path, NULL };
	struct wean_options opt = { .flags = flags };

	refused(argv, &opt, error, WEAN_STAGE_EXEC, -1);
}

START_TEST(an_interpreter_that_is_missing_is_a_failed_start)
{
	refused_file(write_text("no-interp", 0755, "#!/absent/interp\n"), way(_i),
	             ENOENT);
	refused_file(write_text("cr-line", 0755, "#!/bin/sh\r\nexit 0\r\n"), way(_i),
	             ENOENT);
	refused_file(write_text("barred-interp", 0755, "#!/etc/passwd\n"), way(_i),
	             EACCES);
	refused_file(write_text("empty", 0755, ""), way(_i), ENOEXEC);
	refused_file(write_text("empty-line", 0755, "#!\n"), way(_i), ENOEXEC);
}
END_TEST

/* A copy of this program, which is linked dynamically, as kid need not be. */
static char *program_without_loader(void)
{
	size_t len;
	char *image = read_all("/proc/self/exe", &len);
	ElfW(Ehdr) *head = (void *)image;
	ElfW(Phdr) *segment = (void *)(image + head->e_phoff);

	for (int i = 0; i < head->e_phnum; i++)
		if (segment[i].p_type == PT_INTERP)
			memcpy(image + segment[i].p_offset, "/no", 3);
	return write_file("no-loader", 0755, image, len);
}

START_TEST(a_loader_that_is_missing_is_a_failed_start)
{
	refused_file(program_without_loader(), way(_i), ENOENT);
}
END_TEST

/* Longer than any retry lasts. */
START_TEST(a_program_that_is_being_written_is_told)
{
	char *path = copy_kid("busy", 0755);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	refused_file(path, way(_i), ETXTBSY);
	close(fd);
	char *argv[] = { path, "exit", "2", NULL };
	ck_assert_int_eq(run(argv, NULL), 2);
}
END_TEST

START_TEST(what_is_too_long_for_the_kernel_is_told)
{
	size_t most = (size_t)sysconf(_SC_PAGESIZE) * 32;
	char *argv[] = { kid(), "exit", "3", NULL, NULL };
	char *edit[] = { NULL, NULL };
	struct wean_options opt = { .env_edit = edit, .flags = way(_i) };
	struct rlimit stack;

	argv[3] = long_text("", most - 1);
	ck_assert_int_eq(run(argv, &opt), 3);
	argv[3] = long_text("", most);
	refused(argv, &opt, E2BIG, WEAN_STAGE_EXEC, -1);
	argv[3] = NULL;
	edit[0] = long_text("A=", most - 1);
	ck_assert_int_eq(run(argv, &opt), 3);
	edit[0] = long_text("A=", most);
	refused(argv, &opt, E2BIG, WEAN_STAGE_EXEC, -1);
	/* A quarter of the stack's limit is for all together. */
	edit[0] = long_text("A=", most - 1);
	argv[3] = long_text("", most - 1);
	ck_assert_int_eq(getrlimit(RLIMIT_STACK, &stack), 0);
	stack.rlim_cur = most * 8;
	ck_assert_int_eq(setrlimit(RLIMIT_STACK, &stack), 0);
	refused(argv, &opt, E2BIG, WEAN_STAGE_EXEC, -1);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *exec_suite(void)
{
	Suite *s = suite_create("exec");
	TCase *t = tcase_create("exec");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_text_without_interpreter_goes_to_the_shell_if_asked_for,
	                    0, WAYS);
	tcase_add_loop_test(t, a_script_is_found_by_search_and_among_candidates, 0, WAYS);
	tcase_add_loop_test(t, a_script_whose_name_begins_with_a_dash_is_a_script, 0,
	                    WAYS);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "exec");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, an_interpreter_that_is_missing_is_a_failed_start, 0, WAYS);
	tcase_add_loop_test(t, a_loader_that_is_missing_is_a_failed_start, 0, WAYS);
	tcase_add_loop_test(t, a_program_that_is_being_written_is_told, 0, WAYS);
	tcase_add_loop_test(t, what_is_too_long_for_the_kernel_is_told, 0, WAYS);
	return s;
}

RUN_SUITE(exec_suite)
