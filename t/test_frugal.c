/* test_frugal.c - wean_spawn() of an ordinary request takes nothing from the heap, and
   never more than 16 KiB of stack. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "heap.h"

/* ---- requests ------------------------------------------------------------ */

enum { ORDINARY, LARGE };

static struct wean_fd full[32], low[32], high[32], large[300];
static char *edits[] = { (char[]){ "A=1" }, (char[]){ "PATH" }, NULL };
static char *few[] = {
	(char[]){ "A=1" }, (char[]){ "B=2" }, (char[]){ "PATH=/bin:/usr/bin" }, NULL,
};

static const struct request {
	const char *name;
	struct wean_options o;
	char *program; /* NULL: kid */
	int size, error;
} requests[] = {
	{ "default", { 0 }, NULL, ORDINARY, 0 },
	{ "pipes", { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE }, NULL,
	  ORDINARY, 0 },
	{ "copy", { .flags = WEAN_NO_SHARED_MEMORY, .out = WEAN_PIPE }, NULL, ORDINARY, 0 },
	{ "all", { .flags = WEAN_INHERIT_ALL, .err = WEAN_PIPE }, NULL, ORDINARY, 0 },
	{ "search", { 0 }, (char[]){ "no-such-program" }, ORDINARY, ENOENT },
	{ "missing", { .in = WEAN_PIPE }, (char[]){ "/missing/program" }, ORDINARY, ENOENT },
	{ "missing, copy", { .flags = WEAN_NO_SHARED_MEMORY }, (char[]){ "/missing/program" },
	  ORDINARY, ENOENT },
	{ "no directory", { .dir = "/missing" }, NULL, ORDINARY, ENOENT },
	{ "not open", { FDS(DUP(5, 4000)), .out = WEAN_PIPE }, NULL, ORDINARY, EBADF },
	{ "edits", { .env = few, .env_edit = edits, .flags = WEAN_SHELL_SCRIPT }, NULL,
	  ORDINARY, 0 },
	{ "32 rotated", { .fds = full, .nfds = 32, .flags = WEAN_DIR_FD, .dirfd = 40,
	  .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE }, NULL, ORDINARY, 0 },
	{ "32 kept, searched", { .fds = low, .nfds = 32, .out = WEAN_PIPE,
	  .err = WEAN_MERGE }, (char[]){ "no-such-program" }, ORDINARY, ENOENT },
	{ "32 fetched", { .fds = high, .nfds = 32, .in = WEAN_PIPE, .out = WEAN_PIPE,
	  .flags = WEAN_NO_SHARED_MEMORY }, NULL, ORDINARY, 0 },
	{ "300", { .fds = large, .nfds = 300, .in = WEAN_PIPE }, NULL, LARGE, 0 },
	{ "300, missing", { .fds = large, .nfds = 300 }, (char[]){ "/missing/program" },
	  LARGE, ENOENT },
};

/* 50 to 81 rotate, 50 to 81 are kept, and many far ones are fetched. */
static void fill_requests(void)
{
	struct filling f;

	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	fill_descriptors(&f, 3200);
	ck_assert_int_eq(dup2(open("/", O_RDONLY | O_DIRECTORY), 40), 40);
	for (int i = 0; i < 32; i++) {
		full[i] = (struct wean_fd)DUP(50 + i, 50 + (i + 1) % 32);
		low[i] = (struct wean_fd)KEEP(50 + i);
		high[i] = (struct wean_fd)DUP(100 + i, 3000 + i);
	}
	for (int i = 0; i < 300; i++)
		large[i] = (struct wean_fd)DUP(400 + i, 400 + (i + 7) % 300);
}

static int one_start(const struct request *q)
{
	char *argv[] = { q->program ? q->program : kid(), (char[]){ "exit" }, (char[]){ "0" },
	                 NULL };
	struct wean_child child;
	int error = wean_spawn(&child, argv, &q->o);

	if (!error)
		wean_wait(&child, -1, NULL);
	wean_release(&child);
	return error;
}

