/* test_close.c - wean_closefrom() and wean_close_except() in a process that the host
   forked by itself: exactly the rest is closed, by the calls that this takes, whether
   close_range(2) is there or refused. */
#define _GNU_SOURCE
#include "closing.h"

#include <sched.h>
#include <sys/mount.h>

/* close_range(2) works, or is refused like this. */
static const int refusals[] = { 0, EPERM, ENOSYS, EACCES, EINVAL, ENOTSUP };

enum { REFUSALS = COUNT(refusals) };

/* Some, with words of 64 and the listing's buffer in mind; one of them is close-on-exec,
   another has flags of its own. */
static void open_some(void)
{
	static const int some[] = { 10, 11, 13, 50, 62, 63, 64, 65, 127, 128, 300, 1000 };

	for (size_t i = 0; i < COUNT(some); i++)
		open_at(some[i]);
	for (int fd = 500; fd < 600; fd++)
		ck_assert_int_eq(dup2(10, fd), fd);
	fcntl(64, F_SETFD, FD_CLOEXEC);
	fcntl(300, F_SETFL, O_NONBLOCK | O_APPEND);
}

/* ---- closefrom --------------------------------------------------------- */

START_TEST(everything_from_a_number_on_is_closed)
{
	static const int lows[] = { 0, 1, 3, 11, 12, 63, 64, 65, 300, 550, 1000, 1001,
	                            1 << 20, INT_MAX };

	open_some();
	for (size_t i = 0; i < COUNT(lows); i++) {
		CLOSE_EXACTLY(.low = lows[i], .from = 1, .denied = refusals[_i]);
	}
}
END_TEST

/* ---- close_except ------------------------------------------------------ */

#define LIST(...) \
	(const int[]){ __VA_ARGS__ }, COUNT(((const int[]){ __VA_ARGS__ }))

static const struct keep_row {
	int low;
	const int *keep;
	size_t n;
} keep_rows[] = {
	{ 3, NULL, 0 },
	{ 11, LIST(0) },
	{ 3, LIST(64) },
	{ 3, LIST(3) },
	{ 3, LIST(3, 4, 5, 6, 7, 8, 9, 10, 11) },
	{ 0, LIST(0, 1, 2) },
	{ 0, LIST(300, 2, 64) },
	{ 0, LIST(1000) },
	{ 3, LIST(1000, 63, 300, 50, 64, 10) },         /* unsorted */
	{ 3, LIST(1000, 300, 128, 65, 64, 63, 10) },    /* downwards */
	{ 3, LIST(64, 64, 10, 64, 10, 10) },            /* named twice */
	{ 3, LIST(12, 14, 66, 999, 1001, 5000) },       /* closed */
	{ 3, LIST(12, 13, 14, 64, 66, 300) },
	{ 100, LIST(10, 11, 3, 50, 99) },               /* below low */
	{ 64, LIST(63, 64, 62, 65) },
	{ 3, LIST(-1, INT_MIN, 64, -64) },
	{ 3, LIST(INT_MAX) },
	{ 3, LIST(INT_MAX, 64, INT_MAX - 1, INT_MAX) },
	{ INT_MAX, LIST(INT_MAX) },
	{ INT_MAX, LIST(64) },
	{ 1001, LIST(1000, 64) },
	{ 500, LIST(599, 500) },
	{ 3, LIST(550, 551, 552) },
};

START_TEST(all_but_the_kept_are_closed)
{
	open_some();
	for (size_t i = 0; i < COUNT(keep_rows); i++) {
		const struct keep_row *row = &keep_rows[i];
		CLOSE_EXACTLY(.low = row->low, .keep = row->keep, .n = row->n,
		              .denied = refusals[_i]);
	}
}
END_TEST

