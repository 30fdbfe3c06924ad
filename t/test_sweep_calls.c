/* test_sweep_calls.c - every call fails that waiting, killing, stopping, adopting, letting
 * go, explaining and closing make: each does what it says, or tells an errno that some
 * call gave; a child stays one that can be waited for, and nothing is left behind. */
#define _GNU_SOURCE
#include "faults.h"

#include "descriptors.h"
#include "spawning.h"

/* ---- children that are there before -------------------------------------- */

enum { FEW = 3, MANY = 40 }; /* structs; of many only one holds a child */

static char *exits[] = { NULL, (char[]){ "exit" }, (char[]){ "3" }, NULL };
static char *pauses[] = { NULL, (char[]){ "pause" }, NULL };

struct work {
	const char *name;
	char **argv;             /* of the children; NULL: there are none */
	int n, no_pidfd;
	unsigned long long flags;
	int (*act)(struct wean_child *, int n);
	void (*look)(struct wean_child *, int n, int error); /* at what came of it */
};

static struct wean_status statuses[MANY];
static size_t which;

static int children(const struct work *w)
{
	return w->n == MANY ? 1 : w->n;
}

static void start_all(const struct work *w, struct wean_child *c)
{
	const struct wean_options o = { .flags = w->flags };
	siginfo_t info;

	for (int i = 0; i < children(w); i++) {
		if (wean_spawn(&c[i], w->argv, &o))
			wrong("no child");
		if (w->no_pidfd) {
			close(c[i].pidfd);
			c[i].pidfd = -1;
		}
		if (w->argv == exits)
			waitid(P_PID, (id_t)c[i].pid, &info, WEXITED | WNOWAIT);
	}
}

/* Whatever happened they can be waited for: once, with the right status. */
static void end_all(const struct work *w, struct wean_child *c)
{
	struct wean_status s;

	for (int i = 0; i < children(w); i++) {
		if (w->argv == pauses)
			kill(c[i].pid, SIGKILL);
		if (wean_wait(&c[i], -1, &s))
			wrong("child %d is lost", i);
		if (s.kind != WEAN_UNKNOWN && s.code != (w->argv == exits ? 3 : 128 + SIGKILL) &&
		    s.code != 128 + SIGTERM)
			wrong("child %d ended with %d", i, s.code);
		if (s.kind == WEAN_UNKNOWN && !is_explained(ECHILD, 0))
			wrong("the status of child %d is lost", i);
		wean_release(&c[i]);
	}
}

static void one_work(void *arg)
{
	const struct work *w = arg;
	static struct wean_child c[MANY];
	struct baseline b;
	char text[BASELINE_TEXT];

	baseline_take(&b);
	start_all(w, c);
	faults_begin();
	int error = w->act(c, w->n);
	faults_end();
	w->look(c, w->n, error);
	if (faults->n == 0)
		faults->error = error;
	else if (error != faults->error && error != ETIMEDOUT && !is_explained(error, 0))
		wrong("%s", strerror(error));
	end_all(w, c);
	errno = BASELINE_ERRNO;
	if (baseline_differs(&b, text))
		wrong("%s", text);
}

/* ---- waiting ------------------------------------------------------------- */

static int wait_on(struct wean_child *c, int n)
{
	(void)n;
	return wean_wait(c, -1, statuses);
}

static int wait_a_while(struct wean_child *c, int n)
{
	(void)n;
	return wean_wait(c, 1000, statuses);
}

static int wait_in_vain(struct wean_child *c, int n)
{
	(void)n;
	return wean_wait(c, 20, statuses);
}

static int wait_any(struct wean_child *c, int n)
{
	return wean_wait_any(c, (size_t)n, 1000, &which);
}

static int wait_any_in_vain(struct wean_child *c, int n)
{
	return wean_wait_any(c, (size_t)n, 20, &which);
}

static int wait_all(struct wean_child *c, int n)
{
	return wean_wait_all(c, (size_t)n, 1000, statuses);
}

