/* test_count.c - what count counts and what a baseline notices, where the answer is
   known. */
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <sched.h>
#include <spawn.h>

#include "count.h"

static int status_of(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- count -------------------------------------------------------------- */

static void wait_for(pid_t pid)
{
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

static int bare_vfork(void *arg)
{
	char **argv = arg;

	count_begin();
	pid_t pid = vfork();
	if (!pid) {
		execve(argv[0], argv, environ);
		_exit(127);
	}
	count_end();
	return pid < 0 || status_of(pid) != 7;
}

START_TEST(vfork_and_execve_is_one_call_each)
{
	struct count c;
	char text[200];

	ck_assert_int_eq(count_calls(&c, bare_vfork, KID("exit", "7")), 0);
	ck_assert_str_eq(count_names(&c, COUNT_CHILD, text, sizeof text), "execve");
	ck_assert_uint_eq(count_total(&c, COUNT_PARENT), 1);
	ck_assert_uint_eq(count_total(&c, COUNT_BOTH), 2);
	ck_assert_int_eq(c.children, 1);
	ck_assert_int_eq(c.executed, 1);
	ck_assert_int_eq(c.calls[1].result, 0);
	ck_assert_int_eq(c.calls[0].result, c.calls[1].pid);
	count_free(&c);
}
END_TEST

static int failing_vfork(void *arg)
{
	char *argv[] = { "/nowhere/at/all", NULL };

	(void)arg;
	count_begin();
	pid_t pid = vfork();
	if (!pid) {
		execve(argv[0], argv, environ);
		_exit(127);
	}
	count_end();
	return pid < 0 || status_of(pid) != 127;
}

START_TEST(an_execve_that_failed_has_its_errno)
{
	struct count c;
	char text[200];

	ck_assert_int_eq(count_calls(&c, failing_vfork, NULL), 0);
	ck_assert_str_eq(count_names(&c, COUNT_CHILD, text, sizeof text),
	                 "execve exit_group");
	ck_assert_uint_eq(count_failed(&c, COUNT_CHILD, SYS_execve, ENOENT), 1);
	ck_assert_uint_eq(count_failed(&c, COUNT_CHILD, SYS_execve, EACCES), 0);
	ck_assert_int_eq(c.calls[c.n - 1].result, COUNT_NO_RESULT);
	ck_assert_int_eq(c.executed, 0);
	count_free(&c);
}
END_TEST

static int fork_and_close(void *arg)
{
	char **argv = arg;

	count_begin();
	pid_t pid = fork();
	if (!pid) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		execve(argv[0], argv, environ);
		_exit(127);
	}
	count_end();
	return pid < 0 || status_of(pid) != 0;
}

START_TEST(a_close_loop_is_counted_with_its_failures)
{
	struct count c;
	size_t open_fds = 0;

	open_at(900);
	for (int fd = 3; fd < 1024; fd++)
		open_fds += fcntl(fd, F_GETFD) >= 0;
	ck_assert_int_eq(count_calls(&c, fork_and_close, KID("exit", "0")), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_close), 1021);
	ck_assert_uint_eq(count_failed(&c, COUNT_CHILD, SYS_close, EBADF),
	                  1021 - open_fds);
	ck_assert_uint_eq(count_failed(&c, COUNT_CHILD, SYS_close, 0),
	                  1021 - open_fds);
	ck_assert_uint_eq(count_of(&c, COUNT_PARENT, SYS_close), 0);
	ck_assert_int_eq(c.calls[c.n - 1].nr, SYS_execve);
	count_free(&c);
}
END_TEST

static int spawn_it(void *arg)
{
	char **argv = arg;
	pid_t pid;

	count_begin();
	int error = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	count_end();
	return error || status_of(pid) != 7;
}

START_TEST(posix_spawn_shows_its_signal_calls_and_ends_in_execve)
{
	struct count c;

	ck_assert_int_eq(count_calls(&c, spawn_it, KID("exit", "7")), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_execve), 1);
	ck_assert_uint_gt(count_of(&c, COUNT_CHILD, SYS_rt_sigaction), 1); /* glibc's: 64 */
	ck_assert_uint_gt(count_of(&c, COUNT_PARENT, SYS_rt_sigprocmask), 1);
	ck_assert_int_eq(c.executed, 1);
	count_free(&c);
}
END_TEST

static char stack[1 << 16];

static int exec_it(void *arg)
{
	char **argv = arg;

	syscall(SYS_unshare, CLONE_FILES);
	execve(argv[0], argv, environ);
	_exit(127);
}

/* The way of the library: shared memory and table, no exit signal, and the wait
   that tells "executed" (ECHILD) from "died before". */
static int clone_without_exit_signal(void *arg)
{
	count_begin();
	pid_t pid = clone(exec_it, stack + sizeof stack,
	                  CLONE_VM | CLONE_VFORK | CLONE_FILES, arg);
	int over = waitpid(pid, NULL, (int)__WCLONE), error = errno;
	count_end();
	return over != -1 || error != ECHILD || status_of(pid) != 7;
}

