/* One output of a child: kept, or handed to a callback. */
#ifndef WEAN_OUTPUT_H
#define WEAN_OUTPUT_H

#include <wean.h>

#include "widen.h"

/* What outlives a call that is to be gone on with. */
struct intake {
	wean_reader *reader;   /* of what goes to a callback */
	size_t size;           /* of what is kept */
	int refused;           /* the callback failed at the last piece */
	struct widening wide;
};

struct output {
	int *fd;
	struct intake *intake;
	char **text;
	size_t *len, max;
	unsigned *flags, truncated;
	int (*hand)(void *, const char *, size_t); /* NULL: it is kept */
	void *context;
	int lines;
};

/* 0, ENOMEM, an error of a read, or the callback's errno. */
int wean_output_begin(struct output *);
int wean_output_serve(struct output *);        /* one read */
int wean_output_finish(struct output *);       /* once it is closed */

void wean_output_close(struct output *);       /* also one that is */
void wean_output_forget(struct intake *);

#endif
