/* kid.c - the only child program that the tests start.
 *
 *   kid VERB [ARG]... [--then VERB [ARG]...]...
 *
 * Verbs are done in turn until one gives something other than 0, which is kid's
 * exit value: 120 for a wrong command line, 121 when a system call failed, with
 * the reason on descriptor 2.  The verbs stand in the table at the end.
 * Links with report.c, and needs nothing but libc.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

enum { USAGE = 120, FAILED = 121 };

static char **all_args;
static unsigned char buffer[1 << 16];

static int failed(const char *what)
{
	dprintf(2, "kid: %s: %s\n", what, strerror(errno));
	return FAILED;
}

static int number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 0);

	if (end == text || *end || n != (int)n) {
		dprintf(2, "kid: not a number: %s\n", text);
		_exit(USAGE);
	}
	return (int)n;
}

static int write_all(int fd, const unsigned char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);
		if (n < 0)
			return failed("write");
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* ---- report ------------------------------------------------------------- */

struct numbers {
	int *at;
	size_t n;
};

static void add(struct numbers *fds, int fd)
{
	if (fds->n % 1024 == 0)
		fds->at = realloc(fds->at, (fds->n + 1024) * sizeof *fds->at);
	if (!fds->at)
		_exit(failed("memory"));
	fds->at[fds->n++] = fd;
}

static int is_itself(int dir, const char *name)
{
	struct stat itself, seen;

	return !fstat(dir, &itself) && !fstatat(dir, name, &seen, 0) &&
	       itself.st_dev == seen.st_dev && itself.st_ino == seen.st_ino;
}

/* A listing without the directory it is read from is not of procfs, or another's. */
static int list_proc(struct numbers *fds)
{
	DIR *dir = opendir("/proc/self/fd");
	int self = 0;

	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir));) {
		int fd = e->d_name[0] == '.' ? -1 : atoi(e->d_name);
		if (fd == dirfd(dir))
			self = is_itself(fd, e->d_name);
		else if (fd >= 0)
			add(fds, fd);
	}
	closedir(dir);
	return self;
}

