/* times.h - how times are taken, and what stands for many of them. */
#ifndef TIMES_H
#define TIMES_H

#include <stddef.h>

long long now(void); /* ns */

/* Sorts, and gives the value that so many tenths of the others are below; 0 of none. */
double tenths(size_t below, double *values, size_t n);

#endif
