/* test_depth.c - how deep the child's stack gets, from its first frame to its exec: the
   stack is painted, and looked at when the child has used it. */
#define _GNU_SOURCE
#include "deny.h"
#include "descriptors.h"

#include "../src/closer.h"
#include "../src/launch.h"

/* Of 4096.  What is above it is for compilers and machines that are not tested here. */
enum { PAINT = 0xa5, DEEPEST = 3072, SHALLOWEST = 64 };

/* ---- a start, on a stack that the test can see --------------------------- */

static int depth(const struct scratch *s)
{
	const unsigned char *stack = (const void *)s->stack;
	size_t n = 0;

	while (n < sizeof s->stack && stack[n] == PAINT)
		n++;
	return (int)(sizeof s->stack - n);
}

/* Gives the depth, after a start that has to end with this error. */
static int deep(const char *name, char *const argv[], const struct wean_options *o,
                int error, int *method)
{
	static struct scratch scratch;
	static _Alignas(16) char memory[65536];
	struct wean_child child = { .pidfd = -1 };
	struct plan plan;

	memset(&scratch, PAINT, sizeof scratch);
	ck_assert_int_eq(wean_plan_make(&plan, argv, o, memory, sizeof memory), 0);
	int got = wean_launch(&plan, &scratch, &child);
	wean_plan_free(&plan);
	ck_assert_msg(got == error, "%s: %s", name, strerror(got));
	if (!got)
		ck_assert_int_eq(waitpid(child.pid, NULL, 0), child.pid);
	wean_sys_drop(&child.pidfd);
	*method = child.method;
	return depth(&scratch);
}

/* ---- requests that differ in the child's steps --------------------------- */

static const struct wean_limit limit = { .resource = RLIMIT_CORE };
static struct wean_fd low[32], high[32];

static const struct request {
	const char *name;
	struct wean_options o;
	char *program; /* NULL: kid */
	int error;
} requests[] = {
	{ "default", { 0 }, NULL, 0 },
	{ "low", { .fds = low, .nfds = 32 }, NULL, 0 },
	{ "high", { .fds = high, .nfds = 32 }, NULL, 0 },
	{ "opened", { FDS(OPEN(7, "/dev/zero"), SAME(8, 7), NUL(9), CLOSED(0)) }, NULL, 0 },
	{ "searched", { 0 }, (char[]){ "no-such-program" }, ENOENT },
	{ "forbidden", { 0 }, (char[]){ "/" }, EACCES },
	{ "steps", { .flags = WEAN_NEW_SESSION | WEAN_SET_UMASK | WEAN_SET_NICE
	             | WEAN_NO_NEW_PRIVS | WEAN_SHELL_SCRIPT | WEAN_RESET_SIGNALS,
	             .sigignore = WEAN_SIG(SIGUSR1), .sigmask = WEAN_SIG(SIGUSR2),
	             .nice = 19, .limits = &limit, .nlimits = 1, .dir = "/" }, NULL, 0 },
};

/* The launches of which the child has its stack in its parent's memory, and the ways to
   close under each. */
static const struct ladder {
	const char *name;
	int refused[4], rung, closed;
} ladders[] = {
	{ "clone3, unshare", { 0 }, RUNG_CLONE3, CLOSE_UNSHARE },
	{ "clone, unshare", { SYS_clone3 }, RUNG_CLONE, CLOSE_UNSHARE },
	{ "clone3, listing", { SYS_close_range }, RUNG_CLONE3, CLOSE_PROCFS },
	{ "clone, listing", { SYS_clone3, SYS_close_range }, RUNG_CLONE, CLOSE_PROCFS },
	{ "clone3, scan", { SYS_close_range, SYS_getdents64 }, RUNG_CLONE3, CLOSE_SCAN },
	{ "clone, scan", { SYS_clone3, SYS_close_range, SYS_getdents64 }, RUNG_CLONE,
	  CLOSE_SCAN },
};

static void open_sources(void)
{
	struct filling f;

	fill_descriptors(&f, 3200);
	for (int i = 0; i < 32; i++) {
		low[i] = (struct wean_fd)DUP(50 + i, 50 + (i + 1) % 32);
		high[i] = (struct wean_fd)DUP(100 + i, 3000 + i);
	}
}

static void refuse(const struct ladder *l)
{
	for (size_t i = 0; i < COUNT(l->refused) && l->refused[i]; i++)
		ck_assert(deny(l->refused[i], ENOSYS));
}

/* Changing ids takes memory of its own, and is no deeper than the other steps. */
START_TEST(no_child_is_deeper_than_three_of_its_four_kilobytes)
{
	const struct ladder *l = &ladders[_i];

	NEED_DESCRIPTORS(3300);
	if (l->refused[0] && !can_deny())
		SKIP("no system call can be refused here");
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	kid();
	open_sources();
	refuse(l);
	for (size_t i = 0; i < COUNT(requests); i++) {
		const struct request *q = &requests[i];
		char *program = q->program ? q->program : kid();
		char *argv[] = { program, (char[]){ "exit" }, (char[]){ "0" }, NULL };
		int method, bytes;

		bytes = deep(q->name, argv, &q->o, q->error, &method);
		if (getenv("WEAN_DUMP"))
			fprintf(stderr, "%s, %s: %d bytes\n", l->name, q->name, bytes);
		ck_assert_msg(bytes <= DEEPEST, "%s, %s: %d bytes", l->name, q->name, bytes);
		ck_assert_msg(bytes >= SHALLOWEST, "%s, %s: %d bytes", l->name, q->name,
		              bytes);
		if (!q->error)
			ck_assert_int_eq(method, l->rung | l->closed << 8);
	}
}
END_TEST

static Suite *depth_suite(void)
{
	Suite *s = suite_create("depth");
	TCase *first = tcase_create("first rungs"), *other = tcase_create("other rungs");

	tcase_set_tags(first, "default");
	tcase_set_tags(other, "default seccomp");
	tcase_set_timeout(first, 30);
	tcase_set_timeout(other, 30);
	tcase_add_loop_test(first, no_child_is_deeper_than_three_of_its_four_kilobytes, 0,
	                    1);
	tcase_add_loop_test(other, no_child_is_deeper_than_three_of_its_four_kilobytes, 1,
	                    COUNT(ladders));
	suite_add_tcase(s, first);
	suite_add_tcase(s, other);
	return s;
}

RUN_WITH_STDIO_ALONE(depth_suite)
