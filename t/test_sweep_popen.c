/* test_sweep_popen.c - every call that the popen family makes fails, libc's too: each does
 * what it says, or tells an errno that some call gave; then no command was started, and
 * nothing is left behind. */
#define _GNU_SOURCE
#include "faults.h"

#include "descriptors.h"
#include "spawning.h"

#include <wean_popen.h>

/* ---- at the gate, too ---------------------------------------------------- */

FILE *__real_fdopen(int fd, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode);

FILE *__wrap_fdopen(int fd, const char *mode)
{
	const long a[6] = { fd };
	long r = at_gate(GATE_FDOPEN, a);

	if (r < 0) {
		errno = (int)-r;
		return NULL;
	}
	return __real_fdopen(fd, mode);
}

/* ---- what is done -------------------------------------------------------- */

enum { STARTED = 3 << 8 };

static char *mark;           /* a file that the command writes to */
static char text[3 * PATH_MAX];
static char *argv_of_kid[8];

struct work {
	const char *name;
	int (*act)(void);        /* the errno, 0, or another status than STARTED */
	int is_kept;             /* so many blocks, for the next stream */
};

/* -1 and errno, or a status. */
static int error_of(int status)
{
	int error = status == -1 ? errno : status == STARTED ? 0 : 1000 + status;

	errno = BASELINE_ERRNO;
	return error;
}

static int read_and_close(FILE *f)
{
	char line[100];

	if (!f)
		return error_of(-1);
	while (fgets(line, sizeof line, f))
		;
	return error_of(wean_pclose(f));
}

static int popenv_(void)
{
	return read_and_close(wean_popenv(argv_of_kid, "r"));
}

static int popen_plain(void)
{
	return read_and_close(wean_popen(text, "r"));
}

/* The stream's buffer is to be written at the end. */
static int pclose_status(void)
{
	FILE *f = wean_popenv(argv_of_kid, "w");
	struct wean_status status;

	if (!f)
		return error_of(-1);
	fputs("something", f);
	int error = wean_pclose_status(f, 10000, &status);
	if (!error && status.kind == WEAN_UNKNOWN)
		return is_explained(ECHILD, 0) ? ECHILD : 1000;
	return error ? error : error_of(status.code << 8);
}

static int at_the_limit(void)
{
	char *argv[] = { argv_of_kid[0], (char[]){ "pause" }, NULL };
	FILE *f = wean_popenv(argv, "w");
	struct wean_status status = { 0 };

	if (!f)
		return error_of(-1);
	int error = wean_pclose_status(f, 0, &status);
	if (error == ETIMEDOUT && status.code != 128 + SIGKILL && status.kind != WEAN_UNKNOWN
	    && !is_explained(EPERM, 0))
		wrong("it ended with %d", status.code);
	return error == ETIMEDOUT ? 0 : error ? error : 1001;
}

/* What fclose() leaves is reaped by another call, which itself fails or not. */
static int after_fclose(void)
{
	FILE *f = wean_popenv(argv_of_kid, "r");
	siginfo_t info;

	if (!f)
		return error_of(-1);
	fclose(f);
	waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
	errno = BASELINE_ERRNO;
	wean_pclose_status(NULL, 0, NULL);
	if (faults->n == 0 && waitpid(-1, NULL, WNOHANG) == 0)
		wrong("it was not reaped");
	errno = BASELINE_ERRNO;
	return 0;
}

static int system_plain(void)
{
	return error_of(wean_system(text));
}

static int systemv_(void)
{
	return error_of(wean_systemv(argv_of_kid));
}

static const struct work works[] = {
	{ "popenv", popenv_, 1 },
	{ "popen", popen_plain, 1 },
	{ "pclose_status", pclose_status, 1 },
	{ "pclose_status at the limit", at_the_limit, 1 },
	{ "fclose", after_fclose, 1 },
	{ "system", system_plain, 0 },
	{ "systemv", systemv_, 0 },
};

/* ---- one try ------------------------------------------------------------- */

static int has_failed(const char *name)
{
	for (int i = 0; i < FAULT_ROWS; i++)
		if (faults->failed[i] && strcmp(fault_rows[i].name, name) == 0)
			return 1;
	return 0;
}

/* Only where the pipe can't take its place was a command started in vain, and killed. */
static void assert_not_started(void)
{
	struct stat st;

	if (stat(mark, &st) == 0 && st.st_size > 0 && !has_failed("dup3"))
		wrong("the command was started");
}

/* What could not be killed, or waited for, is left to a later call. */
static void end_children(void)
{
	siginfo_t info;
	pid_t pid;

	if (!is_explained(EPERM, 0) && !is_explained(ECHILD, 0) && !is_explained(EINVAL, 0))
		return;
	if ((pid = only_child()) > 0) {
		kill(pid, SIGKILL);
		waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | __WALL);
	}
	wean_pclose_status(NULL, 0, NULL);
}

static void one_work(void *arg)
{
	const struct work *w = arg;
	struct baseline b;
	char what[BASELINE_TEXT];

	truncate(mark, 0);
	baseline_take(&b);
	faults_begin();
	int error = w->act();
	if (faults->blocks <= w->is_kept)
		faults->blocks = 0;
	faults_end();
	if (faults->n == 0 && error)
		wrong("%d", error);
	if (error && !is_explained(error, 0))
		wrong("%d: %s", error, strerror(error));
	if (error && error != ECHILD)
		assert_not_started();
	end_children();
	errno = BASELINE_ERRNO;
	if (baseline_differs(&b, what))
		wrong("%s", what);
}

static void prepare(void)
{
	scratch_make();
	mark = write_text("mark", 0666, "");
	char *argv[] = { kid(), (char[]){ "report" }, mark, (char[]){ "--then" },
	                 (char[]){ "exit" }, (char[]){ "3" }, NULL };
	for (size_t i = 0; i < COUNT(argv); i++)
		argv_of_kid[i] = argv[i] ? for_good(strdup(argv[i])) : NULL;
	snprintf(text, sizeof text, "%s report %s --then exit 3", kid_word(), mark);
	setenv("PWD", "/missing", 1);
	signal(SIGPIPE, SIG_IGN); /* where there is no memfd */
	int null = open("/dev/null", O_WRONLY); /* for what the shell says */
	dup2(null, 2);
	close(null);
}

START_TEST(each_call_of_the_family_may_fail)
{
	struct work w = works[_i];

	faults_make();
	fail_each(one_work, &w);
}
END_TEST

static Suite *sweep_popen_suite(void)
{
	Suite *s = suite_create("sweep of popen");
	TCase *t = case_that_needs(s, "native");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, prepare, scratch_remove);
	tcase_add_loop_test(t, each_call_of_the_family_may_fail, 0, COUNT(works));
	return s;
}

RUN_WITH_STDIO_ALONE(sweep_popen_suite)
