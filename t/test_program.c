/* test_program.c - which program is run: PATH, file, candidates. */
#define _GNU_SOURCE
#include "spawning.h"

#include <stdarg.h>

/* The directories of a PATH, each with something else under the name "prog". */
static char *good, *barred, *clad, *plain, *unreadable;

static void make_path(void)
{
	good = make_dir("good");
	copy_kid("good/prog", 0755);
	barred = make_dir("barred");
	copy_kid("barred/prog", 0644);
	clad = make_dir("clad"); /* in it a directory bears the name */
	make_dir("clad/prog");
	plain = write_text("plain", 0755, "no directory");
	unreadable = make_dir("unreadable");
	ck_assert_int_eq(chmod(unreadable, 0), 0);
	become_nobody();
}

__attribute__((format(printf, 1, 2)))
static void set_path(const char *format, ...)
{
	char path[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof path, format, args);
	va_end(args);
	ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

#define PROG(...) ((char *[]){ "prog", __VA_ARGS__, NULL })

static void runs(const struct wean_options *opt)
{
	ck_assert_int_eq(run(PROG("exit", "8"), opt), 8);
}

static void fails(const struct wean_options *opt, int error)
{
	refused(PROG("exit", "8"), opt, error, WEAN_STAGE_EXEC, -1);
}

/* ---- the search --------------------------------------------------------- */

START_TEST(a_search_goes_past_what_is_no_program)
{
	struct wean_options opt = { .flags = way(_i) };

	make_path();
	set_path("%s", good);
	runs(&opt);
	set_path("/absent:%s:%s", plain, good);
	runs(&opt);
	set_path("%s:%s:%s:%s", barred, clad, unreadable, good);
	runs(&opt);
	set_path("%s/loop:%s", scratch, good);
	symlink("loop", at("loop"));
	runs(&opt);
	set_path("/%0300d:%s", 0, good);
	runs(&opt);
	set_path(":::%s:", good);
	runs(&opt);
	set_path("%s/", good);
	runs(&opt);
}
END_TEST

START_TEST(a_search_reports_eacces_only_of_a_program_that_is_there)
{
	struct wean_options opt = { .flags = way(_i) };

	make_path();
	set_path("%s", barred);
	fails(&opt, EACCES);
	set_path("%s:/absent", barred);
	fails(&opt, EACCES);
	set_path("/absent:%s:%s", barred, plain);
	fails(&opt, EACCES);
	set_path("%s", clad);
	fails(&opt, ENOENT);
	set_path("%s", unreadable);
	fails(&opt, ENOENT);
	set_path("%s", plain);
	fails(&opt, ENOENT);
	set_path("/absent:%s:%s:%s", plain, clad, unreadable);
	fails(&opt, ENOENT);
}
END_TEST

/* What the current directory holds is nobody's program. */
START_TEST(empty_and_relative_elements_are_skipped)
{
	struct wean_options opt = { .flags = way(_i) };

	make_path();
	ck_assert_int_eq(chdir(good), 0);
	static const char *const paths[] = { "", ":", "::", ".", ".:", "./", "../good" };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		set_path("%s", paths[i]);
		fails(&opt, ENOENT);
	}
	opt.dir = good;
	set_path(":.:/absent");
	fails(&opt, ENOENT);
	set_path(".:%s:", good);
	runs(&opt);
}
END_TEST

/* The shell is the one program that every system has there. */
START_TEST(without_a_path_the_usual_places_are_searched)
{
	char *argv[] = { "sh", "-c", "exit 7", NULL };
	char **saved = environ;
	struct wean_options opt = { .flags = way(_i) };

	ck_assert_int_eq(unsetenv("PATH"), 0);
	ck_assert_int_eq(run(argv, &opt), 7);
	environ = NULL;
	ck_assert_int_eq(run(argv, &opt), 7);
	environ = saved;
	fails(&opt, ENOENT);
}
END_TEST

