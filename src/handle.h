/* What wean_child.opaque holds. */
#ifndef WEAN_HANDLE_H
#define WEAN_HANDLE_H

#include <stddef.h>
#include <wean.h>

enum { HANDLE_NONE, HANDLE_RUNS, HANDLE_OVER, HANDLE_ENDS_ONLY };

enum { HANDLE_LEADS = 1,    /* a group */
       HANDLE_EINTR = 2,
       HANDLE_STRANGER = 4  /* no child of ours: nothing can be waited for */ };

struct handle {
	int state, flags;
	int lock;               /* of the reaping, between threads that wait */
	int kind, value, core;  /* once it is over */
	int usage[6];           /* three long long, which an int array may hold unaligned */
	int spare[4];
};

_Static_assert(sizeof(struct handle) == sizeof ((struct wean_child *)0)->opaque,
               "a handle fills the opaque part of a child");

/* What a struct is that holds nothing, written by who fills it. */
static inline struct wean_child
wean_no_child(void)
{
	return (struct wean_child){ .pidfd = -1, .in = -1, .out = -1, .err = -1, .index = -1 };
}

/* As the WEAN_* flags of a start or an adoption say. */
static inline int
wean_handle_flags(unsigned long long flags)
{
	return (flags & (WEAN_NEW_GROUP | WEAN_NEW_SESSION) ? HANDLE_LEADS : 0)
	     | (flags & WEAN_EINTR ? HANDLE_EINTR : 0);
}

static inline struct handle *
wean_handle(struct wean_child *child)
{
	return (struct handle *)(void *)child->opaque;
}

static inline const struct handle *
wean_handle_const(const struct wean_child *child)
{
	return (const struct handle *)(const void *)child->opaque;
}

static inline int
wean_handle_state(const struct wean_child *child)
{
	return __atomic_load_n(&wean_handle_const(child)->state, __ATOMIC_ACQUIRE);
}

static inline int
wean_handle_runs(const struct wean_child *child)
{
	return wean_handle_state(child) == HANDLE_RUNS;
}

/* wait.c, for others that wait.  Whether the child is over, without reaping it: 1, 0, or
   a negative errno. */
int wean_child_is_over(const struct wean_child *child);

/* Pauses for `left` ms at most, < 0 without end, until something may have changed: what a
   poll or a sleep answers.  *nap is 0 to begin with. */
int wean_child_pause(int pidfd, int left, int *nap);

/* stop.c: wean_stop(), with something to do meanwhile, or NULL: it takes as long as
   wean_child_pause() would, and answers so. */
struct pump {
	int (*work)(void *arg, int ms);
	void *arg;
};
int wean_stop_pumping(struct wean_child *child, int grace_ms, struct wean_status *status,
                      const struct pump *pump);

static inline int
wean_handle_wants_eintr(const struct wean_child *child)
{
	return (wean_handle_const(child)->flags & HANDLE_EINTR) != 0;
}

#endif
