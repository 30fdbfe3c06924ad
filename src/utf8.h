#ifndef WEAN_UTF8_H
#define WEAN_UTF8_H

#include <stddef.h>

/* The length of a text without the character that its end cuts through, if it does.  What
   is no UTF-8 is left as it is. */
size_t wean_utf8_whole(const char *text, size_t len);

#endif