START_TEST(a_child_without_exit_signal_is_followed)
{
	struct count c;
	char text[200];

	ck_assert_int_eq(count_calls(&c, clone_without_exit_signal,
	                             KID("exit", "7")), 0);
	ck_assert_str_eq(count_names(&c, COUNT_CHILD, text, sizeof text),
	                 "unshare execve");
	ck_assert_str_eq(count_names(&c, COUNT_PARENT, text, sizeof text),
	                 "clone wait4");
	count_free(&c);
}
END_TEST

static int die(void *arg)
{
	(void)arg;
	return kill(getpid(), SIGKILL);
}

static int clone_that_dies(void *arg)
{
	count_begin();
	pid_t pid = clone(die, stack + sizeof stack, CLONE_VM | CLONE_VFORK, arg);
	int status, over = waitpid(pid, &status, (int)__WCLONE);
	count_end();
	return over != pid || !WIFSIGNALED(status);
}

START_TEST(a_child_killed_before_exec_reaches_its_parent)
{
	struct count c;

	ck_assert_int_eq(count_calls(&c, clone_that_dies, NULL), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_kill), 1);
	ck_assert_int_eq(c.executed, 0);
	count_free(&c);
}
END_TEST

static void *umask_once(void *arg)
{
	umask(umask(077));
	return arg;
}

static int from_a_thread(void *arg)
{
	pthread_t thread;
	pid_t outside = fork();

	if (!outside)
		_exit(umask_once(arg) != arg);
	wait_for(outside);
	count_begin();
	int error = pthread_create(&thread, NULL, umask_once, arg);
	if (!error)
		error = pthread_join(thread, NULL);
	count_end();
	umask_once(arg);
	return error;
}

START_TEST(threads_count_as_the_parent_and_nothing_before_or_after_does)
{
	struct count c;

	ck_assert_int_eq(count_calls(&c, from_a_thread, NULL), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_PARENT, SYS_umask), 2);
	ck_assert_uint_eq(count_total(&c, COUNT_CHILD), 0);
	ck_assert_int_eq(c.children, 0);
	count_free(&c);
}
END_TEST

static int handled;

static void note(int sig)
{
	handled = sig;
}

/* A handler runs and a child stops and goes on, all as without the tracer. */
static int signals_and_stops(void *arg)
{
	int status;

	(void)arg;
	signal(SIGUSR1, note);
	count_begin();
	raise(SIGUSR1);
	pid_t pid = fork();
	if (!pid) {
		raise(SIGSTOP);
		_exit(5);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return 1;
	usleep(20000);
	if (waitpid(pid, &status, WNOHANG))
		return 1; /* it did not stay stopped */
	kill(pid, SIGCONT);
	count_end();
	return handled != SIGUSR1 || status_of(pid) != 5;
}

START_TEST(signals_and_stops_pass_through)
{
	struct count c;

	ck_assert_int_eq(count_calls(&c, signals_and_stops, NULL), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_PARENT, SYS_rt_sigreturn), 1);
	count_free(&c);
}
END_TEST

static int one_read(void *arg)
{
	count_begin();
	ssize_t n = read(*(int *)arg, stack, 12345);
	count_end();
	return n != 0;
}

START_TEST(arguments_are_kept)
{
	struct count c;
	int null = open("/dev/null", O_RDONLY);

	ck_assert_int_eq(count_calls(&c, one_read, &null), 0);
	ck_assert_uint_eq(c.n, 1);
	ck_assert_int_eq(c.calls[0].nr, SYS_read);
	ck_assert_uint_eq(c.calls[0].args[0], (unsigned)null);
	ck_assert_uint_eq(c.calls[0].args[2], 12345);
	ck_assert_int_eq(c.calls[0].result, 0);
	count_free(&c);
	close(null);
}
END_TEST

static int nothing(void *arg)
{
	(void)arg;
	count_begin();
	count_end();
	return 0;
}

static int no_mark(void *arg)
{
	return getppid() < 0 || arg;
}

static int no_end(void *arg)
{
	count_begin();
	return no_mark(arg);
}

static int no_begin(void *arg)
{
	count_end();
	return no_mark(arg);
}

static int fails(void *arg)
{
	count_begin();
	int error = no_mark(arg);
	count_end();
	return !error;
}

static int is_killed(void *arg)
{
	return no_end(arg) || kill(getpid(), SIGKILL);
}

static int (*const bad[])(void *) = {
	nothing, no_mark, no_end, no_begin, fails, is_killed
};

START_TEST(a_count_that_can_not_be_right_is_refused)
{
	struct count c;
	int null = open("/dev/null", O_WRONLY);

	dup2(null, 2); /* what it says is for a reader */
	ck_assert_int_eq(count_calls(&c, bad[_i], NULL), -1);
	count_free(&c);
	close(null);
}
END_TEST

START_TEST(the_counter_leaves_nothing_behind)
{
	struct baseline b;
	struct count c;

	baseline_take(&b);
	int error = count_calls(&c, bare_vfork, KID("exit", "7"));
	count_free(&c);
	errno = b.error;
	ck_assert_int_eq(error, 0);
	baseline_same(&b);
}
END_TEST

