/* faults.h - every call that an operation makes fails once, or from one on, with every
 * errno that it can give: the n-th, n rising until none is left.
 *
 * Each try is a process of its own, since what was refused is remembered.  WEAN_SCALE=2
 * gives every errno, less of it one a call, in turn.
 *
 * A fault was taken well when the result is what it is without a fault, or an errno that
 * some failed call gave and a stage that this call belongs to; and when nothing is left
 * behind.
 */
#ifndef FAULTS_H
#define FAULTS_H

#define GATE_HEAP
#include "gate.h"

#include "common.h"

#include <stdarg.h>

#include "../src/plan.h"

/* ---- what can fail, and how ---------------------------------------------- */

#define AT(stage) (1u << WEAN_STAGE_##stage)

/* One row is told from another of the same call by an argument. */
static const struct fault_row {
	const char *name;
	long nr;
	int arg;               /* -1: any */
	enum { IS, HAS, ISNT } how;
	unsigned long value;
	int errors[12];
	unsigned stages;       /* 0: never the reason of a failed start */
	int turned[3];         /* errnos that it may become on the way */
} fault_rows[] = {
	/* descriptors */
	{ "pipe2", SYS_pipe2, -1, IS, 0, { EMFILE, ENFILE, ENOMEM }, AT(PIPE), { 0 } },
	{ "openat", SYS_openat, -1, IS, 0, { EMFILE, ENFILE, ENOMEM, EACCES, ENOENT },
	  AT(OPEN) | AT(CLOSE) | AT(FD) | AT(CGROUP), { ENOTSUP, EMFILE } },
	{ "close", SYS_close, -1, IS, 0, { EINTR, EIO }, 0, { 0 } },
	{ "read", SYS_read, -1, IS, 0, { EINTR, EIO, EISDIR }, 0, { 0 } },
	{ "write", SYS_write, -1, IS, 0, { EACCES, EBUSY, ENODEV, EPIPE, ENOSPC },
	  AT(CGROUP), { 0 } },
	{ "dup3", SYS_dup3, -1, IS, 0, { EBADF, EBUSY, EMFILE, ENOMEM },
	  AT(FD) | AT(OPEN), { 0 } },
	{ "F_DUPFD_CLOEXEC", SYS_fcntl_, 1, IS, F_DUPFD_CLOEXEC, { EMFILE, EINVAL, ENOMEM },
	  AT(PIPE) | AT(FD) | AT(LAUNCH), { EMFILE } },
	{ "F_GETFD", SYS_fcntl_, 1, IS, F_GETFD, { EBADF },
	  AT(OPTIONS) | AT(FD) | AT(DIR) | AT(TTY) | AT(CGROUP), { EINVAL } },
	{ "F_GETFL", SYS_fcntl_, 1, IS, F_GETFL, { EPERM }, 0, { 0 } },
	{ "F_SETFL", SYS_fcntl_, 1, IS, F_SETFL, { EPERM }, AT(PIPE), { 0 } },
	{ "F_GETPIPE_SZ", SYS_fcntl_, 1, IS, F_GETPIPE_SZ, { EBADF, EINVAL }, 0, { 0 } },
	{ "F_SETPIPE_SZ", SYS_fcntl_, 1, IS, F_SETPIPE_SZ, { EPERM, EBUSY, ENOMEM }, 0, { 0 } },
	{ "F_SETFD", SYS_fcntl_, 1, IS, F_SETFD, { EBADF }, AT(FD) | AT(TTY), { 0 } },
	{ "close_range unshare", SYS_close_range, 2, IS, SYS_UNSHARE,
	  { ENOSYS, EPERM, EACCES, EINVAL, ENOMEM, EMFILE }, AT(CLOSE), { 0 } },
	{ "close_range", SYS_close_range, 2, IS, 0, { ENOSYS, EPERM, EACCES, EINVAL },
	  AT(CLOSE), { 0 } },
	{ "unshare", SYS_unshare, -1, IS, 0, { ENOSYS, EPERM, EINVAL, ENOMEM, EMFILE },
	  AT(CLOSE), { 0 } },
	{ "statx", SYS_statx, -1, IS, 0, { ENOSYS, EPERM, EACCES, ENOENT, ENOMEM }, 0, { 0 } },
#ifdef SYS_fstatfs64
	{ "fstatfs", SYS_fstatfs64, -1, IS, 0, { ENOSYS, EPERM, EIO },
	  AT(CLOSE) | AT(CGROUP), { ENOTSUP, EBADF } },
#else
	{ "fstatfs", SYS_fstatfs, -1, IS, 0, { ENOSYS, EPERM, EIO },
	  AT(CLOSE) | AT(CGROUP), { ENOTSUP, EBADF } },
#endif
	{ "getcwd", SYS_getcwd, -1, IS, 0, { ENOENT, ERANGE, ENOMEM }, 0, { 0 } },
	/* streams */
	{ "eventfd2", SYS_eventfd2, -1, IS, 0, { EMFILE, ENFILE, ENOMEM, ENODEV }, 0, { 0 } },
	{ "memfd_create", SYS_memfd_create, -1, IS, 0,
	  { ENOSYS, EPERM, EMFILE, ENFILE, ENOMEM }, 0, { 0 } },
	{ "fdopen", GATE_FDOPEN, -1, IS, 0, { ENOMEM, EMFILE }, 0, { 0 } },
	/* the size of the table, for a scan of it */
	{ "mmap of its own", SYS_mmap_, -1, IS, 0, { ENOMEM, EPERM }, AT(CLOSE), { ENOTSUP } },
	{ "mprotect", SYS_mprotect, -1, IS, 0, { ENOMEM, EACCES }, AT(CLOSE), { ENOTSUP } },
	{ "pselect6", SYS_pselect6, -1, IS, 0, { ENOSYS, EPERM, ENOMEM }, AT(CLOSE),
	  { ENOTSUP } },
	{ "getdents64", SYS_getdents64, -1, IS, 0, { EIO, ENOMEM }, AT(CLOSE), { 0 } },
	/* processes */
	{ "clone3", GATE_CLONE3, -1, IS, 0,
	  { EAGAIN, ENOMEM, ENOSYS, EPERM, EACCES, EINVAL, EMFILE, ENFILE }, AT(LAUNCH),
	  { 0 } },
	{ "clone", GATE_CLONE, -1, IS, 0, { EAGAIN, ENOMEM, ENOSYS, EPERM, EINVAL, EMFILE },
	  AT(LAUNCH), { 0 } },
	{ "clone as fork", SYS_clone, -1, IS, 0,
	  { EAGAIN, ENOMEM, ENOSYS, EPERM, EINVAL, EMFILE }, AT(LAUNCH), { 0 } },
#ifdef SYS_fork
	{ "fork", SYS_fork, -1, IS, 0, { EAGAIN, ENOMEM, ENOSYS }, AT(LAUNCH), { 0 } },
#endif
	{ "waitid", SYS_waitid, -1, IS, 0, { EINTR, ECHILD, EINVAL }, AT(LAUNCH), { ESRCH } },
	{ "execve", SYS_execve, -1, IS, 0,
	  { ENOENT, EACCES, E2BIG, ENOMEM, EPERM, ETXTBSY, ENOEXEC, EMFILE, ELOOP, EAGAIN,
	    EIO }, AT(EXEC), { ENOENT } },
	{ "chdir", SYS_chdir, -1, IS, 0, { ENOENT, EACCES, ENOTDIR, EIO }, AT(DIR), { 0 } },
	{ "fchdir", SYS_fchdir, -1, IS, 0, { EACCES, ENOTDIR }, AT(DIR), { 0 } },
	{ "kill", SYS_kill, -1, IS, 0, { EPERM }, 0, { 0 } },
	{ "tgkill", SYS_tgkill, -1, IS, 0, { EPERM }, 0, { 0 } },
	{ "pidfd_open", SYS_pidfd_open, -1, IS, 0,
	  { EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM, EINVAL, ESRCH }, AT(LAUNCH), { 0 } },
	{ "pidfd_getfd", SYS_pidfd_getfd, -1, IS, 0, { EPERM, EMFILE, ENOSYS, EBADF, ESRCH },
	  0, { 0 } },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, -1, IS, 0,
	  { ENOSYS, EPERM, EINVAL }, 0, { 0 } },
	{ "setsid", SYS_setsid, -1, IS, 0, { EPERM }, AT(SESSION), { 0 } },
	{ "setpgid", SYS_setpgid, -1, IS, 0, { EPERM, EACCES, ESRCH }, AT(GROUP), { 0 } },
	{ "getpgid", SYS_getpgid, 0, ISNT, 0, { ESRCH, EPERM }, 0, { 0 } },
	{ "setpriority", SYS_setpriority, -1, IS, 0, { EACCES, EPERM }, AT(NICE), { 0 } },
	{ "setgroups", SYS_setgroups_, -1, IS, 0, { EPERM, ENOMEM, EINVAL }, AT(IDS), { 0 } },
	{ "setresgid", SYS_setresgid_, -1, IS, 0, { EPERM, EINVAL }, AT(IDS), { 0 } },
	{ "setresuid", SYS_setresuid_, -1, IS, 0, { EPERM, EAGAIN, EINVAL }, AT(IDS), { 0 } },
	{ "get a limit", SYS_prlimit64, 3, ISNT, 0, { EPERM }, 0, { 0 } },
	{ "set a limit", SYS_prlimit64, 3, IS, 0, { EPERM, EINVAL }, AT(LIMIT), { 0 } },
	{ "pdeathsig", SYS_prctl, 0, IS, 1, { EINVAL }, AT(PDEATHSIG), { 0 } },
	{ "no new privileges", SYS_prctl, 0, IS, 38, { EINVAL }, AT(PRIVS), { 0 } },
	{ "TIOCSCTTY", SYS_ioctl, 1, IS, TIOCSCTTY, { EPERM, ENOTTY, EIO }, AT(TTY), { 0 } },
	{ "TIOCGPGRP", SYS_ioctl, 1, IS, TIOCGPGRP, { ENOTTY, EIO }, AT(TTY), { 0 } },
	{ "TIOCSPGRP", SYS_ioctl, 1, IS, TIOCSPGRP, { EPERM, ENOTTY, EIO, ESRCH }, AT(TTY),
	  { 0 } },
	{ "PIDFD_GET_INFO", SYS_ioctl, -1, IS, 0, { ENOTTY, EINVAL, ESRCH }, 0, { 0 } },
	/* signals and waiting: putting a mask back is what no one could do without */
	{ "block signals", SYS_rt_sigprocmask, 2, ISNT, 0, { EPERM }, AT(LAUNCH), { 0 } },
	{ "ppoll", SYS_ppoll, -1, IS, 0, { EINTR, EPERM, ENOMEM }, 0, { 0 } },
	{ "futex", SYS_futex_, -1, IS, 0, { EINTR }, 0, { 0 } },
	/* memory */
	{ "mmap", GATE_MMAP, -1, IS, 0, { ENOMEM, EAGAIN }, AT(MEMORY), { ENOMEM } },
	{ "malloc", GATE_MALLOC, -1, IS, 0, { ENOMEM }, AT(MEMORY), { 0 } },
	{ "calloc", GATE_CALLOC, -1, IS, 0, { ENOMEM }, AT(MEMORY), { 0 } },
	{ "realloc", GATE_REALLOC, -1, IS, 0, { ENOMEM }, 0, { 0 } },
};

