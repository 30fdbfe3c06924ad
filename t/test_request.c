/* test_request.c - what wean_spawn() refuses before anything is started. */
#define _GNU_SOURCE
#include "spawning.h"

#include "count.h"

/* ---- bad options ---- */

static const struct wean_fd null_fd = { .kind = WEAN_NULL, .target = 9 };
static const unsigned some_groups[] = { 1 };
static char *no_candidates[] = { NULL };
static char *one_candidate[] = { "/bin/true", NULL };
static char *empty_edit[] = { "A=1", "", NULL };
static char *nameless_edit[] = { "=1", NULL };

#define FDS .fds = &null_fd, .nfds = 1

/* All of them EINVAL at OPTIONS. */
static const struct bad_options {
	const char *what;
	struct wean_options opt;
	int index;
} bad_options[] = {
	{ "pgid without its flag", { .pgid = 1 }, -1 },
	{ "umask without its flag", { .umask = 022 }, -1 },
	{ "nice without its flag", { .nice = 1 }, -1 },
	{ "negative nice without its flag", { .nice = -1 }, -1 },
	{ "dirfd without its flag", { .dirfd = 3 }, -1 },
	{ "dirfd -1 without its flag", { .dirfd = -1 }, -1 },
	{ "dirfd with another flag", { .dirfd = 3, .flags = WEAN_NONBLOCK }, -1 },
	{ "ttyfd without its flag", { .ttyfd = 1 }, -1 },
	{ "cgroupfd without its flag", { .cgroupfd = 3 }, -1 },
	{ "uid without its flag", { .uid = 1 }, -1 },
	{ "uid with the flag of gid", { .uid = 1, .flags = WEAN_SET_GID }, -1 },
	{ "gid without its flag", { .gid = 1 }, -1 },
	{ "groups without their flag", { .groups = some_groups, .ngroups = 1 }, -1 },
	{ "groups alone", { .groups = some_groups }, -1 },
	{ "ngroups alone", { .ngroups = 1 }, -1 },
	{ "nfds without fds", { .nfds = 1 }, -1 },
	{ "nlimits without limits", { .nlimits = 1 }, -1 },
	{ "more fds than an index can count", { .fds = &null_fd, .nfds = INT_MAX }, -1 },
	{ "all the fds there can be", { .fds = &null_fd, .nfds = SIZE_MAX }, -1 },
	{ "file and candidates", { .file = "x", .candidates = one_candidate }, -1 },
	{ "no candidate", { .candidates = no_candidates }, -1 },
	{ "an empty edit", { .env_edit = empty_edit }, -1 },
	{ "an edit without a name", { .env_edit = nameless_edit }, -1 },

	{ "in -1", { .in = -1 }, 0 },
	{ "in MERGE", { .in = WEAN_MERGE }, 0 },
	{ "in DUP", { .in = WEAN_DUP }, 0 },
	{ "in KEEP", { .in = WEAN_KEEP }, 0 },
	{ "in OPEN", { .in = WEAN_OPEN }, 0 },
	{ "in SAME", { .in = WEAN_SAME }, 0 },
	{ "in unknown", { .in = 10, FDS }, 1 },
	{ "out MERGE", { .out = WEAN_MERGE }, 1 },
	{ "out DUP", { .out = WEAN_DUP, FDS }, 2 },
	{ "out INT_MIN", { .out = INT_MIN }, 1 },
	{ "err OPEN", { .err = WEAN_OPEN }, 2 },
	{ "err INT_MAX", { .err = INT_MAX, FDS }, 3 },
	{ "err MERGE into a closed out", { .out = WEAN_CLOSED, .err = WEAN_MERGE }, 2 },
};

START_TEST(bad_options_are_refused)
{
	const struct bad_options *row = &bad_options[_i];
	struct wean_child child;

	for (int i = 0; i < WAYS; i++) {
		struct wean_options opt = row->opt;
		opt.flags |= way(i);
		refused_as(&child, row->what, KID("exit", "0"), &opt,
		           (struct refusal){ EINVAL, WEAN_STAGE_OPTIONS, row->index });
	}
}
END_TEST

START_TEST(every_unknown_flag_is_refused)
{
	enum { UNUSED = 1 << 23 };
	const unsigned long long known = ((WEAN_EINTR << 1) - 1) & ~(unsigned)UNUSED;

	for (int bit = 0; bit < 64; bit++) {
		struct wean_options opt = { .flags = 1ULL << bit };
		if (!(known & opt.flags))
			refused(KID("exit", "0"), &opt, EINVAL, WEAN_STAGE_OPTIONS, -1);
	}
}
END_TEST

