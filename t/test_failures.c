/* test_failures.c - starts that fail leave nothing, however many they are, and a descriptor
   table that is full at each point of a start.  And a pipe that ends with its child. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "spawning.h"

#include <malloc.h>
#include <poll.h>
#include <sys/stat.h>

/* ---- thousands ----------------------------------------------------------- */

static struct wean_fd many_entries[200];
static char long_argument[200000];

static const struct {
	struct wean_options o;
	const char *argv[2]; /* the first NULL: kid */
	int error, stage;
} failures[] = {
	{ { 0 }, { "/missing/program" }, ENOENT, WEAN_STAGE_EXEC },
	{ { .flags = WEAN_NO_SHARED_MEMORY }, { "/missing/program" }, ENOENT,
	  WEAN_STAGE_EXEC },
	{ { .flags = WEAN_INHERIT_ALL }, { "/missing/program" }, ENOENT, WEAN_STAGE_EXEC },
	{ { .flags = WEAN_NEED_PIDFD }, { "no-such-program" }, ENOENT, WEAN_STAGE_EXEC },
	{ { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE }, { "/" }, EACCES,
	  WEAN_STAGE_EXEC },
	{ { .in = WEAN_PIPE, .flags = WEAN_NO_SHARED_MEMORY }, { "/etc/passwd" }, EACCES,
	  WEAN_STAGE_EXEC },
	{ { .dir = "/missing" }, { NULL }, ENOENT, WEAN_STAGE_DIR },
	{ { .flags = WEAN_DIR_FD | WEAN_NO_SHARED_MEMORY, .dirfd = 0 }, { NULL },
	  ENOTDIR, WEAN_STAGE_DIR },
	{ { FDS(OPEN(5, "/missing")), .out = WEAN_PIPE }, { NULL }, ENOENT,
	  WEAN_STAGE_OPEN },
	{ { FDS(DUP(5, 40)), .out = WEAN_PIPE }, { NULL }, EBADF, WEAN_STAGE_FD },
	{ { FDS(SAME(5, 5)) }, { NULL }, EINVAL, WEAN_STAGE_OPTIONS },
	{ { FDS(DUP(5, 1001)) }, { "/missing/program" }, ENOENT, WEAN_STAGE_EXEC },
	{ { .fds = many_entries, .nfds = 200, .err = WEAN_PIPE }, { "/missing/program" },
	  ENOENT, WEAN_STAGE_EXEC },
	{ { .candidates = (char *const[]){ (char[]){ "/a" }, (char[]){ "/b" }, NULL } },
	  { "x" }, ENOENT, WEAN_STAGE_EXEC },
	{ { .env_edit = (char *const[]){ (char[]){ "A=1" }, NULL },
	    .flags = WEAN_SHELL_SCRIPT }, { "/missing" }, ENOENT, WEAN_STAGE_EXEC },
	{ { .flags = WEAN_CHILD_PATH }, { NULL, long_argument }, E2BIG, WEAN_STAGE_EXEC },
};

static void fail_once(size_t i)
{
	struct wean_child child;
	const char *const *given = failures[i].argv;
	char *argv[] = { given[0] ? (char *)(uintptr_t)given[0] : kid(),
	                 (char *)(uintptr_t)given[1], NULL };
	int error = wean_spawn(&child, argv, &failures[i].o);

	if (error != failures[i].error || child.stage != failures[i].stage || child.pid ||
	    child.pidfd >= 0 || child.in >= 0 || child.out >= 0 || child.err >= 0)
		ck_abort_msg("failure %zu: %s at %s, pid %d, pidfd %d", i, strerror(error),
		             wean_stage_name(child.stage), child.pid, child.pidfd);
}

static volatile sig_atomic_t heard;

static void hear(int sig)
{
	(void)sig;
	heard++;
}

/* Pages of data and stack, mappings, bytes of the heap. */
struct memory {
	unsigned long data, mappings, heap;
};

static struct memory memory_now(void)
{
	struct memory m = { 0, 0, 0 };
	FILE *f = fopen("/proc/self/statm", "r");

