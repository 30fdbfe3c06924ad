/* test_counts.c - a start costs the same few system calls whatever the limit is and
   however many descriptors are open. */
#define _GNU_SOURCE
#include "descriptors.h"

#include "count.h"

enum { MANY = 19000, FIRST = 1 };

/* ---- one start, counted -------------------------------------------------- */

struct request {
	struct wean_options o;
	char *program;      /* NULL: kid, which leaves with 0 */
	int limit;          /* 0: as it is */
	int open;           /* so many descriptors besides those that there are */
	int is_first;       /* of the process */
	const char *method; /* the child's method must be so; NULL: any */
	int error;          /* that the start must give */
};

static int spawn(const struct request *q, struct wean_child *child)
{
	char *argv[] = { q->program ? q->program : kid(), (char[]){ "exit" }, (char[]){ "0" },
	                 NULL };

	return wean_spawn(child, argv, &q->o);
}

static int prepare(const struct request *q)
{
	struct wean_child child;

	if (q->limit && set_limit(q->limit))
		return -1;
	if (q->is_first)
		return 0;
	int error = spawn(q, &child);
	if (!error)
		error = wean_wait(&child, -1, NULL);
	wean_release(&child);
	return error != q->error;
}

/* Nothing of Check in here: it is the counter's fork that runs this. */
static int counted(void *arg)
{
	const struct request *q = arg;
	struct wean_child child;

	if (prepare(q))
		return -1;
	count_begin();
	int error = spawn(q, &child);
	count_end();
	if (error != q->error) {
		fprintf(stderr, "%s at %s\n", strerror(error), wean_stage_name(child.stage));
		return -1;
	}
	const char *method = wean_method_name(child.method);
	if (q->method && strcmp(q->method, method)) {
		fprintf(stderr, "started by %s\n", method);
		return -1;
	}
	if (!error)
		error = wean_wait(&child, -1, NULL);
	wean_release(&child);
	return error != q->error;
}

struct figures {
	size_t parent, child, closes, close_ranges, execs;
	char names[2][600]; /* of the parent's and of the child's */
};

/* Below a limit some numbers stay free: the pidfd wants one. */
static int count_among(const struct request *q, struct count *c)
{
	struct request copy = *q;
	struct filling f = { NULL, 0 };

	kid();
	if (q->open)
		fill_descriptors(&f, q->open);
	for (int i = 30; q->open && q->limit && i < 40; i++)
		close(f.fds[i]);
	int error = count_calls(c, counted, &copy);
	release_descriptors(&f);
	return error;
}

/* 0, or an errno when there is no counting on this machine. */
static int count(const struct request *q, struct figures *f)
{
	struct count c;
	int error = count_among(q, &c);

	if (error > 0)
		return error;
	ck_assert_int_eq(error, 0);
	f->parent = count_total(&c, COUNT_PARENT);
	f->child = count_total(&c, COUNT_CHILD);
	f->closes = count_of(&c, COUNT_CHILD, SYS_close);
	f->close_ranges = count_of(&c, COUNT_CHILD, SYS_close_range);
	f->execs = count_of(&c, COUNT_CHILD, SYS_execve);
	count_names(&c, COUNT_PARENT, f->names[0], sizeof f->names[0]);
	count_names(&c, COUNT_CHILD, f->names[1], sizeof f->names[1]);
	if (getenv("WEAN_DUMP"))
		fprintf(stderr, "limit %d, %d more open\n  %s\n  %s\n", q->limit, q->open,
		        f->names[0], f->names[1]);
	ck_assert_int_eq(c.children, 1);
	ck_assert_int_eq(c.executed, q->error == 0);
	count_free(&c);
	return 0;
}

#define COUNT_OR_SKIP(q, f) \
	do { \
		int error_ = count(q, f); \
		if (error_) \
			SKIP("no counting here: %s", strerror(error_)); \
	} while (0)

