/* test_communicate.c - wean_communicate(): all bytes both ways, once each, however often
   it is called, and nothing that the caller would notice. */
#define _GNU_SOURCE
#include "talking.h"

#include "count.h"
#include "heap.h"

#include <poll.h>
#include <sys/socket.h>

#define PIPES .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE

enum { MB = 1000000 };

/* Every test with a pidfd and without one. */
static void start_piped(struct wean_child *child, int i, char *const argv[],
                        unsigned long long flags)
{
	struct wean_options opt = { PIPES, .flags = flags };

	start(child, argv, &opt);
	if (i % 2)
		without_pidfd(child);
}

/* What it gives, of a child that leaves with `code`, with these flags. */
static void communicate(struct wean_child *child, const struct wean_io *io,
                        struct wean_result *r, int code, unsigned flags)
{
	int error = wean_communicate(child, io, r);

	ck_assert_msg(!error, "communicate: %s", strerror(error));
	assert_exited(&r->status, code);
	ck_assert_uint_eq(r->flags, flags);
	ck_assert_int_eq(child->in, -1);
	ck_assert_int_eq(child->out, -1);
	ck_assert_int_eq(child->err, -1);
}

static void done(struct wean_child *child, struct wean_result *r)
{
	wean_result_free(r);
	wean_release(child);
}

/* ---- all bytes ---- */

START_TEST(megabytes_flow_each_way_at_once)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .input = pattern(4 * MB), .input_len = 4 * MB };

	start_piped(&child, _i, KID("tee", "--then", "exit", "3"), 0);
	communicate(&child, &io, &r, 3, 0);
	ck_assert_uint_eq(r.in_written, 4 * MB);
	assert_pattern(r.out, r.out_len, 4 * MB);
	assert_pattern(r.err, r.err_len, 4 * MB);
	done(&child, &r);
}
END_TEST

START_TEST(pipes_of_one_page_are_enough)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .input = pattern(MB), .input_len = MB };

	start_piped(&child, _i, KID("tee"), 0);
	ck_assert_int_gt(fcntl(child.in, F_SETPIPE_SZ, 4096), 0);
	ck_assert_int_gt(fcntl(child.out, F_SETPIPE_SZ, 4096), 0);
	ck_assert_int_gt(fcntl(child.err, F_SETPIPE_SZ, 4096), 0);
	communicate(&child, &io, &r, 0, 0);
	assert_pattern(r.out, r.out_len, MB);
	assert_pattern(r.err, r.err_len, MB);
	done(&child, &r);
}
END_TEST

START_TEST(both_outputs_fill_before_the_input_is_read)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .input = pattern(MB), .input_len = MB };
	char line[40];

	start_piped(&child, _i, KID("write", "1", "300000", "--then", "write", "2",
	                            "300000", "--then", "read", "0"), 0);
	communicate(&child, &io, &r, 0, 0);
	sprintf(line, "%d pattern\n", MB);
	ck_assert_uint_eq(r.out_len, 300000 + strlen(line));
	ck_assert_str_eq(r.out + 300000, line);
	assert_pattern(r.err, r.err_len, 300000);
	done(&child, &r);
}
END_TEST

START_TEST(nothing_written_is_an_empty_text)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("exit", "0"), 0);
	communicate(&child, NULL, &r, 0, 0);
	assert_text(r.out, r.out_len, "");
	assert_text(r.err, r.err_len, "");
	done(&child, &r);
}
END_TEST

START_TEST(an_input_of_nothing_ends_at_once)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("exit-on-eof"), 0);
	communicate(&child, &(struct wean_io){ .input = "" }, &r, 0, 0);
	done(&child, &r);
}
END_TEST

START_TEST(what_is_over_and_waited_for_is_read_to_its_end)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("write", "1", "60000", "--then", "exit", "6"), 0);
	await_zombie(child.pid);
	if (_i / 2)
		ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	communicate(&child, &(struct wean_io){ .linger_ms = -1 }, &r, 6, 0);
	assert_pattern(r.out, r.out_len, 60000);
	done(&child, &r);
}
END_TEST

