/* test_sweep.c - every call that a start makes fails, in the caller and in the child:
 * it is gone round and the child is as it would have been, or the errno and the stage
 * are the failed call's; nothing is left behind, and the caller is as it was. */
#define _GNU_SOURCE
#include "faults.h"

#include "descriptors.h"
#include "pty.h"

static char *report_file;

/* ---- what the child says of itself --------------------------------------- */

struct said {
	char text[1 << 14];
	size_t len;
	int pid;
	unsigned long long strings; /* a sum of arguments and environment */
};

__attribute__((format(printf, 2, 3)))
static void note(struct said *s, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	int n = vsnprintf(s->text + s->len, sizeof s->text - s->len, format, list);
	va_end(list);
	s->len += (size_t)n;
	if (s->len >= sizeof s->text)
		wrong("the report is too long");
}

static void note_fd(struct said *s, const char *line)
{
	unsigned fd_flags, fl_flags;
	unsigned long long dev, ino, rdev;
	char access, type;
	int fd;

	if (sscanf(line, "fd %d %c %x %o %llu %llu %llu %c", &fd, &access, &fd_flags,
	           &fl_flags, &dev, &ino, &rdev, &type) != 8)
		wrong("%s", line);
	fl_flags &= ~0100000U; /* O_LARGEFILE, which a pipe opened anew has */
	note(s, "fd %d %c %x %o %c %llu\n", fd, access, fd_flags, fl_flags, type,
	     type == 'p' ? 0 : ino);
}

/* Numbers that differ from one try to the next become what they mean. */
static void note_line(struct said *s, const char *line)
{
	static const char *const groups[] = { "pgid ", "sid ", "tpgid " };
	int n;

	if (sscanf(line, "pid %d", &s->pid) == 1 || !strncmp(line, "ppid ", 5))
		return;
	for (size_t i = 0; i < COUNT(groups); i++)
		if (!strncmp(line, groups[i], strlen(groups[i]))) {
			n = atoi(line + strlen(groups[i]));
			note(s, "%s%s\n", groups[i],
			     n == s->pid ? "own" : n > 0 ? "another" : "none");
			return;
		}
	if (!strncmp(line, "fd ", 3))
		note_fd(s, line);
	else if (!strncmp(line, "arg ", 4) || !strncmp(line, "env ", 4))
		for (; *line; line++)
			s->strings = s->strings * 31 + (unsigned char)*line;
	else
		note(s, "%s", line);
}

static void read_said(struct said *s)
{
	FILE *f = fopen(report_file, "re");
	char line[8192];

	memset(s, 0, sizeof *s);
	while (f && fgets(line, sizeof line, f))
		note_line(s, line);
	if (f)
		fclose(f);
	note(s, "strings %llu\n", s->strings);
}

/* The first line in which they differ. */
static void assert_same_said(const char *was, const char *is)
{
	for (; *was && *is; was += strcspn(was, "\n") + 1, is += strcspn(is, "\n") + 1)
		if (strcspn(was, "\n") != strcspn(is, "\n") ||
		    strncmp(was, is, strcspn(was, "\n")))
			wrong("the child says '%.*s' and not '%.*s'", (int)strcspn(is, "\n"), is,
			      (int)strcspn(was, "\n"), was);
	if (*was || *is)
		wrong("the child says more, or less: %s%s", was, is);
}

/* ---- requests ------------------------------------------------------------ */

struct request {
	const char *name;
	void (*prepare)(struct wean_options *); /* once */
	void (*renew)(struct wean_options *);   /* in each try */
	int lacks;
	const char *fds;                        /* what the child holds; NULL: it fails */
	int pipes;                              /* bits of in, out, err */
	struct wean_options opt;
	char **argv;
};

static void none(struct wean_options *o)
{
	(void)o;
}

static void piped(struct wean_options *o)
{
	o->in = o->out = o->err = WEAN_PIPE;
	o->flags |= WEAN_NONBLOCK | WEAN_NEED_PIDFD;
}

static void input_closed(struct wean_options *o)
{
	o->in = o->out = WEAN_PIPE;
}

static void close_input(struct wean_options *o)
{
	(void)o;
	close(0);
}

