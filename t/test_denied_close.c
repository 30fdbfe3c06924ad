/* test_denied_close.c - where close_range(2) is refused, /proc is not what it should be, or
   both: a child gets nothing that it was not given, and the closes follow what is open. */
#define _GNU_SOURCE
#include "denying.h"

/* ---- machines ------------------------------------------------------------ */

static const struct machine machines[] = {
	{ "close_range", { RANGE }, NULL, "clone3+procfs", "clone3copy+procfs", 0 },
	{ "close_range with flags", { RANGE_WITH_FLAGS }, NULL,
	  "clone3+close_range", "clone3copy+close_range", 0 },
	{ "close_range without flags", { RANGE_WITHOUT_FLAGS }, NULL,
	  "clone3+unshare", "clone3copy+unshare", 0 },
	{ "close_range, unshare", { RANGE, UNSHARE }, NULL,
	  "clone3+procfs", "clone3copy+procfs", 0 },
	{ "close_range with flags, unshare", { RANGE_WITH_FLAGS, UNSHARE }, NULL,
	  "clone3+close_range", "clone3copy+close_range", 0 },
	{ "clone3, close_range", { CLONE3, RANGE }, NULL, "clone+procfs", "fork+procfs", 0 },
	{ "clone3, clone with memory, close_range", { CLONE3, CLONE_WITH(CLONE_VM), RANGE },
	  NULL, "fork+procfs", "fork+procfs", 0 },
};

static const struct machine without_proc[] = {
	{ "nothing", { { 0, 0, 0, 0, 0 } }, proc_empty,
	  "clone3+unshare", "clone3copy+unshare", 0 },
	{ "close_range", { RANGE }, proc_empty, "clone3+scan", "clone3copy+scan", 0 },
	{ "close_range", { RANGE }, proc_fake, "clone3+scan", "clone3copy+scan", 0 },
	{ "close_range", { RANGE }, proc_of_inner, "clone3+scan", "clone3copy+scan", 0 },
	{ "close_range", { RANGE }, proc_of_another, "clone3+scan", "clone3copy+scan", 0 },
	{ "close_range, poll", { RANGE, { .nr = SYS_ppoll } }, proc_empty,
	  "clone3+scan", "clone3copy+scan", 0 },
	{ "close_range with flags", { RANGE_WITH_FLAGS }, proc_empty,
	  "clone3+close_range", "clone3copy+close_range", 0 },
	{ "close_range without flags", { RANGE_WITHOUT_FLAGS }, proc_empty,
	  "clone3+unshare", "clone3copy+unshare", 0 },
	{ "close_range, unshare", { RANGE, UNSHARE }, proc_empty,
	  "clone3+scan", "clone3copy+scan", 0 },
	{ "clone3, close_range", { CLONE3, RANGE }, proc_empty, "fork+scan", "fork+scan", 0 },
	{ "clone3, clone with memory, close_range", { CLONE3, CLONE_WITH(CLONE_VM), RANGE },
	  proc_fake, "fork+scan", "fork+scan", 0 },
};

/* The first table with each of the errors, the second with one of them in turn. */
enum {
	RUNS = COUNT(machines) * REFUSALS,
	RUNS_ALL = RUNS + COUNT(without_proc)
};

static const struct machine *machine_of(int i)
{
	return i < RUNS ? &machines[i / REFUSALS] : &without_proc[i - RUNS];
}

#define ENTER(m, i) \
	const struct machine *m = machine_of(i); \
	if (!enter(m, refusals[(i) % REFUSALS])) \
		SKIP("%s: no filter of system calls, or no mounts", m->name)

/* ---- what the child has -------------------------------------------------- */

/* What poll(2) calls invalid is open all the same. */
static void open_path_at(int n)
{
	int fd = open("/", O_PATH);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dup2(fd, n), n);
	close(fd);
}

static void open_all(void)
{
	open_far_ones();
	open_path_at(60);
	open_path_at(4095);
}

static void gives_nothing_else(const struct machine *m, unsigned long long flags)
{
	const struct wean_options none = { .flags = flags };
	const struct wean_options some = {
		FDS(KEEP(50), DUP(9, 5000), KEEP(20)), .flags = flags,
	};

	struct report *r = given_by(method_of(m, flags), &none);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	report_free(r);
	r = given_by(method_of(m, flags), &some);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 9 20 50");
	HOLDS(r, 9, 5000);
	HOLDS(r, 50, 50);
	report_free(r);
}

START_TEST(nothing_leaks_whatever_the_limit_is_lowered_to)
{
	static const int limits[] = { 5001, 5000, 300, 64 };

	NEED_DESCRIPTORS(5001);
	open_all();
	open_path_at(20);
	ENTER(m, _i);
	for (size_t n = 0; n < COUNT(limits); n++) {
		ck_assert_int_eq(set_soft_limit(limits[n]), 0);
		gives_nothing_else(m, way((int)n % WAYS));
	}
}
END_TEST

