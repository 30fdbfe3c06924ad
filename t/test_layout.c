/* test_layout.c - wean_layout() against the compiler; t/coverage.sh compares the list
   below with the header. */
#define _GNU_SOURCE
#include "common.h"

#include <stddef.h>

#define WHOLE(type) { #type, sizeof(struct type), 0, 0 }
#define MEMBER(type, member) \
	{ #type "." #member, offsetof(struct type, member), \
	  sizeof ((struct type *)0)->member, 1 }

static const struct entry {
	const char *name;
	size_t value, size;
	int is_member;
} entries[] = {
	WHOLE(wean_fd),
	MEMBER(wean_fd, kind),
	MEMBER(wean_fd, target),
	MEMBER(wean_fd, source),
	MEMBER(wean_fd, oflag),
	MEMBER(wean_fd, mode),
	MEMBER(wean_fd, reserved),
	MEMBER(wean_fd, path),

	WHOLE(wean_limit),
	MEMBER(wean_limit, resource),
	MEMBER(wean_limit, reserved),
	MEMBER(wean_limit, soft),
	MEMBER(wean_limit, hard),

	WHOLE(wean_options),
	MEMBER(wean_options, flags),
	MEMBER(wean_options, sigmask),
	MEMBER(wean_options, sigdefault),
	MEMBER(wean_options, sigignore),
	MEMBER(wean_options, in),
	MEMBER(wean_options, out),
	MEMBER(wean_options, err),
	MEMBER(wean_options, pgid),
	MEMBER(wean_options, umask),
	MEMBER(wean_options, nice),
	MEMBER(wean_options, pdeathsig),
	MEMBER(wean_options, dirfd),
	MEMBER(wean_options, ttyfd),
	MEMBER(wean_options, cgroupfd),
	MEMBER(wean_options, uid),
	MEMBER(wean_options, gid),
	MEMBER(wean_options, reserved_int),
	MEMBER(wean_options, file),
	MEMBER(wean_options, candidates),
	MEMBER(wean_options, env),
	MEMBER(wean_options, env_edit),
	MEMBER(wean_options, dir),
	MEMBER(wean_options, fds),
	MEMBER(wean_options, nfds),
	MEMBER(wean_options, groups),
	MEMBER(wean_options, ngroups),
	MEMBER(wean_options, limits),
	MEMBER(wean_options, nlimits),
	MEMBER(wean_options, reserved_ptr),

	WHOLE(wean_child),
	MEMBER(wean_child, pid),
	MEMBER(wean_child, pidfd),
	MEMBER(wean_child, in),
	MEMBER(wean_child, out),
	MEMBER(wean_child, err),
	MEMBER(wean_child, stage),
	MEMBER(wean_child, index),
	MEMBER(wean_child, method),
	MEMBER(wean_child, opaque),

	WHOLE(wean_status),
	MEMBER(wean_status, kind),
	MEMBER(wean_status, value),
	MEMBER(wean_status, core),
	MEMBER(wean_status, code),
	MEMBER(wean_status, user_us),
	MEMBER(wean_status, system_us),
	MEMBER(wean_status, maxrss_kb),
	MEMBER(wean_status, reserved),

	WHOLE(wean_io),
	MEMBER(wean_io, input),
	MEMBER(wean_io, input_len),
	MEMBER(wean_io, out_max),
	MEMBER(wean_io, err_max),
	MEMBER(wean_io, on_out),
	MEMBER(wean_io, on_err),
	MEMBER(wean_io, context),
	MEMBER(wean_io, timeout_ms),
	MEMBER(wean_io, grace_ms),
	MEMBER(wean_io, linger_ms),
	MEMBER(wean_io, flags),
	MEMBER(wean_io, reserved_int),
	MEMBER(wean_io, reserved_ptr),

	WHOLE(wean_result),
	MEMBER(wean_result, child),
	MEMBER(wean_result, status),
	MEMBER(wean_result, out),
	MEMBER(wean_result, out_len),
	MEMBER(wean_result, err),
	MEMBER(wean_result, err_len),
	MEMBER(wean_result, in_written),
	MEMBER(wean_result, opaque),
	MEMBER(wean_result, flags),
	MEMBER(wean_result, reserved),
};

enum { ENTRIES = sizeof entries / sizeof *entries };

static const size_t unknown = (size_t)-1;

START_TEST(every_struct_and_member_has_its_place)
{
	errno = BASELINE_ERRNO;
	for (size_t i = 0; i < ENTRIES; i++) {
		size_t value = wean_layout(entries[i].name);
		ck_assert_msg(value == entries[i].value, "%s: %zu, not %zu",
		              entries[i].name, value, entries[i].value);
	}
	ck_assert_int_eq(errno, BASELINE_ERRNO);
}
END_TEST

/* So a foreign-function interface may lay them out by hand. */
START_TEST(no_struct_has_a_gap)
{
	size_t end = 0, size = 0;

	for (size_t i = 0; i < ENTRIES; i++) {
		const struct entry *e = &entries[i];
		if (!e->is_member) {
			ck_assert_msg(end == size, "a gap before %s", e->name);
			end = 0;
			size = e->value;
		} else {
			ck_assert_msg(e->value == end, "a gap before %s", e->name);
			end += e->size;
		}
	}
	ck_assert_uint_eq(end, size);
}
END_TEST

START_TEST(what_is_not_a_name_is_unknown)
{
	static const char *const names[] = {
		"", ".", "wean", "wean_", "wean_f", "wean_fdx", "wean_fd.", "wean_fd.pat",
		"wean_fd.paths", "wean_fd.path.", "wean_fd.path ", " wean_fd", "wean_fd ",
		"wean_fd.soft", "fd", "path", ".path", "struct wean_fd", "WEAN_FD",
		"wean_options.", "wean_options.reserved", "wean_options.reserved_int[0]",
		"wean_option", "wean_child.status", "wean_spawn", "wean_fd.path\n",
	};

	errno = BASELINE_ERRNO;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		ck_assert_msg(wean_layout(names[i]) == unknown, "'%s'", names[i]);
	ck_assert_uint_eq(wean_layout(NULL), unknown);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
}
END_TEST

static void assert_no_other(const char *text)
{
	for (size_t i = 0; i < ENTRIES; i++)
		if (strcmp(text, entries[i].name) == 0)
			return;
	ck_assert_msg(wean_layout(text) == unknown, "%s", text);
}

START_TEST(no_name_is_taken_for_a_longer_or_shorter_one)
{
	char text[64];

	for (size_t i = 0; i < ENTRIES; i++) {
		snprintf(text, sizeof text, "%ss", entries[i].name);
		assert_no_other(text);
		text[strlen(text) - 2] = '\0';
		assert_no_other(text);
	}
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *layout_suite(void)
{
	Suite *s = suite_create("layout");
	TCase *t = tcase_create("layout");

	tcase_add_test(t, every_struct_and_member_has_its_place);
	tcase_add_test(t, no_struct_has_a_gap);
	tcase_add_test(t, what_is_not_a_name_is_unknown);
	tcase_add_test(t, no_name_is_taken_for_a_longer_or_shorter_one);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(layout_suite)
