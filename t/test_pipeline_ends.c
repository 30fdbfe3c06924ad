/* test_pipeline_ends.c - where the ends of a pipeline's pipes are and where not, what
 * they cost, and that all of its stages start or none. */
#define _GNU_SOURCE
#include "piping.h"

#include "count.h"
#include "deny.h"
#include "high.h"

/* ---- who holds what ------------------------------------------------------ */

static char *report_argv[MOST][4];

/* Every stage says what it holds. */
static void lay_reporting(struct line *l, size_t n)
{
	lay(l, n);
	for (size_t i = 0; i < n; i++) {
		memcpy(report_argv[i], KID("report", report_path()), sizeof report_argv[i]);
		l->argvs[i] = report_argv[i];
	}
}

static struct report *said_by(size_t i)
{
	struct report *r = report_read_file(report_argv[i][2]);

	ck_assert_ptr_nonnull(r);
	unlink(report_argv[i][2]);
	return r;
}

static void assert_joined(const struct report *left, const struct report *right)
{
	const struct report_fd *from = report_fd(left, 1), *to = report_fd(right, 0);

	ck_assert_int_eq(from->type, 'p');
	ck_assert_int_eq(from->access, 'w');
	ck_assert_int_eq(to->access, 'r');
	ck_assert_uint_eq(from->ino, to->ino);
}

/* By the stages that reported; frees what they said. */
static void assert_all_joined(size_t n)
{
	struct report *left = NULL, *r;

	for (size_t i = 0; i < n; i++, left = r) {
		r = said_by(i);
		ck_assert_str_eq(report_fd_list(r), "0 1 2");
		if (left)
			assert_joined(left, r);
		report_free(left);
	}
	report_free(left);
}

static void must_be_joined(struct line *l)
{
	must_open(l);
	close_line(l);
	assert_all_joined(l->n);
}

START_TEST(each_stage_holds_its_two_ends_and_no_other)
{
	struct line l;
	struct baseline b;

	lay_reporting(&l, MOST);
	for (size_t i = 0; i < MOST; i++)
		l.o[i].flags = way(_i);
	baseline_take(&b);
	must_be_joined(&l);
	errno = b.error;
	baseline_same(&b);
}
END_TEST

/* Closed, 0, 1 and 2 are the first numbers that a pipe gets. */
START_TEST(a_caller_without_stdio_has_the_same_pipeline)
{
	struct line l;
	int kept[3];

	lay_reporting(&l, 3);
	for (int fd = 0; fd <= 2; fd++)
		kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	for (int fd = 0; fd <= 2; fd++)
		if (_i == 3 || _i == fd)
			close(fd);
	must_open(&l);
	for (int fd = 0; fd <= 2; fd++)
		dup2(kept[fd], fd);
	close_line(&l);
	assert_all_joined(3);
}
END_TEST

START_TEST(the_caller_holds_the_outer_ends_alone)
{
	struct line l;
	struct filling f;
	struct baseline before, after;

	fill_below(&f, 10);
	lay(&l, MOST);
	l.o[0].in = l.o[2].err = l.o[MOST - 1].out = WEAN_PIPE;
	baseline_take(&before);
	must_open(&l);
	baseline_take(&after);
	ck_assert_uint_eq(after.nfds, before.nfds + MOST + 3);
	for (size_t i = 0; i < MOST; i++) {
		ck_assert_int_eq(l.children[i].in >= 3, i == 0);
		ck_assert_int_eq(l.children[i].out >= 3, i == MOST - 1);
		ck_assert_int_eq(l.children[i].err >= 3, i == 2);
		ck_assert_int_ge(l.children[i].pidfd, 3);
	}
	close(l.children[0].in);
	l.children[0].in = -1;
	free(after.fds);
	close_line(&l);
	errno = before.error;
	baseline_same(&before);
	release_descriptors(&f);
}
END_TEST

