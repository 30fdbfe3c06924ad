/* test_run.c - wean_run(): its defaults, its limit over everything, and what it gives when
   it ends a child. */
#define _GNU_SOURCE
#include "talking.h"

#include <sys/resource.h>

enum { MB = 1000000 };

/* What a busy machine may take beside the limit and the grace. */
enum { ALLOWED = 1000 };

static struct wean_result r; /* of the call; other threads and callbacks see it */

static void ran(char *const argv[], const struct wean_options *options,
                const struct wean_io *io, int code, unsigned flags)
{
	memset(&r, 0xa5, sizeof r); /* it writes all of it */
	errno = BASELINE_ERRNO;
	int error = wean_run(argv, options, io, &r);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	ck_assert_msg(!error, "run: %s at %s", strerror(error), wean_stage_name(r.child.stage));
	ck_assert_int_eq(r.child.stage, WEAN_STAGE_NONE);
	assert_exited(&r.status, code);
	ck_assert_uint_eq(r.flags, flags);
	ck_assert_int_gt(r.child.pid, 0);
	ck_assert_int_eq(r.child.in, -1);
	ck_assert_int_eq(r.child.out, -1);
	ck_assert_int_eq(r.child.err, -1);
}

/* One that has to end by force, with this error and all that it wrote. */
static void stopped(char *const argv[], const struct wean_options *options,
                    const struct wean_io *io, int error)
{
	long long begin = now_ms();

	memset(&r, 0xa5, sizeof r);
	errno = BASELINE_ERRNO;
	int got = wean_run(argv, options, io, &r);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	ck_assert_int_eq(got, error);
	if (io->timeout_ms > 0 && io->grace_ms < LONG)
		ck_assert_int_lt(now_ms() - begin, io->timeout_ms + io->grace_ms + ALLOWED);
	ck_assert_int_eq(r.child.stage, WEAN_STAGE_NONE);
	ck_assert_int_eq(waitpid(r.child.pid, NULL, WNOHANG), -1);
	ck_assert_int_eq(r.child.in, -1);
	ck_assert_int_eq(r.child.out, -1);
	ck_assert_int_eq(r.child.err, -1);
	ck_assert_int_eq((r.flags & WEAN_TIMED_OUT) != 0,
	                 error == ETIMEDOUT && io->timeout_ms > 0);
	errno = BASELINE_ERRNO;
}

/* One that writes before the limit, which is raised until it had the time to begin. */
static void stopped_writing(char *const argv[], const struct wean_options *options,
                            struct wean_io *io)
{
	while (stopped(argv, options, io, ETIMEDOUT), r.out_len == 0 && io->timeout_ms < LONG) {
		wean_result_free(&r);
		io->timeout_ms *= 2;
	}
}

/* ---- defaults ---- */

START_TEST(both_outputs_are_collected_and_the_input_is_empty)
{
	struct baseline b;

	baseline_take(&b);
	ran(KID("cat", "--then", "say", "1", "to out", "--then", "say", "2", "to err",
	        "--then", "exit", "3"),
	    &(struct wean_options){ .flags = way(_i) }, NULL, 3, 0);
	assert_text(r.out, r.out_len, "to out\n");
	assert_text(r.err, r.err_len, "to err\n");
	wean_result_free(&r);
	wean_result_free(&r);
	baseline_same(&b);
}
END_TEST

START_TEST(an_input_is_fed)
{
	struct wean_io io = { .input = pattern(2 * MB), .input_len = 2 * MB };

	ran(KID("tee"), &(struct wean_options){ .flags = way(_i) }, &io, 0, 0);
	assert_pattern(r.out, r.out_len, 2 * MB);
	assert_pattern(r.err, r.err_len, 2 * MB);
	ck_assert_uint_eq(r.in_written, 2 * MB);
	wean_result_free(&r);
}
END_TEST

