/* test_plan.c - what a request becomes before anything is started: refusals, program,
   arguments and environment. */
#define _GNU_SOURCE
#include "descriptors.h"

#include "../src/env.h"
#include "../src/plan.h"

/* ---- refusals ------------------------------------------------------------ */

/* Refused with this errno, stage and index, and nothing was done at all. */
static void must_refuse(char *const argv[], const struct wean_options *o, int error,
                        int stage, int index)
{
	const struct wean_child none = {
		.pidfd = -1, .in = -1, .out = -1, .err = -1, .stage = stage, .index = index,
	};
	struct wean_child child;
	struct baseline b;

	memset(&child, 0x55, sizeof child);
	baseline_take(&b);
	int answer = wean_spawn(&child, argv, o);
	baseline_same(&b);
	ck_assert_int_eq(answer, error);
	ck_assert_int_eq(child.stage, stage);
	ck_assert_int_eq(child.index, index);
	ck_assert_mem_eq(&child, &none, sizeof child);
}

static void must_be_invalid(const struct wean_options *o)
{
	must_refuse(KID("exit", "0"), o, EINVAL, WEAN_STAGE_OPTIONS, -1);
}

START_TEST(an_unknown_flag_is_refused)
{
	const unsigned long long known = 0x17fffff;

	for (int bit = 0; bit < 64; bit++)
		if (!(known >> bit & 1))
			must_be_invalid(&(struct wean_options){ .flags = 1ULL << bit });
}
END_TEST

START_TEST(a_reserved_member_is_refused)
{
	struct wean_options o;

	for (size_t i = 0; i < COUNT(o.reserved_int); i++) {
		memset(&o, 0, sizeof o);
		o.reserved_int[i] = INT_MIN;
		must_be_invalid(&o);
	}
	for (size_t i = 0; i < COUNT(o.reserved_ptr); i++) {
		memset(&o, 0, sizeof o);
		o.reserved_ptr[i] = &o;
		must_be_invalid(&o);
	}
}
END_TEST

static const struct wean_options flagless[] = {
	{ .pgid = 1 }, { .pgid = -1 }, { .umask = 022 }, { .nice = 1 }, { .nice = -1 },
	{ .dirfd = 1 }, { .dirfd = -1 }, { .ttyfd = 1 }, { .ttyfd = -1 }, { .cgroupfd = 1 },
	{ .cgroupfd = -1 }, { .uid = 1 }, { .uid = ~0U }, { .gid = 1 }, { .gid = ~0U },
	{ .groups = (const unsigned[]){ 0 } }, { .ngroups = 1 },
	{ .groups = (const unsigned[]){ 0 }, .ngroups = 1 },
	{ .nfds = 1 }, { .nlimits = 1 }, { .nfds = SIZE_MAX }, { .nlimits = SIZE_MAX },
	{ .nfds = SIZE_MAX, .fds = (const struct wean_fd[]){ { .kind = WEAN_NULL } } },
	{ .nfds = INT_MAX, .fds = (const struct wean_fd[]){ { .kind = WEAN_NULL } } },
};

START_TEST(a_member_without_its_flag_or_its_list_is_refused)
{
	must_be_invalid(&flagless[_i]);
}
END_TEST

START_TEST(no_program_is_refused)
{
	char *none[] = { NULL }, *two[] = { kid(), NULL };
	struct wean_options both = { .file = kid(), .candidates = two };
	struct wean_options empty = { .candidates = none };
	struct wean_child child = { .pid = 7, .stage = -7 };

	must_refuse(NULL, NULL, EINVAL, WEAN_STAGE_OPTIONS, -1);
	must_refuse(none, NULL, EINVAL, WEAN_STAGE_OPTIONS, -1);
	must_refuse(KID("exit", "0"), &both, EINVAL, WEAN_STAGE_OPTIONS, -1);
	must_refuse(KID("exit", "0"), &empty, EINVAL, WEAN_STAGE_OPTIONS, -1);
	errno = BASELINE_ERRNO;
	ck_assert_int_eq(wean_spawn(NULL, KID("exit", "0"), NULL), EINVAL);
	ck_assert_int_eq(wean_spawn(&child, NULL, NULL), EINVAL);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	ck_assert_int_eq(child.pid, 0);
}
END_TEST