START_TEST(an_ordinary_start_takes_nothing_from_the_heap)
{
	const struct request *q = &requests[_i];

	if (SANITIZED)
		SKIP("this heap is not ours to count");
	NEED_DESCRIPTORS(3300);
	fill_requests();
	kid();
	free(malloc(1));
	ck_assert_uint_gt(allocations, 0);
	for (int i = 0; i < 2; i++) { /* the first of the process, and another */
		size_t before = allocations;
		int error = one_start(q);
		size_t after = allocations;
		ck_assert_msg(error == q->error, "%s: %s", q->name, strerror(error));
		if (q->size == ORDINARY)
			ck_assert_msg(after == before, "%s: %zu", q->name, after - before);
		else
			ck_assert_uint_gt(after, before);
	}
}
END_TEST

/* ---- stack --------------------------------------------------------------- */

enum { STACK = 256 * 1024, PAINT = 0xa5 };

/* The lowest byte that differs from the paint, below `from`. */
static size_t depth(const unsigned char *bottom, const unsigned char *from)
{
	const unsigned char *p = bottom;

	while (p < from && *p == PAINT)
		p++;
	return (size_t)(from - p);
}

struct measured {
	const struct request *q;
	unsigned char *bottom;
	size_t used;
	int error;
};

/* Two frames above wean_spawn, a few hundred bytes of what is measured. */
__attribute__((noinline)) static int start_here(struct measured *m)
{
	return one_start(m->q);
}

__attribute__((noinline)) static void *measure(void *arg)
{
	struct measured *m = arg;
	unsigned char *here = __builtin_frame_address(0);
	unsigned char *from = here - 512; /* this frame and what libc's memset needs */

	for (unsigned char *p = m->bottom; p < from; p++)
		*(volatile unsigned char *)p = PAINT;
	m->error = start_here(m);
	m->used = depth(m->bottom, here);
	return NULL;
}

START_TEST(no_start_takes_more_than_sixteen_kilobytes_of_stack)
{
	const struct request *q = &requests[_i];
	struct measured m = { .q = q };
	pthread_attr_t attr;
	pthread_t thread;

	if (SANITIZED)
		SKIP("a sanitizer's frames are larger");
	NEED_DESCRIPTORS(3300);
	fill_requests();
	kid();
	m.bottom = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
	                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	ck_assert_ptr_ne(m.bottom, MAP_FAILED);
	for (int i = 0; i < 2; i++) { /* at first the linker needs some too */
		pthread_attr_init(&attr);
		ck_assert_int_eq(pthread_attr_setstack(&attr, m.bottom, STACK), 0);
		ck_assert_int_eq(pthread_create(&thread, &attr, measure, &m), 0);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		pthread_attr_destroy(&attr);
		ck_assert_msg(m.error == q->error, "%s: %s", q->name, strerror(m.error));
		if (getenv("WEAN_DUMP"))
			fprintf(stderr, "%s: %zu bytes of stack\n", q->name, m.used);
		ck_assert_msg(m.used <= 16384, "%s: %zu bytes", q->name, m.used);
		ck_assert_uint_gt(m.used, 4096); /* or nothing was measured */
	}
}
END_TEST

/* The smallest stack that there can be, and these 16 KiB. */
static void *start_in_little(void *arg)
{
	return (void *)(intptr_t)one_start(arg);
}

START_TEST(a_small_thread_can_start_a_child)
{
	struct request q = requests[_i];
	pthread_attr_t attr;
	pthread_t thread;
	void *error = NULL;

	NEED_DESCRIPTORS(3300);
	fill_requests();
	kid();
	pthread_attr_init(&attr);
	size_t size = (size_t)PTHREAD_STACK_MIN + 16384;
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, size), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, start_in_little, &q), 0);
	ck_assert_int_eq(pthread_join(thread, &error), 0);
	ck_assert_int_eq((int)(intptr_t)error, q.error);
}
END_TEST

static Suite *frugal_suite(void)
{
	Suite *s = suite_create("frugal");
	TCase *c = case_that_needs(s, "native");

	tcase_set_timeout(c, 30);
	tcase_add_loop_test(c, a_small_thread_can_start_a_child, 0, COUNT(requests));
	if (COUNTS_HEAP || SANITIZED) /* where libc's has a second name; t/test_host.c: all */
		tcase_add_loop_test(c, an_ordinary_start_takes_nothing_from_the_heap, 0,
		                    COUNT(requests));
	tcase_add_loop_test(c, no_start_takes_more_than_sixteen_kilobytes_of_stack, 0,
	                    COUNT(requests));
	return s;
}

RUN_WITH_STDIO_ALONE(frugal_suite)
