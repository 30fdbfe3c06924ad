/* gate.h - the library with a gate of the test's own between it and all that it asks
 * for: the kernel, in the caller and in the child up to its exec, and libc.
 *
 * A program includes it before common.h, defines at_gate(), and is linked to the
 * library's other objects.  At the gate a call is a number and six arguments, and the
 * answer is the kernel's: >= 0, or a negative errno.  It may run in a child that shares
 * the caller's memory, on a small stack and beside the caller: it uses let_through(),
 * memory that was there before, and nothing of libc.
 *
 * Allocations come to it where the program is linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free and defines GATE_HEAP.
 */
#ifndef GATE_H
#define GATE_H

/* What is not a number of the kernel's. */
enum {
	GATE_CLONE3 = -10000, /* wean_clone3() */
	GATE_CLONE,           /* clone(2) by libc, a[0]: a struct gate_clone */
	GATE_MMAP, GATE_MUNMAP, GATE_UNAME,
	GATE_FDOPEN,          /* of a test that wraps it: whether libc's may be called */
	GATE_MALLOC, GATE_CALLOC, GATE_REALLOC, GATE_FREE
};

struct gate_clone {
	int (*run)(void *);
	void *stack, *arg;
	int flags;
	int *pidfd;
};

static long at_gate(long nr, const long a[6]);
static long let_through(long nr, const long a[6]);

/* ---- the library's own files, called so -------------------------------- */

#define WEAN_GATE gate
#define wean_clone3 gate_clone3
#include "../src/sys.c"
#undef wean_clone3
long wean_clone3(void *clone_args, size_t size, int (*run)(void *), void *arg);

#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

static int gate_clone(int (*run)(void *), void *stack, int flags, void *arg, int *pidfd,
                      void *tls, void *tid)
{
	struct gate_clone c = { run, stack, arg, flags, pidfd };
	const long a[6] = { (long)(intptr_t)&c };
	long r = at_gate(GATE_CLONE, a);

	(void)tls, (void)tid;
	if (r < 0)
		errno = (int)-r;
	return r < 0 ? -1 : (int)r;
}

static void *gate_mmap(void *where, size_t size, int prot, int flags, int fd, off_t at)
{
	const long a[6] = { (long)(intptr_t)where, (long)size, prot, flags, fd, (long)at };
	long r = at_gate(GATE_MMAP, a);

	if (r < 0 && r > -4096) {
		errno = (int)-r;
		return MAP_FAILED;
	}
	return (void *)(intptr_t)r;
}

static int gate_munmap(void *where, size_t size)
{
	const long a[6] = { (long)(intptr_t)where, (long)size };

	return (int)at_gate(GATE_MUNMAP, a);
}

static int gate_uname(struct utsname *u)
{
	const long a[6] = { (long)(intptr_t)u };

	return (int)at_gate(GATE_UNAME, a);
}

#define clone(...) gate_clone(__VA_ARGS__)
#define mmap(...) gate_mmap(__VA_ARGS__)
#define munmap(...) gate_munmap(__VA_ARGS__)
#define uname(...) gate_uname(__VA_ARGS__)
#include "../src/sys_host.c"
#undef clone
#undef mmap
#undef munmap
#undef uname

/* ---- to the gate --------------------------------------------------------- */

static long gate(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	const long a[6] = { a0, a1, a2, a3, a4, a5 };

	return at_gate(nr, a);
}

long gate_clone3(void *clone_args, size_t size, int (*run)(void *), void *arg)
{
	const long a[6] = { (long)(intptr_t)clone_args, (long)size, (long)(intptr_t)run,
	                    (long)(intptr_t)arg };

	return at_gate(GATE_CLONE3, a);
}

#ifdef GATE_HEAP
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size)
{
	const long a[6] = { (long)size };

	return (void *)(intptr_t)at_gate(GATE_MALLOC, a);
}

void *__wrap_calloc(size_t n, size_t size)
{
	const long a[6] = { (long)n, (long)size };

	return (void *)(intptr_t)at_gate(GATE_CALLOC, a);
}

void *__wrap_realloc(void *block, size_t size)
{
	const long a[6] = { (long)(intptr_t)block, (long)size };

	return (void *)(intptr_t)at_gate(GATE_REALLOC, a);
}

void __wrap_free(void *block)
{
	const long a[6] = { (long)(intptr_t)block };

	at_gate(GATE_FREE, a);
}

static long let_heap_through(long nr, const long a[6])
{
	if (nr == GATE_MALLOC)
		return (long)(intptr_t)__real_malloc((size_t)a[0]);
	if (nr == GATE_CALLOC)
		return (long)(intptr_t)__real_calloc((size_t)a[0], (size_t)a[1]);
	if (nr == GATE_REALLOC)
		return (long)(intptr_t)__real_realloc((void *)(intptr_t)a[0], (size_t)a[1]);
	__real_free((void *)(intptr_t)a[0]);
	return 0;
}
#endif

/* ---- and through it ------------------------------------------------------ */

static long clone_through(const struct gate_clone *c)
{
	int r = clone(c->run, c->stack, c->flags, c->arg, c->pidfd, NULL, NULL);

	return r < 0 ? -errno : r;
}

static long mmap_through(const long a[6])
{
	void *r = mmap((void *)(intptr_t)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4],
	               (off_t)a[5]);

	return r == MAP_FAILED ? -errno : (long)(intptr_t)r;
}

static long let_through(long nr, const long a[6])
{
	switch (nr) {
	case GATE_CLONE3:
		return wean_clone3((void *)(intptr_t)a[0], (size_t)a[1],
		                   (int (*)(void *))(intptr_t)a[2], (void *)(intptr_t)a[3]);
	case GATE_CLONE:
		return clone_through((const struct gate_clone *)(intptr_t)a[0]);
	case GATE_MMAP:
		return mmap_through(a);
	case GATE_MUNMAP:
		return munmap((void *)(intptr_t)a[0], (size_t)a[1]);
	case GATE_UNAME:
		return uname((struct utsname *)(intptr_t)a[0]);
	case GATE_FDOPEN:
		return 0;
#ifdef GATE_HEAP
	case GATE_MALLOC:
	case GATE_CALLOC:
	case GATE_REALLOC:
	case GATE_FREE:
		return let_heap_through(nr, a);
#endif
	default:
		return kernel(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
}

#endif
