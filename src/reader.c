#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"
#include "sys.h"
#include "widen.h"

enum {
	FIRST = 4 * READ_AT_LEAST, /* of the buffer; 64 to 256 KiB a read are the fastest */
	FEW = 4096,                /* bytes, moved rather than that fresh memory is used */
	RECORD = 1024 * 1024       /* the longest, if nothing was said */
};

struct wean_reader {
	int fd, timeout_ms;
	int over;                  /* the end was read */
	int delimiter;             /* that was searched for last */
	size_t max;                /* of a record */
	char *buf;
	size_t size;               /* one byte more is there, for a 0 */
	size_t begin, end;         /* what was read and not handed over */
	size_t searched;           /* there is no delimiter before it */
	int hides;                 /* buf[begin] is a 0 that stands for: */
	char hidden;
	struct widening wide;
	char first[];
};

/* ---- the buffer ---- */

static void
show_hidden(wean_reader *r)
{
	if (!r->hides)
		return;
	r->buf[r->begin] = r->hidden;
	r->hides = 0;
}

static void
move_to_front(wean_reader *r)
{
	size_t rest = r->end - r->begin;

	memmove(r->buf, r->buf + r->begin, rest);
	r->searched -= r->begin;
	r->begin = 0;
	r->end = rest;
}

static int
grow(wean_reader *r)
{
	size_t size = r->size > SIZE_MAX / 2 - 1 ? SIZE_MAX - 1 : 2 * r->size;
	int saved = errno;
	char *buf = realloc(r->buf == r->first ? NULL : r->buf, size + 1);

	errno = saved;
	if (!buf)
		return ENOMEM;
	if (r->buf == r->first)
		memcpy(buf, r->buf, r->end);
	r->buf = buf;
	r->size = size;
	return 0;
}

static int
make_room(wean_reader *r)
{
	if (r->begin > 0 && (r->end - r->begin <= FEW || r->size - r->end < READ_AT_LEAST))
		move_to_front(r);
	return r->size - r->end < READ_AT_LEAST ? grow(r) : 0;
}

/* The descriptor may be closed from here on, and its number another's. */
void
wean_reader_end(wean_reader *r)
{
	r->over = 1;
	wean_widen_back(&r->wide, r->fd);
}

int
wean_reader_fill(wean_reader *r)
{
	int got;

	show_hidden(r);
	if (make_room(r) != 0)
		return -ENOMEM;
	got = wean_widen_read(&r->wide, r->fd, r->buf + r->end, r->size - r->end);
	if (got == 0)
		wean_reader_end(r);
	if (got > 0)
		r->end += (size_t)got;
	return got > 0 ? 1 : got;
}

/* What no delimiter follows: the 0 behind it hides a byte of the next. */
static void
hand_over(wean_reader *r, size_t n, const char **data, size_t *len)
{
	*data = r->buf + r->begin;
	*len = n;
	r->begin += n;
	r->searched = r->begin;
	r->hides = r->begin < r->end;
	r->hidden = r->buf[r->begin];
	r->buf[r->begin] = '\0';
}

/* No delimiter is among the bytes from `begin` on that a record may have. */
static int
take_part(wean_reader *r, size_t reach, const char **data, size_t *len)
{
	r->searched = r->begin + reach;
	if (reach > r->max) {
		hand_over(r, r->max, data, len);
		return EMSGSIZE;
	}
	if (!r->over || reach == 0)
		return EAGAIN;
	hand_over(r, reach, data, len);
	return 0;
}

int
wean_reader_take(wean_reader *r, int delimiter, const char **data, size_t *len)
{
	size_t reach = r->end - r->begin;
	char *begin, *at;

	show_hidden(r);
	if (r->delimiter != delimiter)
		r->searched = r->begin;
	r->delimiter = delimiter;
	if (reach > r->max)
		reach = r->max + 1;
	begin = r->buf + r->begin;
	at = memchr(r->buf + r->searched, delimiter, reach - (r->searched - r->begin));
	if (!at)
		return take_part(r, reach, data, len);
	r->begin = r->searched = (size_t)(at - r->buf) + 1;
	*data = begin;
	*len = (size_t)(at - begin);
	*at = '\0';
	return 0;
}

int
wean_reader_take_all(wean_reader *r, const char **data, size_t *len)
{
	show_hidden(r);
	if (r->begin == r->end)
		return EAGAIN;
	hand_over(r, r->end - r->begin, data, len);
	return 0;
}

/* ---- reading ---- */

/* One read that brings something, or the end. */
static int
read_more(wean_reader *r, long long deadline)
{
	int timed = r->timeout_ms >= 0, got;

	do {
		got = timed ? wean_sys_readable(r->fd, wean_sys_left(deadline)) : 1;
		if (got == 0)
			return ETIMEDOUT;
		if (got > 0)
			got = wean_reader_fill(r);
	} while (got == -EINTR || (got == -EAGAIN && timed));
	return got < 0 ? -got : 0;
}

static int
read_until_taken(wean_reader *r, int delimiter, const char **data, size_t *len)
{
	long long deadline = wean_sys_deadline(r->timeout_ms);
	int error = EAGAIN;

	while (error == EAGAIN && !r->over) {
		if ((error = read_more(r, deadline)) != 0)
			return error;
		error = wean_reader_take(r, delimiter, data, len);
	}
	return error == EAGAIN ? 0 : error;
}

int
wean_read_record(wean_reader *r, int delimiter, const char **data, size_t *len)
{
	int error;

	if (!r || !data || !len || delimiter < 0 || delimiter > UCHAR_MAX)
		return EINVAL;
	*data = NULL;
	*len = 0;
	error = wean_reader_take(r, delimiter, data, len);
	return error == EAGAIN ? read_until_taken(r, delimiter, data, len) : error;
}

int
wean_read_line(wean_reader *r, const char **data, size_t *len)
{
	return wean_read_record(r, '\n', data, len);
}

int
wean_read_some(wean_reader *r, const char **data, size_t *len)
{
	int error = 0;

	if (!r || !data || !len)
		return EINVAL;
	*data = NULL;
	*len = 0;
	show_hidden(r);
	if (r->begin == r->end && !r->over)
		error = read_more(r, wean_sys_deadline(r->timeout_ms));
	if (!error)
		wean_reader_take_all(r, data, len);
	return error;
}

/* ---- its life ---- */

int
wean_reader_new(wean_reader **made, int fd, size_t max_record)
{
	int saved = errno, r;
	wean_reader *reader;

	if (!made)
		return EINVAL;
	*made = NULL;
	if ((r = wean_sys_close_on_exec(fd)) < 0)
		return -r;
	reader = malloc(sizeof *reader + FIRST + 1);
	errno = saved;
	if (!reader)
		return ENOMEM;
	*reader = (wean_reader){ .fd = fd, .timeout_ms = -1, .delimiter = -1,
	                         .max = max_record ? max_record : RECORD, .size = FIRST };
	reader->buf = reader->first;
	*made = reader;
	return 0;
}

int
wean_reader_timeout(wean_reader *r, int timeout_ms)
{
	if (!r)
		return EINVAL;
	r->timeout_ms = timeout_ms < 0 ? -1 : timeout_ms;
	return 0;
}

void
wean_reader_free(wean_reader *r)
{
	if (r)
		wean_widen_back(&r->wide, r->fd);
	wean_reader_forget(r);
}

void
wean_reader_forget(wean_reader *r)
{
	int saved = errno;

	if (!r)
		return;
	wean_widen_forget(&r->wide);
	if (r->buf != r->first)
		free(r->buf);
	free(r);
	errno = saved;
}
