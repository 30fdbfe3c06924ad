/* test_threads.c - starts from several threads, and from threads unlike the others. */
#define _GNU_SOURCE
#include "spawning.h"

#include <sched.h>
#include <semaphore.h>

enum { THREADS = 8 };

static int each; /* starts of a thread */

/* No assertion here: Check's are not for threads. */
static int start_one(int thread, int i)
{
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE,
	                            .flags = way(i % 2) };
	struct wean_status status = { 0 };
	struct wean_child child;
	char word[32], code[8], text[64] = "";

	snprintf(word, sizeof word, "%d-%d", thread, i);
	snprintf(code, sizeof code, "%d", (thread * each + i) % 256);
	if (wean_spawn(&child, KID("echo", word, "--then", "exit", code), &opt))
		return 0;
	FILE *out = fdopen(child.out, "r");
	child.out = -1;
	int right = fgets(text, sizeof text, out) && getc(out) == EOF &&
	            text[strlen(word)] == '\n' && !strncmp(text, word, strlen(word));
	fclose(out);
	right &= !wean_wait(&child, -1, &status) && status.kind == WEAN_EXITED &&
	         status.value == (thread * each + i) % 256;
	wean_release(&child);
	return right;
}

static int fail_one(unsigned long long flags)
{
	struct wean_options opt = { .file = "/absent", .in = WEAN_PIPE, .flags = flags };
	struct wean_child child;

	return wean_spawn(&child, KID("exit", "0"), &opt) == ENOENT &&
	       child.stage == WEAN_STAGE_EXEC;
}

static void *start_many(void *arg)
{
	int thread = *(int *)arg, right = 0;

	for (int i = 0; i < each; i++)
		right += i % 5 == 4 ? fail_one(way(i % 2)) : start_one(thread, i);
	*(int *)arg = right;
	return NULL;
}

START_TEST(eight_threads_start_children_side_by_side)
{
	pthread_t threads[THREADS];
	int results[THREADS];
	struct baseline b;

	each = scaled(40);
	for (int i = 0; i < THREADS; i++) {
		results[i] = i;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, start_many,
		                                &results[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(results[i], each);
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
	struct wean_options opt = { .fds = &fd, .nfds = 1, .in = WEAN_PIPE,
	                            .out = WEAN_PIPE, .flags = way(*(int *)arg) };
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
	if (unshare(CLONE_FILES))
		_exit(77);
	if (close(300) || open_at(300) != 300)
		_exit(96);
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
	char path[64], state[256];

	/* Of the thread: that of the process is not the kernel's under an emulator. */
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
	do {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, state, sizeof state - 1);
		state[n > 0 ? n : 0] = '\0';
		close(fd);
	} while (!strstr(state, ") Z "));
	return own_file_arrives(arg);
}

/* In a process of its own, whose main thread ends. */
static int in_thread(void *(*run_it)(void *), int arg)
{
	static int way_to_start;
	int status;

	way_to_start = arg;
	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, run_it, &way_to_start))
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
	int left = in_thread(own_table, _i);
	release_descriptors(&f);
	if (left == 77)
		SKIP("a table of its own: %s", refused_here());
	ck_assert_int_eq(left, 0);
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

static Suite *threads_suite(void)
{
	Suite *s = suite_create("threads");
	TCase *t = tcase_create("threads");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, eight_threads_start_children_side_by_side);
	tcase_add_loop_test(t, a_thread_with_a_table_of_its_own_passes_its_own_files, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_thread_that_outlives_the_main_thread_passes_files, 0,
	                    WAYS);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(threads_suite)
