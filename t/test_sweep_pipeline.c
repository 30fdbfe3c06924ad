/* test_sweep_pipeline.c - every call and every allocation fails that a pipeline makes, or
 * a command that is put together: all of it is there then, or none, and nothing is left
 * behind. */
#define _GNU_SOURCE
#include "faults.h"

#include "descriptors.h"

#include <wean_cmd.h>

static char *cats[] = { NULL, (char[]){ "cat" }, NULL };
static char *missing[] = { (char[]){ "/missing/program" }, NULL };

/* ---- pipelines ----------------------------------------------------------- */

enum { MOST = 3 };

static const struct request {
	const char *name;
	size_t n;
	unsigned long long first, all; /* flags */
	int fails, high;
} requests[] = {
	{ "two", 2, 0, WEAN_NONBLOCK, 0, 0 },
	{ "a group", 2, WEAN_NEW_GROUP, WEAN_EINTR, 0, 0 },
	{ "high up", 2, 0, WEAN_INHERIT_ALL, 0, 1 },
	{ "the last is missing", 3, 0, WEAN_EINTR, 1, 0 },
	{ "the last of a group is missing", 3, WEAN_NEW_GROUP, 0, 1, 0 },
};

/* What is written comes out, and there is an end of it. */
static void assert_goes_through(const struct request *q, struct wean_child *c)
{
	struct wean_status statuses[MOST];
	char text[8] = "";
	ssize_t n;

	for (size_t i = 0; i < q->n; i++)
		if (c[i].stage || (c[i].in >= 3) != (i == 0) || (c[i].out >= 3) != (i == q->n - 1))
			wrong("child %zu: stage %d, ends %d, %d", i, c[i].stage, c[i].in, c[i].out);
	if (q->all & WEAN_NONBLOCK && !(fcntl(c[0].in, F_GETFL) & O_NONBLOCK))
		wrong("an end blocks");
	fcntl(c[q->n - 1].out, F_SETFL, 0);
	if (write(c[0].in, "through", 7) != 7)
		wrong("write: %s", strerror(errno));
	wean_sys_drop(&c[0].in);
	for (size_t len = 0; (n = read(c[q->n - 1].out, text + len, 8 - len)) > 0; )
		len += (size_t)n;
	if (n < 0 || strcmp(text, "through"))
		wrong("read '%s'", text);
	if (wean_wait_all(c, q->n, -1, statuses))
		wrong("no end");
	for (size_t i = 0; i < q->n; i++)
		if (statuses[i].code)
			wrong("child %zu ended with %d", i, statuses[i].code);
}

static int has_failed(long nr)
{
	for (int i = 0; i < FAULT_ROWS; i++)
		if (fault_rows[i].nr == nr && faults->failed[i])
			return 1;
	return 0;
}

/* Who could not be killed, or waited for, may be held still. */
static void assert_none(const struct request *q, struct wean_child *c, int error)
{
	int stage = 0;

	for (size_t i = 0; i < q->n; i++) {
		stage = stage ? stage : c[i].stage;
		if (c[i].in != -1 || c[i].out != -1 || c[i].err != -1)
			wrong("child %zu holds an end", i);
		if (!c[i].pid)
			continue;
		if (!has_failed(SYS_kill) && !has_failed(SYS_pidfd_send_signal) &&
		    !has_failed(SYS_waitid) && !has_failed(SYS_ppoll))
			wrong("child %zu is left", i);
		kill(c[i].pid, SIGKILL);
		if (wean_wait(&c[i], -1, NULL))
			wrong("child %zu is lost", i);
	}
	if (!stage || (faults->n == 0 && !q->fails))
		wrong("%s at %s", strerror(error), wean_stage_name(stage));
	if (!is_explained(error, stage) && (!q->fails || error != ENOENT))
		wrong("%s at %s", strerror(error), wean_stage_name(stage));
}