START_TEST(what_is_asked_for_is_not_a_pipe)
{
	int fds[2];
	char text[8] = "";

	ran(KID("say", "1", "a", "--then", "say", "2", "b"),
	    &(struct wean_options){ .err = WEAN_MERGE }, NULL, 0, 0);
	assert_text(r.out, r.out_len, "a\nb\n");
	ck_assert_ptr_null(r.err);
	wean_result_free(&r);

	ran(KID("say", "2", "b"), &(struct wean_options){ .out = WEAN_NULL }, NULL, 0, 0);
	ck_assert_ptr_null(r.out);
	assert_text(r.err, r.err_len, "b\n");
	wean_result_free(&r);

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(dup2(fds[1], 1), 1);
	ran(KID("say", "1", "mine"), &(struct wean_options){ .out = WEAN_INHERIT }, NULL, 0, 0);
	ck_assert_ptr_null(r.out);
	ck_assert_int_eq(read(fds[0], text, sizeof text - 1), 5);
	ck_assert_str_eq(text, "mine\n");
	wean_result_free(&r);
}
END_TEST

START_TEST(an_entry_for_0_1_or_2_takes_the_place_of_a_default)
{
	int in[2], out[2];
	char text[8] = "";

	ck_assert_int_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	ck_assert_int_eq(write(in[1], "given", 5), 5);
	close(in[1]);
	ran(KID("tee"), &(struct wean_options){ FDS(DUP(0, in[0])) }, NULL, 0, 0);
	assert_text(r.out, r.out_len, "given");
	assert_text(r.err, r.err_len, "given");
	wean_result_free(&r);

	ran(KID("say", "1", "hello"), &(struct wean_options){ FDS(DUP(1, out[1])) }, NULL, 0, 0);
	ck_assert_ptr_null(r.out);
	assert_text(r.err, r.err_len, "");
	ck_assert_int_eq(read(out[0], text, sizeof text - 1), 6);
	ck_assert_str_eq(text, "hello\n");
	wean_result_free(&r);

	ran(KID("say", "2", "same"), &(struct wean_options){ FDS(SAME(2, 1)) }, NULL, 0, 0);
	assert_text(r.out, r.out_len, "same\n");
	ck_assert_ptr_null(r.err);
	wean_result_free(&r);
}
END_TEST

/* ---- what does not start ---- */

START_TEST(what_cannot_be_run_is_refused)
{
	const struct row {
		struct wean_options o;
		struct wean_io io;
		const char *text;
	} rows[] = {
		{ .io = { .flags = 1 }, .text = "the fault is in the rest of the call" },
		{ .io = { .flags = WEAN_LINES << 1 }, .text = "the fault is in the rest" },
		{ .io = { .input_len = 1 }, .text = "the fault is in the rest" },
		{ .io = { .reserved_int = { 1 } }, .text = "the fault is in the rest" },
		{ .io = { .reserved_ptr = { "" } }, .text = "the fault is in the rest" },
		{ { .in = WEAN_NULL }, { .input = "" }, "in can only be a pipe" },
		{ { .in = WEAN_INHERIT }, { .input = "x", .input_len = 1 },
		  "in can only be a pipe" },
		{ { FDS(NUL(0)) }, { .input = "x", .input_len = 1 }, "in can only be a pipe" },
		{ { FDS(NUL(1)), .out = WEAN_PIPE }, { 0 }, "out is given by an entry of fds" },
		{ { .flags = 1ULL << 60 }, { 0 }, "an unknown flag is set" },
		{ { .uid = 1 }, { 0 }, "uid is set without" },
	};
	struct baseline b;
	char text[200];

	ck_assert_int_eq(wean_run(KID("exit", "0"), NULL, NULL, NULL), EINVAL);
	baseline_take(&b);
	for (size_t i = 0; i < COUNT(rows); i++) {
		memset(&r, 0xa5, sizeof r);
		int error = wean_run(KID("exit", "0"), &rows[i].o, &rows[i].io, &r);
		ck_assert_msg(error == EINVAL, "row %zu: %s", i, strerror(error));
		ck_assert_int_eq(r.child.stage, WEAN_STAGE_OPTIONS);
		wean_explain(&r.child, KID("exit", "0"), &rows[i].o, error, text, sizeof text);
		ck_assert_msg(!strncmp(text, rows[i].text, strlen(rows[i].text)), "%s", text);
		ck_assert_int_eq(r.child.pid, 0);
		ck_assert_int_eq(r.child.pidfd, -1);
		assert_zero(&r.status);
		ck_assert_ptr_null(r.out);
		ck_assert_ptr_null(r.err);
		wean_result_free(&r);
	}
	baseline_same(&b);
}
END_TEST