START_TEST(a_file_is_enough_without_arguments)
{
	char *none[] = { NULL };
	struct wean_options o = { .file = kid() };
	struct wean_child child;
	struct wean_status status;
	struct baseline b;

	baseline_take(&b);
	ck_assert_int_eq(wean_spawn(&child, none, &o), 0);
	ck_assert_int_eq(wean_wait(&child, -1, &status), 0);
	wean_release(&child);
	baseline_same(&b);
	ck_assert_int_eq(status.code, 120); /* kid's complaint about its usage */
}
END_TEST

/* ---- refused descriptors ------------------------------------------------- */

#define OF(k, ...)     { .kind = WEAN_##k, .target = 9, __VA_ARGS__ }

enum { LIMIT = 64, SHUT = 40 }; /* of descriptors; a number that is not open */

/* All with EINVAL and stage options; the index counts. */
static const struct {
	struct wean_options o;
	int index;
} invalid[] = {
	/* kinds */
	{ { FDS({ .kind = 0, .target = 9 }) }, 0 },
	{ { FDS({ .kind = -1, .target = 9 }) }, 0 },
	{ { FDS({ .kind = 10, .target = 9 }) }, 0 },
	{ { FDS({ .kind = INT_MAX, .target = 9 }) }, 0 },
	{ { FDS(KEEP(1), OF(INHERIT, 0)) }, 1 },
	{ { FDS(KEEP(1), OF(PIPE, 0)) }, 1 },
	{ { FDS(KEEP(1), OF(MERGE, 0)) }, 1 },
	{ { .in = -1 }, 0 },
	{ { .in = WEAN_MERGE }, 0 },
	{ { .in = WEAN_DUP }, 0 },
	{ { .out = WEAN_MERGE }, 1 },
	{ { .out = WEAN_KEEP }, 1 },
	{ { .out = WEAN_SAME }, 1 },
	{ { .err = WEAN_OPEN }, 2 },
	{ { .err = WEAN_SAME + 1 }, 2 },
	{ { .err = INT_MIN }, 2 },
	{ { FDS(NUL(8), NUL(9)), .out = 99 }, 3 },
	/* targets */
	{ { FDS(NUL(-1)) }, 0 },
	{ { FDS(CLOSED(INT_MIN)) }, 0 },
	{ { FDS(KEEP(-1)) }, 0 },
	{ { FDS(KEEP(1), DUP(-1, 1)) }, 1 },
	{ { FDS(SAME(-2, 1)) }, 0 },
	{ { FDS(OPEN(-1, "/dev/null")) }, 0 },
	/* one twice: the later entry is blamed */
	{ { FDS(KEEP(1), KEEP(1)) }, 1 },
	{ { FDS(DUP(9, 1), DUP(9, 1)) }, 1 },
	{ { FDS(DUP(9, 1), NUL(8), CLOSED(9)) }, 2 },
	{ { FDS(CLOSED(9), NUL(8), NUL(7), NUL(9), NUL(6)) }, 3 },
	{ { FDS(OPEN(9, "/dev/null"), SAME(9, 1)) }, 1 },
	{ { FDS(NUL(0), NUL(0)) }, 1 },
	/* an entry and a member */
	{ { FDS(KEEP(0)), .in = WEAN_NULL }, 1 },
	{ { FDS(KEEP(1)), .out = WEAN_PIPE }, 2 },
	{ { FDS(CLOSED(2)), .err = WEAN_CLOSED }, 3 },
	{ { FDS(NUL(9), DUP(2, 1)), .err = WEAN_MERGE }, 4 },
	{ { FDS(NUL(0)), .in = WEAN_INHERIT }, 1 },
	/* members that the kind does not use */
	{ { FDS(OF(DUP, .source = 1, .reserved = 1)) }, 0 },
	{ { FDS(OF(DUP, .source = 1, .oflag = 1)) }, 0 },
	{ { FDS(OF(DUP, .source = 1, .mode = 1)) }, 0 },
	{ { FDS(OF(DUP, .source = 1, .path = "/")) }, 0 },
	{ { FDS({ .kind = WEAN_KEEP, .target = 1, .source = 2 }) }, 0 },
	{ { FDS({ .kind = WEAN_KEEP, .target = 1, .source = -1 }) }, 0 },
	{ { FDS({ .kind = WEAN_KEEP, .target = 1, .oflag = 2 }) }, 0 },
	{ { FDS({ .kind = WEAN_KEEP, .target = 1, .mode = 2 }) }, 0 },
	{ { FDS({ .kind = WEAN_KEEP, .target = 1, .path = "" }) }, 0 },
	{ { FDS(OF(NULL, .source = 1)) }, 0 },
	{ { FDS(OF(NULL, .oflag = O_RDWR)) }, 0 },
	{ { FDS(OF(NULL, .path = "/dev/null")) }, 0 },
	{ { FDS(OF(NULL, .reserved = -1)) }, 0 },
	{ { FDS(OF(CLOSED, .source = -1)) }, 0 },
	{ { FDS(OF(CLOSED, .mode = 0600)) }, 0 },
	{ { FDS(OF(CLOSED, .reserved = 1)) }, 0 },
	{ { FDS(OF(SAME, .source = 1, .oflag = 1)) }, 0 },
	{ { FDS(OF(SAME, .source = 1, .path = "/")) }, 0 },
	{ { FDS(OF(OPEN, .path = NULL)) }, 0 },
	{ { FDS(OF(OPEN, .path = "/", .source = 1)) }, 0 },
	{ { FDS(OF(OPEN, .path = "/", .reserved = 1)) }, 0 },
	/* SAME: cycles, and what is left closed */
	{ { FDS(SAME(9, 9)) }, 0 },
	{ { FDS(SAME(1, 2), NUL(9), SAME(2, 1)) }, 0 },
	{ { FDS(SAME(9, 8), SAME(8, 7), SAME(7, 9)) }, 2 },
	{ { FDS(SAME(9, 8), SAME(8, 8)) }, 1 },
	{ { FDS(SAME(9, SHUT)) }, 0 },
	{ { FDS(SAME(9, 3)) }, 0 }, /* open in the caller, but not given */
	{ { FDS(SAME(9, -1)) }, 0 },
	{ { FDS(SAME(9, INT_MIN)) }, 0 },
	{ { FDS(SAME(9, INT_MAX)) }, 0 },
	{ { FDS(CLOSED(8), SAME(9, 8)) }, 1 },
	{ { FDS(CLOSED(7), SAME(9, 8), SAME(8, 7)) }, 2 },
	{ { FDS(SAME(9, 0)), .in = WEAN_CLOSED }, 0 },
	{ { .out = WEAN_CLOSED, .err = WEAN_MERGE }, 2 },
	{ { FDS(NUL(8), NUL(9)), .out = WEAN_CLOSED, .err = WEAN_MERGE }, 4 },
	{ { FDS(SAME(1, 2)), .err = WEAN_MERGE }, 0 },
};

