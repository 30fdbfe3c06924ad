/* test_cgroup.c - a child that begins in a control group. */
#define _GNU_SOURCE
#include <mntent.h>
#include <sched.h>

#include "attributes.h"
#include "count.h"
#include "descriptors.h"

/* ---- a group of the test's own ---- */

static char group[PATH_MAX + 32], refusal[64]; /* refusal: why there is none */

static int find_mount(const char *type, char *path)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	int found = 0;

	for (struct mntent *m; f && !found && (m = getmntent(f));)
		if ((found = !strcmp(m->mnt_type, type)))
			strcpy(path, m->mnt_dir);
	if (f)
		endmntent(f);
	return found;
}

static void make_group(void)
{
	char mount[PATH_MAX] = "";

	scratch_make();
	copy_kid("kid", 0755);
	if (!find_mount("cgroup2", mount)) {
		strcpy(refusal, "no cgroup 2 is mounted");
		return;
	}
	snprintf(group, sizeof group, "%s/wean-test-%d", mount, (int)getpid());
	if (mkdir(group, 0755))
		snprintf(refusal, sizeof refusal, "cannot make a cgroup: %s",
		         strerror(errno));
}

static void remove_group(void)
{
	scratch_remove();
	if (!*refusal && rmdir(group))
		fprintf(stderr, "%s: %s\n", group, strerror(errno));
}

#define NEEDS_GROUP() \
	do { \
		if (*refusal) \
			SKIP("%s", refusal); \
	} while (0)

static int open_group(int oflag)
{
	int fd = open(group, oflag | O_DIRECTORY | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s: %s", group, strerror(errno));
	return fd;
}

static struct wean_options entering(int fd, int i)
{
	return (struct wean_options){ .cgroupfd = fd, .flags = WEAN_IN_CGROUP | way(i) };
}

static void assert_entered(struct report *r)
{
	const char *line = report_value(r, "cgroup"), *name = strrchr(group, '/');

	ck_assert_msg(strlen(line) > strlen(name) &&
	              !strcmp(line + strlen(line) - strlen(name), name),
	              "%s, and not %s", line, name);
}

/* ---- entered ---- */

START_TEST(a_child_is_in_its_group_and_the_caller_in_its_own)
{
	const int flags[] = { O_RDONLY, O_PATH };

	NEEDS_GROUP();
	for (int i = 0; i < 2; i++) {
		struct wean_options opt = entering(open_group(flags[i]), _i);
		struct report *r = reported(&opt);
		assert_entered(r);
		ck_assert_str_eq(report_fd_list(r), "0 1 2");
		report_free(r);
		close(opt.cgroupfd);
	}
}
END_TEST

START_TEST(by_default_a_child_is_in_the_callers_group)
{
	const struct wean_options opt = { .flags = way(_i) };
	char line[512];

	read_line("/proc/self/cgroup", "0::", line, sizeof line);
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "0::", 3))
		SKIP("no cgroup 2");
	reports(&opt, "cgroup", line);
}
END_TEST

START_TEST(the_groups_directory_stays_out_unless_listed)
{
	enum { NUMBER = 9 };

	NEEDS_GROUP();
	struct wean_options opt = entering(NUMBER, _i);
	opt.flags |= WEAN_INHERIT_ALL;
	ck_assert_int_eq(dup2(open_group(O_RDONLY), NUMBER), NUMBER);
	struct report *r = reported(&opt);
	assert_entered(r);
	ck_assert_ptr_null(report_fd(r, NUMBER));
	report_free(r);
	struct wean_options listed = { .cgroupfd = NUMBER,
	                               .flags = WEAN_IN_CGROUP | way(_i),
	                               FDS(DUP(6, NUMBER), NUL(NUMBER)) };
	r = reported(&listed);
	assert_entered(r);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 6 9");
	ck_assert_int_eq(report_fd(r, 6)->type, 'd');
	ck_assert_str_eq(report_fd(r, NUMBER)->link, "/dev/null");
	report_free(r);
}
END_TEST

