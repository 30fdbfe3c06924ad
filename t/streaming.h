/* streaming.h - for the tests of the popen family. */
#ifndef STREAMING_H
#define STREAMING_H

#include "descriptors.h"
#include "talking.h"

#include <wean_popen.h>

static inline FILE *open_kid(char *const argv[], const char *mode)
{
	errno = BASELINE_ERRNO;
	FILE *f = wean_popenv(argv, mode);
	ck_assert_msg(f, "%s: %s", argv[1], strerror(errno));
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	return f;
}

static inline int close_it(FILE *f)
{
	errno = BASELINE_ERRNO;
	int status = wean_pclose(f);
	if (status != -1)
		ck_assert_int_eq(errno, BASELINE_ERRNO);
	return status;
}

static inline int exited(int value)
{
	return value << 8;
}

static inline char *read_stream(FILE *f)
{
	char *text = for_good(malloc(1 << 20));
	size_t n = fread(text, 1, (1 << 20) - 1, f);

	ck_assert(feof(f));
	text[n] = '\0';
	return text;
}

static inline void refuses(FILE *f, int error)
{
	ck_assert_ptr_null(f);
	ck_assert_int_eq(errno, error);
}

/* Of one that is no stream of ours. */
static inline void is_not_ours(FILE *f)
{
	ck_assert_int_eq(wean_pclose(f), -1);
	ck_assert_int_eq(errno, EINVAL);
	errno = BASELINE_ERRNO;
	ck_assert_int_eq(wean_pclose_status(f, 0, NULL), EINVAL);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
}

static inline void assert_no_child(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

/* Until some child is over; it is not reaped. */
static inline pid_t await_any_zombie(void)
{
	siginfo_t si;

	ck_assert_int_eq(waitid(P_ALL, 0, &si, WEXITED | WNOWAIT), 0);
	return si.si_pid;
}

/* A child that is over when its input ends, and an end of that input which its stream is
   not. */
struct held {
	FILE *stream;
	int end;
};

static inline struct held open_held(const char *value)
{
	struct held h;

	h.stream = open_kid(KID("cat", "--then", "exit", (char *)(uintptr_t)value), "w");
	h.end = fcntl(fileno(h.stream), F_DUPFD_CLOEXEC, 50);
	ck_assert_int_ge(h.end, 50);
	return h;
}

#endif