START_TEST(a_missing_program_leaves_nothing_behind)
{
	char *missing[] = { (char[]){ "/nonexistent/program" }, NULL };
	struct wean_io io = { .input = "x", .input_len = 1 };
	struct baseline b;
	char text[200];

	baseline_take(&b);
	memset(&r, 0xa5, sizeof r);
	ck_assert_int_eq(wean_run(missing, NULL, &io, &r), ENOENT);
	ck_assert_int_eq(r.child.stage, WEAN_STAGE_EXEC);
	ck_assert_int_eq(wean_explain(&r.child, missing, NULL, ENOENT, text, sizeof text), 0);
	ck_assert_ptr_null(r.out);
	ck_assert_uint_eq(r.flags, 0);
	assert_zero(&r.status);
	wean_result_free(&r);
	baseline_same(&b);
}
END_TEST

/* ---- the limit ---- */

static const struct wean_io limited = { .timeout_ms = 150, .grace_ms = 100 };

/* Both with a group of its own and without. */
static struct wean_options grouped(int i)
{
	return (struct wean_options){ .flags = i % 2 ? WEAN_NEW_GROUP : 0 };
}

START_TEST(a_limit_ends_who_does_not_end)
{
	struct wean_options opt = grouped(_i);
	struct baseline b;

	baseline_take(&b);
	stopped_writing(KID("say", "1", "here", "--then", "pause"), &opt,
	                &(struct wean_io){ .timeout_ms = 500, .grace_ms = LONG });
	assert_signaled(&r.status, SIGTERM);
	assert_text(r.out, r.out_len, "here\n");
	assert_text(r.err, r.err_len, "");
	ck_assert_uint_eq(r.flags, WEAN_TIMED_OUT);
	wean_result_free(&r);
	baseline_same(&b);
}
END_TEST

START_TEST(a_limit_ends_who_ignores_sigterm)
{
	struct wean_options opt = grouped(_i);

	opt.sigignore = WEAN_SIG(SIGTERM);
	stopped(KID("pause"), &opt, &limited, ETIMEDOUT);
	assert_signaled(&r.status, SIGKILL);
	wean_result_free(&r);
}
END_TEST

START_TEST(without_grace_a_limit_kills)
{
	struct wean_options opt = grouped(_i);

	stopped(KID("pause"), &opt, &(struct wean_io){ .timeout_ms = 50 }, ETIMEDOUT);
	assert_signaled(&r.status, SIGKILL);
	wean_result_free(&r);
}
END_TEST

START_TEST(a_limit_ends_who_is_stopped)
{
	struct wean_options opt = grouped(_i);
	int ignores = _i / 2;

	opt.sigignore = ignores ? WEAN_SIG(SIGTERM) : 0;
	stopped(KID("stop", "--then", "pause"), &opt,
	        &(struct wean_io){ .timeout_ms = 200, .grace_ms = ignores ? 100 : LONG },
	        ETIMEDOUT);
	assert_signaled(&r.status, ignores ? SIGKILL : SIGTERM);
	wean_result_free(&r);
}
END_TEST

/* It reads nothing, and so much does not fit in. */
START_TEST(a_limit_ends_who_does_not_read)
{
	struct wean_options opt = grouped(_i);
	struct wean_io io = limited;

	io.input = pattern(MB);
	io.input_len = MB;
	stopped(KID("pause"), &opt, &io, ETIMEDOUT);
	ck_assert_uint_lt(r.in_written, MB);
	ck_assert_uint_eq(r.flags, WEAN_TIMED_OUT | WEAN_INPUT_UNREAD);
	wean_result_free(&r);
}
END_TEST