START_TEST(a_wrong_descriptor_is_refused_by_its_index)
{
	ck_assert_int_eq(set_limit(LIMIT), 0);
	ck_assert_int_lt(fcntl(SHUT, F_GETFD), 0);
	must_refuse(KID("exit", "0"), &invalid[_i].o, EINVAL, WEAN_STAGE_OPTIONS,
	            invalid[_i].index);
}
END_TEST

/* All with EBADF. */
static const struct {
	struct wean_options o;
	int stage, index;
} not_open[] = {
	{ { FDS(DUP(9, SHUT)) }, WEAN_STAGE_FD, 0 },
	{ { FDS(DUP(9, -1)) }, WEAN_STAGE_FD, 0 },
	{ { FDS(DUP(9, INT_MAX)) }, WEAN_STAGE_FD, 0 },
	{ { FDS(DUP(9, INT_MIN)) }, WEAN_STAGE_FD, 0 },
	{ { FDS(DUP(9, LIMIT - 1)) }, WEAN_STAGE_FD, 0 },
	{ { FDS(KEEP(SHUT)) }, WEAN_STAGE_FD, 0 },
	{ { FDS({ .kind = WEAN_KEEP, .target = SHUT, .source = SHUT }) }, WEAN_STAGE_FD, 0 },
	{ { FDS(KEEP(1), NUL(9), KEEP(SHUT), KEEP(2)) }, WEAN_STAGE_FD, 2 },
	{ { FDS(KEEP(1), DUP(1 + LIMIT / 2, SHUT), NUL(9)) }, WEAN_STAGE_FD, 1 },
	/* DUP reads the caller's table, not the child's */
	{ { FDS(NUL(SHUT), DUP(9, SHUT)) }, WEAN_STAGE_FD, 1 },
	/* no number of the child's */
	{ { FDS(NUL(LIMIT)) }, WEAN_STAGE_FD, 0 },
	{ { FDS(NUL(INT_MAX)) }, WEAN_STAGE_FD, 0 },
	{ { FDS(KEEP(1), DUP(LIMIT, 1)) }, WEAN_STAGE_FD, 1 },
	{ { FDS(KEEP(1), OPEN(LIMIT, "/dev/null")) }, WEAN_STAGE_FD, 1 },
	{ { FDS(KEEP(1), SAME(LIMIT, 1)) }, WEAN_STAGE_FD, 1 },
	{ { .flags = WEAN_DIR_FD, .dirfd = SHUT }, WEAN_STAGE_DIR, -1 },
	{ { .flags = WEAN_DIR_FD, .dirfd = -1 }, WEAN_STAGE_DIR, -1 },
};

