/* test_popen_threads.c - streams of many threads at once, and of copies of the process that
 * are forked meanwhile. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "talking.h"

#include <wean_popen.h>

enum { N = 3 };

static int stop;

static int is_to_stop(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* A stream, by one of the ways in turn: whether it did what it should. */
static int one_stream(int i, char *argv[])
{
	FILE *f = wean_popenv(argv, i % 2 ? "r" : "w");
	struct wean_status status = { 0 };

	if (!f)
		return 0;
	if (i % 5 == 4)
		return wean_pclose_status(f, -1, &status) == 0 && status.code == 7;
	return wean_pclose(f) == 7 << 8;
}

static void *open_and_close(void *arg)
{
	char *argv[] = { kid(), (char[]){ "exit" }, (char[]){ "7" }, NULL };
	intptr_t bad = 0;

	for (int i = 0; arg ? !is_to_stop() : i < scaled(25); i++)
		bad += !one_stream(i, argv);
	return (void *)bad;
}

static void start_threads(pthread_t *threads, void *arg)
{
	kid();
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, open_and_close, arg), 0);
}

static void join_threads(pthread_t *threads)
{
	void *bad;

	for (int i = 0; i < N; i++) {
		pthread_join(threads[i], &bad);
		ck_assert_int_eq((intptr_t)bad, 0);
	}
}

START_TEST(each_thread_gets_the_status_of_its_own)
{
	pthread_t threads[N];
	struct baseline b;

	warm_up_threads();
	baseline_take(&b);
	start_threads(threads, NULL);
	join_threads(threads);
	errno = b.error;
	baseline_same(&b);
}
END_TEST

static void *close_in_thread(void *stream)
{
	return (void *)(intptr_t)wean_pclose(stream);
}

START_TEST(another_thread_may_close_it)
{
	FILE *f = wean_popenv(KID("exit", "7"), "r");
	pthread_t thread;
	void *status;

	ck_assert_int_eq(pthread_create(&thread, NULL, close_in_thread, f), 0);
	pthread_join(thread, &status);
	ck_assert_int_eq((intptr_t)status, 7 << 8);
}
END_TEST

/* A close that waits holds no other stream up. */
START_TEST(others_go_on_while_one_waits)
{
	FILE *f = wean_popenv(KID("exit-on-eof"), "w");
	int end = fcntl(fileno(f), F_DUPFD_CLOEXEC, 50);
	char *argv[] = { kid(), (char[]){ "exit" }, (char[]){ "7" }, NULL };
	pthread_t thread;
	void *status;

	ck_assert_int_eq(pthread_create(&thread, NULL, close_in_thread, f), 0);
	for (int i = 0; i < 20; i++)
		ck_assert(one_stream(i, argv));
	close(end);
	pthread_join(thread, &status);
	ck_assert_int_eq((intptr_t)status, 0);
}
END_TEST

/* What a copy does, to whom its parent's locks and half-made streams have come. */
static _Noreturn void in_a_copy(FILE *inherited)
{
	char *argv[] = { kid(), (char[]){ "exit" }, (char[]){ "7" }, NULL };

	signal(SIGALRM, SIG_DFL);
	alarm(30); /* for what takes some milliseconds */
	int bad = 0;

	bad |= !one_stream(1, argv);
	bad |= wean_pclose(inherited) != -1 || errno != ECHILD;
	_exit(bad);
}

START_TEST(a_copy_that_is_forked_meanwhile_can_go_on)
{
	pthread_t threads[N];
	int status;

	FILE *f = wean_popenv(KID("exit-on-eof"), "w");
	start_threads(threads, f);
	for (int i = 0; i < scaled(120); i++) {
		pid_t pid = fork();

		if (pid == 0)
			in_a_copy(f);
		ck_assert_int_gt(pid, 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(status == 0, "copy %d: %#x", i, (unsigned)status);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	join_threads(threads);
	ck_assert_int_eq(wean_pclose(f), 0);
}
END_TEST

static Suite *popen_threads_suite(void)
{
	Suite *s = suite_create("popen threads");
	TCase *t = tcase_create("popen threads");

	tcase_add_test(t, each_thread_gets_the_status_of_its_own);
	tcase_add_test(t, another_thread_may_close_it);
	tcase_add_test(t, others_go_on_while_one_waits);
	tcase_add_test(t, a_copy_that_is_forked_meanwhile_can_go_on);
	suite_add_tcase(s, t);
	return s;
}

RUN_WITH_STDIO_ALONE(popen_threads_suite)