	ck_assert_int_eq(fscanf(f, "%*u %*u %*u %*u %*u %lu", &m.data), 1);
	fclose(f);
	f = fopen("/proc/self/maps", "r");
	for (int c; (c = getc(f)) != EOF; )
		m.mappings += c == '\n';
	fclose(f);
#ifdef __GLIBC__
	m.heap = mallinfo2().uordblks;
#endif
	return m;
}

START_TEST(a_thousand_failed_starts_leave_nothing)
{
	struct baseline b;

	NEED_DESCRIPTORS(1100);
	memset(long_argument, 'x', sizeof long_argument - 1);
	open_at(1001);
	for (int i = 0; i < 200; i++)
		many_entries[i] = (struct wean_fd)DUP(300 + i, 200 - i > 100 ? 0 : 1001);
	handle(SIGCHLD, hear);
	for (size_t i = 0; i < COUNT(failures); i++)
		fail_once(i);
	memory_now(); /* the first takes buffers */
	struct memory before = memory_now();
	baseline_take(&b);
	for (int i = 0; i < scaled(400); i++)
		fail_once((size_t)i % COUNT(failures));
	baseline_same(&b);
	struct memory after = memory_now();
	ck_assert_int_eq(heard, 0);
	if (SANITIZED) /* keeps for a while what was freed, and finds what was lost */
		return;
	ck_assert_uint_eq(after.data, before.data);
	ck_assert_uint_eq(after.mappings, before.mappings);
	ck_assert_uint_eq(after.heap, before.heap);
}
END_TEST

/* ---- a full table -------------------------------------------------------- */

enum { LIMIT = 64 };
static int limit = LIMIT; /* of a start */

