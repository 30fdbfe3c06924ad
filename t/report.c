/* report.c - both sides of the report: t/kid writes, the tests read. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"

/* ---- writing: descriptors ----------------------------------------------- */

static void put_text(FILE *f, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c > ' ' && c < 127 && c != '\\')
			putc(c, f);
		else
			fprintf(f, "\\x%02x", c);
	}
	putc('\n', f);
}

static void put_link(FILE *f, int fd)
{
	char name[64], target[4096];

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(name, target, sizeof target - 1);
	target[n > 0 ? n : 0] = '\0';
	put_text(f, n > 0 ? target : "?");
}

static void put_descriptor(FILE *f, int fd)
{
	struct stat st = { 0 };
	int flags = fcntl(fd, F_GETFL);

	fstat(fd, &st);
	fprintf(f, "fd %d %c %#x %#o %llu %llu %llu %c ", fd,
	        flags & O_PATH ? 'p' : "rwbb"[flags & O_ACCMODE],
	        (unsigned)fcntl(fd, F_GETFD), (unsigned)flags,
	        (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
	        (unsigned long long)st.st_rdev,
	        "apc?d?b?f?l?s???"[(st.st_mode & S_IFMT) >> 12]);
	put_link(f, fd);
}

/* ---- writing: the rest -------------------------------------------------- */

static void put_strings(FILE *f, const char *key, char **strings)
{
	int n = 0;

	while (strings && strings[n])
		n++;
	fprintf(f, "%sc %d\n", key, n);
	for (int i = 0; i < n; i++) {
		fprintf(f, "%s %d %zu ", key, i, strlen(strings[i]));
		put_text(f, strings[i]);
	}
}

static void put_directory(FILE *f)
{
	char cwd[4096];
	mode_t mask = umask(0);

	umask(mask);
	fprintf(f, "umask 0%03o\ncwd ", (unsigned)mask);
	put_text(f, getcwd(cwd, sizeof cwd) ? cwd : "?");
}

static void put_process(FILE *f)
{
	int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC), death = 0;

	fprintf(f, "pid %d\nppid %d\npgid %d\nsid %d\ntpgid %d\n", (int)getpid(),
	        (int)getppid(), (int)getpgrp(), (int)getsid(0),
	        tty < 0 ? -1 : (int)tcgetpgrp(tty));
	if (tty >= 0)
		close(tty);
	prctl(PR_GET_PDEATHSIG, &death);
	fprintf(f, "nice %d\nnonewprivs %d\npdeathsig %d\ndumpable %d\n",
	        getpriority(PRIO_PROCESS, 0),
	        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), death,
	        prctl(PR_GET_DUMPABLE));
}

static void put_ids(FILE *f)
{
	uid_t u[3] = { 0 };
	gid_t g[3] = { 0 }, groups[1024];
	int n = getgroups(1024, groups);

	getresuid(&u[0], &u[1], &u[2]);
	getresgid(&g[0], &g[1], &g[2]);
	fprintf(f, "uid %u %u %u\ngid %u %u %u\ngroups %d", u[0], u[1], u[2], g[0],
	        g[1], g[2], n);
	for (int i = 0; i < n; i++)
		fprintf(f, " %u", groups[i]);
	putc('\n', f);
}

/* Raw calls: libc keeps 32 and 33 for itself, and /proc may be missing.  The
   handler is the first word of the kernel's struct. */
static void put_signals(FILE *f)
{
	uint64_t blocked = 0, pending = 0, ignored = 0, caught = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof blocked);
	syscall(SYS_rt_sigpending, &pending, sizeof pending);
	for (int sig = 1; sig <= 64; sig++) {
		uintptr_t action[16] = { 0 };
		syscall(SYS_rt_sigaction, sig, NULL, action, sizeof blocked);
		uint64_t *set = action[0] == (uintptr_t)SIG_IGN ? &ignored : &caught;
		if (action[0] != (uintptr_t)SIG_DFL)
			*set |= (uint64_t)1 << (sig - 1);
	}
	fprintf(f, "sigblk 0x%llx\nsigpnd 0x%llx\nsigign 0x%llx\nsigcgt 0x%llx\n",
	        (unsigned long long)blocked, (unsigned long long)pending,
	        (unsigned long long)ignored, (unsigned long long)caught);
}

