/* descriptors.h - for the tests of what a child holds: entries in short, and a caller
   that begins with 0, 1 and 2 alone. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "common.h"

#include <pthread.h>

#define COUNT(array) (sizeof (array) / sizeof *(array))

/* struct wean_options o = { FDS(DUP(1, 5), NUL(0)), .flags = ... }; */
#define FDS(...) .fds = (const struct wean_fd[]){ __VA_ARGS__ }, \
	.nfds = COUNT(((const struct wean_fd[]){ __VA_ARGS__ }))
#define DUP(to, from)  { .kind = WEAN_DUP, .target = (to), .source = (from) }
#define KEEP(n)        { .kind = WEAN_KEEP, .target = (n) }
#define SAME(to, from) { .kind = WEAN_SAME, .target = (to), .source = (from) }
#define NUL(n)         { .kind = WEAN_NULL, .target = (n) }
#define CLOSED(n)      { .kind = WEAN_CLOSED, .target = (n) }
#define OPEN(n, ...)   { .kind = WEAN_OPEN, .target = (n), .path = __VA_ARGS__ }

/* A limit of n descriptors, soft and hard, whatever it was before. */
static inline int set_limit(int n)
{
	struct rlimit limit = { (rlim_t)n, (rlim_t)n };

	return setrlimit(RLIMIT_NOFILE, &limit);
}

/* The soft limit alone, from below or from above. */
static inline int set_soft_limit(int n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)n;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

/* First thing in a test that opens numbers below n. */
#define NEED_DESCRIPTORS(n) \
	do { \
		struct rlimit limit_; \
		getrlimit(RLIMIT_NOFILE, &limit_); \
		if (limit_.rlim_cur < (rlim_t)(n) && set_soft_limit(n) && set_limit(n)) \
			SKIP("needs %d descriptors, may have %llu", (int)(n), \
			     (unsigned long long)limit_.rlim_max); \
	} while (0)

/* ---- what a child holds ---- */

/* The report of a child that these options made, by this method if one is named; asserts
   that its start and its end left the caller as it was. */
static inline struct report *given_by(const char *method, const struct wean_options *options)
{
	char *path = report_path();
	char *argv[] = { kid(), (char[]){ "report" }, path, NULL };
	struct wean_status status = { 0 };
	struct wean_child child;
	struct baseline b;

	baseline_take(&b);
	int error = wean_spawn(&child, argv, options);
	int ended = error ? -1 : wean_wait(&child, -1, &status);
	wean_release(&child);
	baseline_same(&b);
	ck_assert_msg(!error, "%s at %s, index %d", strerror(error),
	              wean_stage_name(child.stage), child.index);
	if (method)
		ck_assert_str_eq(wean_method_name(child.method), method);
	ck_assert_int_eq(ended, 0);
	ck_assert_int_eq(status.kind, WEAN_EXITED);
	ck_assert_int_eq(status.code, 0);
	struct report *report = report_read_file(path);
	ck_assert_ptr_nonnull(report);
	unlink(path);
	free(path);
	return report;
}

static inline struct report *given(const struct wean_options *options)
{
	return given_by(NULL, options);
}

/* What the caller has at fd; -1: /dev/null, open for both. */
static inline int holds(const struct report *r, int number, int fd)
{
	const struct report_fd *f = report_fd(r, number);
	struct stat st;

	ck_assert_msg(fd >= 0 ? !fstat(fd, &st) : !stat("/dev/null", &st), "%d", fd);
	return f && f->dev == st.st_dev && f->ino == st.st_ino &&
	       (fd >= 0 || f->access == 'b');
}

#define HOLDS(r, number, fd) \
	ck_assert_msg(holds(r, number, fd), "%d is not the caller's %d", number, fd)

/* ---- threads ---- */

static inline void *thread_of_nothing(void *arg)
{
	return arg;
}

/* For before a baseline: libc handles a signal of its own from the first thread on. */
static inline void make_a_thread(void)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, thread_of_nothing, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* ---- running ---- */

/* A sanitizer has a heap and a stack of its own ways. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Instead of RUN_SUITE: whatever the shell or make left open would be in the way of
   tests that count on a number's being free. */
#define RUN_WITH_STDIO_ALONE(suite) \
	int main(void) \
	{ \
		syscall(SYS_close_range, 3, ~0U, 0); \
		return run_suite(suite()); \
	}

#endif
