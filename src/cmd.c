#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* ---- errors and memory ---- */

/* May the command be changed: 0, or the errno that it is stuck at. */
static int
stuck(const wean_cmd *cmd)
{
	return cmd ? cmd->error : EINVAL;
}

static int
stick(wean_cmd *cmd, int error)
{
	cmd->error = error;
	return error;
}

static void *
allocate(wean_cmd *cmd, size_t size)
{
	int saved = errno;
	void *memory = malloc(size);

	errno = saved;
	if (!memory)
		stick(cmd, ENOMEM);
	return memory;
}

/* NULL, and the command is stuck: no memory. */
static char *
copy(wean_cmd *cmd, const char *text)
{
	size_t size = strlen(text) + 1;
	char *memory = allocate(cmd, size);

	return memory ? memcpy(memory, text, size) : NULL;
}

/* The list with room for one more than n and for an end; as it was, and the command is
   stuck: no memory. */
static void *
grow_list(wean_cmd *cmd, void *list, size_t n, size_t size)
{
	void *larger;

	if ((n & (n - 1)) != 0) /* it grows to twice its length */
		return list;
	if (!(larger = allocate(cmd, (2 * n + 2) * size)))
		return list;
	if (n > 0)
		memcpy(larger, list, n * size);
	free(list);
	return larger;
}

static void
free_texts(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

/* Takes the text over. */
static int
add_text(wean_cmd *cmd, char ***list, size_t *n, char *text)
{
	if (!cmd->error)
		*list = grow_list(cmd, *list, *n, sizeof **list);
	if (cmd->error) {
		free(text);
		return cmd->error;
	}
	(*list)[(*n)++] = text;
	(*list)[*n] = NULL;
	return 0;
}

/* ---- the program, its arguments, its directory ---- */

wean_cmd *
wean_cmd_new(const char *file)
{
	wean_cmd *cmd;

	if (!file) {
		errno = EINVAL;
		return NULL;
	}
	cmd = calloc(1, sizeof *cmd);
	if (cmd && wean_cmd_arg(cmd, file) == 0)
		return cmd;
	wean_cmd_free(cmd);
	errno = ENOMEM;
	return NULL;
}

void
wean_cmd_free(wean_cmd *cmd)
{
	if (!cmd)
		return;
	free_texts(cmd->argv, cmd->argc);
	free_texts(cmd->edits, cmd->nedits);
	for (size_t i = 0; i < cmd->o.nfds; i++)
		free((void *)(uintptr_t)cmd->fds[i].path);
	free(cmd->fds);
	free(cmd->limits);
	free(cmd->dir);
	free(cmd);
}

int
wean_cmd_arg(wean_cmd *cmd, const char *arg)
{
	if (stuck(cmd))
		return stuck(cmd);
	if (!arg)
		return stick(cmd, EINVAL);
	return add_text(cmd, &cmd->argv, &cmd->argc, copy(cmd, arg));
}

int
wean_cmd_dir(wean_cmd *cmd, const char *dir)
{
	char *text = NULL;

	if (stuck(cmd))
		return stuck(cmd);
	if (dir && !(text = copy(cmd, dir)))
		return ENOMEM;
	free(cmd->dir);
	cmd->dir = text;
	return 0;
}

/* ---- the environment ---- */

/* "NAME=VALUE", or "NAME" where value is NULL. */
static char *
make_edit(wean_cmd *cmd, const char *name, const char *value)
{
	size_t len = strlen(name), more = value ? strlen(value) + 1 : 0;
	char *edit = allocate(cmd, len + more + 1);

	if (!edit)
		return NULL;
	memcpy(edit, name, len + 1);
	if (value) {
		edit[len] = '=';
		memcpy(edit + len + 1, value, more);
	}
	return edit;
}

static char **
find_edit(const wean_cmd *cmd, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < cmd->nedits; i++)
		if (strncmp(cmd->edits[i], name, len) == 0
		    && (cmd->edits[i][len] == '=' || cmd->edits[i][len] == '\0'))
			return &cmd->edits[i];
	return NULL;
}

int
wean_cmd_setenv(wean_cmd *cmd, const char *name, const char *value)
{
	char *edit, **old;

	if (stuck(cmd))
		return stuck(cmd);
	if (!name || !*name || strchr(name, '='))
		return stick(cmd, EINVAL);
	edit = make_edit(cmd, name, value);
	if (!edit || !(old = find_edit(cmd, name)))
		return add_text(cmd, &cmd->edits, &cmd->nedits, edit);
	free(*old);
	*old = edit;
	return 0;
}

int
wean_cmd_clearenv(wean_cmd *cmd)
{
	if (stuck(cmd))
		return stuck(cmd);
	free_texts(cmd->edits, cmd->nedits);
	cmd->edits = NULL;
	cmd->nedits = 0;
	cmd->cleared = 1;
	return 0;
}

/* ---- descriptors and limits ---- */

static int
add_fd(wean_cmd *cmd, const struct wean_fd *entry)
{
	cmd->fds = grow_list(cmd, cmd->fds, cmd->o.nfds, sizeof cmd->fds[0]);
	if (!cmd->error)
		cmd->fds[cmd->o.nfds++] = *entry;
	return cmd->error;
}