enum { FAULT_ROWS = sizeof fault_rows / sizeof *fault_rows };

/* ---- the faults of one try ----------------------------------------------- */

enum { CALLER, CHILD };

/* What a machine may lack; it is so in every try. */
enum { NO_CLONE3 = 1, NO_CLONE = 2, NO_CLOSE_RANGE = 4, NO_UNSHARE = 8, NO_PIDFD = 16 };

/* Seen by the test, by the try and by all children of it. */
static struct faults {
	int host;               /* whose calls are the caller's */
	int armed, ceased, lacks;
	/* what is to fail */
	int side, n, forever, which;
	/* what happened */
	int tries;
	int calls[2];           /* that could have failed */
	int choices;            /* errnos of the n-th */
	unsigned long long failed[FAULT_ROWS]; /* bits: the errnos given */
	const char *first;
	int first_error;
	int blocks, pages;      /* taken and not given back */
	/* of the operation without a fault */
	int error, stage;
	char result[1 << 14];
	char text[1024];        /* what is wrong */
} *faults;

static unsigned long long bit_of(int error)
{
	return 1ULL << (error & 63);
}

static const struct fault_row *row_of(long nr, const long a[6])
{
	for (int i = 0; i < FAULT_ROWS; i++) {
		const struct fault_row *r = &fault_rows[i];

		if (r->nr == nr && (r->arg < 0
		    || ((unsigned long)a[r->arg] == r->value) == (r->how == IS)))
			return r;
	}
	return NULL;
}

