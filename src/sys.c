#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clone3.h"
#include "sys.h"

/* Numbers that old headers lack; from 424 on they are the same on every machine
   but alpha and mips, where the header has to have them. */
#if !defined __alpha__ && !defined __mips__
# ifndef SYS_pidfd_send_signal
#  define SYS_pidfd_send_signal 424
# endif
# ifndef SYS_pidfd_open
#  define SYS_pidfd_open 434
# endif
# ifndef SYS_close_range
#  define SYS_close_range 436
# endif
# ifndef SYS_pidfd_getfd
#  define SYS_pidfd_getfd 438
# endif
#endif

/* The way into the kernel: its answer, and libc's errno as it was.  Where a child may
   run beside its parent (a machine that has wean_clone3()) it has to be made by hand,
   since both share the one errno of the calling thread. */
#if defined __x86_64__ && !defined __ILP32__
static long
kernel(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall" : "=a"(r)
	    : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	    : "rcx", "r11", "memory");
	return r;
}
#elif defined __aarch64__ && !defined __ILP32__
static long
kernel(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0" : "+r"(x0)
	    : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
#else
static long
kernel(long nr, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long r = syscall(nr, a, b, c, d, e, f);

	if (r == -1) {
		r = -errno;
		errno = saved;
	}
	return r;
}
#endif

/* A test puts a function of its own between the library and the kernel here. */
#ifdef WEAN_GATE
static long WEAN_GATE(long nr, long a, long b, long c, long d, long e, long f);
#else
# define WEAN_GATE kernel
#endif

#define CALL(...) CALL_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define CALL_(nr, a, b, c, d, e, f, ...) \
	WEAN_GATE((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define ICALL(...) ((int)CALL(__VA_ARGS__))

/* ---- descriptors ---- */

int
wean_sys_open_at(int dir, const char *path, int oflag, unsigned mode)
{
	return ICALL(SYS_openat, dir, path, oflag | O_LARGEFILE, mode);
}

int
wean_sys_open(const char *path, int oflag, unsigned mode)
{
	return wean_sys_open_at(SYS_HERE, path, oflag, mode);
}

int
wean_sys_close(int fd)
{
	return ICALL(SYS_close, fd);
}

int
wean_sys_read(int fd, void *data, size_t len)
{
	return ICALL(SYS_read, fd, data, len);
}

int
wean_sys_write(int fd, const void *data, size_t len)
{
	return ICALL(SYS_write, fd, data, len);
}

int
wean_sys_dup_onto(int from, int to)
{
	return ICALL(SYS_dup3, from, to, 0);
}

int
wean_sys_dup_over(int from, int to)
{
	return ICALL(SYS_dup3, from, to, O_CLOEXEC);
}

int
wean_sys_eventfd(void)
{
	return ICALL(SYS_eventfd2, 0, O_CLOEXEC);
}

int
wean_sys_memfd(const char *name)
{
	return ICALL(SYS_memfd_create, name, 1 /* MFD_CLOEXEC */);
}

int
wean_sys_getcwd(char *text, size_t size)
{
	return ICALL(SYS_getcwd, text, size);
}

#ifdef SYS_fcntl64
# define SYS_fcntl_ SYS_fcntl64
#else
# define SYS_fcntl_ SYS_fcntl
#endif

int
wean_sys_dup_above(int fd, int lowest)
{
	return ICALL(SYS_fcntl_, fd, F_DUPFD_CLOEXEC, lowest);
}

int
wean_sys_close_on_exec(int fd)
{
	int flags = ICALL(SYS_fcntl_, fd, F_GETFD);

	return flags < 0 ? flags : flags & FD_CLOEXEC;
}

int
wean_sys_set_close_on_exec(int fd, int on)
{
	return ICALL(SYS_fcntl_, fd, F_SETFD, on ? FD_CLOEXEC : 0);
}

int
wean_sys_file_flags(int fd)
{
	return ICALL(SYS_fcntl_, fd, F_GETFL);
}

int
wean_sys_set_file_flags(int fd, int flags)
{
	return ICALL(SYS_fcntl_, fd, F_SETFL, flags);
}

int
wean_sys_pipe_size(int fd)
{
	return ICALL(SYS_fcntl_, fd, 1032 /* F_GETPIPE_SZ */);
}

int
wean_sys_set_pipe_size(int fd, int size)
{
	return ICALL(SYS_fcntl_, fd, 1031 /* F_SETPIPE_SZ */, size);
}

int
wean_sys_is_terminal(int fd)
{
	struct { int columns, rows; } size; /* of a terminal, and larger than what is written */

	return ICALL(SYS_ioctl, fd, TIOCGWINSZ, &size) == 0;
}

void
wean_sys_drop(int *fd)
{
	if (*fd >= 0)
		wean_sys_close(*fd);
	*fd = -1;
}

int
wean_sys_lift(int fd)
{
	int high;

	if (fd < 0 || fd > 2)
		return fd;
	high = wean_sys_dup_above(fd, 3);
	wean_sys_close(fd);
	return high;
}

int
wean_sys_pipe(int ends[2])
{
	int low[2], r = ICALL(SYS_pipe2, low, O_CLOEXEC);

	if (r < 0)
		return r;
	ends[0] = wean_sys_lift(low[0]);
	ends[1] = wean_sys_lift(low[1]);
	r = ends[0] < 0 ? ends[0] : ends[1] < 0 ? ends[1] : 0;
	if (r < 0) {
		wean_sys_drop(&ends[0]);
		wean_sys_drop(&ends[1]);
	}
	return r;
}

struct limit {
	uint64_t soft, hard;
};

static int
ask_limit(int resource, unsigned long long *soft)
{
	struct limit limit;
	int r = ICALL(SYS_prlimit64, 0, resource, NULL, &limit);

	if (r == 0)
		*soft = limit.soft;
	return r;
}

int
wean_sys_nofile(unsigned long long *soft)
{
	return ask_limit(RLIMIT_NOFILE, soft);
}

int
wean_sys_fsize(unsigned long long *soft)
{
	return ask_limit(RLIMIT_FSIZE, soft);
}

int
wean_sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return ICALL(SYS_close_range, first, last, flags);
}

int
wean_sys_unshare_files(void)
{
	return ICALL(SYS_unshare, SYS_FILES);
}

int
wean_sys_not_here(int error)
{
	return error == ENOSYS || error == EPERM || error == EACCES
	    || error == EINVAL || error == ENOTSUP;
}

/* struct statx of the kernel, as far as it is read here. */
struct statx_ {
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, spare;
	uint64_t ino, size, blocks, attributes_mask;
	uint64_t times[8];
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t rest[14];
};

static int
statx_file(int fd, const char *path, int flags, struct sys_file *file)
{
	enum { DONT_SYNC = 0x4000, TYPE_MODE_INO = 0x103 };
	struct statx_ s;
	int r = ICALL(SYS_statx, fd, path, flags | DONT_SYNC, TYPE_MODE_INO, &s);

	if (r == 0) {
		file->device = (unsigned long long)s.dev_major << 32 | s.dev_minor;
		file->inode = s.ino;
		file->mode = s.mode;
	}
	return r;
}

int
wean_sys_file(int fd, struct sys_file *file)
{
	return statx_file(fd, "", AT_EMPTY_PATH, file);
}

int
wean_sys_file_at(int dir, const char *path, struct sys_file *file)
{
	return statx_file(dir, path, 0, file);
}

/* libc's own function would be bound to in the child. */
static int
is_file_system(int fd, unsigned long magic)
{
#ifdef SYS_fstatfs64
	/* Of 84 or 88 bytes, by the alignment of a 64-bit number; the type comes first. */
	union { uint32_t type; char room[88]; } fs;
	int r = ICALL(SYS_fstatfs64, fd, 84, &fs);

	if (r == -EINVAL)
		r = ICALL(SYS_fstatfs64, fd, 88, &fs);
	return r == 0 && fs.type == magic;
#else
	struct statfs fs;

	return ICALL(SYS_fstatfs, fd, &fs) == 0 && (unsigned long)fs.f_type == magic;
#endif
}

int
wean_sys_is_cgroup2(int fd)
{
	return is_file_system(fd, 0x63677270);
}

/* Where a mount put the directory of another process there, the number of the listing leads
   to another file, or to none.  Where that can't be asked it is not known. */
static int
lists_another(int list)
{
	char text[12], *at = text + sizeof text;
	struct sys_file itself = { 0 }, seen = { 0 };
	int n = list;

	*--at = '\0';
	do
		*--at = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	if (wean_sys_file(list, &itself) < 0)
		return 0;
	return wean_sys_file_at(list, at, &seen) < 0 || seen.device != itself.device
	    || seen.inode != itself.inode;
}

int
wean_sys_list_open(void)
{
	enum { PROCFS = 0x9fa0 };
	int fd = wean_sys_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd >= 0 && (!is_file_system(fd, PROCFS) || lists_another(fd))) {
		wean_sys_close(fd);
		return -ENOTSUP;
	}
	return fd;
}

int
wean_sys_rewind(int fd)
{
#ifdef SYS_lseek
	return ICALL(SYS_lseek, fd, 0, SEEK_SET);
#else
	uint64_t at;
	return ICALL(SYS__llseek, fd, 0, 0, &at, SEEK_SET);
#endif
}

int
wean_sys_list_read(int list, void *buf, size_t size)
{
	return ICALL(SYS_getdents64, list, buf, size);
}

int
wean_sys_listed(const void *buf, size_t len, size_t *at)
{
	enum { RECLEN = 16, NAME = 19 }; /* offsets in linux_dirent64 */
	const char *base = buf;

	while (*at < len) {
		const char *entry = base + *at, *c = entry + NAME;
		int n = 0;

		*at += *(const uint16_t *)(const void *)(entry + RECLEN);
		if (*c < '0' || *c > '9')
			continue; /* . and .. */
		while (*c >= '0' && *c <= '9')
			n = n * 10 + (*c++ - '0');
		return n;
	}
	return -1;
}

/* pselect(2) cuts what it is asked down to the size of the table before it reads the set:
   so of a set that ends at memory which can't be read it tells whether the table reaches
   beyond it.  (fs/select.c, core_sys_select.) */
static int
reaches_beyond(char *end, size_t bytes)
{
	static const struct { long long sec, nsec; } now = { 0, 0 };
#ifdef SYS_pselect6
	return ICALL(SYS_pselect6, INT_MAX, end - bytes, NULL, NULL, &now, NULL);
#else
	return ICALL(SYS_pselect6_time64, INT_MAX, end - bytes, NULL, NULL, &now, NULL);
#endif
}

#ifdef SYS_mmap2
# define SYS_mmap_ SYS_mmap2
#else
# define SYS_mmap_ SYS_mmap
#endif

enum { GUARD = 65536 }; /* the largest page there is */

/* Asks about sets from `least` to `most` bytes, in steps of two: the size in bytes of the
   first that the table does not reach beyond, 0: none, or a negative errno. */
static long
measure_table(long least, long most)
{
	long at = CALL(SYS_mmap_, NULL, most + GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
	               -1, 0);
	long bytes = least;
	int r;

	if (at < 0 && at > -4096)
		return at;
	r = ICALL(SYS_mprotect, at, most, PROT_READ | PROT_WRITE);
	for (; r == 0 && bytes <= most; bytes *= 2) {
		r = reaches_beyond((char *)at + most, (size_t)bytes);
		if (r != -EFAULT)
			break;
		r = 0;
	}
	CALL(SYS_munmap, at, most + GUARD);
	return r < 0 ? r : bytes <= most ? bytes : 0;
}

int
wean_sys_table_size(void)
{
	enum { MOST = 1 << 28 }; /* INT_MAX numbers */
	long least = 8, most = GUARD, bytes;

	while ((bytes = measure_table(least, most)) == 0 && most < MOST) {
		least = 2 * most;
		most *= 16;
	}
	return bytes <= 0 ? -ENOTSUP : bytes == MOST ? INT_MAX : (int)(8 * bytes);
}

/* ---- processes ---- */

int
wean_sys_getpid(void)
{
	return ICALL(SYS_getpid);
}

int
wean_sys_gettid(void)
{
	return ICALL(SYS_gettid);
}

/* Whether children are born into another PID namespace, whose first one is its init: when
   that ends, no other can be made.  What can't be told counts as so. */
int
wean_sys_children_elsewhere(void)
{
	struct sys_file ours = { 0 }, theirs = { 0 };

	return wean_sys_file_at(SYS_HERE, "/proc/thread-self/ns/pid", &ours) < 0
	    || wean_sys_file_at(SYS_HERE, "/proc/thread-self/ns/pid_for_children", &theirs) < 0
	    || ours.inode != theirs.inode;
}

int
wean_sys_getppid(void)
{
	return ICALL(SYS_getppid);
}

int
wean_sys_exec(const char *path, char *const argv[], char *const envp[])
{
	return ICALL(SYS_execve, path, argv, envp);
}

_Noreturn void
wean_sys_exit(int value)
{
	for (;;)
		CALL(SYS_exit_group, value);
}

int
wean_sys_chdir(const char *path)
{
	return ICALL(SYS_chdir, path);
}

int
wean_sys_fchdir(int fd)
{
	return ICALL(SYS_fchdir, fd);
}

int
wean_sys_kill(int pid, int sig)
{
	return ICALL(SYS_kill, pid, sig);
}

int
wean_sys_is_process(int pid)
{
	return ICALL(SYS_tgkill, pid, pid, 0);
}

int
wean_sys_pidfd_open(int pid, int thread)
{
	enum { PIDFD_THREAD_ = O_EXCL }; /* Linux 6.9 */

	return ICALL(SYS_pidfd_open, pid, thread ? PIDFD_THREAD_ : 0);
}

int
wean_sys_pidfd_getfd(int pidfd, int fd)
{
	return ICALL(SYS_pidfd_getfd, pidfd, fd, 0);
}

int
wean_sys_pidfd_kill(int pidfd, int sig)
{
	return ICALL(SYS_pidfd_send_signal, pidfd, sig, 0, 0);
}

int
wean_sys_pidfd_kill_group(int pidfd, int sig)
{
	enum { PROCESS_GROUP = 4 };

	return ICALL(SYS_pidfd_send_signal, pidfd, sig, 0, PROCESS_GROUP);
}

int
wean_sys_setsid(void)
{
	return ICALL(SYS_setsid);
}

int
wean_sys_setpgid(int pgid)
{
	return ICALL(SYS_setpgid, 0, pgid);
}

int
wean_sys_getpgid(int pid)
{
	return ICALL(SYS_getpgid, pid);
}

int
wean_sys_umask(int bits)
{
	return ICALL(SYS_umask, bits);
}

int
wean_sys_nice(int nice)
{
	return ICALL(SYS_setpriority, PRIO_PROCESS, 0, nice);
}

int
wean_sys_limit(int resource, unsigned long long soft, unsigned long long hard)
{
	struct limit limit = { soft, hard };

	return ICALL(SYS_prlimit64, 0, resource, &limit, NULL);
}

/* Where a machine has two variants, the plain one takes ids of 16 bits and cuts larger
   ones: setresuid(65536) would succeed and stay root. */
#ifdef SYS_setresuid32
# define SYS_setresuid_ SYS_setresuid32
# define SYS_getresuid_ SYS_getresuid32
# define SYS_setresgid_ SYS_setresgid32
# define SYS_getresgid_ SYS_getresgid32
# define SYS_setgroups_ SYS_setgroups32
#else
# define SYS_setresuid_ SYS_setresuid
# define SYS_getresuid_ SYS_getresuid
# define SYS_setresgid_ SYS_setresgid
# define SYS_getresgid_ SYS_getresgid
# define SYS_setgroups_ SYS_setgroups
#endif

int
wean_sys_setgroups(size_t n, const unsigned *groups)
{
	return ICALL(SYS_setgroups_, n, groups);
}

static int
set_all_three(long set, long get, unsigned id)
{
	unsigned real, effective, saved;
	int r = ICALL(set, id, id, id);

	if (r < 0 || (r = ICALL(get, &real, &effective, &saved)) < 0)
		return r;
	return real == id && effective == id && saved == id ? 0 : -EPERM;
}

int
wean_sys_setgid(unsigned gid)
{
	return set_all_three(SYS_setresgid_, SYS_getresgid_, gid);
}

int
wean_sys_setuid(unsigned uid)
{
	return set_all_three(SYS_setresuid_, SYS_getresuid_, uid);
}

int
wean_sys_pdeathsig(int sig)
{
	return ICALL(SYS_prctl, 1 /* PR_SET_PDEATHSIG */, sig);
}

int
wean_sys_no_new_privs(void)
{
	return ICALL(SYS_prctl, 38 /* PR_SET_NO_NEW_PRIVS */, 1);
}

int
wean_sys_control_tty(int tty)
{
	return ICALL(SYS_ioctl, tty, TIOCSCTTY, 0);
}

int
wean_sys_foreground(int tty)
{
	int group = -1, r = ICALL(SYS_ioctl, tty, TIOCGPGRP, &group);

	return r < 0 ? r : group;
}

int
wean_sys_set_foreground(int tty, int group)
{
	return ICALL(SYS_ioctl, tty, TIOCSPGRP, &group);
}

/* struct clone_args of the kernel; the last member came with Linux 5.7. */
struct clone_args_ {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};

int
wean_sys_clone3(const struct sys_clone *c)
{
	struct clone_args_ args = {
		.flags = c->flags,
		.pidfd = (uintptr_t)c->pidfd,
		.child_tid = (uintptr_t)c->alive,
		.exit_signal = (uint64_t)c->exit_signal,
		.stack = (uintptr_t)c->stack,
		.stack_size = c->stack_size,
		.cgroup = (uint64_t)c->cgroup,
	};
	size_t size = c->flags & SYS_INTO_CGROUP ? sizeof args
	                                         : offsetof(struct clone_args_, set_tid);

	return (int)wean_clone3(&args, size, c->run, c->arg);
}

int
wean_sys_fork(const struct sys_clone *c)
{
	long flags = (long)c->flags | c->exit_signal;
#if defined __s390__ || defined __CRIS__
	int pid = ICALL(SYS_clone, 0, flags, c->pidfd);
#else
	int pid = ICALL(SYS_clone, flags, 0, c->pidfd);
#endif

#ifdef SYS_fork
	if (pid < 0 && wean_sys_not_here(-pid) && flags == SIGCHLD)
		pid = ICALL(SYS_fork);
#endif
	if (pid == 0)
		wean_sys_exit(c->run(c->arg));
	return pid;
}

static void
fill_status(struct wean_status *s, int exited, int value, int core)
{
	s->kind = exited ? WEAN_EXITED : WEAN_SIGNALED;
	s->value = value;
	s->core = core;
	s->code = exited ? value : 128 + value;
}

/* The kernel's own struct rusage: libc's may have a wider time than it. */
struct rusage_ {
	struct { long sec, usec; } user, system;
	long maxrss, rest[13];
};

static long long
microseconds(long sec, long usec)
{
	return sec * 1000000LL + usec;
}

int
wean_sys_wait(int pidfd, int pid, int flags, struct wean_status *status)
{
	enum { PIDFD_ID = 3 }; /* P_PIDFD, Linux 5.4 */
	unsigned options = flags & SYS_STOPPED ? WSTOPPED : WEXITED;
	struct rusage_ use;
	siginfo_t si;
	int r;

	si.si_pid = 0;
	options |= flags & SYS_NOHANG ? WNOHANG : 0u;
	options |= flags & SYS_NOREAP ? WNOWAIT : 0u;
	options |= flags & SYS_UNBORN ? 0x80000000u : 0u; /* __WCLONE */
	options |= flags & SYS_ANY ? 0x40000000u : 0u;    /* __WALL */
	r = -EINVAL;
	if (pidfd >= 0)
		r = ICALL(SYS_waitid, PIDFD_ID, pidfd, &si, options, &use);
	if (r < 0 && wean_sys_not_here(-r))
		r = ICALL(SYS_waitid, P_PID, pid, &si, options, &use);
	if (r == -EAGAIN)
		return 0; /* an event loop of the host's made the pidfd non-blocking */
	if (r < 0 || si.si_pid == 0)
		return r;
	if (!status)
		return 1;
	*status = (struct wean_status){ 0 };
	fill_status(status, si.si_code == CLD_EXITED, si.si_status, si.si_code == CLD_DUMPED);
	status->user_us = microseconds(use.user.sec, use.user.usec);
	status->system_us = microseconds(use.system.sec, use.system.usec);
	status->maxrss_kb = use.maxrss;
	return 1;
}

int
wean_sys_pidfd_status(int pidfd, struct wean_status *status)
{
	struct {
		uint64_t mask, cgroup;
		uint32_t ids[11];
		int32_t status;
	} info = { .mask = 8 }; /* PIDFD_INFO_EXIT */
	int r = ICALL(SYS_ioctl, pidfd, _IOWR(0xff, 11, info), &info);

	if (r < 0)
		return r;
	if (!(info.mask & 8))
		return 0;
	*status = (struct wean_status){ 0 };
	if (WIFEXITED(info.status))
		fill_status(status, 1, WEXITSTATUS(info.status), 0);
	else
		fill_status(status, 0, WTERMSIG(info.status), !!WCOREDUMP(info.status));
	return 1;
}

/* ---- signals ---- */

#ifdef __mips__
# define NSIG_ 128
#else
# define NSIG_ 64
#endif

int
wean_sys_last_signal(void)
{
	return NSIG_;
}

static int
mask(const struct sys_sigset *set, struct sys_sigset *old)
{
	return ICALL(SYS_rt_sigprocmask, SIG_SETMASK, set, old, NSIG_ / 8);
}

int
wean_sys_block_all(struct sys_sigset *old)
{
	struct sys_sigset all;

	for (size_t i = 0; i < sizeof all.word / sizeof all.word[0]; i++)
		all.word[i] = ~0UL;
	return mask(&all, old);
}

int
wean_sys_set_mask(const struct sys_sigset *set)
{
	return mask(set, NULL);
}

void
wean_sys_add_signals(struct sys_sigset *set, unsigned long long signals)
{
	const unsigned bits = 8 * sizeof set->word[0];

	for (unsigned n = 0; signals; n++, signals >>= 1)
		if (signals & 1)
			set->word[n / bits] |= 1UL << n % bits;
}

static int
has_any(const struct sys_sigset *a, const struct sys_sigset *b)
{
	unsigned long found = 0;

	for (size_t i = 0; i < sizeof a->word / sizeof a->word[0]; i++)
		found |= a->word[i] & b->word[i];
	return found != 0;
}

/* For a wait of no time at all, which reads the same in both. */
#ifdef SYS_rt_sigtimedwait
# define SYS_rt_sigtimedwait_ SYS_rt_sigtimedwait
#else
# define SYS_rt_sigtimedwait_ SYS_rt_sigtimedwait_time64
#endif

/* The kernel's own struct sigaction: the handler comes first, but on mips second; flags,
   restorer and mask are all zero here. */
#ifdef __mips__
enum { HANDLER = 1 };
#else
enum { HANDLER = 0 };
#endif
struct sigaction_ {
	long word[3 + NSIG_ / (8 * sizeof(long))];
};

static void
clear(struct sigaction_ *sa)
{
	for (size_t i = 0; i < sizeof sa->word / sizeof sa->word[0]; i++)
		sa->word[i] = 0;
}

int
wean_sys_disposition(int sig)
{
	struct sigaction_ sa;
	int r = ICALL(SYS_rt_sigaction, sig, NULL, &sa, NSIG_ / 8);

	if (r < 0)
		return r;
	return sa.word[HANDLER] == (long)SIG_DFL ? SYS_DEFAULT
	     : sa.word[HANDLER] == (long)SIG_IGN ? SYS_IGNORE : SYS_HANDLER;
}

int
wean_sys_set_disposition(int sig, enum sys_disposition to)
{
	struct sigaction_ sa;

	clear(&sa);
	sa.word[HANDLER] = (long)(to == SYS_IGNORE ? SIG_IGN : SIG_DFL);
	return ICALL(SYS_rt_sigaction, sig, &sa, NULL, NSIG_ / 8);
}

/* The signal is the calling thread's alone.  One that was pending before stays so. */
int
wean_sys_write_quietly(int fd, const void *data, size_t len)
{
	static const struct { long long sec, nsec; } now = { 0, 0 };
	struct sys_sigset old, pending = { { 0 } }, pipe = { { 0 } };
	int r = wean_sys_block_all(&old);

	if (r < 0)
		return r;
	wean_sys_add_signals(&pipe, WEAN_SIG(SIGPIPE));
	CALL(SYS_rt_sigpending, &pending, NSIG_ / 8);
	r = wean_sys_write(fd, data, len);
	if (r == -EPIPE && !has_any(&pending, &pipe))
		CALL(SYS_rt_sigtimedwait_, &pipe, NULL, &now, NSIG_ / 8);
	wean_sys_set_mask(&old);
	return r;
}

/* ---- the rest ---- */

/* Only machines with a 64-bit long wait here, or such as have this call. */
#ifdef SYS_futex_time64
# define SYS_futex_ SYS_futex_time64
#else
# define SYS_futex_ SYS_futex
#endif

/* ns < 0: for ever.  Where time_t outgrew long, the old call would misread a 64-bit
   time. */
static int
poll_ns(struct sys_poll *fds, size_t n, long long ns)
{
	struct { long long sec, nsec; } t = { ns / 1000000000, ns % 1000000000 };
	struct { long sec, nsec; } old = { (long)t.sec, (long)t.nsec };
	int r = -ENOSYS;

#ifdef SYS_ppoll_time64
	r = ICALL(SYS_ppoll_time64, fds, n, ns < 0 ? NULL : &t, NULL, NSIG_ / 8);
#endif
	if (r == -ENOSYS)
		r = ICALL(SYS_ppoll, fds, n, ns < 0 ? NULL : &old, NULL, NSIG_ / 8);
	return r;
}

int
wean_sys_poll(struct sys_poll *fds, size_t n, int timeout_ms)
{
	return poll_ns(fds, n, timeout_ms < 0 ? -1 : timeout_ms * 1000000LL);
}

int
wean_sys_readable(int fd, int timeout_ms)
{
	struct sys_poll p = { fd, SYS_POLL_IN, 0 };

	return wean_sys_poll(&p, 1, timeout_ms);
}

static int
sleep_ns(long long ns)
{
	enum { MONOTONIC = 1 };
#ifdef SYS_clock_nanosleep_time64
	const struct { long long sec, nsec; } t = { ns / 1000000000, ns % 1000000000 };

	return ICALL(SYS_clock_nanosleep_time64, MONOTONIC, 0, &t, NULL);
#else
	const struct { long sec, nsec; } t = { (long)(ns / 1000000000), (long)(ns % 1000000000) };

	return ICALL(SYS_clock_nanosleep, MONOTONIC, 0, &t, NULL);
#endif
}

/* Where a filter refuses one of the two the other does: who naps must not spin. */
int
wean_sys_sleep_us(long us)
{
	int r = poll_ns(NULL, 0, us * 1000LL);

	return r < 0 && wean_sys_not_here(-r) ? sleep_ns(us * 1000LL) : r;
}

/* Not a private futex: the kernel's wake at the end of the other's memory is not. */
int
wean_sys_await_zero(const int *word, int timeout_ms)
{
	enum { WAIT = 0 };
	struct { long long sec, nsec; } t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000 };
	int seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	if (seen != 0) {
		CALL(SYS_futex_, word, WAIT, seen, &t);
		seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	}
	return seen == 0;
}