/* As many numbers as these are free again. */
static void leave_free(int n)
{
	while (dup(2) >= 0)
		;
	while (n > 0)
		close(100 + n--);
}

/* No number is left for a listing, nor for the pidfd.  A fork wants two, for the pipe by
   which it tells. */
START_TEST(nothing_leaks_where_every_number_is_taken)
{
	NEED_DESCRIPTORS(5001);
	open_all();
	ENTER(m, _i);
	char *path = report_path();
	ck_assert_int_eq(set_soft_limit(200), 0);
	for (int i = 0; i < WAYS; i++) {
		struct wean_options o = { .flags = way(i) };
		struct wean_child child;
		const char *method = method_of(m, way(i));
		int forks = !strncmp(method, "fork", 4);
		leave_free(0);
		if (forks) {
			ck_assert_int_eq(wean_spawn(&child, KID("exit", "0"), &o), EMFILE);
			ck_assert_int_eq(child.stage, WEAN_STAGE_PIPE);
			leave_free(2);
		}
		start(&child, KID("report", path), &o);
		ck_assert_str_eq(wean_method_name(child.method), method);
		ck_assert_int_eq(child.pidfd >= 0, forks); /* where that pipe was */
		ck_assert_int_eq(finish(&child).code, 0);
		leave_free(2);
		struct report *r = report_read_file(path);
		ck_assert_str_eq(report_fd_list(r), "0 1 2");
		report_free(r);
	}
	unlink(path);
	free(path);
}
END_TEST

/* ---- what it takes ------------------------------------------------------- */

struct job {
	const struct machine *machine;
	int error;
	struct wean_options o;
	const char *method;
};

static int one_start(void *arg)
{
	const struct job *job = arg;
	struct wean_child child;

	if (!enter(job->machine, job->error))
		return -1;
	count_begin();
	int error = wean_spawn(&child, KID("exit", "0"), &job->o);
	count_end();
	if (error || strcmp(wean_method_name(child.method), job->method)) {
		fprintf(stderr, "%s: %s at %s\n", strerror(error),
		        wean_method_name(child.method), wean_stage_name(child.stage));
		return -1;
	}
	error = wean_wait(&child, -1, NULL);
	wean_release(&child);
	return error;
}

/* How many descriptors are open, and how many the table has room for. */
struct table {
	size_t open, size;
};