/* All are blocked: nothing interrupts. */
static int is_undisturbed(void)
{
	uint64_t blocked = 0;

	kernel(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)(intptr_t)&blocked, sizeof blocked, 0, 0);
	return (blocked | WEAN_SIG(SIGKILL) | WEAN_SIG(SIGSTOP)) == ~0ULL;
}

/* An interruption does not come for ever, and not where nothing is waited for.  The
   kernel has room for a few descriptors to poll without asking for memory. */
static int can_give(const struct fault_row *r, const long a[6], int error)
{
	enum { PIDFD_ID = 3, POLLED_WITHOUT_MEMORY = 32 };

	if (r->nr == SYS_close)
		return 1;
	if (r->arg == 1 && r->value == F_SETFL && !(a[2] & O_NONBLOCK))
		return 0; /* as with a mask */
	if (error == EINTR && (faults->forever || is_undisturbed()))
		return 0;
	if (r->nr == SYS_ppoll)
		return error != ENOMEM || a[1] > POLLED_WITHOUT_MEMORY;
	if (r->nr != SYS_waitid)
		return 1;
	return error == EINTR ? !(a[3] & WNOHANG)
	     : error == ECHILD ? !(a[3] & WNOWAIT) : a[0] == PIDFD_ID;
}

/* The which-th errno of the call, counted round; how many there are. */
static int choose(const struct fault_row *r, const long a[6], int *error)
{
	int n = 0, at = 0;

	for (const int *e = r->errors; *e; e++)
		n += can_give(r, a, *e);
	for (const int *e = r->errors; *e; e++)
		if (can_give(r, a, *e) && at++ == faults->which % n)
			*error = *e;
	return n;
}