static void copied(struct wean_options *o)
{
	piped(o);
	o->flags |= WEAN_NO_SHARED_MEMORY;
}

static void environment(struct wean_options *o)
{
	static char *edits[601], text[600][16];

	for (int i = 0; i < 600; i++) {
		sprintf(text[i], "SWEEP_%d=%d", i, i);
		edits[i] = text[i];
	}
	o->env_edit = edits;
}

static void moved(struct wean_options *o)
{
	static const struct wean_fd fds[] = {
		DUP(7, 8), DUP(8, 9), DUP(9, 7), DUP(1, 9), KEEP(10), CLOSED(0),
	};

	for (int n = 7; n <= 11; n++)
		fcntl(open_at(n), F_SETFD, FD_CLOEXEC);
	o->fds = fds;
	o->nfds = COUNT(fds);
	o->err = WEAN_MERGE;
}

static void inherited(struct wean_options *o)
{
	static const struct wean_fd fds[] = { DUP(7, 8), DUP(8, 7), CLOSED(9) };

	for (int n = 7; n <= 10; n++)
		open_at(n);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	o->fds = fds;
	o->nfds = COUNT(fds);
	o->flags |= WEAN_INHERIT_ALL;
	o->out = WEAN_PIPE;
}

static void opened(struct wean_options *o)
{
	static const struct wean_fd fds[] = {
		OPEN(5, "/dev/zero"), OPEN(1, "/dev/null", .oflag = O_WRONLY), NUL(4), SAME(6, 5),
	};

	o->fds = fds;
	o->nfds = COUNT(fds);
}

static void high_up(struct wean_options *o)
{
	static const struct wean_fd fds[] = { DUP(7, 400), KEEP(401) };
	static struct filling f;

	open_at(400);
	open_at(401);
	fill_descriptors(&f, 140);
	o->fds = fds;
	o->nfds = COUNT(fds);
	o->in = o->out = WEAN_PIPE;
}

static void many(struct wean_options *o)
{
	static struct wean_fd fds[150];

	for (int i = 0; i < 150; i++)
		fds[i] = (struct wean_fd){ .kind = WEAN_CLOSED, .target = 500 + i };
	o->fds = fds;
	o->nfds = COUNT(fds);
}

static void in_a_directory(struct wean_options *o)
{
	o->flags |= WEAN_DIR_FD;
	o->dirfd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	o->dir = "dev";
}

static void limited(struct wean_options *o)
{
	static const struct wean_limit limits[] = {
		{ .resource = RLIMIT_CORE }, { .resource = RLIMIT_NOFILE, .soft = 64, .hard = 64 },
	};

	o->limits = limits;
	o->nlimits = COUNT(limits);
	o->flags |= WEAN_SET_UMASK | WEAN_SET_NICE | WEAN_NO_NEW_PRIVS | WEAN_NEW_GROUP;
	o->umask = 077;
	o->nice = 5;
	o->pdeathsig = SIGTERM;
	o->sigignore = WEAN_SIG(SIGUSR1);
	o->sigmask = WEAN_SIG(SIGUSR2);
}

static void another_user(struct wean_options *o)
{
	static const unsigned groups[] = { 5, 77 };

	o->flags |= WEAN_SET_UID | WEAN_SET_GID | WEAN_SET_GROUPS;
	o->uid = 4242;
	o->gid = 4343;
	o->groups = groups;
	o->ngroups = COUNT(groups);
}

static void new_terminal(struct wean_options *o)
{
	struct pty p = pty_open();

	o->flags |= WEAN_NEW_SESSION | WEAN_CONTROL_TTY | WEAN_FOREGROUND;
	o->ttyfd = p.slave;
}

static void searched(struct wean_options *o)
{
	static char path[200], *env[] = { path, NULL };

	snprintf(path, sizeof path, "PATH=%s:%s:/nowhere", make_dir("empty"), scratch);
	o->env = env;
	o->file = "kid";
	o->flags |= WEAN_CHILD_PATH;
}

static void scripted(struct wean_options *o)
{
	static char text[600];

	snprintf(text, sizeof text, "exec '%s' \"$@\"\n", at("kid"));
	o->file = write_text("script", 0755, text);
	o->flags |= WEAN_SHELL_SCRIPT;
}

