/* test_environment.c - the environment that a child gets. */
#define _GNU_SOURCE
#include "spawning.h"

#define LIST(...) ((char *[]){ __VA_ARGS__, NULL })

/* Byte for byte, and in this order. */
static void assert_environment(const struct report *r, char *const *wanted)
{
	size_t n = 0, length;

	for (; wanted[n]; n++) {
		const char *entry = report_env(r, n, &length);
		ck_assert_msg(entry, "%zu: missing, should be %s", n, wanted[n]);
		ck_assert_str_eq(entry, wanted[n]);
		ck_assert_uint_eq(length, strlen(wanted[n]));
	}
	ck_assert_msg(!report_env(r, n, NULL), "%zu: too many, %s", n,
	              report_env(r, n, NULL));
}

static void gets(const struct wean_options *opt, char *const *wanted)
{
	struct report *r = kid_report(opt);

	assert_environment(r, wanted);
	report_free(r);
}

/* What a shell would not make, but a host may have. */
static char *odd[] = {
	"Z=1", "A=", "=nameless", "bare", "", "B==x=y", "A=again",
	"line=1\n2", "bytes=\xff\x01\x80", "PATH=/bin", "bare", NULL
};

START_TEST(by_default_it_is_the_callers_with_every_byte_in_order)
{
	struct wean_options opt = { .flags = way(_i) };
	char **saved = environ;

	gets(&opt, environ);
	environ = odd;
	gets(&opt, odd);
	gets(&opt, odd);
	environ = saved;
}
END_TEST

START_TEST(a_caller_without_any_gives_none)
{
	struct wean_options opt = { .flags = way(_i) };
	char *edit[] = { "A=1", NULL };

	environ = NULL;
	gets(&opt, LIST(NULL));
	opt.env_edit = edit;
	gets(&opt, edit);
}
END_TEST

START_TEST(what_is_given_takes_the_place_of_the_callers)
{
	struct wean_options opt = { .env = odd, .flags = way(_i) };

	ck_assert_int_eq(setenv("OURS", "1", 1), 0);
	gets(&opt, odd);
	opt.env = LIST(NULL);
	gets(&opt, LIST(NULL));
	/* And is not the caller's. */
	ck_assert_str_eq(getenv("OURS"), "1");
}
END_TEST

/* ---- edits -------------------------------------------------------------- */

static char *base[] = { "ONE=1", "ON=2", "TWO=a=b", "bare", "=x",
                        "ONE=3", "LAST=", NULL };

static const struct edit {
	const char *what;
	char *edits[5], *wanted[12];
} edits[] = {
	{ "none", { NULL },
	  { "ONE=1", "ON=2", "TWO=a=b", "bare", "=x", "ONE=3",
	    "LAST=" } },
	{ "a new one goes to the end", { "NEW=n" },
	  { "ONE=1", "ON=2", "TWO=a=b", "bare", "=x", "ONE=3",
	    "LAST=", "NEW=n" } },
	{ "new ones keep their order", { "N2=b", "N1=a" },
	  { "ONE=1", "ON=2", "TWO=a=b", "bare", "=x", "ONE=3",
	    "LAST=", "N2=b", "N1=a" } },
	{ "a set one stays in its place, once", { "ONE=one" },
	  { "ONE=one", "ON=2", "TWO=a=b", "bare", "=x", "LAST=" } },
	{ "a prefix is another name", { "ON=" },
	  { "ONE=1", "ON=", "TWO=a=b", "bare", "=x", "ONE=3",
	    "LAST=" } },
	{ "a value may hold =", { "TWO==c=" },
	  { "ONE=1", "ON=2", "TWO==c=", "bare", "=x", "ONE=3",
	    "LAST=" } },
	{ "a removal removes each", { "ONE" },
	  { "ON=2", "TWO=a=b", "bare", "=x", "LAST=" } },
	{ "a removal of what is not there is nothing", { "LAS", "LASTLY" },
	  { "ONE=1", "ON=2", "TWO=a=b", "bare", "=x", "ONE=3",
	    "LAST=" } },
	{ "an entry without = bears a name too", { "bare=1" },
	  { "ONE=1", "ON=2", "TWO=a=b", "bare=1", "=x", "ONE=3",
	    "LAST=" } },
	{ "the last edit counts: set, set", { "A=1", "A=2", "A=3" },
	  { "ONE=1", "ON=2", "TWO=a=b", "bare", "=x", "ONE=3",
	    "LAST=", "A=3" } },
	{ "the last edit counts: set, remove", { "A=1", "A", "ON=9", "ON" },
	  { "ONE=1", "TWO=a=b", "bare", "=x", "ONE=3", "LAST=" } },
	{ "the last edit counts: remove, set", { "ON", "ON=9", "A", "A=1" },
	  { "ONE=1", "ON=9", "TWO=a=b", "bare", "=x", "ONE=3",
	    "LAST=", "A=1" } },
};

