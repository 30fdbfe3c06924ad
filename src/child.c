/* The child, from its first instruction to execve.
 *
 * It may share the memory of a parent whose other threads go on running: it makes
 * raw system calls, uses no state of libc, allocates nothing, and its object is
 * built without instrumentation. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "child_steps.h"

/* ---- where it belongs ---- */

/* Only where the launch could not do it. */
static int
join_cgroup(struct child *c)
{
	int fd, r;

	if (!has(c, WEAN_IN_CGROUP) || c->birth->in_cgroup)
		return 0;
	if (!wean_sys_is_cgroup2(c->plan->cgroup.before))
		return EBADF; /* as clone3 says */
	fd = wean_sys_open_at(c->plan->cgroup.before, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return -fd;
	r = wean_sys_write(fd, "0", 1);
	wean_sys_close(fd);
	return positive(r);
}

static int
lead_session(struct child *c)
{
	return has(c, WEAN_NEW_SESSION) ? positive(wean_sys_setsid()) : 0;
}

/* A session's leader leads a group already; setpgid would be EPERM. */
static int
join_group(struct child *c)
{
	if (has(c, WEAN_JOIN_GROUP))
		return positive(wean_sys_setpgid(c->plan->opt->pgid));
	if (has(c, WEAN_NEW_GROUP) && !has(c, WEAN_NEW_SESSION))
		return positive(wean_sys_setpgid(0));
	return 0;
}

static int
take_terminal(struct child *c)
{
	return has(c, WEAN_CONTROL_TTY) ? positive(wean_sys_control_tty(c->plan->tty.before)) : 0;
}

/* ---- what it may do ---- */

static int
set_umask(struct child *c)
{
	return has(c, WEAN_SET_UMASK) ? positive(wean_sys_umask(c->plan->opt->umask)) : 0;
}

static int
set_limits(struct child *c)
{
	const struct wean_options *o = c->plan->opt;
	int r = 0;

	for (size_t i = 0; i < o->nlimits && r >= 0; i++) {
		c->report->index = (int)i;
		r = wean_sys_limit(o->limits[i].resource, o->limits[i].soft, o->limits[i].hard);
	}
	return positive(r);
}

static int
set_nice(struct child *c)
{
	return has(c, WEAN_SET_NICE) ? positive(wean_sys_nice(c->plan->opt->nice)) : 0;
}

/* Groups first: without the user's rights it would be too late. */
static int
set_ids(struct child *c)
{
	const struct wean_options *o = c->plan->opt;
	int r = 0;

	if (has(c, WEAN_SET_GROUPS)) {
		c->report->index = 0;
		r = wean_sys_setgroups(o->ngroups, o->groups);
	}
	if (r >= 0 && has(c, WEAN_SET_GID)) {
		c->report->index = 1;
		r = wean_sys_setgid(o->gid);
	}
	if (r >= 0 && has(c, WEAN_SET_UID)) {
		c->report->index = 2;
		r = wean_sys_setuid(o->uid);
	}
	return positive(r);
}

static int
enter_directory(struct child *c)
{
	const struct plan *p = c->plan;
	int r = 0;

	if (has(c, WEAN_DIR_FD)) {
		r = wean_sys_fchdir(p->dir.after);
		wean_sys_close(p->dir.after);
	}
	if (r >= 0 && p->opt->dir)
		r = wean_sys_chdir(p->opt->dir);
	return positive(r);
}

/* After the ids, whose change clears it.  A parent that ended before is not seen any
   more: then the signal would never come. */
static int
set_pdeathsig(struct child *c)
{
	int r, parent;

	if (!c->plan->opt->pdeathsig)
		return 0;
	r = wean_sys_pdeathsig(c->plan->opt->pdeathsig);
	parent = wean_sys_getppid();
	/* 0: it is in an outer PID namespace. */
	return r < 0 ? -r : parent == c->plan->pid || parent == 0 ? 0 : ECANCELED;
}

static int
renounce_privileges(struct child *c)
{
	return has(c, WEAN_NO_NEW_PRIVS) ? positive(wean_sys_no_new_privs()) : 0;
}

/* ---- signals and the terminal ---- */

/* execve would do it too, but not before the mask below lets a pending signal in. */
static void
reset_handlers(void)
{
	for (int sig = 1; sig <= wean_sys_last_signal(); sig++)
		if (wean_sys_disposition(sig) == SYS_HANDLER)
			wean_sys_set_disposition(sig, SYS_DEFAULT);
}

/* SIGKILL and SIGSTOP are refused, which is right. */
static void
set_dispositions_of(unsigned long long signals, enum sys_disposition to)
{
	for (int sig = 1; signals; sig++, signals >>= 1)
		if (signals & 1)
			wean_sys_set_disposition(sig, to);
}

static int
set_dispositions(struct child *c)
{
	if (c->birth->keeps_handlers)
		reset_handlers();
	set_dispositions_of(c->plan->to_default, SYS_DEFAULT);
	set_dispositions_of(c->plan->to_ignore, SYS_IGNORE);
	return 0;
}

/* SIGTTOU, which would stop a background group here, is blocked.  The terminal stays
   open to the exec, to be given back where that fails. */
static int
go_to_foreground(struct child *c)
{
	int tty = c->plan->tty.after, r;

	if (!has(c, WEAN_FOREGROUND))
		return 0;
	if ((r = wean_sys_set_close_on_exec(tty, 1)) < 0 || (r = wean_sys_foreground(tty)) < 0)
		return -r;
	c->foreground = r;
	return positive(wean_sys_set_foreground(tty, wean_sys_getpgid(0)));
}

static void
leave_foreground(const struct child *c)
{
	if (c->foreground > 0)
		wean_sys_set_foreground(c->plan->tty.after, c->foreground);
}

/* A stop from the terminal that is pending would stop the child before its exec: being
   ignored, it is forgotten.  One that comes later finds a parent that looks. */
static void
forget_stops(void)
{
	static const int stops[] = { SIGTSTP, SIGTTIN, SIGTTOU };

	for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
		int was = wean_sys_disposition(stops[i]);

		wean_sys_set_disposition(stops[i], SYS_IGNORE);
		if (was == SYS_DEFAULT)
			wean_sys_set_disposition(stops[i], SYS_DEFAULT);
	}
}

