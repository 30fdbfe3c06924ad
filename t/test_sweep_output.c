/* test_sweep_output.c - every call and every allocation fails that feeding and reading
 * make: the error is told, the same call then goes on, and all bytes are there once;
 * what belongs to the caller is as it was, and nothing is left behind. */
#define _GNU_SOURCE
#include "faults.h"

#include "../src/widen.c"
#include "descriptors.h"
#include "talking.h"

enum {
	PIPE_HOLDS = 65536,
	PIECES = 6,               /* a pipe that four find full is enlarged */
	SMALL = 4096,
	ALL_OF_IT = PIECES * PIPE_HOLDS,
	AGAIN = 3                 /* calls with the same fault */
};

static char *text;            /* of lines */

static void make_text(void)
{
	text = for_good(malloc(ALL_OF_IT));
	for (int i = 0; i < ALL_OF_IT; i++)
		text[i] = i % 64 == 63 ? '\n' : (char)('a' + i / 64 % 26);
}

static void assert_all(const char *what, const char *got, size_t got_len, size_t len)
{
	if (got_len != len || memcmp(got, text, len) != 0)
		wrong("%zu bytes of %zu of %s, or others", got_len, len, what);
}

static void assert_told(int error)
{
	if (error && !is_explained(error, 0))
		wrong("%s", strerror(error));
}

static int has_failed(const char *name)
{
	for (int i = 0; i < FAULT_ROWS; i++)
		if (!strcmp(fault_rows[i].name, name))
			return faults->failed[i] != 0;
	ck_abort_msg("no row %s", name);
}

/* ---- both sides of a talk, in one process -------------------------------- */

struct scene {
	int lines;                /* the callback gets lines, and each ends the call */
	int in, out;              /* our ends */
	size_t piece, in_len, err_len;
	int shared;               /* another number of the end that is written to */
	size_t written, heard, drained;
	char got_out[ALL_OF_IT + 1], got_in[ALL_OF_IT + 1];
};

static struct scene *scene;

static void write_more(struct scene *s)
{
	if (write(s->out, text + s->written, s->piece) != (ssize_t)s->piece)
		wrong("the pipe is full");
	s->written += s->piece;
	if (s->written == PIECES * s->piece)
		close(s->out);
}

static void drain(struct scene *s)
{
	ssize_t n;

	while ((n = read(s->in, s->got_in + s->drained, ALL_OF_IT - s->drained)) > 0)
		s->drained += (size_t)n;
}

/* Whenever all that was there is handed over, there is more. */
static int hear_scene(void *context, const char *data, size_t len)
{
	struct scene *s = context;
	int saved = errno;

	if (s->heard + len >= sizeof s->got_out)
		wrong("too much came");
	memcpy(s->got_out + s->heard, data, len);
	s->heard += len;
	if (s->lines)
		s->got_out[s->heard++] = '\n';
	if (s->heard == s->written && s->written < PIECES * s->piece) {
		drain(s);
		write_more(s);
	}
	errno = saved;
	return s->lines ? ECANCELED : 0;
}

static int memory_of(const char *data, size_t len)
{
	int fd = memfd_create("err", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET))
		wrong("memfd: %s", strerror(errno));
	return fd;
}

static void set_scene(struct scene *s, struct wean_child *child)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || wean_adopt(child, 0, WEAN_EINTR))
		wrong("no pipes");
	fcntl(in[0], F_SETFL, O_NONBLOCK);
	s->in = in[0];
	s->out = out[1];
	s->shared = fcntl(in[1], F_DUPFD_CLOEXEC, 0);
	s->written = s->heard = s->drained = 0;
	child->in = in[1];
	child->out = out[0];
	child->err = memory_of(text, s->err_len);
	write_more(s);
}

static int talk_once(struct wean_child *child, const struct wean_io *io,
                     struct wean_result *r)
{
	int error;

	do {
		error = wean_communicate(child, io, r);
		if (scene && fcntl(scene->shared, F_GETFL) & O_NONBLOCK)
			wrong("the end stays non-blocking");
	} while (error == ECANCELED);
	return error;
}

/* Until it is done, with the fault and then without. */
static void talk(struct wean_child *child, const struct wean_io *io, struct wean_result *r)
{
	int error = 1;

	for (int i = 0; i < AGAIN && error; i++)
		assert_told(error = talk_once(child, io, r));
	if (faults->n == 0 && error)
		wrong("%s", strerror(error));
	faults_cease();
	if (error && (error = talk_once(child, io, r)) != 0)
		wrong("%s without a fault", strerror(error));
}

static void assert_heard(struct scene *s, const struct wean_result *r)
{
	int broken = has_failed("write") && r->flags == WEAN_INPUT_UNREAD;

	assert_all("the first output", s->got_out, s->heard, PIECES * s->piece);
	assert_all("the second output", r->err, r->err_len, s->err_len);
	drain(s);
	assert_all("the input", s->got_in, s->drained, broken ? r->in_written : s->in_len);
	if (r->flags && !broken)
		wrong("flags %#x", r->flags);
	if (r->in_written != s->drained)
		wrong("%zu bytes are said to be written", r->in_written);
}

