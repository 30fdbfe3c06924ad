/* test_host.c - children of a host that has signals and an allocator of its own:
   nothing of it runs in a child, nothing of a failed start reaches it. */
#define _GNU_SOURCE
#include "deny.h"
#include "spawning.h"

#include <sched.h>
#include <stdatomic.h>

/* ---- an allocator that a child must not enter ---- */

#ifdef __GLIBC__
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);
# define heap_malloc __libc_malloc
# define heap_calloc __libc_calloc
# define heap_realloc __libc_realloc
# define heap_free __libc_free
#else
/* Other libcs have no second name for theirs.  This one takes nothing back. */
enum { HEAD = 16 };
static _Alignas(HEAD) char heap[1 << 28];
static atomic_size_t used;

static void *heap_malloc(size_t size)
{
	size_t room = HEAD + (size + HEAD - 1) / HEAD * HEAD;
	size_t at = size < sizeof heap ? atomic_fetch_add(&used, room) : sizeof heap;

	if (at + room > sizeof heap)
		return NULL;
	*(size_t *)(void *)(heap + at) = size;
	return heap + at + HEAD;
}

static void *heap_calloc(size_t n, size_t size)
{
	return heap_malloc(n * size);
}

static void *heap_realloc(void *old, size_t size)
{
	void *new = heap_malloc(size);
	size_t had = old ? *(size_t *)(void *)((char *)old - HEAD) : 0;

	return new && old ? memcpy(new, old, had < size ? had : size) : new;
}

static void heap_free(void *old)
{
	(void)old;
}
#endif

static atomic_int outstanding;
static pid_t allowed_in; /* this process alone; 0: in all */
static int allowed_nowhere;

static inline void enter(int change)
{
	if (allowed_nowhere || (allowed_in && syscall(SYS_getpid) != allowed_in))
		abort();
	outstanding += change;
}

/* A sanitizer has its own, and comes to it before anything else. */
#if !SANITIZED
void *malloc(size_t size)
{
	enter(1);
	return heap_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	enter(1);
	return heap_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	enter(!old);
	return heap_realloc(old, size);
}

void free(void *old)
{
	if (old)
		enter(-1);
	heap_free(old);
}
#endif

START_TEST(a_child_never_allocates)
{
	enum { N = 200 };
	struct wean_fd fds[N];
	char *list[] = { "/absent/x", kid(), NULL };
	char *edit[] = { "A=1", "PATH", NULL };
	struct wean_options opt = { .candidates = list, .env_edit = edit, .dir = "/",
	                            .fds = fds, .nfds = N, .in = WEAN_PIPE,
	                            .flags = WEAN_SHELL_SCRIPT | way(_i) };
	struct wean_options bad = { .dir = "/absent", .out = WEAN_PIPE,
	                            .flags = way(_i) };
	struct wean_child child;

	for (int i = 0; i < N; i++)
		fds[i] = (struct wean_fd){ .kind = WEAN_DUP, .target = 500 + i,
		                           .source = i % 3 };
	allowed_in = getpid();
	int error = wean_spawn(&child, KID("exit", "6"), &opt);
	int code = error ? -1 : finish(&child).code;
	int missing = wean_spawn(&child, KID("exit", "0"), &bad);
	allowed_in = 0;
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(code, 6);
	ck_assert_int_eq(missing, ENOENT);
}
END_TEST

/* Another thread may hold the allocator's lock for as long as it likes. */
START_TEST(an_ordinary_start_does_not_allocate_at_all)
{
	char **argv = KID("exit", "6");
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_MERGE,
	                            .dir = "/", .flags = way(_i) };
	struct wean_child child;
	struct wean_status status;

	allowed_nowhere = 1;
	int error = wean_spawn(&child, argv, &opt);
	int waited = error ? -1 : wean_wait(&child, -1, &status);
	wean_release(&child);
	allowed_nowhere = 0;
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(waited, 0);
	ck_assert_int_eq(status.code, 6);
}
END_TEST

/* ---- signals ---- */

static uint64_t set_of_all(uintptr_t handler)
{
	uint64_t set = 0;

	for (int sig = 1; sig <= 64; sig++) {
		uintptr_t action[8] = { 0 };
		syscall(SYS_rt_sigaction, sig, NULL, action, sizeof set);
		if (action[0] == handler)
			set |= WEAN_SIG(sig);
	}
	return set;
}

