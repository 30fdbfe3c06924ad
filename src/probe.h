/* Throw-away children that answer a question about the machine. */
#ifndef WEAN_PROBE_H
#define WEAN_PROBE_H

#include "sys.h"

/* UNKNOWN: no such child could be made, or would have done harm; or something had run
   out. */
enum answer { ANSWER_UNKNOWN, ANSWER_YES, ANSWER_NO };

/* Whether clone(CLONE_VM) shares memory: emulators make a plain fork of it, and every
   report of a child would be lost. */
enum answer wean_probe_memory(char *stack, size_t size);

/* Whether the number of this kernel leaves CVE-2024-45025 open: then cutting a shared
   descriptor table may leave stale bits behind, and the program would get EMFILE
   early.  Distributions carry the fix without the number. */
int wean_kernel_may_cut_badly(void);

/* Asks that in truth: whether a table is cut cleanly.  `start` shares memory; where it
   is refused there is no answer. */
enum answer wean_probe_cut(int (*start)(const struct sys_clone *), char *stack,
                           size_t size);

/* No other way of starting helps where something has run out. */
int wean_is_shortage(int error);

#endif