START_TEST(a_group_far_above_among_many_descriptors_is_found)
{
	enum { HIGH = 700 };
	struct filling f;

	NEEDS_GROUP();
	struct wean_options opt = entering(HIGH, _i);
	fill_descriptors(&f, 300);
	ck_assert_int_eq(dup3(open_group(O_RDONLY), HIGH, O_CLOEXEC), HIGH);
	struct report *r = reported(&opt);
	assert_entered(r);
	report_free(r);
	release_descriptors(&f);
}
END_TEST

/* The group is root's, and the child is not. */
START_TEST(the_group_is_entered_with_the_callers_rights)
{
	NEEDS_GROUP();
	struct wean_options opt = entering(open_group(O_RDONLY), _i);
	opt.flags |= WEAN_SET_UID | WEAN_SET_GID;
	opt.uid = opt.gid = 4242;
	opt.file = at("kid");
	struct report *r = reported(&opt);
	assert_entered(r);
	ck_assert_str_eq(report_value(r, "uid"), "4242 4242 4242");
	report_free(r);
}
END_TEST

/* One that moves itself would be outside at first. */
START_TEST(a_child_is_in_its_group_from_the_first_instruction)
{
	const struct wean_options copied = { .flags = WEAN_NO_SHARED_MEMORY };
	struct wean_child child;
	struct count c;

	NEEDS_GROUP();
	start(&child, KID("exit", "0"), &copied);
	finish(&child);
	if (!kernel_has(5, 7) || strncmp(wean_method_name(child.method), "clone3", 6))
		SKIP("no launch into a group here");
	struct wean_options opt = entering(open_group(O_RDONLY), 0);
	int error = count_calls(&c, spawn_counted, &opt);
	if (error == ENOTSUP || error == EPERM)
		SKIP("cannot trace: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(c.executed, 1);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_openat), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_write), 0);
	count_free(&c);
}
END_TEST

/* An OOM kill in the group would take all who share the memory. */
START_TEST(who_enters_a_group_does_not_share_the_callers_memory)
{
	const struct wean_options copied = { .flags = WEAN_NO_SHARED_MEMORY };
	struct wean_child first, second;

	NEEDS_GROUP();
	struct wean_options opt = entering(open_group(O_RDONLY), 0);
	start(&first, KID("exit", "0"), &copied);
	finish(&first);
	start(&second, KID("exit", "0"), &opt);
	finish(&second);
	ck_assert_str_eq(wean_method_name(second.method), wean_method_name(first.method));
	start(&first, KID("exit", "0"), NULL);
	finish(&first);
	ck_assert_int_ne(first.method, second.method);
}
END_TEST

/* ---- refused ---- */

static void cannot_enter(int fd, int error)
{
	char sentence[100];

	snprintf(sentence, sizeof sentence, "cannot enter the cgroup: %s",
	         strerror(error));
	for (int i = 0; i < WAYS; i++) {
		struct wean_options opt = entering(fd, i);
		refused_saying(&opt, (struct refusal){ error, WEAN_STAGE_CGROUP, -1 },
		               sentence);
	}
}

START_TEST(what_is_not_open_or_no_directory_is_refused)
{
	enum { NUMBER = 9 };

	open_at(NUMBER);
	cannot_enter(NUMBER, EBADF);
	cannot_enter(-1, EBADF);
	cannot_enter(700, EBADF);
	NEEDS_GROUP();
	char *file = for_good(malloc(strlen(group) + 20));
	sprintf(file, "%s/cgroup.procs", group);
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	cannot_enter(fd, ENOTDIR);
}
END_TEST

START_TEST(a_directory_that_is_no_group_is_refused)
{
	cannot_enter(open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC), EBADF);
	cannot_enter(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EBADF);
}
END_TEST

