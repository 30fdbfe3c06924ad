/* wean_cmd.h - a command that is put together step by step.
 *
 * wean_cmd_new(), then whatever it is to have, then wean_cmd_spawn() or wean_cmd_run(),
 * as often as wanted, and wean_cmd_free(), whether what was started is over or not.
 *
 * Everything is copied.  The first error while it is put together sticks, and every later
 * call returns it: one look at the end is enough.  What a start returns does not stick.
 * Different commands never interfere; one is for one thread at a time.
 */
#ifndef WEAN_CMD_H
#define WEAN_CMD_H

#include <wean.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wean_cmd wean_cmd;

/* file: the program, and argv[0] too.  NULL, with errno: ENOMEM, or EINVAL where file is
   NULL. */
wean_cmd *wean_cmd_new(const char *file);
void wean_cmd_free(wean_cmd *cmd); /* NULL: nothing happens */

int wean_cmd_arg(wean_cmd *cmd, const char *arg);  /* one more */
int wean_cmd_dir(wean_cmd *cmd, const char *dir);  /* NULL: as it was at first */

/* A variable of the child; value NULL: it has none of that name.  wean_cmd_clearenv():
   it has no variables but those that are set from here on. */
int wean_cmd_setenv(wean_cmd *cmd, const char *name, const char *value);
int wean_cmd_clearenv(wean_cmd *cmd);

/* One more entry of fds: WEAN_DUP, KEEP, SAME, NULL or CLOSED; or a file to open. */
int wean_cmd_fd(wean_cmd *cmd, int kind, int target, int source);
int wean_cmd_open(wean_cmd *cmd, int target, const char *path, int oflag, unsigned mode);

int wean_cmd_limit(wean_cmd *cmd, int resource, unsigned long long soft,
                   unsigned long long hard);

/* Sets an integer member of struct wean_options by its name, and the flag that it needs:
   "uid" sets WEAN_SET_UID too.  "flags" is or-ed in; "ttyfd" sets no flag.  For "flags"
   and the sets of signals the value is taken as 64 bits.  ERANGE: it does not fit. */
int wean_cmd_set(wean_cmd *cmd, const char *member, long long value);

/* As wean_spawn() and wean_run(). */
int wean_cmd_spawn(wean_cmd *cmd, struct wean_child *child);
int wean_cmd_run(wean_cmd *cmd, const struct wean_io *io, struct wean_result *result);

/* Writes a line that a shell would run, always terminated.  EMSGSIZE: it was cut. */
int wean_cmd_tostring(wean_cmd *cmd, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