START_TEST(one_output_closed_early_leaves_the_other)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("say", "2", "bye", "--then", "close", "0", "2", "--then",
	                            "sleep", "100", "--then", "write", "1", "500000"), 0);
	communicate(&child, NULL, &r, 0, 0);
	assert_text(r.err, r.err_len, "bye\n");
	assert_pattern(r.out, r.out_len, 500000);
	done(&child, &r);
}
END_TEST

START_TEST(descriptors_above_1024_are_as_good)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct filling f;
	struct wean_io io = { .input = pattern(MB), .input_len = MB };

	NEED_DESCRIPTORS(1300);
	fill_descriptors(&f, 1200);
	start_piped(&child, 0, KID("tee"), 0);
	ck_assert_int_gt(child.in, 1024);
	ck_assert_int_gt(child.pidfd, 1024);
	if (_i)
		without_pidfd(&child);
	communicate(&child, &io, &r, 0, 0);
	assert_pattern(r.err, r.err_len, MB);
	done(&child, &r);
	release_descriptors(&f);
}
END_TEST

START_TEST(the_texts_can_be_taken_over)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("write", "1", "70000"), 0);
	communicate(&child, NULL, &r, 0, 0);
	char *mine = r.out;
	r.out = NULL;
	wean_result_free(&r);
	wean_result_free(&r);
	assert_pattern(mine, 70000, 70000);
	free(mine);
	wean_release(&child);
}
END_TEST

/* ---- the caller ---- */

START_TEST(a_child_that_does_not_read_its_input_gives_its_status)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .input = pattern(MB), .input_len = MB };
	sigset_t pending;

	start_piped(&child, _i, KID("exit", "4"), 0);
	communicate(&child, &io, &r, 4, WEAN_INPUT_UNREAD);
	ck_assert_uint_lt(r.in_written, MB);
	sigpending(&pending);
	ck_assert_int_eq(sigismember(&pending, SIGPIPE), 0);
	done(&child, &r);
}
END_TEST

START_TEST(a_sigpipe_that_was_pending_stays_so_and_no_other_does)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .input = pattern(MB), .input_len = MB };
	sigset_t set, pending;
	int was = _i / 2;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	if (was)
		raise(SIGPIPE);
	start_piped(&child, _i, KID("close", "0", "--then", "exit", "4"), 0);
	await_zombie(child.pid);
	communicate(&child, &io, &r, 4, WEAN_INPUT_UNREAD);
	sigpending(&pending);
	ck_assert_int_eq(sigismember(&pending, SIGPIPE), was);
	done(&child, &r);
}
END_TEST

START_TEST(the_caller_stays_as_it_was)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct baseline b;
	struct wean_io io = { .input = pattern(MB), .input_len = MB };

	baseline_take(&b);
	start_piped(&child, _i, KID("tee"), 0);
	errno = BASELINE_ERRNO;
	int error = wean_communicate(&child, &io, &r);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	ck_assert_int_eq(error, 0);
	done(&child, &r);
	baseline_same(&b);
}
END_TEST

START_TEST(what_is_wrong_is_said_and_touches_nothing)
{
	struct wean_result r = { 0 };
	struct wean_child child, none = { 0 };

	start_piped(&child, _i, KID("exit-on-eof"), 0);
	ck_assert_int_eq(wean_communicate(NULL, NULL, &r), EINVAL);
	ck_assert_int_eq(wean_communicate(&child, NULL, NULL), EINVAL);
	ck_assert_int_eq(wean_communicate(&child, &(struct wean_io){ .flags = 1 }, &r), EINVAL);
	ck_assert_int_eq(wean_communicate(&child, &(struct wean_io){ .input_len = 1 }, &r),
	                 EINVAL);
	ck_assert_int_eq(wean_communicate(&child, &(struct wean_io){ .reserved_int[3] = 1 },
	                                  &r), EINVAL);
	ck_assert_int_eq(wean_communicate(&child, &(struct wean_io){ .reserved_ptr[3] = &r },
	                                  &r), EINVAL);
	ck_assert_int_eq(wean_communicate(&none, NULL, &r), ESRCH);
	wean_result_free(NULL);
	ck_assert_int_ge(child.in, 0);
	communicate(&child, NULL, &r, 0, 0);
	done(&child, &r);
	ck_assert_int_eq(wean_communicate(&child, NULL, &r), ESRCH);
}
END_TEST

