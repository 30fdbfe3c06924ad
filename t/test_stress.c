/* test_stress.c - many children, with handlers, threads and other reapers about: each
   status is right, nothing hangs, nothing is left.  WEAN_SCALE=125 makes it 8 threads
   with 5,000 children each. */
#define _GNU_SOURCE
#include "waiting.h"

#include <stdatomic.h>

static void tell(const char *what, int n, long long begin)
{
	printf("%s: %d children in %lld ms\n", what, n, now_ms() - begin);
}

/* ---- one child --------------------------------------------------------- */

/* What went wrong in a thread, where Check's macros are of no use. */
struct mishap {
	char text[120];
};

#define MISHAP(m, ...) (snprintf((m)->text, sizeof (m)->text, __VA_ARGS__), 1)

static int status_differs(struct mishap *m, const struct wean_status *s, int value,
                          int may_be_unknown)
{
	if (may_be_unknown && s->kind == WEAN_UNKNOWN && s->code == 255)
		return 0;
	if (s->kind == WEAN_EXITED && s->value == value && s->code == value)
		return 0;
	return MISHAP(m, "kind %d, value %d, code %d; wanted %d", s->kind, s->value,
	              s->code, value);
}

/* Starts, waits, releases. */
static int one_child(struct mishap *m, int value, unsigned long long flags,
                     int may_be_unknown)
{
	struct wean_options opt = { .sigignore = WEAN_SIG(SIGUSR1), .flags = flags };
	struct wean_status status;
	struct wean_child child;
	char text[12];
	int error;

	snprintf(text, sizeof text, "%d", value);
	errno = BASELINE_ERRNO;
	error = wean_spawn(&child, KID("exit", text), &opt);
	if (error)
		return MISHAP(m, "spawn: %s at %s", strerror(error),
		              wean_stage_name(child.stage));
	error = wean_wait(&child, -1, &status);
	if (error)
		return MISHAP(m, "wait: %s", strerror(error));
	wean_release(&child);
	if (errno != BASELINE_ERRNO)
		return MISHAP(m, "errno is now %d", errno);
	if (waitpid(child.pid, NULL, WNOHANG) != -1)
		return MISHAP(m, "%d is still there", child.pid);
	errno = BASELINE_ERRNO;
	return status_differs(m, &status, value, may_be_unknown);
}

static int one_failure(struct mishap *m, unsigned long long flags)
{
	char *missing[] = { (char[]){ "/nonexistent" }, NULL };
	struct wean_options opt = { .flags = flags, .in = WEAN_PIPE };
	struct wean_child child;
	int error = wean_spawn(&child, missing, &opt);

	if (error == ENOENT && child.stage == WEAN_STAGE_EXEC)
		return 0;
	return MISHAP(m, "missing program: %s at %s", strerror(error),
	              wean_stage_name(child.stage));
}

/* ---- handlers ---------------------------------------------------------- */

/* Seen by children with a memory of their own, too. */
static struct {
	pid_t host;
	volatile sig_atomic_t ran, ran_elsewhere;
} *handlers;

static void on_signal(int sig)
{
	(void)sig;
	if (syscall(SYS_getpid) == handlers->host)
		handlers->ran++;
	else
		handlers->ran_elsewhere++;
}

static void watch_handlers(int sig)
{
	handlers = mmap(NULL, sizeof *handlers, PROT_READ | PROT_WRITE,
	                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(handlers, MAP_FAILED);
	handlers->host = getpid();
	handle(sig, on_signal);
}

START_TEST(an_interval_timer_disturbs_nothing)
{
	int n = scaled(80), wrong = 0;
	struct mishap m;
	struct baseline b;
	long long begin = now_ms();

	tick();
	watch_handlers(SIGALRM);
	baseline_take(&b);
	for (int i = 0; (i < n || !handlers->ran) && !wrong; i++)
		wrong = one_child(&m, i % 256, way(_i), 0) ||
		        (i % 16 == 0 && one_failure(&m, way(_i)));
	ck_assert_msg(!wrong, "%s", m.text);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	baseline_same(&b);
	tell("a tick each millisecond", n, begin);
	printf("%d ticks\n", (int)handlers->ran);
	ck_assert_int_eq(handlers->ran_elsewhere, 0);
}
END_TEST

static atomic_int done;

/* To this process and its children, in whichever state they are. */
static void *signal_group(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!done) {
		kill(0, SIGUSR1);
		nanosleep(&(struct timespec){ 0, 20000 }, NULL);
	}
	return arg;
}

START_TEST(a_handler_never_runs_in_a_child)
{
	int n = scaled(50), wrong = 0;
	pthread_t thread;
	struct mishap m;
	long long begin = now_ms();

	ck_assert(getpgrp() == getpid() || setpgid(0, 0) == 0);
	watch_handlers(SIGUSR1);
	ck_assert_int_eq(pthread_create(&thread, NULL, signal_group, NULL), 0);
	for (int i = 0; (i < n || !handlers->ran) && !wrong; i++)
		wrong = one_child(&m, i % 256, way(_i), 0);
	done = 1;
	pthread_join(thread, NULL);
	ck_assert_msg(!wrong, "%s", m.text);
	tell("signals to the group", n, begin);
	ck_assert_int_eq(handlers->ran_elsewhere, 0);
}
END_TEST

/* ---- threads ----------------------------------------------------------- */

enum { THREADS = 8 };

struct crew {
	pthread_t thread;
	int number, children, may_be_unknown, wrong;
	struct mishap m;
};

static void *work_alone(void *arg)
{
	struct crew *c = arg;

	for (int i = 0; i < c->children && !c->wrong; i++)
		c->wrong = one_child(&c->m, (i + c->number) % 256, way(c->number % 2),
		                     c->may_be_unknown) ||
		           (i % 16 == 0 && one_failure(&c->m, way(i / 16 % 2)));
	return NULL;
}

