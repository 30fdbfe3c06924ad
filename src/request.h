/* Pure: what is wrong with a request, told by itself alone. */
#ifndef WEAN_REQUEST_H
#define WEAN_REQUEST_H

#include <wean.h>

/* Each gives a phrase for a sentence, "uid is set without WEAN_SET_UID"; NULL: nothing is
   wrong.  The first follows no pointer. */
const char *wean_request_fault(const struct wean_options *);
const char *wean_request_entry_fault(const struct wean_fd *);      /* "uses no source" */
const char *wean_request_standard_fault(const struct wean_options *, int fd);

#endif
