/* Pure: the candidates of a program that is searched in PATH. */
#ifndef WEAN_PATH_H
#define WEAN_PATH_H

#include <stddef.h>

#define WEAN_DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* How many candidates there are and the bytes that they take.  Empty and relative
   elements give none: what is run must not hang on the current directory. */
size_t wean_path_count(const char *path, const char *name, size_t *bytes);

/* Writes the candidates into text and points list at them, NULL at the end. */
void wean_path_list(const char *path, const char *name, char *text, char **list);

#endif
