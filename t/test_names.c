/* test_names.c - names of stages and methods, and the version. */
#define _GNU_SOURCE
#include "spawning.h"

START_TEST(every_stage_has_its_name)
{
	static const struct {
		int stage;
		const char *name;
	} names[] = {
		{ WEAN_STAGE_NONE, "none" }, { WEAN_STAGE_OPTIONS, "options" },
		{ WEAN_STAGE_MEMORY, "memory" }, { WEAN_STAGE_PIPE, "pipe" },
		{ WEAN_STAGE_LAUNCH, "launch" }, { WEAN_STAGE_CLOSE, "closefds" },
		{ WEAN_STAGE_FD, "fd" }, { WEAN_STAGE_OPEN, "open" },
		{ WEAN_STAGE_SESSION, "session" }, { WEAN_STAGE_GROUP, "group" },
		{ WEAN_STAGE_TTY, "tty" }, { WEAN_STAGE_CGROUP, "cgroup" },
		{ WEAN_STAGE_UMASK, "umask" }, { WEAN_STAGE_LIMIT, "limit" },
		{ WEAN_STAGE_NICE, "nice" }, { WEAN_STAGE_IDS, "ids" },
		{ WEAN_STAGE_DIR, "dir" }, { WEAN_STAGE_PDEATHSIG, "pdeathsig" },
		{ WEAN_STAGE_PRIVS, "privs" }, { WEAN_STAGE_SIGNALS, "signals" },
		{ WEAN_STAGE_EXEC, "exec" },
	};

	for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
		ck_assert_int_eq(names[i].stage, i);
		ck_assert_str_eq(wean_stage_name(i), names[i].name);
	}
	ck_assert_str_eq(wean_stage_name(WEAN_STAGE_EXEC + 1), "unknown");
	ck_assert_str_eq(wean_stage_name(-1), "unknown");
	ck_assert_str_eq(wean_stage_name(INT_MIN), "unknown");
	ck_assert_str_eq(wean_stage_name(INT_MAX), "unknown");
}
END_TEST

static const char *method_of(unsigned long long flags)
{
	struct wean_options opt = { .flags = flags };
	struct wean_child child;

	start(&child, KID("exit", "0"), &opt);
	int method = child.method;
	finish(&child);
	return wean_method_name(method);
}

/* Of a current kernel that refuses nothing. */
START_TEST(a_child_tells_its_method)
{
	if (!kernel_has(5, 9))
		SKIP("this kernel has no close_range");
	ck_assert_str_eq(method_of(0), "clone3+unshare");
	ck_assert_str_eq(method_of(WEAN_NO_SHARED_MEMORY), "clone3copy+unshare");
	ck_assert_str_eq(method_of(WEAN_INHERIT_ALL), "clone3");
	ck_assert_str_eq(method_of(WEAN_INHERIT_ALL | WEAN_NO_SHARED_MEMORY),
	                 "clone3copy");
}
END_TEST

static const char *const launched[] = { "clone3", "clone", "clone3copy", "fork",
                                        "posix_spawn" };
static const char *const closed[] = { "", "+unshare", "+close_range", "+closefrom",
                                      "+procfs", "+scan" };

enum { NAMES = 5 * 6 };

/* Which of the names it is; -1: none. */
static int known(const char *name)
{
	char text[64];

	for (int i = 0; i < NAMES; i++) {
		snprintf(text, sizeof text, "%s%s", launched[i / 6], closed[i % 6]);
		if (!strcmp(text, name))
			return i;
	}
	return -1;
}

/* Whatever number means which: each name occurs once, and there are no others. */
START_TEST(methods_have_all_their_names_and_no_others)
{
	int seen[NAMES] = { 0 };

	ck_assert_str_eq(wean_method_name(0), "none");
	for (int method = 1; method < 1 << 16; method++) {
		const char *name = wean_method_name(method);
		int i = known(name);
		ck_assert_msg(i >= 0 || !strcmp(name, "unknown"), "%d: %s", method, name);
		if (i >= 0)
			seen[i]++;
	}
	for (int i = 0; i < NAMES; i++)
		ck_assert_msg(seen[i] == 1, "%s%s: %d times", launched[i / 6],
		              closed[i % 6], seen[i]);
	ck_assert_str_eq(wean_method_name(-1), "unknown");
	ck_assert_str_eq(wean_method_name(INT_MIN), "unknown");
	ck_assert_str_eq(wean_method_name(INT_MAX), "unknown");
	ck_assert_str_eq(wean_method_name(1 << 16 | 1), "unknown");
}
END_TEST

START_TEST(the_version_is_the_one_that_was_built)
{
	ck_assert_str_eq(wean_version(), PACKAGE_VERSION);
}
END_TEST

static Suite *names_suite(void)
{
	Suite *s = suite_create("names");
	TCase *t = tcase_create("names");

	tcase_add_test(t, every_stage_has_its_name);
	tcase_add_test(t, methods_have_all_their_names_and_no_others);
	tcase_add_test(t, the_version_is_the_one_that_was_built);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "default");
	tcase_add_test(t, a_child_tells_its_method);
	return s;
}

RUN_SUITE(names_suite)