static void end_of_try(struct baseline *b)
{
	char difference[BASELINE_TEXT];
	sigset_t pending;

	if (widened)
		wrong("%d pipes count as enlarged", widened);
	sigpending(&pending);
	if (sigismember(&pending, SIGPIPE))
		wrong("SIGPIPE is pending");
	errno = BASELINE_ERRNO;
	if (baseline_differs(b, difference))
		wrong("%s", difference);
}

static void one_talk(void *arg)
{
	struct scene *s = scene = arg;
	struct wean_io io = { .input = text, .input_len = s->in_len, .on_out = hear_scene,
	                      .context = s, .flags = s->lines ? WEAN_LINES : 0 };
	struct wean_result r = { 0 };
	struct wean_child child;
	struct baseline b;

	baseline_take(&b);
	set_scene(s, &child);
	faults_begin();
	talk(&child, &io, &r);
	assert_heard(s, &r);
	errno = BASELINE_ERRNO;
	wean_result_free(&r);
	wean_release(&child);
	faults_end();
	close(s->in);
	close(s->shared);
	end_of_try(&b);
}

START_TEST(each_call_of_a_talk_may_fail)
{
	static struct scene s;

	s.lines = _i;
	s.piece = _i ? SMALL : PIPE_HOLDS;
	s.in_len = _i ? SMALL : 2 * PIPE_HOLDS + 1; /* several writes */
	s.err_len = _i ? SMALL : 2 * PIPE_HOLDS + 1; /* more room, several times */
	make_text();
	faults_make();
	fail_each_up_to(CALLER, one_talk, &s);
}
END_TEST

/* ---- a child ------------------------------------------------------------- */

static void assert_status(const struct wean_status *s, int code)
{
	if (s->kind == WEAN_UNKNOWN ? !is_explained(ECHILD, 0) : s->code != code)
		wrong("status %d, %d", s->kind, s->code);
}

/* It has said all and is over, so that each try is the same. */
static void one_listening(void *arg)
{
	const int bare = *(int *)arg; /* no pidfd, little to keep */
	const struct wean_options o = { .out = WEAN_PIPE, .err = WEAN_PIPE };
	struct wean_io io = { .out_max = bare ? 100 : 0 };
	struct wean_result r = { 0 };
	struct wean_child child;
	struct baseline b;
	siginfo_t info;

	scene = NULL;
	baseline_take(&b);
	if (wean_spawn(&child, KID("write", "1", "60000", "--then", "exit", "5"), &o))
		wrong("no child");
	waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT);
	if (bare) {
		close(child.pidfd);
		child.pidfd = -1;
	}
	faults_begin();
	talk(&child, &io, &r);
	if (r.out_len > (bare ? 100 : 60000) || r.out_len < (bare ? 97 : 60000))
		wrong("%zu bytes came", r.out_len);
	for (size_t i = 0; i < r.out_len; i++)
		if ((unsigned char)r.out[i] != kid_pattern(i))
			wrong("byte %zu differs", i);
	if (r.flags != (bare ? WEAN_OUT_TRUNCATED : 0))
		wrong("flags %#x", r.flags);
	assert_status(&r.status, 5);
	wean_result_free(&r);
	wean_release(&child);
	faults_end();
	end_of_try(&b);
}

START_TEST(each_call_of_listening_to_a_child_may_fail)
{
	faults_make();
	kid();
	fail_each_up_to(CALLER, one_listening, &_i);
}
END_TEST

enum { IN_OF_RUN = 10000 };

/* What came is a beginning of what would have come. */
static void assert_run(const struct wean_result *r, int error)
{
	int unread = r->flags & WEAN_INPUT_UNREAD && has_failed("write");
	size_t wanted = unread ? r->in_written : IN_OF_RUN;

	if (!error) {
		assert_all("the output", r->out, r->out_len, wanted);
		assert_all("the other", r->err, r->err_len, wanted);
		assert_status(&r->status, 0);
	} else if ((r->out && memcmp(r->out, text, r->out_len) != 0)
	           || (r->err && memcmp(r->err, text, r->err_len) != 0)) {
		wrong("other bytes");
	}
}

