#define _XOPEN_SOURCE 700
#include <errno.h>
#include <stdlib.h>

#include "env.h"
#include "explain.h"
#include "request.h"
#include "sys.h"

/* The entry of fds that failed, NULL for in, out, err and everything else. */
static const struct wean_fd *
entry(const struct failure *f)
{
	int i = f->child->index;

	return i >= 0 && (size_t)i < f->opt->nfds && f->opt->fds ? &f->opt->fds[i] : NULL;
}

/* 0, 1, 2 for in, out, err; else -1. */
static int
standard(const struct failure *f)
{
	long long i = (long long)f->child->index - (long long)f->opt->nfds;

	return i >= 0 && i <= 2 ? (int)i : -1;
}

static void
add_entry(struct text *t, const struct failure *f)
{
	static const char *const names[] = { "in", "out", "err" };

	if (standard(f) >= 0) {
		add(t, names[standard(f)]);
	} else {
		add(t, "entry ");
		add_int(t, f->child->index);
		add(t, " of fds");
	}
}

static int
is_twice(const struct failure *f, const struct wean_fd *e)
{
	for (int i = 0; e && i < f->child->index; i++)
		if (f->opt->fds[i].target == e->target)
			return 1;
	return 0;
}

/* Its own fault, or one that only shows beside the others. */
static void
explain_entry(struct text *t, const struct failure *f)
{
	const struct wean_fd *e = entry(f);
	const char *fault = e ? wean_request_entry_fault(e)
	                      : wean_request_standard_fault(f->opt, standard(f));

	add_entry(t, f);
	add(t, " ");
	if (fault) {
		add(t, fault);
	} else if (is_twice(f, e)) {
		add(t, "gives descriptor ");
		add_int(t, e->target);
		add(t, " a second time");
	} else if (!e && standard(f) <= 1) {
		add(t, "can only be a pipe here");
	} else {
		add(t, "is to be the same as what is not open, or as itself");
	}
}

static int
is_of_limits(const struct failure *f)
{
	size_t i = (size_t)f->child->index;

	return f->child->index >= 0 && i < f->opt->nlimits && f->opt->limits
	    && f->opt->limits[i].reserved;
}

/* For an argv, or an environment, that is NULL. */
static char *const nothing[] = { NULL };

static const char *
fault_beside_options(const struct failure *f)
{
	const struct wean_options *o = f->opt;

	if (o->candidates ? !o->candidates[0] : !o->file && !f->argv[0])
		return "the request names no program";
	if (f->argv == nothing)
		return "argv is NULL";
	return "the fault is in the rest of the call, not in these options";
}

static void
explain_options(struct text *t, const struct failure *f)
{
	const char *fault = wean_request_fault(f->opt);

	if (f->error == EPERM) {
		add(t, "a set-uid program may not search ");
		add_quoted(t, f->program);
		add(t, " in PATH");
	} else if (fault) {
		add(t, fault);
	} else if (is_of_limits(f)) {
		add(t, "entry ");
		add_int(t, f->child->index);
		add(t, " of limits has a reserved member set");
	} else if (entry(f) || standard(f) >= 0) {
		explain_entry(t, f);
	} else if (wean_env_nameless(f->opt->env_edit)) {
		add_quoted(t, wean_env_nameless(f->opt->env_edit));
		add(t, " in env_edit names no variable");
	} else {
		add(t, fault_beside_options(f));
	}
	add_error(t, f->error);
}

static void
add_bad_number(struct text *t, const struct wean_fd *e)
{
	int source = e->kind == WEAN_DUP ? e->source : e->target;
	int open = wean_sys_close_on_exec(source) >= 0;

	add(t, " (");
	add_int(t, open ? e->target : source);
	add(t, open ? " is above the limit)" : " is not open)");
}

static void
explain_fd(struct text *t, const struct failure *f)
{
	const struct wean_fd *e = entry(f);

	if (f->child->index < 0) {
		add(t, "cannot place the descriptors: no number is free to turn them by");
	} else if (!e) {
		add(t, "cannot place descriptor ");
		add_int(t, standard(f));
	} else if (e->kind == WEAN_DUP || e->kind == WEAN_KEEP) {
		add(t, "cannot pass descriptor ");
		add_int(t, e->kind == WEAN_DUP ? e->source : e->target);
		add(t, " as ");
		add_int(t, e->target);
		if (f->error == EBADF)
			add_bad_number(t, e);
	} else {
		add(t, "cannot make descriptor ");
		add_int(t, e->target);
		if (e->kind == WEAN_SAME) {
			add(t, " the same as ");
			add_int(t, e->source);
		}
	}
	add_error(t, f->error);
}

static void
explain_open(struct text *t, const struct failure *f)
{
	const struct wean_fd *e = entry(f);

	add(t, "cannot open ");
	add_quoted(t, e && e->path ? e->path : "/dev/null");
	add(t, " as descriptor ");
	add_int(t, e ? e->target : standard(f));
	add_error(t, f->error);
}

static void
explain_pipe(struct text *t, const struct failure *f)
{
	add(t, "cannot make a pipe");
	if (standard(f) >= 0) {
		add(t, " for descriptor ");
		add_int(t, standard(f));
	}
	add_error(t, f->error);
}

static void
explain_dir(struct text *t, const struct failure *f)
{
	add(t, "cannot enter directory ");
	if (f->opt->dir)
		add_quoted(t, f->opt->dir);
	if (f->opt->flags & WEAN_DIR_FD) {
		add(t, f->opt->dir ? " from descriptor " : "of descriptor ");
		add_int(t, f->opt->dirfd);
	}
	add_error(t, f->error);
}

