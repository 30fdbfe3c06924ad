/* explaining.h - for the tests of sentences: from a start that fails to its sentence. */
#ifndef EXPLAINING_H
#define EXPLAINING_H

#include "spawning.h"

#define ENOENT_TEXT ": No such file or directory"
#define EACCES_TEXT ": Permission denied"
#ifdef __GLIBC__
# define EMFILE_TEXT "Too many open files"
#else /* musl */
# define EMFILE_TEXT "No file descriptors available"
#endif

/* Long enough for every sentence here but one about a long name. */
enum { TEXT = 8192 };

static inline void explains(const struct wean_child *child, char *const argv[],
                     const struct wean_options *opt, int error, const char *wanted)
{
	char text[TEXT];
	struct baseline b;

	memset(text, 'x', sizeof text);
	baseline_take(&b);
	int result = wean_explain(child, argv, opt, error, text, sizeof text);
	baseline_same(&b);
	ck_assert_int_eq(result, 0);
	ck_assert_ptr_nonnull(memchr(text, '\0', sizeof text));
	ck_assert_str_eq(text, wanted);
}

/* The start has to fail; in the sentence %s is scratch. */
static inline void says(char *const argv[], const struct wean_options *opt,
                        const char *format)
{
	struct wean_child child;
	char wanted[TEXT];
	int error = wean_spawn(&child, argv, opt);

	ck_assert_msg(error, "it started: %s", format);
	ck_assert_int_lt(snprintf(wanted, sizeof wanted, format, scratch, scratch), TEXT);
	explains(&child, argv, opt, error, wanted);
}

static inline void says_of(const char *program, const char *format)
{
	char *argv[] = { (char *)program, NULL };

	says(argv, NULL, format);
}

#endif
