#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "output.h"
#include "sys.h"
#include "talk.h"

/* ---- what outlives a call that is to be gone on with ---- */

struct talk {
	struct intake out, err;
	int ended;             /* all was read, and handed over */
};

static struct talk *
talk_of(const struct wean_result *result)
{
	return (struct talk *)result->opaque[0];
}

static int
begin_talk(struct wean_result *result)
{
	int saved = errno;
	struct talk *t = talk_of(result);

	if (!t) {
		t = calloc(1, sizeof *t);
		result->opaque[0] = (size_t)t;
	}
	errno = saved;
	return t ? 0 : ENOMEM;
}

void
wean_result_free(struct wean_result *result)
{
	int saved = errno;
	struct talk *t;

	if (!result)
		return;
	if ((t = talk_of(result)) != NULL) {
		wean_output_forget(&t->out);
		wean_output_forget(&t->err);
	}
	free(t);
	free(result->out);
	free(result->err);
	wean_release(&result->child);
	errno = saved;
	result->opaque[0] = 0;
	result->out = result->err = NULL;
	result->out_len = result->err_len = 0;
}

struct talker {
	struct wean_child *child;
	const struct wean_io *io;
	struct wean_result *result;
	struct output output[2];
	long long quiet;       /* when the silence has lasted long enough */
	int idle;              /* there was nothing at the last look */
	int rest;              /* turns for what is there at the limit */
	int over;              /* the child is */
	int told;              /* its pidfd has */
	int nap;
	int in_flags;          /* of the input's end before, or -1: as they were */
};

/* ---- the input ---- */

/* Writes what fits in and no more, which no poll can tell beforehand. */
static int
let_input_flow(struct talker *t)
{
	int flags = t->child->in < 0 ? O_NONBLOCK : wean_sys_file_flags(t->child->in), r;

	if (flags < 0)
		return -flags;
	if (flags & O_NONBLOCK)
		return 0;
	if ((r = wean_sys_set_file_flags(t->child->in, flags | O_NONBLOCK)) < 0)
		return -r;
	t->in_flags = flags;
	return 0;
}

/* Others may hold what the end is of, a socket for instance, and have the same flags. */
static void
give_flags_back(struct talker *t)
{
	if (t->in_flags >= 0 && t->child->in >= 0)
		wean_sys_set_file_flags(t->child->in, t->in_flags);
	t->in_flags = -1;
}

static void
end_input(struct talker *t)
{
	give_flags_back(t);
	wean_sys_drop(&t->child->in);
}

static int
serve_input(struct talker *t)
{
	const struct wean_io *io = t->io;
	size_t left = io->input_len - t->result->in_written;
	int put = 0;

	if (left > 0)
		put = wean_sys_write_quietly(t->child->in,
		    (const char *)io->input + t->result->in_written,
		    left < INT_MAX / 2 ? left : INT_MAX / 2);
	if (put == -EAGAIN || put == -EINTR)
		return 0;
	if (put == -EPIPE || put == -ECONNRESET) {
		end_input(t);
		return 0;
	}
	if (put < 0)
		return -put;
	t->result->in_written += (size_t)put;
	if (t->result->in_written >= io->input_len)
		end_input(t);
	return 0;
}

/* ---- the talk ---- */

static int
is_silent(const struct talker *t)
{
	return t->child->in < 0 && t->child->out < 0 && t->child->err < 0;
}

/* -1: the child is asked.  A callback may have taken its pidfd. */
static int
watched(const struct talker *t)
{
	return t->told ? -1 : t->child->pidfd;
}

static void
start_silence(struct talker *t)
{
	int linger = t->io->linger_ms;

	t->idle = 0; /* it may have written since the last look */
	t->quiet = wean_sys_deadline(linger ? linger : 100);
}

/* What is in the pipes is there at once: only after the silence is it said that there is
   no more, because somebody else may hold them. */
static void
look_after_child(struct talker *t)
{
	int state = wean_handle_state(t->child);

	if (t->over || state == HANDLE_ENDS_ONLY || (state == HANDLE_RUNS && watched(t) >= 0))
		return;
	if (state == HANDLE_OVER || wean_child_is_over(t->child) != 0) {
		t->over = 1;
		start_silence(t);
	}
}

enum { LONGEST_NAP_MS = 20 };

static int
pause_ms(const struct talker *t, long long deadline)
{
	int left = wean_sys_left(t->over && t->quiet < deadline ? t->quiet : deadline);
	int blind = !t->over && watched(t) < 0
	    && wean_handle_state(t->child) != HANDLE_ENDS_ONLY;

	return blind && (left < 0 || left > t->nap) ? t->nap : left;
}

struct asked {
	struct sys_poll poll[4];
	struct output *output[4];
	size_t n;
};

static void
ask_about(struct asked *a, int fd, short events, struct output *o)
{
	if (fd < 0)
		return;
	a->output[a->n] = o;
	a->poll[a->n++] = (struct sys_poll){ fd, events, 0 };
}

/* By its callback one output may have closed the end of another, or of the input. */
static int
is_closed(const struct talker *t, const struct asked *a, size_t i)
{
	return a->output[i] ? *a->output[i]->fd < 0
	                    : a->poll[i].events == SYS_POLL_OUT && t->child->in < 0;
}

static int
serve(struct talker *t, const struct asked *a)
{
	int error = 0;

	for (size_t i = 0; i < a->n && !error; i++) {
		if (a->poll[i].revents == 0 || is_closed(t, a, i))
			continue;
		if (a->output[i])
			error = wean_output_serve(a->output[i]);
		else if (a->poll[i].events == SYS_POLL_OUT)
			error = serve_input(t);
		else
			t->told = 1; /* a tracer may keep the end to itself yet */
		t->nap = 1;
		if (t->over)
			start_silence(t);
	}
	return error;
}

