/* wean_popen.h - popen(3) and system(3), by wean_spawn().
 *
 * As popen(3): NULL or -1 and errno on failure, a status as wait(2) gives it, SIGPIPE on
 * a write that nobody reads.  Other than popen(3):
 *
 *   - the command gets descriptors 0, 1 and 2 and no others;
 *   - a text of plain words is started without a shell, with the same result;
 *   - any thread may open and close streams, and a copy of the process that another
 *     thread forks meanwhile may go on with it;
 *   - the stream's buffer is of 64 KiB at least.
 *
 * wean_popen_compat.h turns a program that is there already over to them.
 */
#ifndef WEAN_POPEN_H
#define WEAN_POPEN_H

#include <stdio.h>
#include <wean.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A stream from (mode "r") or to ("w") a command.  After it in mode, in any order: "e",
   which changes nothing, since the stream is always close-on-exec; "s": always by
   /bin/sh.  EINVAL: another mode. */
FILE *wean_popen(const char *command, const char *mode);

/* The same of a program with its arguments, and never by a shell.  A program that is
   not there is told here, by errno. */
FILE *wean_popenv(char *const argv[], const char *mode);

/* Closes the stream, waits for its command, and gives the status of wait(2).  ECHILD:
   somebody else reaped it.  EINVAL: it is no stream of ours, and stays as it is. */
int wean_pclose(FILE *stream);

/* The same within timeout_ms (< 0: for ever), which bounds the writing of what the
   stream still holds, too.  0, or an errno.  ETIMEDOUT: the command was killed; *status
   tells it.  status NULL: not wanted. */
int wean_pclose_status(FILE *stream, int timeout_ms, struct wean_status *status);

/* Runs a command and waits for it: the status of wait(2).  command NULL: not 0, if there
   is a shell. */
int wean_system(const char *command);

/* The same of a program with its arguments, and never by a shell.  -1 and errno: it was
   not started. */
int wean_systemv(char *const argv[]);

#ifdef __cplusplus
}
#endif
#endif
