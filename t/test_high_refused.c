/* test_high_refused.c - a source with a high number that can't be brought the short way,
   or that turns out to be another file, is copied the long way. */
#define _GNU_SOURCE
#include "high.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "deny.h"

/* ---- refusals of the kernel ---------------------------------------------- */

static int hide_proc(void)
{
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("none", "/proc", "tmpfs", 0, NULL);
}

/* Where /proc is not mounted, as in many a chroot. */
START_TEST(pipes_are_copied_where_there_is_no_proc)
{
	struct asked a = { .o = { THREE_PIPES, .flags = way(_i) } };

	NEED_DESCRIPTORS(FILES + 10);
	if (hide_proc())
		SKIP("no permission to mount");
	GOES(right_start, &a, .children = 2, .opens = 1, .cut = LAST_PIPE + 1);
}
END_TEST

/* The program's file is what the caller can do without. */
static char *kid_for_all(void)
{
	return copy_kid("kid", 0755);
}

/* As a program that has set-uid or file capabilities is, or one that hides its keys: no
   process of the same user may open what it has or take it. */
static int become_undumpable(void)
{
	become_nobody();
	return prctl(PR_SET_DUMPABLE, 0);
}

START_TEST(a_caller_that_may_not_be_looked_into_gives_copies)
{
	struct asked pipes = { .o = { THREE_PIPES }, .before = become_undumpable };
	struct asked files = { .o = { THREE_FILES }, .before = become_undumpable };

	NEED_DESCRIPTORS(FILES + 10);
	if (geteuid())
		SKIP("a file of nobody's own would be needed");
	open_three_files();
	pipes.o.flags = files.o.flags = way(_i);
	pipes.o.file = files.o.file = kid_for_all();
	pipes.path = files.path = report_path();
	GOES(right_start, &pipes, .children = 2, .opens = 1, .cut = LAST_PIPE + 1);
	GOES(right_start, &files, .children = 2, .handles = 1, .fetches = 1,
	     .cut = FILES + 3);
	unlink(pipes.path);
}
END_TEST

static const struct denied_calls {
	long nr;
	int error;
	size_t fetches; /* that are tried */
} denials[] = {
	{ SYS_pidfd_getfd, EPERM, 1 },  /* Yama, and containers' profiles */
	{ SYS_pidfd_getfd, EACCES, 1 },
	{ SYS_pidfd_getfd, ENOSYS, 1 }, /* before Linux 5.6 */
	{ SYS_pidfd_open, EPERM, 0 },
	{ SYS_pidfd_open, ENOSYS, 0 },  /* before Linux 5.3 */
	{ SYS_pidfd_open, EMFILE, 0 },
};

static const struct denied_calls *denial;

static int meet_denial(void)
{
	return !deny(denial->nr, denial->error);
}

/* The pipes, which were brought before, have to come once more. */
START_TEST(files_that_cannot_be_fetched_are_copied)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES }, .before = meet_denial };

	denial = &denials[_i % (int)COUNT(denials)];
	a.o.flags = way(_i / (int)COUNT(denials));
	NEED_DESCRIPTORS(FILES + 10);
	if (!can_deny())
		SKIP("no system call can be denied here");
	open_three_files();
	GOES(right_start, &a, .children = 2, .opens = 3, .opened = 3, .handles = 1,
	     .fetches = denial->fetches, .cut = FILES + 3);
	GOES(right_start_in_a_thread, &a, .children = 2, .opens = 3, .opened = 3,
	     .handles = 1, .fetches = denial->fetches, .cut = FILES + 3);
}
END_TEST

/* ---- a table that is copied from the beginning ---------------------------- */

static int deny_own_tables(void)
{
	return !deny(SYS_close_range, EPERM) || !deny(SYS_unshare, EPERM);
}

/* The first child could not part its table from the caller's, and did nothing else. */
START_TEST(where_no_table_can_be_parted_all_of_it_is_copied)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES, .flags = way(_i) },
	                   .before = deny_own_tables };
	struct count c;

	NEED_DESCRIPTORS(FILES + 10);
	if (!can_deny())
		SKIP("no system call can be denied here");
	open_three_files();
	int error = count_calls(&c, right_start, &a);
	if (error > 0)
		SKIP("calls can't be counted here");
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(c.children, 2);
	ck_assert_int_eq(c.executed, 1);
	ck_assert_uint_eq(count_failed(&c, COUNT_CHILD, SYS_unshare, EPERM), 1);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_unshare), 1);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_pidfd_getfd), 0);
	count_free(&c);
}
END_TEST