/* ---- going on ---- */

START_TEST(after_a_timeout_nothing_is_lost_and_nothing_comes_twice)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .input = pattern(4 * MB), .input_len = 4 * MB, .timeout_ms = 1 };
	int error, times = 0;

	start_piped(&child, _i, KID("sleep", "60", "--then", "tee", "--then", "exit", "8"), 0);
	while ((error = wean_communicate(&child, &io, &r)) == ETIMEDOUT) {
		times++;
		ck_assert_uint_eq(r.flags, 0);
		ck_assert(child.in < 0 || !is_nonblocking(child.in));
		assert_pattern(r.out, r.out_len, r.out_len);
		if (times == 20)
			io.timeout_ms = 300;
	}
	ck_assert_int_eq(error, 0);
	ck_assert_int_gt(times, 0);
	assert_exited(&r.status, 8);
	assert_pattern(r.out, r.out_len, 4 * MB);
	assert_pattern(r.err, r.err_len, 4 * MB);
	done(&child, &r);
}
END_TEST

START_TEST(after_a_handler_nothing_is_lost_and_nothing_comes_twice)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .input = pattern(4 * MB), .input_len = 4 * MB };
	unsigned long long flags = _i / 2 ? WEAN_EINTR : 0;
	int error, times = 0;

	/* So long that a tick comes while nothing else does, also where much else runs. */
	start_piped(&child, _i, KID("sleep", "300", "--then", "tee", "--then", "exit", "8"),
	            flags);
	tick();
	while ((error = wean_communicate(&child, &io, &r)) == EINTR)
		times++;
	stop_ticking();
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(times > 0, flags != 0);
	assert_exited(&r.status, 8);
	assert_pattern(r.out, r.out_len, 4 * MB);
	assert_pattern(r.err, r.err_len, 4 * MB);
	done(&child, &r);
}
END_TEST

START_TEST(after_a_callback_that_ended_it_nothing_is_lost_and_nothing_comes_twice)
{
	enum { LINES = 20000 };
	struct heard heard = { .lines = 1, .fail_each = 1000, .error = ECANCELED };
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .on_out = hear, .context = &heard, .flags = WEAN_LINES };
	size_t len;
	int error, times = 0;

	start_piped(&child, _i, KID("lines", "1", "20000", "--then", "exit", "2"), 0);
	while ((error = wean_communicate(&child, &io, &r)) == ECANCELED) {
		times++;
		ck_assert_uint_eq(heard.pieces, (size_t)times * 1000);
	}
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(times, LINES / 1000);
	char *wanted = numbered(LINES, &len);
	assert_bytes(heard.data, heard.len, wanted, len);
	assert_exited(&r.status, 2);
	ck_assert_ptr_null(r.out);
	ck_assert_ptr_nonnull(r.err);
	free(heard.data);
	done(&child, &r);
}
END_TEST

/* All of them are ready by then. */
static int close_others(void *context, const char *data, size_t len)
{
	struct wean_child *child = context;

	(void)data, (void)len;
	close(child->in);
	close(child->err);
	child->in = child->err = -1;
	return 0;
}

