/* wean.h - start child processes that inherit only what they are given.
 *
 * A child's life:
 *
 *   1. Zero a struct wean_options and set what should differ from the default;
 *      all-zero, or NULL, is the safe default.
 *   2. wean_spawn() starts the child and fills a struct wean_child.  When it
 *      returns 0 the program has been executed; otherwise it returns an errno,
 *      child.stage names the step that failed, wean_explain() makes a sentence
 *      of it, and neither a child nor a descriptor is left behind.
 *   3. Use child.in, child.out and child.err where pipes were asked for.
 *   4. wean_wait() waits, for ever or for a time, and gives the status.
 *   5. wean_release() closes what the struct still holds.
 *
 * wean_run() does it all: it starts the child, feeds it, collects what it writes,
 * waits for it, and ends it at a time limit.
 *
 * Rules that hold for every function:
 *
 *   - An int function returns 0 or a positive errno, and leaves errno itself
 *     as it was.
 *   - Nothing is printed, no signal handler is installed, no other child is
 *     waited for, and no process-wide state is changed.
 *   - EINVAL answers an unknown flag, a reserved member that is not zero, and
 *     a member that is not zero although the flag it needs is missing: a uid
 *     without WEAN_SET_UID never means "stay root".
 *   - Different children never interfere.  On one child, wean_wait() may be
 *     called by several threads, each of which gets the status, and wean_kill()
 *     and wean_kill_group() by any; everything else one call at a time,
 *     wean_release() last.
 *   - No call is a cancellation point.  Waiting goes on after EINTR unless
 *     WEAN_EINTR was given.
 *   - Times are milliseconds of the monotonic clock.
 *
 * This header needs <stddef.h> alone.  Its structs have no padding on any ABI,
 * so that a foreign-function interface can lay them out by hand.
 */
#ifndef WEAN_H
#define WEAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- descriptors ------------------------------------------------------- */

/* What becomes of a descriptor of the child. */
enum {
	WEAN_INHERIT = 1, /* in, out, err: the caller's 0, 1 or 2; /dev/null when
	                     that one is closed or close-on-exec */
	WEAN_NULL,        /* /dev/null, open for reading and writing */
	WEAN_PIPE,        /* in, out, err: a pipe; the caller's end is in the child
	                     struct, close-on-exec and never 0, 1 or 2 */
	WEAN_MERGE,       /* err: wherever out goes */
	WEAN_CLOSED,      /* not open, also when it is 0, 1 or 2 */
	WEAN_DUP,         /* fds: the caller's `source` */
	WEAN_KEEP,        /* fds: the caller's descriptor of the same number */
	WEAN_OPEN,        /* fds: `path`, opened in the child */
	WEAN_SAME         /* fds: what the child's `source` ends up as, as 2>&1 */
};

/* One descriptor of the child.  A list of these is a parallel assignment: their
   order means nothing, {1 <- 2, 2 <- 1} swaps, and a target may occur once.
   Members that a kind does not use must be 0. */
struct wean_fd {
	int kind;       /* DUP, KEEP, OPEN, SAME, NULL or CLOSED */
	int target;     /* the number in the child */
	int source;     /* DUP: the caller's number; one that is not open gives EBADF
	                   before anything is started.  KEEP: 0 or target.
	                   SAME: a number of the child; a cycle, or one that is left
	                   closed, gives EINVAL */
	int oflag;      /* OPEN: flags of open(2); O_NOCTTY is added, O_CLOEXEC has
	                   no effect */
	unsigned mode;  /* OPEN: for O_CREAT; 0 means 0666; under the umask */
	int reserved;
	const char *path; /* OPEN: relative to the caller's directory, opened with
	                   the caller's ids, in the order of the list.  A FIFO that
	                   waits for its peer stops the calling thread */
};

/* ---- options ----------------------------------------------------------- */

struct wean_limit {
	int resource;   /* RLIMIT_* */
	int reserved;
	unsigned long long soft, hard; /* ~0ULL: unlimited */
};

/* Signal n in one of the sets below. */
#define WEAN_SIG(n) (1ULL << ((n) - 1))

