/* test_system.c - wean_system() and wean_systemv(): the status, and what becomes of the
 * caller's signals. */
#define _GNU_SOURCE
#include "deny.h"
#include "descriptors.h"
#include "talking.h"

#include <wean_popen.h>

static int exited(int value)
{
	return value << 8;
}

static int call(const char *command)
{
	errno = BASELINE_ERRNO;
	int status = wean_system(command);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	return status;
}

static int callv(char *const argv[])
{
	errno = BASELINE_ERRNO;
	int status = wean_systemv(argv);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	return status;
}

START_TEST(the_status_is_that_of_wait)
{
	char text[PATH_MAX + 50];
	struct baseline b;

	snprintf(text, sizeof text, "%s exit 3", kid_word());
	baseline_take(&b);
	ck_assert_int_eq(call("exit 3"), exited(3));
	ck_assert_int_eq(call("kill -9 $$"), 9);
	ck_assert_int_eq(call(text), exited(3));
	ck_assert_int_eq(callv(KID("exit", "3")), exited(3));
	ck_assert_int_eq(callv(KID("kill", "9")), 9);
	ck_assert_int_eq(callv(KID("exit", "0")), 0);
	baseline_same(&b);
}
END_TEST

START_TEST(a_missing_program_is_told_by_errno_or_by_the_shell)
{
	char *missing[] = { (char[]){ "/missing/program" }, NULL }, *none[] = { NULL };
	struct baseline b;

	int kept = fcntl(2, F_DUPFD_CLOEXEC, 30), null = open("/dev/null", O_WRONLY);
	baseline_take(&b);
	ck_assert_int_eq(wean_systemv(missing), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(wean_systemv(NULL), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(wean_systemv(none), -1);
	ck_assert_int_eq(errno, EINVAL);
	errno = b.error;
	baseline_same(&b);
	dup2(null, 2);
	int status = call("/missing/program with words");
	dup2(kept, 2);
	ck_assert_int_eq(status, exited(127));
}
END_TEST

START_TEST(asked_for_nothing_it_tells_that_there_is_a_shell)
{
	ck_assert_int_ne(call(NULL), 0);
}
END_TEST

/* Without a word of the kernel, as before Linux 6.15. */
START_TEST(there_is_one_though_another_reaps_it)
{
	signal(SIGCHLD, SIG_IGN);
	if (!deny(SYS_ioctl, ENOTTY))
		SKIP("no filter of system calls");
	ck_assert_int_eq(wean_system("exit 0"), -1);
	ck_assert_int_eq(errno, ECHILD);
	ck_assert_int_ne(call(NULL), 0);
}
END_TEST

START_TEST(or_that_there_is_none)
{
	int status;

	if (geteuid() != 0)
		SKIP("needs root");
	pid_t pid = fork();
	if (pid == 0) {
		int said = chroot(scratch) || chdir("/") || wean_system(NULL) != 0;

		said |= wean_system("exit 3") != -1 || errno != ENOENT;
		_exit(said);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* system(3) ignores SIGINT and SIGQUIT and blocks SIGCHLD meanwhile, in all threads. */
START_TEST(the_caller_gets_its_signals_meanwhile)
{
	static const int sigs[] = { SIGINT, SIGQUIT, SIGUSR1 };
	char text[50];

	handle(sigs[_i], on_tick);
	snprintf(text, sizeof text, "kill -%d $PPID; exit 3", sigs[_i]);
	ck_assert_int_eq(call(text), exited(3));
	ck_assert_int_eq(ticks, 1);
}
END_TEST

START_TEST(sigchld_is_not_held_back)
{
	sigset_t pending;

	handle(SIGCHLD, on_tick);
	ck_assert_int_eq(callv(KID("exit", "3")), exited(3));
	ck_assert_int_eq(ticks, 1);
	sigpending(&pending);
	ck_assert(!sigismember(&pending, SIGCHLD));
}
END_TEST

START_TEST(the_command_has_the_base_of_signals)
{
	sigset_t set;
	char *path = report_path();

	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	handle(SIGTERM, on_tick);
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ck_assert_int_eq(callv(KID("report", path)), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_uint_eq(report_mask(r, "sigblk"), 0);
	ck_assert_uint_eq(report_mask(r, "sigign") & (WEAN_SIG(SIGINT) | WEAN_SIG(SIGPIPE)),
	                  WEAN_SIG(SIGINT));
	report_free(r);
	unlink(path);
}
END_TEST

START_TEST(handlers_do_not_end_the_waiting)
{
	tick();
	ck_assert_int_eq(callv(KID("sleep", "50", "--then", "exit", "3")), exited(3));
	stop_ticking();
}
END_TEST

static void *several(void *arg)
{
	char value[12];
	intptr_t bad = 0;

	sprintf(value, "%d", (int)(intptr_t)arg);
	for (int i = 0; i < scaled(20); i++)
		bad += wean_systemv(KID("exit", value)) != exited((int)(intptr_t)arg);
	return (void *)bad;
}

START_TEST(threads_get_the_status_of_their_own_command)
{
	enum { N = 4 };
	pthread_t threads[N];
	void *bad;

	kid();
	for (intptr_t i = 0; i < N; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, several, (void *)i), 0);
	for (int i = 0; i < N; i++) {
		pthread_join(threads[i], &bad);
		ck_assert_ptr_null(bad);
	}
}
END_TEST

static Suite *system_suite(void)
{
	Suite *s = suite_create("system");
	TCase *t = tcase_create("system");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, the_status_is_that_of_wait);
	tcase_add_test(t, a_missing_program_is_told_by_errno_or_by_the_shell);
	tcase_add_test(t, asked_for_nothing_it_tells_that_there_is_a_shell);
	tcase_add_loop_test(t, the_caller_gets_its_signals_meanwhile, 0, 3);
	tcase_add_test(t, the_command_has_the_base_of_signals);
	tcase_add_test(t, handlers_do_not_end_the_waiting);
	tcase_add_test(t, threads_get_the_status_of_their_own_command);
	suite_add_tcase(s, t);
	t = case_that_needs(s, "signals");
	tcase_add_test(t, sigchld_is_not_held_back);
	t = case_that_needs(s, "seccomp");
	tcase_add_test(t, there_is_one_though_another_reaps_it);
	t = case_that_needs(s, "root");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, or_that_there_is_none);
	return s;
}

RUN_WITH_STDIO_ALONE(system_suite)