static void list_scan(struct numbers *fds)
{
	fds->n = 0;
	for (int fd = 0; fd < 8192; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			add(fds, fd);
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Everything is listed before anything is opened. */
static int do_report(char **args)
{
	struct numbers fds = { NULL, 0 };
	int complete = list_proc(&fds);

	if (!complete)
		list_scan(&fds);
	if (fds.n)
		qsort(fds.at, fds.n, sizeof *fds.at, ascending);
	errno = report_write(args[0], all_args, complete ? "proc" : "scan", fds.at,
	                     fds.n);
	free(fds.at);
	return errno ? failed("report") : 0;
}

/* ---- input and output --------------------------------------------------- */

/* Hands each read(2) to take, which may be NULL. */
static int drain(int fd, int (*take)(size_t len))
{
	for (;;) {
		ssize_t n = read(fd, buffer, sizeof buffer);
		if (n < 0)
			return failed("read");
		if (!n)
			return 0;
		int error = take ? take((size_t)n) : 0;
		if (error)
			return error;
	}
}

static int copy(size_t len)
{
	return write_all(1, buffer, len);
}

static int do_cat(char **args)
{
	(void)args;
	return drain(0, copy);
}

static int do_exit_on_eof(char **args)
{
	(void)args;
	_exit(drain(0, NULL));
}

static size_t compared;
static int differs;

static int compare(size_t len)
{
	for (size_t i = 0; i < len; i++)
		differs |= buffer[i] != kid_pattern(compared++);
	return 0;
}

static int do_read(char **args)
{
	int error = drain(number(args[0]), compare);

	if (!error)
		dprintf(1, "%zu %s\n", compared, differs ? "other" : "pattern");
	return error;
}

static int do_write(char **args)
{
	size_t at = 0, bytes = strtoul(args[1], NULL, 10);
	size_t chunk = args[2] ? (size_t)number(args[2]) : sizeof buffer;
	unsigned char *data = malloc(chunk);
	int error = !data || !chunk ? failed("memory") : 0;

	while (!error && at < bytes) {
		size_t len = bytes - at < chunk ? bytes - at : chunk;
		for (size_t i = 0; i < len; i++)
			data[i] = kid_pattern(at + i);
		error = write_all(number(args[0]), data, len);
		at += len;
	}
	free(data);
	return error;
}

/* Numbered lines, as many a write as fit. */
static int do_lines(char **args)
{
	int n = number(args[1]), error = 0;
	size_t len = 0;

	for (int i = 0; i < n && !error; i++) {
		len += (size_t)sprintf((char *)buffer + len, "%d\n", i);
		if (len > sizeof buffer - 16 || i == n - 1) {
			error = write_all(number(args[0]), buffer, len);
			len = 0;
		}
	}
	return error;
}

/* What is read is written twice. */
static int copy_twice(size_t len)
{
	int error = write_all(1, buffer, len);

	return error ? error : write_all(2, buffer, len);
}

static int do_tee(char **args)
{
	(void)args;
	return drain(0, copy_twice);
}

/* Writes a line and goes on once a byte came back. */
static int do_ask(char **args)
{
	int n = number(args[0]);

	for (int i = 0; i < n; i++) {
		dprintf(1, "%d\n", i);
		if (read(0, buffer, 1) != 1)
			return failed("read");
	}
	return 0;
}

static int say(int fd, char **words)
{
	for (; *words; words++)
		if (dprintf(fd, "%s%s", *words, words[1] ? " " : "") < 0)
			return failed("write");
	return dprintf(fd, "\n") < 0 ? failed("write") : 0;
}

static int do_say(char **args)
{
	return say(number(args[0]), args + 1);
}

static int do_echo(char **args)
{
	return say(1, args);
}

static int do_close(char **args)
{
	for (; *args; args++)
		if (close(number(*args)))
			return failed(*args);
	return 0;
}

/* Asked through a description of its own, which the lock does not belong to. */
static int do_lock_test(char **args)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char name[64];

	snprintf(name, sizeof name, "/proc/self/fd/%d", number(args[0]));
	int fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fcntl(fd, F_GETLK, &lock))
		return failed(name);
	dprintf(1, "flock %s\nfcntl %d\n",
	        flock(fd, LOCK_EX | LOCK_NB) ? "held" : "free",
	        lock.l_type == F_UNLCK ? 0 : (int)lock.l_pid);
	return close(fd);
}

/* ---- time, signals, processes ------------------------------------------- */

static int do_exit(char **args)
{
	_exit(number(args[0]));
}

static int do_kill(char **args)
{
	return kill(getpid(), number(args[0])) ? failed("kill") : 0;
}

static int do_stop(char **args)
{
	(void)args;
	return raise(SIGSTOP);
}

static int nap(int ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	return nanosleep(&time, NULL);
}

static int do_sleep(char **args)
{
	return nap(number(args[0]));
}

static int do_burn(char **args)
{
	clock_t end = clock() + number(args[0]) * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		;
	return 0;
}

/* qemu-user ends a call also at a signal that was ignored before its program began. */
static int do_pause(char **args)
{
	(void)args;
	while (pause() < 0)
		;
	return 0;
}

static int do_ignore(char **args)
{
	for (; *args; args++)
		if (signal(number(*args), SIG_IGN) == SIG_ERR)
			return failed(*args);
	return 0;
}

static int leave_with, leave_after;

static void leave(int sig)
{
	(void)sig;
	nap(leave_after);
	_exit(leave_with);
}

static int do_on(char **args)
{
	leave_with = number(args[1]);
	leave_after = args[2] ? number(args[2]) : 0;
	return signal(number(args[0]), leave) == SIG_ERR ? failed("signal") : 0;
}

static char **last_words;

static void leave_with_words(int sig)
{
	(void)sig;
	nap(leave_after);
	_exit(do_write(last_words) ? FAILED : leave_with);
}

/* Who wants no signal to come too early starts it blocked. */
static int do_last_words(char **args)
{
	sigset_t set;

	leave_with = number(args[1]);
	last_words = args + 2;
	sigemptyset(&set);
	sigaddset(&set, number(args[0]));
	if (signal(number(args[0]), leave_with_words) == SIG_ERR)
		return failed("signal");
	return sigprocmask(SIG_UNBLOCK, &set, NULL) ? failed("unblock") : 0;
}