struct wean_options {
	unsigned long long flags;       /* WEAN_NEW_GROUP ... below */

	/* Sets of WEAN_SIG(n).  Beyond the base (nothing blocked; SIGPIPE, SIGXFSZ
	   and SIGCHLD to default; what else was ignored stays ignored): */
	unsigned long long sigmask;     /* blocked */
	unsigned long long sigdefault;  /* to default */
	unsigned long long sigignore;   /* ignored */

	int in, out, err;  /* INHERIT (also 0), NULL, PIPE, CLOSED; err: MERGE.  An
	                      entry of fds for 0, 1 or 2 takes its place; both at
	                      once give EINVAL */
	int pgid;          /* JOIN_GROUP: the group, > 0 */
	int umask;         /* SET_UMASK */
	int nice;          /* SET_NICE: absolute, -20 to 19 */
	int pdeathsig;     /* sent when the calling *thread* ends; 0: none */
	int dirfd;         /* DIR_FD: an open directory of the caller's */
	int ttyfd;         /* CONTROL_TTY, FOREGROUND: the caller's terminal */
	int cgroupfd;      /* IN_CGROUP: a directory of cgroup 2 */
	                   /* the last three are not passed on to the child */
	unsigned uid, gid; /* SET_UID, SET_GID: real, effective and saved */
	int reserved_int[8];

	const char *file;  /* the program; NULL: argv[0].  Without a slash it is
	                      searched in PATH; a relative path counts from `dir` */
	char *const *candidates; /* instead of `file`: NULL-terminated paths, tried
	                      in turn, past the errors that a search goes past */
	char *const *env;  /* NULL: the caller's `environ` */
	char *const *env_edit; /* over it: "NAME=VALUE" sets, "NAME" removes */
	const char *dir;   /* the child's directory; NULL: dirfd, or the caller's;
	                      a relative one counts from dirfd, or the caller's */
	const struct wean_fd *fds;
	size_t nfds;
	const unsigned *groups; /* SET_GROUPS: ngroups supplementary groups; */
	size_t ngroups;         /* 0 means none at all */
	const struct wean_limit *limits;
	size_t nlimits;
	const void *reserved_ptr[7];
};

enum { /* wean_options.flags */
	WEAN_NEW_GROUP        = 1,
	WEAN_JOIN_GROUP       = 2,
	WEAN_NEW_SESSION      = 4,        /* leads a group too */
	WEAN_CONTROL_TTY      = 8,        /* with NEW_SESSION only */
	WEAN_FOREGROUND       = 0x10,     /* the child's group, whichever it is */
	WEAN_SET_UMASK        = 0x20,
	WEAN_SET_NICE         = 0x40,
	WEAN_SET_UID          = 0x80,
	WEAN_SET_GID          = 0x100,
	WEAN_SET_GROUPS       = 0x200,
	WEAN_NO_NEW_PRIVS     = 0x400,
	WEAN_IN_CGROUP        = 0x800,
	WEAN_DIR_FD           = 0x1000,
	WEAN_NONBLOCK         = 0x2000,   /* O_NONBLOCK on the caller's pipe ends */
	WEAN_CHILD_PATH       = 0x4000,   /* search the child's PATH, not ours */
	WEAN_SHELL_SCRIPT     = 0x8000,   /* ENOEXEC: run it with /bin/sh */
	WEAN_KEEP_SIGMASK     = 0x10000,  /* sigmask adds to the caller's */
	WEAN_KEEP_IGNORED     = 0x20000,  /* sigdefault without the base */
	WEAN_KEEP_SIGNALS     = 0x30000,  /* both */
	WEAN_RESET_SIGNALS    = 0x40000,  /* all signals to default */
	WEAN_INHERIT_ALL      = 0x80000,  /* everything without close-on-exec */
	WEAN_STDIO_AS_IS      = 0x100000, /* a closed or close-on-exec 0, 1 or 2 stays
	                                     out instead of becoming /dev/null */
	WEAN_NO_SHARED_MEMORY = 0x200000, /* start from a copy of our memory */
	WEAN_NEED_PIDFD       = 0x400000, /* fail rather than start without one */
	WEAN_EINTR            = 0x1000000 /* wait, wait_any, wait_all (if any child has it),
	                                     stop and communicate return EINTR after a
	                                     handler ran: call again.  wean_run stops the
	                                     child and returns it */
};