/* Raw: libc does not let 32 and 33 be touched. */
static void ignore_raw(int sig)
{
	uintptr_t action[8] = { (uintptr_t)SIG_IGN };

	ck_assert_int_eq(syscall(SYS_rt_sigaction, sig, action, NULL, 8), 0);
}

static uint64_t pending(void)
{
	uint64_t set = 0;

	syscall(SYS_rt_sigpending, &set, sizeof set);
	return set;
}

START_TEST(a_child_starts_with_the_base_whatever_the_host_has_set)
{
	static const int ignored[] = { SIGPIPE, SIGCHLD, SIGXFSZ, SIGINT, SIGUSR1, 32,
	                               64 };
	static const int caught[] = { SIGTERM, SIGHUP, SIGSEGV, SIGALRM, 40 };
	const uint64_t base = WEAN_SIG(SIGPIPE) | WEAN_SIG(SIGCHLD) | WEAN_SIG(SIGXFSZ);
	const uint64_t all = ~0ULL;
	struct wean_options opt = { .in = WEAN_PIPE, .flags = way(_i) };
	struct wean_child child;
	char *path = report_path();

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		ignore_raw(ignored[i]);
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		handle(caught[i], on_tick);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof all);
	kill(getpid(), SIGUSR2);
	kill(getpid(), SIGTERM);
	start(&child, KID("report", path, "--then", "exit-on-eof"), &opt);
	uint64_t wanted = set_of_all((uintptr_t)SIG_IGN) & ~base;
	ck_assert_uint_eq(pending(), WEAN_SIG(SIGUSR2) | WEAN_SIG(SIGTERM));
	/* Its status is wanted, which an ignored SIGCHLD hides from old kernels. */
	signal(SIGCHLD, SIG_DFL);
	close(child.in);
	child.in = -1;
	ck_assert_int_eq(finish(&child).code, 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	unlink(path);
	ck_assert_uint_eq(report_mask(r, "sigblk"), 0);
	ck_assert_uint_eq(report_mask(r, "sigpnd"), 0);
	ck_assert_uint_eq(report_mask(r, "sigcgt"), 0);
	ck_assert_uint_eq(report_mask(r, "sigign"), wanted);
	ck_assert(wanted & WEAN_SIG(SIGINT) && wanted & WEAN_SIG(32) &&
	          wanted & WEAN_SIG(64));
	ck_assert_int_eq(ticks, 0);
	report_free(r);
}
END_TEST

/* Seen by a child of either kind. */
static struct {
	pid_t host;
	volatile sig_atomic_t here, elsewhere;
} *runs;

static void on_any(int sig)
{
	(void)sig;
	if (syscall(SYS_getpid) == runs->host)
		runs->here++;
	else
		runs->elsewhere++;
}

static void watch_runs(void)
{
	runs = mmap(NULL, sizeof *runs, PROT_READ | PROT_WRITE,
	            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(runs, MAP_FAILED);
	runs->host = getpid();
}

/* By default these do nothing. */
static void act_harmless(pid_t child)
{
	kill(child, SIGURG);
	kill(child, SIGWINCH);
	kill(child, SIGCHLD);
}

START_TEST(a_handler_of_the_host_never_runs_in_a_child)
{
	struct wean_options opt = { .flags = way(_i) };
	struct trap trap;

	watch_runs();
	for (int sig = 1; sig <= 31; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			handle(sig, on_any);
	if (!trap_set(&trap, "held", act_harmless))
		SKIP("no leases on %s", scratch);
	const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 8, .path = trap.path };
	opt.fds = &fd;
	opt.nfds = 1;
	ck_assert_int_eq(run(KID("exit", "9"), &opt), 9);
	trap_sprung(&trap);
	ck_assert_int_eq(runs->elsewhere, 0);
	raise(SIGURG);
	ck_assert_int_ge(runs->here, 1);
}
END_TEST

START_TEST(a_timer_at_1_khz_disturbs_no_start)
{
	int n = scaled(200);
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } };
	struct wean_options opt = { .flags = way(_i) };
	struct wean_options bad = { .dir = "/absent", .flags = way(_i) };
	struct wean_child child;
	int wrong = 0;

	watch_runs();
	handle(SIGALRM, on_any);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &each, NULL), 0);
	for (int i = 0; i < n; i++) {
		struct wean_status status = { 0 };
		wrong += wean_spawn(&child, KID("exit", "5"), &opt) != 0 ||
		         wean_wait(&child, -1, &status) != 0 || status.code != 5;
		wean_release(&child);
		wrong += wean_spawn(&child, KID("exit", "0"), &bad) != ENOENT ||
		         child.stage != WEAN_STAGE_DIR;
	}
	each = (struct itimerval){ { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &each, NULL);
	ck_assert_int_eq(wrong, 0);
	ck_assert_int_gt(runs->here, 0);
	ck_assert_int_eq(runs->elsewhere, 0);
}
END_TEST

