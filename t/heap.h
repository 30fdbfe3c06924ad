/* heap.h - a heap that counts what is asked of it.  Its functions take the place of
   libc's: for one file of a program. */
#ifndef HEAP_H
#define HEAP_H

#include "common.h"

#include "deny.h"

/* glibc's own names for what is replaced here.  A sanitizer has replaced it already. */
#if defined __GLIBC__ && !SANITIZED
#define COUNTS_HEAP 1

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static size_t allocations;

void *malloc(size_t size)
{
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_realloc(old, size);
}

void *memalign(size_t align, size_t size)
{
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_memalign(align, size);
}

#else
#define COUNTS_HEAP 0
static size_t allocations;
#endif

#endif