/* The first n numbers that a generator gives below `below`, each once. */
static int *scatter(size_t n, unsigned below)
{
	int *numbers = calloc(n, sizeof *numbers);
	unsigned char *seen = calloc(below, 1);
	unsigned long long x = 12345;

	for (size_t i = 0; i < n; ) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		unsigned number = (unsigned)(x >> 33) % below;
		if (seen[number]++ == 0)
			numbers[i++] = (int)number;
	}
	free(seen);
	return numbers;
}

START_TEST(two_hundred_of_ten_thousand_are_kept)
{
	struct filling f;
	int *keep = scatter(200, 10000);

	NEED_DESCRIPTORS(10100);
	fill_descriptors(&f, 9990);
	CLOSE_EXACTLY(.low = 3, .keep = keep, .n = 200, .denied = refusals[_i]);
	release_descriptors(&f);
	free(keep);
}
END_TEST

/* Of numbers most of which are not open. */
START_TEST(long_lists_are_kept_too)
{
	static const size_t lengths[] = { 511, 512, 513, 1000, 1024, 1025, 20000 };
	struct filling f;
	int *keep = scatter(20000, 40000);

	fill_descriptors(&f, 500);
	for (int fd = 600; fd < 1000; fd += 7)
		ck_assert_int_eq(dup2(0, fd), fd);
	for (size_t i = 0; i < COUNT(lengths); i++)
		CLOSE_EXACTLY(.low = 3, .keep = keep, .n = lengths[i],
		              .denied = refusals[_i]);
	free(keep);
}
END_TEST

START_TEST(a_long_list_of_one_number_keeps_one)
{
	static int keep[3000];

	open_some();
	for (size_t i = 0; i < COUNT(keep); i++)
		keep[i] = i == 2900 ? 1000 : i % 2 ? 64 : 300;
	CLOSE_EXACTLY(.low = 3, .keep = keep, .n = COUNT(keep), .denied = refusals[_i]);
	for (size_t i = 0; i < COUNT(keep); i++)
		keep[i] = INT_MAX;
	keep[1] = 64;
	CLOSE_EXACTLY(.low = 3, .keep = keep, .n = COUNT(keep), .denied = refusals[_i]);
}
END_TEST

