/* deny.h - system calls that fail as they would under a filter, or on another kernel: for
   the calling thread and what it starts, to their end. */
#ifndef DENY_H
#define DENY_H

#include "common.h"
#include "conditions.h"

/* Sanitizers have an allocator of their own, which ends the program where there is no
   memory. */
#ifdef __has_feature
# define HAS_FEATURE(f) __has_feature(f)
#else
# define HAS_FEATURE(f) 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || \
	HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer) || \
	HAS_FEATURE(memory_sanitizer)
# define SANITIZED 1
#else
# define SANITIZED 0
#endif

static inline int deny_these(const struct denial *denied, size_t n)
{
	ck_assert_uint_le(n, DENY_MOST);
	return refuse_these(denied, n);
}

static inline int deny(long nr, int error)
{
	return deny_these(&(struct denial){ .nr = nr, .error = error }, 1);
}

static inline int can_deny(void)
{
	static int known = -1;
	int status;

	if (known >= 0)
		return known;
	pid_t pid = fork();
	if (pid == 0)
		_exit(!deny(SYS_getppid, ENFILE) || syscall(SYS_getppid) != -1 ||
		      errno != ENFILE);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return known = status == 0;
}

#endif