START_TEST(a_name_with_a_slash_is_not_searched)
{
	char *argv[] = { "good/prog", "exit", "8",
	                 NULL };
	struct wean_options opt = { .flags = way(_i) };

	make_path();
	set_path("%s", scratch);
	ck_assert_int_eq(chdir("/"), 0);
	refused(argv, &opt, ENOENT, WEAN_STAGE_EXEC, -1);
	ck_assert_int_eq(chdir(scratch), 0);
	ck_assert_int_eq(run(argv, &opt), 8);
	argv[0] = "barred/prog";
	refused(argv, &opt, EACCES, WEAN_STAGE_EXEC, -1);
	argv[0] = "clad/prog";
	refused(argv, &opt, EACCES, WEAN_STAGE_EXEC, -1);
	argv[0] = "unreadable/prog";
	refused(argv, &opt, EACCES, WEAN_STAGE_EXEC, -1);
	argv[0] = "plain/prog";
	refused(argv, &opt, ENOTDIR, WEAN_STAGE_EXEC, -1);
	argv[0] = "good/prog/";
	refused(argv, &opt, ENOTDIR, WEAN_STAGE_EXEC, -1);
}
END_TEST

START_TEST(the_childs_path_is_searched_only_where_it_is_asked_for)
{
	make_path();
	char theirs[64], *ours = barred;
	snprintf(theirs, sizeof theirs, "PATH=%s", good);
	char *env[] = { theirs, NULL }, *edit[] = { theirs, NULL };
	char *removed[] = { "PATH", NULL }, *none[] = { NULL };
	struct wean_options by_env = { .env = env, .flags = way(_i) };
	struct wean_options by_edit = { .env_edit = edit, .flags = way(_i) };

	set_path("%s", ours);
	fails(&by_env, EACCES);
	fails(&by_edit, EACCES);
	by_env.flags |= WEAN_CHILD_PATH;
	by_edit.flags |= WEAN_CHILD_PATH;
	runs(&by_env);
	runs(&by_edit);
	/* Not set in the child: the usual places, where there is no prog. */
	by_env.env = none;
	fails(&by_env, ENOENT);
	by_edit.env_edit = removed;
	fails(&by_edit, ENOENT);
	set_path("%s", good);
	fails(&by_edit, ENOENT);
	by_edit.env_edit = NULL;
	runs(&by_edit);
}
END_TEST

START_TEST(a_name_longer_than_any_file_is_told)
{
	char name[400];
	char *argv[] = { name, NULL };
	struct wean_options opt = { .flags = way(_i) };

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	set_path("/bin:/usr/bin");
	refused(argv, &opt, ENAMETOOLONG, WEAN_STAGE_EXEC, -1);
}
END_TEST

/* ---- file, candidates --------------------------------------------------- */

START_TEST(file_says_what_is_run_and_argv_stays_as_it_is)
{
	char *argv[] = { "a name", "report", NULL };
	struct wean_options opt = { .file = kid(), .flags = way(_i) };

	make_path();
	set_path("%s", good);
	for (int i = 0; i < 3; i++) {
		struct wean_child child;
		opt.file = i == 0 ? kid() : i == 1 ? "prog" : "./good/prog";
		opt.dir = i == 2 ? scratch : NULL;
		opt.out = WEAN_PIPE;
		start(&child, argv, &opt);
		struct report *r = report_read(child.out);
		ck_assert_ptr_nonnull(r);
		ck_assert_int_eq(finish(&child).code, 0);
		ck_assert_str_eq(report_arg(r, 0, NULL), "a name");
		ck_assert_str_eq(report_arg(r, 1, NULL), "report");
		ck_assert_ptr_null(report_arg(r, 2, NULL));
		report_free(r);
	}
	opt.file = "absent/prog";
	refused(argv, &opt, ENOENT, WEAN_STAGE_EXEC, -1);
}
END_TEST

START_TEST(a_relative_program_counts_from_the_childs_directory)
{
	make_path();
	int fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *list[] = { "absent", "prog", NULL };
	struct wean_options opt = { .file = "./prog", .dir = good, .flags = way(_i) };
	struct wean_options listed = { .candidates = list, .dir = good,
	                               .flags = way(_i) };
	struct wean_options from = { .file = "./prog", .dir = "good", .dirfd = fd,
	                             .flags = WEAN_DIR_FD | way(_i) };

	ck_assert_int_eq(chdir("/"), 0);
	runs(&opt);
	runs(&listed);
	runs(&from);
	opt.dir = listed.dir = NULL;
	from.dir = "clad";
	refused(PROG("exit"), &opt, ENOENT, WEAN_STAGE_EXEC, -1);
	refused(PROG("exit"), &listed, ENOENT, WEAN_STAGE_EXEC, 1);
	refused(PROG("exit"), &from, EACCES, WEAN_STAGE_EXEC, -1);
}
END_TEST

