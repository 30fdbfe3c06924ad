/* The throw-away children of probe.c: each a function for struct sys_clone, which exits. */
#ifndef WEAN_PROBE_CHILD_H
#define WEAN_PROBE_CHILD_H

#include "sys.h"

/* Writes 1 to the int. */
int wean_probe_write_word(void *word);

struct cut {
	int (*start)(const struct sys_clone *);
	char *stack; /* of the inner child */
	size_t size;
	int lowest;
};

/* Fills a table and starts a child which shares it, cuts it, and then tells the lowest
   number from 64 on that is free, or a negative errno. */
int wean_probe_fill_and_cut(void *cut);

#endif
