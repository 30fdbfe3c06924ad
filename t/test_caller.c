/* test_caller.c - no call changes anything of its caller's. */
#define _GNU_SOURCE
#include "spawning.h"

#include <sys/file.h>

/* ---- a caller with something to lose ------------------------------------ */

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
}

static void become_unusual(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal,
	                        .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	uint64_t mask = WEAN_SIG(SIGUSR1) | WEAN_SIG(SIGCHLD) | WEAN_SIG(32) |
	                WEAN_SIG(64);
	char *file = write_text("file", 0600, "abc");

	sigaddset(&sa.sa_mask, SIGWINCH);
	sigaddset(&sa.sa_mask, SIGRTMAX);
	for (int sig = 1; sig < 32; sig += 3)
		if (sig != SIGKILL && sig != SIGSTOP)
			ck_assert_int_eq(sigaction(sig, &sa, NULL), 0);
	ck_assert(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	ck_assert(signal(SIGINT, SIG_IGN) != SIG_ERR);
	ck_assert_int_eq(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, 8), 0);
	ck_assert_int_eq(chdir(scratch), 0);
	umask(027);
	soft_limit(RLIMIT_NOFILE, 200);
	soft_limit(RLIMIT_CORE, 4096);
	int fd = open(file, O_RDWR | O_APPEND | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_eq(dup2(fd, 50), 50);
	ck_assert_int_eq(dup3(fd, 150, O_CLOEXEC), 150);
	ck_assert_int_eq(dup2(open(scratch, O_PATH | O_CLOEXEC), 60), 60);
}

/* ---- one call at a time ------------------------------------------------- */

static struct wean_child child;
static struct wean_status status;
static char text[4096];
static char *argv[] = { "/absent/program", NULL };

static int look(void) { return wean_wait(&child, 0, &status); }
static int wait_a_while(void) { return wean_wait(&child, 5, &status); }
static int wait_for_ever(void) { return wean_wait(&child, -1, &status); }
static int wait_for_none(void) { return wean_wait(NULL, -1, &status); }
static int ask(void) { return wean_kill(&child, 0); }
static int end(void) { return wean_kill(&child, SIGKILL); }
static int kill_none(void) { return wean_kill(NULL, SIGKILL); }
static int bad_signal(void) { return wean_kill(&child, 4711); }
static int spawn_none(void) { return wean_spawn(NULL, argv, NULL); }
static int explain_none(void) { return wean_explain(NULL, argv, NULL, 2, text, 9); }
static int version(void) { return *wean_version() == '\0'; }
static int stage(void) { return strcmp(wean_stage_name(WEAN_STAGE_EXEC), "exec"); }
static int bad_stage(void) { return strcmp(wean_stage_name(-5), "unknown"); }
static int method(void) { return *wean_method_name(child.method) == '\0'; }

static int explain(int which, int error, size_t size)
{
	struct wean_child failed = { .stage = which, .index = -1 };

	return wean_explain(&failed, argv, NULL, error, text, size);
}

static int explain_exec(void) { return explain(WEAN_STAGE_EXEC, EACCES, sizeof text); }
static int explain_size(void) { return explain(WEAN_STAGE_EXEC, E2BIG, sizeof text); }
static int explain_short(void) { return explain(WEAN_STAGE_DIR, ENOENT, 3); }
static int explain_odd(void) { return explain(99, 99999, sizeof text); }

#define UNCHANGED(call, result) unchanged(#call, call, result)

/* There may be children meanwhile. */
static void unchanged(const char *name, int (*call)(void), int result)
{
	struct baseline before, now;
	char difference[BASELINE_TEXT];

	baseline_collect(&before);
	errno = BASELINE_ERRNO;
	int got = call(), error = errno;
	baseline_collect(&now);
	ck_assert_msg(got == result, "%s: %d, not %d", name, got, result);
	ck_assert_msg(error == BASELINE_ERRNO, "%s: errno %d", name, error);
	ck_assert_msg(!baseline_fds_differ(&before, &now, difference) &&
	              !baseline_rest_differs(&before, &now, difference),
	              "%s: %s", name, difference);
	free(before.fds);
	free(now.fds);
}

/* Only the pidfd and the ends may be new; the rest is as it was. */
static void only_gained(struct baseline *b, int n)
{
	struct baseline now;
	char difference[BASELINE_TEXT];
	size_t at = 0;

	ck_assert_int_eq(errno, BASELINE_ERRNO);
	baseline_collect(&now);
	ck_assert_msg(!baseline_rest_differs(b, &now, difference), "%s", difference);
	ck_assert_uint_eq(now.nfds, b->nfds + (size_t)n);
	for (size_t i = 0; i < now.nfds && at < b->nfds; i++)
		if (now.fds[i].number == b->fds[at].number)
			ck_assert_msg(!baseline_fd_differs(&b->fds[at++], &now.fds[i],
			                                   difference), "%s", difference);
	ck_assert_uint_eq(at, b->nfds);
	free(now.fds);
}

START_TEST(no_call_changes_its_caller)
{
	const struct wean_fd fds[] = {
		{ .kind = WEAN_DUP, .target = 1, .source = 50 },
		{ .kind = WEAN_KEEP, .target = 150 },
		{ .kind = WEAN_OPEN, .target = 9, .path = "made",
		  .oflag = O_CREAT | O_RDWR },
	};
	char *edit[] = { "A=1", NULL };
	struct wean_options opt = { .fds = fds, .nfds = 3, .in = WEAN_PIPE,
	                            .err = WEAN_PIPE, .env_edit = edit, .dir = "/",
	                            .dirfd = 60,
	                            .flags = WEAN_DIR_FD | WEAN_NONBLOCK | way(_i) };
	struct baseline b;

	become_unusual();
	baseline_take(&b);
	ck_assert_int_eq(wean_spawn(&child, KID("cat", "--then", "pause"), &opt), 0);
	only_gained(&b, 3);
	UNCHANGED(look, ETIMEDOUT);
	UNCHANGED(wait_a_while, ETIMEDOUT);
	UNCHANGED(ask, 0);
	UNCHANGED(bad_signal, EINVAL);
	UNCHANGED(end, 0);
	UNCHANGED(wait_for_ever, 0);
	ck_assert_int_eq(status.code, 128 + SIGKILL);
	UNCHANGED(wait_for_ever, 0);
	UNCHANGED(look, 0);
	UNCHANGED(ask, ESRCH);
	errno = BASELINE_ERRNO;
	wean_release(&child);
	baseline_same(&b);
	UNCHANGED(look, ESRCH);
	UNCHANGED(ask, ESRCH);
}
END_TEST

START_TEST(no_refused_call_changes_its_caller)
{
	become_unusual();
	UNCHANGED(wait_for_none, EINVAL);
	UNCHANGED(kill_none, EINVAL);
	UNCHANGED(spawn_none, EINVAL);
	UNCHANGED(explain_none, EINVAL);
	UNCHANGED(version, 0);
	UNCHANGED(stage, 0);
	UNCHANGED(bad_stage, 0);
	UNCHANGED(method, 0);
	UNCHANGED(explain_exec, 0);
	UNCHANGED(explain_size, 0);
	UNCHANGED(explain_short, EMSGSIZE);
	UNCHANGED(explain_odd, 0);
}
END_TEST

START_TEST(no_failed_start_changes_its_caller)
{
	static const struct wean_fd absent = { .kind = WEAN_OPEN, .target = 1,
	                                       .path = "/absent/file" };
	static const struct wean_fd unopened = { .kind = WEAN_DUP, .target = 1,
	                                         .source = 99 };
	struct wean_options opt = { .in = WEAN_PIPE, .flags = way(_i) };

	become_unusual();
	refused(argv, &opt, ENOENT, WEAN_STAGE_EXEC, -1);
	opt.dir = "absent";
	refused(argv, &opt, ENOENT, WEAN_STAGE_DIR, -1);
	opt.fds = &absent;
	opt.nfds = 1;
	refused(argv, &opt, ENOENT, WEAN_STAGE_OPEN, 0);
	opt.fds = &unopened;
	refused(argv, &opt, EBADF, WEAN_STAGE_FD, 0);
	opt.in = 99;
	refused(argv, &opt, EINVAL, WEAN_STAGE_OPTIONS, 1);
}
END_TEST

/* ---- what a baseline does not see --------------------------------------- */

/* A close in a table that is still shared would drop them. */
START_TEST(locks_of_the_caller_stay)
{
	char *path = write_text("locked", 0600, ""), wanted[64];
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const struct wean_fd reopened = { .kind = WEAN_OPEN, .target = fd, .path = path,
	                                  .oflag = O_RDWR };
	struct wean_options opt = { .fds = &reopened, .nfds = 1, .flags = way(_i) };
	char number[16];

	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(fcntl(fd, F_SETLK, &lock), 0);
	snprintf(number, sizeof number, "%d", fd);
	snprintf(wanted, sizeof wanted, "flock held\nfcntl %d\n", (int)getpid());
	for (int i = 0; i < 3; i++)
		ck_assert_str_eq(output(KID("lock-test", number), &opt), wanted);
}
END_TEST

/* Neither one that is over nor one that runs is the library's. */
START_TEST(other_children_of_the_caller_are_left_alone)
{
	struct wean_options opt = { .flags = way(_i) };
	struct wean_status got;
	int over;
	siginfo_t info;

	pid_t ended = fork();
	if (!ended)
		_exit(33);
	pid_t running = fork();
	if (!running)
		for (;;)
			pause();
	ck_assert_int_eq(waitid(P_PID, (id_t)ended, &info, WEXITED | WNOWAIT), 0);
	for (int i = 0; i < 5; i++) {
		start(&child, KID("exit", "0"), &opt);
		ck_assert_int_eq(wean_wait(&child, i ? -1 : 60000, &got), 0);
		ck_assert_int_eq(got.code, 0);
		wean_release(&child);
		ck_assert_int_eq(wean_spawn(&child, argv, &opt), ENOENT);
	}
	ck_assert_int_eq(waitpid(ended, &over, WNOHANG), ended);
	ck_assert_int_eq(WEXITSTATUS(over), 33);
	ck_assert_int_eq(waitpid(running, &over, WNOHANG), 0);
	kill(running, SIGKILL);
	ck_assert_int_eq(waitpid(running, &over, 0), running);
}
END_TEST

/* ---- cancellation ------------------------------------------------------- */

static volatile int passed;

/* A cancel waits for this thread at the first cancellation point. */
static void *call_all(void *arg)
{
	struct wean_options opt = *(struct wean_options *)arg;

	pthread_cancel(pthread_self());
	passed += wean_spawn(&child, argv, &opt) == ENOENT;
	passed += wean_explain(&child, argv, &opt, ENOENT, text, sizeof text) == 0;
	passed += wean_spawn(&child, KID("exit-on-eof"), &opt) == 0;
	passed += wean_wait(&child, 0, NULL) == ETIMEDOUT;
	passed += wean_wait(&child, 5, NULL) == ETIMEDOUT;
	passed += wean_kill(&child, SIGTERM) == 0;
	passed += wean_wait(&child, -1, &status) == 0;
	wean_release(&child);
	passed++;
	pthread_testcancel();
	return NULL;
}

START_TEST(no_call_is_a_cancellation_point)
{
	struct wean_options opt = { .in = WEAN_PIPE, .flags = way(_i) };
	struct baseline b;
	pthread_t thread;
	void *result;

	kid();
	ck_assert_int_eq(pthread_create(&thread, NULL, call_all, &opt), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_int_eq(passed, 8);
	ck_assert_int_eq(status.code, 128 + SIGTERM);
	baseline_take(&b);
	baseline_same(&b);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *caller_suite(void)
{
	Suite *s = suite_create("caller");
	TCase *t = tcase_create("caller");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, no_call_changes_its_caller, 0, WAYS);
	tcase_add_test(t, no_refused_call_changes_its_caller);
	tcase_add_loop_test(t, no_failed_start_changes_its_caller, 0, WAYS);
	tcase_add_loop_test(t, locks_of_the_caller_stay, 0, WAYS);
	tcase_add_loop_test(t, other_children_of_the_caller_are_left_alone, 0, WAYS);
	tcase_add_loop_test(t, no_call_is_a_cancellation_point, 0, WAYS);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(caller_suite)