int
wean_cmd_fd(wean_cmd *cmd, int kind, int target, int source)
{
	if (stuck(cmd))
		return stuck(cmd);
	if (kind != WEAN_DUP && kind != WEAN_KEEP && kind != WEAN_SAME && kind != WEAN_NULL
	    && kind != WEAN_CLOSED)
		return stick(cmd, EINVAL);
	return add_fd(cmd, &(struct wean_fd){ .kind = kind, .target = target,
	                                      .source = source });
}

int
wean_cmd_open(wean_cmd *cmd, int target, const char *path, int oflag, unsigned mode)
{
	struct wean_fd entry = { .kind = WEAN_OPEN, .target = target, .oflag = oflag,
	                         .mode = mode };
	char *text;

	if (stuck(cmd))
		return stuck(cmd);
	if (!path)
		return stick(cmd, EINVAL);
	if (!(text = copy(cmd, path)))
		return ENOMEM;
	entry.path = text;
	if (add_fd(cmd, &entry) != 0)
		free(text);
	return cmd->error;
}

int
wean_cmd_limit(wean_cmd *cmd, int resource, unsigned long long soft,
               unsigned long long hard)
{
	if (stuck(cmd))
		return stuck(cmd);
	cmd->limits = grow_list(cmd, cmd->limits, cmd->o.nlimits, sizeof cmd->limits[0]);
	if (cmd->error)
		return cmd->error;
	cmd->limits[cmd->o.nlimits++] = (struct wean_limit){ .resource = resource, .soft = soft,
	                                                     .hard = hard };
	return 0;
}

/* ---- members by name ---- */

#define OPTION(type, member, flag) \
	{ #member, type, offsetof(struct wean_options, member), flag }

enum type { INT, UNSIGNED, BITS };

static const struct member {
	const char *name;
	enum type type;
	size_t offset;
	unsigned long long flag;
} members[] = {
	OPTION(BITS, sigmask, 0),
	OPTION(BITS, sigdefault, 0),
	OPTION(BITS, sigignore, 0),
	OPTION(INT, in, 0),
	OPTION(INT, out, 0),
	OPTION(INT, err, 0),
	OPTION(INT, pgid, WEAN_JOIN_GROUP),
	OPTION(INT, umask, WEAN_SET_UMASK),
	OPTION(INT, nice, WEAN_SET_NICE),
	OPTION(INT, pdeathsig, 0),
	OPTION(INT, dirfd, WEAN_DIR_FD),
	OPTION(INT, ttyfd, 0),
	OPTION(INT, cgroupfd, WEAN_IN_CGROUP),
	OPTION(UNSIGNED, uid, WEAN_SET_UID),
	OPTION(UNSIGNED, gid, WEAN_SET_GID),
};

static const struct member *
member_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof members / sizeof members[0]; i++)
		if (strcmp(members[i].name, name) == 0)
			return &members[i];
	return NULL;
}

static int
set_member(struct wean_options *o, const struct member *m, long long value)
{
	char *at = (char *)o + m->offset;
	const int i = (int)value;
	const unsigned u = (unsigned)value;

	if (m->type == BITS)
		memcpy(at, &value, sizeof value);
	else if (m->type == INT && value >= INT_MIN && value <= INT_MAX)
		memcpy(at, &i, sizeof i);
	else if (m->type == UNSIGNED && value >= 0 && value <= (long long)UINT_MAX)
		memcpy(at, &u, sizeof u);
	else
		return ERANGE;
	o->flags |= m->flag;
	return 0;
}

int
wean_cmd_set(wean_cmd *cmd, const char *name, long long value)
{
	const struct member *m = member_of(name);

	if (stuck(cmd))
		return stuck(cmd);
	if (name && strcmp(name, "flags") == 0)
		cmd->o.flags |= (unsigned long long)value;
	else
		cmd->error = m ? set_member(&cmd->o, m, value) : EINVAL;
	return cmd->error;
}

/* ---- starting ---- */

static struct wean_options
options(wean_cmd *cmd)
{
	static char *const none[] = { NULL };
	struct wean_options o = cmd->o;

	o.dir = cmd->dir;
	o.env = cmd->cleared ? none : NULL;
	o.env_edit = cmd->edits;
	o.fds = cmd->fds;
	o.limits = cmd->limits;
	return o;
}

static const struct wean_child not_started = {
	.pidfd = -1, .in = -1, .out = -1, .err = -1, .stage = WEAN_STAGE_OPTIONS, .index = -1,
};

int
wean_cmd_spawn(wean_cmd *cmd, struct wean_child *child)
{
	struct wean_options o;

	if (stuck(cmd)) {
		if (child)
			*child = not_started;
		return stuck(cmd);
	}
	o = options(cmd);
	return wean_spawn(child, cmd->argv, &o);
}

int
wean_cmd_run(wean_cmd *cmd, const struct wean_io *io, struct wean_result *result)
{
	struct wean_options o;

	if (stuck(cmd)) {
		if (result)
			*result = (struct wean_result){ .child = not_started };
		return stuck(cmd);
	}
	o = options(cmd);
	return wean_run(cmd->argv, &o, io, result);
}
