/* test_limits.c - umask, nice value and resource limits of a child. */
#define _GNU_SOURCE
#include "attributes.h"
#include "descriptors.h"

enum { USER = 4242 };

static void make_kid(void)
{
	scratch_make();
	free(copy_kid("kid", 0755));
}

/* ---- umask ---- */

static const int masks[] = { 0, 022, 027, 077, 0123, 0777 };

START_TEST(the_umask_is_the_one_that_was_set_else_the_callers)
{
	char want[8];
	struct wean_options opt = { .flags = WEAN_SET_UMASK | way(_i) };

	umask(031);
	for (size_t i = 0; i < COUNT(masks); i++) {
		opt.umask = masks[i];
		snprintf(want, sizeof want, "0%03o", (unsigned)masks[i]);
		reports(&opt, "umask", want);
	}
	reports(&(struct wean_options){ .flags = way(_i) }, "umask", "0031");
}
END_TEST

START_TEST(files_are_opened_under_the_callers_umask)
{
	const struct wean_fd fds[] = {
		{ .kind = WEAN_OPEN, .target = 7, .path = at("plain"),
		  .oflag = O_WRONLY | O_CREAT },
		{ .kind = WEAN_OPEN, .target = 8, .path = at("moded"), .mode = 0777,
		  .oflag = O_WRONLY | O_CREAT },
	};
	struct wean_options opt = { .fds = fds, .nfds = 2,
	                            .flags = WEAN_SET_UMASK | way(_i) };
	struct stat st;

	umask(027);
	for (size_t i = 0; i < COUNT(masks); i++) {
		opt.umask = masks[i];
		ck_assert_int_eq(run(KID("exit", "5"), &opt), 5);
		ck_assert_int_eq(stat(fds[0].path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0640);
		ck_assert_int_eq(stat(fds[1].path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0750);
		ck_assert_int_eq(unlink(fds[0].path) | unlink(fds[1].path), 0);
	}
}
END_TEST

/* ---- nice ---- */

/* The rest of the test runs at this nice value: 5, or what a user may not lower. */
static int be_nice(void)
{
	int now = getpriority(PRIO_PROCESS, 0), nice = now > 5 ? now : 5;

	ck_assert_int_eq(setpriority(PRIO_PROCESS, 0, nice), 0);
	return nice;
}

static void reports_nice(const struct wean_options *opt, int nice)
{
	char want[12];

	snprintf(want, sizeof want, "%d", nice);
	reports(opt, "nice", want);
}

START_TEST(the_nice_value_is_absolute_else_the_callers)
{
	int nice = be_nice(), least = may_lower_nice() ? -20 : nice;
	const int values[] = { 19, nice, 0, -1, -20 };
	struct wean_options opt = { .flags = WEAN_SET_NICE | way(_i) };

	reports_nice(&(struct wean_options){ .flags = way(_i) }, nice);
	for (size_t i = 0; i < COUNT(values) && values[i] >= least; i++) {
		opt.nice = values[i];
		reports_nice(&opt, values[i]);
	}
}
END_TEST

START_TEST(a_nice_value_that_a_user_may_not_set_is_told)
{
	const struct rlimit none = { 0, 0 };
	struct wean_options opt = { .flags = WEAN_SET_NICE | way(_i) };
	int nice = be_nice();
	const int values[] = { -20, -1, 0, nice - 1 };

	setrlimit(RLIMIT_NICE, &none);
	become_nobody();
	for (size_t i = 0; i < COUNT(values); i++) {
		opt.nice = values[i];
		refused_saying(&opt, (struct refusal){ EACCES, WEAN_STAGE_NICE, -1 },
		               "cannot set the nice value: Permission denied");
	}
	opt.nice = 19;
	opt.file = at("kid");
	reports_nice(&opt, 19);
}
END_TEST

/* ---- values that make no sense ---- */

static const struct wean_options bad_values[] = {
	{ .umask = 022 }, { .umask = -1 }, { .umask = 01000 },
	{ .umask = 01000, .flags = WEAN_SET_UMASK },
	{ .umask = 07777, .flags = WEAN_SET_UMASK },
	{ .umask = -1, .flags = WEAN_SET_UMASK },
	{ .umask = INT_MIN, .flags = WEAN_SET_UMASK },
	{ .nice = 1 }, { .nice = -1 },
	{ .nice = 20, .flags = WEAN_SET_NICE },
	{ .nice = -21, .flags = WEAN_SET_NICE },
	{ .nice = INT_MAX, .flags = WEAN_SET_NICE },
	{ .nice = INT_MIN, .flags = WEAN_SET_NICE },
	{ .nlimits = 1 },
	{ .nlimits = SIZE_MAX, .limits = (const struct wean_limit[]){ { 0 } } },
};

START_TEST(values_that_make_no_sense_are_refused)
{
	refused_as_invalid(&bad_values[_i]);
}
END_TEST

/* ---- limits ---- */

#define LIMITS(...) .limits = (const struct wean_limit[]){ __VA_ARGS__ }, \
	.nlimits = COUNT(((const struct wean_limit[]){ __VA_ARGS__ }))
#define LIMIT(r, s, h) { .resource = (r), .soft = (s), .hard = (h) }
#define UNLIMITED (~0ULL)

static void has_limit(const struct report *r, int resource, unsigned long long soft,
                      unsigned long long hard)
{
	unsigned long long is[2];

	report_limit(r, resource, &is[0], &is[1]);
	ck_assert_uint_eq(is[0], soft);
	ck_assert_uint_eq(is[1], hard);
}

/* All but the n resources are the caller's. */
static void other_limits_are_the_callers(const struct report *r, const int *but, int n)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct limits limit = limit_of(i);
		int named = 0;
		for (int k = 0; k < n; k++)
			named |= but[k] == i;
		if (!named)
			has_limit(r, i, limit.soft, limit.hard);
	}
}

