#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cmd.h"

/* ---- words ---- */

struct line {
	char *at;
	size_t left; /* the end included */
	int cut;
};

static void
say(struct line *t, const char *what)
{
	for (; *what && t->left > 1; t->left--)
		*t->at++ = *what++;
	t->cut |= *what != '\0';
}

static void
say_number(struct line *t, unsigned long long n)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%llu", n);
	say(t, digits);
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
say_quoted(struct line *t, const char *word)
{
	char letter[2] = "";

	say(t, "'");
	for (; *word; word++) {
		letter[0] = *word;
		say(t, *word == '\'' ? "'\\''" : letter);
	}
	say(t, "'");
}

static void
say_word(struct line *t, const char *word)
{
	if (is_plain(word))
		say(t, word);
	else
		say_quoted(t, word);
}

/* Where a command begins, some plain words are the shell's own, if not quoted. */
static void
say_name(struct line *t, const char *word)
{
	static const char own[][9] = {
		"case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
		"if", "in", "select", "then", "time", "until", "while",
	};
	int quoted = !is_plain(word);

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		quoted |= strcmp(word, own[i]) == 0;
	if (quoted)
		say_quoted(t, word);
	else
		say(t, word);
}

/* ---- what goes before ---- */

static void
say_dir(struct line *t, const wean_cmd *cmd)
{
	int counts = !cmd->dir || cmd->dir[0] != '/';

	if (!cmd->dir && !(cmd->o.flags & WEAN_DIR_FD))
		return;
	say(t, "cd ");
	if (counts && (cmd->o.flags & WEAN_DIR_FD)) {
		say(t, "/dev/fd/");
		say_number(t, (unsigned)cmd->o.dirfd);
		say(t, cmd->dir ? "/" : "");
	} else if (counts) {
		say(t, "./"); /* not from CDPATH; and "-" is a directory */
	}
	if (cmd->dir)
		say_word(t, cmd->dir);
	say(t, " && ");
}