START_TEST(a_number_that_is_not_open_or_cannot_be_is_refused)
{
	ck_assert_int_eq(set_limit(LIMIT), 0);
	must_refuse(KID("exit", "0"), &not_open[_i].o, EBADF, not_open[_i].stage,
	            not_open[_i].index);
}
END_TEST

START_TEST(a_merge_into_a_stdout_that_stays_out_is_refused)
{
	struct wean_options o = { .flags = WEAN_STDIO_AS_IS, .err = WEAN_MERGE };
	int kept = dup(1);

	close(1);
	must_refuse(KID("exit", "0"), &o, EINVAL, WEAN_STAGE_OPTIONS, 2);
	ck_assert_int_eq(dup3(kept, 1, O_CLOEXEC), 1);
	must_refuse(KID("exit", "0"), &o, EINVAL, WEAN_STAGE_OPTIONS, 2);
}
END_TEST

START_TEST(same_of_what_is_not_inherited_is_refused_where_all_is)
{
	struct wean_options o = { .flags = WEAN_INHERIT_ALL, FDS(SAME(9, 30)) };

	ck_assert_int_eq(dup3(1, 30, O_CLOEXEC), 30);
	must_refuse(KID("exit", "0"), &o, EINVAL, WEAN_STAGE_OPTIONS, 0);
	close(30);
	must_refuse(KID("exit", "0"), &o, EINVAL, WEAN_STAGE_OPTIONS, 0);
}
END_TEST

/* ---- plans --------------------------------------------------------------- */

struct made {
	struct plan plan;
	char memory[4096];
};

static struct plan *make(struct made *m, char *const argv[], const struct wean_options *o)
{
	ck_assert_int_eq(wean_plan_make(&m->plan, argv, o, m->memory, sizeof m->memory), 0);
	return &m->plan;
}

static const char *join(char *const *list)
{
	static char text[4096];
	size_t len = 0;

	text[0] = '\0';
	for (; *list; list++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len ? " " : "",
		                        *list);
	ck_assert_uint_lt(len, sizeof text);
	return text;
}

static char *prog_a_b[] = { (char[]){ "prog" }, (char[]){ "a" }, (char[]){ "b" }, NULL };

/* ---- environment --------------------------------------------------------- */

#define LIST(...) (char *const[]){ __VA_ARGS__, NULL }

