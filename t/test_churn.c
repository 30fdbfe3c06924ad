/* test_churn.c - starts in eight threads, while others open, copy and close descriptors
 * without a pause, or take every number that there is.
 *
 * WEAN_SCALE=100 makes it eight threads of 5,000 starts, and 3,000 times a full table. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "spawning.h"

#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 8, CHURNERS = 2 };

/* What went wrong first, where Check's macros are of no use. */
static char mishap[200];
static atomic_int mishaps, over, started, refused_starts;

#define MISHAP(...) \
	do { \
		if (atomic_fetch_add(&mishaps, 1) == 0) \
			snprintf(mishap, sizeof mishap, __VA_ARGS__); \
	} while (0)

static void run_threads(pthread_t *threads, int n, void *(*how)(void *), void *arg)
{
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, how, arg), 0);
}

static void join_threads(pthread_t *threads, int n)
{
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

/* ---- one start ----------------------------------------------------------- */

/* Closes the pipes, too. */
static struct report *report_of(struct wean_child *child)
{
	close(child->in);
	child->in = -1;
	struct report *r = report_read(child->out);
	close(child->out);
	child->out = -1;
	return r;
}

static void look_into(struct wean_child *child, int value, const char *fds)
{
	struct wean_status status = { 0 };
	struct report *r = report_of(child);
	int error = wean_wait(child, -1, &status);

	if (!r)
		MISHAP("%d wrote no whole report", child->pid);
	else if (strcmp(report_fd_list(r), fds))
		MISHAP("a child has %s, not %s", report_fd_list(r), fds);
	if (error || status.kind != WEAN_EXITED || status.value != value)
		MISHAP("%s, kind %d, value %d, not %d", strerror(error), status.kind,
		       status.value, value);
	wean_release(child);
	if (r)
		report_free(r);
}

/* Gives 0 or EMFILE; nothing else is to come. */
static int start_reporter(int value, struct wean_options *o, const char *fds)
{
	struct wean_child child;
	char text[12];

	snprintf(text, sizeof text, "%d", value);
	o->in = o->out = WEAN_PIPE;
	int error = wean_spawn(&child, KID("report", "--then", "exit", text), o);
	if (!error)
		look_into(&child, value, fds);
	else if (error != EMFILE ||
	         (child.stage != WEAN_STAGE_PIPE && child.stage != WEAN_STAGE_LAUNCH))
		MISHAP("%s at %s", strerror(error), wean_stage_name(child.stage));
	return error;
}

static void start_missing(unsigned long long flags)
{
	struct wean_options o = { .in = WEAN_PIPE, .flags = flags };
	struct wean_child child;
	int error = wean_spawn(&child, (char *[]){ (char[]){ "/missing" }, NULL }, &o);

	if (error != ENOENT || child.stage != WEAN_STAGE_EXEC)
		MISHAP("missing: %s at %s", strerror(error), wean_stage_name(child.stage));
}

/* ---- others that open, copy and close ------------------------------------ */

/* Of a number that is this thread's: no one else may close it, or put another file
   there. */
static void still_is(int fd, ino_t inode)
{
	struct stat st;

	if (fstat(fd, &st))
		MISHAP("fstat of %d: %s", fd, strerror(errno));
	else if (st.st_ino != inode)
		MISHAP("%d is another file", fd);
}

static void must_close(int fd)
{
	if (close(fd))
		MISHAP("close of %d: %s", fd, strerror(errno));
}

/* None of these is close-on-exec. */
static void churn_once(int high)
{
	int ends[2], file = memfd_create("churn", 0), copy = dup(file);
	int far = fcntl(file, F_DUPFD, high);
	struct stat st;
	char c = 0;

	if (file < 0 || copy < 0 || far < 0 || fstat(file, &st) || pipe(ends)) {
		MISHAP("churn: %s", strerror(errno));
		return;
	}
	still_is(copy, st.st_ino);
	still_is(far, st.st_ino);
	must_close(copy);
	if (dup2(ends[1], far) != far || write(far, "x", 1) != 1 ||
	    read(ends[0], &c, 1) != 1 || c != 'x')
		MISHAP("pipe %d, %d, %d: %s", ends[0], ends[1], far, strerror(errno));
	still_is(file, st.st_ino);
	must_close(file);
	must_close(far);
	must_close(ends[0]);
	must_close(ends[1]);
}

static void *churn(void *arg)
{
	atomic_int *rounds = arg;

	do
		churn_once(100 + 50 * (++*rounds % 10));
	while (!over);
	return NULL;
}

struct crew {
	int starts;
	atomic_int number;
};

/* Every other child is given a file, every eighth start is to fail. */
static void *start_many(void *arg)
{
	struct crew *crew = arg;
	int thread = crew->number++, own = memfd_create("own", MFD_CLOEXEC);
	struct stat st;

	if (own < 0 || fstat(own, &st))
		MISHAP("own file: %s", strerror(errno));
	for (int i = 0; i < crew->starts && !mishaps; i++) {
		const struct wean_fd fd = DUP(5, own);
		struct wean_options o = { .fds = &fd, .nfds = (size_t)i / 2 % 2,
		                          .flags = way(i % 2) };

		if (start_reporter((thread + i) % 256, &o, o.nfds ? "0 1 2 5" : "0 1 2"))
			MISHAP("a start was refused");
		if (i % 8 == 7)
			start_missing(way(i / 8 % 2));
		still_is(own, st.st_ino);
		started++;
	}
	must_close(own);
	return NULL;
}

START_TEST(starts_and_descriptors_of_other_threads_do_not_meet)
{
	struct crew crew = { .starts = scaled(40) };
	pthread_t starters[THREADS], churners[CHURNERS];
	atomic_int rounds = 0;
	struct baseline b;

	NEED_DESCRIPTORS(1000);
	make_a_thread();
	baseline_take(&b);
	run_threads(churners, CHURNERS, churn, &rounds);
	run_threads(starters, THREADS, start_many, &crew);
	join_threads(starters, THREADS);
	over = 1;
	join_threads(churners, CHURNERS);
	errno = b.error;
	printf("%d starts in %d threads, %d times three files and a pipe\n", started,
	       THREADS, rounds);
	fflush(stdout);
	ck_assert_msg(!mishaps, "%d mishaps, the first: %s", mishaps, mishap);
	baseline_same(&b);
	ck_assert_int_eq(started, THREADS * crew.starts);
}
END_TEST

/* ---- a table that is full ------------------------------------------------ */

enum { LIMIT = 64, TAKES = 6 /* numbers, by three pipes */ };

static void *start_whenever(void *arg)
{
	for (int i = 0; !over && !mishaps; i++) {
		struct wean_options o = { .err = WEAN_PIPE,
		                          .flags = way(i % 2) | (i % 3 ? 0 : WEAN_NEED_PIDFD) };

		atomic_fetch_add(start_reporter(i % 256, &o, "0 1 2") ? &refused_starts
		                 : &started, 1);
	}
	return arg;
}

/* Takes what there is, and leaves so many: others let go of theirs meanwhile, so again
   and again until one was refused. */
static void fill_until_refused(int *taken, int *n, int spare)
{
	int before = refused_starts, fd;

	while (refused_starts == before && !mishaps) {
		while ((fd = dup(0)) >= 0)
			taken[(*n)++] = fd;
		if (errno != EMFILE)
			MISHAP("dup: %s", strerror(errno));
		for (int i = 0; i < spare && *n > 0; i++)
			must_close(taken[--*n]);
		sched_yield();
	}
}

static void fill_again_and_again(int times)
{
	int taken[LIMIT], n = 0;

	for (int i = 0; i < times && !mishaps; i++) {
		fill_until_refused(taken, &n, i % TAKES);
		while (n > 0)
			must_close(taken[--n]);
		for (int before = started; started == before && !mishaps; )
			sched_yield();
	}
}

START_TEST(a_table_that_is_full_now_and_then_is_told_and_nothing_is_lost)
{
	int times = scaled(30);
	pthread_t starters[THREADS];
	struct baseline b;

	make_a_thread();
	ck_assert_int_eq(set_soft_limit(LIMIT), 0);
	baseline_take(&b);
	run_threads(starters, THREADS, start_whenever, NULL);
	fill_again_and_again(times);
	over = 1;
	join_threads(starters, THREADS);
	errno = b.error;
	printf("%d starts, %d refused, %d times a full table\n", started, refused_starts,
	       times);
	fflush(stdout);
	ck_assert_msg(!mishaps, "%d mishaps, the first: %s", mishaps, mishap);
	baseline_same(&b);
	ck_assert_int_ge(started, times);
	ck_assert_int_ge(refused_starts, times);
}
END_TEST

static Suite *churn_suite(void)
{
	Suite *s = suite_create("churn");
	TCase *others = tcase_create("others"), *full = tcase_create("full table");

	tcase_set_timeout(others, 1800);
	tcase_add_unchecked_fixture(others, scratch_make, scratch_remove);
	tcase_add_test(others, starts_and_descriptors_of_other_threads_do_not_meet);
	tcase_set_timeout(full, 900);
	tcase_add_unchecked_fixture(full, scratch_make, scratch_remove);
	tcase_add_test(full, a_table_that_is_full_now_and_then_is_told_and_nothing_is_lost);
	suite_add_tcase(s, others);
	suite_add_tcase(s, full);
	return s;
}

RUN_WITH_STDIO_ALONE(churn_suite)