START_TEST(every_reserved_member_has_to_be_zero)
{
	const struct wean_options zero = { 0 };

	for (size_t i = 0; i < sizeof zero.reserved_int / sizeof(int); i++) {
		struct wean_options opt = zero;
		opt.reserved_int[i] = i % 2 ? -1 : 1;
		refused(KID("exit", "0"), &opt, EINVAL, WEAN_STAGE_OPTIONS, -1);
	}
	for (size_t i = 0; i < sizeof zero.reserved_ptr / sizeof(void *); i++) {
		struct wean_options opt = zero;
		opt.reserved_ptr[i] = &opt;
		refused(KID("exit", "0"), &opt, EINVAL, WEAN_STAGE_OPTIONS, -1);
	}
}
END_TEST

/* ---- bad entries ---- */

enum { NOT_OPEN = 77, SLOT = 9 };

#define DUP_7 { .kind = WEAN_DUP, .target = 7, .source = 1 }

/* The bad entry stands last.  All in one request would hide the later ones. */
static const struct bad_entries {
	const char *what;
	int error, stage;
	size_t n;
	struct wean_fd fds[3];
} bad_entries[] = {
#define BAD(what, ...) \
	{ what, EINVAL, WEAN_STAGE_OPTIONS, 2, { DUP_7, { __VA_ARGS__ } } }
	BAD("no kind", .target = SLOT),
	BAD("kind INHERIT", .kind = WEAN_INHERIT, .target = SLOT),
	BAD("kind PIPE", .kind = WEAN_PIPE, .target = SLOT),
	BAD("kind MERGE", .kind = WEAN_MERGE, .target = SLOT),
	BAD("kind 10", .kind = 10, .target = SLOT),
	BAD("kind -1", .kind = -1, .target = SLOT),
	BAD("target -1", .kind = WEAN_NULL, .target = -1),
	BAD("target INT_MIN", .kind = WEAN_CLOSED, .target = INT_MIN),
	BAD("DUP: reserved", .kind = WEAN_DUP, .target = SLOT, .reserved = 1),
	BAD("DUP: oflag", .kind = WEAN_DUP, .target = SLOT, .oflag = O_RDWR),
	BAD("DUP: mode", .kind = WEAN_DUP, .target = SLOT, .mode = 0600),
	BAD("DUP: path", .kind = WEAN_DUP, .target = SLOT, .path = "/"),
	BAD("KEEP: another source", .kind = WEAN_KEEP, .target = 1, .source = 2),
	BAD("KEEP: path", .kind = WEAN_KEEP, .target = 1, .path = "/"),
	BAD("NULL: source", .kind = WEAN_NULL, .target = SLOT, .source = 1),
	BAD("NULL: oflag", .kind = WEAN_NULL, .target = SLOT, .oflag = O_RDWR),
	BAD("CLOSED: source", .kind = WEAN_CLOSED, .target = SLOT, .source = 1),
	BAD("CLOSED: mode", .kind = WEAN_CLOSED, .target = SLOT, .mode = 1),
	BAD("SAME: path", .kind = WEAN_SAME, .target = SLOT, .source = 1, .path = "/"),
	BAD("OPEN: no path", .kind = WEAN_OPEN, .target = SLOT),
	BAD("OPEN: source", .kind = WEAN_OPEN, .target = SLOT, .source = 1, .path = "/"),
	BAD("OPEN: reserved", .kind = WEAN_OPEN, .target = SLOT, .path = "/",
	    .reserved = -1),
	BAD("a target twice", .kind = WEAN_NULL, .target = 7),
	BAD("SAME as itself", .kind = WEAN_SAME, .target = SLOT, .source = SLOT),
	BAD("SAME as one that is not there", .kind = WEAN_SAME, .target = SLOT,
	    .source = NOT_OPEN),
	BAD("SAME as -1", .kind = WEAN_SAME, .target = SLOT, .source = -1),
	{ "a target thrice", EINVAL, WEAN_STAGE_OPTIONS, 3,
	  { { .kind = WEAN_NULL, .target = SLOT }, DUP_7,
	    { .kind = WEAN_KEEP, .target = SLOT } } },
	{ "SAME as a closed one", EINVAL, WEAN_STAGE_OPTIONS, 2,
	  { { .kind = WEAN_CLOSED, .target = 8 },
	    { .kind = WEAN_SAME, .target = SLOT, .source = 8 } } },
#define GONE(what, ...) { what, EBADF, WEAN_STAGE_FD, 2, { DUP_7, { __VA_ARGS__ } } }
	GONE("DUP: not open", .kind = WEAN_DUP, .target = SLOT, .source = NOT_OPEN),
	GONE("DUP: -1", .kind = WEAN_DUP, .target = SLOT, .source = -1),
	GONE("DUP: INT_MAX", .kind = WEAN_DUP, .target = SLOT, .source = INT_MAX),
	GONE("KEEP: not open", .kind = WEAN_KEEP, .target = NOT_OPEN),
	GONE("DUP onto INT_MAX", .kind = WEAN_DUP, .target = INT_MAX, .source = 1),
	GONE("NULL onto INT_MAX", .kind = WEAN_NULL, .target = INT_MAX),
	GONE("OPEN onto INT_MAX", .kind = WEAN_OPEN, .target = INT_MAX, .path = "/"),
	GONE("SAME onto INT_MAX", .kind = WEAN_SAME, .target = INT_MAX, .source = 1),
};

