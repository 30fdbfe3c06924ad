/* test_identity.c - whose rights a child has: ids, groups, no-new-privs. */
#define _GNU_SOURCE
#include <sys/statvfs.h>

#include "attributes.h"

enum { USER = 4242, GROUP = 4343 };

/* Only root's caller can be asked for all that; in a user namespace that has not all
   ids some are not there. */
#define NEEDS_ROOT() \
	do { \
		if (geteuid() != 0 || !has_all_ids()) \
			SKIP("needs root, and all ids"); \
	} while (0)

static int has_all_ids(void)
{
	char line[64];
	unsigned first = 1, outer, n = 0;

	read_line("/proc/self/uid_map", "", line, sizeof line);
	return sscanf(line, "%u %u %u", &first, &outer, &n) == 3 && !first && n == ~0U;
}

/* A program that any user may run; the one in the build's tree may be out of reach. */
static char *open_kid(void)
{
	return at("kid");
}

static void make_kid(void)
{
	scratch_make();
	free(copy_kid("kid", 0755));
}

static const char *method_of(const struct wean_options *opt)
{
	struct wean_child child;

	start(&child, KID("exit", "0"), opt);
	finish(&child);
	return wean_method_name(child.method);
}

/* ---- ids ---- */

static const unsigned ids[] = { 0, 1, USER, 65534, 65535, 65536, 0x7fffffff, 0x80000000,
                                0xfffffffe };

static void three(char *text, unsigned id)
{
	sprintf(text, "%u %u %u", id, id, id);
}

START_TEST(a_child_gets_the_uid_and_only_that)
{
	char want[40];
	struct wean_options opt = { .flags = WEAN_SET_UID, .uid = ids[_i],
	                            .file = open_kid() };

	NEEDS_ROOT();
	three(want, ids[_i]);
	struct report *r = reported(&opt);
	ck_assert_str_eq(report_value(r, "uid"), want);
	ck_assert_str_eq(report_value(r, "gid"), "0 0 0");
	report_free(r);
}
END_TEST

START_TEST(a_child_gets_the_gid_and_only_that)
{
	char want[40];
	struct wean_options opt = { .flags = WEAN_SET_GID, .gid = ids[_i],
	                            .file = open_kid() };

	NEEDS_ROOT();
	three(want, ids[_i]);
	struct report *r = reported(&opt);
	ck_assert_str_eq(report_value(r, "gid"), want);
	ck_assert_str_eq(report_value(r, "uid"), "0 0 0");
	report_free(r);
}
END_TEST

/* The caller as it stands at the end: real root, effective a user, saved root. */
START_TEST(all_three_ids_change_whatever_the_callers_were)
{
	struct wean_options opt = { .file = open_kid() };

	NEEDS_ROOT();
	ck_assert_int_eq(setresgid(0, GROUP, 0), 0);
	ck_assert_int_eq(setresuid(0, USER, 0), 0);
	reports(&opt, "uid", "0 4242 4242"); /* as execve(2) has it */
	opt.flags = WEAN_SET_UID | WEAN_SET_GID;
	struct report *r = reported(&opt);
	ck_assert_str_eq(report_value(r, "uid"), "0 0 0");
	ck_assert_str_eq(report_value(r, "gid"), "0 0 0");
	report_free(r);
	opt.uid = USER;
	opt.gid = GROUP;
	r = reported(&opt);
	ck_assert_str_eq(report_value(r, "uid"), "4242 4242 4242");
	ck_assert_str_eq(report_value(r, "gid"), "4343 4343 4343");
	report_free(r);
	setresuid(0, 0, 0); /* a leak checker may trace only who is one user */
}
END_TEST

static const unsigned some_groups[] = { 5, 77, 65536, 0x80000000, 0xfffffffe };

START_TEST(a_child_gets_the_groups_none_or_the_callers)
{
	const gid_t callers[] = { 7, 8 };
	struct wean_options opt = { .file = open_kid() };

	NEEDS_ROOT();
	ck_assert_int_eq(setgroups(2, callers), 0);
	reports(&opt, "groups", "2 7 8");
	opt.flags = WEAN_SET_UID | WEAN_SET_GID;
	reports(&opt, "groups", "2 7 8");
	opt.flags |= WEAN_SET_GROUPS;
	reports(&opt, "groups", "0");
	opt.flags = WEAN_SET_GROUPS;
	reports(&opt, "groups", "0");
	opt.groups = some_groups;
	reports(&opt, "groups", "0");
	opt.ngroups = 1;
	reports(&opt, "groups", "1 5");
	opt.ngroups = 5;
	reports(&opt, "groups", "5 5 77 65536 2147483648 4294967294");
}
END_TEST

