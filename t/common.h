/* common.h - what every test program shares.
 *
 *   START_TEST(a_missing_program_leaves_nothing_behind) { ... } END_TEST
 *
 *   static Suite *spawn_suite(void) { ... }
 *   RUN_SUITE(spawn_suite)
 *
 * Run by Check in a fork a test: there descriptor 3 is Check's own, SIGINT,
 * SIGALRM and SIGTERM have handlers, and the test leads a process group.  So
 * compare with a baseline, never with "only 0, 1 and 2 are open".
 *
 * What a test case needs that is not everywhere it says by tcase_set_tags(), in these
 * words; a leg of the matrix leaves out what it lacks (CK_EXCLUDE_TAGS):
 *   default   the first rungs of both ladders, or their counts of system calls
 *   ptrace    count_calls(), or any other tracing
 *   seccomp   deny()
 *   native    the real kernel, libc's own allocator, memory and times as they are
 *   pidfd     pidfd_open(2) and what is done by a pidfd
 *   exec      execve(2) as it is: valgrind's changes LD_PRELOAD, complains of a program
 *             without arguments, and ends the process at some failures; with qemu-user
 *             some come later, in the program
 *   table     descriptors and their limit are the program's alone: valgrind keeps some at
 *             the hard limit, and lets none change that
 *   signals   a handler that runs when its signal comes, not when libc is called next
 *   kernel    a real one: qemu-user lets no process adopt orphans, answers pselect(2) by a
 *             copy of the sets, and keeps the last signal and some limits to itself
 *   reuse     what is freed is what is allocated next, as by glibc
 *   root      ids, mounts, namespaces, cgroups
 * What is not left out and can't run says so with SKIP(); what is tagged "default" is left
 * out, and said to be, where those rungs are refused, as in most containers.
 */
#ifndef COMMON_H
#define COMMON_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wean.h>

#include "report.h"

/* ---- running ----------------------------------------------------------- */

/* Shared with the forks that Check makes. */
static int *skipped;

/* Ends a test that this machine can't run.  The program then ends with 77 unless
   something failed: what was not run is not green. */
#define SKIP(...) \
	do { \
		fprintf(stderr, "skipped: %s: ", __func__); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		++*skipped; \
		return; \
	} while (0)

/* Whoever started us may have left signals ignored, as nohup does, or a shell in the
   background; and glibc's posix_spawn, by which make starts us, those that libc keeps for
   itself. */
static inline void default_ignored_signals(void)
{
	unsigned long action[8];

	for (int sig = 1; sig <= 64; sig++) {
		syscall(SYS_rt_sigaction, sig, NULL, action, sizeof(uint64_t));
		if (action[0] != (unsigned long)SIG_IGN)
			continue;
		memset(action, 0, sizeof action);
		syscall(SYS_rt_sigaction, sig, action, NULL, sizeof(uint64_t));
	}
}

/* How often a repeated thing is done.  WEAN_SCALE in the environment says 0.05 where
   a start takes twenty times as long, or 20 for a long run. */
static inline int scaled(int n)
{
	const char *scale = getenv("WEAN_SCALE");
	double often = scale ? n * atof(scale) : n;

	return often < 1 ? 1 : (int)often;
}

/* Whoever started us may have left one of these closed, where Check's own file would
   then be. */
static inline void open_standard_descriptors(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= 2)
		;
	close(fd);
}

