#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "streams.h"

enum { FREE, OPEN, HELD };

/* Instead of a pidfd: there is none, so ask each time; the child was reaped. */
enum { ASK = -2, NOTHING = -1 };

static struct stream *streams;

static struct stream *
first(void)
{
	return __atomic_load_n(&streams, __ATOMIC_ACQUIRE);
}

/* ---- a place ---- */

static int
hold(struct stream *s, int state)
{
	return __atomic_compare_exchange_n(&s->state, &state, HELD, 0, __ATOMIC_ACQUIRE,
	                                   __ATOMIC_RELAXED);
}

static FILE *
file_of(const struct stream *s)
{
	return __atomic_load_n(&s->file, __ATOMIC_ACQUIRE);
}

static int
watch_of(const struct stream *s)
{
	return __atomic_load_n(&s->watch, __ATOMIC_RELAXED);
}

static void
set_watch(struct stream *s, int watch)
{
	__atomic_store_n(&s->watch, watch, __ATOMIC_RELAXED);
}

static int
is_of(const struct stream *s, int pid)
{
	return __atomic_load_n(&s->pid, __ATOMIC_RELAXED) == pid;
}

int
wean_stream_is_ours(const struct stream *s)
{
	return is_of(s, wean_sys_getpid());
}

/* Free is what has no child any more, and no stream that may still use the buffer. */
static void
let_go(struct stream *s)
{
	int state = s->file || watch_of(s) != NOTHING ? OPEN : FREE;

	__atomic_store_n(&s->state, state, __ATOMIC_RELEASE);
}

static void
link_in(struct stream *s)
{
	s->next = first();
	while (!__atomic_compare_exchange_n(&streams, &s->next, s, 0, __ATOMIC_RELEASE,
	                                    __ATOMIC_RELAXED))
		;
}

struct stream *
wean_stream_new(void)
{
	struct stream *s = first();

	while (s && !hold(s, FREE))
		s = s->next;
	if (!s) {
		if (!(s = malloc(sizeof *s)))
			return NULL;
		s->state = HELD;
		s->file = NULL;
		s->watch = NOTHING;
		link_in(s);
	}
	s->child = (struct wean_child){ 0 };
	__atomic_store_n(&s->pid, wean_sys_getpid(), __ATOMIC_RELAXED);
	return s;
}

void
wean_stream_end(struct stream *s)
{
	wean_release(&s->child);
	set_watch(s, NOTHING);
	let_go(s);
}

void
wean_stream_leave(struct stream *s)
{
	set_watch(s, s->child.pidfd >= 0 ? s->child.pidfd : ASK);
	let_go(s);
}

void
wean_stream_open(struct stream *s)
{
	if (wean_sys_file(s->fd, &s->pipe) < 0)
		s->pipe.inode = 0;
	wean_stream_leave(s);
}

/* ---- by name ---- */

/* Held, as soon as another thread has had its look at it; in a copy who held it is not
   there any more. */
static struct stream *
find(FILE *file)
{
	struct stream *s = first();

	while (s) {
		if (file_of(s) != file) {
			s = s->next;
		} else if (hold(s, OPEN)) {
			if (file_of(s) == file)
				return s;
			let_go(s);
		} else {
			if (!wean_stream_is_ours(s))
				return s;
			wean_sys_sleep_us(50);
		}
	}
	return NULL;
}

void
wean_stream_unname(struct stream *s)
{
	__atomic_store_n(&s->file, NULL, __ATOMIC_RELEASE);
}

void
wean_stream_name(struct stream *s, FILE *file)
{
	struct stream *old = find(file);

	if (old) {
		wean_stream_unname(old);
		if (wean_stream_is_ours(old))
			let_go(old);
		else
			wean_stream_end(old);
	}
	__atomic_store_n(&s->file, file, __ATOMIC_RELEASE);
}

/* ---- closed behind our back ---- */

enum { SAME, CLOSED, ANOTHER };

static int
what_is_there(const struct stream *s)
{
	struct sys_file file = { 0 };
	int r = wean_sys_file(s->fd, &file);

	if (r < 0)
		return wean_sys_close_on_exec(s->fd) < 0 ? CLOSED : SAME;
	return s->pipe.inode == 0
	    || (file.inode == s->pipe.inode && file.device == s->pipe.device) ? SAME : ANOTHER;
}

/* A stream whose descriptor alone was closed is still ours. */
struct stream *
wean_stream_take(FILE *file)
{
	struct stream *s = file ? find(file) : NULL;

	if (!s)
		return NULL;
	if (fileno(file) != s->fd || what_is_there(s) == ANOTHER) {
		let_go(s);
		return NULL;
	}
	set_watch(s, NOTHING);
	return s;
}

/* The status stays in the child, for a stream that lives on without its descriptor. */
static void
reap_stream(struct stream *s)
{
	if (!hold(s, OPEN))
		return;
	if (watch_of(s) != NOTHING && (!s->file || what_is_there(s) != SAME)
	    && wean_wait(&s->child, 0, NULL) == 0) {
		wean_sys_drop(&s->child.pidfd);
		set_watch(s, NOTHING);
	}
	let_go(s);
}

enum { AT_ONCE = 64 };

static void
reap_those_over(struct stream *const *some, struct sys_poll *polls, size_t n)
{
	int r = n > 0 ? wean_sys_poll(polls, n, 0) : 0;

	for (size_t i = 0; r != 0 && i < n; i++)
		if (r < 0 || polls[i].revents)
			reap_stream(some[i]);
}

/* Only a child that is over is worth a look at its stream, and one poll tells of many.
   A number that meanwhile became another's does no harm: reap_stream() looks again. */
void
wean_streams_reap(void)
{
	struct stream *some[AT_ONCE];
	struct sys_poll polls[AT_ONCE];
	size_t n = 0;
	int pid = 0;

	for (struct stream *s = first(); s; s = s->next) {
		int fd = watch_of(s);

		if (fd == NOTHING)
			continue;
		pid = pid ? pid : wean_sys_getpid();
		if (!is_of(s, pid))
			continue;
		if (fd == ASK)
			reap_stream(s);
		else
			some[n] = s, polls[n++] = (struct sys_poll){ fd, SYS_POLL_IN, 0 };
		if (n == AT_ONCE) {
			reap_those_over(some, polls, n);
			n = 0;
		}
	}
	reap_those_over(some, polls, n);
}