static void one_run(void *arg)
{
	const struct wean_io io = { .input = text, .input_len = IN_OF_RUN, .timeout_ms = 20000,
	                            .grace_ms = 1000 };
	struct wean_result r;
	struct baseline b;
	int error, started, pid;

	(void)arg;
	scene = NULL;
	baseline_take(&b);
	faults_begin();
	error = wean_run(KID("tee"), NULL, &io, &r);
	faults_cease();
	started = r.child.stage == WEAN_STAGE_NONE;
	pid = started && r.status.kind == 0 ? r.child.pid : 0;
	if (error && !is_explained(error, r.child.stage))
		wrong("%s at %s", strerror(error), wean_stage_name(r.child.stage));
	if (error && !faults->n)
		wrong("%s", strerror(error));
	if (started)
		assert_run(&r, error);
	if (!error && pid)
		wrong("there is no status");
	/* Who may not send a signal, or wait, leaves it to us: its input is at its end. */
	if (pid && (waitpid(pid, NULL, 0) != pid || !faults->forever))
		wrong("the child is left");
	errno = BASELINE_ERRNO;
	wean_result_free(&r);
	faults_end();
	end_of_try(&b);
}

START_TEST(each_call_of_a_run_may_fail)
{
	make_text();
	faults_make();
	kid();
	fail_each_up_to(CALLER, one_run, NULL);
}
END_TEST

/* ---- a reader ------------------------------------------------------------ */

struct reading {
	int from_pipe, timeout_ms;
	int fd, to;
	size_t written, got;
	char all[ALL_OF_IT + 1];
};

/* As much as the pipe holds, when it was read. */
static void feed(struct reading *g)
{
	if (!g->from_pipe || g->got < g->written || g->written == PIECES * PIPE_HOLDS)
		return;
	if (write(g->to, text + g->written, PIPE_HOLDS) != PIPE_HOLDS)
		wrong("the pipe is full");
	g->written += PIPE_HOLDS;
	if (g->written == PIECES * PIPE_HOLDS)
		close(g->to);
}

static int read_piece(struct reading *g, wean_reader *r)
{
	const char *data = "?";
	size_t len = 1;
	int error = g->from_pipe ? wean_read_some(r, &data, &len)
	                         : wean_read_line(r, &data, &len);

	if (error)
		return error;
	if (!data)
		return -1;
	if (g->got + len >= sizeof g->all)
		wrong("too much came");
	memcpy(g->all + g->got, data, len);
	g->got += len;
	if (!g->from_pipe)
		g->all[g->got++] = '\n';
	return 0;
}

static void read_to_the_end(struct reading *g, wean_reader *r)
{
	int error, errors = 0;

	while ((feed(g), error = read_piece(g, r)) >= 0) {
		assert_told(error);
		errors += error > 0;
		if (errors == AGAIN)
			faults_cease();
		if (errors > AGAIN || (error && !faults->n))
			wrong("%s without a fault", strerror(error));
	}
}

static void open_source(struct reading *g)
{
	int ends[2];

	g->got = g->written = 0;
	if (!g->from_pipe) {
		g->fd = memory_of(text, PIECES * PIPE_HOLDS);
		return;
	}
	if (pipe2(ends, O_CLOEXEC))
		wrong("no pipe");
	g->fd = ends[0];
	g->to = ends[1];
}

static void one_reading(void *arg)
{
	struct reading *g = arg;
	wean_reader *r = NULL;
	struct baseline b;
	int error;

	baseline_take(&b);
	open_source(g);
	faults_begin();
	assert_told(error = wean_reader_new(&r, g->fd, 0));
	if (error && r)
		wrong("a reader that is none");
	if (error) {
		faults_cease();
		error = wean_reader_new(&r, g->fd, 0);
	}
	if (error || wean_reader_timeout(r, g->timeout_ms))
		wrong("no reader: %s", strerror(error));
	read_to_the_end(g, r);
	assert_all("what was written", g->all, g->got, PIECES * PIPE_HOLDS);
	errno = BASELINE_ERRNO;
	wean_reader_free(r);
	faults_end();
	if (g->from_pipe && !has_failed("F_SETPIPE_SZ")
	    && fcntl(g->fd, F_GETPIPE_SZ) != PIPE_HOLDS)
		wrong("the pipe stays enlarged");
	close(g->fd);
	end_of_try(&b);
}

START_TEST(each_call_of_a_reader_may_fail)
{
	static struct reading g;

	g.from_pipe = _i;
	g.timeout_ms = _i ? 20000 : -1;
	make_text();
	if (!g.from_pipe)
		for (int i = 0; i < 5 * PIPE_HOLDS; i++) /* a line that needs more room */
			text[i] = 'x';
	faults_make();
	fail_each_up_to(CALLER, one_reading, &g);
}
END_TEST

static Suite *sweep_output_suite(void)
{
	Suite *s = suite_create("sweep of output");
	TCase *t = case_that_needs(s, "native");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, each_call_of_a_talk_may_fail, 0, 2);
	tcase_add_loop_test(t, each_call_of_listening_to_a_child_may_fail, 0, 2);
	tcase_add_test(t, each_call_of_a_run_may_fail);
	tcase_add_loop_test(t, each_call_of_a_reader_may_fail, 0, 2);
	return s;
}

RUN_WITH_STDIO_ALONE(sweep_output_suite)
