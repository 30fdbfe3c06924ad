/* wean(1): the program's life. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "main.h"

static struct wean_result result;

static long long
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* ---- signals ---- */

static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };

enum { PASSED = sizeof passed / sizeof passed[0] };

static void
forward(int sig)
{
	wean_kill(&result.child, sig);
}

/* Which the terminal may have stopped, as one in the background. */
static void
forward_to_group(int sig)
{
	wean_kill_group(&result.child, sig);
	wean_kill_group(&result.child, SIGCONT);
}

static void
forward_nothing(int sig)
{
	(void)sig;
}

static void
handle(int sig, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

	sigfillset(&sa.sa_mask);
	sigaction(sig, NULL, &old);
	if (old.sa_handler != SIG_IGN)
		sigaction(sig, &sa, NULL);
}

static int
is_apart(const struct command *c)
{
	return (c->opt.flags & (WEAN_NEW_GROUP | WEAN_NEW_SESSION)) != 0;
}

/* What is sent to us is meant for the child.  The terminal's signals reach it by
   themselves, and it decides what they mean, unless it is in a group of its own. */
static void
pass_signals(const struct command *c)
{
	void (*pass)(int) = is_apart(c) ? forward_to_group : forward;

	handle(SIGINT, is_apart(c) ? pass : SIG_IGN);
	handle(SIGQUIT, is_apart(c) ? pass : SIG_IGN);
	handle(SIGTERM, pass);
	handle(SIGHUP, pass);
}

/* ---- signals to a child that wean_run() starts ---- */

static volatile sig_atomic_t kept[PASSED]; /* came when no child was there yet */
static volatile sig_atomic_t apart, ended;

static int
is_there(void)
{
	int error = apart ? wean_kill_group(&result.child, 0) : wean_kill(&result.child, 0);

	return error == 0 || error == EPERM;
}

static void forward_kept(int sig);

/* Nobody tells when the child is there.  SIGALRM is touched only where it is needed: the
   program may have it ignored.  setitimer(2) is the bare system call. */
static void
look_again(void)
{
	struct sigaction sa = { .sa_handler = forward_kept, .sa_flags = SA_RESTART };
	struct itimerval soon = { .it_value.tv_usec = 1000 };

	sigfillset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
}

static void
forward_kept(int sig)
{
	(void)sig;
	if (ended)
		return;
	if (!is_there()) {
		look_again();
		return;
	}
	for (int i = 0; i < PASSED; i++)
		if (kept[i]) {
			kept[i] = 0;
			(apart ? forward_to_group : forward)(passed[i]);
		}
}

static void
forward_when_there(int sig)
{
	for (int i = 0; i < PASSED; i++)
		if (passed[i] == sig)
			kept[i] = 1;
	forward_kept(sig);
}

/* Before the start: a handler, unlike SIG_IGN, is not inherited. */
static void
pass_signals_early(const struct command *c)
{
	sigset_t alarms;

	apart = is_apart(c);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	handle(SIGINT, apart ? forward_when_there : forward_nothing);
	handle(SIGQUIT, apart ? forward_when_there : forward_nothing);
	handle(SIGTERM, forward_when_there);
	handle(SIGHUP, forward_when_there);
}

/* ---- what is told ---- */

static int
not_started(const struct command *c, struct end *end)
{
	static char text[8192];

	wean_explain(&result.child, c->argv, &c->opt, end->error, text, sizeof text);
	fprintf(stderr, "wean: %s\n", text);
	end->complaint = text;
	return result.child.stage == WEAN_STAGE_EXEC && end->error == ENOENT
	    ? EXIT_NOT_FOUND : EXIT_NOT_STARTED;
}

static void
tell_given(const struct command *c)
{
	fputs(", given 0 1 2", stderr);
	for (size_t i = 0; i < c->opt.nfds; i++)
		if (c->fds[i].target > 2)
			fprintf(stderr, " %d", c->fds[i].target);
	fputc('\n', stderr);
}

