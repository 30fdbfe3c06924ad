/* The open streams of wean_popen(), for all threads, without a lock that a copy of the
 * process could find taken for ever.
 *
 * A stream's place in the table is held by one thread at a time.  Places are used again,
 * and never freed: in a copy others may have been on their way through the list. */
#ifndef WEAN_STREAMS_H
#define WEAN_STREAMS_H

#include <stdio.h>
#include <wean.h>

#include "sys.h"

/* musl keeps 8 bytes of a buffer for ungetc(3). */
enum { STREAM_BUFFER = 65536 + 8 };

struct stream {
	struct stream *next;
	int state;              /* free, open, or held by some thread */
	int pid;                /* of the process that opened it */
	int watch;              /* what tells that the child is over: see streams.c */
	FILE *file;             /* NULL: it is known to be gone */
	struct wean_child child;
	int fd, writes;
	struct sys_file pipe;
	char buffer[STREAM_BUFFER];
};

/* A free place, held.  NULL: no memory. */
struct stream *wean_stream_new(void);

/* The place is that of `file`, which has just been made: what had this address before is
   gone. */
void wean_stream_name(struct stream *s, FILE *file);

/* Its child was started; the place is held no more. */
void wean_stream_open(struct stream *s);

/* The place of a stream, held, with the child to wait for.  NULL: it is none of ours,
   though it may have the address of one that was closed by fclose(3). */
struct stream *wean_stream_take(FILE *file);

/* Before the stream is closed, from when on the address may be another's. */
void wean_stream_unname(struct stream *s);

/* The child is over, or there was none: the place is free.  Or it is left to
   wean_streams_reap(). */
void wean_stream_end(struct stream *s);
void wean_stream_leave(struct stream *s);

/* Whether its child was started by this process, and not by one that this is a copy of. */
int wean_stream_is_ours(const struct stream *s);

/* Reaps the children that are over of streams that were closed by fclose(3). */
void wean_streams_reap(void);

#endif