START_TEST(the_callers_ends_alone_do_not_block)
{
	struct line l;

	lay_reporting(&l, 3);
	l.o[0].in = l.o[1].err = l.o[2].out = WEAN_PIPE;
	for (size_t i = 0; i < 3; i++)
		l.o[i].flags = WEAN_NONBLOCK;
	must_open(&l);
	ck_assert_int_eq(is_nonblocking(l.children[0].in), 1);
	ck_assert_int_eq(is_nonblocking(l.children[1].err), 1);
	ck_assert_int_eq(is_nonblocking(l.children[2].out), 1);
	close_line(&l);
	for (size_t i = 0; i < 3; i++) {
		struct report *r = said_by(i);

		for (int fd = 0; fd <= 1 + (i == 1); fd++)
			ck_assert_int_eq(report_fd(r, fd)->fl_flags & O_NONBLOCK, 0);
		report_free(r);
	}
}
END_TEST

/* ---- what it costs ------------------------------------------------------- */

struct priced {
	struct line l;
	size_t n;
	int open;
	size_t parent, child, opened, children;
};

static int priced_line(void *arg)
{
	struct priced *p = arg;
	int error, wrong = 0;

	lay(&p->l, p->n);
	p->l.o[0].in = WEAN_NULL;
	count_begin();
	error = open_line(&p->l);
	count_end();
	for (size_t i = 0; i < p->n && !error; i++) {
		wrong |= strcmp(wean_method_name(p->l.children[i].method), "clone3+unshare");
		error = wean_wait(&p->l.children[i], LONG, NULL);
	}
	release_line(&p->l);
	return error || wrong ? -1 : 0;
}

/* 0: there is no counting. */
static int price(struct priced *p, size_t n, int open)
{
	struct filling f;
	struct count c;

	p->n = n;
	fill_below(&f, open);
	int error = count_calls(&c, priced_line, p);
	release_descriptors(&f);
	if (error > 0)
		return 0;
	ck_assert_int_eq(error, 0);
	if (getenv("WEAN_DUMP"))
		count_dump(&c, stderr);
	p->parent = count_total(&c, COUNT_PARENT);
	p->child = count_total(&c, COUNT_CHILD);
	p->opened = count_of(&c, COUNT_CHILD, SYS_openat) -
	            count_failed(&c, COUNT_CHILD, SYS_openat, 0);
	p->children = (size_t)c.children;
	ck_assert_int_eq(c.executed, (int)n);
	count_free(&c);
	return 1;
}

/* pipe2, and two closes: the rest is that of so many starts. */
START_TEST(an_inner_pipe_is_three_calls_of_the_caller)
{
	struct priced one, all;

	if (!price(&one, 1, 0) || !price(&all, MOST, 0))
		SKIP("no calls can be counted here");
	ck_assert_uint_eq(one.parent, 4);
	ck_assert_uint_eq(all.parent, MOST * 4 + (MOST - 1) * 3);
	ck_assert_uint_eq(all.children, MOST);
}
END_TEST

/* An end is opened anew by the child, whose table is cut low; the caller looks at each
   before: at the file, and at whose child it will be. */
START_TEST(a_pipeline_costs_the_same_among_many_descriptors)
{
	struct priced few, many;

	NEED_DESCRIPTORS(MANY + 100);
	if (!price(&few, MOST, 1000) || !price(&many, MOST, MANY))
		SKIP("no calls can be counted here");
	ck_assert_uint_eq(many.parent, few.parent);
	ck_assert_uint_eq(many.child, few.child);
	ck_assert_uint_eq(many.children, MOST);
	ck_assert_uint_eq(many.opened, 1 + 2 * (MOST - 1)); /* /dev/null, and each end */
}
END_TEST

START_TEST(ends_high_up_are_the_right_ones)
{
	struct line l;
	struct filling f;

	NEED_DESCRIPTORS(MANY + 100);
	fill_below(&f, MANY);
	lay_reporting(&l, MOST);
	must_be_joined(&l);
	release_descriptors(&f);
}
END_TEST

/* ---- all or none --------------------------------------------------------- */

/* What shows that a stage was begun. */
static char *mark_file;

static void lay_marked(struct line *l, size_t n)
{
	static struct wean_fd fds[MOST];

	lay(l, n);
	l->o[0].in = WEAN_PIPE;
	mark_file = at("mark");
	unlink(mark_file);
	fds[0] = (struct wean_fd)OPEN(5, mark_file, .oflag = O_CREAT | O_WRONLY);
	l->o[0].fds = fds;
	l->o[0].nfds = 1;
}