START_TEST(a_limit_ends_who_writes_for_ever)
{
	struct wean_options opt = grouped(_i);
	struct wean_io io = { .timeout_ms = 200, .grace_ms = 100, .out_max = 5000 };

	opt.sigignore = _i / 2 ? WEAN_SIG(SIGTERM) : 0;
	stopped_writing(KID("write", "1", "1000000000000000000"), &opt, &io);
	assert_signaled(&r.status, _i / 2 ? SIGKILL : SIGTERM);
	assert_pattern(r.out, r.out_len, r.out_len);
	ck_assert_uint_gt(r.out_len, 5000 - 4);
	ck_assert_uint_eq(r.flags & WEAN_OUT_TRUNCATED, WEAN_OUT_TRUNCATED);
	wean_result_free(&r);
}
END_TEST

START_TEST(a_limit_ends_who_has_closed_its_outputs)
{
	struct wean_options opt = grouped(_i);

	stopped(KID("close", "0", "1", "2", "--then", "pause"), &opt,
	        &(struct wean_io){ .timeout_ms = 150, .grace_ms = LONG }, ETIMEDOUT);
	assert_signaled(&r.status, SIGTERM);
	wean_result_free(&r);
}
END_TEST

static int note_pid(void *context, const char *data, size_t len)
{
	(void)len;
	*(int *)context = atoi(data);
	return 0;
}

/* The limit holds all the same; who leads no group leaves it alone. */
START_TEST(a_limit_holds_when_a_grandchild_has_the_pipes)
{
	int session = _i / 2, survives = _i != 1, pid = 0;
	char *hold = session ? (char[]){ "setsid-hold" } : (char[]){ "fork-hold" };
	struct wean_io io = { .timeout_ms = 500, .grace_ms = 100, .on_out = note_pid,
	                      .context = &pid, .linger_ms = -1 };
	struct wean_options opt = grouped(_i);
	struct orphan held;

	adopt_orphans();
	stopped(KID(hold, "600000", "--then", "pause"), &opt, &io, ETIMEDOUT);
	assert_signaled(&r.status, SIGTERM);
	ck_assert_int_gt(pid, 1);
	orphan_watch(&held, pid);
	if (survives)
		orphan_end(&held);
	else
		ck_assert_int_eq(orphan_code(&held), 128 + SIGTERM);
	ck_assert_int_eq((r.flags & WEAN_STILL_OPEN) != 0, survives);
	wean_result_free(&r);
}
END_TEST

START_TEST(a_grandchild_with_the_pipes_is_no_reason_to_wait_for_the_limit)
{
	char *hold = _i ? (char[]){ "setsid-hold" } : (char[]){ "fork-hold" };
	struct orphan held;

	adopt_orphans();
	ran(KID(hold, "600000", "--then", "exit", "6"), NULL,
	    &(struct wean_io){ .timeout_ms = LONG }, 6, WEAN_STILL_OPEN);
	orphan_watch(&held, atoi(r.out));
	orphan_end(&held);
	wean_result_free(&r);
}
END_TEST

/* More than a pipe holds: it could not leave if nobody read. */
START_TEST(what_is_written_during_the_grace_is_read)
{
	struct wean_options opt = grouped(_i);

	opt.sigmask = WEAN_SIG(SIGTERM);
	stopped(KID("last-words", "15", "9", _i / 2 ? "2" : "1", "1000000", "--then", "pause"),
	        &opt, &(struct wean_io){ .timeout_ms = 100, .grace_ms = LONG }, ETIMEDOUT);
	assert_exited(&r.status, 9);
	if (_i / 2)
		assert_pattern(r.err, r.err_len, MB);
	else
		assert_pattern(r.out, r.out_len, MB);
	wean_result_free(&r);
}
END_TEST