static void
tell(const struct command *c, const char *did, long long us)
{
	fprintf(stderr, "wean: %s %s as %d by %s in %lld us", c->argv[0], did,
	        result.child.pid, wean_method_name(result.child.method), us);
	tell_given(c);
}

static int
does_not_end(const struct command *c, int error)
{
	fprintf(stderr, "wean: %s does not end: %s\n", c->argv[0], strerror(error));
	return EXIT_OURS;
}

/* ---- with our own descriptors ---- */

static int
wait_for_it(const struct command *c)
{
	int error = wean_wait(&result.child, c->limit_ms, &result.status);

	if (error == ETIMEDOUT) {
		result.flags |= WEAN_TIMED_OUT;
		error = wean_stop(&result.child, c->grace_ms, &result.status);
		if (error == 0)
			return EXIT_LIMIT;
	}
	return error ? does_not_end(c, error) : result.status.code;
}

/* What is sent to us meanwhile waits until it can be passed on. */
static int
start(const struct command *c)
{
	sigset_t held, old;
	int error;

	sigemptyset(&held);
	for (int i = 0; i < PASSED; i++)
		sigaddset(&held, passed[i]);
	sigprocmask(SIG_BLOCK, &held, &old);
	error = wean_spawn(&result.child, c->argv, &c->opt);
	if (!error)
		pass_signals(c);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return error;
}

static int
run_plainly(const struct command *c, struct end *end)
{
	long long begin = now_us();

	end->error = start(c);
	if (end->error)
		return not_started(c, end);
	if (c->verbose)
		tell(c, "started", now_us() - begin);
	return wait_for_it(c);
}

/* ---- with pipes ---- */

static int
put(FILE *to, const char *name, const char *text, size_t len)
{
	if ((len == 0 || fwrite(text, 1, len, to) == len) && fflush(to) == 0)
		return 0;
	fprintf(stderr, "wean: cannot write to standard %s: %s\n", name, strerror(errno));
	return EXIT_OURS;
}

/* A line of ours begins a line. */
static int
put_outputs(const struct command *c)
{
	int bad = put(stdout, "output", result.out, result.out_len);

	bad |= put(stderr, "error", result.err, result.err_len);
	if ((c->json || c->verbose) && result.err_len && result.err[result.err_len - 1] != '\n')
		fputc('\n', stderr);
	return bad;
}

static int
code_of(const struct command *c, int error)
{
	if (error == ETIMEDOUT && result.status.kind)
		return EXIT_LIMIT;
	if (error == ETIMEDOUT)
		return does_not_end(c, error);
	if (error) {
		fprintf(stderr, "wean: the output of %s is lost: %s\n", c->argv[0],
		        strerror(error));
		return EXIT_OURS;
	}
	return result.status.code;
}

static int
run_and_capture(const struct command *c, struct end *end)
{
	struct wean_io io = { .out_max = c->most, .err_max = c->most,
	                      .timeout_ms = c->limit_ms, .grace_ms = c->grace_ms };
	long long begin = now_us();
	int bad;

	if (c->limit_ms == 0)
		io.timeout_ms = 1; /* 0 is no limit there */
	pass_signals_early(c);
	end->error = wean_run(c->argv, &c->opt, &io, &result);
	ended = 1;
	if (result.child.stage)
		return not_started(c, end);
	bad = put_outputs(c);
	if (c->verbose)
		tell(c, "ran", now_us() - begin);
	return bad ? bad : code_of(c, end->error);
}

int
command_run(const struct command *c)
{
	struct end end = { .result = &result };
	long long begin = now_us();

	signal(SIGCHLD, SIG_DFL); /* ignored, it would cost us the status */
	end.code = c->captures ? run_and_capture(c, &end) : run_plainly(c, &end);
	end.elapsed_us = now_us() - begin;
	if (c->json)
		command_tell_json(c, &end);
	wean_result_free(&result);
	return end.code;
}