/* ---- the child --------------------------------------------------------- */

/* The steps of a start.  In the child the order is: cgroup (where the launch could
   not do it); session, group, controlling terminal; descriptors placed; all others
   closed; files opened; SAME; umask, limits, nice; groups, gid, uid; directory;
   pdeathsig; no-new-privs; dispositions; foreground group (given back if a later
   step fails); mask; exec. */
enum {
	WEAN_STAGE_NONE,      /* started */
	WEAN_STAGE_OPTIONS,   /* the request itself */
	WEAN_STAGE_MEMORY,
	WEAN_STAGE_PIPE,
	WEAN_STAGE_LAUNCH,    /* making the process; up to here there was no child */
	WEAN_STAGE_CLOSE,
	WEAN_STAGE_FD,        /* placing a descriptor */
	WEAN_STAGE_OPEN,
	WEAN_STAGE_SESSION,
	WEAN_STAGE_GROUP,
	WEAN_STAGE_TTY,
	WEAN_STAGE_CGROUP,
	WEAN_STAGE_UMASK,
	WEAN_STAGE_LIMIT,
	WEAN_STAGE_NICE,
	WEAN_STAGE_IDS,
	WEAN_STAGE_DIR,
	WEAN_STAGE_PDEATHSIG,
	WEAN_STAGE_PRIVS,
	WEAN_STAGE_SIGNALS,
	WEAN_STAGE_EXEC
};

/* A child, or none when all-zero.  It may be moved but not copied.  To close or
   take over one of the descriptors, do so and set the member to -1. */
struct wean_child {
	int pid;       /* stays readable after the end; 0: not started */
	int pidfd;     /* poll(2) finds it readable once the child is over; -1: none */
	int in, out, err; /* the caller's ends of WEAN_PIPE, else -1 */
	int stage;     /* the step that failed, WEAN_STAGE_*; 0: started */
	int index;     /* of the entry it failed on: fds (nfds + 0, 1, 2: in, out, err),
	                  limits or candidates; -1: none */
	int method;    /* how it was started, for wean_method_name() */
	int opaque[16];
};

enum {
	WEAN_EXITED = 1,
	WEAN_SIGNALED,
	WEAN_UNKNOWN   /* somebody else reaped it and the kernel does not tell */
};

struct wean_status {
	int kind;      /* WEAN_EXITED, WEAN_SIGNALED, WEAN_UNKNOWN; 0: still runs */
	int value;     /* the exit value or the signal's number */
	int core;      /* 1: a core was dumped */
	int code;      /* as the shell's $?: value, 128 + signal, 255 when unknown; 0
	                  is success and nothing else is, but where kind is 0 */
	long long user_us, system_us; /* processor time in microseconds */
	long long maxrss_kb;          /* largest resident size in KiB */
	long long reserved[3];
};

/* Starts argv[0] or what options say with the arguments argv, and writes *child
   whatever it returns.  options NULL: all-zero.  Needs at most 16 KiB of stack.
   Blocks until the program is executed: a dead file server holds it. */
int wean_spawn(struct wean_child *child, char *const argv[],
               const struct wean_options *options);

/* Waits for the end of the child.  timeout_ms < 0: for ever; 0: only looks.
   ETIMEDOUT: it still runs.  0: it is over, and every later call gives the same
   status again.  status NULL: not wanted.  ESRCH: the struct holds no child. */
int wean_wait(struct wean_child *child, int timeout_ms,
              struct wean_status *status);

/* Waits until one of n children is over that nobody waited for yet, and gives its
   place: wean_wait() it next.  Structs that hold no child, or one that was waited
   for, are skipped; ESRCH: there is no other.  ETIMEDOUT. */
int wean_wait_any(struct wean_child children[], size_t n, int timeout_ms,
                  size_t *which);

