/* conditions.h - what a process may find itself in, for the tests and the benchmark: many
   descriptors, and system calls that are refused.  Nothing of Check in here. */
#ifndef CONDITIONS_H
#define CONDITIONS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/* ---- many descriptors --------------------------------------------------- */

enum { A_MESSAGE = 253 }; /* descriptors: SCM_MAX_FD of the kernel */

/* Receives n copies of fd at the lowest free numbers: the last of them; -1: they can't be
   had.  A dup(2) for each would take a minute for a million. */
static inline int receive_copies(const int sockets[2], int fd, int n)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(A_MESSAGE * sizeof fd)];
	size_t size = (size_t)n * sizeof fd;
	/* POSIX and musl: a socklen_t; glibc: a size_t. */
	socklen_t space = (socklen_t)CMSG_SPACE(size), len = (socklen_t)CMSG_LEN(size);
	struct iovec byte = { (char[1]){ 0 }, 1 };
	struct msghdr m = {
		.msg_iov = &byte, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = space,
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
	                       .cmsg_len = len };
	for (size_t at = 0; at < size; at += sizeof fd)
		memcpy(CMSG_DATA(c) + at, &fd, sizeof fd);
	if (sendmsg(sockets[0], &m, 0) != 1 || recvmsg(sockets[1], &m, 0) != 1 ||
	    m.msg_flags & MSG_CTRUNC)
		return -1;
	memcpy(&fd, CMSG_DATA(c) + size - sizeof fd, sizeof fd);
	return fd;
}

/* ---- what is refused ---------------------------------------------------- */

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

/* By one filter, of at most DENY_MOST.  0: it can't be arranged. */
static inline int refuse_these(const struct denial *denied, size_t n)
{
	struct filter_step steps[DENY_MOST * DENY_STEPS + 1];
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		at += deny_steps(steps + at, &denied[i]);
	steps[at++] = (struct filter_step){ 0x06, 0, 0, 0x7fff0000U }; /* SECCOMP_RET_ALLOW */
	struct filter filter = { (uint16_t)at, steps };
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, 2 /* SECCOMP_MODE_FILTER */, &filter);
}

#endif