static int is_due(const struct fault_row *r, const long a[6], int *error)
{
	int side = kernel(SYS_getpid, 0, 0, 0, 0, 0, 0) == faults->host ? CALLER : CHILD;
	int choices = choose(r, a, error), at;

	if (choices == 0 || faults->ceased)
		return 0;
	at = __atomic_add_fetch(&faults->calls[side], 1, __ATOMIC_RELAXED);
	if (side != faults->side || faults->n == 0 || at < faults->n)
		return 0;
	if (at == faults->n)
		faults->choices = choices;
	return at == faults->n || faults->forever;
}

/* Another has reaped the child, if it was over; with a stop it is the same. */
static long reaped_by_another(const long a[6])
{
	siginfo_t *info = (siginfo_t *)(intptr_t)a[2];
	long r = let_through(SYS_waitid, a);

	if (r < 0 || info->si_pid == 0)
		return r;
	info->si_pid = 0;
	return -ECHILD;
}

static long refuse(const struct fault_row *r, const long a[6], int error)
{
	if (r->nr == SYS_close) /* gives the number free whatever it answers */
		let_through(r->nr, a);
	faults->failed[r - fault_rows] |= bit_of(error);
	if (!faults->first) {
		faults->first = r->name;
		faults->first_error = error;
	}
	if (r->nr == SYS_waitid && error == ECHILD)
		return reaped_by_another(a);
	if (r->nr == SYS_write && error == EPIPE)
		kernel(SYS_tgkill, kernel(SYS_getpid, 0, 0, 0, 0, 0, 0),
		       kernel(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGPIPE, 0, 0, 0);
	return r->nr == GATE_MALLOC || r->nr == GATE_CALLOC || r->nr == GATE_REALLOC
	       ? 0 : -error;
}

static int is_lacking(long nr)
{
	return (nr == GATE_CLONE3 && faults->lacks & NO_CLONE3)
	    || (nr == GATE_CLONE && faults->lacks & NO_CLONE)
	    || (nr == SYS_close_range && faults->lacks & NO_CLOSE_RANGE)
	    || (nr == SYS_unshare && faults->lacks & NO_UNSHARE)
	    || (nr == SYS_pidfd_open && faults->lacks & NO_PIDFD);
}

static long and_keep_books(long nr, const long a[6])
{
	long r = let_through(nr, a);

	if (nr == GATE_MALLOC || nr == GATE_CALLOC)
		faults->blocks += r != 0;
	else if (nr == GATE_REALLOC)
		faults->blocks += r != 0 && a[0] == 0;
	else if (nr == GATE_FREE)
		faults->blocks -= a[0] != 0;
	else if (nr == GATE_MMAP)
		faults->pages += r > 0 || r < -4095;
	else if (nr == GATE_MUNMAP)
		faults->pages--;
	return r;
}

static long at_gate(long nr, const long a[6])
{
	const struct fault_row *r;
	int error = 0;

	if (!faults || !faults->armed)
		return let_through(nr, a);
	r = row_of(nr, a);
	if (is_lacking(nr)) {
		faults->failed[r - fault_rows] |= bit_of(ENOSYS);
		return -ENOSYS;
	}
	return r && is_due(r, a, &error) ? refuse(r, a, error) : and_keep_books(nr, a);
}

/* ---- a try --------------------------------------------------------------- */

/* Ends the try. */
__attribute__((format(printf, 1, 2)))
static _Noreturn void wrong(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(faults->text, sizeof faults->text, format, list);
	va_end(list);
	_exit(1);
}

/* What the library forgets to fill then names descriptor 2, a loss that is seen. */
__attribute__((noinline)) static void soil_the_stack(void)
{
	enum { INTS = 8192 };
	int soil[INTS];

	for (int i = 0; i < INTS; i++)
		soil[i] = 2;
	__asm__ volatile ("" : : "r"(soil) : "memory");
}

/* Between these two the library is called, and nothing else. */
static inline void faults_begin(void)
{
	soil_the_stack();
	errno = BASELINE_ERRNO;
	__atomic_store_n(&faults->armed, 1, __ATOMIC_SEQ_CST);
}

/* From here on nothing fails, and what is held is still counted. */
static inline void faults_cease(void)
{
	faults->ceased = 1;
}

static inline void faults_end(void)
{
	enum { MANY = 2000 };

	__atomic_store_n(&faults->armed, 0, __ATOMIC_SEQ_CST);
	if (errno != BASELINE_ERRNO)
		wrong("errno was changed to %d", errno);
	if (faults->blocks || faults->pages)
		wrong("%d blocks and %d pages are left", faults->blocks, faults->pages);
	if (faults->calls[CALLER] > MANY)
		wrong("%d calls", faults->calls[CALLER]);
}

/* Whether a call that failed explains the error, at this stage of a start; stage 0: of
   anything else. */
static inline int is_explained(int error, int stage)
{
	for (int i = 0; i < FAULT_ROWS; i++) {
		const struct fault_row *r = &fault_rows[i];
		int same = (faults->failed[i] & bit_of(error)) != 0;

		for (int t = 0; t < 3; t++)
			same |= faults->failed[i] && error == r->turned[t];
		if (same && (!stage || r->stages >> stage & 1))
			return 1;
	}
	return 0;
}

/* Whether F_GETFD said of an open descriptor that it is closed, which no kernel does. */
static inline int was_lied_to(void)
{
	for (int i = 0; i < FAULT_ROWS; i++)
		if (faults->failed[i] && fault_rows[i].arg == 1
		    && fault_rows[i].value == F_GETFD)
			return 1;
	return 0;
}

static pid_t trying;

static void too_long(int sig)
{
	(void)sig;
	kill(-trying, SIGKILL);
}

static void one_try(void (*act)(void *), void *arg)
{
	enum { SECONDS = 30 }; /* for what takes a few milliseconds */
	struct sigaction sa = { .sa_handler = too_long };
	int status;

	faults->calls[0] = faults->calls[1] = faults->choices = 0;
	faults->blocks = faults->pages = faults->ceased = 0;
	memset(faults->failed, 0, sizeof faults->failed);
	faults->first = NULL;
	faults->text[0] = '\0';
	sigaction(SIGALRM, &sa, NULL);
	trying = fork(); /* Check itself would ask the gate for memory now */
	if (trying == 0) {
		setpgid(0, 0);
		signal(SIGALRM, SIG_DFL);
		faults->host = getpid();
		act(arg);
		_exit(0);
	}
	if (trying < 0)
		ck_abort_msg("fork: %s", strerror(errno));
	setpgid(trying, trying);
	alarm(SECONDS);
	while (waitpid(trying, &status, 0) < 0)
		;
	alarm(0);
	kill(-trying, SIGKILL);
	faults->armed = 0;
	faults->tries++;
	if (status == 0)
		return;
	if (WIFSIGNALED(status))
		snprintf(faults->text, sizeof faults->text, "killed by signal %d (%d: it "
		         "took %d s)", WTERMSIG(status), SIGKILL, SECONDS);
	ck_abort_msg("call %d of the %s, %s, fails with %s%s: %s", faults->n,
	             faults->side == CALLER ? "caller" : "child",
	             faults->first ? faults->first : "none", strerror(faults->first_error),
	             faults->forever ? ", and all from it on" : "", faults->text);
}

/* ---- all of them --------------------------------------------------------- */

static inline void faults_make(void)
{
	faults = mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE,
	              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(faults, MAP_FAILED);
}

/* Each errno of the n-th call; 0: there is no such call. */
/* Every errno with WEAN_SCALE=2 or more, else one, of each call another. */
static inline int fail_nth(void (*act)(void *), void *arg)
{
	int all = scaled(1) > 1, choices = 1;

	for (int i = 0; i < choices; i++) {
		faults->which = all ? i : faults->n + faults->forever;
		one_try(act, arg);
		if (faults->calls[faults->side] < faults->n)
			return 0;
		if (all)
			choices = faults->choices;
	}
	return 1;
}

/* Without a fault first.  The act calls faults_begin() and faults_end(). */
static inline void fail_each_up_to(int last_side, void (*act)(void *), void *arg)
{
	faults->n = 0;
	one_try(act, arg);
	ck_assert_int_gt(faults->calls[CALLER], 0);
	for (faults->side = CALLER; faults->side <= last_side; faults->side++)
		for (faults->forever = 0; faults->forever <= 1; faults->forever++)
			for (faults->n = 1; fail_nth(act, arg); faults->n++)
				;
}

static inline void fail_each(void (*act)(void *), void *arg)
{
	fail_each_up_to(CHILD, act, arg);
}

#endif
