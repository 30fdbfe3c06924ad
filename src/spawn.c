#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "handle.h"
#include "launch.h"
#include "spawn.h"

static void
close_pipes(struct plan *p, int side)
{
	for (int i = 0; i < 3; i++)
		wean_sys_drop(&p->pipes[i][side]);
}

/* The caller's end comes first in plan->pipes. */
static int
make_pipe(struct plan *p, struct slot *s)
{
	int which = s->index - (int)p->opt->nfds;
	int ends[2], r;

	if (p->pipes[which][1] >= 0) { /* another stage's pipe */
		s->source = p->pipes[which][1];
		return 0;
	}
	if ((r = wean_sys_pipe(ends)) < 0)
		return plan_fail(p, WEAN_STAGE_PIPE, s->index, -r);
	p->pipes[which][0] = ends[which == 0];
	p->pipes[which][1] = s->source = ends[which != 0];
	if (p->opt->flags & WEAN_NONBLOCK)
		r = wean_sys_set_file_flags(p->pipes[which][0], O_NONBLOCK);
	return r < 0 ? plan_fail(p, WEAN_STAGE_PIPE, s->index, -r) : 0;
}

static int
make_pipes(struct plan *p)
{
	int error = 0;

	for (size_t i = 0; i < p->nslots && !error; i++)
		if (p->slots[i].kind == WEAN_PIPE)
			error = make_pipe(p, &p->slots[i]);
	return error;
}

static int
start_child(struct plan *p, struct scratch *scratch, struct wean_child *child, int *in)
{
	int error;

	if (in) {
		p->pipes[0][1] = *in;
		*in = -1;
	}
	error = make_pipes(p);
	if (!error)
		error = wean_launch(p, scratch, child);
	close_pipes(p, 1);
	if (error)
		close_pipes(p, 0);
	return error;
}

/* Lets go of the plan. */
static int
finish(struct plan *p, struct wean_child *child, int error)
{
	if (error) {
		child->stage = p->stage;
		child->index = p->index;
	}
	wean_plan_free(p);
	return error;
}

int
wean_spawn_check(struct wean_child *child, char *const argv[],
                 const struct wean_options *opt)
{
	struct plan plan;
	_Alignas(16) char memory[4096];

	return finish(&plan, child, wean_plan_make(&plan, argv, opt, memory, sizeof memory));
}

int
wean_spawn_stage(struct wean_child *child, char *const argv[],
                 const struct wean_options *opt, int *in)
{
	/* What is used in every start lies together: the top of the stack, the plan, the
	   beginning of its memory. */
	struct {
		struct scratch scratch;
		struct plan plan;
		_Alignas(16) char memory[4096];
	} frame;
	int error;

	*child = wean_no_child();
	error = wean_plan_make(&frame.plan, argv, opt, frame.memory, sizeof frame.memory);
	if (!error)
		error = start_child(&frame.plan, &frame.scratch, child, in);
	return finish(&frame.plan, child, error);
}

int
wean_spawn(struct wean_child *child, char *const argv[], const struct wean_options *opt)
{
	int saved = errno, error;

	if (!child)
		return EINVAL;
	error = wean_spawn_stage(child, argv, opt, NULL);
	errno = saved;
	return error;
}