/* To the usual limit of descriptors, where the caller's is lower. */
static inline void raise_limit(void)
{
	enum { USUAL = 1024 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= USUAL)
		return;
	limit.rlim_cur = limit.rlim_max < USUAL ? limit.rlim_max : USUAL;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The call that the first rungs need and that is refused here; NULL: there is none.  The
   answers are to arguments that do nothing. */
static inline const char *refused_here(void)
{
	if (syscall(SYS_clone3, NULL, 0) == -1 && errno != EINVAL)
		return "clone3";
	if (syscall(SYS_unshare, 0x400 /* CLONE_FILES */))
		return "unshare";
	if (syscall(SYS_pidfd_getfd, -1, -1, 0) == -1 && errno != EBADF)
		return "pidfd_getfd";
	return NULL;
}

/* Is there a test case of that tag? */
static int some_need_default;
#define tcase_set_tags(t, needs) \
	(some_need_default |= strstr(needs, "default") != NULL, tcase_set_tags(t, needs))

/* One more case of the suite, of the tests that have these needs, separated by blanks. */
static inline TCase *case_that_needs(Suite *s, const char *needs)
{
	TCase *t = tcase_create(needs);

	tcase_set_tags(t, needs);
	suite_add_tcase(s, t);
	return t;
}

static inline void leave_out_what_is_refused(void)
{
	const char *given = getenv("CK_EXCLUDE_TAGS"), *refused = refused_here();
	char tags[200];

	if (!refused || !some_need_default || (given && strstr(given, "default")))
		return;
	snprintf(tags, sizeof tags, "default %s", given ? given : "");
	setenv("CK_EXCLUDE_TAGS", tags, 1);
	fprintf(stderr, "skipped: what needs the first rungs: %s is refused here\n", refused);
	++*skipped;
}

static inline int run_suite(Suite *suite)
{
	open_standard_descriptors();
	raise_limit();
	default_ignored_signals();
	skipped = mmap(NULL, sizeof *skipped, PROT_READ | PROT_WRITE,
	               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (skipped == MAP_FAILED)
		return 99;
	leave_out_what_is_refused();
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (*skipped)
		printf("%d skipped\n", *skipped);
	return failed ? 1 : *skipped ? 77 : 0;
}

#define RUN_SUITE(suite) \
	int main(void) { return run_suite(suite()); }

/* The child program, by an absolute path: tests change their directory. */
static inline char *kid(void)
{
	static char path[PATH_MAX];
	const char *given = getenv("WEAN_KID");

	if (!path[0] && !realpath(given ? given : "./t/kid", path))
		ck_abort_msg("no child program: set WEAN_KID");
	return path;
}

/* Its argv: KID("exit", "7"). */
#define KID(...) ((char *[]){ kid(), __VA_ARGS__, NULL })

/* ---- memory ------------------------------------------------------------- */

/* What a helper gives and a test need not free: it lives as long as the test's process,
   and a leak checker finds it here. */
struct kept_memory {
	void *memory;
	struct kept_memory *next;
};

static inline void *for_good(void *memory)
{
	static struct kept_memory *all;
	struct kept_memory *k = malloc(sizeof *k);

	if (!memory || !k)
		ck_abort_msg("no memory");
	k->memory = memory;
	k->next = __atomic_exchange_n(&all, k, __ATOMIC_RELAXED);
	return memory;
}

/* ---- limits ------------------------------------------------------------- */

/* Raw, of 64 bits: glibc has an enum for the resource, musl an int. */
struct limits {
	uint64_t soft, hard;
};

static inline struct limits limit_of(int resource)
{
	struct limits limit;

	ck_assert_int_eq(syscall(SYS_prlimit64, 0, resource, NULL, &limit), 0);
	return limit;
}

/* Root in a container may not. */
static inline int may_lower_nice(void)
{
	int now = getpriority(PRIO_PROCESS, 0);

	return !setpriority(PRIO_PROCESS, 0, -20) && !setpriority(PRIO_PROCESS, 0, now);
}

/* Sets a soft limit of the caller and gives the one before. */
static inline uint64_t soft_limit(int resource, uint64_t soft)
{
	struct limits limit = limit_of(resource);
	uint64_t before = limit.soft;

	limit.soft = soft;
	ck_assert_int_eq(syscall(SYS_prlimit64, 0, resource, &limit, NULL), 0);
	return before;
}

/* ---- descriptors ------------------------------------------------------- */

/* Opens an empty file of its own at descriptor n, without close-on-exec: the
   inode tells it from any other. */
static inline int open_at(int n)
{
	int fd;

	ck_assert_msg(fcntl(n, F_GETFD) < 0, "descriptor %d is taken", n);
	ck_assert_int_ge(fd = memfd_create("open_at", 0), 0);
	if (fd != n) {
		ck_assert_int_eq(dup2(fd, n), n);
		close(fd);
	}
	return n;
}

struct filling {
	int *fds, n;
};

/* Opens n more descriptors without close-on-exec, at the lowest free numbers;
   raises the soft limit when it has to. */
static inline void fill_descriptors(struct filling *f, int n)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < (rlim_t)n + 64 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	}
	f->fds = for_good(calloc((size_t)n, sizeof *f->fds));
	for (f->n = 0; f->n < n; f->n++) {
		int fd = f->n ? dup(f->fds[0]) : open("/dev/null", O_RDWR);
		if (fd < 0) /* an assertion that holds is a write of Check's */
			ck_abort_msg("%d descriptors: %s", f->n, strerror(errno));
		f->fds[f->n] = fd;
	}
}

