/* What is done by libc, or for the caller alone: no child comes here. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "sys.h"

int
wean_sys_clone(const struct sys_clone *c)
{
#ifdef __hppa__
	char *stack = c->stack;
#else
	char *stack = c->stack + c->stack_size;
#endif
	int saved = errno;
	int pid = clone(c->run, stack, (int)c->flags | c->exit_signal, c->arg, c->pidfd,
	                NULL, NULL);

	if (pid < 0) {
		pid = -errno;
		errno = saved;
	}
	return pid;
}

long long
wean_sys_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The clock cuts off what is less than a millisecond. */
long long
wean_sys_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? LLONG_MAX : wean_sys_now_ms() + timeout_ms + (timeout_ms > 0);
}

int
wean_sys_left(long long deadline)
{
	long long left;

	if (deadline == LLONG_MAX)
		return -1;
	left = deadline - wean_sys_now_ms();
	return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

enum { PAGE = 4096 };

void *
wean_sys_shared_page(void)
{
	int saved = errno;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
	                  -1, 0);

	errno = saved;
	return page == MAP_FAILED ? NULL : page;
}

void
wean_sys_drop_page(void *page)
{
	if (page)
		munmap(page, PAGE);
}

/* Outwards to whole pages: that is just what an allocator maps for a large piece, and
   mremap(2) would refuse one that is marked in part.  Linux 2.6.38, where
   /sys/kernel/mm/transparent_hugepage/enabled is not "never". */
void
wean_sys_want_huge_pages(void *memory, size_t size)
{
	int saved = errno;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)memory & ~(page - 1);
	uintptr_t end = ((uintptr_t)memory + size + page - 1) & ~(page - 1);

	madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	errno = saved;
}

int
wean_sys_secure(void)
{
	int saved = errno;
	int secure = getauxval(AT_SECURE) != 0;

	errno = saved;
	return secure;
}

void
wean_sys_kernel(int version[3])
{
	struct utsname u;
	const char *c = u.release;

	memset(version, 0, 3 * sizeof version[0]);
	if (uname(&u) < 0 || strcmp(u.sysname, "Linux") != 0)
		return;
	for (int i = 0; i < 3; i++) {
		while (*c >= '0' && *c <= '9')
			version[i] = version[i] * 10 + (*c++ - '0');
		if (*c == '.')
			c++;
	}
}

char *const *
wean_sys_environ(void)
{
	return environ;
}

/* Linux 4.5; 0 pages: no bound.  (pipe(7), pipe-user-pages-soft.) */
long long
wean_sys_pipe_budget(void)
{
	char text[24];
	long long pages = 0;
	int fd = wean_sys_open("/proc/sys/fs/pipe-user-pages-soft", O_RDONLY | O_CLOEXEC, 0);
	int len = fd < 0 ? fd : wean_sys_read(fd, text, sizeof text);

	wean_sys_drop(&fd);
	if (len <= 0)
		return 16384LL * PAGE; /* as it is by default */
	for (int i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++)
		pages = pages * 10 + (text[i] - '0');
	return pages > 0 ? pages * sysconf(_SC_PAGESIZE) : LLONG_MAX;
}
