#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "path.h"
#include "sys.h"

/* ---- the text ---- */

struct text {
	char *at;
	size_t left; /* with the NUL */
	int cut;
};

static void
add_char(struct text *t, char c)
{
	if (t->left > 1) {
		*t->at++ = c;
		t->left--;
	} else {
		t->cut = 1;
	}
}

static void
add(struct text *t, const char *s)
{
	while (*s)
		add_char(t, *s++);
}

static void
add_number(struct text *t, unsigned long long n)
{
	if (n >= 10)
		add_number(t, n / 10);
	add_char(t, (char)('0' + n % 10));
}

static void
add_int(struct text *t, int n)
{
	if (n < 0)
		add_char(t, '-');
	add_number(t, n < 0 ? 0ULL - (unsigned long long)n : (unsigned long long)n);
}

/* A carriage return at the end of a name is the very thing that must be seen. */
static void
add_escaped(struct text *t, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";

	add_char(t, '\\');
	if (c == '\r' || c == '\n' || c == '\t') {
		add_char(t, c == '\r' ? 'r' : c == '\n' ? 'n' : 't');
	} else {
		add_char(t, 'x');
		add_char(t, hex[c >> 4]);
		add_char(t, hex[c & 15]);
	}
}

static void
add_quoted(struct text *t, const char *s)
{
	add_char(t, '\'');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < ' ' || c == 0x7f)
			add_escaped(t, c);
		else
			add_char(t, *s);
	}
	add_char(t, '\'');
}

static void
add_error(struct text *t, int error)
{
	char buf[128];

	add(t, ": ");
	if (strerror_r(error, buf, sizeof buf) == 0) {
		add(t, buf);
	} else {
		add(t, "error ");
		add_int(t, error);
	}
}

/* ---- what the request was ---- */

struct failure {
	const struct wean_child *child;
	char *const *argv;
	const struct wean_options *opt;
	int error;
};

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

static const char *
program(const struct failure *f)
{
	int i = f->child->index;

	if (f->opt->candidates)
		return f->opt->candidates[i > 0 ? i : 0];
	return f->opt->file ? f->opt->file : f->argv[0];
}

static int
is_searched(const struct failure *f)
{
	return !f->opt->candidates && !strchr(program(f), '/');
}

static const char *
search_path(const struct failure *f)
{
	int childs = (f->opt->flags & WEAN_CHILD_PATH) && f->opt->env;
	const char *path = wean_path_env(childs ? f->opt->env : wean_sys_environ(), "PATH");

	for (char *const *e = f->opt->env_edit;
	     (f->opt->flags & WEAN_CHILD_PATH) && e && *e; e++)
		if (strncmp(*e, "PATH", 4) == 0 && ((*e)[4] == '=' || !(*e)[4]))
			path = (*e)[4] ? *e + 5 : NULL;
	return path ? path : WEAN_DEFAULT_PATH;
}

/* ---- the program ---- */