START_TEST(root_becomes_a_user_with_groups_of_its_own)
{
	struct wean_options opt = {
		.flags = WEAN_SET_UID | WEAN_SET_GID | WEAN_SET_GROUPS | way(_i),
		.uid = USER, .gid = GROUP, .groups = some_groups, .ngroups = 2,
		.file = open_kid(),
	};

	NEEDS_ROOT();
	struct report *r = reported(&opt);
	ck_assert_str_eq(report_value(r, "uid"), "4242 4242 4242");
	ck_assert_str_eq(report_value(r, "gid"), "4343 4343 4343");
	ck_assert_str_eq(report_value(r, "groups"), "2 5 77");
	ck_assert_int_eq(report_number(r, "dumpable"), 1);
	report_free(r);
	char *text = output(KID("echo", "I", "run"), &opt);
	ck_assert_str_eq(text, "I run\n");
	free(text);
}
END_TEST

/* A change of ids makes the memory undumpable that it is made in. */
START_TEST(who_changes_ids_does_not_share_the_callers_memory)
{
	const unsigned long long each[] = { WEAN_SET_UID, WEAN_SET_GID, WEAN_SET_GROUPS };
	const struct wean_options plain = { 0 };
	const struct wean_options copied = { .flags = WEAN_NO_SHARED_MEMORY };
	const char *copy = method_of(&copied);

	NEEDS_ROOT();
	if (strncmp(method_of(&plain), "clone3+", 7) == 0)
		ck_assert_str_eq(copy, "clone3copy+unshare");
	ck_assert_str_ne(copy, method_of(&plain));
	for (int i = 0; i < 3; i++) {
		const struct wean_options opt = { .flags = each[i], .uid = 0, .gid = 0 };
		ck_assert_str_eq(method_of(&opt), copy);
	}
	ck_assert_int_eq(prctl(PR_GET_DUMPABLE), 1);
}
END_TEST

/* ---- refused ---- */

static const struct wean_options bad_ids[] = {
	{ .flags = WEAN_SET_UID, .uid = ~0U },
	{ .flags = WEAN_SET_GID, .gid = ~0U },
	{ .flags = WEAN_SET_UID | WEAN_SET_GID, .uid = 1, .gid = ~0U },
	{ .uid = USER },
	{ .gid = GROUP },
	{ .uid = ~0U },
	{ .uid = USER, .flags = WEAN_SET_GID | WEAN_SET_GROUPS },
	{ .gid = GROUP, .flags = WEAN_SET_UID | WEAN_SET_GROUPS },
	{ .groups = some_groups, .ngroups = 1, .flags = WEAN_SET_GID | WEAN_SET_UID },
	{ .groups = some_groups },
	{ .ngroups = 1 },
	{ .ngroups = 1, .flags = WEAN_SET_GROUPS },
	{ .ngroups = SIZE_MAX, .groups = some_groups, .flags = WEAN_SET_GROUPS },
};

START_TEST(ids_that_make_no_sense_are_refused)
{
	refused_as_invalid(&bad_ids[_i]);
}
END_TEST

static const struct no_right {
	struct wean_options opt;
	int index;
	const char *sentence;
} no_rights[] = {
	{ { .flags = WEAN_SET_GROUPS }, 0,
	  "cannot set the supplementary groups: Operation not permitted" },
	{ { .flags = WEAN_SET_GROUPS, .groups = some_groups, .ngroups = 1 }, 0,
	  "cannot set the supplementary groups: Operation not permitted" },
	{ { .flags = WEAN_SET_GID }, 1,
	  "cannot become group 0: Operation not permitted" },
	{ { .flags = WEAN_SET_GID, .gid = 0xfffffffe }, 1,
	  "cannot become group 4294967294: Operation not permitted" },
	{ { .flags = WEAN_SET_UID }, 2,
	  "cannot become user 0: Operation not permitted" },
	{ { .flags = WEAN_SET_UID, .uid = 0x80000000 }, 2,
	  "cannot become user 2147483648: Operation not permitted" },
	{ { .flags = WEAN_SET_UID | WEAN_SET_GID }, 1,
	  "cannot become group 0: Operation not permitted" },
	{ { .flags = WEAN_SET_UID | WEAN_SET_GID | WEAN_SET_GROUPS }, 0,
	  "cannot set the supplementary groups: Operation not permitted" },
};

START_TEST(a_caller_without_rights_is_refused)
{
	const struct no_right *row = &no_rights[_i];
	struct wean_options opt = row->opt;

	become_nobody();
	refused_saying(&opt, (struct refusal){ EPERM, WEAN_STAGE_IDS, row->index },
	               row->sentence);
	opt.flags |= WEAN_NO_SHARED_MEMORY;
	refused_saying(&opt, (struct refusal){ EPERM, WEAN_STAGE_IDS, row->index },
	               row->sentence);
}
END_TEST