START_TEST(without_limits_all_are_the_callers)
{
	const struct wean_options opt = { .flags = way(_i) };
	const struct rlimit few = { 100, 200 };

	setrlimit(RLIMIT_NOFILE, &few);
	struct report *r = reported(&opt);
	other_limits_are_the_callers(r, NULL, 0);
	report_free(r);
}
END_TEST

START_TEST(several_limits_are_set_and_the_others_left)
{
	const int set[] = { RLIMIT_CORE, RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE };
	const struct wean_options opt = {
		LIMITS(LIMIT(RLIMIT_NOFILE, 60, 70), LIMIT(RLIMIT_CORE, 0, 0),
		       LIMIT(RLIMIT_CPU, 1000, UNLIMITED),
		       LIMIT(RLIMIT_FSIZE, 5ULL << 32, 6ULL << 40)),
		.flags = way(_i),
	};
	struct rlimit cpu, size;

	getrlimit(RLIMIT_CPU, &cpu);
	getrlimit(RLIMIT_FSIZE, &size);
	if (cpu.rlim_max != RLIM_INFINITY || size.rlim_max != RLIM_INFINITY)
		SKIP("the caller itself is limited");
	struct report *r = reported(&opt);
	has_limit(r, RLIMIT_NOFILE, 60, 70);
	has_limit(r, RLIMIT_CORE, 0, 0);
	has_limit(r, RLIMIT_CPU, 1000, UNLIMITED);
	has_limit(r, RLIMIT_FSIZE, 5ULL << 32, 6ULL << 40);
	other_limits_are_the_callers(r, set, COUNT(set));
	report_free(r);
}
END_TEST