static int
turn(struct talker *t, long long deadline)
{
	struct asked a = { .n = 0 };
	int r;

	ask_about(&a, t->child->out, SYS_POLL_IN, &t->output[0]);
	ask_about(&a, t->child->err, SYS_POLL_IN, &t->output[1]);
	ask_about(&a, t->child->in, SYS_POLL_OUT, NULL);
	ask_about(&a, t->over ? -1 : watched(t), SYS_POLL_IN, NULL);
	r = wean_sys_poll(a.poll, a.n, pause_ms(t, deadline));
	t->idle = r == 0;
	if (r == -EINTR)
		return wean_handle_wants_eintr(t->child) ? EINTR : 0;
	if (r < 0)
		return -r;
	t->nap += t->nap < LONGEST_NAP_MS;
	return serve(t, &a);
}

/* Turns that read as much as a pipe holds, at the most. */
enum { REST = 1024 * 1024 / READ_AT_LEAST + 1 };

/* What a child that is over has written is there, and is read however late it is; but who
   else has the pipes may go on for ever. */
static int
has_all(struct talker *t, long long deadline)
{
	if (wean_sys_left(deadline) == 0)
		return t->idle || t->rest-- == 0;
	return t->idle && wean_sys_left(t->quiet) == 0;
}

static int
talk_on(struct talker *t, long long deadline, int until_over)
{
	int error = 0;

	while (!error) {
		look_after_child(t);
		if (is_silent(t) || (until_over && t->over))
			return 0;
		if (t->over && t->io->linger_ms >= 0) {
			if (has_all(t, deadline))
				return 0;
		} else if (wean_sys_left(deadline) == 0) {
			return ETIMEDOUT;
		}
		error = turn(t, deadline);
	}
	return error;
}

static struct talker
talker(struct wean_child *child, const struct wean_io *io, struct wean_result *r)
{
	int lines = (io->flags & WEAN_LINES) != 0;
	struct talk *k = talk_of(r);

	return (struct talker){ .child = child, .io = io, .result = r, .nap = 1,
	                        .rest = REST, .in_flags = -1, .output = {
		{ &child->out, &k->out, &r->out, &r->out_len, io->out_max, &r->flags,
		  WEAN_OUT_TRUNCATED, io->on_out, io->context, lines },
		{ &child->err, &k->err, &r->err, &r->err_len, io->err_max, &r->flags,
		  WEAN_ERR_TRUNCATED, io->on_err, io->context, lines },
	} };
}

int
wean_talk(struct wean_child *child, const struct wean_io *io, struct wean_result *result,
          long long deadline, int until_over)
{
	struct talker t;
	int error = begin_talk(result);

	if (error)
		return error;
	t = talker(child, io, result);
	for (int i = 0; i < 2 && !error; i++)
		error = wean_output_begin(&t.output[i]);
	if (error || (error = let_input_flow(&t)) != 0)
		return error;
	error = talk_on(&t, deadline, until_over);
	give_flags_back(&t);
	return error;
}

int
wean_talk_refused(const struct wean_result *result)
{
	const struct talk *t = talk_of(result);

	return t && (t->out.refused || t->err.refused);
}

int
wean_talk_end(struct wean_child *child, const struct wean_io *io, struct wean_result *result)
{
	struct talker t;
	int error = 0;

	wean_sys_drop(&child->in);
	if (result->in_written < io->input_len)
		result->flags |= WEAN_INPUT_UNREAD;
	if (!talk_of(result))
		return 0; /* there was no memory for it, and the outputs are closed */
	t = talker(child, io, result);
	if (child->out >= 0 || child->err >= 0)
		result->flags |= WEAN_STILL_OPEN;
	wean_output_close(&t.output[0]);
	wean_output_close(&t.output[1]);
	for (int i = 0; i < 2 && !error; i++)
		error = wean_output_finish(&t.output[i]);
	return error;
}

int
wean_io_check(const struct wean_io *io)
{
	int bad = io->flags & ~(unsigned)WEAN_LINES || (io->input_len && !io->input);

	for (size_t i = 0; i < sizeof io->reserved_int / sizeof io->reserved_int[0]; i++)
		bad |= io->reserved_int[i] != 0;
	for (size_t i = 0; i < sizeof io->reserved_ptr / sizeof io->reserved_ptr[0]; i++)
		bad |= io->reserved_ptr[i] != NULL;
	return bad ? EINVAL : 0;
}

int
wean_communicate(struct wean_child *child, const struct wean_io *io,
                 struct wean_result *result)
{
	static const struct wean_io none;
	long long deadline;
	int error;

	io = io ? io : &none;
	if (!child || !result || wean_io_check(io) != 0)
		return EINVAL;
	if (wean_handle_state(child) == HANDLE_NONE)
		return ESRCH;
	deadline = wean_sys_deadline(io->timeout_ms > 0 ? io->timeout_ms : -1);
	if (!talk_of(result) || !talk_of(result)->ended) {
		error = wean_talk(child, io, result, deadline, 0);
		if (error || (error = wean_talk_end(child, io, result)) != 0)
			return error;
		talk_of(result)->ended = 1;
	}
	if (wean_handle_state(child) == HANDLE_ENDS_ONLY)
		return 0;
	return wean_wait(child, wean_sys_left(deadline), &result->status);
}
