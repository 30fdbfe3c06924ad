/* test_host.c - children of a host that has signals, threads and an allocator of its
   own: nothing of it runs in a child, nothing of a failed start reaches it. */
#define _GNU_SOURCE
#include "spawning.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

/* ---- an allocator that a child must not enter ---- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);

static atomic_int outstanding;
static pid_t allowed_in; /* this process alone; 0: in all */
static int allowed_nowhere;

static void enter(int change)
{
	if (allowed_nowhere || (allowed_in && syscall(SYS_getpid) != allowed_in))
		abort();
	outstanding += change;
}

void *malloc(size_t size)
{
	enter(1);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	enter(1);
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	enter(!old);
	return __libc_realloc(old, size);
}

void free(void *old)
{
	if (old)
		enter(-1);
	__libc_free(old);
}

START_TEST(a_child_never_allocates)
{
	enum { N = 200 };
	struct wean_fd fds[N];
	char *list[] = { "/absent/x", kid(), NULL };
	char *edit[] = { "A=1", "PATH", NULL };
	struct wean_options opt = { .candidates = list, .env_edit = edit, .dir = "/",
	                            .fds = fds, .nfds = N, .in = WEAN_PIPE,
	                            .flags = WEAN_SHELL_SCRIPT | way(_i) };
	struct wean_options bad = { .dir = "/absent", .out = WEAN_PIPE, .flags = way(_i) };
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
	static const int ignored[] = { SIGPIPE, SIGCHLD, SIGXFSZ, SIGINT, SIGUSR1, 32, 64 };
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
	runs = mmap(NULL, sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
	            -1, 0);
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
	enum { N = 1000 };
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } };
	struct wean_options opt = { .flags = way(_i) };
	struct wean_options bad = { .dir = "/absent", .flags = way(_i) };
	struct wean_child child;
	int wrong = 0;

	watch_runs();
	handle(SIGALRM, on_any);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &each, NULL), 0);
	for (int i = 0; i < N; i++) {
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

START_TEST(five_thousand_failures_leave_nothing)
{
	struct baseline b;
	int right = 0;

	fail_once(0, way(_i));
	baseline_take(&b);
	int before = outstanding;
	for (int i = 0; i < 2500; i++)
		right += fail_once(i, way(_i));
	int after = outstanding;
	ck_assert_int_eq(right, 2500);
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
	pthread_t thread;
	int right = 0;

	watch_runs();
	handle(SIGCHLD, on_any);
	ck_assert_int_eq(pthread_create(&thread, NULL, reap_all, &reaped), 0);
	for (int i = 0; i < 500; i++)
		right += fail_once(i, way(_i));
	stop = 1;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(right, 500);
	ck_assert_int_eq(reaped, 0);
	ck_assert_int_eq(runs->here + runs->elsewhere, 0);
	ck_assert_uint_eq(pending(), 0);
}
END_TEST

START_TEST(a_host_that_ignores_sigchld_is_told_of_failures)
{
	int right = 0;

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 500; i++)
		right += fail_once(i, way(_i));
	ck_assert_int_eq(right, 500);
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 8, EACH = 250 };

/* No assertion here: Check's are not for threads. */
static int start_one(int thread, int i)
{
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE, .flags = way(i % 2) };
	struct wean_status status = { 0 };
	struct wean_child child;
	char word[32], code[8], text[64] = "";

	snprintf(word, sizeof word, "%d-%d", thread, i);
	snprintf(code, sizeof code, "%d", (thread * EACH + i) % 256);
	if (wean_spawn(&child, KID("echo", word, "--then", "exit", code), &opt))
		return 0;
	FILE *out = fdopen(child.out, "r");
	child.out = -1;
	int right = fgets(text, sizeof text, out) && getc(out) == EOF &&
	            text[strlen(word)] == '\n' && !strncmp(text, word, strlen(word));
	fclose(out);
	right &= !wean_wait(&child, -1, &status) && status.kind == WEAN_EXITED &&
	         status.value == (thread * EACH + i) % 256;
	wean_release(&child);
	return right;
}

static void *start_many(void *arg)
{
	int thread = *(int *)arg, right = 0;

	for (int i = 0; i < EACH; i++)
		right += i % 5 == 4 ? fail_once(i / 5, way(i % 2)) : start_one(thread, i);
	*(int *)arg = right;
	return NULL;
}