START_TEST(a_callback_may_close_the_other_ends)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .on_out = close_others, .context = &child, .input = pattern(MB),
	                      .input_len = MB };

	start_piped(&child, _i, KID("say", "2", "other", "--then", "say", "1", "here",
	                            "--then", "exit-on-eof"), 0);
	struct pollfd out = { .fd = child.out, .events = POLLIN };
	ck_assert_int_eq(poll(&out, 1, -1), 1);
	communicate(&child, &io, &r, 0, WEAN_INPUT_UNREAD);
	assert_text(r.err, r.err_len, "");
	done(&child, &r);
}
END_TEST

/* Its number is another's at once, of which there is nothing to hear. */
static int take_pidfd(void *context, const char *data, size_t len)
{
	struct wean_child *child = context;
	int ends[2];

	(void)data, (void)len;
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	dup2(ends[0], child->pidfd);
	child->pidfd = -1;
	kill(child->pid, SIGKILL);
	await_zombie(child->pid);
	return 0;
}

START_TEST(a_callback_may_take_the_pidfd)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .on_err = take_pidfd, .context = &child };
	struct orphan held;

	adopt_orphans();
	start_piped(&child, 0, KID("fork-hold", "600000", "--then", "say", "2", "here",
	                           "--then", "pause"), 0);
	pid_t grandchild = read_pid(child.out);
	ck_assert_int_eq(wean_communicate(&child, &io, &r), 0);
	ck_assert_uint_eq(r.flags, WEAN_STILL_OPEN);
	assert_signaled(&r.status, SIGKILL);
	orphan_watch(&held, grandchild);
	orphan_end(&held);
	done(&child, &r);
}
END_TEST

static int hear_slowly(void *context, const char *data, size_t len)
{
	usleep(20000);
	return hear(context, data, len);
}

/* What it wrote was there in time, and only the reader was late. */
START_TEST(what_a_child_that_is_over_wrote_is_read_after_the_limit_too)
{
	struct heard heard = { .fail_each = 1, .error = ECANCELED, .lines = 1 };
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .on_out = hear_slowly, .context = &heard, .timeout_ms = 1,
	                      .flags = WEAN_LINES };

	start_piped(&child, _i, KID("say", "1", "one\ntwo", "--then", "say", "2", "other"), 0);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	ck_assert_int_eq(wean_communicate(&child, &io, &r), ECANCELED);
	heard.fail_each = 0;
	communicate(&child, &io, &r, 0, 0);
	assert_text(heard.data, heard.len, "one\ntwo\n");
	assert_text(r.err, r.err_len, "other\n");
	free(heard.data);
	done(&child, &r);
}
END_TEST

START_TEST(a_timeout_sends_no_signal_and_closes_nothing)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("say", "1", "here", "--then", "exit-on-eof"), 0);
	int in = child.in; /* kept from it */
	child.in = -1;
	while (r.out_len < 5)
		ck_assert_int_eq(wean_communicate(&child, &(struct wean_io){ .timeout_ms = 20 },
		                                  &r), ETIMEDOUT);
	assert_text(r.out, r.out_len, "here\n");
	ck_assert_int_ge(child.out, 0);
	ck_assert_int_eq(wean_wait(&child, 0, NULL), ETIMEDOUT);
	close(in);
	communicate(&child, NULL, &r, 0, 0);
	assert_text(r.out, r.out_len, "here\n");
	done(&child, &r);
}
END_TEST

START_TEST(a_child_that_lives_on_without_outputs_is_waited_for_until_the_limit)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("close", "0", "1", "2", "--then", "pause"), 0);
	ck_assert_int_eq(wean_communicate(&child, &(struct wean_io){ .timeout_ms = 60 }, &r),
	                 ETIMEDOUT);
	ck_assert_int_eq(wean_kill(&child, SIGKILL), 0);
	ck_assert_int_eq(wean_communicate(&child, NULL, &r), 0);
	assert_signaled(&r.status, SIGKILL);
	done(&child, &r);
}
END_TEST

/* ---- callbacks ---- */