START_TEST(what_is_written_during_the_grace_goes_to_the_callbacks)
{
	struct wean_options opt = grouped(_i);
	struct heard heard = { 0 };
	struct wean_io io = { .timeout_ms = 100, .grace_ms = LONG, .on_out = hear,
	                      .context = &heard };

	opt.sigmask = WEAN_SIG(SIGTERM);
	stopped(KID("last-words", "15", "9", "1", "1000000", "--then", "pause"), &opt, &io,
	        ETIMEDOUT);
	assert_exited(&r.status, 9);
	assert_pattern(heard.data, heard.len, MB);
	free(heard.data);
	wean_result_free(&r);
}
END_TEST

/* A leader that leaves at once, and one of its group that then, after a while, has more to
   say than a pipe holds. */
struct two {
	struct heard heard;
	struct orphan member;
	int leader_ready;
};

static void tick_when_ready(struct two *two)
{
	sigset_t ticks_alone, old;

	if (!two->leader_ready || two->member.pid || !two->heard.len)
		return;
	sigemptyset(&ticks_alone);
	sigaddset(&ticks_alone, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &ticks_alone, &old);
	orphan_watch(&two->member, atoi(two->heard.data));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	tick();
}

static int hear_member(void *context, const char *data, size_t len)
{
	struct two *two = context;

	hear(&two->heard, data, len);
	tick_when_ready(two);
	return 0;
}

static int hear_leader(void *context, const char *data, size_t len)
{
	struct two *two = context;

	(void)data, (void)len;
	two->leader_ready = 1;
	tick_when_ready(two);
	return 0;
}

START_TEST(what_the_rest_of_a_group_writes_during_the_grace_is_read)
{
	enum { MIB = 1 << 20 };
	struct wean_options opt = { .flags = WEAN_EINTR | (_i ? WEAN_NEW_SESSION
	                                                      : WEAN_NEW_GROUP) };
	struct two two = { .leader_ready = 0 };
	struct wean_io io = { .on_out = hear_member, .on_err = hear_leader, .context = &two,
	                      .grace_ms = LONG };
	const char *words;

	if (!kernel_has(6, 9))
		SKIP("this kernel can't ask about a group whose number is given up");
	adopt_orphans();
	stopped(KID("on", "15", "0", "100", "--then", "last-words", "15", "0", "1", "1048576",
	            "--then", "fork-hold", "600000", "--then", "on", "15", "3", "--then", "say",
	            "2", "ready", "--then", "pause"), &opt, &io, EINTR);
	stop_ticking();
	assert_exited(&r.status, 3);
	ck_assert_int_eq(orphan_code(&two.member), 0);
	ck_assert_ptr_nonnull(words = strchr(two.heard.data, '\n') + 1);
	assert_pattern(words, two.heard.len - (size_t)(words - two.heard.data), MIB);
	ck_assert_uint_eq(r.flags, 0);
	free(two.heard.data);
	wean_result_free(&r);
}
END_TEST

START_TEST(a_limit_that_is_not_reached_changes_nothing)
{
	ran(KID("write", "1", "500000", "--then", "exit", "1"), NULL,
	    &(struct wean_io){ .timeout_ms = LONG, .grace_ms = LONG }, 1, 0);
	assert_pattern(r.out, r.out_len, 500000);
	wean_result_free(&r);
}
END_TEST

/* ---- callbacks ---- */

/* What it writes after that is for nobody, whatever the errno is that says so. */
START_TEST(a_callback_that_fails_stops_the_child)
{
	static const int errors[] = { ECANCELED, ETIMEDOUT, EINTR, EAGAIN };
	const int error = errors[_i / 4];
	struct heard heard = { .fail_each = 1, .error = error };
	struct wean_options opt = grouped(_i);
	struct wean_io io = { .on_out = hear, .context = &heard, .grace_ms = LONG };
	struct baseline b;

	if (_i / 2 % 2)
		io.flags = WEAN_LINES;
	baseline_take(&b);
	opt.sigmask = WEAN_SIG(SIGTERM);
	stopped(KID("ignore", "13", "--then", "say", "1", "first", "--then", "say", "1",
	            "second", "--then", "say", "2", "other", "--then",
	            "last-words", "15", "9", "1", "1000000", "--then", "pause"),
	        &opt, &io, error);
	ck_assert_uint_eq(heard.pieces, 1);
	ck_assert_uint_eq(r.flags, 0);
	ck_assert_int_eq(r.status.kind, WEAN_EXITED);
	free(heard.data);
	wean_result_free(&r);
	baseline_same(&b);
}
END_TEST