static void at_most(const struct figures *f, size_t parent, size_t child)
{
	ck_assert_msg(f->parent <= parent, "%zu calls in the parent: %s", f->parent,
	              f->names[0]);
	ck_assert_msg(f->child <= child, "%zu calls in the child: %s", f->child, f->names[1]);
}

/* ---- an ordinary start --------------------------------------------------- */

static const struct {
	int limit, open, is_first;
} callers[] = {
	{ 256, 0, 0 }, { 1024, 0, 0 }, { 20000, 0, 0 },
	{ 256, MANY, 0 }, { 1024, MANY, 0 }, { 20000, MANY, 0 },
	{ 256, 0, FIRST }, { 20000, MANY, FIRST },
};

START_TEST(a_start_is_nine_calls_in_the_child_and_four_in_the_parent)
{
	struct request q = {
		.limit = callers[_i].limit, .open = callers[_i].open,
		.is_first = callers[_i].is_first, .method = "clone3+unshare",
	};
	struct figures f;

	NEED_DESCRIPTORS(20000);
	COUNT_OR_SKIP(&q, &f);
	at_most(&f, 4, 9);
	ck_assert_uint_eq(f.closes, 0);
	ck_assert_uint_eq(f.close_ranges, 1);
	ck_assert_uint_eq(f.execs, 1);
}
END_TEST

/* The calls that man/wean_design.7 has in its rows of `who` and `other`. */
static const char *names_in_manual(const char *who, const char *other, char *names, size_t size)
{
	char path[PATH_MAX], line[256], where[16], name[32];
	size_t len = 0;

	snprintf(path, sizeof path, "%s/wean_design.7", getenv("MANDIR"));
	FILE *f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s", path);
	names[0] = '\0';
	while (fgets(line, sizeof line, f))
		if (sscanf(line, ".It %15s Ta Xr %31s 2 Ta", where, name) == 2 &&
		    (!strcmp(where, who) || !strcmp(where, other)))
			len += (size_t)snprintf(names + len, size - len, "%s%s",
			                        len ? " " : "", name);
	fclose(f);
	return names;
}

/* Nothing of Check in here. */
static int start_and_wait(void *arg)
{
	const struct request q = { .o = { 0 } };
	struct wean_child child;

	(void)arg;
	if (prepare(&q))
		return -1;
	count_begin();
	int error = spawn(&q, &child);
	if (!error)
		error = wean_wait(&child, -1, NULL);
	wean_release(&child);
	count_end();
	return error;
}

