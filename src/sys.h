/* Every system call of the library, and all that depends on the platform.
 *
 * Unless it says otherwise a function returns what the kernel returns: >= 0, or
 * a negative errno.  libc's errno is never touched, nothing here is a cancellation
 * point, and all of it may run in a vfork child and in a signal handler. */
#ifndef WEAN_SYS_H
#define WEAN_SYS_H

#include <stddef.h>
#include <wean.h>

/* ---- descriptors ---- */

enum { SYS_HERE = -100 };                    /* AT_FDCWD */
int wean_sys_open(const char *path, int oflag, unsigned mode);
int wean_sys_open_at(int dir, const char *path, int oflag, unsigned mode);
int wean_sys_close(int fd);
int wean_sys_pipe(int ends[2]);              /* close-on-exec, above 2 */
int wean_sys_read(int fd, void *data, size_t len);
int wean_sys_write(int fd, const void *data, size_t len);
int wean_sys_rewind(int fd);
int wean_sys_dup_onto(int from, int to);     /* clears close-on-exec, from != to */
int wean_sys_dup_over(int from, int to);     /* sets it */
int wean_sys_dup_above(int fd, int lowest);  /* sets it */
int wean_sys_eventfd(void);                  /* close-on-exec; the cheapest to have */
int wean_sys_memfd(const char *name);        /* close-on-exec; Linux 3.17 */
int wean_sys_getcwd(char *text, size_t size); /* the bytes written, with the 0 */
int wean_sys_close_on_exec(int fd);          /* 1, 0, or -EBADF: not open */
int wean_sys_set_close_on_exec(int fd, int on);
int wean_sys_file_flags(int fd);              /* O_NONBLOCK and others */
int wean_sys_set_file_flags(int fd, int flags);
int wean_sys_pipe_size(int fd);
int wean_sys_set_pipe_size(int fd, int size);
int wean_sys_is_terminal(int fd);
void wean_sys_drop(int *fd);                 /* closes it, if it is one; *fd is -1 then */

/* A descriptor of ours above 2, so that the caller's 0, 1 and 2 stay as they were, closed
   included: the one that was given, or a copy of it for one that is closed then.  What is
   negative is given back. */
int wean_sys_lift(int fd);
int wean_sys_nofile(unsigned long long *soft); /* RLIMIT_NOFILE */
int wean_sys_fsize(unsigned long long *soft);

enum { SYS_UNSHARE = 2 };                    /* CLOSE_RANGE_UNSHARE */
int wean_sys_close_range(unsigned first, unsigned last, unsigned flags);
int wean_sys_unshare_files(void);

/* Says that a call is missing or forbidden here, so that another way is tried. */
int wean_sys_not_here(int error);

/* What file is behind a descriptor: two that agree are the same file. */
struct sys_file {
	unsigned long long device, inode;
	unsigned mode;
};
int wean_sys_file(int fd, struct sys_file *);
int wean_sys_file_at(int dir, const char *path, struct sys_file *);
int wean_sys_is_cgroup2(int fd);

/* A listing of the calling process's own descriptors, -ENOTSUP where what is
   there is not procfs, or another process's.  wean_sys_listed() takes the next number off a record of
   `buf`, advancing *at; -1: the buffer is used up, ask for the next one. */
int wean_sys_list_open(void);
int wean_sys_list_read(int list, void *buf, size_t size);
int wean_sys_listed(const void *buf, size_t len, size_t *at);

/* A number that is above every one of the calling process's table, at most twice the
   lowest such: the size of the table, whatever the limits say.  -ENOTSUP: not told. */
int wean_sys_table_size(void);

/* ---- processes ---- */

int wean_sys_getpid(void);
int wean_sys_gettid(void);
int wean_sys_children_elsewhere(void);
int wean_sys_getppid(void);
int wean_sys_getpgid(int pid);
int wean_sys_exec(const char *path, char *const argv[], char *const envp[]);
_Noreturn void wean_sys_exit(int value);
int wean_sys_chdir(const char *path);
int wean_sys_fchdir(int fd);
int wean_sys_kill(int pid, int sig);
int wean_sys_is_process(int pid);            /* -ESRCH: gone, or a thread that leads none */
int wean_sys_pidfd_open(int pid, int thread);
int wean_sys_pidfd_getfd(int pidfd, int fd);
int wean_sys_pidfd_kill(int pidfd, int sig);
int wean_sys_pidfd_kill_group(int pidfd, int sig); /* the group that it leads; Linux 6.9 */