static int kill_it(void *context, const char *data, size_t len)
{
	(void)context, (void)data, (void)len;
	ck_assert_int_gt(r.child.pid, 0);
	return wean_kill(&r.child, SIGUSR1);
}

START_TEST(a_callback_may_signal_the_child)
{
	memset(&r, 0xa5, sizeof r);
	ck_assert_int_eq(wean_run(KID("say", "2", "x", "--then", "pause"), NULL,
	                          &(struct wean_io){ .on_err = kill_it }, &r), 0);
	assert_signaled(&r.status, SIGUSR1);
	ck_assert_ptr_null(r.err);
	assert_text(r.out, r.out_len, "");
	wean_result_free(&r);
}
END_TEST

/* ---- handlers ---- */

/* Once the child is ready for it. */
static int tick_on(void *context, const char *data, size_t len)
{
	(void)context, (void)data, (void)len;
	tick();
	return 0;
}

START_TEST(a_handler_stops_the_child_where_that_was_asked_for)
{
	struct wean_options opt = grouped(_i);
	struct wean_io io = { .on_err = tick_on, .grace_ms = LONG };

	opt.flags |= WEAN_EINTR;
	stopped(KID("last-words", "15", "9", "1", "1000000", "--then", "say", "2", "ready",
	            "--then", "pause"), &opt, &io, EINTR);
	stop_ticking();
	assert_exited(&r.status, 9);
	assert_pattern(r.out, r.out_len, MB);
	wean_result_free(&r);
}
END_TEST

START_TEST(a_handler_is_no_reason_to_stop_otherwise)
{
	struct wean_io io = { .input = pattern(MB), .input_len = MB };

	tick();
	ran(KID("sleep", "50", "--then", "tee", "--then", "exit", "2"), NULL, &io, 2, 0);
	stop_ticking();
	assert_pattern(r.out, r.out_len, MB);
	wean_result_free(&r);
}
END_TEST

/* ------------------------------------------------------------------------- */

static void add_plain(TCase *t)
{
	tcase_add_loop_test(t, both_outputs_are_collected_and_the_input_is_empty, 0, WAYS);
	tcase_add_loop_test(t, an_input_is_fed, 0, WAYS);
	tcase_add_test(t, what_is_asked_for_is_not_a_pipe);
	tcase_add_test(t, an_entry_for_0_1_or_2_takes_the_place_of_a_default);
	tcase_add_test(t, what_cannot_be_run_is_refused);
	tcase_add_test(t, a_missing_program_leaves_nothing_behind);
	tcase_add_test(t, a_limit_that_is_not_reached_changes_nothing);
	tcase_add_loop_test(t, a_callback_that_fails_stops_the_child, 0, 16);
	tcase_add_test(t, a_callback_may_signal_the_child);
}

static void add_limits(TCase *t)
{
	tcase_add_loop_test(t, a_limit_ends_who_does_not_end, 0, 2);
	tcase_add_loop_test(t, a_limit_ends_who_ignores_sigterm, 0, 2);
	tcase_add_loop_test(t, without_grace_a_limit_kills, 0, 2);
	tcase_add_loop_test(t, a_limit_ends_who_is_stopped, 0, 4);
	tcase_add_loop_test(t, a_limit_ends_who_does_not_read, 0, 2);
	tcase_add_loop_test(t, a_limit_ends_who_writes_for_ever, 0, 4);
	tcase_add_loop_test(t, a_limit_ends_who_has_closed_its_outputs, 0, 2);
	tcase_add_loop_test(t, what_is_written_during_the_grace_is_read, 0, 4);
	tcase_add_loop_test(t, what_is_written_during_the_grace_goes_to_the_callbacks, 0, 2);
}