START_TEST(edits_set_and_remove)
{
	const struct edit *row = &edits[_i];
	struct wean_options opt = { .env = base, .env_edit = row->edits };
	char **saved = environ;

	for (int i = 0; i < WAYS; i++) {
		opt.flags = way(i);
		opt.env = base;
		gets(&opt, row->wanted);
		opt.env = NULL;
		environ = base;
		gets(&opt, row->wanted);
		environ = saved;
	}
}
END_TEST

START_TEST(the_same_string_may_stand_in_both_lists_and_twice)
{
	char *shared = "S=1";
	char *env[] = { "A=1", shared, "B=1", shared, NULL };
	char *edit[] = { shared, shared, NULL };
	struct wean_options opt = { .env = env, .env_edit = edit, .flags = way(_i) };

	gets(&opt, LIST("A=1", "S=1", "B=1"));
}
END_TEST

START_TEST(bad_edits_start_nothing)
{
	static char *const bad[][3] = {
		{ "", NULL }, { "=", NULL }, { "=x", NULL }, { "A=1", "=" },
	};
	struct wean_options opt = { .flags = way(_i) };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		opt.env_edit = bad[i];
		refused(KID("exit", "0"), &opt, EINVAL, WEAN_STAGE_OPTIONS, -1);
	}
}
END_TEST

START_TEST(a_large_environment_is_edited_whole)
{
	enum { N = 5000 };
	char **env = for_good(calloc(N + 1, sizeof *env));
	char **wanted = for_good(calloc(N + 2, sizeof *wanted));
	char *edit[] = { "V2500=edited", "V0", "NEW=1", NULL };
	struct wean_options opt = { .env = env, .env_edit = edit, .flags = way(_i) };

	for (size_t i = 0; i < N; i++) {
		char text[32];
		snprintf(text, sizeof text, "V%zu=%zu", i, i);
		env[i] = for_good(strdup(text));
		if (i > 0)
			wanted[i - 1] = i == 2500 ? edit[0] : env[i];
	}
	wanted[N - 1] = edit[2];
	gets(&opt, wanted);
}
END_TEST

/* ---- when --------------------------------------------------------------- */

/* A child that reports only when told still has what there was at the spawn. */
START_TEST(it_is_captured_at_the_spawn)
{
	char *path = report_path(), value[] = "V=before";
	char *env[] = { value, NULL };
	struct wean_options opt = { .env = env, .in = WEAN_PIPE, .flags = way(_i) };
	struct wean_child child;

	start(&child, KID("cat", "--then", "report", path), &opt);
	memcpy(value, "V=after!", sizeof value);
	env[0] = NULL;
	close(child.in);
	child.in = -1;
	ck_assert_int_eq(finish(&child).code, 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	assert_environment(r, LIST("V=before"));
	report_free(r);
	unlink(path);
}
END_TEST

START_TEST(what_the_caller_sets_before_the_next_start_is_in_it)
{
	struct wean_options opt = { .flags = way(_i) };
	char value[8];

	for (int i = 0; i < 3; i++) {
		snprintf(value, sizeof value, "%d", i);
		ck_assert_int_eq(setenv("CHANGING", value, 1), 0);
		struct report *r = kid_report(&opt);
		ck_assert_str_eq(report_getenv(r, "CHANGING"), value);
		report_free(r);
	}
}
END_TEST

START_TEST(neither_the_callers_nor_the_given_lists_are_changed)
{
	char *edit[] = { "ON=9", "LAST", "NEW=1", NULL };
	struct wean_options opt = { .env_edit = edit, .flags = way(_i) };
	char *copy[sizeof base / sizeof *base], **saved = environ;

	memcpy(copy, base, sizeof base);
	environ = base;
	ck_assert_int_eq(run(KID("exit", "4"), &opt), 4);
	ck_assert_ptr_eq(environ, base);
	environ = saved;
	ck_assert_mem_eq(copy, base, sizeof base);
	ck_assert_str_eq(base[1], "ON=2");
	ck_assert_str_eq(edit[2], "NEW=1");
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *environment_suite(void)
{
	Suite *s = suite_create("environment");
	TCase *t = tcase_create("environment");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_caller_without_any_gives_none, 0, WAYS);
	tcase_add_loop_test(t, what_is_given_takes_the_place_of_the_callers, 0, WAYS);
	tcase_add_loop_test(t, edits_set_and_remove, 0, sizeof edits / sizeof *edits);
	tcase_add_loop_test(t, the_same_string_may_stand_in_both_lists_and_twice, 0,
	                    WAYS);
	tcase_add_loop_test(t, bad_edits_start_nothing, 0, WAYS);
	tcase_add_loop_test(t, a_large_environment_is_edited_whole, 0, WAYS);
	tcase_add_loop_test(t, it_is_captured_at_the_spawn, 0, WAYS);
	tcase_add_loop_test(t, what_the_caller_sets_before_the_next_start_is_in_it, 0,
	                    WAYS);
	tcase_add_loop_test(t, neither_the_callers_nor_the_given_lists_are_changed, 0,
	                    WAYS);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "exec");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, by_default_it_is_the_callers_with_every_byte_in_order, 0,
	                    WAYS);
	return s;
}

RUN_SUITE(environment_suite)
