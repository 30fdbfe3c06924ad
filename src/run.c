#include <errno.h>
#include <string.h>

#include "handle.h"
#include "sys.h"
#include "talk.h"

/* ---- what differs from a start ---- */

static int
is_named(const struct wean_options *o, int target)
{
	for (size_t i = 0; o->fds && i < o->nfds; i++)
		if (o->fds[i].target == target)
			return 1;
	return 0;
}

static void
set_default(const struct wean_options *o, int *kind, int target, int value)
{
	if (*kind == 0 && !is_named(o, target))
		*kind = value;
}

static int
set_defaults(struct wean_options *o, const struct wean_io *io)
{
	set_default(o, &o->in, 0, io->input ? WEAN_PIPE : WEAN_NULL);
	set_default(o, &o->out, 1, WEAN_PIPE);
	set_default(o, &o->err, 2, WEAN_PIPE);
	return io->input && o->in != WEAN_PIPE ? EINVAL : 0;
}

/* ---- the end by force ---- */

struct drain {
	struct wean_result *result;
	struct wean_io io;
	int nap;
};

/* No callback is called after one has failed. */
static void
stop_listening(struct drain *d)
{
	wean_sys_drop(&d->result->child.out);
	wean_sys_drop(&d->result->child.err);
	d->io.on_out = d->io.on_err = NULL;
}

static void
talk_further(struct drain *d, long long deadline, int until_over)
{
	int error = wean_talk(&d->result->child, &d->io, d->result, deadline, until_over);

	if ((error && error != ETIMEDOUT) || wean_talk_refused(d->result))
		stop_listening(d);
}

/* Who is to end, the child and then its group, may have much to say before: it would wait
   for a reader.  Where nobody has a pipe any more the time passes all the same. */
static int
read_on(void *arg, int ms)
{
	struct drain *d = arg;
	struct wean_child *child = &d->result->child;
	long long end = wean_sys_deadline(ms);
	int over = wean_child_is_over(child) != 0;

	talk_further(d, end, !over);
	if (!over && wean_child_is_over(child) != 0)
		return 0;
	return wean_child_pause(over ? -1 : child->pidfd, wean_sys_left(end), &d->nap);
}

enum { REST_MS = 200, SILENCE_MS = 10 };

/* What was written is there, but whoever holds the pipes may go on for ever. */
static void
read_rest(struct drain *d)
{
	d->io.linger_ms = SILENCE_MS;
	talk_further(d, wean_sys_deadline(REST_MS), 0);
}

static void
stop(struct drain *d, int reads_on)
{
	struct wean_child *child = &d->result->child;

	if (!reads_on)
		stop_listening(d);
	wean_sys_drop(&child->in);
	wean_handle(child)->flags &= ~HANDLE_EINTR;
	wean_stop_pumping(child, d->io.grace_ms, &d->result->status,
	                  &(struct pump){ read_on, d });
	read_rest(d);
}

static int
refuse_run(struct wean_result *result, int index)
{
	result->child.stage = WEAN_STAGE_OPTIONS;
	result->child.index = index;
	return EINVAL;
}

int
wean_run(char *const argv[], const struct wean_options *options, const struct wean_io *io,
         struct wean_result *result)
{
	static const struct wean_io none;
	struct wean_options o = options ? *options : (struct wean_options){ 0 };
	struct drain d;
	int error, refused;

	if (!result)
		return EINVAL;
	io = io ? io : &none;
	*result = (struct wean_result){ .child = wean_no_child() };
	if (wean_io_check(io) != 0)
		return refuse_run(result, -1);
	if (set_defaults(&o, io) != 0)
		return refuse_run(result, (int)o.nfds);
	if ((error = wean_spawn(&result->child, argv, &o)) != 0)
		return error;
	if ((error = wean_communicate(&result->child, io, result)) == 0)
		return 0;
	refused = wean_talk_refused(result);
	d = (struct drain){ .result = result, .io = *io };
	stop(&d, !refused && (error == ETIMEDOUT || error == EINTR));
	if (error == ETIMEDOUT && !refused)
		result->flags |= WEAN_TIMED_OUT;
	wean_talk_end(&result->child, &d.io, result);
	return error;
}