/* Waits until all n are over.  ETIMEDOUT: not all are; the statuses of those that
   are have been filled, the others have kind 0, as have those of structs that hold
   no child.  statuses NULL: not wanted. */
int wean_wait_all(struct wean_child children[], size_t n, int timeout_ms,
                  struct wean_status statuses[]);

/* Sends a signal; sig 0 only asks.  ESRCH once the child was waited for: with a
   pidfd (Linux 5.2) it never reaches another process.  With one it may be
   called in a signal handler. */
int wean_kill(const struct wean_child *child, int sig);

/* The same for the group that the child was started to lead (WEAN_NEW_GROUP,
   WEAN_NEW_SESSION); EINVAL: it leads none.  Once the child was waited for, the
   group's number may be another's: only where the kernel can do without it
   (Linux 6.9), else ESRCH. */
int wean_kill_group(const struct wean_child *child, int sig);

/* Ends the child and the group that it leads: SIGTERM and SIGCONT, up to grace_ms
   for it and, since Linux 6.9, for what it leaves behind in its group, SIGKILL to
   what is left; then reaps it.  grace_ms 0: SIGKILL at once.  ETIMEDOUT: it is not
   over one second after SIGKILL. */
int wean_stop(struct wean_child *child, int grace_ms, struct wean_status *status);

/* Makes a struct for a process that the host started by itself; ESRCH: it is gone.
   flags: WEAN_NEW_GROUP (it leads one), WEAN_NEED_PIDFD, WEAN_EINTR.  A process that
   is not a child of ours ends with WEAN_UNKNOWN.  pid 0: no process, only the ends
   that the host sets in the struct then. */
int wean_adopt(struct wean_child *child, int pid, unsigned long long flags);

/* Closes in, out, err and the pidfd.  Never kills, waits or reaps: from here on
   the pid is the host's.  Any state, any number of times. */
void wean_release(struct wean_child *child);

/* Writes a sentence about a failed wean_spawn(), which returned `error`, into
   text, always terminated; call it with the same argv and options.
   EMSGSIZE: it was cut to size. */
int wean_explain(const struct wean_child *child, char *const argv[],
                 const struct wean_options *options, int error, char *text,
                 size_t size);

/* ---- output ------------------------------------------------------------ */

struct wean_io {
	const void *input;     /* what the child reads from its stdin */
	size_t input_len;
	size_t out_max, err_max; /* bytes that are kept; 0: all.  The rest is read and
	                          dropped */
	int (*on_out)(void *context, const char *data, size_t len); /* takes what comes
	                          instead of its being kept.  0: go on; an errno ends the
	                          call, and that piece counts as delivered */
	int (*on_err)(void *context, const char *data, size_t len);
	void *context;
	int timeout_ms;        /* of the whole call; <= 0: none */
	int grace_ms;          /* wean_run at the limit: as of wean_stop() */
	int linger_ms;         /* the child is over and somebody else holds its pipes: give
	                          up after this silence; 0: 100; < 0: wait for the end */
	unsigned flags;        /* WEAN_LINES */
	int reserved_int[4];
	const void *reserved_ptr[4];
};

enum { WEAN_LINES = 0x2000000 }; /* callbacks get whole lines, without the newline and
                          followed by a 0, parts of 1 MiB of longer ones */

enum { /* wean_result.flags */
	WEAN_TIMED_OUT     = 1,
	WEAN_OUT_TRUNCATED = 2,
	WEAN_ERR_TRUNCATED = 4,
	WEAN_STILL_OPEN    = 8,  /* the child is over, somebody else holds its pipes */
	WEAN_INPUT_UNREAD  = 16  /* not all of the input could be written */
};

struct wean_result {
	struct wean_child child;   /* wean_run's, filled before the first callback: other
	                              threads may wean_kill() it.  Its ends are closed */
	struct wean_status status;
	char *out;             /* what was kept, malloc'ed, out[out_len] is 0.  NULL: not
	                          kept.  To take it over: do, and set it to NULL.  Where
	                          out_max cut a UTF-8 character, that is left out whole */
	size_t out_len;
	char *err;
	size_t err_len;
	size_t in_written;     /* bytes of the input */
	size_t opaque[9];
	unsigned flags;
	int reserved[3];
};