START_TEST(bad_entries_are_refused_with_their_index)
{
	const struct bad_entries *row = &bad_entries[_i];
	struct wean_child child;

	for (int i = 0; i < WAYS; i++) {
		struct wean_options opt = { .fds = row->fds, .nfds = row->n,
		                            .flags = way(i) };
		refused_as(&child, row->what, KID("exit", "0"), &opt,
		           (struct refusal){ row->error, row->stage, (int)row->n - 1 });
	}
}
END_TEST

START_TEST(a_ring_of_same_is_refused)
{
	const struct wean_fd ring[] = {
		{ .kind = WEAN_SAME, .target = 7, .source = 8 },
		{ .kind = WEAN_SAME, .target = 8, .source = 9 },
		{ .kind = WEAN_SAME, .target = 9, .source = 7 },
	};
	struct wean_options opt = { .fds = ring, .nfds = 3, .flags = way(_i) };

	refused(KID("exit", "0"), &opt, EINVAL, WEAN_STAGE_OPTIONS, 0);
}
END_TEST

START_TEST(in_and_an_entry_for_0_exclude_each_other)
{
	for (int fd = 0; fd <= 2; fd++) {
		const struct wean_fd entry = { .kind = WEAN_NULL, .target = fd };
		const int kinds[] = { WEAN_INHERIT, WEAN_NULL, WEAN_PIPE, WEAN_CLOSED };
		for (size_t i = 0; i < 4; i++) {
			struct wean_options opt = { .fds = &entry, .nfds = 1 };
			*(fd == 0 ? &opt.in : fd == 1 ? &opt.out : &opt.err) = kinds[i];
			refused(KID("exit", "0"), &opt, EINVAL, WEAN_STAGE_OPTIONS,
			        1 + fd);
		}
	}
}
END_TEST

START_TEST(a_target_at_the_limit_is_refused_and_one_below_is_not)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 100;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	struct wean_fd fd = { .kind = WEAN_DUP, .target = 100, .source = 1 };
	struct wean_options opt = { .fds = &fd, .nfds = 1, .flags = way(_i) };
	refused(KID("exit", "0"), &opt, EBADF, WEAN_STAGE_FD, 0);
	fd.target = 99;
	struct report *r = kid_report(&opt);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 99");
	report_free(r);
}
END_TEST

/* ---- nothing was started ---- */

static int all_the_bad_requests(void *arg)
{
	struct wean_child child;
	int error = 0;

	(void)arg;
	count_begin();
	for (size_t i = 0; i < sizeof bad_options / sizeof *bad_options; i++)
		error |= !wean_spawn(&child, KID("exit", "0"), &bad_options[i].opt);
	for (size_t i = 0; i < sizeof bad_entries / sizeof *bad_entries; i++) {
		const struct bad_entries *row = &bad_entries[i];
		struct wean_options opt = { .fds = row->fds, .nfds = row->n,
		                            .in = WEAN_PIPE };
		error |= !wean_spawn(&child, KID("exit", "0"), &opt);
	}
	count_end();
	return error;
}

START_TEST(no_bad_request_makes_a_process_or_a_pipe)
{
	struct count c;
	int error = count_calls(&c, all_the_bad_requests, NULL);

	if (error == ENOTSUP || error == EPERM)
		SKIP("cannot trace: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(c.children, 0);
	ck_assert_uint_eq(count_of(&c, COUNT_BOTH, SYS_clone3), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_BOTH, SYS_clone), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_BOTH, SYS_pipe2), 0);
	/* The counter was awake: sources are asked about. */
	ck_assert_uint_gt(count_of(&c, COUNT_PARENT, SYS_fcntl), 0);
	count_free(&c);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *request_suite(void)
{
	Suite *s = suite_create("request");
	TCase *t = tcase_create("request");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, bad_options_are_refused, 0,
	                    sizeof bad_options / sizeof *bad_options);
	tcase_add_test(t, every_unknown_flag_is_refused);
	tcase_add_test(t, every_reserved_member_has_to_be_zero);
	tcase_add_loop_test(t, bad_entries_are_refused_with_their_index, 0,
	                    sizeof bad_entries / sizeof *bad_entries);
	tcase_add_loop_test(t, a_ring_of_same_is_refused, 0, WAYS);
	tcase_add_test(t, in_and_an_entry_for_0_exclude_each_other);
	tcase_add_loop_test(t, a_target_at_the_limit_is_refused_and_one_below_is_not, 0,
	                    WAYS);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "ptrace");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, no_bad_request_makes_a_process_or_a_pipe);
	return s;
}

RUN_SUITE(request_suite)