START_TEST(a_caller_without_rights_may_name_its_own_ids)
{
	struct wean_options opt = { .flags = WEAN_SET_UID | WEAN_SET_GID | way(_i),
	                            .file = open_kid() };
	char want[40];

	become_nobody();
	opt.uid = getuid();
	opt.gid = getgid();
	three(want, opt.uid);
	reports(&opt, "uid", want);
}
END_TEST

START_TEST(groups_that_the_kernel_does_not_take_are_told)
{
	enum { TOO_MANY = 65536 + 1 };
	unsigned *many = calloc(TOO_MANY, sizeof *many);
	const unsigned none[] = { 1, ~0U };
	struct wean_options opt = { .groups = none, .ngroups = 2,
	                            .flags = WEAN_SET_GROUPS };

	NEEDS_ROOT();
	refused_saying(&opt, (struct refusal){ EINVAL, WEAN_STAGE_IDS, 0 },
	               "cannot set the supplementary groups: Invalid argument");
	opt.groups = many;
	opt.ngroups = TOO_MANY;
	refused_saying(&opt, (struct refusal){ EINVAL, WEAN_STAGE_IDS, 0 },
	               "cannot set the supplementary groups: Invalid argument");
	opt.ngroups--;
	ck_assert_int_eq(run(KID("exit", "5"), &opt), 5);
	free(many);
}
END_TEST

/* ---- in which order ---- */

START_TEST(files_are_opened_with_the_callers_rights)
{
	char *secret = write_text("secret", 0600, "for root alone\n");
	const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 0, .path = secret };
	struct wean_options opt = { .fds = &fd, .nfds = 1, .file = open_kid(),
	                            .flags = WEAN_SET_UID | WEAN_SET_GID | way(_i),
	                            .uid = USER, .gid = GROUP };

	NEEDS_ROOT();
	char *text = output(KID("cat"), &opt);
	ck_assert_str_eq(text, "for root alone\n");
	free(text);
}
END_TEST

START_TEST(a_file_that_is_made_belongs_to_the_caller)
{
	const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 7, .path = at("made"),
	                            .oflag = O_WRONLY | O_CREAT | O_EXCL };
	struct wean_options opt = { .fds = &fd, .nfds = 1, .file = open_kid(),
	                            .flags = WEAN_SET_UID | WEAN_SET_GID | way(_i),
	                            .uid = USER, .gid = GROUP };
	struct stat st;

	NEEDS_ROOT();
	ck_assert_int_eq(run(KID("exit", "5"), &opt), 5);
	ck_assert_int_eq(stat(fd.path, &st), 0);
	ck_assert_uint_eq(st.st_uid, 0);
	ck_assert_uint_eq(st.st_gid, 0);
	unlink(fd.path);
}
END_TEST