START_TEST(a_group_below_a_threaded_one_is_refused)
{
	char path[sizeof group + 40];

	NEEDS_GROUP();
	snprintf(path, sizeof path, "%s/threaded", group);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int type = openat(dir, "cgroup.type", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(write(type, "threaded", 8), 8);
	ck_assert_int_eq(mkdirat(dir, "below", 0755), 0);
	cannot_enter(openat(dir, "below", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EOPNOTSUPP);
	ck_assert_int_eq(unlinkat(dir, "below", AT_REMOVEDIR), 0);
	ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

/* Else the child would run where nothing limits it. */
START_TEST(a_directory_that_looks_like_a_group_is_refused)
{
	char *dir = make_dir("false");
	char *procs = write_text("false/cgroup.procs", 0644, "");
	struct stat st;

	cannot_enter(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), EBADF);
	ck_assert_int_eq(stat(procs, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
}
END_TEST

START_TEST(a_group_that_was_removed_is_refused)
{
	char inner[sizeof group + 8];

	NEEDS_GROUP();
	snprintf(inner, sizeof inner, "%s/inner", group);
	ck_assert_int_eq(mkdir(inner, 0755), 0);
	int fd = open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct wean_options opt = entering(fd, _i);
	ck_assert_int_eq(run(KID("exit", "3"), &opt), 3);
	while (rmdir(inner)) {
		ck_assert_int_eq(errno, EBUSY); /* the dead leave it a little later */
		sched_yield();
	}
	cannot_enter(fd, ENOENT);
}
END_TEST

START_TEST(a_group_without_permission_is_refused)
{
	NEEDS_GROUP();
	int fd = open_group(O_RDONLY);
	become_nobody();
	if (access(group, W_OK) == 0)
		SKIP("everybody may enter %s", group);
	cannot_enter(fd, EACCES);
}
END_TEST

/* The launch that was refused was right to be; it is not missing here. */
START_TEST(a_refused_group_changes_nothing_for_later_starts)
{
	const struct wean_options plain = { 0 };
	const struct wean_options copied = { .flags = WEAN_NO_SHARED_MEMORY };
	const struct wean_options *both[] = { &plain, &copied };
	struct wean_child child;
	int method[2];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			start(&child, KID("exit", "0"), both[i]);
			finish(&child);
			if (round == 0)
				method[i] = child.method;
			ck_assert_int_eq(child.method, method[i]);
		}
		cannot_enter(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EBADF);
	}
	NEEDS_GROUP();
	struct wean_options opt = entering(open_group(O_RDONLY), 0);
	struct report *r = reported(&opt);
	assert_entered(r);
	report_free(r);
	start(&child, KID("exit", "0"), &opt);
	finish(&child);
	ck_assert_int_eq(child.method, method[1]);
}
END_TEST

START_TEST(a_group_without_its_flag_is_refused)
{
	refused_as_invalid(&(struct wean_options){ .cgroupfd = 1 });
	refused_as_invalid(&(struct wean_options){ .cgroupfd = -1 });
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *cgroup_suite(void)
{
	Suite *s = suite_create("cgroup");
	TCase *t = tcase_create("entered");

	tcase_set_tags(t, "root");
	tcase_add_unchecked_fixture(t, make_group, remove_group);
	tcase_add_loop_test(t, by_default_a_child_is_in_the_callers_group, 0, WAYS);
	tcase_add_loop_test(t, a_child_is_in_its_group_and_the_caller_in_its_own, 0, WAYS);
	tcase_add_loop_test(t, the_groups_directory_stays_out_unless_listed, 0, WAYS);
	tcase_add_loop_test(t, a_group_far_above_among_many_descriptors_is_found, 0,
	                    WAYS);
	tcase_add_loop_test(t, the_group_is_entered_with_the_callers_rights, 0, WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("refused");
	tcase_set_tags(t, "root");
	tcase_add_unchecked_fixture(t, make_group, remove_group);
	tcase_add_test(t, what_is_not_open_or_no_directory_is_refused);
	tcase_add_test(t, a_directory_that_is_no_group_is_refused);
	tcase_add_test(t, a_group_below_a_threaded_one_is_refused);
	tcase_add_loop_test(t, a_group_that_was_removed_is_refused, 0, WAYS);
	tcase_add_test(t, a_group_without_permission_is_refused);
	tcase_add_test(t, a_refused_group_changes_nothing_for_later_starts);
	tcase_add_test(t, a_directory_that_looks_like_a_group_is_refused);
	tcase_add_test(t, a_group_without_its_flag_is_refused);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "default ptrace root");
	tcase_add_unchecked_fixture(t, make_group, remove_group);
	tcase_add_test(t, a_child_is_in_its_group_from_the_first_instruction);

	t = case_that_needs(s, "default root");
	tcase_add_unchecked_fixture(t, make_group, remove_group);
	tcase_add_test(t, who_enters_a_group_does_not_share_the_callers_memory);
	return s;
}

RUN_WITH_STDIO_ALONE(cgroup_suite)
