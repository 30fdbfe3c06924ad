#define _XOPEN_SOURCE 700
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "path.h"
#include "plan.h"
#include "request.h"

/* ---- memory ---- */

struct chunk {
	_Alignas(8) struct chunk *next; /* what follows is aligned so, too */
};

void *
wean_arena_take(struct arena *a, size_t n, size_t size)
{
	struct chunk *c;

	if (n > (SIZE_MAX / 2 - sizeof *c) / size)
		return NULL;
	size = (n * size + 7) & ~(size_t)7;
	if (size <= (size_t)(a->end - a->at)) {
		a->at += size;
		return a->at - size;
	}
	if (!(c = malloc(sizeof *c + size)))
		return NULL;
	c->next = a->chunks;
	a->chunks = c;
	return c + 1;
}

void
wean_arena_free(struct arena *a)
{
	while (a->chunks) {
		struct chunk *c = a->chunks;

		a->chunks = c->next;
		free(c);
	}
}

void *
wean_plan_take(struct plan *p, size_t n, size_t size)
{
	return wean_arena_take(&p->arena, n, size);
}

/* ---- the options as such ---- */

static int
check_open(struct plan *p, unsigned long long flags, int fd, int stage)
{
	if ((p->opt->flags & flags) && wean_sys_close_on_exec(fd) < 0)
		return plan_fail(p, stage, -1, EBADF);
	return 0;
}

static int
check_options(struct plan *p)
{
	const struct wean_options *o = p->opt;
	int error;

	if (wean_request_fault(o))
		return plan_fail(p, WEAN_STAGE_OPTIONS, -1, EINVAL);
	for (size_t i = 0; i < o->nlimits; i++)
		if (o->limits[i].reserved)
			return plan_fail(p, WEAN_STAGE_OPTIONS, (int)i, EINVAL);
	error = check_open(p, WEAN_DIR_FD, o->dirfd, WEAN_STAGE_DIR);
	if (!error)
		error = check_open(p, WEAN_CONTROL_TTY | WEAN_FOREGROUND, o->ttyfd,
		                   WEAN_STAGE_TTY);
	if (!error)
		error = check_open(p, WEAN_IN_CGROUP, o->cgroupfd, WEAN_STAGE_CGROUP);
	return error;
}

static void
plan_signals(struct plan *p)
{
	const struct wean_options *o = p->opt;

	p->to_ignore = o->sigignore;
	p->to_default = o->sigdefault;
	if (o->flags & WEAN_RESET_SIGNALS)
		p->to_default = ~0ULL;
	else if (!(o->flags & WEAN_KEEP_IGNORED))
		p->to_default |= WEAN_SIG(SIGPIPE) | WEAN_SIG(SIGXFSZ) | WEAN_SIG(SIGCHLD);
	p->to_default &= ~p->to_ignore;
}

/* ---- the environment and the program ---- */

static char *const no_strings[] = { NULL };

static int
plan_env(struct plan *p)
{
	char *const *base = p->opt->env ? p->opt->env : wean_sys_environ();
	char *const *edits = p->opt->env_edit;
	char **env;

	p->env = base ? base : no_strings;
	if (!edits)
		return 0;
	if (wean_env_nameless(edits))
		return plan_fail(p, WEAN_STAGE_OPTIONS, -1, EINVAL);
	env = wean_plan_take(p, wean_env_count(p->env) + wean_env_count(edits) + 1, sizeof env[0]);
	if (!env)
		return plan_no_memory(p);
	wean_env_merge(env, p->env, edits);
	p->env = env;
	return 0;
}

static int
search(struct plan *p, const char *name)
{
	int childs = (p->opt->flags & WEAN_CHILD_PATH) != 0;
	const char *path = wean_env_value(childs ? p->env : wean_sys_environ(), "PATH");
	size_t n, bytes;
	char **list;

	if (wean_sys_secure())
		return plan_fail(p, WEAN_STAGE_OPTIONS, -1, EPERM);
	if (!path)
		path = WEAN_DEFAULT_PATH;
	n = wean_path_count(path, name, &bytes);
	if (n == 0)
		return plan_fail(p, WEAN_STAGE_EXEC, -1, ENOENT);
	list = wean_plan_take(p, (n + 1) * sizeof list[0] + bytes, 1);
	if (!list)
		return plan_no_memory(p);
	wean_path_list(path, name, (char *)(list + n + 1), list);
	p->programs = list;
	p->searched = 1;
	return 0;
}

static int
plan_shell(struct plan *p)
{
	size_t n = wean_env_count(p->argv);
	char **argv;

	if (!(p->opt->flags & WEAN_SHELL_SCRIPT))
		return 0;
	if (!(argv = wean_plan_take(p, n + 4, sizeof argv[0])))
		return plan_no_memory(p);
	argv[0] = (char *)(uintptr_t)"/bin/sh";
	argv[1] = (char *)(uintptr_t)"--";
	if (n > 0)
		memcpy(argv + 3, p->argv + 1, n * sizeof argv[0]);
	else
		argv[3] = NULL;
	p->shell_argv = argv;
	return 0;
}

static int
plan_program(struct plan *p)
{
	char *name = p->opt->file ? (char *)(uintptr_t)p->opt->file : p->argv[0];
	char **list;

	p->programs = p->opt->candidates;
	if (p->programs ? !p->programs[0] : !name)
		return plan_fail(p, WEAN_STAGE_OPTIONS, -1, EINVAL);
	if (p->programs)
		return 0;
	if (*name == '\0')
		return plan_fail(p, WEAN_STAGE_EXEC, -1, ENOENT);
	if (!strchr(name, '/'))
		return search(p, name);
	if (!(list = wean_plan_take(p, 2, sizeof list[0])))
		return plan_no_memory(p);
	list[0] = name;
	list[1] = NULL;
	p->programs = list;
	return 0;
}

/* ---- the whole ---- */

int
wean_plan_make(struct plan *p, char *const argv[], const struct wean_options *opt,
               void *memory, size_t size)
{
	static const struct wean_options defaults;
	int error;

	memset(p, 0, sizeof *p);
	p->arena = (struct arena){ memory, (char *)memory + size, NULL };
	p->opt = opt ? opt : &defaults;
	p->argv = argv;
	p->wake = -1;
	memset(p->pipes, 0xff, sizeof p->pipes); /* -1: none */
	if (!argv)
		return plan_fail(p, WEAN_STAGE_OPTIONS, -1, EINVAL);
	p->pid = p->opt->pdeathsig ? wean_sys_getpid() : 0;
	if ((error = check_options(p)) != 0 || (error = plan_env(p)) != 0
	    || (error = plan_program(p)) != 0 || (error = plan_shell(p)) != 0)
		return error;
	plan_signals(p);
	return wean_plan_slots(p);
}

void
wean_plan_free(struct plan *p)
{
	wean_arena_free(&p->arena);
}