/* Names under scratch; the errno is the first that is neither ENOENT nor ENOTDIR, else
   the last. */
static const struct candidates {
	const char *name[4];
	int error, index; /* 0: the last one runs */
} candidates[] = {
	{ { "absent", "good/prog" }, 0, 0 },
	{ { "plain/prog", "barred/prog", "clad/prog", "good/prog" }, 0, 0 },
	{ { "unreadable/prog", "loop", "good/prog" }, 0, 0 },
	{ { "absent" }, ENOENT, 0 },
	{ { "plain/prog", "absent" }, ENOENT, 1 },
	{ { "absent", "absent", "plain/prog" }, ENOTDIR, 2 },
	{ { "absent", "barred/prog", "absent" }, EACCES, 1 },
	{ { "loop", "barred/prog", "plain/prog" }, ELOOP, 0 },
	{ { "clad/prog", "loop" }, EACCES, 0 },
	{ { "absent", "text", "good/prog" }, ENOEXEC, 1 },
	{ { "barred/prog", "text", "good/prog" }, EACCES, 0 },
	{ { "", "absent" }, ENOENT, 1 },
};

START_TEST(candidates_are_tried_in_turn)
{
	const struct candidates *row = &candidates[_i];
	char *list[5] = { NULL };
	struct wean_options opt = { .candidates = list };
	struct wean_child child;

	write_text("text", 0755, "no program\n");
	symlink("loop", at("loop"));
	make_path();
	ck_assert_int_eq(chdir(scratch), 0);
	set_path("%s", good);
	for (int i = 0; i < 4 && row->name[i]; i++)
		list[i] = for_good(strdup(row->name[i]));
	for (int i = 0; i < WAYS; i++) {
		opt.flags = way(i);
		if (!row->error)
			runs(&opt);
		else
			refused_as(&child, list[row->index], PROG("exit", "8"), &opt,
			           (struct refusal){ row->error, WEAN_STAGE_EXEC,
			                             row->index });
	}
}
END_TEST

/* "prog" lies in PATH, but a candidate is a path. */
START_TEST(candidates_are_not_searched)
{
	char *list[] = { "prog", NULL };
	struct wean_options opt = { .candidates = list, .flags = way(_i) };

	make_path();
	set_path("%s", good);
	refused(PROG("exit"), &opt, ENOENT, WEAN_STAGE_EXEC, 0);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *program_suite(void)
{
	Suite *s = suite_create("program");
	TCase *t = tcase_create("search");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_search_goes_past_what_is_no_program, 0, WAYS);
	tcase_add_loop_test(t, a_search_reports_eacces_only_of_a_program_that_is_there, 0,
	                    WAYS);
	tcase_add_loop_test(t, empty_and_relative_elements_are_skipped, 0, WAYS);
	tcase_add_loop_test(t, without_a_path_the_usual_places_are_searched, 0, WAYS);
	tcase_add_loop_test(t, a_name_with_a_slash_is_not_searched, 0, WAYS);
	tcase_add_loop_test(t, the_childs_path_is_searched_only_where_it_is_asked_for, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_name_longer_than_any_file_is_told, 0, WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("file and candidates");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, file_says_what_is_run_and_argv_stays_as_it_is, 0, WAYS);
	tcase_add_loop_test(t, a_relative_program_counts_from_the_childs_directory, 0,
	                    WAYS);
	tcase_add_loop_test(t, candidates_are_tried_in_turn, 0,
	                    sizeof candidates / sizeof *candidates);
	tcase_add_loop_test(t, candidates_are_not_searched, 0, WAYS);
	suite_add_tcase(s, t);

	return s;
}

RUN_SUITE(program_suite)
