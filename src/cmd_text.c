#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cmd.h"

/* ---- words ---- */

struct text {
	char *at;
	size_t left; /* the end included */
	int cut;
};

static void
add(struct text *t, const char *what)
{
	for (; *what && t->left > 1; t->left--)
		*t->at++ = *what++;
	t->cut |= *what != '\0';
}

static void
add_number(struct text *t, unsigned long long n)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%llu", n);
	add(t, digits);
}

static int
is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                            "0123456789%+,-./:@_";

	return *word && word[strspn(word, plain)] == '\0';
}

/* In quotes nothing is special but their end, which then stands outside of them. */
static void
add_quoted(struct text *t, const char *word)
{
	char letter[2] = "";

	add(t, "'");
	for (; *word; word++) {
		letter[0] = *word;
		add(t, *word == '\'' ? "'\\''" : letter);
	}
	add(t, "'");
}

static void
add_word(struct text *t, const char *word)
{
	if (is_plain(word))
		add(t, word);
	else
		add_quoted(t, word);
}

/* Where a command begins, some plain words are the shell's own, if not quoted. */
static void
add_name(struct text *t, const char *word)
{
	static const char own[][9] = {
		"case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
		"if", "in", "select", "then", "time", "until", "while",
	};
	int quoted = !is_plain(word);

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		quoted |= strcmp(word, own[i]) == 0;
	if (quoted)
		add_quoted(t, word);
	else
		add(t, word);
}

/* ---- what goes before ---- */

static void
add_dir(struct text *t, const wean_cmd *cmd)
{
	int counts = !cmd->dir || cmd->dir[0] != '/';

	if (!cmd->dir && !(cmd->o.flags & WEAN_DIR_FD))
		return;
	add(t, "cd ");
	if (counts && (cmd->o.flags & WEAN_DIR_FD)) {
		add(t, "/dev/fd/");
		add_number(t, (unsigned)cmd->o.dirfd);
		add(t, cmd->dir ? "/" : "");
	} else if (counts) {
		add(t, "./"); /* not from CDPATH; and "-" is a directory */
	}
	if (cmd->dir)
		add_word(t, cmd->dir);
	add(t, " && ");
}

static void
add_umask(struct text *t, const wean_cmd *cmd)
{
	char digits[16];

	if (!(cmd->o.flags & WEAN_SET_UMASK))
		return;
	snprintf(digits, sizeof digits, "%03o", (unsigned)cmd->o.umask);
	add(t, "umask ");
	add(t, digits);
	add(t, " && ");
}

/* Those that shells agree about, in the units that they count in. */
static const struct resource {
	int resource;
	const char *letter;
	unsigned unit;
} resources[] = {
	{ RLIMIT_CORE, "c ", 512 }, { RLIMIT_CPU, "t ", 1 }, { RLIMIT_DATA, "d ", 1024 },
	{ RLIMIT_FSIZE, "f ", 512 }, { RLIMIT_NOFILE, "n ", 1 }, { RLIMIT_STACK, "s ", 1024 },
	{ RLIMIT_AS, "v ", 1024 },
};

static void
add_ulimit(struct text *t, const char *which, const struct resource *r,
           unsigned long long n)
{
	add(t, "ulimit ");
	add(t, which);
	add(t, r->letter);
	if (n == ~0ULL)
		add(t, "unlimited");
	else
		add_number(t, n / r->unit);
	add(t, " && ");
}

static void
add_limits(struct text *t, const wean_cmd *cmd)
{
	for (size_t i = 0; i < cmd->o.nlimits; i++) {
		const struct wean_limit *l = &cmd->limits[i];

		for (size_t k = 0; k < sizeof resources / sizeof resources[0]; k++) {
			if (resources[k].resource != l->resource)
				continue;
			if (l->soft != l->hard)
				add_ulimit(t, "-S -", &resources[k], l->soft);
			add_ulimit(t, l->soft != l->hard ? "-H -" : "-", &resources[k],
			           l->hard);
		}
	}
}