static int wait_all_in_vain(struct wean_child *c, int n)
{
	return wean_wait_all(c, (size_t)n, 20, statuses);
}

static void is_over(struct wean_child *c, int n, int error)
{
	(void)c, (void)n;
	if (error || (statuses[0].code != 3 && statuses[0].kind != WEAN_UNKNOWN))
		wrong("%s, status %d", strerror(error), statuses[0].code);
}

static void one_is_over(struct wean_child *c, int n, int error)
{
	(void)c;
	if (error || which >= (size_t)n)
		wrong("%s, child %zu", strerror(error), which);
}

static void time_is_up(struct wean_child *c, int n, int error)
{
	(void)c, (void)n;
	if (error != ETIMEDOUT)
		wrong("%s", strerror(error));
}

/* Where no signal may be sent it lives on. */
static void is_stopped(struct wean_child *c, int n, int error)
{
	(void)c, (void)n;
	if (error && (error != ETIMEDOUT || !is_explained(EPERM, 0)))
		wrong("%s", strerror(error));
}

static void anything(struct wean_child *c, int n, int error)
{
	(void)c, (void)n, (void)error;
}

/* ---- killing, stopping, letting go --------------------------------------- */

static int kill_it(struct wean_child *c, int n)
{
	(void)n;
	return wean_kill(c, SIGKILL);
}

static int kill_its_group(struct wean_child *c, int n)
{
	(void)n;
	return wean_kill_group(c, SIGKILL);
}

/* 0 is what has killed it. */
static void is_killed(struct wean_child *c, int n, int error)
{
	siginfo_t info;

	(void)n;
	if (!error)
		waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT);
}

static int stop_it(struct wean_child *c, int n)
{
	(void)n;
	return wean_stop(c, 20, statuses);
}

static int stop_it_now(struct wean_child *c, int n)
{
	(void)n;
	return wean_stop(c, 0, statuses);
}

static int release_it(struct wean_child *c, int n)
{
	int ends[2];

	(void)n;
	if (pipe2(ends, O_CLOEXEC))
		wrong("pipe2");
	c->in = ends[0];
	c->out = ends[1];
	struct wean_child held = *c;
	wean_release(&held);
	c->in = c->out = c->pidfd = -1;
	return 0;
}

static int adopt_it(struct wean_child *c, int n)
{
	struct wean_child adopted;
	int error = wean_adopt(&adopted, c->pid, 0);

	(void)n;
	if (error && (adopted.pid || adopted.pidfd != -1))
		wrong("holds what it did not adopt");
	if (!error && adopted.pid != c->pid)
		wrong("adopted %d", adopted.pid);
	wean_release(&adopted);
	return error;
}

/* ---- explaining ---------------------------------------------------------- */

static int explain(struct wean_child *none, int n)
{
	static const int errors[] = { ENOENT, EACCES };
	char *const edits[] = { (char[]){ "A=B" }, NULL };
	const struct wean_options o = { .env_edit = edits, .dir = "/", .file = "dev/null" };
	const struct wean_options search = { .env_edit = edits, .file = "sh" };
	struct wean_child child = { .stage = WEAN_STAGE_EXEC, .index = -1 };
	char text[500];
	int error = 0;

	(void)none, (void)n;
	for (size_t i = 0; i < COUNT(errors) && !error; i++) {
		error = wean_explain(&child, exits, &o, errors[i], text, sizeof text);
		if (!error)
			error = wean_explain(&child, exits, &search, errors[i], text, sizeof text);
		if (!strstr(text, strerror(errors[i])))
			error = -1;
	}
	return error;
}

static void is_told(struct wean_child *c, int n, int error)
{
	(void)c, (void)n;
	if (error)
		wrong("%d", error);
}