START_TEST(names_are_cut_and_calls_are_printed)
{
	struct count_call calls[] = {
		{ COUNT_CHILD, 5, SYS_close, { 3 }, -EBADF },
		{ COUNT_PARENT, 4, SYS_read, { 0 }, 1 },
		{ COUNT_CHILD, 5, 99999, { 0 }, COUNT_NO_RESULT },
	};
	struct count c = { calls, 3, 3, 1, 0 };
	char text[300], *dump;
	size_t size;
	FILE *f = open_memstream(&dump, &size);

	ck_assert_str_eq(count_names(&c, COUNT_CHILD, text, sizeof text), "close 99999");
	ck_assert_str_eq(count_names(&c, COUNT_BOTH, text, 10), "close ...");
	count_dump(&c, f);
	fclose(f);
	ck_assert_str_eq(dump, "child 5 close(0x3, 0, 0, 0, 0, 0) = -9\n"
	                 "parent 4 read(0, 0, 0, 0, 0, 0) = 1\n"
	                 "child 5 99999(0, 0, 0, 0, 0, 0)\n");
	free(dump);
}
END_TEST

/* ---- baseline ----------------------------------------------------------- */

static void leak_a_descriptor(void)
{
	errno = dup(2) < 0;
}

static void close_a_descriptor(void)
{
	close(0);
}

static void set_close_on_exec(void)
{
	fcntl(2, F_SETFD, FD_CLOEXEC);
}

static void replace_a_descriptor(void)
{
	int fd = open("/dev/zero", O_RDWR);

	dup2(fd, 2);
	close(fd);
}

static void block_signal_33(void)
{
	uint64_t mask = (uint64_t)1 << 32;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, sizeof mask);
}

static void catch_a_signal(void)
{
	signal(SIGUSR2, note);
}

static void lower_a_limit(void)
{
	struct rlimit limit = { 0, 0 };

	setrlimit(RLIMIT_CORE, &limit);
}

static void change_the_directory(void)
{
	if (chdir("/"))
		abort();
}

static void change_the_umask(void)
{
	umask(umask(0) ^ 077);
}

static void touch_errno(void)
{
	errno = 0;
}

static void leave_a_child(void)
{
	if (!fork())
		_exit(0);
}

static void do_nothing(void)
{
}

static const struct {
	void (*change)(void);
	const char *says;
} changes[] = {
	{ leak_a_descriptor, "is new" },
	{ close_a_descriptor, "descriptor 0 is closed" },
	{ set_close_on_exec, "descriptor 2 had flags 0 " },
	{ replace_a_descriptor, "descriptor 2 had" }, { block_signal_33, "signal mask" },
	{ catch_a_signal, "action of signal 12" }, { lower_a_limit, "limit 4" },
	{ change_the_directory, "directory" }, { change_the_umask, "umask" },
	{ touch_errno, "errno" },          { leave_a_child, "a child is left" },
	{ do_nothing, NULL },
};

START_TEST(a_baseline_notices_each_change)
{
	struct baseline b;
	char text[BASELINE_TEXT] = "";

	ck_assert_int_eq(chdir("/tmp"), 0);
	baseline_take(&b);
	changes[_i].change();
	if (changes[_i].change != touch_errno)
		errno = b.error;
	ck_assert_int_eq(baseline_differs(&b, text), changes[_i].says != NULL);
	if (changes[_i].says)
		ck_assert_msg(strstr(text, changes[_i].says), "%s", text);
	free(b.fds);
	while (waitpid(-1, NULL, 0) > 0)
		;
}
END_TEST

/* ---- suite -------------------------------------------------------------- */

static TCase *count_case(void)
{
	TCase *t = tcase_create("count");

	tcase_set_tags(t, "ptrace native");
	tcase_add_test(t, vfork_and_execve_is_one_call_each);
	tcase_add_test(t, an_execve_that_failed_has_its_errno);
	tcase_add_test(t, a_close_loop_is_counted_with_its_failures);
	tcase_add_test(t, posix_spawn_shows_its_signal_calls_and_ends_in_execve);
	tcase_add_test(t, a_child_without_exit_signal_is_followed);
	tcase_add_test(t, a_child_killed_before_exec_reaches_its_parent);
	tcase_add_test(t, threads_count_as_the_parent_and_nothing_before_or_after_does);
	tcase_add_test(t, signals_and_stops_pass_through);
	tcase_add_test(t, arguments_are_kept);
	tcase_add_loop_test(t, a_count_that_can_not_be_right_is_refused, 0,
	                    sizeof bad / sizeof *bad);
	tcase_add_test(t, the_counter_leaves_nothing_behind);
	tcase_add_test(t, names_are_cut_and_calls_are_printed);
	return t;
}

static Suite *count_suite(void)
{
	Suite *s = suite_create("count");
	TCase *t = tcase_create("baseline");

	tcase_add_loop_test(t, a_baseline_notices_each_change, 0,
	                    sizeof changes / sizeof *changes);
	suite_add_tcase(s, count_case());
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(count_suite)