static void one_of_two(struct wean_options *o)
{
	static char *candidates[3];

	candidates[0] = at("missing");
	candidates[1] = at("kid");
	o->candidates = candidates;
}

static void missing(struct wean_options *o)
{
	o->file = at("missing");
	o->in = WEAN_PIPE;
}

static void missing_copy(struct wean_options *o)
{
	missing(o);
	o->flags |= WEAN_NO_SHARED_MEMORY;
}

static void into_a_group(struct wean_options *o)
{
	o->flags |= WEAN_IN_CGROUP;
	o->cgroupfd = open("/sys/fs/cgroup/unified", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum { FORK = NO_CLONE3 | NO_CLONE };

#define R(a, b, c, d, e, f) \
	{ .name = a, .prepare = b, .renew = c, .lacks = d, .fds = e, .pipes = f }

static struct request requests[] = {
	R("nothing special", none, none, 0, "0 1 2", 0),
	R("pipes", piped, none, 0, "0 1 2", 7),
	R("pipes, 0 closed", input_closed, close_input, 0, "0 1 2", 3),
	R("a copy of memory", copied, none, 0, "0 1 2", 7),
	R("an environment", environment, none, 0, "0 1 2", 0),
	R("moves in a circle", moved, none, 0, "1 2 7 8 9 10", 0),
	R("all is inherited", inherited, none, 0, "0 1 2 7 8 10", 2),
	R("files to open", opened, none, 0, "0 1 2 4 5 6", 0),
	R("sources high up", high_up, none, 0, "0 1 2 7 401", 3),
	R("many entries", many, none, 0, "0 1 2", 0),
	R("a directory", in_a_directory, none, 0, "0 1 2", 0),
	R("limits, signals, a group", limited, none, 0, "0 1 2", 0),
	R("another user", another_user, none, 0, "0 1 2", 0),
	R("a terminal", none, new_terminal, 0, "0 1 2", 0),
	R("a search", searched, none, 0, "0 1 2", 0),
	R("a script", scripted, none, 0, "0 1 2", 0),
	R("candidates", one_of_two, none, 0, "0 1 2", 0),
	R("a cgroup", into_a_group, none, 0, "0 1 2", 0),
	R("a missing program", missing, none, 0, NULL, 0),
	R("a missing program, from a copy", missing_copy, none, 0, NULL, 0),
	R("by clone", piped, none, NO_CLONE3, "0 1 2", 7),
	R("by clone, a missing program", missing, none, NO_CLONE3, NULL, 0),
	R("by fork", piped, none, FORK, "0 1 2", 7),
	R("by fork, a missing program", missing, none, FORK, NULL, 0),
	R("by fork, a terminal", none, new_terminal, FORK, "0 1 2", 0),
	R("closed by the listing", moved, none, NO_CLOSE_RANGE, "1 2 7 8 9 10", 0),
	R("no table of its own", piped, none, NO_CLOSE_RANGE | NO_UNSHARE, "0 1 2", 7),
	R("by fork, closed by the listing", moved, none, FORK | NO_CLOSE_RANGE, "1 2 7 8 9 10", 0),
	R("no pidfds", none, none, NO_PIDFD | FORK, "0 1 2", 0),
};

/* ---- a start, and what came of it ---------------------------------------- */

/* The program holds still until it was looked at: a start that came back with its end
   alone would not come back at all. */
static void look_at(struct wean_child *child)
{
	siginfo_t info;

	if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL))
		wrong("no child %d: %s", child->pid, strerror(errno));
	if (info.si_code != CLD_STOPPED)
		wrong("the child ended with %d", info.si_status);
}

static void assert_pipe(const struct request *q, int which, int end, const struct report *r)
{
	struct stat st;
	int wanted = q->pipes >> which & 1;
	int nonblock = q->opt.flags & WEAN_NONBLOCK ? O_NONBLOCK : 0;

	if (!wanted && end != -1)
		wrong("there is an end %d of descriptor %d", end, which);
	if (!wanted)
		return;
	if (end < 3 || fstat(end, &st) || fcntl(end, F_GETFD) != FD_CLOEXEC ||
	    (fcntl(end, F_GETFL) & O_NONBLOCK) != nonblock)
		wrong("end %d of descriptor %d is bad", end, which);
	if (report_fd(r, which)->ino != st.st_ino)
		wrong("end %d is not of the child's descriptor %d", end, which);
}

