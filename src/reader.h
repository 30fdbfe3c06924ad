/* A reader's two halves, for those in the library that poll by themselves. */
#ifndef WEAN_READER_H
#define WEAN_READER_H

#include <wean.h>

/* One read(2): 1, something came; 0, that was the end; or a negative errno. */
int wean_reader_fill(wean_reader *);

/* What was read: 0 or EMSGSIZE as wean_read_record(), EAGAIN: no whole record is there.
   After the end, or wean_reader_end(), the rest is one. */
int wean_reader_take(wean_reader *, int delimiter, const char **data, size_t *len);
int wean_reader_take_all(wean_reader *, const char **data, size_t *len);
void wean_reader_end(wean_reader *);
void wean_reader_forget(wean_reader *); /* frees it; its descriptor may be closed */

#endif