/* Of the calling process. */
int wean_sys_setsid(void);
int wean_sys_setpgid(int pgid);
int wean_sys_umask(int mask);
int wean_sys_nice(int nice);                 /* absolute */
int wean_sys_limit(int resource, unsigned long long soft, unsigned long long hard);
int wean_sys_setgroups(size_t n, const unsigned *groups);
int wean_sys_setgid(unsigned gid);           /* all three; verified */
int wean_sys_setuid(unsigned uid);
int wean_sys_pdeathsig(int sig);
int wean_sys_no_new_privs(void);
int wean_sys_control_tty(int tty);
int wean_sys_foreground(int tty);            /* the group */
int wean_sys_set_foreground(int tty, int group);

/* CLONE_* of the kernel. */
#define SYS_VM            0x00000100ULL
#define SYS_FILES         0x00000400ULL
#define SYS_PIDFD         0x00001000ULL
#define SYS_VFORK         0x00004000ULL
#define SYS_ALIVE         0x00200000ULL   /* CLONE_CHILD_CLEARTID */
#define SYS_CLEAR_SIGHAND 0x100000000ULL
#define SYS_INTO_CGROUP   0x200000000ULL

/* A new process, which calls run(arg) and must not return from it.  The calls
   return its pid; *pidfd is written where SYS_PIDFD is among the flags and the
   kernel knows it. */
struct sys_clone {
	unsigned long long flags;
	int exit_signal;
	int *pidfd;
	const int *alive; /* SYS_ALIVE, clone3 only: becomes 0 once it has executed or is over */
	int cgroup;
	char *stack;
	size_t stack_size;
	int (*run)(void *);
	void *arg;
};
int wean_sys_clone3(const struct sys_clone *);
int wean_sys_fork(const struct sys_clone *);  /* no stack; SYS_PIDFD alone */

/* Waits for a child by pidfd, or by pid where pidfd < 0: 1 and *status, if wanted, 0 when
   SYS_NOHANG or a non-blocking pidfd found it running, -ECHILD when there is none such.
   SYS_UNBORN finds only a child with exit signal 0 that has not executed.
   SYS_STOPPED waits for a stop instead of the end. */
enum { SYS_NOHANG = 1, SYS_NOREAP = 2, SYS_UNBORN = 4, SYS_ANY = 8, SYS_STOPPED = 16 };
int wean_sys_wait(int pidfd, int pid, int flags, struct wean_status *status);

/* The status of a process that somebody else reaped: 1, or 0: it is not over yet, or
   < 0: not told.  Linux 6.15. */
int wean_sys_pidfd_status(int pidfd, struct wean_status *status);

/* ---- signals ---- */

/* The kernel's signal set, which has room for libc's internal signals too. */
struct sys_sigset {
	unsigned long word[128 / (8 * sizeof(unsigned long))];
};
int wean_sys_block_all(struct sys_sigset *old);
int wean_sys_set_mask(const struct sys_sigset *mask);
void wean_sys_add_signals(struct sys_sigset *set, unsigned long long signals);

int wean_sys_last_signal(void);
enum sys_disposition { SYS_DEFAULT, SYS_IGNORE, SYS_HANDLER };
int wean_sys_disposition(int sig);
int wean_sys_set_disposition(int sig, enum sys_disposition);

/* write(2), whose EPIPE raises no SIGPIPE. */
int wean_sys_write_quietly(int fd, const void *data, size_t len);

/* ---- waiting ---- */

/* poll(2), whose struct pollfd this is. */
struct sys_poll {
	int fd;
	short events, revents;
};
enum { SYS_POLL_IN = 1, SYS_POLL_OUT = 4, SYS_POLL_INVALID = 0x20 };
int wean_sys_poll(struct sys_poll *, size_t n, int timeout_ms);
int wean_sys_readable(int fd, int timeout_ms);       /* or hung up: 1; 0: time out */
int wean_sys_sleep_us(long us);
int wean_sys_await_zero(const int *word, int timeout_ms); /* 1: it is 0 */

/* ---- for the caller alone: sys_host.c ---- */

int wean_sys_clone(const struct sys_clone *);        /* libc's */
long long wean_sys_now_ms(void);
long long wean_sys_deadline(int timeout_ms);         /* < 0: never */
int wean_sys_left(long long deadline);               /* in ms, for one call; -1: for ever */
void *wean_sys_shared_page(void);                    /* NULL: no memory */
void wean_sys_drop_page(void *page);
void wean_sys_want_huge_pages(void *memory, size_t size); /* a hint: fewer page faults */
int wean_sys_secure(void);                           /* a set-uid program runs */
void wean_sys_kernel(int version[3]);                /* zeros: not a Linux one */
char *const *wean_sys_environ(void);
long long wean_sys_pipe_budget(void);                /* bytes in pipes, of all of a user's */

#endif