/* All numbers below the limit are in use but `free` of them. */
static void leave_free(int free)
{
	for (int fd = 3; fd < LIMIT; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			ck_assert_int_eq(dup2(2, fd), fd);
	for (int fd = LIMIT - 1; free-- > 0; fd--)
		close(fd);
}

/* Starts, or is refused like this, and is no worse for it.  The limit holds for the start
   alone: the baseline's listing takes a number too. */
static void must_be(const struct wean_options *o, int error, int stage, int index,
                    int has_pidfd)
{
	char *argv[] = { kid(), (char[]){ "exit" }, (char[]){ "7" }, NULL };
	struct wean_status status = { 0 };
	struct wean_child child;
	struct baseline b;

	baseline_take(&b);
	set_soft_limit(limit);
	int answer = wean_spawn(&child, argv, o);
	int pidfd = child.pidfd, waited = answer ? 0 : wean_wait(&child, -1, &status);
	wean_release(&child);
	set_soft_limit(2 * LIMIT);
	baseline_same(&b);
	ck_assert_msg(answer == error, "%s, wanted %s", strerror(answer), strerror(error));
	ck_assert_int_eq(child.stage, stage);
	ck_assert_int_eq(child.index, index);
	ck_assert_int_eq(waited, 0);
	ck_assert_int_eq(status.code, error ? 0 : 7);
	ck_assert_int_eq(pidfd >= 0, has_pidfd);
}

START_TEST(a_full_table_is_told_at_each_point)
{
	struct wean_options o = {
		FDS(NUL(9)), .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE,
		.flags = way(_i),
	};

	ck_assert_int_eq(set_soft_limit(2 * LIMIT), 0);
	for (int free = 0; free <= 8; free++) {
		leave_free(free);
		o.flags &= ~(unsigned long long)WEAN_NEED_PIDFD;
		if (free < 6)
			must_be(&o, EMFILE, WEAN_STAGE_PIPE, 1 + free / 2, 0);
		else
			must_be(&o, 0, WEAN_STAGE_NONE, -1, free > 6);
		o.flags |= WEAN_NEED_PIDFD;
		if (free == 6)
			must_be(&o, EMFILE, WEAN_STAGE_LAUNCH, -1, 0);
		else if (free > 6)
			must_be(&o, 0, WEAN_STAGE_NONE, -1, 1);
	}
}
END_TEST

START_TEST(a_caller_that_is_full_still_starts_children)
{
	struct wean_options plain = { .flags = way(_i) };
	struct wean_options needs = { .flags = WEAN_NEED_PIDFD | way(_i) };
	struct wean_options given = {
		FDS(DUP(1, LIMIT - 1), DUP(LIMIT - 1, 1), OPEN(7, "/dev/zero"), SAME(8, 7)),
		.in = WEAN_NULL, .err = WEAN_MERGE, .flags = way(_i),
	};

	ck_assert_int_eq(set_soft_limit(2 * LIMIT), 0);
	leave_free(0);
	must_be(&plain, 0, WEAN_STAGE_NONE, -1, 0);
	must_be(&given, 0, WEAN_STAGE_NONE, -1, 0);
	must_be(&needs, EMFILE, WEAN_STAGE_LAUNCH, -1, 0);
}
END_TEST

/* Only 0 is free: what lands there has to be lifted, and there is nowhere to. */
START_TEST(a_number_that_cannot_be_lifted_is_let_go)
{
	struct wean_options plain = { .flags = way(_i) };
	struct wean_options needs = { .flags = WEAN_NEED_PIDFD | way(_i) };
	struct wean_options pipe = { .out = WEAN_PIPE, .flags = way(_i) };

	ck_assert_int_eq(set_soft_limit(2 * LIMIT), 0);
	leave_free(0);
	close(0);
	must_be(&plain, 0, WEAN_STAGE_NONE, -1, 0);
	must_be(&needs, EMFILE, WEAN_STAGE_LAUNCH, -1, 0);
	must_be(&pipe, EMFILE, WEAN_STAGE_PIPE, 1, 0);
	close(LIMIT - 1);
	must_be(&pipe, EMFILE, WEAN_STAGE_PIPE, 1, 0);
	close(LIMIT - 2);
	must_be(&pipe, 0, WEAN_STAGE_NONE, -1, 0);
	close(LIMIT - 3);
	must_be(&pipe, 0, WEAN_STAGE_NONE, -1, 1);
	must_be(&needs, 0, WEAN_STAGE_NONE, -1, 1);
}
END_TEST

/* The child's own table is full: each number below the limit is a target.  It raises the
   limit last, since it could not even load its program's libraries otherwise. */
START_TEST(a_child_can_be_given_every_number_that_there_is)
{
	enum { FULL = 10 };
	const struct wean_limit more = { RLIMIT_NOFILE, 0, LIMIT, LIMIT };
	struct wean_options o = {
		FDS(NUL(0), DUP(1, 20), DUP(2, 20), NUL(3), DUP(4, 21), SAME(5, 4), NUL(6),
		    DUP(7, 21), DUP(8, 2), SAME(9, 3)),
		.limits = &more, .nlimits = 1, .flags = way(_i),
	};

	open_at(20);
	open_at(21);
	ck_assert_int_eq(set_soft_limit(FULL), 0);
	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 3 4 5 6 7 8 9");
	for (int fd = 0; fd < FULL; fd += 3)
		HOLDS(r, fd, -1);
	HOLDS(r, 1, 20);
	HOLDS(r, 2, 20);
	HOLDS(r, 4, 21);
	HOLDS(r, 5, 21);
	HOLDS(r, 7, 21);
	HOLDS(r, 8, 2);
	report_free(r);
}
END_TEST

/* Each number that there is takes part in a cycle, or is inherited: none is left for what
   has to be put by meanwhile. */
START_TEST(a_swap_without_a_number_to_spare_is_told)
{
	struct wean_fd fds[10];
	struct wean_options all = { .fds = fds, .nfds = 10, .flags = way(_i) };
	struct wean_options inherited = {
		FDS(DUP(1, 2), DUP(2, 1)), .flags = WEAN_INHERIT_ALL | way(_i),
	};
	struct wean_options aside = {
		.in = WEAN_NULL, .flags = WEAN_DIR_FD | WEAN_INHERIT_ALL | way(_i),
	};

	for (int fd = 0; fd < 10; fd++)
		fds[fd] = (struct wean_fd)DUP(fd, (fd + 1) % 10);
	ck_assert_int_eq(set_soft_limit(2 * LIMIT), 0);
	leave_free(0);
	must_be(&inherited, EMFILE, WEAN_STAGE_FD, -1, 0);
	must_be(&aside, EMFILE, WEAN_STAGE_FD, -1, 0);
	limit = 10;
	must_be(&all, EMFILE, WEAN_STAGE_FD, -1, 0);
	limit = 3;
	aside.flags &= ~(unsigned long long)WEAN_INHERIT_ALL;
	must_be(&aside, EMFILE, WEAN_STAGE_FD, -1, 0);
}
END_TEST

/* ---- the end of a pipe --------------------------------------------------- */

enum { HELD = 8 };

struct late {
	int over, failed, read;
	unsigned long long flags;
};

static void *read_to_the_end(void *arg)
{
	struct late *l = arg;
	struct wean_options o = { .out = WEAN_PIPE, .flags = l->flags };
	char *argv[] = { kid(), (char[]){ "exit" }, (char[]){ "0" }, NULL }, c;

	while (!__atomic_load_n(&l->over, __ATOMIC_ACQUIRE)) {
		struct wean_child child;
		int error = wean_spawn(&child, argv, &o);
		struct pollfd p = { child.out, POLLIN, 0 };

		/* Long before the others end: they do when this has come. */
		if (error || poll(&p, 1, 20000) != 1 || read(child.out, &c, 1) != 0)
			__atomic_fetch_add(&l->failed, 1, __ATOMIC_RELAXED);
		wean_wait(&child, -1, NULL);
		wean_release(&child);
		__atomic_fetch_add(&l->read, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Children that live on for a while, the oldest of which gives way to a new one. */
static void start_long_lived(int rounds, unsigned long long flags)
{
	struct wean_options o = { .in = WEAN_PIPE, .flags = flags };
	struct wean_child held[HELD];

	memset(held, 0, sizeof held);
	for (int i = 0; i < rounds; i++) {
		struct wean_child *child = &held[i % HELD];

		if (i >= HELD) {
			close(child->in);
			child->in = -1;
			ck_assert_int_eq(finish(child).code, 0);
		}
		start(child, KID("exit-on-eof"), &o);
	}
	for (int i = 0; i < HELD && i < rounds; i++) {
		close(held[i].in);
		held[i].in = -1;
		ck_assert_int_eq(finish(&held[i]).code, 0);
	}
}

START_TEST(a_pipe_ends_with_its_child_whatever_else_was_started_meanwhile)
{
	struct late l = { .flags = way(_i) };
	int rounds = scaled(80);
	pthread_t thread;
	struct baseline b;

	kid();
	make_a_thread();
	baseline_take(&b);
	ck_assert_int_eq(pthread_create(&thread, NULL, read_to_the_end, &l), 0);
	start_long_lived(rounds, l.flags);
	__atomic_store_n(&l.over, 1, __ATOMIC_RELEASE);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(l.failed, 0);
	ck_assert_int_ge(l.read, rounds / 20);
	errno = b.error;
	baseline_same(&b);
}
END_TEST

static Suite *failures_suite(void)
{
	Suite *s = suite_create("failures");
	TCase *many = tcase_create("many"), *full = tcase_create("full table");
	TCase *late = tcase_create("late end");

	tcase_set_tags(many, "exec");
	tcase_set_tags(full, "default table");
	tcase_set_timeout(many, 60);
	tcase_add_test(many, a_thousand_failed_starts_leave_nothing);
	tcase_add_loop_test(full, a_full_table_is_told_at_each_point, 0, WAYS);
	tcase_add_loop_test(full, a_caller_that_is_full_still_starts_children, 0, WAYS);
	tcase_add_loop_test(full, a_number_that_cannot_be_lifted_is_let_go, 0, WAYS);
	tcase_add_loop_test(full, a_child_can_be_given_every_number_that_there_is, 0, WAYS);
	tcase_add_loop_test(full, a_swap_without_a_number_to_spare_is_told, 0, WAYS);
	tcase_set_timeout(late, 60);
	tcase_add_loop_test(late,
	        a_pipe_ends_with_its_child_whatever_else_was_started_meanwhile, 0, WAYS);
	suite_add_tcase(s, many);
	suite_add_tcase(s, full);
	suite_add_tcase(s, late);
	return s;
}

RUN_WITH_STDIO_ALONE(failures_suite)