static void one_pipeline(void *arg)
{
	const struct request *q = arg;
	struct wean_options o[MOST];
	struct wean_child c[MOST];
	char **const argvs[] = { cats, cats, q->fails ? missing : cats };
	struct baseline b;
	char text[BASELINE_TEXT];

	memset(o, 0, sizeof o);
	for (size_t i = 0; i < q->n; i++)
		o[i].flags = q->all;
	o[0].flags |= q->first;
	o[0].in = o[q->n - 1].out = WEAN_PIPE;
	baseline_take(&b);
	faults_begin();
	int error = wean_pipeline(c, argvs, o, q->n);
	faults_end();
	if (error)
		assert_none(q, c, error);
	else
		assert_goes_through(q, c);
	for (size_t i = 0; i < q->n; i++)
		wean_release(&c[i]);
	errno = BASELINE_ERRNO;
	if (baseline_differs(&b, text))
		wrong("after %s: %s", error ? strerror(error) : "a start", text);
}

START_TEST(each_call_of_a_pipeline_may_fail)
{
	struct request q = requests[_i];
	struct filling f;

	cats[0] = kid();
	signal(SIGPIPE, SIG_IGN);
	faults_make();
	if (q.high)
		fill_descriptors(&f, 140);
	for (int i = 0; q.high && i < f.n; i++)
		fcntl(f.fds[i], F_SETFD, FD_CLOEXEC);
	fail_each(one_pipeline, &q);
}
END_TEST

/* ---- a command ----------------------------------------------------------- */

/* The first error sticks, so that the last call tells of any. */
static int put_together(wean_cmd *cmd)
{
	char name[] = "A";

	wean_cmd_arg(cmd, "exit");
	wean_cmd_arg(cmd, "3");
	for (int i = 0; i < 5; i++) {
		wean_cmd_setenv(cmd, name, "value");
		wean_cmd_setenv(cmd, name, NULL);
		name[0]++;
		wean_cmd_fd(cmd, WEAN_CLOSED, 50 + i, 0);
		wean_cmd_open(cmd, 60 + i, "/dev/null", O_RDWR, 0);
		wean_cmd_limit(cmd, RLIMIT_CORE, 0, 0);
	}
	wean_cmd_clearenv(cmd);
	wean_cmd_setenv(cmd, "A", "1");
	wean_cmd_dir(cmd, "/usr");
	return wean_cmd_dir(cmd, "/");
}

static void one_command(void *arg)
{
	struct wean_status s = { 0 };
	struct wean_child child = { 0 };
	char line[500];
	wean_cmd *cmd;
	int error;

	(void)arg;
	faults_begin();
	cmd = wean_cmd_new(cats[0]);
	error = cmd ? put_together(cmd) : errno;
	if (!cmd && error != ENOMEM)
		wrong("no command: %s", strerror(error));
	errno = BASELINE_ERRNO;
	if (!error)
		error = wean_cmd_tostring(cmd, line, sizeof line);
	if (!error)
		error = wean_cmd_spawn(cmd, &child);
	if (cmd && !error && wean_cmd_arg(cmd, "more") == 0)
		error = wean_wait(&child, -1, &s);
	wean_cmd_free(cmd);
	faults_end();
	if (child.pid) {
		wean_wait(&child, -1, &s);
		if (s.code != 3 && s.kind != WEAN_UNKNOWN)
			wrong("it ended with %d", s.code);
		wean_release(&child);
	} else if (!is_explained(error, child.stage)) {
		wrong("%s at %s", strerror(error), wean_stage_name(child.stage));
	}
}

START_TEST(each_allocation_of_a_command_may_fail)
{
	cats[0] = kid();
	faults_make();
	fail_each(one_command, NULL);
}
END_TEST

static Suite *sweep_pipeline_suite(void)
{
	Suite *s = suite_create("sweep of pipelines and commands");
	TCase *t = case_that_needs(s, "native");

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, each_call_of_a_pipeline_may_fail, 0, COUNT(requests));
	tcase_add_test(t, each_allocation_of_a_command_may_fail);
	return s;
}

RUN_WITH_STDIO_ALONE(sweep_pipeline_suite)