static void put_limits(FILE *f)
{
	struct { uint64_t soft, hard; } l;

	for (int i = 0; i < 16; i++)
		if (!syscall(SYS_prlimit64, 0, i, NULL, &l))
			fprintf(f, "limit %d %llu %llu\n", i,
			        (unsigned long long)l.soft,
			        (unsigned long long)l.hard);
}

static void put_cgroup(FILE *f)
{
	char line[4096] = "?";
	FILE *in = fopen("/proc/self/cgroup", "re");

	if (in) {
		while (fgets(line, sizeof line, in) && strncmp(line, "0::", 3))
			;
		fclose(in);
	}
	line[strcspn(line, "\n")] = '\0';
	fputs("cgroup ", f);
	put_text(f, line);
}

/* A path is opened only now: the listing must not see it. */
static FILE *report_stream(const char *where)
{
	int fd = 1;

	if (where && strchr(where, '/'))
		fd = open(where, O_WRONLY | O_TRUNC | O_CLOEXEC);
	else if (where)
		fd = atoi(where);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

static void put_all(FILE *f, char **args)
{
	put_strings(f, "arg", args);
	put_strings(f, "env", environ);
	put_directory(f);
	put_process(f);
	put_ids(f);
	put_signals(f);
	put_limits(f);
	put_cgroup(f);
	fputs("end\n", f);
}

int report_write(const char *where, char **args, const char *listing,
                 const int *fds, size_t nfds)
{
	FILE *f = report_stream(where);

	if (!f)
		return errno;
	fprintf(f, "listing %s\n", listing);
	for (size_t i = 0; i < nfds; i++)
		put_descriptor(f, fds[i]);
	put_all(f, args);
	return fflush(f) ? errno : 0;
}

/* ---- reading ------------------------------------------------------------ */

struct report {
	char *text;         /* its lines, each terminated */
	char **lines;
	size_t nlines;
	struct report_fd *fds;
	size_t nfds;
	char *fd_list;
};

static char *read_all(int fd)
{
	size_t len = 0, room = 1 << 16;
	char *text = malloc(room), *larger;
	ssize_t n;

	while (text) {
		n = read(fd, text + len, room - len - 1);
		if (n <= 0)
			break;
		len += (size_t)n;
		if (room - len > 1)
			continue;
		larger = realloc(text, room *= 2);
		if (!larger)
			free(text);
		text = larger;
	}
	if (text)
		text[len] = '\0';
	return text;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static int split(struct report *r)
{
	char *p = r->text, *end;

	r->lines = calloc(count_lines(p) + 1, sizeof *r->lines);
	if (!r->lines)
		return 0;
	for (; (end = strchr(p, '\n')); p = end + 1) {
		*end = '\0';
		r->lines[r->nlines++] = p;
	}
	return !*p && r->nlines && !strcmp(r->lines[r->nlines - 1], "end");
}

/* In place; gives the length. */
static size_t unescape(char *text)
{
	char *to = text;
	unsigned byte;

	for (const char *p = text; *p;) {
		if (sscanf(p, "\\x%2x", &byte) == 1) {
			*to++ = (char)byte;
			p += 4;
		} else {
			*to++ = *p++;
		}
	}
	*to = '\0';
	return (size_t)(to - text);
}

/* The texts that can hold any byte; an argument's length must come out right. */
static int parse_text(char *line)
{
	size_t length;
	int text = 0;

	if (!strncmp(line, "cwd ", 4))
		unescape(line + 4);
	else if (!strncmp(line, "cgroup ", 7))
		unescape(line + 7);
	else if (!strncmp(line, "arg ", 4) || !strncmp(line, "env ", 4))
		return sscanf(line + 4, "%*d %zu%n", &length, &text) == 1 &&
		       unescape(line + 4 + text + 1) == length;
	return 1;
}

static int parse_fd(struct report_fd *fd, char *line)
{
	char access, type;
	unsigned fd_flags, fl_flags;
	int link = 0;

	if (sscanf(line, "fd %d %c %x %o %llu %llu %llu %c %n", &fd->number, &access,
	           &fd_flags, &fl_flags, &fd->dev, &fd->ino, &fd->rdev, &type,
	           &link) != 8)
		return 0;
	fd->access = access;
	fd->type = type;
	fd->fd_flags = (int)fd_flags;
	fd->fl_flags = (int)fl_flags;
	fd->link = line + link;
	unescape(fd->link);
	return 1;
}

static int parse(struct report *r)
{
	r->fds = calloc(r->nlines, sizeof *r->fds);
	r->fd_list = malloc(r->nlines * 12 + 1);
	if (!r->fds || !r->fd_list)
		return 0;
	char *list = r->fd_list;
	*list = '\0';
	for (size_t i = 0; i < r->nlines; i++) {
		if (!parse_text(r->lines[i]))
			return 0;
		if (strncmp(r->lines[i], "fd ", 3))
			continue;
		if (!parse_fd(&r->fds[r->nfds], r->lines[i]))
			return 0;
		list += sprintf(list, r->nfds ? " %d" : "%d", r->fds[r->nfds].number);
		r->nfds++;
	}
	return 1;
}

struct report *report_read(int fd)
{
	int error = errno;
	struct report *r = calloc(1, sizeof *r);

	if (r && (!(r->text = read_all(fd)) || !split(r) || !parse(r))) {
		report_free(r);
		r = NULL;
	}
	errno = error;
	return r;
}

struct report *report_read_file(const char *path)
{
	int error = errno, fd = open(path, O_RDONLY | O_CLOEXEC);
	struct report *r = fd < 0 ? NULL : report_read(fd);

	if (fd >= 0)
		close(fd);
	errno = error;
	return r;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	free(r->text);
	free(r->lines);
	free(r->fds);
	free(r->fd_list);
	free(r);
}

/* ---- asking ------------------------------------------------------------- */

static char *find(const struct report *r, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < r->nlines; i++)
		if (!strncmp(r->lines[i], key, len) && r->lines[i][len] == ' ')
			return r->lines[i] + len + 1;
	return NULL;
}

const char *report_value(const struct report *r, const char *key)
{
	return find(r, key);
}

/* A misspelt key must not pass for a 0. */
static const char *must_find(const struct report *r, const char *key)
{
	const char *value = find(r, key);

	if (!value || !*value || !strchr("-0123456789", *value)) {
		fprintf(stderr, "report: no number for \"%s\"\n", key);
		abort();
	}
	return value;
}

unsigned long long report_mask(const struct report *r, const char *key)
{
	return strtoull(must_find(r, key), NULL, 0);
}

long report_number(const struct report *r, const char *key)
{
	return strtol(must_find(r, key), NULL, 0);
}

void report_limit(const struct report *r, int resource, unsigned long long *soft,
                  unsigned long long *hard)
{
	char key[32], *end;

	snprintf(key, sizeof key, "limit %d", resource);
	*soft = strtoull(must_find(r, key), &end, 10);
	*hard = strtoull(end, NULL, 10);
}

static const char *numbered(const struct report *r, const char *key, size_t i,
                            size_t *length)
{
	char name[32], *end = NULL;

	snprintf(name, sizeof name, "%s %zu", key, i);
	const char *value = find(r, name);
	size_t len = value ? strtoul(value, &end, 10) : 0;
	if (length)
		*length = len;
	return value ? end + 1 : NULL;
}

const char *report_arg(const struct report *r, size_t i, size_t *length)
{
	return numbered(r, "arg", i, length);
}

const char *report_env(const struct report *r, size_t i, size_t *length)
{
	return numbered(r, "env", i, length);
}

const char *report_getenv(const struct report *r, const char *name)
{
	size_t len = strlen(name);
	const char *entry;

	for (size_t i = 0; (entry = report_env(r, i, NULL)); i++)
		if (!strncmp(entry, name, len) && entry[len] == '=')
			return entry + len + 1;
	return NULL;
}

size_t report_fds(const struct report *r, int *numbers, size_t room)
{
	for (size_t i = 0; i < r->nfds && i < room; i++)
		numbers[i] = r->fds[i].number;
	return r->nfds;
}

const char *report_fd_list(const struct report *r)
{
	return r->fd_list;
}

const struct report_fd *report_fd(const struct report *r, int number)
{
	for (size_t i = 0; i < r->nfds; i++)
		if (r->fds[i].number == number)
			return &r->fds[i];
	return NULL;
}