/* ---- failures ---- */

static const struct wean_fd absent_fd = { .kind = WEAN_OPEN, .target = 5,
                                          .path = "/absent/file" };

static int fail_once(int i, unsigned long long flags)
{
	struct wean_options opts[] = {
		{ .dir = "/absent", .in = WEAN_PIPE },
		{ .fds = &absent_fd, .nfds = 1, .out = WEAN_PIPE },
		{ .file = "/absent/program", .in = WEAN_PIPE, .err = WEAN_PIPE },
		{ .file = "wean-no-such-program" },
		{ .in = -1 },
	};
	static const int stages[] = { WEAN_STAGE_DIR, WEAN_STAGE_OPEN, WEAN_STAGE_EXEC,
	                              WEAN_STAGE_EXEC, WEAN_STAGE_OPTIONS };
	struct wean_child child;
	int kind = i % 5;

	opts[kind].flags = flags;
	return wean_spawn(&child, KID("exit", "0"), &opts[kind]) ==
	       (kind == 4 ? EINVAL : ENOENT) && child.stage == stages[kind];
}

START_TEST(many_failures_leave_nothing)
{
	struct baseline b;
	int right = 0;

	fail_once(0, way(_i));
	baseline_take(&b);
	int before = outstanding;
	int n = scaled(800);
	for (int i = 0; i < n; i++)
		right += fail_once(i, way(_i));
	int after = outstanding;
	ck_assert_int_eq(right, n);
	ck_assert_int_eq(after, before);
	baseline_same(&b);
}
END_TEST

static atomic_int stop;

/* A host's own reaper: it must not get what is the library's. */
static void *reap_all(void *arg)
{
	atomic_int *reaped = arg;

	while (!stop) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			++*reaped;
		sched_yield();
	}
	return NULL;
}

START_TEST(a_failed_start_is_not_seen_by_the_host)
{
	atomic_int reaped = 0;
	int right = 0, n = scaled(200);
	pthread_t thread;

	watch_runs();
	handle(SIGCHLD, on_any);
	ck_assert_int_eq(pthread_create(&thread, NULL, reap_all, &reaped), 0);
	for (int i = 0; i < n; i++)
		right += fail_once(i, way(_i));
	stop = 1;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(right, n);
	ck_assert_int_eq(reaped, 0);
	ck_assert_int_eq(runs->here + runs->elsewhere, 0);
	ck_assert_uint_eq(pending(), 0);
}
END_TEST

START_TEST(a_host_that_ignores_sigchld_is_told_of_failures)
{
	int right = 0, n = scaled(200);

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < n; i++)
		right += fail_once(i, way(_i));
	ck_assert_int_eq(right, n);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *host_suite(void)
{
	Suite *s = suite_create("host");
	TCase *t = tcase_create("allocator and signals");

	tcase_set_tags(t, "native");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, a_child_never_allocates, 0, WAYS);
	tcase_add_loop_test(t, an_ordinary_start_does_not_allocate_at_all, 0, WAYS);
	tcase_add_loop_test(t, a_child_starts_with_the_base_whatever_the_host_has_set, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_handler_of_the_host_never_runs_in_a_child, 0, WAYS);
	tcase_add_loop_test(t, a_timer_at_1_khz_disturbs_no_start, 0, WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("failures");
	tcase_set_tags(t, "native"); /* the allocator is the whole program's */
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, many_failures_leave_nothing, 0, WAYS);
	tcase_add_loop_test(t, a_failed_start_is_not_seen_by_the_host, 0, WAYS);
	tcase_add_loop_test(t, a_host_that_ignores_sigchld_is_told_of_failures, 0, WAYS);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(host_suite)
