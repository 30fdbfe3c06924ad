#include <limits.h>

#include "request.h"

enum { KNOWN_FLAGS = 0x17fffff, LAST_SIGNAL = 64 };

static int
reserved_is_set(const struct wean_options *o)
{
	for (size_t i = 0; i < sizeof o->reserved_int / sizeof o->reserved_int[0]; i++)
		if (o->reserved_int[i])
			return 1;
	for (size_t i = 0; i < sizeof o->reserved_ptr / sizeof o->reserved_ptr[0]; i++)
		if (o->reserved_ptr[i])
			return 1;
	return 0;
}

/* A member that is not zero although the flag is missing which makes it count. */
static const char *
lacks_flag(const struct wean_options *o)
{
	unsigned long long f = o->flags;

	if (o->pgid && !(f & WEAN_JOIN_GROUP))
		return "pgid is set without WEAN_JOIN_GROUP";
	if (o->umask && !(f & WEAN_SET_UMASK))
		return "umask is set without WEAN_SET_UMASK";
	if (o->nice && !(f & WEAN_SET_NICE))
		return "nice is set without WEAN_SET_NICE";
	if (o->uid && !(f & WEAN_SET_UID))
		return "uid is set without WEAN_SET_UID";
	if (o->gid && !(f & WEAN_SET_GID))
		return "gid is set without WEAN_SET_GID";
	if ((o->groups || o->ngroups) && !(f & WEAN_SET_GROUPS))
		return "groups are set without WEAN_SET_GROUPS";
	if (o->dirfd && !(f & WEAN_DIR_FD))
		return "dirfd is set without WEAN_DIR_FD";
	if (o->ttyfd && !(f & (WEAN_CONTROL_TTY | WEAN_FOREGROUND)))
		return "ttyfd is set without WEAN_CONTROL_TTY or WEAN_FOREGROUND";
	if (o->cgroupfd && !(f & WEAN_IN_CGROUP))
		return "cgroupfd is set without WEAN_IN_CGROUP";
	return NULL;
}

static const char *
flags_clash(unsigned long long f)
{
	if (f & ~(unsigned long long)KNOWN_FLAGS)
		return "an unknown flag is set";
	if ((f & WEAN_JOIN_GROUP) && (f & (WEAN_NEW_GROUP | WEAN_NEW_SESSION)))
		return "WEAN_JOIN_GROUP goes with no group or session of its own";
	if ((f & WEAN_CONTROL_TTY) && !(f & WEAN_NEW_SESSION))
		return "WEAN_CONTROL_TTY needs WEAN_NEW_SESSION";
	if ((f & WEAN_RESET_SIGNALS) && (f & WEAN_KEEP_IGNORED))
		return "WEAN_RESET_SIGNALS contradicts WEAN_KEEP_IGNORED";
	return NULL;
}

static const char *
value_fault(const struct wean_options *o)
{
	if ((o->flags & WEAN_JOIN_GROUP) && o->pgid <= 0)
		return "pgid is not a group";
	if (o->umask < 0 || o->umask > 0777)
		return "umask is not 0 to 0777";
	if (o->nice < -20 || o->nice > 19)
		return "nice is not -20 to 19";
	if (o->pdeathsig < 0 || o->pdeathsig > LAST_SIGNAL)
		return "pdeathsig is not a signal";
	if ((o->flags & WEAN_SET_UID) && o->uid == ~0U)
		return "uid means no change to the kernel";
	if ((o->flags & WEAN_SET_GID) && o->gid == ~0U)
		return "gid means no change to the kernel";
	if (o->sigdefault & o->sigignore)
		return "a signal is in sigdefault and in sigignore";
	return NULL;
}

static const char *
list_fault(const struct wean_options *o)
{
	if (o->file && o->candidates)
		return "file and candidates are both set";
	if (o->nfds && !o->fds)
		return "nfds is set without fds";
	if (o->nlimits && !o->limits)
		return "nlimits is set without limits";
	if (o->ngroups && !o->groups)
		return "ngroups is set without groups";
	if (o->nfds > INT_MAX - 3 || o->nlimits > INT_MAX || o->ngroups > INT_MAX)
		return "a list is too long";
	return NULL;
}

const char *
wean_request_fault(const struct wean_options *o)
{
	const char *fault = flags_clash(o->flags);

	if (!fault && reserved_is_set(o))
		fault = "a reserved member is set";
	if (!fault)
		fault = lacks_flag(o);
	if (!fault)
		fault = value_fault(o);
	return fault ? fault : list_fault(o);
}

/* Members that a kind does not use are zero. */
const char *
wean_request_entry_fault(const struct wean_fd *e)
{
	int opens = e->kind == WEAN_OPEN;
	int copies = e->kind == WEAN_DUP || e->kind == WEAN_SAME;

	if (!opens && !copies && e->kind != WEAN_KEEP && e->kind != WEAN_NULL
	    && e->kind != WEAN_CLOSED)
		return "is of no kind for fds";
	if (e->target < 0)
		return "has a negative target";
	if (e->reserved)
		return "has a reserved member set";
	if (opens && !e->path)
		return "has no path";
	if (!opens && (e->path || e->oflag || e->mode))
		return "opens nothing, and uses no path, oflag or mode";
	if (e->kind == WEAN_KEEP && e->source && e->source != e->target)
		return "keeps its number, and source is another";
	if (!copies && e->kind != WEAN_KEEP && e->source)
		return "uses no source";
	return NULL;
}

const char *
wean_request_standard_fault(const struct wean_options *o, int fd)
{
	int kind = fd == 0 ? o->in : fd == 1 ? o->out : o->err;

	if (kind != 0 && kind != WEAN_INHERIT && kind != WEAN_NULL && kind != WEAN_PIPE
	    && kind != WEAN_CLOSED && !(kind == WEAN_MERGE && fd == 2))
		return "is of no kind for it";
	for (size_t i = 0; kind && i < o->nfds; i++)
		if (o->fds[i].target == fd)
			return "is given by an entry of fds too";
	return NULL;
}