static inline void release_descriptors(struct filling *f)
{
	while (f->n)
		close(f->fds[--f->n]);
	free(f->fds);
	f->fds = NULL;
}

/* ---- baseline ---------------------------------------------------------- */

/* All that a call of the library must leave as it was. */
struct baseline_fd {
	int number, fd_flags, fl_flags;
	dev_t dev;
	ino_t ino;
};

struct baseline {
	struct baseline_fd *fds;
	size_t nfds;
	uint64_t mask;
	unsigned long actions[64][8]; /* the kernel's struct, as it is */
	uint64_t limits[RLIM_NLIMITS][2];
	char cwd[PATH_MAX];           /* empty: it was removed */
	mode_t umask;
	int error;
};

/* No call of ours sets it by itself. */
enum { BASELINE_ERRNO = 4711 };

static inline int baseline_by_number(const void *a, const void *b)
{
	return ((const struct baseline_fd *)a)->number -
	       ((const struct baseline_fd *)b)->number;
}

static inline void baseline_add(struct baseline *b, int number)
{
	struct baseline_fd *fd;
	struct stat st;

	if (fstat(number, &st))
		ck_abort_msg("descriptor %d: %s", number, strerror(errno));
	if (b->nfds % 256 == 0)
		b->fds = realloc(b->fds, (b->nfds + 256) * sizeof *b->fds);
	if (!b->fds)
		ck_abort_msg("no memory");
	fd = &b->fds[b->nfds++];
	memset(fd, 0, sizeof *fd);
	fd->number = number;
	fd->fd_flags = fcntl(number, F_GETFD);
	fd->fl_flags = fcntl(number, F_GETFL);
	fd->dev = st.st_dev;
	fd->ino = st.st_ino;
}

/* Another path where a test hides /proc from the library. */
static const char *baseline_listing = "/proc/self/fd";

static inline void baseline_list(struct baseline *b)
{
	DIR *dir = opendir(baseline_listing);

	ck_assert_msg(dir, "%s: %s", baseline_listing, strerror(errno));
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(dir))
			baseline_add(b, atoi(e->d_name));
	closedir(dir);
	if (b->nfds)
		qsort(b->fds, b->nfds, sizeof *b->fds, baseline_by_number);
}

static inline void baseline_collect(struct baseline *b)
{
	memset(b, 0, sizeof *b);
	baseline_list(b);
	/* Raw: libc hides signals 32 and 33, which it uses itself. */
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &b->mask, sizeof b->mask);
	for (int sig = 1; sig <= 64; sig++)
		syscall(SYS_rt_sigaction, sig, NULL, b->actions[sig - 1],
		        sizeof b->mask);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		syscall(SYS_prlimit64, 0, i, NULL, b->limits[i]);
	if (!getcwd(b->cwd, sizeof b->cwd))
		b->cwd[0] = '\0';
	umask(b->umask = umask(0));
}

/* Leaves errno at a value that only a call which touches it can change; a test
   whose own call fails in between sets errno = b.error after it. */
static inline void baseline_take(struct baseline *b)
{
	baseline_collect(b);
	errno = b->error = BASELINE_ERRNO;
}

enum { BASELINE_TEXT = 200 };

#define BASELINE_DIFFERS(text, ...) (snprintf(text, BASELINE_TEXT, __VA_ARGS__), 1)

