/* test_stale_bits.c - CVE-2024-45025, on a kernel that has it not: cutting a shared table
 * may leave stale bits behind, and the program would get EMFILE early.  A kernel that may
 * do so is asked, once, and where it does no table is shared. */
#define _GNU_SOURCE
#include "gate.h"

#include "../src/ladder.c"

#include "descriptors.h"

/* ---- the machine --------------------------------------------------------- */

static struct {
	const char *release;
	int stale;             /* the probe finds stale bits */
	int elsewhere;         /* children are born into another PID namespace */
	int full;              /* no process can be made for the probe */
	int no_number;         /* and there is no descriptor for it */
	int no_clone3;
	int asked, probes;     /* answers of the probe, its processes */
	unsigned long long flags; /* of the last launch */
} machine = { .release = "6.6.10" };

static long named(const long a[6])
{
	struct utsname *u = (struct utsname *)(intptr_t)a[0];
	long r = let_through(GATE_UNAME, a);

	strcpy(u->release, machine.release);
	return r;
}

/* As if the word of 64 to 127 were still marked as full. */
static long duplicated(const long a[6])
{
	const long beyond[6] = { a[0], a[1], 128 };

	if (a[1] != F_DUPFD_CLOEXEC || a[2] != 64)
		return let_through(SYS_fcntl_, a);
	machine.asked++;
	return let_through(SYS_fcntl_, machine.stale ? beyond : a);
}

static long cloned(long nr, const long a[6], int (*run)(void *), unsigned long long flags)
{
	if (nr == GATE_CLONE3 && machine.no_clone3)
		return -ENOSYS;
	if (run == wean_child) {
		machine.flags = flags;
		return let_through(nr, a);
	}
	machine.probes++;
	return machine.full ? -EAGAIN : let_through(nr, a);
}

static long cloned3(const long a[6])
{
	const uint64_t *flags = (const uint64_t *)(intptr_t)a[0];

	return cloned(GATE_CLONE3, a, (int (*)(void *))(intptr_t)a[2], *flags);
}

static long cloned_by_libc(const long a[6])
{
	const struct gate_clone *c = (const struct gate_clone *)(intptr_t)a[0];

	return cloned(GATE_CLONE, a, c->run, (unsigned long long)c->flags);
}

static int is(const long a[6], const char *path)
{
	const char *c = (const char *)(intptr_t)a[1];

	while (*c && *c == *path)
		c++, path++;
	return *c == *path;
}

static long at_gate(long nr, const long a[6])
{
	switch (nr) {
	case GATE_UNAME:
		return named(a);
	case GATE_CLONE3:
		return cloned3(a);
	case GATE_CLONE:
		return cloned_by_libc(a);
	case SYS_fcntl_:
		return duplicated(a);
	case SYS_openat:
		return machine.no_number && is(a, "/") ? -EMFILE : let_through(nr, a);
	case SYS_statx:
		if (machine.elsewhere && is(a, "/proc/thread-self/ns/pid_for_children"))
			return -ENOENT;
		return let_through(nr, a);
	default:
		return let_through(nr, a);
	}
}

/* As a process does that begins on such a kernel. */
static void begin_on(const char *release)
{
	machine.release = release;
	atomic_store(&cuts_cleanly, ANSWER_UNKNOWN);
	know_kernel();
}

/* ---- a start, by each rung that can share a table ------------------------ */

static const struct rung_here {
	const char *name;
	int no_clone3;
	unsigned long long flags;
} rungs[] = {
	{ "clone3", 0, 0 },
	{ "clone", 1, 0 },
	{ "clone3copy", 0, WEAN_NO_SHARED_MEMORY },
};

static void starts_on(const struct rung_here *rung, int shared)
{
	const struct wean_options o = { FDS(DUP(7, 5), CLOSED(1)), .flags = rung->flags };
	struct wean_status status;
	struct wean_child child;
	char method[64];

	struct report *r = given(&o);
	ck_assert_str_eq(report_fd_list(r), "0 2 7");
	HOLDS(r, 7, 5);
	report_free(r);
	ck_assert_int_eq((machine.flags & SYS_FILES) != 0, shared);
	ck_assert_int_eq(wean_spawn(&child, KID("exit", "3"), &o), 0);
	ck_assert_int_eq((machine.flags & SYS_FILES) != 0, shared);
	snprintf(method, sizeof method, "%s+%s", rung->name,
	         shared ? "unshare" : "close_range");
	ck_assert_str_eq(wean_method_name(child.method), method);
	ck_assert_int_eq(wean_wait(&child, -1, &status), 0);
	ck_assert_int_eq(status.code, 3);
	wean_release(&child);
}