START_TEST(a_callback_gets_all_bytes_in_order)
{
	struct heard heard = { 0 };
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .on_err = hear, .context = &heard };

	start_piped(&child, _i, KID("write", "2", "3000000"), 0);
	communicate(&child, &io, &r, 0, 0);
	assert_pattern(heard.data, heard.len, 3000000);
	ck_assert_ptr_null(r.err);
	ck_assert_uint_eq(r.err_len, 0);
	assert_text(r.out, r.out_len, "");
	free(heard.data);
	done(&child, &r);
}
END_TEST

START_TEST(a_line_of_more_than_a_megabyte_comes_in_parts)
{
	const size_t part = 1 << 20, len = 5 * part / 2;
	struct heard heard = { 0 };
	struct wean_result r = { 0 };
	struct wean_child child;
	char *input = for_good(malloc(len + 5));
	struct wean_io io = { .input = input, .input_len = len + 4, .on_out = hear,
	                      .context = &heard, .flags = WEAN_LINES };

	memset(input, 'x', len);
	memcpy(input + len, "\nend", 5); /* and no newline after it */
	start_piped(&child, _i, KID("cat"), 0);
	communicate(&child, &io, &r, 0, 0);
	ck_assert_uint_eq(heard.pieces, 4);
	ck_assert_uint_eq(heard.longest, part);
	ck_assert_uint_eq(heard.len, len + 3);
	ck_assert_str_eq(heard.data + len, "end");
	free(heard.data);
	done(&child, &r);
}
END_TEST

/* The producer goes on only when it was answered. */
struct answering {
	int fd, n;
};

static int answer(void *context, const char *data, size_t len)
{
	struct answering *a = context;

	ck_assert_int_eq(len > 0 && atoi(data) == a->n, 1);
	a->n++;
	return write(a->fd, "y", 1) == 1 ? 0 : EIO;
}

START_TEST(a_line_is_handed_over_when_it_comes)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct answering a = { .n = 0 };
	struct wean_io io = { .on_out = answer, .context = &a, .flags = WEAN_LINES };

	start_piped(&child, _i, KID("ask", "50"), 0);
	a.fd = child.in;
	child.in = -1;
	communicate(&child, &io, &r, 0, 0);
	ck_assert_int_eq(a.n, 50);
	close(a.fd);
	done(&child, &r);
}
END_TEST

/* ---- caps ---- */

START_TEST(a_cap_is_held_while_all_is_read)
{
	struct wean_result r = { 0 };
	struct wean_child child;
	struct wean_io io = { .out_max = 100, .err_max = 65536 };

	start_piped(&child, _i, KID("write", "1", "1000000", "--then", "write", "2",
	                            "1000000", "--then", "exit", "5"), 0);
	communicate(&child, &io, &r, 5, WEAN_OUT_TRUNCATED | WEAN_ERR_TRUNCATED);
	assert_pattern(r.out, r.out_len, r.out_len);
	ck_assert_uint_le(r.out_len, 100);
	ck_assert_uint_gt(r.out_len, 100 - 4);
	ck_assert_uint_le(r.err_len, 65536);
	ck_assert_uint_gt(r.err_len, 65536 - 4);
	done(&child, &r);
}
END_TEST

START_TEST(what_fits_exactly_is_not_truncated)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("say", "1", "12345"), 0);
	communicate(&child, &(struct wean_io){ .out_max = 6 }, &r, 0, 0);
	assert_text(r.out, r.out_len, "12345\n");
	done(&child, &r);
}
END_TEST

START_TEST(a_cap_cuts_no_character)
{
	static const struct { size_t max, len; } rows[] = {
		{ 1, 1 }, { 2, 1 }, { 3, 3 }, { 4, 3 }, { 5, 3 }, { 6, 6 }, { 7, 6 }, { 9, 6 },
		{ 10, 10 },
	};
	static char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct wean_result r = { 0 };
		struct wean_child child;
		struct wean_io io = { .out_max = rows[i].max, .err_max = rows[i].max };

		start_piped(&child, _i, KID("say", "1", text), 0);
		communicate(&child, &io, &r, 0, WEAN_OUT_TRUNCATED);
		assert_bytes(r.out, r.out_len, text, rows[i].len);
		done(&child, &r);
	}
}
END_TEST

