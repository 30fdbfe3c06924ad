#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "output.h"
#include "reader.h"
#include "sys.h"
#include "utf8.h"

void
wean_output_close(struct output *o)
{
	if (*o->fd < 0)
		return;
	if (o->intake->reader)
		wean_reader_end(o->intake->reader);
	wean_widen_back(&o->intake->wide, *o->fd);
	wean_sys_drop(o->fd);
}

/* ---- that is kept ---- */

/* From here on glibc gives a piece pages of its own.  It then takes most of the time to
   collect output that the kernel makes one page after the other. */
enum { HUGE = 32 * 1024 * 1024 };

static int
resize(struct output *o, size_t size)
{
	int saved = errno;
	char *text = realloc(*o->text, size);

	errno = saved;
	if (!text)
		return ENOMEM;
	if (size > HUGE && size > o->intake->size) /* not when it is cut to its end */
		wean_sys_want_huge_pages(text, size);
	*o->text = text;
	o->intake->size = size;
	return 0;
}

/* For a read and a 0 behind it.  With a cap it never grows beyond that and a read. */
static int
make_space(struct output *o)
{
	const size_t least = READ_AT_LEAST + 1;
	size_t size = o->intake->size, most;

	if (size - *o->len >= least)
		return 0;
	if (*o->len > SIZE_MAX / 2 - least)
		return ENOMEM;
	size = 2 * *o->len + least;
	most = o->max && o->max < SIZE_MAX - least ? o->max + least : SIZE_MAX;
	return resize(o, size < most ? size : most);
}

/* What lies beyond the cap is read to the same place, and forgotten. */
static void
keep(struct output *o, size_t got)
{
	if (*o->flags & o->truncated)
		got = 0;
	*o->len += got;
	if (o->max && *o->len > o->max) {
		*o->len = wean_utf8_whole(*o->text, o->max);
		*o->flags |= o->truncated;
	}
	(*o->text)[*o->len] = '\0';
}

static int
read_to_keep(struct output *o)
{
	int got, error = make_space(o);

	if (error)
		return error;
	got = wean_widen_read(&o->intake->wide, *o->fd, *o->text + *o->len,
	                      o->intake->size - *o->len - 1);
	if (got == -EAGAIN || got == -EINTR)
		return 0;
	if (got < 0)
		return -got;
	if (got == 0)
		wean_output_close(o);
	keep(o, (size_t)got);
	return 0;
}

/* ---- that goes to a callback ---- */

/* As far as it is there: also what a callback that ended the last call has left. */
static int
hand_on(struct output *o)
{
	const char *data;
	size_t len;
	int error = 0;

	while (o->hand && o->intake->reader && !error) {
		int none = o->lines ? wean_reader_take(o->intake->reader, '\n', &data, &len)
		                    : wean_reader_take_all(o->intake->reader, &data, &len);

		if (none == EAGAIN)
			return 0;
		error = o->hand(o->context, data, len);
		o->intake->refused = error != 0;
	}
	return error;
}

static int
read_to_hand_over(struct output *o)
{
	int got = wean_reader_fill(o->intake->reader);

	if (got == -EAGAIN || got == -EINTR)
		return 0;
	if (got < 0)
		return -got;
	if (got == 0)
		wean_output_close(o);
	return hand_on(o);
}

/* ---- either ---- */

int
wean_output_serve(struct output *o)
{
	return o->hand ? read_to_hand_over(o) : read_to_keep(o);
}

/* An output that is kept is never NULL, empty or not. */
int
wean_output_begin(struct output *o)
{
	int is_open = *o->fd >= 0, error = 0;

	if (is_open && o->hand && !o->intake->reader)
		error = wean_reader_new(&o->intake->reader, *o->fd, 0);
	else if (is_open && !o->hand && !*o->text && (error = make_space(o)) == 0)
		keep(o, 0);
	return error ? error : hand_on(o);
}

int
wean_output_finish(struct output *o)
{
	if (!o->hand && *o->text)
		resize(o, *o->len + 1);
	return hand_on(o);
}

void
wean_output_forget(struct intake *s)
{
	wean_reader_forget(s->reader);
	wean_widen_forget(&s->wide);
}