static int start_twice(void *asked)
{
	struct asked *a = asked;

	if (right_start(a))
		return -1;
	a->before = NULL;
	return right_start(a);
}

/* That is remembered: three children for two starts. */
START_TEST(a_table_that_cannot_be_parted_is_tried_once)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES, .flags = way(_i) },
	                   .before = deny_own_tables };
	struct count c;

	NEED_DESCRIPTORS(FILES + 10);
	if (!can_deny())
		SKIP("no system call can be denied here");
	open_three_files();
	int error = count_calls(&c, start_twice, &a);
	if (error > 0)
		SKIP("calls can't be counted here");
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(c.children, 3);
	ck_assert_int_eq(c.executed, 2);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_unshare), 1);
	count_free(&c);
}
END_TEST

/* ---- what happens between the plan and the fetch -------------------------- */

/* The kernel's own structs of seccomp_unotify(2). */
struct notice {
	uint64_t id;
	uint32_t pid, flags;
	int32_t nr;
	uint32_t arch;
	uint64_t at, args[6];
};

struct answer {
	uint64_t id;
	int64_t value;
	int32_t error;
	uint32_t flags; /* 1: let the call be made */
};

struct addition {
	uint64_t id;
	uint32_t flags, source, number, fd_flags;
};

#define RECEIVE _IOWR('!', 0, struct notice)
#define ANSWER  _IOWR('!', 1, struct answer)
#define ADD     _IOW('!', 3, struct addition)

/* Asks at the call `nr` of the calling thread and of its children; -1: can't. */
static int ask_at(long nr)
{
	struct filter_step steps[] = {
		{ 0x20, 0, 0, 0 },
		{ 0x15, 0, 1, (uint32_t)nr },
		{ 0x06, 0, 0, 0x7fc00000U }, /* SECCOMP_RET_USER_NOTIF */
		{ 0x06, 0, 0, 0x7fff0000U },
	};
	struct filter filter = { COUNT(steps), steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, 1 /* FILTER */, 8 /* NEW_LISTENER */, &filter);
}

/* While a thread starts a child, the main thread meddles at its children's call `nr`. */
struct meddling {
	long nr;
	void (*meddle)(int listener, const struct notice *, struct answer *);
	int (*act)(void *);
	void *arg;
	int listener, result;
	int times;
};

static void *start_meddled(void *arg)
{
	struct meddling *m = arg;
	int listener = ask_at(m->nr);

	__atomic_store_n(&m->listener, listener, __ATOMIC_RELEASE);
	m->result = listener < 0 ? -1 : m->act(m->arg);
	return NULL;
}

/* To the end of all who are asked. */
static void answer_all(struct meddling *m, int listener)
{
	struct pollfd p = { listener, POLLIN, 0 };

	while (poll(&p, 1, -1) == 1 && p.revents & POLLIN) {
		struct notice notice = { 0 };
		if (ioctl(listener, RECEIVE, &notice))
			continue;
		struct answer answer = { .id = notice.id, .flags = 1 };
		m->meddle(listener, &notice, &answer);
		m->times++;
		ioctl(listener, ANSWER, &answer);
	}
}

/* 0: there are no such filters. */
static int meddle(struct meddling *m)
{
	enum { NOT_YET = -2 };
	pthread_t thread;
	int listener;

	m->listener = NOT_YET;
	ck_assert_int_eq(pthread_create(&thread, NULL, start_meddled, m), 0);
	while ((listener = __atomic_load_n(&m->listener, __ATOMIC_ACQUIRE)) == NOT_YET)
		sched_yield();
	if (listener >= 0)
		answer_all(m, listener);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	close(listener);
	return listener >= 0;
}

static void put_another(int listener, const struct notice *n, struct answer *a)
{
	(void)listener, (void)n, (void)a;
	close(FILES);
	open_at(FILES);
}

/* It is never the file of before, nor none. */
START_TEST(a_file_that_changes_during_the_start_is_the_one_of_now)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES, .flags = way(_i) } };
	struct meddling m = { SYS_pidfd_open, put_another, right_start, &a, 0, 0, 0 };

	NEED_DESCRIPTORS(FILES + 10);
	if (!kernel_has(6, 9))
		SKIP("a thread's own files are fetched since Linux 6.9");
	open_three_files();
	if (!meddle(&m))
		SKIP("no system call can be answered here");
	ck_assert_int_eq(m.times, 1);
	ck_assert_int_eq(m.result, 0);
}
END_TEST

