/* deny.h - a system call that fails as it would under a filter, or on another kernel: for
   the calling process and what it starts, to their end. */
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

/* 0: it can't be arranged. */
static inline int deny(long nr, int error)
{
	struct filter_step steps[] = {
		{ 0x20, 0, 0, 0 },                          /* load the number */
		{ 0x15, 0, 1, (uint32_t)nr },               /* not it: skip one */
		{ 0x06, 0, 0, 0x50000U | (uint32_t)error }, /* SECCOMP_RET_ERRNO */
		{ 0x06, 0, 0, 0x7fff0000U },                /* SECCOMP_RET_ALLOW */
	};
	struct filter filter = { sizeof steps / sizeof *steps, steps };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, 2 /* SECCOMP_MODE_FILTER */, &filter);
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