static int
set_mask(struct child *c)
{
	if (plan_may_be_stopped(c->plan))
		forget_stops();
	return positive(wean_sys_set_mask(&c->plan->mask));
}

/* ---- the program ---- */

static int
goes_past(int error)
{
	return error == EACCES || error == ENOENT || error == ENOTDIR || error == ELOOP
	    || error == ENAMETOOLONG || error == ESTALE || error == ENODEV
	    || error == ETIMEDOUT;
}

/* "--" stands before a name that would be an option. */
static int
execute_by_shell(const struct plan *p, char *path)
{
	char **argv = p->shell_argv, *dashes = argv[1];
	int skip = *path != '-', r;

	argv[2] = path;
	if (skip)
		argv[1] = argv[0];
	r = wean_sys_exec(argv[0], argv + skip, p->env);
	argv[1] = dashes;
	return positive(r);
}

enum { BUSY_TRIES = 20, BUSY_US = 50 };

/* Another thread's child may, for the moment between its fork and its exec, hold the
   file open for writing. */
static int
execute(const struct child *c, char *path)
{
	const struct plan *p = c->plan;
	int error = positive(wean_sys_exec(path, p->argv, p->env));

	for (int i = 0; error == ETXTBSY && i < BUSY_TRIES; i++) {
		wean_sys_sleep_us(BUSY_US);
		error = positive(wean_sys_exec(path, p->argv, p->env));
	}
	return error == ENOEXEC && p->shell_argv ? execute_by_shell(p, path) : error;
}

/* What a search makes of a refusal: a directory that may not be searched, or one that
   bears the program's name, is not a program that was found. */
static int
found_error(const struct child *c, const char *path, int error)
{
	struct sys_file file;
	int r;

	if (!c->plan->searched || error != EACCES)
		return error;
	r = wean_sys_file_at(SYS_HERE, path, &file);
	return goes_past(-r) || (r == 0 && !S_ISREG(file.mode)) ? ENOENT : EACCES;
}

/* Of several candidates the first error counts that says more than "not there". */
static int
run_program(struct child *c)
{
	const struct plan *p = c->plan;
	int kept = 0, kept_at = -1, error = ENOENT;

	for (int i = 0; p->programs[i] && goes_past(error); i++) {
		c->report->index = p->opt->candidates ? i : -1;
		error = found_error(c, p->programs[i], execute(c, p->programs[i]));
		if (!kept && error != ENOENT && error != ENOTDIR) {
			kept = error;
			kept_at = c->report->index;
		}
	}
	if (p->searched && !goes_past(error))
		return error;
	if (kept)
		c->report->index = kept_at;
	return kept ? kept : p->searched ? ENOENT : error;
}

/* ---- the whole ---- */

static const struct {
	int stage;
	int (*take)(struct child *);
} all_steps[] = {
	{ WEAN_STAGE_CLOSE, wean_child_own_table },
	{ WEAN_STAGE_FD, wean_child_fetch_high },
	{ WEAN_STAGE_CGROUP, join_cgroup },
	{ WEAN_STAGE_SESSION, lead_session },
	{ WEAN_STAGE_GROUP, join_group },
	{ WEAN_STAGE_TTY, take_terminal },
	{ WEAN_STAGE_FD, wean_child_place },
	{ WEAN_STAGE_CLOSE, wean_child_close_others },
	{ WEAN_STAGE_OPEN, wean_child_open_files },
	{ WEAN_STAGE_FD, wean_child_copy_same },
	{ WEAN_STAGE_UMASK, set_umask },
	{ WEAN_STAGE_LIMIT, set_limits },
	{ WEAN_STAGE_NICE, set_nice },
	{ WEAN_STAGE_IDS, set_ids },
	{ WEAN_STAGE_DIR, enter_directory },
	{ WEAN_STAGE_PDEATHSIG, set_pdeathsig },
	{ WEAN_STAGE_PRIVS, renounce_privileges },
	{ WEAN_STAGE_SIGNALS, set_dispositions },
	{ WEAN_STAGE_TTY, go_to_foreground },
	{ WEAN_STAGE_SIGNALS, set_mask },
	{ WEAN_STAGE_EXEC, run_program },
};

int
wean_child(void *arg)
{
	const struct birth *birth = arg;
	struct child c = { .plan = birth->plan, .birth = birth, .report = birth->report };
	int error = 0;

	for (size_t i = 0; i < sizeof all_steps / sizeof all_steps[0] && !error; i++) {
		c.report->stage = all_steps[i].stage;
		c.report->index = -1;
		error = all_steps[i].take(&c);
	}
	leave_foreground(&c);
	c.report->error = error;
	wean_sys_exit(127);
}