/* The directory that a relative program counts from: SYS_HERE, or a descriptor. */
static int
open_base(const struct failure *f)
{
	int dir = f->opt->flags & WEAN_DIR_FD ? f->opt->dirfd : SYS_HERE;
	int fd;

	if (!f->opt->dir && dir == SYS_HERE)
		return SYS_HERE;
	fd = wean_sys_open_at(dir, f->opt->dir ? f->opt->dir : ".",
	                      O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? SYS_HERE : fd;
}

static void
close_base(int base)
{
	if (base >= 0)
		wean_sys_close(base);
}

/* Cuts `line`, what follows #!, down to the interpreter's path. */
static const char *
script_interpreter(char *line)
{
	line += strspn(line, " \t");
	line[strcspn(line, " \t\n")] = '\0';
	return line;
}

static unsigned long long
get(const char *image, size_t at, size_t bytes)
{
	unsigned long long v = 0;
	int big = image[5] == 2;

	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | (unsigned char)image[at + (big ? i : bytes - 1 - i)];
	return v;
}

/* The path in the PT_INTERP segment, where the first page shows it. */
static const char *
elf_interpreter(char *image, size_t len)
{
	int wide = image[4] == 2;
	size_t word = wide ? 8 : 4;
	size_t at = (size_t)get(image, wide ? 32 : 28, word);
	size_t size = (size_t)get(image, wide ? 54 : 42, 2);
	size_t n = (size_t)get(image, wide ? 56 : 44, 2);

	for (; n-- > 0 && at < len && len - at >= (wide ? 16 : 8); at += size) {
		size_t offset;

		if (get(image, at, 4) != 3)
			continue;
		offset = (size_t)get(image, at + (wide ? 8 : 4), word);
		return offset < len ? image + offset : NULL;
	}
	return NULL;
}

/* The interpreter or loader that a program names.  buf holds its beginning. */
static const char *
interpreter(int base, const char *path, char *buf, size_t size)
{
	int fd = wean_sys_open_at(base, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	int len = 0;

	if (fd >= 0) {
		len = wean_sys_read(fd, buf, size - 1);
		wean_sys_close(fd);
	}
	buf[len > 0 ? len : 0] = '\0';
	if (len > 2 && memcmp(buf, "#!", 2) == 0)
		return script_interpreter(buf + 2);
	if (len > 64 && memcmp(buf, "\177ELF", 4) == 0)
		return elf_interpreter(buf, (size_t)len);
	return NULL;
}

/* The program is there, so it is what should run it that is not. */
static int
explain_interpreter(struct text *t, const struct failure *f, int base)
{
	char buf[4096];
	struct sys_file file;
	const char *runs;

	if (wean_sys_file_at(base, program(f), &file) < 0)
		return 0;
	runs = interpreter(base, program(f), buf, sizeof buf);
	if (!runs)
		return 0;
	add(t, "cannot run ");
	add_quoted(t, program(f));
	add(t, ": its interpreter ");
	add_quoted(t, runs);
	if (*runs && runs[strlen(runs) - 1] == '\r')
		add(t, " (the line ends in a carriage return)");
	add_error(t, f->error);
	return 1;
}

static void
add_refusal(struct text *t, int base, const char *path)
{
	struct sys_file file;

	if (wean_sys_file_at(base, path, &file) < 0)
		return;
	if (S_ISDIR(file.mode))
		add(t, " (it is a directory)");
	else if (!S_ISREG(file.mode))
		add(t, " (it is not a regular file)");
	else if (!(file.mode & 0111))
		add(t, " (it has no execute permission)");
}

/* The first candidate of a search that is there at all. */
static void
add_found(struct text *t, const struct failure *f)
{
	const char *path = search_path(f);
	struct sys_file file;
	char name[4096];

	while (*path) {
		size_t len = strcspn(path, ":"), rest = strlen(program(f));

		if (*path == '/' && len + rest + 2 <= sizeof name) {
			memcpy(name, path, len);
			name[len] = '/';
			memcpy(name + len + 1, program(f), rest + 1);
			if (wean_sys_file_at(SYS_HERE, name, &file) == 0 && S_ISREG(file.mode)) {
				add_quoted(t, name);
				add_refusal(t, SYS_HERE, name);
				return;
			}
		}
		path += len + (path[len] == ':');
	}
	add_quoted(t, program(f));
}

static int
explain_search(struct text *t, const struct failure *f)
{
	if (f->error == ENOENT) {
		add(t, "cannot find ");
		add_quoted(t, program(f));
		add(t, " in PATH ");
		add_quoted(t, search_path(f));
	} else {
		add(t, "cannot run ");
		add_found(t, f);
	}
	add_error(t, f->error);
	return 1;
}

/* ---- too long ---- */

static unsigned long long
length_of_all(char *const *list)
{
	unsigned long long sum = 0;

	for (; list && *list; list++)
		sum += strlen(*list) + 1 + sizeof *list;
	return sum;
}

/* execve(2): a string may have 32 pages. */
static int
find_long(char *const *list, size_t *at)
{
	size_t most = 32 * (size_t)sysconf(_SC_PAGESIZE);

	for (*at = 0; list && list[*at]; ++*at)
		if (strlen(list[*at]) >= most)
			return 1;
	return 0;
}

static void
add_variable(struct text *t, const char *variable)
{
	for (size_t i = 0; variable[i] && variable[i] != '=' && i < 64; i++)
		add_char(t, variable[i]);
}

static void
add_long(struct text *t, const char *string)
{
	add(t, " has ");
	add_number(t, strlen(string));
	add(t, " bytes, more than one string may have");
}

static void
explain_too_big(struct text *t, const struct failure *f)
{
	char *const *env = f->opt->env ? f->opt->env : wean_sys_environ();
	char *const *edit = f->opt->env_edit;
	size_t at;

	add(t, "cannot run ");
	add_quoted(t, program(f));
	add(t, ": ");
	if (find_long(f->argv, &at)) {
		add(t, "argument ");
		add_number(t, at);
		add_long(t, f->argv[at]);
	} else if (find_long(edit, &at) || (edit = env, find_long(env, &at))) {
		add(t, "environment variable ");
		add_variable(t, edit[at]);
		add_long(t, edit[at]);
	} else {
		add(t, "arguments and environment have ");
		add_number(t, length_of_all(f->argv) + length_of_all(env)
		              + length_of_all(f->opt->env_edit));
		add(t, " bytes, more than both may have");
	}
	add_error(t, f->error);
}

/* ---- a sentence for each stage ---- */

static void
explain_exec(struct text *t, const struct failure *f)
{
	int base;

	if (f->error == E2BIG) {
		explain_too_big(t, f);
		return;
	}
	if (is_searched(f) && (f->error == ENOENT || f->error == EACCES)) {
		explain_search(t, f);
		return;
	}
	base = open_base(f);
	if ((f->error != ENOENT && f->error != EACCES) || !explain_interpreter(t, f, base)) {
		add(t, "cannot run ");
		add_quoted(t, program(f));
		if (f->error == EACCES)
			add_refusal(t, base, program(f));
		if (f->error == ENOEXEC)
			add(t, " (neither a program for this machine nor a script with a #! line)");
		add_error(t, f->error);
	}
	close_base(base);
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

static void
explain_options(struct text *t, const struct failure *f)
{
	const struct wean_fd *e = entry(f);
	const char *what = f->error == ENOTSUP ? "asks for what this version cannot do"
	                                       : "is not valid";
	int twice = 0;

	for (int i = 0; e && i < f->child->index; i++)
		twice |= f->opt->fds[i].target == e->target;
	if (f->error == EPERM) {
		add(t, "a set-uid program may not search ");
		add_quoted(t, program(f));
		add(t, " in PATH");
	} else if (twice) {
		add_entry(t, f);
		add(t, " gives descriptor ");
		add_int(t, e->target);
		add(t, " a second time");
	} else if (f->child->index >= 0) {
		add_entry(t, f);
		add(t, " ");
		add(t, what);
	} else {
		add(t, "the request ");
		add(t, what);
	}
	add_error(t, f->error);
}

static void
explain_fd(struct text *t, const struct failure *f)
{
	const struct wean_fd *e = entry(f);

	if (!e) {
		add(t, "cannot place descriptor ");
		add_int(t, standard(f));
	} else if (e->kind == WEAN_DUP || e->kind == WEAN_KEEP) {
		add(t, "cannot pass descriptor ");
		add_int(t, e->kind == WEAN_DUP ? e->source : e->target);
		add(t, " as ");
		add_int(t, e->target);
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
	case WEAN_STAGE_EXEC:    explain_exec(t, f); break;
	default:
		add(t, plain_sentence(f->child->stage));
		add_error(t, f->error);
	}
}

int
wean_explain(const struct wean_child *child, char *const argv[],
             const struct wean_options *opt, int error, char *text, size_t size)
{
	static const struct wean_options defaults;
	static char *const no_argv[] = { NULL };
	struct failure f = { child, argv ? argv : no_argv, opt ? opt : &defaults, error };
	struct text t = { text, size, 0 };
	int saved = errno;

	if (!child || !text || size == 0)
		return EINVAL;
	explain(&t, &f);
	*t.at = '\0';
	errno = saved;
	return t.cut ? EMSGSIZE : 0;
}
