/* Why a program could not be executed. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "explain.h"
#include "path.h"
#include "sys.h"

static int
is_searched(const struct failure *f)
{
	return !f->opt->candidates && !strchr(f->program, '/');
}

static const char *
search_path(const struct failure *f)
{
	int childs = (f->opt->flags & WEAN_CHILD_PATH) != 0;
	const char *path = wean_env_value(childs ? f->env : wean_sys_environ(), "PATH");

	return path ? path : WEAN_DEFAULT_PATH;
}

/* ---- the interpreter ---- */

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

static int
is_program(int base, const char *path, struct sys_file *file)
{
	return wean_sys_file_at(base, path, file) == 0 && S_ISREG(file->mode);
}

/* Whether execve(2) gave this error for a file that is there; a search goes past some
   of them. */
static int
gave_error(const char *path, int error)
{
	char buf[4096];
	struct sys_file file;
	const char *runs = NULL;
	int executable, lacks;

	if (!is_program(SYS_HERE, path, &file))
		return 0;
	executable = (file.mode & 0111) != 0;
	if (executable)
		runs = interpreter(SYS_HERE, path, buf, sizeof buf);
	lacks = runs && wean_sys_file_at(SYS_HERE, runs, &file) < 0;
	if (error == ENOENT)
		return lacks;
	return !lacks && (executable || error == EACCES);
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

/* The program is there, and it is what should run it that is not. */
static int
blame_interpreter(struct text *t, const struct failure *f, int base, const char *path)
{
	char buf[4096];
	struct sys_file file;
	const char *runs;
	int bad;

	if (!is_program(base, path, &file) || !(file.mode & 0111))
		return 0;
	runs = interpreter(base, path, buf, sizeof buf);
	if (!runs)
		return 0;
	bad = wean_sys_file_at(base, runs, &file) < 0;
	if (f->error == EACCES)
		bad |= !S_ISREG(file.mode) || !(file.mode & 0111);
	if (!bad)
		return 0;
	add(t, ": its interpreter ");
	add_quoted(t, runs);
	if (*runs && runs[strlen(runs) - 1] == '\r')
		add(t, " (the line ends in a carriage return)");
	add_refusal(t, base, runs);
	return 1;
}

/* The candidate of a search that gave the error. */
static const char *
found(const struct failure *f, char *name, size_t size)
{
	const char *path = search_path(f);
	size_t rest = strlen(f->program) + 1;

	for (size_t len; *path; path += len + (path[len] == ':')) {
		len = strcspn(path, ":");
		if (*path != '/' || len + 1 + rest > size)
			continue;
		memcpy(name, path, len);
		name[len] = '/';
		memcpy(name + len + 1, f->program, rest);
		if (gave_error(name, f->error))
			return name;
	}
	return NULL;
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
	size_t at;

	add(t, "cannot run ");
	add_quoted(t, f->program);
	add(t, ": ");
	if (find_long(f->argv, &at)) {
		add(t, "argument ");
		add_number(t, at);
		add_long(t, f->argv[at]);
	} else if (find_long(f->env, &at)) {
		add(t, "environment variable ");
		add_variable(t, f->env[at]);
		add_long(t, f->env[at]);
	} else {
		add(t, "arguments and environment have ");
		add_number(t, length_of_all(f->argv) + length_of_all(f->env));
		add(t, " bytes, more than both may have");
	}
}

/* ---- the sentence ---- */

static void
explain_run(struct text *t, const struct failure *f, int base, const char *path)
{
	int blamed = 0;

	add(t, "cannot run ");
	add_quoted(t, path);
	if (f->error == ENOENT || f->error == EACCES)
		blamed = blame_interpreter(t, f, base, path);
	if (f->error == EACCES && !blamed)
		add_refusal(t, base, path);
	if (f->error == ENOEXEC)
		add(t, " (neither a program for this machine nor a script with a #! line)");
}

static int
skips_elements(const char *path)
{
	for (size_t len; *path; path += len + (path[len] == ':')) {
		len = strcspn(path, ":");
		if (*path != '/')
			return 1;
	}
	return 0;
}

static void
explain_search(struct text *t, const struct failure *f)
{
	char name[4096];
	const char *path = found(f, name, sizeof name);

	if (path) {
		explain_run(t, f, SYS_HERE, path);
		return;
	}
	add(t, "cannot find ");
	add_quoted(t, f->program);
	add(t, " in PATH ");
	add_quoted(t, search_path(f));
	if (skips_elements(search_path(f)))
		add(t, " (relative elements are skipped)");
}

void
wean_explain_exec(struct text *t, const struct failure *f)
{
	int base;

	if (f->error == E2BIG) {
		explain_too_big(t, f);
	} else if (is_searched(f)) {
		explain_search(t, f);
	} else {
		base = open_base(f);
		explain_run(t, f, base, f->program);
		close_base(base);
	}
	add_error(t, f->error);
}