/* Starts the child, feeds it, reads its output, waits.  Here in, out and err that are
   0 mean NULL (PIPE where there is input), PIPE and PIPE.  Writes *result whatever it
   returns; free it.  result->child.stage is not 0: it did not start.  ETIMEDOUT: the
   child was stopped, what it wrote is there.  Any other error: it was stopped too. */
int wean_run(char *const argv[], const struct wean_options *options,
             const struct wean_io *io, struct wean_result *result);

/* The same for a child with pipes that runs already.  *result is all-zero before the
   first call.  Closes the ends, and waits.  After ETIMEDOUT, EINTR or a callback's errno
   the child and its ends are as they were, what came so far can be read in *result, and
   the same call goes on.  Never sends a signal. */
int wean_communicate(struct wean_child *child, const struct wean_io *io,
                     struct wean_result *result);

/* Also one that is all-zero, also twice.  Releases result->child. */
void wean_result_free(struct wean_result *result);

/* A reader over any descriptor, which stays the caller's: pipe, file, terminal, socket,
   blocking or not.  What it gives points into its own buffer, ends with a 0, and is good
   until the next call; NULL is the end.  Free it before the descriptor is closed. */
typedef struct wean_reader wean_reader;

/* max_record: the longest record, in bytes; 0: 1 MiB. */
int wean_reader_new(wean_reader **reader, int fd, size_t max_record);

/* Of each read to come: then it gives ETIMEDOUT, and nothing is lost.  < 0: none. */
int wean_reader_timeout(wean_reader *reader, int timeout_ms);

/* A line without its newline, or a record without its delimiter (0 to 255).  EMSGSIZE: a
   part of a longer one.  EAGAIN: the descriptor is non-blocking, and there is no whole
   record yet. */
int wean_read_line(wean_reader *reader, const char **data, size_t *len);
int wean_read_record(wean_reader *reader, int delimiter, const char **data, size_t *len);

/* Whatever is there, by one read(2) at most. */
int wean_read_some(wean_reader *reader, const char **data, size_t *len);

void wean_reader_free(wean_reader *reader);

/* ---- pipelines --------------------------------------------------------- */

/* Starts n children in their order, the output of each being the input of the next one:
   all or none.  argvs has n entries, as has options; NULL: defaults.  Writes all of
   children whatever it returns; the one that has a stage could not be started, and those
   before it are killed and reaped then.

   in of the first, out of the last and every err are as the options say, err MERGE being
   the pipe; what lies between may be 0 or WEAN_PIPE.  WEAN_NEW_GROUP in the first one's
   options: all are in one group, the first one's.  To feed and to read the whole, move
   children[0].in into the last child and wean_communicate() it. */
int wean_pipeline(struct wean_child children[], char **const argvs[],
                  const struct wean_options options[], size_t n);

/* ---- and more ---------------------------------------------------------- */

/* Closes every descriptor from low on, or all of them but the n in keep, which come
   in any order and may be closed, or named twice.  For a host that keeps its own
   fork: async-signal-safe.  EINVAL: low is negative.  Another errno: nothing here
   lists the descriptors, and some may still be open. */
int wean_closefrom(int low);
int wean_close_except(int low, const int *keep, size_t n);

/* "fd" for WEAN_STAGE_FD and so on; "unknown" for any other number. */
const char *wean_stage_name(int stage);

/* "clone3+unshare": how it was launched and how descriptors were closed; the
   second part is missing where nothing was (WEAN_INHERIT_ALL). */
const char *wean_method_name(int method);

/* For foreign-function interfaces: "wean_fd" gives the size of the struct,
   "wean_fd.path" the offset of a member, any other text (size_t)-1. */
size_t wean_layout(const char *name);

/* The library's version at run time, "1.0.0". */
const char *wean_version(void);

#ifdef __cplusplus
}
#endif
#endif