static void refused_unbegun(struct line *l, size_t k, struct refusal r)
{
	line_refused(l, k, r);
	ck_assert_int_eq(access(mark_file, F_OK), -1);
}

static const struct wean_fd on_0[] = { NUL(5), NUL(0) }, on_1[] = { NUL(1) };
static const struct wean_fd not_open[] = { KEEP(5), DUP(6, 444) };

#define FAULT(k, error, stage, index, ...) \
	{ k, { error, WEAN_STAGE_##stage, index }, { __VA_ARGS__ } }

static const struct fault {
	size_t k; /* at this stage of three */
	struct refusal r;
	struct wean_options o;
} faults[] = {
	FAULT(1, EINVAL, OPTIONS, 0, .in = WEAN_NULL),
	FAULT(1, EINVAL, OPTIONS, 0, .in = WEAN_INHERIT),
	FAULT(2, EINVAL, OPTIONS, 0, .in = WEAN_CLOSED),
	FAULT(1, EINVAL, OPTIONS, 1, .out = WEAN_NULL),
	FAULT(1, EINVAL, OPTIONS, 1, .out = WEAN_MERGE),
	FAULT(2, EINVAL, OPTIONS, 2 + 0, .fds = on_0, .nfds = 2),
	FAULT(2, EINVAL, OPTIONS, 2 + 0, .in = WEAN_PIPE, .fds = on_0, .nfds = 2),
	FAULT(1, EINVAL, OPTIONS, 1 + 1, .fds = on_1, .nfds = 1),
	FAULT(2, EINVAL, OPTIONS, 1 + 1, .out = WEAN_NULL, .fds = on_1, .nfds = 1),
	FAULT(2, EBADF, FD, 1, .fds = not_open, .nfds = 2),
	FAULT(2, EINVAL, OPTIONS, -1, .flags = 1ULL << 40),
	FAULT(1, EINVAL, OPTIONS, -1, .uid = 5),
	FAULT(1, EINVAL, OPTIONS, -1, .err = WEAN_NULL, .pgid = 1),
	FAULT(2, ENOENT, EXEC, -1, .file = "no-such-program-in-PATH/"),
	FAULT(2, EINVAL, OPTIONS, 2, .err = WEAN_OPEN),
};

START_TEST(what_shows_beforehand_starts_nothing)
{
	const struct fault *f = &faults[_i];
	struct line l;

	open_at(5);
	lay_marked(&l, 3);
	l.o[f->k] = f->o;
	if (f->r.stage == WEAN_STAGE_EXEC) {
		setenv("PATH", "", 1);
		l.o[f->k].file = "no-such-program";
	}
	refused_unbegun(&l, f->k, f->r);
}
END_TEST

START_TEST(a_stage_without_arguments_is_refused)
{
	struct line l;

	lay_marked(&l, 3);
	l.argvs[_i] = NULL;
	refused_unbegun(&l, (size_t)_i, (struct refusal){ EINVAL, WEAN_STAGE_OPTIONS, -1 });
}
END_TEST

START_TEST(a_pipeline_of_nothing_is_refused)
{
	struct line l;

	lay(&l, 2);
	ck_assert_int_eq(wean_pipeline(l.children, l.argvs, NULL, 0), EINVAL);
	ck_assert_int_eq(wean_pipeline(NULL, l.argvs, NULL, 1), EINVAL);
	ck_assert_int_eq(wean_pipeline(NULL, NULL, NULL, 0), EINVAL);
	int error = wean_pipeline(l.children, NULL, NULL, 2);
	assert_refused(&l.children[0], "no argvs", error,
	               (struct refusal){ EINVAL, WEAN_STAGE_OPTIONS, -1 });
	assert_refused(&l.children[1], "the other", 0, (struct refusal){ 0, 0, -1 });
}
END_TEST

static const struct wrong_group {
	unsigned long long first, other;
	int pgid;
} wrong_groups[] = {
	{ WEAN_NEW_GROUP | WEAN_NEW_SESSION, 0, 0 },
	{ WEAN_NEW_GROUP, WEAN_NEW_SESSION, 0 },
	{ WEAN_NEW_GROUP, WEAN_JOIN_GROUP, 1 },
	{ WEAN_NEW_GROUP, WEAN_JOIN_GROUP, 0 },
	{ WEAN_NEW_GROUP, 0, 1 },
};

START_TEST(one_group_goes_with_no_other_and_no_session)
{
	const struct wrong_group *w = &wrong_groups[_i];
	struct line l;

	lay_marked(&l, 3);
	l.o[0].flags = w->first;
	l.o[1].flags = w->other;
	l.o[1].pgid = w->pgid;
	refused_unbegun(&l, 1, (struct refusal){ EINVAL, WEAN_STAGE_OPTIONS, -1 });
}
END_TEST

/* The others run, and would run on. */
START_TEST(a_stage_that_cannot_start_takes_the_others_along)
{
	static char missing[] = "/missing/program", *argv[] = { missing, NULL };
	static char *pauses[3];
	size_t k = (size_t)_i % MOST;
	struct line l;

	lay(&l, MOST);
	memcpy(pauses, KID("pause"), sizeof pauses);
	for (size_t i = 0; i < MOST; i++) {
		l.argvs[i] = i == k ? argv : pauses;
		l.o[i].flags = WEAN_EINTR;
	}
	l.o[0].in = l.o[1].err = l.o[MOST - 1].out = WEAN_PIPE;
	if (_i >= MOST)
		l.o[0].flags |= WEAN_NEW_GROUP;
	handle(SIGCHLD, on_tick); /* an interruption is no reason to leave one behind */
	line_refused(&l, k, (struct refusal){ ENOENT, WEAN_STAGE_EXEC, -1 });
}
END_TEST

START_TEST(a_directory_that_is_missing_is_told_with_its_stage)
{
	struct line l;
	char text[200];

	lay_marked(&l, 3);
	l.o[1].dir = "/missing";
	ck_assert_int_eq(open_line(&l), ENOENT);
	ck_assert_int_eq(l.children[1].stage, WEAN_STAGE_DIR);
	ck_assert_int_eq(wean_explain(&l.children[1], l.argvs[1], &l.o[1], ENOENT, text,
	                              sizeof text), 0);
	ck_assert_str_eq(text, "cannot enter directory '/missing': No such file or directory");
}
END_TEST

START_TEST(what_a_pipe_takes_up_is_told_in_words)
{
	struct line l;
	char text[200];

	lay(&l, 3);
	l.o[1].out = WEAN_NULL;
	ck_assert_int_eq(open_line(&l), EINVAL);
	wean_explain(&l.children[1], l.argvs[1], &l.o[1], EINVAL, text, sizeof text);
	ck_assert_str_eq(text, "out can only be a pipe here: Invalid argument");
	l.o[1].out = 0;
	l.o[2].fds = on_0;
	l.o[2].nfds = COUNT(on_0);
	ck_assert_int_eq(open_line(&l), EINVAL);
	wean_explain(&l.children[2], l.argvs[2], &l.o[2], EINVAL, text, sizeof text);
	ck_assert_str_eq(text, "in can only be a pipe here: Invalid argument");
	l.o[2].nfds = 0;
	l.o[0].flags |= WEAN_NEW_GROUP;
	l.o[1].flags |= WEAN_NEW_SESSION;
	ck_assert_int_eq(open_line(&l), EINVAL);
	wean_explain(&l.children[1], l.argvs[1], &l.o[1], EINVAL, text, sizeof text);
	ck_assert_str_eq(text, "the fault is in the rest of the call, not in these options: "
	                       "Invalid argument");
}
END_TEST

/* As of a set-uid program: here nobody may be killed. */
START_TEST(who_may_not_be_killed_ends_with_its_pipe_or_stays_in_its_struct)
{
	static char missing[] = "/missing/program", *argv[] = { missing, NULL };
	struct line l;

	if (!can_deny())
		SKIP("no system call can be refused here");
	lay(&l, 3);
	l.argvs[1] = KID("pause");
	l.argvs[2] = argv;
	l.o[0].in = WEAN_PIPE;
	ck_assert(deny(SYS_pidfd_send_signal, EPERM));
	ck_assert(deny(SYS_kill, EPERM));
	ck_assert_int_eq(open_line(&l), ENOENT);
	ck_assert_int_eq(l.children[0].pid, 0);
	ck_assert_int_gt(l.children[1].pid, 0);
	ck_assert_int_eq(l.children[1].stage, WEAN_STAGE_NONE);
	ck_assert_int_eq(l.children[2].stage, WEAN_STAGE_EXEC);
	ck_assert_int_eq(wean_wait(&l.children[1], 0, NULL), ETIMEDOUT);
	release_line(&l);
}
END_TEST

/* Two pipes of two ends are open at a time, and pidfds where there is room. */
START_TEST(where_descriptors_run_out_all_start_or_none)
{
	enum { LIMIT = 64 };
	uint64_t before = limit_of(RLIMIT_NOFILE).soft;
	struct filling f;
	struct line l;
	struct baseline b;

	lay(&l, 3);
	l.o[0].in = l.o[2].out = WEAN_PIPE;
	fill_below(&f, LIMIT);
	for (int i = 0; i < _i; i++)
		close(f.fds[--f.n]);
	baseline_take(&b);
	soft_limit(RLIMIT_NOFILE, LIMIT);
	int error = open_line(&l);
	soft_limit(RLIMIT_NOFILE, before);
	ck_assert_int_eq(error, _i < 4 ? EMFILE : 0);
	ck_assert_int_eq(l.children[0].stage, error ? WEAN_STAGE_PIPE : WEAN_STAGE_NONE);
	if (!error) {
		let_go(&l.children[0]);
		ck_assert_str_eq(read_end(l.children[2].out), "");
		l.children[2].out = -1;
		close_line(&l);
	}
	errno = b.error;
	baseline_same(&b);
	release_descriptors(&f);
}
END_TEST

static Suite *pipeline_ends_suite(void)
{
	Suite *s = suite_create("pipeline ends");
	TCase *held = tcase_create("held"), *none = tcase_create("none");
	TCase *table = case_that_needs(s, "table");
	TCase *scarce = case_that_needs(s, "default table"); /* a fork needs more of them */
	TCase *priced = case_that_needs(s, "default ptrace native table");
	TCase *denied = case_that_needs(s, "seccomp native");

	suite_add_tcase(s, held);
	suite_add_tcase(s, none);
	tcase_add_loop_test(held, each_stage_holds_its_two_ends_and_no_other, 0, WAYS);
	tcase_add_loop_test(held, a_caller_without_stdio_has_the_same_pipeline, 0, 4);
	tcase_add_test(held, the_caller_holds_the_outer_ends_alone);
	tcase_add_test(held, the_callers_ends_alone_do_not_block);
	tcase_add_test(priced, an_inner_pipe_is_three_calls_of_the_caller);
	tcase_add_test(priced, a_pipeline_costs_the_same_among_many_descriptors);
	tcase_add_test(table, ends_high_up_are_the_right_ones);
	tcase_add_loop_test(scarce, where_descriptors_run_out_all_start_or_none, 0, 10);
	tcase_add_unchecked_fixture(none, scratch_make, scratch_remove);
	tcase_add_loop_test(none, what_shows_beforehand_starts_nothing, 0, COUNT(faults));
	tcase_add_loop_test(none, a_stage_without_arguments_is_refused, 0, 3);
	tcase_add_test(none, a_pipeline_of_nothing_is_refused);
	tcase_add_loop_test(none, one_group_goes_with_no_other_and_no_session, 0,
	                    COUNT(wrong_groups));
	tcase_add_loop_test(none, a_stage_that_cannot_start_takes_the_others_along, 0,
	                    2 * MOST);
	tcase_add_test(none, a_directory_that_is_missing_is_told_with_its_stage);
	tcase_add_test(none, what_a_pipe_takes_up_is_told_in_words);
	tcase_add_test(denied, who_may_not_be_killed_ends_with_its_pipe_or_stays_in_its_struct);
	return s;
}

RUN_WITH_STDIO_ALONE(pipeline_ends_suite)
