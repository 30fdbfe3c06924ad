/* storming.h - for t/storm.c: a million descriptors at once, what a process has open, and
   system calls that are refused by their flags. */
#ifndef STORMING_H
#define STORMING_H

#include "descriptors.h"

#include <sched.h>
#include <sys/mount.h>

#include "count.h"
#include "deny.h"

/* t/highlimit mounts a second procfs here, which a test does not hide. */
#define LISTING "/tmp/proc/self/fd"

/* ---- many descriptors --------------------------------------------------- */

/* Opens every number below n, without close-on-exec. */
static inline void open_all_below(int n)
{
	int sockets[2], fd = open("/dev/null", O_RDWR), next;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	for (next = sockets[1] + 1; next < n; next++) {
		next = receive_copies(sockets, fd, n - next < A_MESSAGE ? n - next : A_MESSAGE);
		ck_assert_int_ge(next, 0);
	}
	ck_assert_int_eq(next, n);
	ck_assert_int_ge(fcntl(n - 1, F_GETFD), 0);
	ck_assert_int_eq(fcntl(n, F_GETFD), -1);
}

/* 0: exactly these numbers are open.  Otherwise 2 gets a line. */
static inline int others_are_open(const int *numbers, size_t n)
{
	DIR *dir = opendir(LISTING);
	size_t found = 0, others = 0, at;
	int other = -1;

	if (!dir) {
		perror(LISTING);
		return -1;
	}
	for (struct dirent *e; (e = readdir(dir));) {
		int fd = e->d_name[0] == '.' ? dirfd(dir) : atoi(e->d_name);

		if (fd == dirfd(dir))
			continue;
		for (at = 0; at < n && numbers[at] != fd; at++)
			;
		found += at < n;
		others += at == n;
		other = at == n ? fd : other;
	}
	closedir(dir);
	if (found == n && others == 0)
		return 0;
	dprintf(2, "%zu of %zu are open, and %zu others: %d\n", found, n, others, other);
	return 1;
}

/* ---- another kernel ----------------------------------------------------- */

static inline int hide_proc(void)
{
	return unshare(CLONE_NEWNS) ||
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("none", "/proc", "tmpfs", 0, NULL);
}

#endif
