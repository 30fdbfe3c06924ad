/* denying.h - machines on which calls are refused or /proc is not what it should be, and
   the way that a start then takes. */
#ifndef DENYING_H
#define DENYING_H

#include "descriptors.h"
#include "spawning.h"

#include <sched.h>
#include <sys/mount.h>

#include "count.h"
#include "deny.h"

/* ---- /proc --------------------------------------------------------------- */

/* A namespace of mounts of the test's own, where the true /proc stays to be read by the
   test aside.  Each of these: 0: it may not. */
static inline int proc_aside(void)
{
	static char listing[64];
	char path[48];

	snprintf(path, sizeof path, "%s/proc", scratch);
	snprintf(listing, sizeof listing, "%s/self/fd", path);
	baseline_listing = listing;
	return !unshare(CLONE_NEWNS) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       (!mkdir(path, 0755) || errno == EEXIST) &&
	       !mount("/proc", path, NULL, MS_BIND | MS_REC, NULL);
}

static inline int proc_empty(void)
{
	return proc_aside() && !mount("none", "/proc", "tmpfs", 0, NULL);
}

/* Directories that are no procfs, where numbers are listed that are not open. */
static inline int proc_fake(void)
{
	char path[32];

	if (!proc_empty() || mkdir("/proc/self", 0755) || mkdir("/proc/self/fd", 0755))
		return 0;
	for (int i = 0; i < 12; i++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", i * 7);
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		if (fd < 0)
			return 0;
		close(fd);
	}
	return 1;
}

/* What forks is the parent of an init, by which /proc is mounted; it goes on alone. */
static inline int proc_of_inner(void)
{
	int status;

	if (!proc_aside())
		return 0;
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWPID))
			_exit(1);
		pid_t init = fork();
		if (init == 0)
			_exit(mount("none", "/proc", "proc", 0, NULL) != 0);
		_exit(init < 0 || waitpid(init, &status, 0) != init || status);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/* A process that is no child of the test and ends with it; it has other descriptors, on
   numbers that the test's children may have too. */
static inline pid_t start_another(void)
{
	int ends[2], told[2], status;
	pid_t pid = 0;

	if (pipe2(ends, O_CLOEXEC) || pipe2(told, O_CLOEXEC) || (pid = fork()) < 0)
		return 0;
	if (pid == 0) {
		if ((pid = fork()) > 0)
			_exit(write(told[1], &pid, sizeof pid) != sizeof pid);
		dup2(ends[0], 40);
		syscall(SYS_close_range, 41, ~0U, 0);
		for (int fd = 3; fd < 40; fd++)
			dup2(2, fd);
		_exit(read(40, &pid, 1) != 0);
	}
	close(ends[0]); /* the other stays, to the end of the test */
	waitpid(pid, &status, 0);
	if (status || read(told[0], &pid, sizeof pid) != sizeof pid)
		pid = 0;
	close(told[0]);
	close(told[1]);
	return pid;
}

/* Procfs, but of another process. */
static inline int proc_of_another(void)
{
	pid_t pid = start_another();
	char path[64];

	if (!pid || !proc_empty() || mkdir("/proc/self", 0755) || mkdir("/proc/self/fd", 0755))
		return 0;
	snprintf(path, sizeof path, "%s/proc/%d/fd", scratch, (int)pid);
	return !mount(path, "/proc/self/fd", NULL, MS_BIND, NULL);
}

/* Whether that may be done here, found out in a process of its own. */
static inline int can_do(int (*hide)(void))
{
	int status;
	pid_t pid = hide ? fork() : -1;

	if (!hide)
		return 1;
	if (pid == 0)
		_exit(!hide());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return !status;
}

/* ---- machines ------------------------------------------------------------ */

struct machine {
	const char *name;
	struct denial denied[8]; /* error 0: each of the errors that mean "not here" */
	int (*hide)(void);       /* /proc; NULL: it is as it should be */
	const char *shared;      /* the method of an ordinary start, */
	const char *copied;      /* and of one without shared memory */
	int no_pidfd;            /* its children have none */
};

static const int refusals[] = { ENOSYS, EPERM, EACCES, EINVAL };

enum { REFUSALS = COUNT(refusals), P_PIDFD_BIT = 2 };

#define CLONE3    { .nr = SYS_clone3 }
#define CLONE     { .nr = SYS_clone }
#define CLONE_WITH(flag) \
	{ .nr = SYS_clone, .when = DENY_WITH, .arg = 0, .bits = (flag) }
#define RANGE     { .nr = SYS_close_range }
#define RANGE_WITH_FLAGS \
	{ .nr = SYS_close_range, .when = DENY_WITH, .arg = 2, .bits = ~0U }
#define RANGE_WITHOUT_FLAGS \
	{ .nr = SYS_close_range, .when = DENY_WITHOUT, .arg = 2, .bits = ~0U }
#define UNSHARE   { .nr = SYS_unshare }
#define PIDFD_OPEN  { .nr = SYS_pidfd_open }
#define PIDFD_GETFD { .nr = SYS_pidfd_getfd }
#define PIDFD_KILL  { .nr = SYS_pidfd_send_signal }
#define PSELECT   { .nr = SYS_pselect6 }
#define PPOLL     { .nr = SYS_ppoll }
#define WAITID_BY_PIDFD \
	{ .nr = SYS_waitid, .when = DENY_WITH, .arg = 0, .bits = P_PIDFD_BIT, \
	  .error = EINVAL }

/* 0: this machine can't be had here. */
static inline int enter(const struct machine *m, int error)
{
	struct denial denied[COUNT(m->denied)];
	size_t n = 0;

	if (!can_do(m->hide) || !can_deny() || (m->hide && !m->hide()))
		return 0;
	for (; n < COUNT(denied) && m->denied[n].nr; n++) {
		denied[n] = m->denied[n];
		if (!denied[n].error)
			denied[n].error = error;
	}
	return n == 0 || deny_these(denied, n);
}

/* ---- a start ------------------------------------------------------------- */

static inline const char *method_of(const struct machine *m, unsigned long long flags)
{
	return flags & WEAN_NO_SHARED_MEMORY ? m->copied : m->shared;
}

/* Descriptors that a loop up to some number would miss. */
static inline void open_far_ones(void)
{
	open_at(50);
	open_at(300);
	open_at(1023);
	open_at(5000);
}

#endif
