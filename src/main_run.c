/* wean(1): the program's life. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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

/* As long as there is no child, a signal does to us what it does by default.  It is
   blocked here, and comes again at the return. */
static int
is_early(int sig)
{
	if (result.child.pid > 0)
		return 0;
	signal(sig, SIG_DFL);
	raise(sig);
	return 1;
}

static void
forward(int sig)
{
	if (!is_early(sig))
		wean_kill(&result.child, sig);
}

/* Which the terminal may have stopped, as one in the background. */
static void
forward_to_group(int sig)
{
	if (is_early(sig))
		return;
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

/* What is sent to us is meant for the child.  The terminal's signals reach it by
   themselves, and it decides what they mean, unless it is in a group of its own.  Before
   the start: a handler, unlike SIG_IGN, is not inherited. */
static void
pass_signals(const struct command *c)
{
	int apart = (c->opt.flags & (WEAN_NEW_GROUP | WEAN_NEW_SESSION)) != 0;
	void (*pass)(int) = apart ? forward_to_group : forward;

	handle(SIGINT, apart ? pass : forward_nothing);
	handle(SIGQUIT, apart ? pass : forward_nothing);
	handle(SIGTERM, pass);
	handle(SIGHUP, pass);
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

static int
run_plainly(const struct command *c, struct end *end)
{
	long long begin = now_us();

	pass_signals(c);
	end->error = wean_spawn(&result.child, c->argv, &c->opt);
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
	pass_signals(c);
	end->error = wean_run(c->argv, &c->opt, &io, &result);
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