static void
say_umask(struct line *t, const wean_cmd *cmd)
{
	char digits[16];

	if (!(cmd->o.flags & WEAN_SET_UMASK))
		return;
	snprintf(digits, sizeof digits, "%03o", (unsigned)cmd->o.umask);
	say(t, "umask ");
	say(t, digits);
	say(t, " && ");
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
say_ulimit(struct line *t, const char *which, const struct resource *r,
           unsigned long long n)
{
	say(t, "ulimit ");
	say(t, which);
	say(t, r->letter);
	if (n == ~0ULL)
		say(t, "unlimited");
	else
		say_number(t, n / r->unit);
	say(t, " && ");
}

static void
say_limits(struct line *t, const wean_cmd *cmd)
{
	for (size_t i = 0; i < cmd->o.nlimits; i++) {
		const struct wean_limit *l = &cmd->limits[i];

		for (size_t k = 0; k < sizeof resources / sizeof resources[0]; k++) {
			if (resources[k].resource != l->resource)
				continue;
			if (l->soft != l->hard)
				say_ulimit(t, "-S -", &resources[k], l->soft);
			say_ulimit(t, l->soft != l->hard ? "-H -" : "-", &resources[k],
			           l->hard);
		}
	}
}

/* ---- the command itself ---- */

/* What comes after the options of env(1). */
static const char *
first_operand(const wean_cmd *cmd)
{
	for (size_t i = 0; i < cmd->nedits; i++)
		if (strchr(cmd->edits[i], '='))
			return cmd->edits[i];
	return cmd->argv[0];
}

/* env(1) takes its options first. */
static void
say_env(struct line *t, const wean_cmd *cmd)
{
	if (!cmd->cleared && cmd->nedits == 0)
		return;
	say(t, cmd->cleared ? "env -i " : "env ");
	for (size_t i = 0; i < cmd->nedits; i++)
		if (!cmd->cleared && !strchr(cmd->edits[i], '=')) {
			say(t, "-u ");
			say_word(t, cmd->edits[i]);
			say(t, " ");
		}
	if (*first_operand(cmd) == '-')
		say(t, "-- ");
	for (size_t i = 0; i < cmd->nedits; i++)
		if (strchr(cmd->edits[i], '=')) {
			say_word(t, cmd->edits[i]);
			say(t, " ");
		}
	if (strchr(cmd->argv[0], '=')) /* which env takes for another variable */
		say(t, "sh -c '\"$0\" \"$@\"' ");
}

static void
say_words(struct line *t, const wean_cmd *cmd)
{
	say_name(t, cmd->argv[0]);
	for (size_t i = 1; i < cmd->argc; i++) {
		say(t, " ");
		say_word(t, cmd->argv[i]);
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
say_sign(struct line *t, int fd, const char *sign)
{
	say(t, " ");
	if (fd != (sign[0] == '>'))
		say_number(t, (unsigned)fd);
	say(t, sign);
}

static void
say_copy(struct line *t, int fd, int source)
{
	say_sign(t, fd, fd == 0 ? "<&" : ">&");
	say_number(t, (unsigned)source);
}

/* What each digit is to be a copy of, -1: nothing; and which are spoken for until all are
   copied: the others may get what they are to be afterwards. */
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
break_circle(struct line *t, struct copies *c, int spare)
{
	for (int i = 0; i < DIGITS; i++) {
		if (c->from[i] < 0)
			continue;
		say_copy(t, spare, i);
		for (int k = 0; k < DIGITS; k++)
			c->from[k] = c->from[k] == i ? spare : c->from[k];
		return 1;
	}
	return 0;
}

/* One after the other, as if at once. */
static void
say_copies(struct line *t, struct copies *c)
{
	int spare = 3, broken = 0, i;

	while (spare < DIGITS && c->used[spare])
		spare++;
	do {
		while ((i = next_copy(c)) >= 0) {
			if (c->from[i] != i)
				say_copy(t, i, c->from[i]);
			c->from[i] = -1;
		}
	} while (spare < DIGITS && break_circle(t, c, spare) && ++broken);
	if (broken)
		say_sign(t, spare, ">&-");
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

		if (is_digit(e->target) && (e->kind == WEAN_DUP || e->kind == WEAN_KEEP))
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
say_kind(struct line *t, int kind, int fd)
{
	if (kind == WEAN_CLOSED)
		say_sign(t, fd, fd == 0 ? "<&-" : ">&-");
	if (kind == WEAN_NULL) {
		say_sign(t, fd, fd == 0 ? "<" : fd <= 2 ? ">" : "<>");
		say(t, "/dev/null");
	}
}

static void
say_opened(struct line *t, const wean_cmd *cmd)
{
	for (size_t i = 0; i < cmd->o.nfds; i++) {
		const struct wean_fd *e = &cmd->fds[i];

		if (!is_digit(e->target))
			continue;
		say_kind(t, e->kind, e->target);
		if (e->kind == WEAN_OPEN) {
			say_sign(t, e->target, sign_of(e));
			say_word(t, e->path);
		}
	}
}

/* The entries, and behind them what WEAN_MERGE stands for. */
static const struct wean_fd *
same_at(const wean_cmd *cmd, size_t i)
{
	static const struct wean_fd merge = { .kind = WEAN_SAME, .target = 2, .source = 1 };

	return i < cmd->o.nfds ? &cmd->fds[i] : &merge;
}

static size_t
count_sames(const wean_cmd *cmd)
{
	return cmd->o.nfds + (cmd->o.err == WEAN_MERGE);
}

static int
is_same_too(const wean_cmd *cmd, int fd, const int done[])
{
	for (size_t i = 0; i < count_sames(cmd); i++)
		if (same_at(cmd, i)->kind == WEAN_SAME && same_at(cmd, i)->target == fd)
			return !done[fd];
	return 0;
}

/* One that is the same as another after that one. */
static void
say_sames(struct line *t, const wean_cmd *cmd)
{
	int done[DIGITS] = { 0 };

	for (int round = 0; round < DIGITS; round++)
		for (size_t i = 0; i < count_sames(cmd); i++) {
			const struct wean_fd *e = same_at(cmd, i);

			if (e->kind != WEAN_SAME || !is_digit(e->target) || !is_digit(e->source)
			    || done[e->target] || is_same_too(cmd, e->source, done))
				continue;
			say_copy(t, e->target, e->source);
			done[e->target] = 1;
		}
}

static void
say_redirections(struct line *t, const wean_cmd *cmd)
{
	struct copies c;

	gather_copies(&c, cmd);
	say_copies(t, &c);
	say_kind(t, cmd->o.in, 0);
	say_kind(t, cmd->o.out, 1);
	say_kind(t, cmd->o.err, 2);
	say_opened(t, cmd);
	say_sames(t, cmd);
}

/* ---- the whole ---- */

static void
say_before(struct line *t, const wean_cmd *cmd)
{
	say_dir(t, cmd);
	say_umask(t, cmd);
	say_limits(t, cmd);
}

static int
is_redirected(const wean_cmd *cmd)
{
	char none[2];
	struct line t = { none, sizeof none, 0 };

	say_redirections(&t, cmd);
	return t.at != none;
}

/* Files are opened from the caller's directory, under its umask and its limits. */
int
wean_cmd_tostring(wean_cmd *cmd, char *text, size_t size)
{
	struct line t = { text, size, 0 };
	char none[2];
	struct line before = { none, sizeof none, 0 };
	int grouped;

	if (!text || size == 0)
		return EINVAL;
	*text = '\0';
	if (!cmd || cmd->error)
		return cmd ? cmd->error : EINVAL;
	say_before(&before, cmd);
	grouped = before.at != none && is_redirected(cmd);
	say(&t, grouped ? "(" : "");
	say_before(&t, cmd);
	say_env(&t, cmd);
	say_words(&t, cmd);
	say(&t, grouped ? ")" : "");
	say_redirections(&t, cmd);
	*t.at = '\0';
	return t.cut ? EMSGSIZE : 0;
}