START_TEST(the_manual_has_each_call_of_a_start_and_its_wait_in_order)
{
	char names[600], manual[600];
	struct count c;

	if (!getenv("MANDIR"))
		SKIP("where the manual is says make");
	kid();
	int error = count_calls(&c, start_and_wait, NULL);
	if (error > 0)
		SKIP("no counting here: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	/* The wait and the release are the parent's too. */
	ck_assert_str_eq(count_names(&c, COUNT_CHILD, names, sizeof names),
	                 names_in_manual("child", "child", manual, sizeof manual));
	names_in_manual("parent", "parent", manual, sizeof manual);
	size_t len = strlen(manual);
	manual[len++] = ' ';
	names_in_manual("wait", "release", manual + len, sizeof manual - len);
	ck_assert_str_eq(count_names(&c, COUNT_PARENT, names, sizeof names), manual);
	count_free(&c);
}
END_TEST

START_TEST(a_copy_of_the_memory_takes_a_page_more_and_nothing_else)
{
	struct request q = {
		.o = { .flags = WEAN_NO_SHARED_MEMORY }, .method = "clone3copy+unshare",
		.limit = callers[_i].limit, .open = callers[_i].open,
		.is_first = callers[_i].is_first,
	};
	struct figures f;

	NEED_DESCRIPTORS(20000);
	COUNT_OR_SKIP(&q, &f);
	at_most(&f, 6, 9);
	ck_assert_uint_eq(f.closes, 0);
	ck_assert_uint_eq(f.close_ranges, 1);
}
END_TEST

START_TEST(where_all_is_inherited_nothing_is_closed)
{
	struct request q = {
		.o = { .flags = WEAN_INHERIT_ALL }, .limit = callers[_i].limit,
		.open = callers[_i].open, .is_first = callers[_i].is_first, .method = "clone3",
	};
	struct figures f;

	NEED_DESCRIPTORS(20000);
	COUNT_OR_SKIP(&q, &f);
	at_most(&f, 4, 8);
	ck_assert_uint_eq(f.closes + f.close_ranges, 0);
}
END_TEST

/* ---- with descriptors ---------------------------------------------------- */

START_TEST(pipes_cost_the_same_at_a_thousand_as_at_nineteen_thousand)
{
	struct request few = {
		.o = { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE },
		.method = "clone3+unshare",
	};
	struct request thousand = few, many = few;
	struct figures f, t, m;

	NEED_DESCRIPTORS(MANY + 100);
	thousand.open = 1000;
	many.open = MANY;
	COUNT_OR_SKIP(&few, &f);
	COUNT_OR_SKIP(&thousand, &t);
	COUNT_OR_SKIP(&many, &m);
	at_most(&f, 4 + 6, 9 + 1); /* made and closed; a gap */
	ck_assert_uint_eq(f.closes, 0);
	ck_assert_str_eq(t.names[0], m.names[0]);
	ck_assert_str_eq(t.names[1], m.names[1]);
	at_most(&m, f.parent + 7, f.child + 1 + 3 * 4); /* whose they are; fetched */
	ck_assert_ptr_nonnull(strstr(m.names[1], "openat")); /* they were high */
	ck_assert_uint_le(m.closes, 3);
}
END_TEST

START_TEST(one_pipe_costs_little_at_any_height)
{
	struct request few = { .o = { .out = WEAN_PIPE }, .method = "clone3+unshare" };
	struct request many = few;
	struct figures f, m;

	NEED_DESCRIPTORS(MANY + 100);
	many.open = MANY;
	COUNT_OR_SKIP(&few, &f);
	COUNT_OR_SKIP(&many, &m);
	at_most(&f, 4 + 2, 9 + 1);
	at_most(&m, f.parent + 5, f.child + 1 + 4);
}
END_TEST

START_TEST(entries_cost_a_call_each_and_gaps_a_call_each)
{
	struct wean_fd fds[32];
	struct request q = { .o = { .fds = fds, .nfds = 32 }, .method = "clone3+unshare" };
	struct figures f, m;

	NEED_DESCRIPTORS(MANY + 100);
	for (int i = 0; i < 32; i++)
		fds[i] = (struct wean_fd)KEEP(open_at(10 + 2 * i));
	COUNT_OR_SKIP(&q, &f);
	at_most(&f, 4 + 32 + 1, 9 + 32 + 32); /* each is looked at before the start */
	ck_assert_uint_eq(f.closes, 0);
	ck_assert_uint_eq(f.close_ranges, 1 + 32);
	q.open = MANY;
	COUNT_OR_SKIP(&q, &m);
	ck_assert_str_eq(f.names[0], m.names[0]);
	ck_assert_str_eq(f.names[1], m.names[1]);
}
END_TEST

/* A number for a temporary has to be found where what is open there is inherited. */
START_TEST(moves_cost_the_same_where_nineteen_thousand_are_inherited)
{
	struct request few = {
		.o = { FDS(DUP(1, 2), DUP(2, 1)), .flags = WEAN_INHERIT_ALL }, .method = "clone3",
	};
	struct request many = few;
	struct figures f, m;

	NEED_DESCRIPTORS(MANY + 100);
	many.open = MANY;
	COUNT_OR_SKIP(&few, &f);
	COUNT_OR_SKIP(&many, &m);
	at_most(&f, 16, 13);
	at_most(&m, 16, 13);
}
END_TEST

/* Closed, they are found out by a call each, and opened by three. */
START_TEST(a_caller_without_stdio_costs_a_few_calls_more)
{
	struct request q = { .method = "clone3+unshare" };
	struct figures f;
	int kept[3];

	for (int fd = 0; fd <= 2; fd++)
		kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	int error = count(&q, &f);
	for (int fd = 0; fd <= 2; fd++)
		dup2(kept[fd], fd);
	if (error)
		SKIP("no counting here: %s", strerror(error));
	at_most(&f, 4 + 2, 9 + 3 * 4);
}
END_TEST

/* ---- failures ------------------------------------------------------------ */

START_TEST(a_start_that_fails_costs_few_calls_too)
{
	static char missing[] = "/missing/program";
	static const struct wean_options options[] = {
		{ 0 }, { .flags = WEAN_NO_SHARED_MEMORY }, { .flags = WEAN_INHERIT_ALL },
	};
	struct request q = { .o = options[_i], .program = missing, .error = ENOENT };
	struct figures f, m;

	NEED_DESCRIPTORS(MANY + 100);
	COUNT_OR_SKIP(&q, &f);
	at_most(&f, 4 + 1 + 2, 9 + 1); /* the pidfd, a page; the exit */
	q.open = MANY;
	COUNT_OR_SKIP(&q, &m);
	ck_assert_str_eq(f.names[0], m.names[0]);
	ck_assert_str_eq(f.names[1], m.names[1]);
}
END_TEST

START_TEST(a_search_that_fails_tries_each_place_once)
{
	static char missing[] = "no-such-program";
	struct request q = { .program = missing, .error = ENOENT };
	struct figures f;

	setenv("PATH", "/a:/b:.::/c:/d", 1);
	COUNT_OR_SKIP(&q, &f);
	ck_assert_uint_eq(f.execs, 4);
	at_most(&f, 4 + 1, 8 + 4 + 1);
}
END_TEST

static Suite *counts_suite(void)
{
	Suite *s = suite_create("counts");
	TCase *c = tcase_create("starts"), *fds = tcase_create("descriptors");
	TCase *failed = tcase_create("failures");

	tcase_set_tags(c, "default ptrace native");
	tcase_set_tags(fds, "default ptrace native");
	tcase_set_tags(failed, "default ptrace native");
	tcase_set_timeout(c, 30);
	tcase_set_timeout(fds, 30);
	tcase_set_timeout(failed, 30);
	tcase_set_tags(c, "default ptrace");
	tcase_set_tags(fds, "default ptrace");
	tcase_set_tags(failed, "default ptrace");
	tcase_add_loop_test(c, a_start_is_nine_calls_in_the_child_and_four_in_the_parent, 0,
	                    COUNT(callers));
	tcase_add_test(c, the_manual_has_each_call_of_a_start_and_its_wait_in_order);
	tcase_add_loop_test(c, a_copy_of_the_memory_takes_a_page_more_and_nothing_else, 0,
	                    COUNT(callers));
	tcase_add_loop_test(c, where_all_is_inherited_nothing_is_closed, 0, COUNT(callers));
	tcase_add_test(fds, pipes_cost_the_same_at_a_thousand_as_at_nineteen_thousand);
	tcase_add_test(fds, one_pipe_costs_little_at_any_height);
	tcase_add_test(fds, entries_cost_a_call_each_and_gaps_a_call_each);
	tcase_add_test(fds, moves_cost_the_same_where_nineteen_thousand_are_inherited);
	tcase_add_test(fds, a_caller_without_stdio_costs_a_few_calls_more);
	tcase_add_loop_test(failed, a_start_that_fails_costs_few_calls_too, 0, 3);
	tcase_add_test(failed, a_search_that_fails_tries_each_place_once);
	suite_add_tcase(s, c);
	suite_add_tcase(s, fds);
	suite_add_tcase(s, failed);
	return s;
}

RUN_WITH_STDIO_ALONE(counts_suite)