/* All above the cut is in use, as where the fault does harm. */
static const struct rung_here *begin(int i)
{
	open_at(5);
	for (int n = 20; n < 200; n++)
		ck_assert_int_eq(dup2(5, n), n);
	machine.no_clone3 = rungs[i].no_clone3;
	if (machine.no_clone3) /* whose own question is not what is counted here */
		atomic_store(&memory_is_shared, ANSWER_YES);
	return &rungs[i];
}

START_TEST(where_bits_are_left_behind_no_table_is_shared)
{
	const struct rung_here *rung = begin(_i);

	machine.stale = 1;
	begin_on("6.6.10");
	for (int i = 0; i < 3; i++)
		starts_on(rung, 0);
	ck_assert_int_eq(machine.asked, 1);
	ck_assert_int_eq(machine.probes, 2);
}
END_TEST

START_TEST(where_the_fix_came_without_the_number_the_table_is_shared)
{
	const struct rung_here *rung = begin(_i);

	begin_on("5.15.0-fixed");
	for (int i = 0; i < 3; i++)
		starts_on(rung, 1);
	ck_assert_int_eq(machine.asked, 1);
	ck_assert_int_eq(machine.probes, 2);
}
END_TEST

START_TEST(a_kernel_with_the_fix_is_not_asked)
{
	const struct rung_here *rung = begin(_i);
	const char *const fixed[] = { "6.6.48", "6.11.0" };

	machine.stale = 1;
	for (int i = 0; i < 2; i++) {
		begin_on(fixed[i]);
		starts_on(rung, 1);
	}
	ck_assert_int_eq(machine.asked, 0);
	ck_assert_int_eq(machine.probes, 0);
}
END_TEST

/* The first child there would be the init of the namespace, and all others die with it. */
START_TEST(where_a_probe_would_do_harm_none_is_made_and_no_table_is_shared)
{
	const struct rung_here *rung = begin(_i);

	machine.elsewhere = 1;
	begin_on("6.6.10");
	starts_on(rung, 0);
	ck_assert_int_eq(machine.probes, 0);
	machine.elsewhere = 0;
	starts_on(rung, 1);
	ck_assert_int_eq(machine.asked, 1);
}
END_TEST

START_TEST(where_no_probe_can_be_made_now_it_is_tried_again)
{
	const struct rung_here *rung = begin(_i);

	machine.full = 1;
	begin_on("6.6.10");
	starts_on(rung, 0);
	machine.full = 0;
	machine.no_number = 1;
	starts_on(rung, 0);
	ck_assert_int_eq(machine.asked, 0);
	machine.no_number = 0;
	starts_on(rung, 1);
	ck_assert_int_eq(machine.asked, 1);
}
END_TEST

START_TEST(what_may_have_it_is_told_by_the_number)
{
	static const struct {
		const char *release;
		int may;
	} kernels[] = {
		{ "4.19.0", 0 }, { "5.8.18", 0 }, { "5.9.0", 1 }, { "5.10.224", 1 },
		{ "5.10.225", 0 }, { "5.11.0", 1 }, { "5.15.165", 1 }, { "5.15.166", 0 },
		{ "6.1.106-13-amd64", 1 }, { "6.1.107", 0 }, { "6.6.47", 1 }, { "6.6.48", 0 },
		{ "6.6.100", 0 }, { "6.10.6", 1 }, { "6.10.7", 0 }, { "6.9.12", 1 },
		{ "6.11.0-rc1", 0 }, { "6.18", 0 }, { "7.0.0", 0 }, { "unheard of", 1 },
	};

	for (size_t i = 0; i < COUNT(kernels); i++) {
		machine.release = kernels[i].release;
		ck_assert_msg(wean_kernel_may_cut_badly() == kernels[i].may, "%s",
		              kernels[i].release);
	}
}
END_TEST

static Suite *stale_bits_suite(void)
{
	Suite *s = suite_create("stale bits");
	TCase *t = tcase_create("stale bits"), *number = tcase_create("number");

	tcase_set_tags(t, "default native");
	tcase_add_loop_test(t, where_bits_are_left_behind_no_table_is_shared, 0,
	                    COUNT(rungs));
	tcase_add_loop_test(t, where_the_fix_came_without_the_number_the_table_is_shared, 0,
	                    COUNT(rungs));
	tcase_add_loop_test(t, a_kernel_with_the_fix_is_not_asked, 0, COUNT(rungs));
	tcase_add_loop_test(t,
	        where_a_probe_would_do_harm_none_is_made_and_no_table_is_shared, 0,
	        COUNT(rungs));
	tcase_add_loop_test(t, where_no_probe_can_be_made_now_it_is_tried_again, 0,
	                    COUNT(rungs));
	tcase_add_test(number, what_may_have_it_is_told_by_the_number);
	suite_add_tcase(s, t);
	suite_add_tcase(s, number);
	return s;
}

RUN_WITH_STDIO_ALONE(stale_bits_suite)
