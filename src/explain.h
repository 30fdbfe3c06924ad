/* Between explain.c and explain_exec.c: what is explained, and the text that becomes of
   it. */
#ifndef WEAN_EXPLAIN_H
#define WEAN_EXPLAIN_H

#include <stddef.h>
#include <string.h>

#include <wean.h>

struct failure {
	const struct wean_child *child;
	char *const *argv;
	const struct wean_options *opt;
	char *const *env;    /* the child's */
	const char *program; /* as it was named */
	int error;
};

struct text {
	char *at;
	size_t left; /* with the NUL */
	int cut;
};

static inline void
add_char(struct text *t, char c)
{
	if (t->left > 1) {
		*t->at++ = c;
		t->left--;
	} else {
		t->cut = 1;
	}
}

static inline void
add(struct text *t, const char *s)
{
	while (*s)
		add_char(t, *s++);
}

static inline void
add_number(struct text *t, unsigned long long n)
{
	if (n >= 10)
		add_number(t, n / 10);
	add_char(t, (char)('0' + n % 10));
}

static inline void
add_int(struct text *t, int n)
{
	if (n < 0)
		add_char(t, '-');
	add_number(t, n < 0 ? 0ULL - (unsigned long long)n : (unsigned long long)n);
}

/* A carriage return at the end of a name is the very thing that must be seen. */
static inline void
add_escaped(struct text *t, unsigned char c)
{
	const char *hex = "0123456789abcdef";

	add_char(t, '\\');
	if (c == '\r' || c == '\n' || c == '\t') {
		add_char(t, c == '\r' ? 'r' : c == '\n' ? 'n' : 't');
	} else {
		add_char(t, 'x');
		add_char(t, hex[c >> 4]);
		add_char(t, hex[c & 15]);
	}
}

static inline void
add_quoted(struct text *t, const char *s)
{
	add_char(t, '\'');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < ' ' || c == 0x7f)
			add_escaped(t, c);
		else
			add_char(t, *s);
	}
	add_char(t, '\'');
}

/* strerror_r(3) is two functions: POSIX's fills the buffer; glibc's, which is the one under
   _GNU_SOURCE, returns a text that may be elsewhere. */
static inline const char *
filled(int r, const char *buf)
{
	(void)r;
	return buf;
}

static inline const char *
returned(const char *text, const char *buf)
{
	(void)buf;
	return text;
}

static inline void
add_error(struct text *t, int error)
{
	char buf[128] = "";

	add(t, ": ");
	add(t, _Generic(strerror_r(error, buf, sizeof buf), int: filled, char *: returned)
	    (strerror_r(error, buf, sizeof buf), buf));
}

/* The sentence of a failed exec. */
void wean_explain_exec(struct text *, const struct failure *);

#endif