START_TEST(eight_threads_start_children_side_by_side)
{
	pthread_t threads[THREADS];
	int results[THREADS];
	struct baseline b;

	for (int i = 0; i < THREADS; i++) {
		results[i] = i;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, start_many, &results[i]),
		                 0);
	}
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(results[i], EACH);
	}
	baseline_take(&b);
	ck_assert_uint_lt(b.nfds, 64);
	baseline_same(&b); /* no child is left */
}
END_TEST

/* ---- threads that are not like the others ---- */

/* Leaves with 0 if a child got this thread's own file 300, and the pipes. */
static void *own_file_arrives(void *arg)
{
	const struct wean_fd fd = { .kind = WEAN_DUP, .target = 7, .source = 300 };
	struct wean_options opt = { .fds = &fd, .nfds = 1, .in = WEAN_PIPE, .out = WEAN_PIPE,
	                            .flags = way(*(int *)arg) };
	struct wean_child child;
	struct stat st;

	if (fstat(300, &st) || wean_spawn(&child, KID("report"), &opt))
		_exit(1);
	struct report *r = report_read(child.out);
	if (!r || wean_wait(&child, -1, NULL))
		_exit(2);
	const struct report_fd *got = report_fd(r, 7);
	_exit(got && got->ino == st.st_ino && got->dev == st.st_dev &&
	      !strcmp(report_fd_list(r), "0 1 2 7") ? 0 : 3);
}

static sem_t parted, decoyed;

/* The numbers that the library's pipes will get mean other pipes in the process's own
   table, and 300 another file. */
static void *own_table(void *arg)
{
	if (unshare(CLONE_FILES) || close(300) || open_at(300) != 300)
		_exit(77);
	sem_post(&parted);
	sem_wait(&decoyed);
	return own_file_arrives(arg);
}

static void open_decoys(void)
{
	int ends[2];

	sem_wait(&parted);
	for (int i = 0; i < 8; i++)
		if (pipe2(ends, O_CLOEXEC))
			_exit(97);
	sem_post(&decoyed);
}

static void *after_the_main_thread(void *arg)
{
	char state[256];

	do {
		int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, state, sizeof state - 1);
		state[n > 0 ? n : 0] = '\0';
		close(fd);
	} while (!strstr(state, ") Z "));
	return own_file_arrives(arg);
}

/* In a process of its own, whose main thread ends. */
static int in_thread(void *(*run_it)(void *), int arg)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, run_it, &(int){ arg }))
			_exit(99);
		if (run_it == after_the_main_thread)
			pthread_exit(NULL);
		open_decoys();
		pthread_join(thread, NULL);
		_exit(98);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

START_TEST(a_thread_with_a_table_of_its_own_passes_its_own_files)
{
	struct filling f;

	fill_descriptors(&f, 400);
	sem_init(&parted, 0, 0);
	sem_init(&decoyed, 0, 0);
	ck_assert_int_eq(in_thread(own_table, _i), 0);
	release_descriptors(&f);
}
END_TEST

START_TEST(a_thread_that_outlives_the_main_thread_passes_files)
{
	struct filling f;

	fill_descriptors(&f, 400);
	close(300);
	open_at(300);
	ck_assert_int_eq(in_thread(after_the_main_thread, _i), 0);
	release_descriptors(&f);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *host_suite(void)
{
	Suite *s = suite_create("host");
	TCase *t = tcase_create("allocator and signals");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, a_child_never_allocates, 0, WAYS);
	tcase_add_loop_test(t, an_ordinary_start_does_not_allocate_at_all, 0, WAYS);
	tcase_add_loop_test(t, a_child_starts_with_the_base_whatever_the_host_has_set, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_handler_of_the_host_never_runs_in_a_child, 0, WAYS);
	tcase_add_loop_test(t, a_timer_at_1_khz_disturbs_no_start, 0, WAYS);
	suite_add_tcase(s, t);

	t = tcase_create("failures and threads");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, five_thousand_failures_leave_nothing, 0, WAYS);
	tcase_add_loop_test(t, a_failed_start_is_not_seen_by_the_host, 0, WAYS);
	tcase_add_loop_test(t, a_host_that_ignores_sigchld_is_told_of_failures, 0, WAYS);
	tcase_add_test(t, eight_threads_start_children_side_by_side);
	tcase_add_loop_test(t, a_thread_with_a_table_of_its_own_passes_its_own_files, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_thread_that_outlives_the_main_thread_passes_files, 0, WAYS);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(host_suite)
