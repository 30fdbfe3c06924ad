/* talking.h - for the tests of what is fed to children and read from them. */
#ifndef TALKING_H
#define TALKING_H

#include "descriptors.h"
#include "waiting.h"

/* The pattern that `kid write` writes. */
static inline char *pattern(size_t len)
{
	char *data = for_good(malloc(len + 1));

	for (size_t i = 0; i < len; i++)
		data[i] = (char)kid_pattern(i);
	data[len] = '\0';
	return data;
}

static inline void assert_bytes(const char *got, size_t got_len, const char *wanted,
                                size_t len)
{
	ck_assert_uint_eq(got_len, len);
	ck_assert_ptr_nonnull(got);
	for (size_t i = 0; i < len; i++)
		if (got[i] != wanted[i])
			ck_abort_msg("byte %zu of %zu differs", i, len);
	ck_assert_int_eq(got[len], 0);
}

static inline void assert_pattern(const char *got, size_t got_len, size_t len)
{
	char *wanted = pattern(len);

	assert_bytes(got, got_len, wanted, len);
}

static inline void assert_text(const char *got, size_t len, const char *wanted)
{
	assert_bytes(got, len, wanted, strlen(wanted));
}

/* ---- what a callback sees ---- */

struct heard {
	char *data;            /* all pieces in a row, a line with its newline again */
	size_t len, room, pieces, longest;
	int lines;             /* pieces are lines */
	size_t fail_each;      /* every so manieth piece ends the call; 0: none */
	int error;             /* with this */
};

static inline int hear(void *context, const char *data, size_t len)
{
	struct heard *h = context;

	ck_assert_int_eq(data[len], 0);
	while (h->room - h->len < len + 2)
		ck_assert_ptr_nonnull(h->data = realloc(h->data, h->room = 2 * h->room + len + 2));
	memcpy(h->data + h->len, data, len);
	h->len += len;
	if (h->lines)
		h->data[h->len++] = '\n';
	h->data[h->len] = '\0';
	h->pieces++;
	h->longest = len > h->longest ? len : h->longest;
	return h->fail_each && h->pieces % h->fail_each == 0 ? h->error : 0;
}

/* "0\n1\n2\n..." as `kid lines` writes it. */
static inline char *numbered(int n, size_t *len)
{
	char *text = for_good(malloc((size_t)n * 11 + 1));

	*len = 0;
	for (int i = 0; i < n; i++)
		*len += (size_t)sprintf(text + *len, "%d\n", i);
	text[*len] = '\0';
	return text;
}

static inline int is_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	ck_assert_int_ge(flags, 0);
	return (flags & O_NONBLOCK) != 0;
}

/* Longer than a test may last: whoever waits it out fails. */
enum { LONG = 600000 };

#endif