enum { BATCH = 25 };

/* Children of one thread, of which one batch is the least. */
static int in_batches(int children)
{
	return children < BATCH ? BATCH : children;
}

static int start_batch(struct crew *c, struct wean_child *children)
{
	for (int i = 0; i < BATCH; i++) {
		char text[12];
		snprintf(text, sizeof text, "%d", c->number * BATCH + i);
		int error = wean_spawn(&children[i], KID("exit", text), NULL);
		if (error)
			return MISHAP(&c->m, "spawn: %s", strerror(error));
	}
	return 0;
}

/* Every other batch one by one, in the order in which they end. */
static int wait_batch(struct crew *c, struct wean_child *children, int one_by_one)
{
	struct wean_status statuses[BATCH];
	size_t which;
	int error;

	for (int i = 0; one_by_one && i < BATCH; i++) {
		error = wean_wait_any(children, BATCH, -1, &which);
		if (!error)
			error = wean_wait(&children[which], 0, NULL);
		if (error)
			return MISHAP(&c->m, "wait_any: %s", strerror(error));
	}
	error = wean_wait_all(children, BATCH, one_by_one ? 0 : -1, statuses);
	if (error)
		return MISHAP(&c->m, "wait_all: %s", strerror(error));
	for (int i = 0; i < BATCH; i++) {
		wean_release(&children[i]);
		if (status_differs(&c->m, &statuses[i], c->number * BATCH + i,
		                   c->may_be_unknown))
			return 1;
	}
	return 0;
}

static void *work_in_batches(void *arg)
{
	struct wean_child children[BATCH];
	struct crew *c = arg;

	for (int i = 0; i < c->children / BATCH && !c->wrong; i++)
		c->wrong = start_batch(c, children) || wait_batch(c, children, i % 2);
	return NULL;
}

/* n threads with so many children each. */
static void work(void *(*how)(void *), int n, int children, int may_be_unknown)
{
	struct crew crew[THREADS];

	memset(crew, 0, sizeof crew);
	for (int i = 0; i < n; i++) {
		crew[i].number = i;
		crew[i].children = children;
		crew[i].may_be_unknown = may_be_unknown;
		ck_assert_int_eq(pthread_create(&crew[i].thread, NULL, how, &crew[i]), 0);
	}
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(pthread_join(crew[i].thread, NULL), 0);
	for (int i = 0; i < n; i++)
		ck_assert_msg(!crew[i].wrong, "thread %d: %s", i, crew[i].m.text);
}

START_TEST(eight_threads_start_and_wait)
{
	int children = scaled(40);
	struct baseline b;
	long long begin = now_ms();

	warm_up_threads();
	baseline_take(&b);
	work(work_alone, THREADS, children, 0);
	baseline_same(&b);
	tell("eight threads", THREADS * children, begin);
}
END_TEST

START_TEST(eight_threads_start_many_and_wait_for_all)
{
	int children = in_batches(scaled(20));
	struct baseline b;
	long long begin = now_ms();

	warm_up_threads();
	baseline_take(&b);
	work(work_in_batches, THREADS, children, 0);
	baseline_same(&b);
	tell("eight threads, in batches", THREADS * children, begin);
}
END_TEST

/* ---- hosts that reap --------------------------------------------------- */

/* From Linux 6.15 on the pidfd keeps the status, so it is never unknown. */
static int may_be_unknown(void)
{
	return !kernel_has(6, 15);
}

static void on_child(int sig)
{
	int error = errno;

	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = error;
}

static void *reap_all(void *arg)
{
	while (!done)
		if (waitpid(-1, NULL, 0) < 0)
			nanosleep(&(struct timespec){ 0, 50000 }, NULL);
	return arg;
}

static void host_ignores(void)
{
	handle(SIGCHLD, SIG_IGN);
}

static void host_reaps_in_a_handler(void)
{
	handle(SIGCHLD, on_child);
}

static pthread_t reaper;

static void host_reaps_in_a_thread(void)
{
	ck_assert_int_eq(pthread_create(&reaper, NULL, reap_all, NULL), 0);
}

static void (*const hosts[])(void) = {
	host_ignores, host_reaps_in_a_handler, host_reaps_in_a_thread,
};

enum { HOSTS = sizeof hosts / sizeof *hosts };

/* One thread or several, one by one or in batches. */
START_TEST(a_host_that_reaps_gets_the_right_status_or_none)
{
	int threads = _i / HOSTS % 2 ? 4 : 1, batches = _i / HOSTS / 2;
	int children = scaled(40 / threads);
	long long begin = now_ms();
	struct baseline b;

	warm_up_threads();
	hosts[_i % HOSTS]();
	baseline_take(&b);
	if (batches)
		children = in_batches(children);
	work(batches ? work_in_batches : work_alone, threads, children, may_be_unknown());
	done = 1;
	if (_i % HOSTS == 2)
		pthread_join(reaper, NULL);
	errno = b.error;
	baseline_same(&b);
	tell("a host that reaps", threads * children, begin);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *stress_suite(void)
{
	Suite *s = suite_create("stress");
	TCase *t = tcase_create("stress");

	tcase_set_timeout(t, 900);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, an_interval_timer_disturbs_nothing, 0, WAYS);
	tcase_add_loop_test(t, a_handler_never_runs_in_a_child, 0, WAYS);
	tcase_add_test(t, eight_threads_start_and_wait);
	tcase_add_test(t, eight_threads_start_many_and_wait_for_all);
	tcase_add_loop_test(t, a_host_that_reaps_gets_the_right_status_or_none, 0,
	                    4 * HOSTS);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(stress_suite)