static const struct {
	char *const *env, *const *edit;
	const char *merged;
} merges[] = {
	{ LIST("A=1", "B=2"), LIST("A=9"), "A=9 B=2" },
	{ LIST("A=1", "B=2"), LIST("B"), "A=1" },
	{ LIST("A=1", "B=2"), LIST("C=3"), "A=1 B=2 C=3" },
	{ LIST("A=1", "B=2"), LIST("C"), "A=1 B=2" },
	{ LIST("A=1", "B=2", "C=3"), LIST("C=4", "A=5", "D=6", "B"), "A=5 C=4 D=6" },
	{ LIST("A=1"), LIST("D=1", "C=2", "B=3"), "A=1 D=1 C=2 B=3" },
	/* the last of several edits counts */
	{ LIST("A=1"), LIST("A=2", "A=3"), "A=3" },
	{ LIST("A=1"), LIST("A=2", "A"), "" },
	{ LIST("A=1"), LIST("A", "A=2"), "A=2" },
	{ LIST("A=1"), LIST("B=2", "B", "B=3"), "A=1 B=3" },
	{ LIST("A=1"), LIST("B=2", "B"), "A=1" },
	/* a variable that was there twice is there once when it is edited */
	{ LIST("A=1", "B=2", "A=3"), LIST("A=4"), "A=4 B=2" },
	{ LIST("A=1", "B=2", "A=3"), LIST("A"), "B=2" },
	{ LIST("A=1", "B=2", "A=3"), LIST("B=4"), "A=1 B=4 A=3" },
	/* whole names, and values with everything in them */
	{ LIST("AB=1", "A=2", "ABC=3"), LIST("A=4"), "AB=1 A=4 ABC=3" },
	{ LIST("AB=1", "A=2", "ABC=3"), LIST("AB"), "A=2 ABC=3" },
	{ LIST("A=1"), LIST("A="), "A=" },
	{ LIST("A="), LIST("B=x=y=z"), "A= B=x=y=z" },
	/* what is no variable is passed on */
	{ LIST("junk", "=x", "A=1"), LIST("A=2"), "junk =x A=2" },
	{ LIST("junk", "A=1"), LIST("junk"), "A=1" },
	{ LIST("junk", "A=1"), LIST("junk=2"), "junk=2 A=1" },
	/* nothing to edit, nothing to edit with */
	{ LIST("A=1", "A=1"), (char *const[]){ NULL }, "A=1 A=1" },
	{ (char *const[]){ NULL }, LIST("A=1", "B"), "A=1" },
	{ (char *const[]){ NULL }, (char *const[]){ NULL }, "" },
};

START_TEST(edits_set_and_remove_where_the_variable_stood)
{
	struct wean_options o = { .file = "/x", .env = merges[_i].env,
	                          .env_edit = merges[_i].edit };
	struct made m;

	ck_assert_str_eq(join(make(&m, prog_a_b, &o)->env), merges[_i].merged);
	ck_assert_ptr_null(m.plan.arena.chunks);
	wean_plan_free(&m.plan);
}
END_TEST

START_TEST(an_environment_without_edits_is_passed_as_it_is)
{
	char *env[] = { prog_a_b[1], prog_a_b[1], NULL }, *unset[] = { NULL };
	struct wean_options given = { .file = "/x", .env = env }, callers = { .file = "/x" };
	struct made m;

	ck_assert_ptr_eq(make(&m, prog_a_b, &given)->env, env);
	ck_assert_ptr_eq(make(&m, prog_a_b, &callers)->env, environ);
	environ = unset;
	ck_assert_str_eq(join(make(&m, prog_a_b, &callers)->env), "");
	environ = NULL;
	ck_assert_str_eq(join(make(&m, prog_a_b, &callers)->env), "");
	struct wean_options edit = { .file = "/x", .env_edit = LIST("A=1") };
	ck_assert_str_eq(join(make(&m, prog_a_b, &edit)->env), "A=1");
}
END_TEST

START_TEST(an_edit_without_a_name_is_refused)
{
	struct wean_options value = { .env_edit = LIST("A=1", "=x") };
	struct wean_options nothing = { .env_edit = LIST("") };

	must_be_invalid(&value);
	must_be_invalid(&nothing);
}
END_TEST