/* All that malloc has left, in a chain. */
static void **use_up_memory(void)
{
	void **all = NULL, **one;

	while ((one = malloc(512))) {
		*one = all;
		all = one;
	}
	return all;
}

START_TEST(without_memory_for_the_output_the_child_is_stopped)
{
	struct limits may = limit_of(RLIMIT_AS);
	struct wean_limit limit = { .resource = RLIMIT_AS, .soft = may.soft, .hard = may.hard };
	struct wean_options o = { .limits = &limit, .nlimits = 1 };
	struct wean_result result;
	char **argv = KID("exit-on-eof");

	soft_limit(RLIMIT_AS, 1);
	void **all = use_up_memory();
	int error = wean_run(argv, &o, NULL, &result);
	for (void **next; all; all = next) {
		next = *all;
		free(all);
	}
	soft_limit(RLIMIT_AS, may.soft);
	ck_assert_int_eq(error, ENOMEM);
	ck_assert_int_eq(result.child.stage, WEAN_STAGE_NONE);
	ck_assert_int_ne(result.status.kind, 0);
	wean_result_free(&result);
}
END_TEST

START_TEST(an_end_that_is_not_open_is_told)
{
	struct wean_child child;
	struct wean_result result = { 0 };
	int fd = dup(2);

	close(fd);
	ck_assert_int_eq(wean_adopt(&child, 0, 0), 0);
	child.out = fd;
	ck_assert_int_eq(wean_communicate(&child, NULL, &result), EBADF);
	child.out = -1;
	wean_result_free(&result);
}
END_TEST

/* 0 where the kernel has none, or is told not to. */
static int has_huge_pages(void)
{
	char text[64] = "";
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
	int has = f && fgets(text, sizeof text, f) && !strstr(text, "[never]");

	if (f)
		fclose(f);
	return has;
}

static long faults(void)
{
	struct rusage u;

	ck_assert_int_eq(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_minflt;
}

/* The kernel makes a page at a time of the common size: 80 MB would be 19,531 times. */
START_TEST(large_output_is_kept_in_huge_pages)
{
	long before = faults();

	if (!has_huge_pages())
		SKIP("no huge pages here");
	ran(KID("write", "1", "80000000", "1048576"), NULL, NULL, 0, 0);
	ck_assert_uint_eq(r.out_len, 80 * MB);
	ck_assert_int_lt(faults() - before, 80 * MB / 4096 * 3 / 4);
	wean_result_free(&r);
}
END_TEST

static Suite *run_tests(void)
{
	Suite *s = suite_create("run");
	TCase *t = tcase_create("run");

	tcase_set_timeout(t, 30);
	add_plain(t);
	suite_add_tcase(s, t);
	t = tcase_create("limits");
	tcase_set_timeout(t, 30);
	add_limits(t);
	suite_add_tcase(s, t);
	t = case_that_needs(s, "signals");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, a_handler_stops_the_child_where_that_was_asked_for, 0, 2);
	tcase_add_test(t, a_handler_is_no_reason_to_stop_otherwise);
	t = case_that_needs(s, "kernel");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(
		t, a_grandchild_with_the_pipes_is_no_reason_to_wait_for_the_limit, 0, 2);
	tcase_add_loop_test(t, a_limit_holds_when_a_grandchild_has_the_pipes, 0, 4);
	t = case_that_needs(s, "kernel pidfd signals");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, what_the_rest_of_a_group_writes_during_the_grace_is_read, 0, 2);
	t = case_that_needs(s, "native");
	tcase_add_test(t, without_memory_for_the_output_the_child_is_stopped);
	tcase_add_test(t, an_end_that_is_not_open_is_told);
	tcase_add_test(t, large_output_is_kept_in_huge_pages);
	return s;
}

RUN_SUITE(run_tests)