static struct table table_now(void)
{
	struct table table = { 0, 0 };
	struct baseline b;
	char line[200];
	FILE *f = fopen("/proc/self/status", "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		sscanf(line, "FDSize: %zu", &table.size);
	fclose(f);
	ck_assert_uint_gt(table.size, 0);
	baseline_collect(&b);
	table.open = b.nfds;
	free(b.fds);
	return table;
}

static size_t polls(const struct count *c)
{
	size_t n = count_of(c, COUNT_CHILD, SYS_ppoll);

#ifdef SYS_poll
	n += count_of(c, COUNT_CHILD, SYS_poll);
#endif
	return n;
}

/* The pidfd too is in the table, and the listing reads itself. */
static void assert_calls(const struct count *c, const struct job *job, struct table table)
{
	size_t closes = count_of(c, COUNT_CHILD, SYS_close);
	int scans = strstr(job->method, "+scan") != NULL;
	int lists = strstr(job->method, "+procfs") != NULL;

	if (getenv("WEAN_DUMP"))
		count_dump(c, stderr);
	ck_assert_uint_le(count_failed(c, COUNT_CHILD, SYS_close, 0), 0);
	ck_assert_uint_le(closes, scans || lists ? table.open + 2 : 0);
	ck_assert_uint_le(count_of(c, COUNT_CHILD, SYS_fcntl), scans ? table.size + 3 : 6);
	ck_assert_uint_le(polls(c), scans ? table.size / 512 + 1 : 0);
	ck_assert_int_eq(c->executed, 1);
}

/* Counts need no more: each close is two stops of a tracer. */
enum { MANY = 600 };

START_TEST(closes_follow_what_is_open)
{
	struct job job = { .machine = machine_of(_i / WAYS), .o.flags = way(_i % WAYS) };
	struct filling f = { NULL, 0 };
	struct count c;

	NEED_DESCRIPTORS(20000);
	open_at(50);
	open_at(1023);
	open_path_at(60);
	job.method = method_of(job.machine, job.o.flags);
	kid();
	if (!can_deny() || !can_do(job.machine->hide))
		SKIP("no filter of system calls, or no mounts");
	job.error = refusals[_i / WAYS % REFUSALS];
	if (_i == WAYS * (RUNS + 1))
		open_path_at(19999); /* once: each number of its table is asked about */
	for (int round = 0; round < 2; round++) {
		struct table table = table_now();
		int error = count_calls(&c, one_start, &job);
		if (error > 0)
			SKIP("no counting here: %s", strerror(error));
		ck_assert_int_eq(error, 0);
		assert_calls(&c, &job, table);
		count_free(&c);
		if (round == 0)
			fill_descriptors(&f, MANY);
	}
	release_descriptors(&f);
}
END_TEST

/* Nor is a program started that would have more than it was given. */
START_TEST(where_nothing_tells_what_is_open_no_program_is_started)
{
	const struct machine m = { "", { RANGE, PSELECT }, proc_empty, NULL, NULL, 0 };

	NEED_DESCRIPTORS(5001);
	open_far_ones();
	if (!enter(&m, refusals[_i]))
		SKIP("no filter of system calls, or no mounts");
	for (int i = 0; i < WAYS; i++) {
		const struct wean_options o = { .out = WEAN_PIPE, .flags = way(i) };
		refused(KID("exit", "0"), &o, ENOTSUP, WEAN_STAGE_CLOSE, -1);
		refused((char *[]){ (char[]){ "/absent" }, NULL }, &o, ENOTSUP,
		        WEAN_STAGE_CLOSE, -1);
	}
}
END_TEST

/* ---- /proc that goes ------------------------------------------------------ */

START_TEST(a_listing_that_was_there_may_be_gone)
{
	const struct machine first = { "", { RANGE }, NULL, "clone3+procfs",
	                               "clone3copy+procfs", 0 };
	const struct machine then = { "", { { 0, 0, 0, 0, 0 } }, proc_empty, "clone3+scan",
	                              "clone3copy+scan", 0 };

	if (!can_do(proc_empty))
		SKIP("may not mount over /proc");
	NEED_DESCRIPTORS(5001);
	open_all();
	open_path_at(20);
	if (!enter(&first, refusals[_i]))
		SKIP("no filter of system calls");
	for (int i = 0; i < WAYS; i++)
		gives_nothing_else(&first, way(i));
	ck_assert(proc_empty());
	for (int i = 0; i < WAYS; i++)
		gives_nothing_else(&then, way(i));
}
END_TEST

/* What is listed under an outer namespace's numbers is the right process all the same. */
static void start_as_init(int error)
{
	const struct machine m = { "", { RANGE }, NULL, "clone3+procfs",
	                           "clone3copy+procfs", 0 };

	ck_assert_int_eq(getpid(), 1);
	ck_assert(enter(&m, error));
	for (int i = 0; i < WAYS; i++)
		gives_nothing_else(&m, way(i));
}

START_TEST(a_listing_of_an_outer_namespace_serves)
{
	int status;

	if (!can_deny() || unshare(CLONE_NEWPID))
		SKIP("no filter of system calls, or no namespaces");
	NEED_DESCRIPTORS(5001);
	open_all();
	open_path_at(20);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		start_as_init(refusals[_i]);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* ------------------------------------------------------------------------- */

static TCase *add_case(Suite *s, const char *name, const char *tags)
{
	TCase *t = tcase_create(name);

	tcase_set_timeout(t, 60);
	tcase_set_tags(t, tags);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	suite_add_tcase(s, t);
	return t;
}

static void add_tests(TCase *t, TCase *counted, int from, int to)
{
	tcase_add_loop_test(t, nothing_leaks_whatever_the_limit_is_lowered_to, from, to);
	tcase_add_loop_test(t, nothing_leaks_where_every_number_is_taken, from, to);
	tcase_add_loop_test(counted, closes_follow_what_is_open, WAYS * from, WAYS * to);
}

static Suite *denied_close_suite(void)
{
	Suite *s = suite_create("denied close");
	TCase *t = add_case(s, "refused", "default seccomp native");
	TCase *hidden = add_case(s, "without proc", "default seccomp native root");

	add_tests(t, add_case(s, "counted", "default seccomp native ptrace"), 0, RUNS);
	add_tests(hidden, add_case(s, "counted without proc",
	                           "default seccomp native root ptrace"), RUNS, RUNS_ALL);
	tcase_add_loop_test(hidden, where_nothing_tells_what_is_open_no_program_is_started,
	                    0, REFUSALS);
	tcase_add_loop_test(hidden, a_listing_that_was_there_may_be_gone, 0, REFUSALS);
	tcase_add_loop_test(hidden, a_listing_of_an_outer_namespace_serves, 0, REFUSALS);
	return s;
}

RUN_WITH_STDIO_ALONE(denied_close_suite)