START_TEST(a_thousand_edits_of_a_thousand_variables)
{
	static char text[2000][16];
	static char *env[1001], *edit[1001];
	struct wean_options o = { .file = "/x", .env = env, .env_edit = edit };
	struct made m;

	for (int i = 0; i < 1000; i++) {
		snprintf(env[i] = text[i], sizeof text[i], "V%d=old", i);
		snprintf(edit[999 - i] = text[1000 + i], sizeof text[i], "V%d=%d", i + 500, i);
	}
	make(&m, prog_a_b, &o);
	for (int i = 0; i < 1000; i++)
		ck_assert_ptr_eq(m.plan.env[i], i < 500 ? env[i] : text[1000 + i - 500]);
	for (int i = 1000; i < 1500; i++) /* new ones in the order of the edits */
		ck_assert_ptr_eq(m.plan.env[i], edit[i - 1000]);
	ck_assert_ptr_null(m.plan.env[1500]);
	wean_plan_free(&m.plan);
}
END_TEST

START_TEST(a_variable_is_found_by_its_whole_name)
{
	char *env[] = { (char[]){ "PATHX=1" }, (char[]){ "PAT=2" }, (char[]){ "PATH" },
	                (char[]){ "PATH=a=b" }, (char[]){ "PATH=second" },
	                (char[]){ "EMPTY=" }, NULL };

	ck_assert_str_eq(wean_env_value(env, "PATH"), "a=b");
	ck_assert_str_eq(wean_env_value(env, "PATHX"), "1");
	ck_assert_str_eq(wean_env_value(env, "EMPTY"), "");
	ck_assert_ptr_null(wean_env_value(env, "PA"));
	ck_assert_ptr_null(wean_env_value(env, "PATHXY"));
	ck_assert_ptr_null(wean_env_value(env + 6, "PATH"));
	ck_assert_ptr_null(wean_env_value(NULL, "PATH"));
}
END_TEST

/* ---- program ------------------------------------------------------------- */

static const char *programs(const char *file, unsigned long long flags, const char *path,
                            char *const *env)
{
	static struct made m;
	struct wean_options o = { .file = file, .flags = flags, .env = env };

	wean_plan_free(&m.plan);
	if (path)
		setenv("PATH", path, 1);
	else
		unsetenv("PATH");
	return join(make(&m, prog_a_b, &o)->programs);
}

START_TEST(a_name_without_a_slash_is_searched_and_others_are_not)
{
	char *const *env = LIST("PATH=/child::rel");
	char *const *none = LIST("X=1");

	ck_assert_str_eq(programs("ls", 0, "/a:/b", env), "/a/ls /b/ls");
	ck_assert_str_eq(programs(NULL, 0, "/a:.:/b", NULL), "/a/prog /b/prog");
	ck_assert_str_eq(programs("ls", 0, NULL, env),
	                 "/usr/local/bin/ls /usr/bin/ls /bin/ls");
	ck_assert_str_eq(programs("ls", WEAN_CHILD_PATH, "/a", env), "/child/ls");
	ck_assert_str_eq(programs("ls", WEAN_CHILD_PATH, "/a", none),
	                 "/usr/local/bin/ls /usr/bin/ls /bin/ls");
	ck_assert_str_eq(programs("./ls", 0, "/a", NULL), "./ls");
	ck_assert_str_eq(programs("x/ls", WEAN_CHILD_PATH, "/a", env), "x/ls");
	ck_assert_str_eq(programs("/ls", 0, "/a", NULL), "/ls");
}
END_TEST

START_TEST(the_childs_path_is_the_edited_one)
{
	struct wean_options o = { .file = "ls", .flags = WEAN_CHILD_PATH,
	                          .env = LIST("PATH=/a"), .env_edit = LIST("PATH=/b:/c") };
	struct made m;

	ck_assert_str_eq(join(make(&m, prog_a_b, &o)->programs), "/b/ls /c/ls");
}
END_TEST