static void take_away(int listener, const struct notice *n, struct answer *a)
{
	(void)listener, (void)n, (void)a;
	close(FILES);
}

static int start_without_file(void *options)
{
	struct wean_child child;
	int error = wean_spawn(&child, KID("exit", "0"), options);

	assert_refused(&child, "closed", error, (struct refusal){ EBADF, WEAN_STAGE_FD, 1 });
	return 0;
}

START_TEST(a_file_that_is_closed_during_the_start_is_told_by_its_index)
{
	struct wean_options o = { THREE_FILES, THREE_PIPES, .flags = way(_i) };
	struct meddling m = { SYS_pidfd_open, take_away, start_without_file, &o, 0, 0, 0 };
	struct baseline b;

	NEED_DESCRIPTORS(FILES + 10);
	if (!kernel_has(6, 9))
		SKIP("a thread's own files are fetched since Linux 6.9");
	open_three_files();
	close(FILES);
	make_a_thread();
	baseline_take(&b);
	open_at(FILES);
	if (!meddle(&m))
		SKIP("no system call can be answered here");
	ck_assert_int_eq(m.times, 1);
	ck_assert_int_eq(m.result, 0);
	errno = b.error;
	baseline_same(&b);
}
END_TEST

/* The number means another file there, as it would in another process. */
static void give_another(int listener, const struct notice *n, struct answer *a)
{
	struct addition add = { .id = n->id, .source = (uint32_t)memfd_create("other", 0) };
	int number = ioctl(listener, ADD, &add);

	close((int)add.source);
	if (number >= 0) {
		a->flags = 0;
		a->value = number;
	}
}

START_TEST(a_fetch_that_brings_another_file_is_not_believed)
{
	struct asked a = { .o = { THREE_FILES, THREE_PIPES, .flags = way(_i) } };
	struct meddling m = { SYS_pidfd_getfd, give_another, right_start, &a, 0, 0, 0 };

	NEED_DESCRIPTORS(FILES + 10);
	if (!kernel_has(6, 9))
		SKIP("a thread's own files are fetched since Linux 6.9");
	open_three_files();
	if (!meddle(&m))
		SKIP("no system call can be answered here");
	ck_assert_int_eq(m.times, 1);
	ck_assert_int_eq(m.result, 0);
}
END_TEST

static Suite *refused_suite(void)
{
	Suite *s = suite_create("high, refused");
	TCase *kernel = tcase_create("kernel"), *denied = tcase_create("denied");
	TCase *changed = tcase_create("changed");

	tcase_set_tags(kernel, "default ptrace root native");
	tcase_set_timeout(kernel, 60);
	tcase_set_tags(denied, "default ptrace seccomp native");
	tcase_set_timeout(denied, 60);
	tcase_set_tags(changed, "default seccomp native");
	tcase_set_timeout(changed, 60);
	tcase_add_unchecked_fixture(kernel, scratch_make, scratch_remove);
	tcase_add_loop_test(kernel, pipes_are_copied_where_there_is_no_proc, 0, WAYS);
	tcase_add_loop_test(kernel, a_caller_that_may_not_be_looked_into_gives_copies, 0,
	                    WAYS);
	tcase_add_loop_test(denied, files_that_cannot_be_fetched_are_copied, 0,
	                    WAYS * (int)COUNT(denials));
	tcase_add_loop_test(denied, where_no_table_can_be_parted_all_of_it_is_copied, 0,
	                    WAYS);
	tcase_add_loop_test(denied, a_table_that_cannot_be_parted_is_tried_once, 0, WAYS);
	tcase_add_loop_test(changed,
	        a_file_that_changes_during_the_start_is_the_one_of_now, 0, WAYS);
	tcase_add_loop_test(changed,
	        a_file_that_is_closed_during_the_start_is_told_by_its_index, 0, WAYS);
	tcase_add_loop_test(changed, a_fetch_that_brings_another_file_is_not_believed, 0,
	                    WAYS);
	suite_add_tcase(s, kernel);
	suite_add_tcase(s, denied);
	suite_add_tcase(s, changed);
	return s;
}

RUN_WITH_STDIO_ALONE(refused_suite)