static long peak_kb(void)
{
	struct rusage u;

	ck_assert_int_eq(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_maxrss;
}

START_TEST(a_cap_bounds_the_memory)
{
	struct wean_io io = { .out_max = 65536 };
	struct wean_result r = { 0 };
	struct wean_child child;
	long before;

	if (SANITIZED)
		SKIP("a sanitizer's memory is its own");
	start_piped(&child, _i, KID("write", "1", "200000"), 0);
	communicate(&child, &io, &r, 0, WEAN_OUT_TRUNCATED);
	done(&child, &r);
	before = peak_kb();
	memset(&r, 0, sizeof r);
	start_piped(&child, _i, KID("write", "1", "100000000"), 0);
	communicate(&child, &io, &r, 0, WEAN_OUT_TRUNCATED);
	done(&child, &r);
	ck_assert_int_lt(peak_kb() - before, 1024);
}
END_TEST

/* So the time is linear: what is copied at each is as much as has come in between. */
START_TEST(memory_is_asked_for_as_often_as_the_output_doubles)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("write", "1", "16000000"), 0);
	size_t before = allocations;
	int error = wean_communicate(&child, NULL, &r);
	size_t asked = allocations - before;
	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(r.out_len, 16 * MB);
	ck_assert_uint_le(asked, 14); /* eight times from 64 KiB on, and a few for the rest */
	done(&child, &r);
}
END_TEST

/* ---- who holds the pipes ---- */

START_TEST(a_grandchild_with_the_pipes_is_not_waited_for)
{
	char *hold = _i / 2 ? (char[]){ "setsid-hold" } : (char[]){ "fork-hold" };
	struct wean_io io = { .linger_ms = _i / 4 ? 30 : 0 };
	struct wean_result r = { 0 };
	struct wean_child child;
	struct orphan held;

	adopt_orphans();
	start_piped(&child, _i, KID(hold, "600000", "--then", "write", "2", "200000",
	                            "--then", "exit", "7"), 0);
	pid_t grandchild = read_pid(child.out);
	communicate(&child, &io, &r, 7, WEAN_STILL_OPEN);
	assert_pattern(r.err, r.err_len, 200000);
	orphan_watch(&held, grandchild);
	orphan_end(&held); /* nobody has signalled it */
	done(&child, &r);
}
END_TEST

START_TEST(who_lingers_without_end_reads_to_the_end)
{
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("fork-hold", "400", "--then", "exit", "7"), 0);
	communicate(&child, &(struct wean_io){ .linger_ms = -1 }, &r, 7, 0);
	ck_assert_int_gt(atoi(r.out), 1);
	done(&child, &r);
}
END_TEST

START_TEST(who_lingers_without_end_still_has_a_limit)
{
	struct wean_io io = { .linger_ms = -1, .timeout_ms = 100 };
	struct wean_result r = { 0 };
	struct wean_child child;
	struct orphan held;

	adopt_orphans();
	start_piped(&child, _i, KID("fork-hold", "600000", "--then", "exit", "7"), 0);
	while (r.out_len == 0)
		ck_assert_int_eq(wean_communicate(&child, &io, &r), ETIMEDOUT);
	await_zombie(child.pid);
	ck_assert_int_eq(wean_communicate(&child, &io, &r), ETIMEDOUT);
	ck_assert_int_ge(child.out, 0);
	io = (struct wean_io){ .linger_ms = 0 };
	communicate(&child, &io, &r, 7, WEAN_STILL_OPEN);
	orphan_watch(&held, atoi(r.out));
	orphan_end(&held);
	done(&child, &r);
}
END_TEST

/* ---- ends that the host has set ---- */

