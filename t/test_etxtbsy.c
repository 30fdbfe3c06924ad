/* test_etxtbsy.c - a program can be run as soon as it was written and closed, whatever
 * else is started meanwhile.
 *
 * WEAN_SCALE=150 makes a long run of it.  A child of another thread may hold the file
 * open for writing between its start and its exec; the library keeps that time short and
 * repeats an exec that meets it.  With BUSY_TRIES in src/child.c set to 0 the numbers
 * that are printed are no longer 0: a few in ten thousand. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "spawning.h"

#include <sched.h>

enum { WRITERS = 2, OTHERS = 2 };

/* ---- a program, written -------------------------------------------------- */

static struct {
	char *data;
	size_t size;
} image;

static void load_image(void)
{
	if (!image.data)
		image.data = read_all(kid(), &image.size);
}

static int open_program(const char *path)
{
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
	if (fd < 0 || write(fd, image.data, image.size) != (ssize_t)image.size)
		abort();
	return fd;
}

/* ---- threads ------------------------------------------------------------- */

struct race {
	struct wean_options o;
	int rounds, left;
	int over;           /* no writer is at work any more */
	int busy, failed, others;
};

static int take_one(int *left)
{
	return __atomic_fetch_sub(left, 1, __ATOMIC_RELAXED) > 0;
}

static int start_and_end(char *program, const struct wean_options *o)
{
	char *argv[] = { program, (char[]){ "exit" }, (char[]){ "7" }, NULL };
	struct wean_child child;
	struct wean_status status;
	int error = wean_spawn(&child, argv, o);

	if (!error && (wean_wait(&child, -1, &status) || status.code != 7))
		error = EPROTO;
	wean_release(&child);
	return error;
}

static void *write_and_start(void *arg)
{
	struct race *r = arg;
	char path[64];

	snprintf(path, sizeof path, "%s/program-%d", scratch, (int)syscall(SYS_gettid));
	while (take_one(&r->left)) {
		int fd = open_program(path);
		sched_yield(); /* so that others start something just now */
		close(fd);
		int error = start_and_end(path, &r->o);
		if (error)
			__atomic_fetch_add(error == ETXTBSY ? &r->busy : &r->failed, 1,
			                   __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *start_others(void *arg)
{
	struct race *r = arg;

	do {
		if (start_and_end(kid(), &r->o))
			__atomic_fetch_add(&r->failed, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&r->others, 1, __ATOMIC_RELAXED);
	} while (!__atomic_load_n(&r->over, __ATOMIC_ACQUIRE));
	return NULL;
}

static void run_race(struct race *r)
{
	pthread_t threads[WRITERS + OTHERS];

	r->left = r->rounds;
	for (int i = 0; i < WRITERS + OTHERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, i < WRITERS ? write_and_start
		                                : start_others, r), 0);
	for (int i = 0; i < WRITERS + OTHERS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		if (i == WRITERS - 1)
			__atomic_store_n(&r->over, 1, __ATOMIC_RELEASE);
	}
}

static const struct {
	const char *name;
	struct wean_options o;
	int part; /* of the rounds */
} races[] = {
	{ "without a pipe", { 0 }, 1 },
	{ "with a pipe", { .out = WEAN_PIPE }, 1 },
	{ "copy of the memory", { .flags = WEAN_NO_SHARED_MEMORY, .in = WEAN_PIPE }, 4 },
};

START_TEST(a_program_just_written_runs_whatever_other_threads_start)
{
	struct race r = { .o = races[_i].o, .rounds = scaled(100) / races[_i].part };
	struct baseline b;

	load_image();
	kid();
	make_a_thread();
	baseline_take(&b);
	run_race(&r);
	errno = b.error;
	baseline_same(&b);
	printf("%s: busy %d of %d, among %d others\n", races[_i].name, r.busy, r.rounds,
	       r.others);
	fflush(stdout);
	ck_assert_int_eq(r.failed, 0);
	ck_assert_int_gt(r.others, r.rounds / 20);
	ck_assert_int_eq(r.busy, 0);
}
END_TEST

/* ---- one thread ---------------------------------------------------------- */

/* The other child is alive all the time; nobody marked the file close-on-exec. */
START_TEST(a_child_started_while_a_program_is_written_does_not_keep_it_busy)
{
	struct wean_options held = { .in = WEAN_PIPE, .flags = way(_i) };
	char *path = at("program");

	load_image();
	for (int i = 0; i < scaled(20); i++) {
		struct wean_child other;
		int fd = open_program(path);

		start(&other, KID("exit-on-eof"), &held);
		close(fd);
		int error = start_and_end(path, &(struct wean_options){ .flags = way(_i) });
		ck_assert_msg(!error, "round %d: %s", i, strerror(error));
		close(other.in);
		other.in = -1;
		ck_assert_int_eq(finish(&other).code, 0);
	}
}
END_TEST

static Suite *etxtbsy_suite(void)
{
	Suite *s = suite_create("etxtbsy");
	TCase *threads = tcase_create("threads"), *single = tcase_create("single");

	tcase_set_timeout(threads, 600);
	tcase_set_tags(threads, "exec");
	tcase_set_timeout(single, 60);
	tcase_add_unchecked_fixture(threads, scratch_make, scratch_remove);
	tcase_add_loop_test(threads, a_program_just_written_runs_whatever_other_threads_start,
	                    0, COUNT(races));
	tcase_add_unchecked_fixture(single, scratch_make, scratch_remove);
	tcase_add_loop_test(single,
	        a_child_started_while_a_program_is_written_does_not_keep_it_busy, 0, WAYS);
	suite_add_tcase(s, threads);
	suite_add_tcase(s, single);
	return s;
}

RUN_WITH_STDIO_ALONE(etxtbsy_suite)
