/* Pure: environments, as lists of "NAME=VALUE". */
#ifndef WEAN_ENV_H
#define WEAN_ENV_H

#include <stddef.h>

/* The value of a variable, NULL where it is not set. */
const char *wean_env_value(char *const *env, const char *name);

size_t wean_env_count(char *const *list);

/* The first edit that names no variable, NULL: there is none. */
const char *wean_env_nameless(char *const *edits);

/* Writes env with the edits over it ("NAME=VALUE" sets, "NAME" removes, the last one
   counts) into merged, which has room for the entries of both and NULL.  An edited
   variable stands where it first stood, a new one at the end. */
void wean_env_merge(char **merged, char *const *env, char *const *edits);

#endif