START_TEST(ends_without_a_process_are_fed_and_read)
{
	struct wean_io io = { .input = "question", .input_len = 8 };
	struct wean_result r = { 0 };
	struct wean_child child;
	int in[2], out[2];
	char got[16] = "";

	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	ck_assert_int_eq(wean_adopt(&child, 0, 0), 0);
	child.in = in[1];
	child.out = out[0];
	ck_assert_int_eq(write(out[1], "answer", 6), 6);
	close(out[1]);
	ck_assert_int_eq(wean_communicate(&child, &io, &r), 0);
	assert_text(r.out, r.out_len, "answer");
	ck_assert_ptr_null(r.err);
	ck_assert_uint_eq(r.in_written, 8);
	ck_assert_int_eq(read(in[0], got, sizeof got), 8);
	ck_assert_str_eq(got, "question");
	ck_assert_int_eq(r.status.kind, 0);
	ck_assert_int_eq(child.in, -1);
	ck_assert_int_eq(child.out, -1);
	close(in[0]);
	done(&child, &r);
}
END_TEST

/* A socket's other holders have the same flags. */
START_TEST(the_flags_of_an_end_are_put_back)
{
	struct wean_io io = { .input = pattern(MB), .input_len = _i ? MB : 5, .timeout_ms = 30 };
	struct wean_result r = { 0 };
	struct wean_child child;
	int in[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
	ck_assert_int_eq(wean_adopt(&child, 0, 0), 0);
	child.in = dup(in[1]);
	ck_assert_int_eq(wean_communicate(&child, &io, &r), _i ? ETIMEDOUT : 0);
	ck_assert_int_eq(is_nonblocking(in[1]), 0);
	close(in[0]);
	ck_assert_int_eq(wean_communicate(&child, &io, &r), 0);
	ck_assert_int_eq(is_nonblocking(in[1]), 0);
	ck_assert_uint_eq(r.flags, _i ? WEAN_INPUT_UNREAD : 0);
	close(in[1]);
	done(&child, &r);
}
END_TEST

START_TEST(a_nonblocking_end_stays_so)
{
	struct wean_io io = { .input = pattern(MB), .input_len = MB, .timeout_ms = 30 };
	struct wean_result r = { 0 };
	struct wean_child child;

	start_piped(&child, _i, KID("stop", "--then", "tee"), WEAN_NONBLOCK);
	ck_assert_int_eq(wean_communicate(&child, &io, &r), ETIMEDOUT);
	ck_assert_int_eq(is_nonblocking(child.in), 1);
	ck_assert_int_eq(is_nonblocking(child.out), 1);
	io.timeout_ms = 0;
	ck_assert_int_eq(waitid(P_PID, (id_t)child.pid, &(siginfo_t){ 0 },
	                        WSTOPPED | WNOWAIT), 0);
	ck_assert_int_eq(wean_kill(&child, SIGCONT), 0);
	communicate(&child, &io, &r, 0, 0);
	assert_pattern(r.out, r.out_len, MB);
	done(&child, &r);
}
END_TEST

/* ---- counts ---- */

static int wait_for_one(void *arg)
{
	struct wean_options opt = { PIPES };
	struct wean_result r = { 0 };
	struct wean_child child;

	(void)arg;
	if (wean_spawn(&child, KID("close", "1", "--then", "sleep", "500"), &opt))
		return -1;
	count_begin();
	int error = wean_communicate(&child, NULL, &r);
	count_end();
	wean_result_free(&r);
	wean_release(&child);
	return error;
}

START_TEST(an_output_that_ended_is_not_asked_again)
{
	struct count c;
	int error = count_calls(&c, wait_for_one, NULL);

	if (error > 0)
		SKIP("no counting: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	ck_assert_uint_le(count_total(&c, COUNT_PARENT), 40);
	count_free(&c);
}
END_TEST

/* ------------------------------------------------------------------------- */

static void add_bytes(TCase *t)
{
	tcase_add_loop_test(t, megabytes_flow_each_way_at_once, 0, 2);
	tcase_add_loop_test(t, pipes_of_one_page_are_enough, 0, 2);
	tcase_add_loop_test(t, both_outputs_fill_before_the_input_is_read, 0, 2);
	tcase_add_loop_test(t, nothing_written_is_an_empty_text, 0, 2);
	tcase_add_loop_test(t, an_input_of_nothing_ends_at_once, 0, 2);
	tcase_add_loop_test(t, what_is_over_and_waited_for_is_read_to_its_end, 0, 4);
	tcase_add_loop_test(t, one_output_closed_early_leaves_the_other, 0, 2);
	tcase_add_loop_test(t, the_texts_can_be_taken_over, 0, 2);
	tcase_add_loop_test(t, a_callback_gets_all_bytes_in_order, 0, 2);
	tcase_add_loop_test(t, a_line_of_more_than_a_megabyte_comes_in_parts, 0, 2);
	tcase_add_loop_test(t, a_line_is_handed_over_when_it_comes, 0, 2);
	tcase_add_loop_test(t, a_cap_is_held_while_all_is_read, 0, 2);
	tcase_add_loop_test(t, what_fits_exactly_is_not_truncated, 0, 2);
	tcase_add_loop_test(t, a_cap_cuts_no_character, 0, 2);
}

static void add_rest(TCase *t)
{
	tcase_add_loop_test(t, a_child_that_does_not_read_its_input_gives_its_status, 0, 2);
	tcase_add_loop_test(t, a_sigpipe_that_was_pending_stays_so_and_no_other_does, 0, 4);
	tcase_add_loop_test(t, the_caller_stays_as_it_was, 0, 2);
	tcase_add_loop_test(t, what_is_wrong_is_said_and_touches_nothing, 0, 2);
	tcase_add_loop_test(t, after_a_timeout_nothing_is_lost_and_nothing_comes_twice, 0, 2);
	tcase_add_loop_test(t, after_a_callback_that_ended_it_nothing_is_lost_and_nothing_comes_twice,
	                    0, 2);
	tcase_add_loop_test(t, a_callback_may_close_the_other_ends, 0, 2);
	tcase_add_loop_test(
		t, what_a_child_that_is_over_wrote_is_read_after_the_limit_too, 0, 2);
	tcase_add_loop_test(t, a_timeout_sends_no_signal_and_closes_nothing, 0, 2);
	tcase_add_loop_test(
		t, a_child_that_lives_on_without_outputs_is_waited_for_until_the_limit, 0, 2);
	tcase_add_loop_test(t, who_lingers_without_end_reads_to_the_end, 0, 2);
	tcase_add_test(t, ends_without_a_process_are_fed_and_read);
	tcase_add_loop_test(t, the_flags_of_an_end_are_put_back, 0, 2);
	tcase_add_loop_test(t, a_nonblocking_end_stays_so, 0, 2);
}

static Suite *communicate_suite(void)
{
	Suite *s = suite_create("communicate");
	TCase *t = tcase_create("communicate");

	tcase_set_timeout(t, 30);
	add_bytes(t);
	add_rest(t);
	suite_add_tcase(s, t);
	t = case_that_needs(s, "signals");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, after_a_handler_nothing_is_lost_and_nothing_comes_twice, 0, 4);
	t = case_that_needs(s, "table");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, descriptors_above_1024_are_as_good, 0, 2);
	t = case_that_needs(s, "kernel");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, a_grandchild_with_the_pipes_is_not_waited_for, 0, 8);
	tcase_add_loop_test(t, who_lingers_without_end_still_has_a_limit, 0, 2);
	tcase_add_test(t, a_callback_may_take_the_pidfd);
	t = case_that_needs(s, "native");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, a_cap_bounds_the_memory, 0, 2);
	if (COUNTS_HEAP)
		tcase_add_loop_test(t, memory_is_asked_for_as_often_as_the_output_doubles, 0, 2);
	t = case_that_needs(s, "ptrace default");
	tcase_set_timeout(t, 30);
	tcase_add_test(t, an_output_that_ended_is_not_asked_again);
	return s;
}

RUN_SUITE(communicate_suite)