START_TEST(a_soft_limit_may_be_lifted_to_unlimited)
{
	const struct wean_options opt = {
		LIMITS(LIMIT(RLIMIT_CPU, UNLIMITED, UNLIMITED)), .flags = way(_i),
	};
	struct rlimit cpu;

	getrlimit(RLIMIT_CPU, &cpu);
	if (cpu.rlim_max != RLIM_INFINITY)
		SKIP("the caller itself is limited");
	cpu.rlim_cur = 1000;
	setrlimit(RLIMIT_CPU, &cpu);
	struct report *r = reported(&opt);
	has_limit(r, RLIMIT_CPU, UNLIMITED, UNLIMITED);
	report_free(r);
}
END_TEST

START_TEST(limits_are_set_in_their_order)
{
	const struct wean_options opt = {
		LIMITS(LIMIT(RLIMIT_NOFILE, 100, 110), LIMIT(RLIMIT_NOFILE, 50, 60)),
		.flags = way(_i),
	};
	struct report *r = reported(&opt);

	has_limit(r, RLIMIT_NOFILE, 50, 60);
	report_free(r);
}
END_TEST

/* The loader and kid's report need a few numbers. */
START_TEST(a_limit_of_descriptors_takes_none_that_was_placed)
{
	const struct wean_options opt = {
		FDS(DUP(40, 1), NUL(41), OPEN(42, "/dev/zero"), SAME(43, 40)),
		LIMITS(LIMIT(RLIMIT_NOFILE, 8, 8)), .flags = way(_i),
	};
	struct report *r = reported(&opt);

	has_limit(r, RLIMIT_NOFILE, 8, 8);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 40 41 42 43");
	report_free(r);
}
END_TEST

static const struct bad_limit {
	struct wean_options opt;
	int error, index;
	const char *sentence;
} bad_limits[] = {
	{ { LIMITS(LIMIT(RLIMIT_NOFILE, 70, 60)) }, EINVAL, 0,
	  "cannot set resource limit 7 to 70:60: Invalid argument" },
	{ { LIMITS(LIMIT(RLIMIT_NOFILE, 60, 70), LIMIT(RLIMIT_CORE, 1, 0)) }, EINVAL, 1,
	  "cannot set resource limit 4 to 1:0: Invalid argument" },
	{ { LIMITS(LIMIT(RLIMIT_CPU, UNLIMITED, 99)) }, EINVAL, 0,
	  "cannot set resource limit 0 to unlimited:99: Invalid argument" },
	{ { LIMITS(LIMIT(RLIMIT_CORE, 0, 0), LIMIT(RLIMIT_CPU, 1000, UNLIMITED),
	           LIMIT(99, 1, 2)) }, EINVAL, 2,
	  "cannot set resource limit 99 to 1:2: Invalid argument" },
	{ { LIMITS(LIMIT(-1, 0, UNLIMITED)) }, EINVAL, 0,
	  "cannot set resource limit -1 to 0:unlimited: Invalid argument" },
	/* beyond what the kernel has for anybody */
	{ { LIMITS(LIMIT(RLIMIT_NOFILE, 60, UNLIMITED)) }, EPERM, 0,
	  "cannot set resource limit 7 to 60:unlimited: Operation not permitted" },
};

START_TEST(a_limit_that_is_not_taken_is_told_by_its_index)
{
	const struct bad_limit *row = &bad_limits[_i];

	for (int i = 0; i < WAYS; i++) {
		struct wean_options opt = row->opt;
		opt.flags |= way(i);
		refused_saying(&opt, (struct refusal){ row->error, WEAN_STAGE_LIMIT,
		                                       row->index }, row->sentence);
	}
}
END_TEST

START_TEST(a_user_may_not_raise_a_hard_limit)
{
	const struct rlimit few = { 60, 70 };
	const struct wean_options opt = {
		LIMITS(LIMIT(RLIMIT_CORE, 0, 0), LIMIT(RLIMIT_NOFILE, 70, 71)),
		.flags = way(_i),
	};

	setrlimit(RLIMIT_NOFILE, &few);
	become_nobody();
	refused_saying(&opt, (struct refusal){ EPERM, WEAN_STAGE_LIMIT, 1 },
	               "cannot set resource limit 7 to 70:71: Operation not permitted");
}
END_TEST