static const struct work works[] = {
	{ "wait", exits, 1, 0, 0, wait_on, is_over },
	{ "wait without a pidfd", exits, 1, 1, 0, wait_on, is_over },
	{ "wait a while", exits, 1, 0, WEAN_EINTR, wait_a_while, is_over },
	{ "wait a while without a pidfd", exits, 1, 1, 0, wait_a_while, is_over },
	{ "wait in vain", pauses, 1, 0, 0, wait_in_vain, time_is_up },
	{ "wait in vain without a pidfd", pauses, 1, 1, 0, wait_in_vain, time_is_up },
	{ "wait for any", exits, FEW, 0, 0, wait_any, one_is_over },
	{ "wait for any of many", exits, MANY, 0, 0, wait_any, one_is_over },
	{ "wait for any in vain", pauses, FEW, 0, 0, wait_any_in_vain, time_is_up },
	{ "wait for any of many in vain", pauses, MANY, 0, 0, wait_any_in_vain, time_is_up },
	{ "wait for all", exits, FEW, 0, 0, wait_all, is_over },
	{ "wait for all in vain", pauses, FEW, 0, 0, wait_all_in_vain, time_is_up },
	{ "kill", pauses, 1, 0, 0, kill_it, is_killed },
	{ "kill without a pidfd", pauses, 1, 1, 0, kill_it, is_killed },
	{ "kill a group", pauses, 1, 0, WEAN_NEW_GROUP, kill_its_group, is_killed },
	{ "kill a group without a pidfd", pauses, 1, 1, WEAN_NEW_GROUP, kill_its_group,
	  is_killed },
	{ "stop", pauses, 1, 0, WEAN_NEW_GROUP, stop_it, is_stopped },
	{ "stop now", pauses, 1, 0, 0, stop_it_now, is_stopped },
	{ "release", pauses, 1, 0, 0, release_it, is_told },
	{ "adopt", pauses, 1, 0, 0, adopt_it, anything },
	{ "explain", NULL, 0, 0, 0, explain, is_told },
};

START_TEST(each_call_of_an_operation_may_fail)
{
	struct work w = works[_i];

	exits[0] = pauses[0] = kid();
	faults_make();
	fail_each(one_work, &w);
}
END_TEST

/* ---- closing ------------------------------------------------------------- */

static const int kept[] = { 30, 0, 1, 2, 3, 40 };

/* Told as done it is done; else something may be open yet, but nothing kept is lost. */
static void one_closing(void *arg)
{
	const int *lacks = arg;
	int error, left = 0;

	for (int n = 20; n < 50; n++)
		dup2(2, n);
	faults->lacks = *lacks;
	faults_begin();
	error = wean_close_except(0, kept, COUNT(kept));
	faults_end();
	for (int n = 4; n < 100; n++)
		left += n != 30 && n != 40 && fcntl(n, F_GETFD) >= 0;
	if (fcntl(30, F_GETFD) < 0 || fcntl(40, F_GETFD) < 0 || fcntl(3, F_GETFD) < 0)
		wrong("what is kept is closed");
	if (!error && left && !was_lied_to())
		wrong("%d are left open", left);
	if (error && !is_explained(error, WEAN_STAGE_CLOSE))
		wrong("%s", strerror(error));
	faults_begin();
	error = wean_closefrom(30);
	faults_end();
	if (!error && fcntl(30, F_GETFD) >= 0)
		wrong("30 is left open");
}

START_TEST(each_call_of_closing_may_fail)
{
	int lacks = _i ? NO_CLOSE_RANGE : 0;

	faults_make();
	fail_each(one_closing, &lacks);
}
END_TEST

static Suite *sweep_calls_suite(void)
{
	Suite *s = suite_create("sweep of calls");
	TCase *t = tcase_create("operations"), *closing = tcase_create("closing");

	tcase_set_tags(t, "native");
	tcase_set_tags(closing, "native");
	tcase_set_timeout(t, 120);
	tcase_set_timeout(closing, 120);
	tcase_add_loop_test(t, each_call_of_an_operation_may_fail, 0, COUNT(works));
	tcase_add_loop_test(closing, each_call_of_closing_may_fail, 0, 2);
	suite_add_tcase(s, t);
	suite_add_tcase(s, closing);
	return s;
}

RUN_WITH_STDIO_ALONE(sweep_calls_suite)
