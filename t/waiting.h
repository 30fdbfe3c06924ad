/* waiting.h - for the tests that wait for several children or end whole groups. */
#ifndef WAITING_H
#define WAITING_H

#include "spawning.h"

#include <sched.h>
#include <time.h>

static inline long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static inline long long now_ms(void)
{
	return now_us() / 1000;
}

/* ---- the baseline, with children alive ---- */

/* As baseline_same(), which wants none to be left. */
static inline void baseline_kept(struct baseline *b)
{
	char text[BASELINE_TEXT];
	struct baseline now;

	ck_assert_int_eq(errno, b->error);
	baseline_collect(&now);
	ck_assert_msg(!baseline_fds_differ(b, &now, text) &&
	              !baseline_rest_differs(b, &now, text), "%s", text);
	free(b->fds);
	free(now.fds);
	b->fds = NULL;
	errno = b->error;
}

static inline void *nothing(void *arg)
{
	return arg;
}

/* libc takes two signals for itself at the first thread: before a baseline is taken. */
static inline void warm_up_threads(void)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, nothing, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* ---- a child that lives until it is let go ---- */

/* Options to be added to: its input is a pipe. */
#define HELD .in = WEAN_PIPE

/* It then leaves with this value. */
static inline void start_held(struct wean_child *child, int value,
                              const struct wean_options *options)
{
	char text[12];

	snprintf(text, sizeof text, "%d", value);
	start(child, KID("cat", "--then", "exit", text), options);
	ck_assert_int_ge(child->in, 0);
}

static inline void let_go(struct wean_child *child)
{
	close(child->in);
	child->in = -1;
}

static inline char process_state(pid_t pid)
{
	char path[64], line[512] = "", *end;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
	close(fd);
	end = n > 0 ? strrchr(line, ')') : NULL;
	return end ? end[2] : '?';
}

/* As ps(1) has it: R, S, T ... */
static inline void await_state(pid_t pid, char state)
{
	while (process_state(pid) != state)
		sched_yield();
}

/* Until it is over, which is not taken from whoever waits for it. */
static inline void await_zombie(pid_t pid)
{
	siginfo_t si;

	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
}

/* Several, each held, leaving with 0, 1, 2 ... */
static inline void start_several(struct wean_child *children, int n,
                                 unsigned long long flags)
{
	struct wean_options opt = { HELD, .flags = flags };

	for (int i = 0; i < n; i++)
		start_held(&children[i], i, &opt);
}

static inline void finish_several(struct wean_child *children, int n)
{
	for (int i = 0; i < n; i++) {
		if (children[i].in >= 0)
			let_go(&children[i]);
		ck_assert_int_eq(finish(&children[i]).code, i);
	}
}

/* As a host without pidfds; under an instrument that has none it is so already. */
static inline void without_pidfd(struct wean_child *child)
{
	if (child->pidfd >= 0)
		close(child->pidfd);
	child->pidfd = -1;
}

static inline void assert_zero(const struct wean_status *status)
{
	const struct wean_status zero = { 0 };

	ck_assert_mem_eq(status, &zero, sizeof zero);
}

static inline void assert_exited(const struct wean_status *status, int value)
{
	ck_assert_int_eq(status->kind, WEAN_EXITED);
	ck_assert_int_eq(status->value, value);
	ck_assert_int_eq(status->code, value);
	ck_assert_int_eq(status->core, 0);
}

static inline void assert_signaled(const struct wean_status *status, int sig)
{
	ck_assert_msg(status->kind == WEAN_SIGNALED && status->value == sig,
	              "kind %d, value %d; wanted signal %d", status->kind,
	              status->value, sig);
	ck_assert_int_eq(status->code, 128 + sig);
}

/* The word that kid says when it is there; fd stays open. */
static inline void await_line(int fd, char *line, size_t size)
{
	size_t n = 0;

	memset(line, 0, size);
	while (n < size - 1 && read(fd, &line[n], 1) == 1 && line[n] != '\n')
		n++;
	ck_assert_msg(line[n] == '\n', "no line, but '%s'", line);
	line[n] = '\0';
}

static inline void await_ready(int fd)
{
	char line[16];

	await_line(fd, line, sizeof line);
	ck_assert_str_eq(line, "ready");
}

/* The line of one number that fork-hold writes. */
static inline pid_t read_pid(int fd)
{
	char line[16];

	await_line(fd, line, sizeof line);
	ck_assert_int_gt(atoi(line), 1);
	return atoi(line);
}

/* ---- grandchildren ---- */

/* A grandchild, whose end the test can see: it becomes the test's child when its parent
   is over.  A thread reaps it then, so that it is no member of its group any more. */
struct orphan {
	pid_t pid;
	int status;
	pthread_t thread;
};

static inline void adopt_orphans(void)
{
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

static inline void *orphan_reap(void *arg)
{
	struct orphan *o = arg;

	while (waitpid(o->pid, &o->status, 0) != o->pid)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	return NULL;
}

static inline void orphan_watch(struct orphan *o, pid_t pid)
{
	o->pid = pid;
	ck_assert_int_eq(pthread_create(&o->thread, NULL, orphan_reap, o), 0);
}

/* Its exit value, or 128 + the signal that ended it. */
/* A child that goes on with this verb, and a grandchild. */
static inline void start_two(struct wean_child *child, struct orphan *held, char *verb,
                             char *arg, const struct wean_options *opt)
{
	adopt_orphans();
	start(child, KID("fork-hold", "600000", "--then", verb, arg), opt);
	orphan_watch(held, read_pid(child->out));
}

static inline int orphan_code(struct orphan *o)
{
	ck_assert_int_eq(pthread_join(o->thread, NULL), 0);
	return WIFEXITED(o->status) ? WEXITSTATUS(o->status) : 128 + WTERMSIG(o->status);
}

/* Of one that has to be alive still. */
static inline void orphan_end(struct orphan *o)
{
	ck_assert_int_eq(kill(o->pid, SIGUSR1), 0);
	ck_assert_int_eq(orphan_code(o), 128 + SIGUSR1);
}

/* ---- handlers ---- */

static inline void restart_after(int sig)
{
	struct sigaction sa;

	ck_assert_int_eq(sigaction(sig, NULL, &sa), 0);
	sa.sa_flags |= SA_RESTART;
	ck_assert_int_eq(sigaction(sig, &sa, NULL), 0);
}

/* A child's input, closed by the handler at the fortieth tick. */
static volatile sig_atomic_t countdown_end = -1;

static inline void on_countdown(int sig)
{
	(void)sig;
	if (++ticks == 40)
		close(countdown_end);
}

/* What waits for the child after this goes on over forty handlers, or fails. */
static inline void let_go_by_ticks(struct wean_child *child)
{
	countdown_end = child->in;
	child->in = -1;
	tick();
	handle(SIGALRM, on_countdown);
}

#endif