/* For a child that is not root's any more; where even root may not, it is told. */
START_TEST(a_hard_limit_is_raised_before_the_ids_change)
{
	const struct rlimit few = { 60, 70 }, more = { 80, 90 };
	struct wean_options opt = {
		LIMITS(LIMIT(RLIMIT_NOFILE, 80, 90)), .uid = USER, .file = at("kid"),
		.flags = WEAN_SET_UID | way(_i),
	};

	if (geteuid() != 0)
		SKIP("needs root");
	setrlimit(RLIMIT_NOFILE, &few);
	if (setrlimit(RLIMIT_NOFILE, &more)) {
		refused_saying(&opt, (struct refusal){ EPERM, WEAN_STAGE_LIMIT, 0 },
		               "cannot set resource limit 7 to 80:90: "
		               "Operation not permitted");
		return;
	}
	setrlimit(RLIMIT_NOFILE, &few);
	struct report *r = reported(&opt);
	has_limit(r, RLIMIT_NOFILE, 80, 90);
	ck_assert_str_eq(report_value(r, "uid"), "4242 4242 4242");
	report_free(r);
}
END_TEST

START_TEST(a_reserved_member_of_a_limit_has_to_be_zero)
{
	struct wean_limit limits[] = { LIMIT(RLIMIT_CORE, 0, 0), LIMIT(RLIMIT_CPU, 9, 9),
	                               LIMIT(RLIMIT_NOFILE, 9, 9) };
	const struct wean_options opt = { .limits = limits, .nlimits = 3,
	                                  .flags = way(_i) };

	for (int i = 0; i < 3; i++) {
		char sentence[100];
		limits[i].reserved = i % 2 ? -1 : 1;
		snprintf(sentence, sizeof sentence,
		         "entry %d of limits has a reserved member set: "
		         "Invalid argument", i);
		refused_saying(&opt, (struct refusal){ EINVAL, WEAN_STAGE_OPTIONS, i },
		               sentence);
		limits[i].reserved = 0;
	}
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *limits_suite(void)
{
	Suite *s = suite_create("limits");
	TCase *t = tcase_create("umask and nice");

	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, the_umask_is_the_one_that_was_set_else_the_callers, 0,
	                    WAYS);
	tcase_add_loop_test(t, files_are_opened_under_the_callers_umask, 0, WAYS);
	tcase_add_loop_test(t, the_nice_value_is_absolute_else_the_callers, 0, WAYS);
	tcase_add_loop_test(t, a_nice_value_that_a_user_may_not_set_is_told, 0, WAYS);
	tcase_add_loop_test(t, values_that_make_no_sense_are_refused, 0,
	                    COUNT(bad_values));
	suite_add_tcase(s, t);

	t = tcase_create("limits");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, a_soft_limit_may_be_lifted_to_unlimited, 0, WAYS);
	tcase_add_loop_test(t, a_user_may_not_raise_a_hard_limit, 0, WAYS);
	tcase_add_loop_test(t, a_reserved_member_of_a_limit_has_to_be_zero, 0, WAYS);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "root");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, a_hard_limit_is_raised_before_the_ids_change, 0, WAYS);

	t = case_that_needs(s, "table");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, without_limits_all_are_the_callers, 0, WAYS);
	tcase_add_loop_test(t, several_limits_are_set_and_the_others_left, 0, WAYS);
	tcase_add_loop_test(t, limits_are_set_in_their_order, 0, WAYS);
	tcase_add_loop_test(t, a_limit_of_descriptors_takes_none_that_was_placed, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_limit_that_is_not_taken_is_told_by_its_index, 0,
	                    COUNT(bad_limits));
	return s;
}

RUN_SUITE(limits_suite)