/* ---- the command itself ---- */

/* env(1) takes its options first. */
static void
add_env(struct text *t, const wean_cmd *cmd)
{
	if (!cmd->cleared && cmd->nedits == 0)
		return;
	add(t, cmd->cleared ? "env -i " : "env ");
	for (size_t i = 0; i < cmd->nedits; i++)
		if (!cmd->cleared && !strchr(cmd->edits[i], '=')) {
			add(t, "-u ");
			add_word(t, cmd->edits[i]);
			add(t, " ");
		}
	for (size_t i = 0; i < cmd->nedits; i++)
		if (strchr(cmd->edits[i], '=')) {
			add_word(t, cmd->edits[i]);
			add(t, " ");
		}
	if (strchr(cmd->argv[0], '=')) /* which env takes for another variable */
		add(t, "sh -c 'exec \"$0\" \"$@\"' ");
}

static void
add_words(struct text *t, const wean_cmd *cmd)
{
	add_name(t, cmd->argv[0]);
	for (size_t i = 1; i < cmd->argc; i++) {
		add(t, " ");
		add_word(t, cmd->argv[i]);
	}
}

/* ---- descriptors ---- */

/* A shell knows descriptors of one digit alone. */
enum { DIGITS = 10 };

static int
is_digit(int fd)
{
	return fd >= 0 && fd < DIGITS;
}

/* " 2>": the number is left out where the sign means it anyway. */
static void
add_sign(struct text *t, int fd, const char *sign)
{
	add(t, " ");
	if (fd != (sign[0] == '>'))
		add_number(t, (unsigned)fd);
	add(t, sign);
}

static void
add_copy(struct text *t, int fd, int source)
{
	add_sign(t, fd, fd == 0 ? "<&" : ">&");
	add_number(t, (unsigned)source);
}

/* What each digit is to be a copy of, -1: nothing; and which are spoken for. */
struct copies {
	int from[DIGITS];
	int used[DIGITS];
};

static int
is_read(const struct copies *c, int fd)
{
	for (int i = 0; i < DIGITS; i++)
		if (i != fd && c->from[i] == fd)
			return 1;
	return 0;
}

/* A number that none of them reads any more; in a circle there is none. */
static int
next_copy(const struct copies *c)
{
	for (int i = 0; i < DIGITS; i++)
		if (c->from[i] >= 0 && !is_read(c, i))
			return i;
	return -1;
}

/* What one of a circle has goes to a free number, and its readers take it from there. */
static int
break_circle(struct text *t, struct copies *c, int spare)
{
	for (int i = 0; i < DIGITS; i++) {
		if (c->from[i] < 0)
			continue;
		add_copy(t, spare, i);
		for (int k = 0; k < DIGITS; k++)
			c->from[k] = c->from[k] == i ? spare : c->from[k];
		return 1;
	}
	return 0;
}

/* One after the other, as if at once. */
static void
add_copies(struct text *t, struct copies *c)
{
	int spare = 3, broken = 0, i;

	while (spare < DIGITS && c->used[spare])
		spare++;
	do {
		while ((i = next_copy(c)) >= 0) {
			if (c->from[i] != i)
				add_copy(t, i, c->from[i]);
			c->from[i] = -1;
		}
	} while (spare < DIGITS && break_circle(t, c, spare) && ++broken);
	if (broken)
		add_sign(t, spare, ">&-");
}

static void
gather_copies(struct copies *c, const wean_cmd *cmd)
{
	for (int i = 0; i < DIGITS; i++) {
		c->from[i] = -1;
		c->used[i] = 0;
	}
	for (size_t i = 0; i < cmd->o.nfds; i++) {
		const struct wean_fd *e = &cmd->fds[i];

		if (is_digit(e->target))
			c->used[e->target] = 1;
		if (is_digit(e->source))
			c->used[e->source] = 1;
		if (e->kind == WEAN_DUP && is_digit(e->target) && is_digit(e->source))
			c->from[e->target] = e->source;
	}
}

