/* reading.h - the benchmark's read part: what it asks of a way to read. */
#ifndef READING_H
#define READING_H

#include <stddef.h>

/* What a program writes: argv, from nothing but its standard output. */
struct text {
	char *const *argv;
	const char *command; /* the same for a shell */
	size_t bytes, lines;
};

/* Starts the program, reads it all, reaps it.  0 or an errno; EPROTO: what came was not
   the text.  *ns: the time that it took, where it is not what the caller sees. */
typedef int read_fn(const struct text *, long long *ns);

read_fn pipe_wean, pipe_shell; /* through four more of `cat`, to nowhere */
read_fn read_lines_wean, read_lines_getline, read_bare, read_chunks_wean,
	read_chunks_popen, collect_wean, collect_python;
extern read_fn *const collect_glib; /* NULL: built without it */

#endif
