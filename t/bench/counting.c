/* counting.c - the system calls and the allocations of one start, to its release. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../count.h"

/* ---- a heap that counts ---- */

static size_t allocations;

/* No locked instruction, which would cost the peers that allocate much. */
static void count_allocation(void)
{
	__atomic_store_n(&allocations, __atomic_load_n(&allocations, __ATOMIC_RELAXED) + 1,
	                 __ATOMIC_RELAXED);
}

/* glibc's own names for what is replaced here.  A sanitizer has replaced it already. */
#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

void *malloc(size_t size)
{
	count_allocation();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	count_allocation();
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	count_allocation();
	return __libc_realloc(old, size);
}

#endif

/* ---- one start ---- */

struct workload {
	const struct peer *peer;
	struct job job;
	size_t *allocations; /* shared with who counts */
};

/* In a fork of the caller; the first start of a process may do more. */
static int start_one(void *arg)
{
	struct workload *w = arg;
	int error = w->peer->run(&w->job);
	size_t before;

	if (error)
		return error;
	before = allocations;
	count_begin();
	error = w->peer->run(&w->job);
	count_end();
	*w->allocations = allocations - before;
	return error;
}

void count_start(const struct peer *peer, const struct job *job, struct counts *out)
{
	static int refused;
	struct workload w = {.peer = peer, .job = *job};
	struct count calls;

	w.allocations = mmap(NULL, sizeof *w.allocations, PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (refused || w.allocations == MAP_FAILED)
		return;
	refused = count_calls(&calls, start_one, &w) > 0;
	if (!refused) {
		out->known = calls.n > 0;
		out->parent = count_total(&calls, COUNT_PARENT);
		out->child = count_total(&calls, COUNT_CHILD);
		out->allocations = *w.allocations;
	}
	count_free(&calls);
	munmap(w.allocations, sizeof *w.allocations);
}