static inline int baseline_fd_differs(const struct baseline_fd *x,
                                      const struct baseline_fd *y, char *text)
{
	return memcmp(x, y, sizeof *x) &&
	       BASELINE_DIFFERS(text, "descriptor %d had flags %#x and %#o, inode "
	                        "%llu; now %#x and %#o, %llu", x->number,
	                        (unsigned)x->fd_flags, (unsigned)x->fl_flags,
	                        (unsigned long long)x->ino, (unsigned)y->fd_flags,
	                        (unsigned)y->fl_flags, (unsigned long long)y->ino);
}

static inline int baseline_fds_differ(const struct baseline *b,
                                      const struct baseline *now, char *text)
{
	for (size_t i = 0; i < b->nfds || i < now->nfds; i++) {
		int was = i < b->nfds ? b->fds[i].number : INT_MAX;
		int is = i < now->nfds ? now->fds[i].number : INT_MAX;
		if (was != is)
			return BASELINE_DIFFERS(text, "descriptor %d is %s",
			                        was < is ? was : is,
			                        was < is ? "closed" : "new");
		if (baseline_fd_differs(&b->fds[i], &now->fds[i], text))
			return 1;
	}
	return 0;
}

static inline int baseline_rest_differs(const struct baseline *b,
                                        const struct baseline *now, char *text)
{
	if (b->mask != now->mask)
		return BASELINE_DIFFERS(text, "signal mask %#llx is now %#llx",
		                        (unsigned long long)b->mask,
		                        (unsigned long long)now->mask);
	for (int i = 0; i < 64; i++)
		if (memcmp(b->actions[i], now->actions[i], sizeof now->actions[i]))
			return BASELINE_DIFFERS(text, "action of signal %d", i + 1);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (memcmp(b->limits[i], now->limits[i], sizeof now->limits[i]))
			return BASELINE_DIFFERS(text, "limit %d", i);
	if (strcmp(b->cwd, now->cwd))
		return BASELINE_DIFFERS(text, "directory is now %.99s", now->cwd);
	if (b->umask != now->umask)
		return BASELINE_DIFFERS(text, "umask is now %03o", now->umask);
	return 0;
}

/* What is not as it was, in text; 0: all is, and no child is left. */
static inline int baseline_differs(const struct baseline *b, char *text)
{
	struct baseline now;

	if (errno != b->error)
		return BASELINE_DIFFERS(text, "errno is now %d", errno);
	baseline_collect(&now);
	int differs = baseline_fds_differ(b, &now, text) ||
	              baseline_rest_differs(b, &now, text);
	free(now.fds);
	pid_t left = differs ? -1 : waitpid(-1, NULL, WNOHANG | __WALL);
	if (!differs && (left != -1 || errno != ECHILD))
		differs = BASELINE_DIFFERS(text, "a child is left, %d", (int)left);
	errno = b->error;
	return differs;
}

/* Ends the baseline. */
static inline void baseline_same(struct baseline *b)
{
	char text[BASELINE_TEXT];

	ck_assert_msg(!baseline_differs(b, text), "%s", text);
	free(b->fds);
	b->fds = NULL;
}

/* ---- what the child sees ----------------------------------------------- */

/* A file that a child of any id can write to; unlink it. */
static inline char *report_path(void)
{
	char *path = for_good(strdup("/tmp/wean-report-XXXXXX"));
	int fd = mkstemp(path);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	fchmod(fd, 0666);
	close(fd);
	return path;
}

/* Starts kid with these options and gives its report, which comes by a file so
   that it takes no descriptor of the child's.  Leaves errno as it was. */
static inline struct report *kid_report(const struct wean_options *options)
{
	int error = errno;
	char *path = report_path();
	struct wean_child child;
	struct wean_status status;

	ck_assert_int_eq(wean_spawn(&child, KID("report", path), options), 0);
	ck_assert_int_eq(wean_wait(&child, -1, &status), 0);
	ck_assert_int_eq(status.kind, WEAN_EXITED);
	ck_assert_int_eq(status.value, 0);
	wean_release(&child);
	struct report *report = report_read_file(path);
	ck_assert_ptr_nonnull(report);
	unlink(path);
	free(path);
	errno = error;
	return report;
}

#endif