START_TEST(the_directory_is_entered_with_the_childs_rights)
{
	char *dir = make_dir("private");
	struct wean_options opt = { .dir = dir, .file = open_kid(), .flags = way(_i) };
	char sentence[200];

	NEEDS_ROOT();
	ck_assert_int_eq(chown(dir, 0, 0) | chmod(dir, 0700), 0);
	reports(&opt, "cwd", dir);
	opt.flags |= WEAN_SET_UID;
	opt.uid = USER;
	snprintf(sentence, sizeof sentence,
	         "cannot enter directory '%s': Permission denied", dir);
	refused_saying(&opt, (struct refusal){ EACCES, WEAN_STAGE_DIR, -1 }, sentence);
	opt.dir = NULL;
	opt.flags |= WEAN_DIR_FD;
	ck_assert_int_ge(opt.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
	snprintf(sentence, sizeof sentence,
	         "cannot enter directory of descriptor %d: Permission denied", opt.dirfd);
	refused_saying(&opt, (struct refusal){ EACCES, WEAN_STAGE_DIR, -1 }, sentence);
	ck_assert_int_eq(chown(dir, USER, 0), 0);
	reports(&opt, "cwd", dir);
	close(opt.dirfd);
}
END_TEST

START_TEST(the_program_is_executed_with_the_childs_rights)
{
	char *program = copy_kid("private-kid", 0700);
	struct wean_options opt = { .file = program, .flags = way(_i) };
	char sentence[200];

	NEEDS_ROOT();
	ck_assert_int_eq(run(KID("exit", "5"), &opt), 5);
	opt.flags |= WEAN_SET_UID;
	opt.uid = USER;
	snprintf(sentence, sizeof sentence, "cannot run '%s': Permission denied",
	         program);
	refused_saying(&opt, (struct refusal){ EACCES, WEAN_STAGE_EXEC, -1 }, sentence);
}
END_TEST

START_TEST(the_nice_value_goes_before_the_ids)
{
	struct wean_options opt = { .flags = WEAN_SET_NICE | WEAN_SET_UID | way(_i),
	                            .nice = -7, .uid = USER, .file = open_kid() };

	NEEDS_ROOT();
	if (!may_lower_nice())
		SKIP("the nice value may not be lowered");
	struct report *r = reported(&opt);
	ck_assert_int_eq(report_number(r, "nice"), -7);
	ck_assert_str_eq(report_value(r, "uid"), "4242 4242 4242");
	report_free(r);
}
END_TEST

/* The kernel asks for the limit of processes when the uid changes, and tells at the
   exec. */
START_TEST(limits_go_before_the_ids)
{
	const struct wean_limit none = { .resource = RLIMIT_NPROC };
	struct wean_options opt = { .flags = WEAN_SET_UID | way(_i), .uid = USER + 1,
	                            .file = open_kid(), .in = WEAN_PIPE };
	struct wean_child first, second;

	NEEDS_ROOT();
	start(&first, KID("exit-on-eof"), &opt);
	opt.in = 0;
	ck_assert_int_eq(run(KID("exit", "5"), &opt), 5);
	opt.limits = &none;
	opt.nlimits = 1;
	int error = wean_spawn(&second, KID("exit", "5"), &opt);
	assert_refused(&second, "a second process", error,
	               (struct refusal){ EAGAIN, WEAN_STAGE_EXEC, -1 });
	opt.flags = way(_i);
	opt.uid = 0;
	ck_assert_int_eq(run(KID("exit", "5"), &opt), 5);
	close(first.in);
	first.in = -1;
	finish(&first);
}
END_TEST

/* ---- no new privileges ---- */

START_TEST(no_new_privileges_are_the_childs_alone)
{
	struct wean_options opt = { .flags = way(_i) };

	reports(&opt, "nonewprivs", "0");
	opt.flags |= WEAN_NO_NEW_PRIVS;
	reports(&opt, "nonewprivs", "1");
	opt.flags = way(_i);
	reports(&opt, "nonewprivs", "0");
}
END_TEST

START_TEST(no_new_privileges_disarm_a_set_uid_program)
{
	struct wean_options opt = { .flags = WEAN_SET_UID | way(_i), .uid = USER };
	struct statvfs fs;

	NEEDS_ROOT();
	if (statvfs(scratch, &fs) || (fs.f_flag & ST_NOSUID))
		SKIP("no set-uid programs on %s", scratch);
	opt.file = copy_kid("set-uid-kid", 04755);
	reports(&opt, "uid", "4242 0 0");
	opt.flags |= WEAN_NO_NEW_PRIVS;
	reports(&opt, "uid", "4242 4242 4242");
}
END_TEST

/* ------------------------------------------------------------------------- */

#define COUNT(array) (int)(sizeof (array) / sizeof *(array))

static Suite *identity_suite(void)
{
	Suite *s = suite_create("identity");
	TCase *t = tcase_create("ids");

	tcase_set_tags(t, "root");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, a_child_gets_the_uid_and_only_that, 0, COUNT(ids));
	tcase_add_loop_test(t, a_child_gets_the_gid_and_only_that, 0, COUNT(ids));
	tcase_add_test(t, all_three_ids_change_whatever_the_callers_were);
	tcase_add_test(t, a_child_gets_the_groups_none_or_the_callers);
	tcase_add_loop_test(t, root_becomes_a_user_with_groups_of_its_own, 0, WAYS);
	tcase_add_test(t, who_changes_ids_does_not_share_the_callers_memory);
	suite_add_tcase(s, t);

	t = tcase_create("refused");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, ids_that_make_no_sense_are_refused, 0, COUNT(bad_ids));
	tcase_add_loop_test(t, a_caller_without_rights_is_refused, 0, COUNT(no_rights));
	tcase_add_loop_test(t, a_caller_without_rights_may_name_its_own_ids, 0, WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("order");
	tcase_set_tags(t, "root");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, files_are_opened_with_the_callers_rights, 0, WAYS);
	tcase_add_loop_test(t, a_file_that_is_made_belongs_to_the_caller, 0, WAYS);
	tcase_add_loop_test(t, the_directory_is_entered_with_the_childs_rights, 0, WAYS);
	tcase_add_loop_test(t, the_program_is_executed_with_the_childs_rights, 0, WAYS);
	tcase_add_loop_test(t, the_nice_value_goes_before_the_ids, 0, WAYS);
	tcase_add_loop_test(t, limits_go_before_the_ids, 0, WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("no new privileges");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, no_new_privileges_are_the_childs_alone, 0, WAYS);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "root");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_test(t, groups_that_the_kernel_does_not_take_are_told);
	tcase_add_loop_test(t, no_new_privileges_disarm_a_set_uid_program, 0, WAYS);
	return s;
}

RUN_SUITE(identity_suite)