START_TEST(a_search_without_a_place_finds_nothing)
{
	static const char *const paths[] = { "", ":", ".:..", "bin:rel/bin" };
	struct wean_options named = { .file = "ls" }, unnamed = { .file = "" };

	for (size_t i = 0; i < COUNT(paths); i++) {
		setenv("PATH", paths[i], 1);
		must_refuse(prog_a_b, &named, ENOENT, WEAN_STAGE_EXEC, -1);
	}
	must_refuse(prog_a_b, &unnamed, ENOENT, WEAN_STAGE_EXEC, -1);
}
END_TEST

START_TEST(candidates_are_taken_as_they_are)
{
	char *list[] = { prog_a_b[0], prog_a_b[1], NULL };
	struct wean_options o = { .candidates = list };
	struct made m;

	ck_assert_ptr_eq(make(&m, prog_a_b, &o)->programs, list);
	ck_assert_int_eq(m.plan.searched, 0);
}
END_TEST

START_TEST(a_script_for_the_shell_keeps_its_arguments)
{
	struct wean_options o = { .file = "/x", .flags = WEAN_SHELL_SCRIPT };
	char *none[] = { NULL };
	struct made m;

	ck_assert_ptr_null(make(&m, prog_a_b, &(struct wean_options){ 0 })->shell_argv);
	char **argv = make(&m, prog_a_b, &o)->shell_argv;
	ck_assert_str_eq(argv[0], "/bin/sh");
	ck_assert_str_eq(argv[1], "--");
	ck_assert_ptr_eq(argv[3], prog_a_b[1]); /* 2: the script */
	ck_assert_ptr_eq(argv[4], prog_a_b[2]);
	ck_assert_ptr_null(argv[5]);
	ck_assert_ptr_null(make(&m, none, &o)->shell_argv[3]);
	ck_assert_ptr_eq(m.plan.argv, none);
}
END_TEST

static void add_plans(TCase *c)
{
	tcase_add_loop_test(c, edits_set_and_remove_where_the_variable_stood, 0,
	                    COUNT(merges));
	tcase_add_test(c, an_environment_without_edits_is_passed_as_it_is);
	tcase_add_test(c, a_variable_is_found_by_its_whole_name);
	tcase_add_test(c, an_edit_without_a_name_is_refused);
	tcase_add_test(c, a_thousand_edits_of_a_thousand_variables);
	tcase_add_test(c, a_name_without_a_slash_is_searched_and_others_are_not);
	tcase_add_test(c, the_childs_path_is_the_edited_one);
	tcase_add_test(c, a_search_without_a_place_finds_nothing);
	tcase_add_test(c, candidates_are_taken_as_they_are);
	tcase_add_test(c, a_script_for_the_shell_keeps_its_arguments);
}

static Suite *plan_suite(void)
{
	Suite *s = suite_create("plan");
	TCase *refusals = tcase_create("refusals"), *plans = tcase_create("plans");

	tcase_add_test(refusals, an_unknown_flag_is_refused);
	tcase_add_test(refusals, a_reserved_member_is_refused);
	tcase_add_loop_test(refusals, a_member_without_its_flag_or_its_list_is_refused, 0,
	                    COUNT(flagless));
	tcase_add_test(refusals, no_program_is_refused);
	tcase_add_test(refusals, a_merge_into_a_stdout_that_stays_out_is_refused);
	tcase_add_test(refusals, same_of_what_is_not_inherited_is_refused_where_all_is);
	add_plans(plans);
	suite_add_tcase(s, refusals);
	suite_add_tcase(s, plans);

	TCase *needy = case_that_needs(s, "table");
	tcase_add_loop_test(needy, a_wrong_descriptor_is_refused_by_its_index, 0,
	                    COUNT(invalid));
	tcase_add_loop_test(needy, a_number_that_is_not_open_or_cannot_be_is_refused, 0,
	                    COUNT(not_open));

	needy = case_that_needs(s, "exec");
	tcase_add_test(needy, a_file_is_enough_without_arguments);
	return s;
}

RUN_WITH_STDIO_ALONE(plan_suite)
