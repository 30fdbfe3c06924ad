/* deny.h - system calls that fail as they would under a filter, or on another kernel: for
   the calling thread and what it starts, to their end. */
#ifndef DENY_H
#define DENY_H

#include "common.h"

#include <sys/prctl.h>

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

/* The kernel's own structs; its headers are not everywhere. */
struct filter_step {
	uint16_t code;
	uint8_t when, otherwise;
	uint32_t value;
};

struct filter {
	uint16_t n;
	struct filter_step *steps;
};

/* What is refused: every call of this number, or those in which argument `arg` (from 0)
   has one of the bits, or none of them. */
enum deny_when { DENY_ALL, DENY_WITH, DENY_WITHOUT };

struct denial {
	long nr;
	int error;
	enum deny_when when;
	int arg;
	uint32_t bits;
};

enum { DENY_STEPS = 5, DENY_MOST = 16 }; /* steps of one at most, in one filter */

/* Where the kernel puts the low half of an argument before the filter. */
static inline uint32_t deny_offset(int arg)
{
	return 16 + 8 * (uint32_t)arg + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
}

static inline size_t deny_steps(struct filter_step *steps, const struct denial *d)
{
	struct filter_step *s = steps;
	uint8_t looks = d->when != DENY_ALL, without = d->when == DENY_WITHOUT;

	*s++ = (struct filter_step){ 0x20, 0, 0, 0 };       /* load the number */
	*s++ = (struct filter_step){ 0x15, 0, (uint8_t)(looks ? 3 : 1), (uint32_t)d->nr };
	if (looks) {
		*s++ = (struct filter_step){ 0x20, 0, 0, deny_offset(d->arg) };
		*s++ = (struct filter_step){ 0x45, without, !without, d->bits };
	}
	*s++ = (struct filter_step){ 0x06, 0, 0,            /* SECCOMP_RET_ERRNO */
	                             0x50000U | (uint32_t)d->error };
	return (size_t)(s - steps);
}

/* By one filter.  0: it can't be arranged. */
static inline int deny_these(const struct denial *denied, size_t n)
{
	struct filter_step steps[DENY_MOST * DENY_STEPS + 1];
	size_t at = 0;

	ck_assert_uint_le(n, DENY_MOST);
	for (size_t i = 0; i < n; i++)
		at += deny_steps(steps + at, &denied[i]);
	steps[at++] = (struct filter_step){ 0x06, 0, 0, 0x7fff0000U }; /* SECCOMP_RET_ALLOW */
	struct filter filter = { (uint16_t)at, steps };
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, 2 /* SECCOMP_MODE_FILTER */, &filter);
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
