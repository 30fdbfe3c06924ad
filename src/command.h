/* A command text, as popen(3) and system(3) take it. */
#ifndef WEAN_COMMAND_H
#define WEAN_COMMAND_H

#include <wean.h>

/* Starts it, by /bin/sh where it needs one, or always.  0 or an errno; errno itself may
   change.  Without memory the child is left as it was. */
int wean_command_start(struct wean_child *child, const char *text,
                       const struct wean_options *options, int by_shell);

#endif
