/* spawning.h - for the tests that start, wait for and kill children.
 *
 * A test program includes it instead of common.h and has `scratch` in its cases:
 *
 *   tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
 */
#ifndef SPAWNING_H
#define SPAWNING_H

#include "common.h"

#include <ftw.h>
#include <grp.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/utsname.h>

/* ---- both ways to start: a loop test runs once with each ---- */

enum { WAYS = 2 };

static inline unsigned long long way(int i)
{
	return i ? WEAN_NO_SHARED_MEMORY : 0;
}

/* ---- files of the test's own ---- */

static char scratch[32];

static inline void scratch_make(void)
{
	strcpy(scratch, "/tmp/wean-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(scratch));
	ck_assert_int_eq(chmod(scratch, 0755), 0);
	kid(); /* found now: tests change their directory */
}

static inline int scratch_unlink(const char *path, const struct stat *st, int type,
                                 struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static inline void scratch_remove(void)
{
	nftw(scratch, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of a file there. */
static inline char *at(const char *name)
{
	char *path = for_good(malloc(strlen(scratch) + strlen(name) + 2));

	sprintf(path, "%s/%s", scratch, name);
	return path;
}

/* kid by a path that is one plain word to a shell. */
static inline char *kid_word(void)
{
	char *path = at("kid");

	ck_assert(symlink(kid(), path) == 0 || errno == EEXIST);
	errno = BASELINE_ERRNO;
	return path;
}

static inline char *make_dir(const char *name)
{
	char *path = at(name);

	ck_assert_msg(!mkdir(path, 0755) || errno == EEXIST, "%s: %s", path,
	              strerror(errno));
	return path;
}

static inline char *write_file(const char *name, mode_t mode, const void *data,
                               size_t len)
{
	char *path = at(name);

	unlink(path); /* what stands there may be read-only, or running */
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static inline char *write_text(const char *name, mode_t mode, const char *text)
{
	return write_file(name, mode, text, strlen(text));
}

static inline void *read_all(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(fstat(fd, &st), 0);
	*len = (size_t)st.st_size;
	char *data = for_good(malloc(*len + 1));
	ck_assert_int_eq(read(fd, data, *len), st.st_size);
	data[*len] = '\0';
	close(fd);
	return data;
}

/* As many bytes as said, of which the first are these. */
static inline char *long_text(const char *begin, size_t len)
{
	char *text = for_good(malloc(len + 1));

	memset(text, 'x', len);
	memcpy(text, begin, strlen(begin));
	text[len] = '\0';
	return text;
}

/* A program that anybody may run, unlike perhaps the one in the build's tree. */
static inline char *copy_program(const char *from, const char *name, mode_t mode)
{
	size_t len;
	void *data = read_all(from, &len);
	char *path = write_file(name, mode, data, len);

	free(data);
	return path;
}

static inline char *copy_kid(const char *name, mode_t mode)
{
	return copy_program(kid(), name, mode);
}

/* ---- who and where the test is ---- */

/* From here to its end the test has no privileges, if it had any. */
static inline void become_nobody(void)
{
	enum { NOBODY = 65534 };

	if (geteuid() == 0) {
		ck_assert_int_eq(setgroups(0, NULL), 0);
		ck_assert_int_eq(setresgid(NOBODY, NOBODY, NOBODY), 0);
		ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
		prctl(PR_SET_DUMPABLE, 1);
	}
}

static inline int kernel_has(int major, int minor)
{
	struct utsname u;
	int x = 0, y = 0;

	uname(&u);
	sscanf(u.release, "%d.%d", &x, &y);
	return x > major || (x == major && y >= minor);
}

/* Whether a pidfd tells the status of a child that another reaped.  An emulator has the
   kernel's version, and not all that the kernel has. */
static inline int kernel_keeps_statuses(void)
{
	uint64_t info[8] = { 0 };
	int fd = (int)syscall(434 /* pidfd_open */, getpid(), 0);
	int known = syscall(SYS_ioctl, fd, _IOWR(0xff, 11, info), info) == 0;

	close(fd);
	return kernel_has(6, 15) && known;
}

/* ---- starting ---- */

static inline void start(struct wean_child *child, char *const argv[],
                         const struct wean_options *options)
{
	int error = wean_spawn(child, argv, options);

	ck_assert_msg(!error, "%s: %s at %s, index %d", argv[0] ? argv[0] : "(null)",
	              strerror(error), wean_stage_name(child->stage), child->index);
	ck_assert_int_eq(child->stage, WEAN_STAGE_NONE);
	ck_assert_int_eq(child->index, -1);
	ck_assert_int_gt(child->pid, 0);
}

static inline struct wean_status finish(struct wean_child *child)
{
	struct wean_status status;

	ck_assert_int_eq(wean_wait(child, -1, &status), 0);
	wean_release(child);
	return status;
}

/* The status's code. */
static inline int run(char *const argv[], const struct wean_options *options)
{
	struct wean_child child;

	start(&child, argv, options);
	return finish(&child).code;
}

/* All that comes from fd, which is then closed. */
static inline char *read_end(int fd)
{
	size_t len = 0, room = 1 << 16;
	char *text = malloc(room);
	ssize_t n;

	while ((n = read(fd, text + len, room - 1 - len)) > 0) {
		len += (size_t)n;
		if (room - len < 2)
			text = realloc(text, room *= 2);
		ck_assert_ptr_nonnull(text);
	}
	ck_assert_int_eq(n, 0);
	text[len] = '\0';
	close(fd);
	return for_good(text);
}

/* What the program writes to 1; it has to leave with 0. */
static inline char *output(char *const argv[], const struct wean_options *options)
{
	struct wean_options piped = options ? *options : (struct wean_options){ 0 };
	struct wean_child child;

	piped.out = WEAN_PIPE;
	start(&child, argv, &piped);
	char *text = read_end(child.out);
	child.out = -1;
	ck_assert_int_eq(finish(&child).code, 0);
	return text;
}

/* What a failed start leaves in the struct: nothing. */
static inline void assert_holds_nothing(struct wean_child *child)
{
	struct wean_status status;

	ck_assert_int_eq(child->pid, 0);
	ck_assert_int_eq(child->pidfd, -1);
	ck_assert_int_eq(child->in, -1);
	ck_assert_int_eq(child->out, -1);
	ck_assert_int_eq(child->err, -1);
	ck_assert_int_eq(wean_wait(child, -1, &status), ESRCH);
	ck_assert_int_eq(wean_wait(child, 0, NULL), ESRCH);
	ck_assert_int_eq(wean_kill(child, 0), ESRCH);
	ck_assert_int_eq(wean_kill(child, SIGKILL), ESRCH);
	wean_release(child);
}

struct refusal {
	int error, stage, index;
};

static inline void assert_refused(struct wean_child *child, const char *what, int error,
                                  struct refusal r)
{
	ck_assert_msg(error == r.error && child->stage == r.stage &&
	              child->index == r.index,
	              "%s: %s at %s, index %d; wanted %s at %s, index %d", what,
	              strerror(error), wean_stage_name(child->stage), child->index,
	              strerror(r.error), wean_stage_name(r.stage), r.index);
	assert_holds_nothing(child);
}

/* A start that has to fail so, and to leave the caller as it was. */
static inline void refused_as(struct wean_child *child, const char *what,
                              char *const argv[], const struct wean_options *options,
                              struct refusal r)
{
	struct baseline b;

	memset(child, 0xa5, sizeof *child);
	baseline_take(&b);
	int error = wean_spawn(child, argv, options);
	baseline_same(&b);
	assert_refused(child, what, error, r);
}

static inline void refused(char *const argv[], const struct wean_options *options,
                           int error, int stage, int index)
{
	struct wean_child child;

	refused_as(&child, argv[0] ? argv[0] : "(null)", argv, options,
	           (struct refusal){ error, stage, index });
}

/* ---- a child held in the middle of its start ---- */

/* The caller's only child; 0: none.  Found by its parent's number, so also while
   the caller itself is held. */
static inline pid_t only_child(void)
{
	DIR *dir = opendir("/proc");
	pid_t found = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[300], line[512] = "", *end;
		int fd, parent = 0;

		snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
		if (atoi(e->d_name) < 1 || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			continue;
		if (read(fd, line, sizeof line - 1) > 0 && (end = strrchr(line, ')')))
			sscanf(end, ") %*c %d", &parent);
		close(fd);
		if (parent == getpid())
			found = atoi(e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* A file under a lease: who opens or executes it is held there until act() has
   returned, in another thread than the one that spawns. */
struct trap {
	char path[64];
	struct baseline before;
	int fd;
	void (*act)(pid_t child);
	pid_t child;
	pthread_t thread;
};

#define TRAP_SIGNAL (SIGRTMIN + 5)

static inline void *trap_watch(void *arg)
{
	struct trap *t = arg;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, TRAP_SIGNAL);
	sigwait(&set, &sig);
	t->child = only_child();
	if (t->child)
		t->act(t->child);
	fcntl(__atomic_load_n(&t->fd, __ATOMIC_ACQUIRE), F_SETLEASE, F_UNLCK);
	return NULL;
}

/* 0: this file system has no leases. */
static inline int trap_set(struct trap *t, const char *name, void (*act)(pid_t))
{
	char *path = copy_kid(name, 0755);
	sigset_t set;

	memset(t, 0, sizeof *t);
	t->act = act;
	snprintf(t->path, sizeof t->path, "%s", path);
	free(path);
	sigemptyset(&set);
	sigaddset(&set, TRAP_SIGNAL);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	ck_assert_int_eq(pthread_create(&t->thread, NULL, trap_watch, t), 0);
	baseline_take(&t->before);
	for_good(t->before.fds); /* not every test compares with it */
	int fd = open(t->path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	/* A checker of races does not know that the signal comes after it. */
	__atomic_store_n(&t->fd, fd, __ATOMIC_RELEASE);
	fcntl(fd, F_SETSIG, TRAP_SIGNAL);
	return !fcntl(fd, F_SETLEASE, F_WRLCK);
}

/* Every trap has to spring. */
static inline void trap_sprung(struct trap *t)
{
	ck_assert_int_eq(pthread_join(t->thread, NULL), 0);
	ck_assert_int_gt(t->child, 0);
	close(t->fd);
}

/* refused_as(), by what the trap does. */
static inline void refused_in(struct trap *t, struct wean_child *child,
                              char *const argv[], const struct wean_options *options,
                              struct refusal r)
{
	memset(child, 0xa5, sizeof *child);
	errno = BASELINE_ERRNO;
	int error = wean_spawn(child, argv, options);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	trap_sprung(t);
	errno = BASELINE_ERRNO;
	baseline_same(&t->before);
	assert_refused(child, t->path, error, r);
}

static inline void act_kill(pid_t child)
{
	kill(child, SIGKILL);
}

static inline void act_term(pid_t child)
{
	kill(child, SIGTERM);
}

static inline void act_nothing(pid_t child)
{
	(void)child;
}

/* ---- handlers ---- */

static inline void handle(int sig, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler };

	ck_assert_int_eq(sigaction(sig, &sa, NULL), 0);
}

static volatile sig_atomic_t ticks;

static inline void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

/* SIGALRM every millisecond, without SA_RESTART. */
static inline void tick(void)
{
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } };

	handle(SIGALRM, on_tick);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &each, NULL), 0);
}

static inline void stop_ticking(void)
{
	struct itimerval none = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &none, NULL);
	ck_assert_int_gt(ticks, 0);
}

#endif
