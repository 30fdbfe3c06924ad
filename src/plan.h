/* A request, checked and frozen: all that the child will do, decided before it
   exists. */
#ifndef WEAN_PLAN_H
#define WEAN_PLAN_H

#include <errno.h>
#include <stddef.h>
#include <wean.h>

#include "fdmap.h"
#include "sys.h"

/* Where the child's descriptor table comes from. */
enum table {
	TABLE_CUT_LOW = 1, /* shared, then copied as far as the highest low source; what
	                      lies above is fetched */
	TABLE_CUT_HIGH,    /* shared, then copied as far as the highest source */
	TABLE_COPIED       /* a copy from the beginning */
};

/* A number of the child and what it gets.  KEEP became DUP, MERGE became SAME,
   a pipe's source is its end for the child. */
struct slot {
	int target, kind, source, index;
};

/* A source that the cut table lacks, and the low number where it is brought. */
struct fetch {
	int number, land, index;
	int oflag;             /* a pipe of ours: reopen it so; else -1 */
	struct sys_file file;  /* the only file that will do */
};

/* A descriptor that the child needs for itself: where it is before the descriptors are
   placed, and after; -1: not needed. */
struct own {
	int before, after;
};

/* Memory that lives as long as the plan: a part of the caller's frame, the heap only
   for what is larger. */
struct arena {
	char *at, *end;
	struct chunk *chunks;
};
void *wean_arena_take(struct arena *, size_t n, size_t size); /* NULL: no memory */
void wean_arena_free(struct arena *);

struct plan {
	const struct wean_options *opt;
	struct arena arena;
	int stage, index;            /* of a failure */

	char *const *argv, *const *env;
	char *const *programs;       /* tried in turn */
	char **shell_argv;           /* for a script without #!: sh, --, room, argv[1]... */
	int searched;                /* the programs were made from PATH */
	int pid;                     /* the caller's, where it matters */
	unsigned long long to_default, to_ignore; /* dispositions, by WEAN_SIG() */
	struct sys_sigset mask;      /* the child's; wean_launch() knows the caller's */

	struct slot *slots;          /* sorted by target */
	size_t nslots;
	unsigned long long limit;    /* on descriptors' numbers, as far as it matters */
	int pipes[3][2];             /* of in, out, err: the caller's end, the child's */
	int wake;                    /* the pipe end by which a fork tells, or -1 */

	enum table table;            /* what wean_plan_map() made the rest for */
	unsigned cut, top;           /* a cut table: copied below cut, in use below top */
	int inherited;               /* bits of 0, 1, 2 */
	struct own dir, tty, cgroup;
	int wake_there;              /* where the child has the wake end */
	int parent;                  /* where it may put a pidfd of the caller */
	int tid;                     /* the caller's, where something is fetched */
	struct fetch *fetches;
	struct fd_move *moves;
	struct fd_numbers keep;      /* open after the moves */
	struct fd_numbers shut;      /* INHERIT_ALL: closed one by one */
	size_t nfetches, nmoves, nopens, nsames;
	const struct slot **opens;   /* NULL and OPEN, in the caller's order */
	const struct slot **sames;
};

/* Checks and freezes everything but the descriptors' moves.  0, or an errno with
   plan->stage and plan->index. */
int wean_plan_make(struct plan *, char *const argv[], const struct wean_options *,
                   void *memory, size_t size);
void *wean_plan_take(struct plan *, size_t n, size_t size); /* NULL: no memory */
void wean_plan_free(struct plan *);

/* Decides the moves for the table that plan->table names, or the next one if that
   is not worth while or impossible.  May be called again.  `work` is scratch. */
int wean_plan_map(struct plan *, void *work, size_t size);

/* The part of wean_plan_make() that is about descriptors. */
int wean_plan_slots(struct plan *);

/* NULL: the number is not named. */
struct slot *wean_plan_slot(const struct plan *, int target);

static inline int
plan_fail(struct plan *p, int stage, int index, int error)
{
	p->stage = stage;
	p->index = index;
	return error;
}

static inline int
plan_no_memory(struct plan *p)
{
	return plan_fail(p, WEAN_STAGE_MEMORY, -1, ENOMEM);
}

/* By a key that is pressed at the terminal, before its exec: a parent that sleeps as
   vfork's does could not wake it up again. */
static inline int
plan_may_be_stopped(const struct plan *p)
{
	return (p->opt->flags & (WEAN_CONTROL_TTY | WEAN_FOREGROUND | WEAN_JOIN_GROUP)) != 0;
}

#endif