static void
explain_killed(struct text *t, const struct failure *f)
{
	add(t, "the child was killed before it ran the program, at step ");
	add(t, wean_stage_name(f->child->stage));
	add_error(t, f->error);
}

static void
explain_group(struct text *t, const struct failure *f)
{
	if (f->opt->flags & WEAN_JOIN_GROUP) {
		add(t, "cannot join process group ");
		add_int(t, f->opt->pgid);
	} else {
		add(t, "cannot make a process group");
	}
	add_error(t, f->error);
}

static void
explain_tty(struct text *t, const struct failure *f)
{
	add(t, f->opt->flags & WEAN_FOREGROUND ? "cannot take the foreground of terminal "
	                                       : "cannot take as controlling terminal ");
	add_int(t, f->opt->ttyfd);
	add_error(t, f->error);
}

static void
add_limit_value(struct text *t, unsigned long long value)
{
	if (value == ~0ULL)
		add(t, "unlimited");
	else
		add_number(t, value);
}

static void
explain_limit(struct text *t, const struct failure *f)
{
	const struct wean_limit *limit = &f->opt->limits[f->child->index];

	add(t, "cannot set resource limit ");
	add_int(t, limit->resource);
	add(t, " to ");
	add_limit_value(t, limit->soft);
	add(t, ":");
	add_limit_value(t, limit->hard);
	add_error(t, f->error);
}

static void
explain_ids(struct text *t, const struct failure *f)
{
	if (f->child->index == 0) {
		add(t, "cannot set the supplementary groups");
	} else {
		add(t, f->child->index == 1 ? "cannot become group " : "cannot become user ");
		add_number(t, f->child->index == 1 ? f->opt->gid : f->opt->uid);
	}
	add_error(t, f->error);
}

static const char *
plain_sentence(int stage)
{
	switch (stage) {
	case WEAN_STAGE_NONE:      return "no step failed";
	case WEAN_STAGE_MEMORY:    return "cannot keep the request in memory";
	case WEAN_STAGE_LAUNCH:    return "cannot make a process";
	case WEAN_STAGE_CLOSE:     return "cannot close what the child is not given";
	case WEAN_STAGE_SESSION:   return "cannot make a session";
	case WEAN_STAGE_CGROUP:    return "cannot enter the cgroup";
	case WEAN_STAGE_UMASK:     return "cannot set the umask";
	case WEAN_STAGE_NICE:      return "cannot set the nice value";
	case WEAN_STAGE_PDEATHSIG: return "cannot ask for a signal at the parent's death";
	case WEAN_STAGE_PRIVS:     return "cannot renounce new privileges";
	case WEAN_STAGE_SIGNALS:   return "cannot set the child's signals";
	default:                   return "cannot start the child";
	}
}

static void
explain(struct text *t, const struct failure *f)
{
	switch (f->error == ECANCELED ? -1 : f->child->stage) {
	case -1:                 explain_killed(t, f); break;
	case WEAN_STAGE_OPTIONS: explain_options(t, f); break;
	case WEAN_STAGE_PIPE:    explain_pipe(t, f); break;
	case WEAN_STAGE_FD:      explain_fd(t, f); break;
	case WEAN_STAGE_OPEN:    explain_open(t, f); break;
	case WEAN_STAGE_GROUP:   explain_group(t, f); break;
	case WEAN_STAGE_TTY:     explain_tty(t, f); break;
	case WEAN_STAGE_LIMIT:   explain_limit(t, f); break;
	case WEAN_STAGE_IDS:     explain_ids(t, f); break;
	case WEAN_STAGE_DIR:     explain_dir(t, f); break;
	case WEAN_STAGE_EXEC:    wean_explain_exec(t, f); break;
	default:
		add(t, plain_sentence(f->child->stage));
		add_error(t, f->error);
	}
}

static const char *
program_of(const struct failure *f)
{
	int i = f->child->index;
	const char *name = f->opt->file ? f->opt->file : f->argv[0];

	if (f->opt->candidates)
		name = f->opt->candidates[i > 0 ? i : 0];
	return name ? name : "";
}

/* The child's environment; to be freed where it is not one of the given lists. */
static char **
edited_env(char *const *base, char *const *edits)
{
	size_t n = wean_env_count(base) + wean_env_count(edits);
	char **env = malloc((n + 1) * sizeof *env);

	if (env)
		wean_env_merge(env, base, edits);
	return env;
}

int
wean_explain(const struct wean_child *child, char *const argv[],
             const struct wean_options *opt, int error, char *text, size_t size)
{
	static const struct wean_options defaults;
	struct failure f = { .child = child, .argv = argv ? argv : nothing,
	                     .opt = opt ? opt : &defaults, .env = nothing, .program = "",
	                     .error = error };
	struct text t = { text, size, 0 };
	char **edited = NULL;
	int saved = errno;

	if (!child || !text || size == 0)
		return EINVAL;
	if (child->stage == WEAN_STAGE_EXEC || error == EPERM)
		f.program = program_of(&f);
	if (child->stage == WEAN_STAGE_EXEC) {
		f.env = f.opt->env ? f.opt->env : wean_sys_environ() ? wean_sys_environ() : nothing;
		edited = f.opt->env_edit ? edited_env(f.env, f.opt->env_edit) : NULL;
		f.env = edited ? edited : f.env;
	}
	explain(&t, &f);
	*t.at = '\0';
	free(edited);
	errno = saved;
	return t.cut ? EMSGSIZE : 0;
}