/* The grandchild tells its pid itself: who reads it finds everything in place. */
static int hold(int own_session, char **args)
{
	pid_t pid = fork();

	if (pid < 0)
		return failed("fork");
	if (pid > 0)
		return 0;
	if (own_session)
		setsid();
	dprintf(1, "%d\n", (int)getpid());
	_exit(do_sleep(args));
}

static int do_fork_hold(char **args)
{
	return hold(0, args);
}

static int do_setsid_hold(char **args)
{
	return hold(1, args);
}

static int do_exec(char **args)
{
	execvp(args[0], args);
	return failed(args[0]);
}

static int do_ids(char **args)
{
	(void)args;
	dprintf(1, "pid %d ppid %d pgid %d sid %d\n", (int)getpid(), (int)getppid(),
	        (int)getpgrp(), (int)getsid(0));
	return 0;
}

/* ---- the table ---------------------------------------------------------- */

static const struct verb {
	const char *name;
	int needs; /* arguments, at least */
	int (*run)(char **args);
} verbs[] = {
	{ "report", 0, do_report },     /* [FD | PATH]: see report.h */
	{ "ids", 0, do_ids },
	{ "echo", 0, do_echo },         /* WORD...: and a newline, to 1 */
	{ "say", 1, do_say },           /* FD WORD... */
	{ "cat", 0, do_cat },           /* 0 to 1 */
	{ "read", 1, do_read },         /* FD: prints "BYTES pattern" or "... other" */
	{ "exit-on-eof", 0, do_exit_on_eof },  /* of 0 */
	{ "write", 2, do_write },       /* FD BYTES [CHUNK]: the pattern, CHUNK a write */
	{ "lines", 2, do_lines },       /* FD N: "0" to N - 1, one a line */
	{ "tee", 0, do_tee },           /* 0 to 1 and 2 */
	{ "ask", 1, do_ask },           /* N: a line to 1, a byte from 0, in turn */
	{ "close", 1, do_close },       /* FD... */
	{ "lock-test", 1, do_lock_test }, /* FD: "flock held | free", "fcntl PID | 0" */
	{ "exit", 1, do_exit },         /* N */
	{ "kill", 1, do_kill },         /* SIG: itself */
	{ "stop", 0, do_stop },         /* itself */
	{ "sleep", 1, do_sleep },       /* MS */
	{ "burn", 1, do_burn },         /* MS of processor time */
	{ "pause", 0, do_pause },       /* for ever */
	{ "ignore", 1, do_ignore },     /* SIG... */
	{ "on", 2, do_on },             /* SIG N [MS]: leaves with N, MS after it came */
	{ "last-words", 4, do_last_words }, /* SIG N FD BYTES: unblocks it; when it came, and
	                                   after the MS of an "on" before, writes the pattern
	                                   and leaves with N */
	{ "fork-hold", 1, do_fork_hold },     /* MS: a grandchild prints its pid and keeps
	                                         everything open for so long; goes on */
	{ "setsid-hold", 1, do_setsid_hold }, /* MS: the same, leading a session */
	{ "exec", 1, do_exec },         /* PROG ARG...: all that is left, --then too */
};

static int run_verb(const char *name, char **args)
{
	int n = 0;

	while (args[n])
		n++;
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (!strcmp(verbs[i].name, name) && n >= verbs[i].needs)
			return verbs[i].run(args);
	dprintf(2, "kid: unknown, or too few arguments: %s\n", name);
	return USAGE;
}

/* Cuts the words at the first --then and gives the next verb, or the end. */
static char **cut(char **words)
{
	if (!strcmp(words[0], "exec"))
		return words + 1;
	for (words++; *words && strcmp(*words, "--then"); words++)
		;
	if (*words)
		*words++ = NULL;
	return words;
}

int main(int argc, char **argv)
{
	char **words = malloc(((size_t)argc + 1) * sizeof *words), **next;
	int error = argc > 1 ? 0 : USAGE;

	if (!words)
		return failed("memory");
	memcpy(words, argv, ((size_t)argc + 1) * sizeof *words);
	all_args = argv;
	for (words += argc > 0; !error && *words; words = next) {
		next = cut(words);
		error = run_verb(words[0], words + 1);
	}
	return error;
}