static void assert_started(const struct request *q, struct wean_child *child)
{
	static struct said said;
	struct wean_status status;
	struct report *r;

	look_at(child);
	read_said(&said);
	if (!(r = report_read_file(report_file)))
		wrong("no report");
	if (!q->fds || strcmp(report_fd_list(r), q->fds))
		wrong("the child holds %s, by %s", report_fd_list(r),
		      wean_method_name(child->method));
	if (faults->n == 0)
		strcpy(faults->result, said.text);
	assert_same_said(faults->result, said.text);
	assert_pipe(q, 0, child->in, r);
	assert_pipe(q, 1, child->out, r);
	assert_pipe(q, 2, child->err, r);
	report_free(r);
	if (q->opt.flags & WEAN_NEED_PIDFD && child->pidfd < 3)
		wrong("there is no pidfd");
	if (child->stage || child->index != -1)
		wrong("stage %d, index %d", child->stage, child->index);
	kill(child->pid, SIGKILL);
	if (wean_wait(child, -1, &status) || status.value != SIGKILL)
		wrong("the child ended with %d", status.value);
	wean_release(child);
}

static void assert_failed(const struct request *q, struct wean_child *child, int error)
{
	int same = faults->n > 0 && error == faults->error && child->stage == faults->stage;

	if (child->pid != 0 || child->pidfd != -1 || child->in != -1 || child->out != -1 ||
	    child->err != -1 || wean_wait(child, 0, NULL) != ESRCH)
		wrong("something is held by a child that did not start");
	if (faults->n == 0 && q->fds)
		wrong("%s at %s", strerror(error), wean_stage_name(child->stage));
	if (faults->n > 0 && !same && !is_explained(error, child->stage))
		wrong("%s at %s", strerror(error), wean_stage_name(child->stage));
	if (faults->n == 0) {
		faults->error = error;
		faults->stage = child->stage;
	}
}

static void one_start(void *arg)
{
	struct request *q = arg;
	struct wean_child child;
	struct baseline b;
	char text[BASELINE_TEXT];

	q->renew(&q->opt);
	faults->lacks = q->lacks;
	truncate(report_file, 0);
	baseline_take(&b);
	faults_begin();
	int error = wean_spawn(&child, q->argv, &q->opt);
	faults_end();
	if (error)
		assert_failed(q, &child, error);
	else
		assert_started(q, &child);
	errno = BASELINE_ERRNO;
	if (baseline_differs(&b, text))
		wrong("after %s: %s", error ? strerror(error) : "a start", text);
}

START_TEST(each_call_of_a_start_may_fail)
{
	struct request *q = &requests[_i];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (q->prepare == another_user && geteuid() != 0)
		SKIP("needs root");
	faults_make();
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	close(null);
	q->prepare(&q->opt);
	if (!q->opt.file && !q->opt.candidates)
		q->opt.file = at("kid");
	q->argv = (char *[]){ at("kid"), (char[]){ "report" }, report_file, (char[]){ "--then" },
	                      (char[]){ "stop" }, NULL };
	fail_each(one_start, q);
}
END_TEST

static void make_all(void)
{
	scratch_make();
	free(copy_kid("kid", 0755));
	report_file = report_path();
}

static void remove_all(void)
{
	scratch_remove();
	unlink(report_file);
	free(report_file);
}

static Suite *sweep_suite(void)
{
	Suite *s = suite_create("sweep");
	TCase *t = tcase_create("starts");

	tcase_set_tags(t, "native");
	tcase_set_timeout(t, 300);
	tcase_add_unchecked_fixture(t, make_all, remove_all);
	tcase_add_loop_test(t, each_call_of_a_start_may_fail, 0, COUNT(requests));
	suite_add_tcase(s, t);
	return s;
}

RUN_WITH_STDIO_ALONE(sweep_suite)