/* The one that does what it may do, and no more to what the file holds. */
static const char *
sign_of(const struct wean_fd *e)
{
	switch (e->oflag & (O_ACCMODE | O_APPEND | O_TRUNC)) {
	case O_WRONLY | O_APPEND: return ">>";
	case O_WRONLY | O_TRUNC:  return ">";
	default: return (e->oflag & O_ACCMODE) == O_RDONLY ? "<" : "<>";
	}
}

static void
add_kind(struct text *t, int kind, int fd)
{
	if (kind == WEAN_CLOSED)
		add_sign(t, fd, fd == 0 ? "<&-" : ">&-");
	if (kind == WEAN_NULL) {
		add_sign(t, fd, fd == 0 ? "<" : fd <= 2 ? ">" : "<>");
		add(t, "/dev/null");
	}
}

static void
add_opened(struct text *t, const wean_cmd *cmd)
{
	for (size_t i = 0; i < cmd->o.nfds; i++) {
		const struct wean_fd *e = &cmd->fds[i];

		if (!is_digit(e->target))
			continue;
		add_kind(t, e->kind, e->target);
		if (e->kind == WEAN_OPEN) {
			add_sign(t, e->target, sign_of(e));
			add_word(t, e->path);
		}
	}
}

static int
is_same_too(const wean_cmd *cmd, int fd, const int done[])
{
	for (size_t i = 0; i < cmd->o.nfds; i++)
		if (cmd->fds[i].kind == WEAN_SAME && cmd->fds[i].target == fd)
			return !done[fd];
	return 0;
}

/* One that is the same as another after that one. */
static void
add_sames(struct text *t, const wean_cmd *cmd)
{
	int done[DIGITS] = { 0 };

	for (int round = 0; round < DIGITS; round++)
		for (size_t i = 0; i < cmd->o.nfds; i++) {
			const struct wean_fd *e = &cmd->fds[i];

			if (e->kind != WEAN_SAME || !is_digit(e->target) || !is_digit(e->source)
			    || done[e->target] || is_same_too(cmd, e->source, done))
				continue;
			add_copy(t, e->target, e->source);
			done[e->target] = 1;
		}
	if (cmd->o.err == WEAN_MERGE)
		add_copy(t, 2, 1);
}

static void
add_redirections(struct text *t, const wean_cmd *cmd)
{
	struct copies c;

	gather_copies(&c, cmd);
	add_copies(t, &c);
	add_kind(t, cmd->o.in, 0);
	add_kind(t, cmd->o.out, 1);
	add_kind(t, cmd->o.err, 2);
	add_opened(t, cmd);
	add_sames(t, cmd);
}

/* ---- the whole ---- */

static void
add_before(struct text *t, const wean_cmd *cmd)
{
	add_dir(t, cmd);
	add_umask(t, cmd);
	add_limits(t, cmd);
}

static int
is_redirected(const wean_cmd *cmd)
{
	char none[2];
	struct text t = { none, sizeof none, 0 };

	add_redirections(&t, cmd);
	return t.at != none;
}

/* Files are opened from the caller's directory, under its umask and its limits. */
int
wean_cmd_tostring(wean_cmd *cmd, char *text, size_t size)
{
	struct text t = { text, size, 0 };
	char none[2];
	struct text before = { none, sizeof none, 0 };
	int grouped;

	if (!text || size == 0)
		return EINVAL;
	*text = '\0';
	if (!cmd || cmd->error)
		return cmd ? cmd->error : EINVAL;
	add_before(&before, cmd);
	grouped = before.at != none && is_redirected(cmd);
	add(&t, grouped ? "(" : "");
	add_before(&t, cmd);
	add_env(&t, cmd);
	add_words(&t, cmd);
	add(&t, grouped ? ")" : "");
	add_redirections(&t, cmd);
	*t.at = '\0';
	return t.cut ? EMSGSIZE : 0;
}