START_TEST(the_list_is_not_written_to)
{
	int keep[] = { 300, 64, 10, 64, -5, INT_MAX }, copy[COUNT(keep)];
	int status;

	open_some();
	memcpy(copy, keep, sizeof copy);
	pid_t pid = fork();
	if (pid == 0)
		_exit(wean_close_except(3, keep, COUNT(keep)) ||
		      memcmp(keep, copy, sizeof copy) ||
		      fcntl(64, F_GETFD) != FD_CLOEXEC);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- refusals ---------------------------------------------------------- */

START_TEST(a_negative_number_or_a_missing_list_closes_nothing)
{
	static const int keep[] = { 64 };
	struct baseline b;

	open_some();
	baseline_take(&b);
	ck_assert_int_eq(wean_closefrom(-1), EINVAL);
	ck_assert_int_eq(wean_closefrom(INT_MIN), EINVAL);
	ck_assert_int_eq(wean_close_except(-1, keep, 1), EINVAL);
	ck_assert_int_eq(wean_close_except(-1, NULL, 0), EINVAL);
	ck_assert_int_eq(wean_close_except(INT_MIN, keep, 1), EINVAL);
	ck_assert_int_eq(wean_close_except(3, NULL, 1), EINVAL);
	ck_assert_int_eq(wean_close_except(3, NULL, SIZE_MAX), EINVAL);
	baseline_same(&b);
}
END_TEST

/* ---- limits ------------------------------------------------------------ */

START_TEST(what_is_open_above_a_lowered_limit_is_closed)
{
	static const int keep[] = { 1000, 63, 300 };
	static const int limits[] = { 1001, 1000, 301, 100, 20 };

	open_some();
	for (size_t i = 0; i < COUNT(limits); i++) {
		CLOSE_EXACTLY(.low = 3, .from = 1, .limit = limits[i],
		              .denied = refusals[_i]);
		CLOSE_EXACTLY(.low = 3, .keep = keep, .n = 3, .limit = limits[i],
		              .denied = refusals[_i]);
		CLOSE_EXACTLY(.low = 200, .keep = keep, .n = 3, .limit = limits[i],
		              .denied = refusals[_i]);
	}
}
END_TEST

/* All numbers below it are open. */
static void use_up(int limit)
{
	int fd;

	while ((fd = dup(0)) < limit)
		ck_assert_int_ge(fd, 0);
	close(fd);
}

/* The listing takes a number too. */
START_TEST(a_limit_that_is_used_up_is_no_hindrance)
{
	static const int keep[] = { 1000, 63, 4, 300, 3 };

	open_some();
	use_up(200);
	CLOSE_EXACTLY(.low = 3, .from = 1, .limit = 200, .denied = refusals[_i]);
	CLOSE_EXACTLY(.low = 3, .keep = keep, .n = 5, .limit = 200,
	              .denied = refusals[_i]);
	CLOSE_EXACTLY(.low = 199, .keep = keep, .n = 5, .limit = 200,
	              .denied = refusals[_i]);
}
END_TEST

/* ---- no listing -------------------------------------------------------- */

enum {
	CANNOT_HIDE = 77,
	HIDES_BY_MOUNT = 1 /* the first of two such ways_to_hide */
};

/* A call with close_range(2) denied and hide() done has to be told as this error, or to
   be right. */
static int told_or_right(const struct job *job, int (*hide)(void), int wanted)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (!hide() || !deny(SYS_close_range, job->denied))
			_exit(CANNOT_HIDE);
		int error = wean_closefrom(job->low);
		if (error && error != wanted)
			dprintf(2, "%s\n", strerror(error));
		if (error)
			_exit(error != wanted);
		for (int fd = job->low; fd < 2000; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				_exit(2);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static int hide_by_limit(void)
{
	return set_soft_limit(200) == 0;
}

static int hide_by_mount(void)
{
	return !unshare(CLONE_NEWNS) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", "/proc", "tmpfs", 0, NULL);
}

/* A listing that is not the kernel's. */
static int hide_by_directory(void)
{
	return hide_by_mount() && !mkdir("/proc/self", 0755) &&
	       !mkdir("/proc/self/fd", 0755);
}

/* As where the whole system has no file left. */
static int refuse_to_open(void)
{
	return deny(SYS_openat, ENFILE);
}

static int refuse_to_close(void)
{
	return deny(SYS_close, EPERM);
}

START_TEST(what_cannot_be_closed_is_never_told_to_be)
{
	static const struct {
		int (*hide)(void);
		int error;
	} ways_to_hide[] = {
		{ hide_by_limit, 0 },
		{ hide_by_mount, 0 },
		{ hide_by_directory, 0 },
		{ refuse_to_open, 0 },
		{ refuse_to_close, EPERM },
	};
	struct job job = { .low = 200, .denied = EPERM };

	if (!can_deny())
		SKIP("no filter of system calls");
	open_some();
	use_up(200);
	int result = told_or_right(&job, ways_to_hide[_i].hide, ways_to_hide[_i].error);
	if (result == CANNOT_HIDE)
		SKIP("may not mount over /proc");
	ck_assert_int_eq(result, 0);
}
END_TEST

/* ---- no memory --------------------------------------------------------- */

/* Other libcs have no second name for theirs. */
#if defined __GLIBC__ && !SANITIZED
# define COUNTS_MALLOC 1

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static volatile int allocations;

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}

static int allocates(int denied, const int *keep, size_t n)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (denied && !deny(SYS_close_range, denied))
			_exit(100);
		allocations = 0;
		_exit(wean_close_except(3, keep, n) || wean_closefrom(3) ? 101
		                                                         : allocations);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

START_TEST(no_memory_is_asked_for)
{
	struct wean_child many[100] = { 0 };
	int *keep = scatter(20000, 40000);

	if (!can_deny())
		SKIP("no filter of system calls");
	open_some();
	allocations = 0;
	wean_wait_any(many, 100, 0, NULL); /* which does, so it would be seen */
	ck_assert_int_gt(allocations, 0);
	ck_assert_int_eq(allocates(0, keep, 1000), 0);
	ck_assert_int_eq(allocates(0, keep, 20000), 0);
	ck_assert_int_eq(allocates(EPERM, keep, 1000), 0);
	free(keep);
}
END_TEST
#endif

/* ---- in a child that shares memory ------------------------------------- */

static int close_in_shared_memory(void *arg)
{
	const struct job *job = arg;

	if (job->denied && !deny(SYS_close_range, job->denied))
		_exit(1);
	errno = BASELINE_ERRNO;
	if (wean_close_except(job->low, job->keep, job->n) || errno != BASELINE_ERRNO)
		_exit(2);
	for (int fd = job->low; fd < 2000; fd++)
		if (syscall(SYS_fcntl, fd, F_GETFD) >= 0 && !is_kept(job, fd))
			_exit(3);
	for (size_t i = 0; i < job->left.nfds; i++)
		if (syscall(SYS_fcntl, job->left.fds[i].number, F_GETFD) < 0)
			_exit(4);
	errno = BASELINE_ERRNO;
	_exit(0);
}

START_TEST(a_vfork_child_closes_its_own_descriptors_alone)
{
	static const int keep[] = { 300, 64, 550 };
	static char stack[1 << 16];
	struct job job = { .low = 3, .keep = keep, .n = 3, .denied = refusals[_i] };
	struct baseline b;
	int status;

	if (job.denied && !can_deny())
		SKIP("no filter of system calls");
	open_some();
	expect(&job);
	baseline_take(&b);
	pid_t pid = clone(close_in_shared_memory, stack + sizeof stack,
	                  CLONE_VM | CLONE_VFORK | SIGCHLD, &job);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "status %#x", (unsigned)status);
	baseline_same(&b);
	free(job.left.fds);
	free(job.sorted);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *close_suite(void)
{
	Suite *s = suite_create("close");
	TCase *t = tcase_create("close");

	tcase_set_timeout(t, 30);
	tcase_add_test(t, the_list_is_not_written_to);
	tcase_add_test(t, a_negative_number_or_a_missing_list_closes_nothing);
	tcase_add_loop_test(t, a_vfork_child_closes_its_own_descriptors_alone, 0, 1);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "ptrace seccomp");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, everything_from_a_number_on_is_closed, 0, 2);
	tcase_add_loop_test(t, all_but_the_kept_are_closed, 0, REFUSALS);
	tcase_add_loop_test(t, two_hundred_of_ten_thousand_are_kept, 0, 2);
	tcase_add_loop_test(t, long_lists_are_kept_too, 0, 2);
	tcase_add_loop_test(t, a_long_list_of_one_number_keeps_one, 0, 2);
	tcase_add_loop_test(t, what_is_open_above_a_lowered_limit_is_closed, 0, 2);
	tcase_add_loop_test(t, a_limit_that_is_used_up_is_no_hindrance, 0, 2);

	t = case_that_needs(s, "seccomp");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, what_cannot_be_closed_is_never_told_to_be, 0, HIDES_BY_MOUNT);
	tcase_add_loop_test(t, what_cannot_be_closed_is_never_told_to_be, HIDES_BY_MOUNT + 2,
	                    5);
	tcase_add_loop_test(t, a_vfork_child_closes_its_own_descriptors_alone, 1, 2);

	t = case_that_needs(s, "seccomp root");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, what_cannot_be_closed_is_never_told_to_be, HIDES_BY_MOUNT,
	                    HIDES_BY_MOUNT + 2);

	t = case_that_needs(s, "seccomp native");
	tcase_set_timeout(t, 30);
#ifdef COUNTS_MALLOC
	tcase_add_test(t, no_memory_is_asked_for);
#endif
	return s;
}

RUN_WITH_STDIO_ALONE(close_suite)
