#include <errno.h>
#include <signal.h>

#include "handle.h"
#include "spawn.h"
#include "sys.h"

struct pipeline {
	struct wean_child *children;
	char **const *argvs;
	const struct wean_options *options;
	size_t n;
};

/* ---- a stage ---- */

static int
fail(struct wean_child *child, int index)
{
	child->stage = WEAN_STAGE_OPTIONS;
	child->index = index;
	return EINVAL;
}

/* in or out, where a pipe between two stages is all that it can be. */
static int
join(int *kind)
{
	if (*kind != 0 && *kind != WEAN_PIPE)
		return EINVAL;
	*kind = WEAN_PIPE;
	return 0;
}

/* All are in the first one's group.  Until there is one, any number does. */
static int
enter_group(const struct pipeline *p, size_t i, struct wean_options *o)
{
	unsigned long long first = p->options[0].flags;

	if (i == 0 || !(first & WEAN_NEW_GROUP))
		return 0;
	if (o->pgid || ((first | o->flags) & (WEAN_JOIN_GROUP | WEAN_NEW_SESSION)))
		return fail(&p->children[i], -1);
	o->flags = (o->flags & ~(unsigned long long)WEAN_NEW_GROUP) | WEAN_JOIN_GROUP;
	o->pgid = p->children[0].pid ? p->children[0].pid : 1;
	return 0;
}

/* Its options, as they are for a start by itself. */
static int
make_options(const struct pipeline *p, size_t i, struct wean_options *o)
{
	*o = p->options ? p->options[i] : (struct wean_options){ 0 };
	if (i > 0 && join(&o->in) != 0)
		return fail(&p->children[i], (int)o->nfds);
	if (i < p->n - 1 && join(&o->out) != 0)
		return fail(&p->children[i], (int)o->nfds + 1);
	return p->options ? enter_group(p, i, o) : 0;
}

static int
check(const struct pipeline *p, size_t i)
{
	struct wean_options o;
	int error = make_options(p, i, &o);

	return error ? error : wean_spawn_check(&p->children[i], p->argvs[i], &o);
}

/* The end that the next one reads from waits in `out` meanwhile. */
static int
start_stage(const struct pipeline *p, size_t i)
{
	struct wean_child *child = &p->children[i];
	struct wean_options o;
	int error = make_options(p, i, &o);

	if (!error)
		error = wean_spawn_stage(child, p->argvs[i], &o, i > 0 ? &child[-1].out : NULL);
	if (!error && i < p->n - 1 && (o.flags & WEAN_NONBLOCK))
		wean_sys_set_file_flags(child->out, 0);
	return error;
}

/* ---- none ---- */

/* All are killed before one is waited for.  Who may not be killed may still end when its
   pipes are closed; if not, its struct keeps it. */
static void
end_all(const struct pipeline *p)
{
	for (size_t i = 0; i < p->n && wean_handle_runs(&p->children[i]); i++) {
		struct wean_child *child = &p->children[i];

		wean_sys_drop(&child->in);
		wean_sys_drop(&child->out);
		wean_sys_drop(&child->err);
		wean_handle(child)->flags &= ~HANDLE_EINTR;
		wean_kill(child, SIGKILL);
	}
	for (size_t i = 0; i < p->n && wean_handle_runs(&p->children[i]); i++) {
		if (wean_stop(&p->children[i], 0, NULL) != 0)
			continue;
		wean_release(&p->children[i]);
		p->children[i] = wean_no_child();
	}
}

int
wean_pipeline(struct wean_child children[], char **const argvs[],
              const struct wean_options options[], size_t n)
{
	const struct pipeline p = { children, argvs, options, n };
	int saved = errno, error = 0;

	if (!children || n == 0)
		return EINVAL;
	for (size_t i = 0; i < n; i++)
		children[i] = wean_no_child();
	if (!argvs)
		return fail(&children[0], -1);
	for (size_t i = 0; i < n && !error; i++)
		error = check(&p, i);
	for (size_t i = 0; i < n && !error; i++)
		error = start_stage(&p, i);
	if (error)
		end_all(&p);
	errno = saved;
	return error;
}
