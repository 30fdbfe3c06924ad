#ifndef WEAN_CLONE3_H
#define WEAN_CLONE3_H

#include <stddef.h>

/* clone3(2), whose child goes on at the other end of its new stack and calls
   run(arg) there.  Returns the pid, or a negative errno; -ENOSYS on a machine
   for which this file has no assembly. */
long wean_clone3(void *clone_args, size_t size, int (*run)(void *), void *arg);

#endif
