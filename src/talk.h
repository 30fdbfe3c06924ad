/* Between communicate.c and run.c. */
#ifndef WEAN_TALK_H
#define WEAN_TALK_H

#include <wean.h>

/* 0, or EINVAL. */
int wean_io_check(const struct wean_io *);

/* Feeds and reads, without waiting for the child itself: 0 at the end of all, or after the
   silence that follows the child's end, or with `until_over` at that end already;
   ETIMEDOUT, EINTR, a callback's errno, or an error. */
int wean_talk(struct wean_child *, const struct wean_io *, struct wean_result *,
              long long deadline, int until_over);

/* Whether it was a callback that ended it, whose errno may be any. */
int wean_talk_refused(const struct wean_result *);

/* Closes the ends; what a line lacked is handed over now. */
int wean_talk_end(struct wean_child *, const struct wean_io *, struct wean_result *);

#endif
