/* wean(1): runs a program that inherits only what it is given. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "main.h"

/* ---- what is wrong ---- */

static _Noreturn void
refuse(const char *format, ...)
{
	va_list args;

	fputs("wean: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'wean --help'.\n", stderr);
	exit(EXIT_OURS);
}

static long long
number(const char *text, int base, long long least, long long most, const char *what)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, base);
	if (end == text || *end || errno || n < least || n > most)
		refuse("'%s' is not %s", text, what);
	return n;
}

static void *
room(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		perror("wean");
		exit(EXIT_OURS);
	}
	return p;
}

/* ---- descriptors ---- */

static int
descriptor(const char *text)
{
	return (int)number(text, 10, 0, INT_MAX, "a descriptor");
}

static void
keep(struct command *c, char *text)
{
	c->fds[c->opt.nfds++] = (struct wean_fd){ .kind = WEAN_KEEP, .target = descriptor(text) };
}

static void
map(struct command *c, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals)
		refuse("'%s' is not TARGET=SOURCE", text);
	*equals = '\0';
	c->fds[c->opt.nfds++] = (struct wean_fd){ .kind = WEAN_DUP, .target = descriptor(text),
	                                          .source = descriptor(equals + 1) };
}

static void
open_as(struct command *c, int target, int oflag, const char *path)
{
	c->fds[c->opt.nfds++] = (struct wean_fd){ .kind = WEAN_OPEN, .target = target,
	                                          .oflag = oflag, .path = path };
}

static void
input(struct command *c, char *path)
{
	open_as(c, 0, O_RDONLY, path);
}

static void
output(struct command *c, char *path)
{
	open_as(c, 1, O_WRONLY | O_CREAT | O_TRUNC, path);
}

static void
append(struct command *c, char *path)
{
	open_as(c, 1, O_WRONLY | O_CREAT | O_APPEND, path);
}

static void
errors(struct command *c, char *path)
{
	open_as(c, 2, O_WRONLY | O_CREAT | O_TRUNC, path);
}

/* ---- directory, environment ---- */

static void
directory(struct command *c, char *path)
{
	c->opt.dir = path;
}

static void
set_variable(struct command *c, char *text)
{
	if (*text == '=' || !strchr(text, '='))
		refuse("'%s' is not NAME=VALUE", text);
	c->env_edit[c->nedits++] = text;
}

static void
unset_variable(struct command *c, char *name)
{
	if (!*name || strchr(name, '='))
		refuse("'%s' is not the name of a variable", name);
	c->env_edit[c->nedits++] = name;
}

/* ---- identity ---- */

/* The highest one means "no change" to the kernel. */
static unsigned
id(const char *text, const char *what)
{
	return (unsigned)number(text, 10, 0, UINT_MAX - 1LL, what);
}

static unsigned
group_id(const char *text)
{
	const struct group *group = getgrnam(text);

	return group ? group->gr_gid : id(text, "a group");
}

static void
become_user(struct command *c, char *text)
{
	const struct passwd *user = getpwnam(text);

	if (!user)
		user = getpwuid(id(text, "a user"));
	c->opt.uid = user ? user->pw_uid : id(text, "a user");
	c->opt.flags |= WEAN_SET_UID;
	if (c->group_given)
		return;
	c->opt.gid = user ? user->pw_gid : 0;
	c->opt.flags &= ~(unsigned long long)WEAN_SET_GID; /* of a user named before */
	c->opt.flags |= user ? WEAN_SET_GID : 0;
}

static void
become_group(struct command *c, char *text)
{
	c->group_given = 1;
	c->opt.gid = group_id(text);
	c->opt.flags |= WEAN_SET_GID;
}

static void
become_member(struct command *c, char *list)
{
	size_t commas = 0;

	for (const char *s = list; *s; s++)
		commas += *s == ',';
	free(c->groups);
	c->groups = room(commas + 1, sizeof c->groups[0]);
	c->opt.ngroups = 0;
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ","))
		c->groups[c->opt.ngroups++] = group_id(name);
	c->opt.groups = c->groups;
	c->opt.flags |= WEAN_SET_GROUPS;
}

/* ---- limits ---- */

static int
resource(const char *name)
{
	static const struct { const char *name; int resource; } table[] = {
		{ "as", RLIMIT_AS }, { "core", RLIMIT_CORE }, { "cpu", RLIMIT_CPU },
		{ "data", RLIMIT_DATA }, { "fsize", RLIMIT_FSIZE }, { "locks", 10 },
		{ "memlock", RLIMIT_MEMLOCK }, { "msgqueue", 12 }, { "nice", 13 },
		{ "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC }, { "rss", RLIMIT_RSS },
		{ "rtprio", 14 }, { "rttime", 15 }, { "sigpending", 11 },
		{ "stack", RLIMIT_STACK },
	};

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcasecmp(name, table[i].name) == 0)
			return table[i].resource;
	refuse("'%s' is not a limit", name);
}

static unsigned long long
limit_value(const char *text)
{
	if (strcmp(text, "unlimited") == 0)
		return ~0ULL;
	return (unsigned long long)number(text, 10, 0, LLONG_MAX, "the value of a limit");
}

static void
limit(struct command *c, char *text)
{
	struct wean_limit *l = &c->limits[c->opt.nlimits++];
	char *soft = strchr(text, '='), *hard;

	if (!soft)
		refuse("'%s' is not NAME=SOFT[:HARD]", text);
	*soft++ = '\0';
	hard = strchr(soft, ':');
	if (hard)
		*hard++ = '\0';
	l->resource = resource(text);
	l->soft = limit_value(soft);
	l->hard = limit_value(hard ? hard : soft);
	if (l->soft > l->hard)
		refuse("the soft limit of '%s' is above the hard one", text);
}

static void
set_umask(struct command *c, char *text)
{
	c->opt.umask = (int)number(text, 8, 0, 0777, "a umask");
	c->opt.flags |= WEAN_SET_UMASK;
}

static void
set_nice(struct command *c, char *text)
{
	c->opt.nice = (int)number(text, 10, -20, 19, "a nice value");
	c->opt.flags |= WEAN_SET_NICE;
}

/* ---- group, session, signals ---- */

static void
new_session(struct command *c, char *none)
{
	(void)none;
	c->opt.flags |= WEAN_NEW_SESSION;
}

static void
new_group(struct command *c, char *none)
{
	(void)none;
	c->opt.flags |= WEAN_NEW_GROUP;
}

static void
no_new_privs(struct command *c, char *none)
{
	(void)none;
	c->opt.flags |= WEAN_NO_NEW_PRIVS;
}

static int
signal_number(const char *text)
{
	static const struct { const char *name; int sig; } table[] = {
		{ "ABRT", SIGABRT }, { "ALRM", SIGALRM }, { "CONT", SIGCONT }, { "HUP", SIGHUP },
		{ "INT", SIGINT }, { "KILL", SIGKILL }, { "PIPE", SIGPIPE }, { "QUIT", SIGQUIT },
		{ "STOP", SIGSTOP }, { "TERM", SIGTERM }, { "TSTP", SIGTSTP },
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
	};
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcasecmp(name, table[i].name) == 0)
			return table[i].sig;
	return (int)number(text, 10, 1, 64, "a signal");
}

static void
death_signal(struct command *c, char *text)
{
	c->opt.pdeathsig = signal_number(text);
}

static int
milliseconds(const char *text)
{
	char *end;
	double s;

	errno = 0;
	s = strtod(text, &end);
	if (end == text || *end || errno || !(s >= 0) || s > INT_MAX / 1000)
		refuse("'%s' is not a time in seconds", text);
	return (int)(s * 1000 + 0.999);
}

static void
time_limit(struct command *c, char *text)
{
	c->limit_ms = milliseconds(text);
}

static void
grace(struct command *c, char *text)
{
	c->grace_ms = milliseconds(text);
}

static void
verbose(struct command *c, char *none)
{
	(void)none;
	c->verbose = 1;
}

/* ---- output ---- */

static void
capture(struct command *c, char *none)
{
	(void)none;
	c->captures = 1;
}

static void
most_output(struct command *c, char *text)
{
	c->most = (size_t)number(text, 10, 1, SIZE_MAX / 2, "a number of bytes");
}

static void
json(struct command *c, char *none)
{
	(void)none;
	c->json = 1;
}

/* ---- the options ---- */

/* All that was asked for was to be told something. */
static _Noreturn void
leave(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		exit(0);
	perror("wean: cannot write to standard output");
	exit(EXIT_OURS);
}

static void help(struct command *, char *);

static void
version(struct command *c, char *none)
{
	(void)c, (void)none;
	printf("wean %s\n", wean_version());
	leave();
}

static const struct option_of {
	int letter; /* 0: none */
	const char *name, *argument;
	void (*take)(struct command *, char *argument);
	const char *text;
} options[] = {
	{ 'k', "keep", "FD", keep, "give it this descriptor" },
	{ 'm', "map", "TARGET=SOURCE", map, "give it our descriptor SOURCE as TARGET" },
	{ 'i', "input", "FILE", input, "open FILE as its standard input" },
	{ 'o', "output", "FILE", output, "create FILE as its standard output" },
	{ 'a', "append", "FILE", append, "append its standard output to FILE" },
	{ 'E', "errors", "FILE", errors, "create FILE as its standard error" },
	{ 'C', "directory", "DIR", directory, "run it in DIR" },
	{ 'e', "env", "NAME=VALUE", set_variable, "set a variable of its environment" },
	{ 'u', "unset", "NAME", unset_variable, "remove one" },
	{ 0, "uid", "USER", become_user, "become this user, in its own group alone" },
	{ 0, "gid", "GROUP", become_group, "become this group" },
	{ 0, "groups", "GROUP,...", become_member, "supplementary groups; '' for none" },
	{ 0, "limit", "NAME=SOFT[:HARD]", limit, "set a resource limit, such as nofile=64" },
	{ 0, "umask", "OCTAL", set_umask, "set the umask" },
	{ 0, "nice", "N", set_nice, "set the nice value, -20 to 19" },
	{ 0, "session", NULL, new_session, "lead a session of its own" },
	{ 0, "group", NULL, new_group, "lead a process group of its own" },
	{ 0, "pdeathsig", "SIGNAL", death_signal, "get SIGNAL when wean dies" },
	{ 0, "no-new-privs", NULL, no_new_privs, "gain no privileges by set-uid programs" },
	{ 't', "timeout", "SECONDS", time_limit, "stop it and its group after this time" },
	{ 0, "grace", "SECONDS", grace, "between SIGTERM and SIGKILL then; else 2" },
	{ 0, "capture", NULL, capture, "collect what it writes; give it out at its end" },
	{ 0, "max-output", "BYTES", most_output, "with --capture: keep so much of each" },
	{ 0, "json", NULL, json, "tell how it ended, as a line of JSON" },
	{ 'v', "verbose", NULL, verbose, "tell how it was started" },
	{ 0, "help", NULL, help, "show this and leave" },
	{ 0, "version", NULL, version, "show the version and leave" },
};

enum { NOPTIONS = sizeof options / sizeof options[0], NO_LETTER = 256 };

static void
help(struct command *c, char *none)
{
	(void)c, (void)none;
	puts("usage: wean [option]... [--] program [argument]...\n"
	     "Runs a program that inherits only what it is given, and leaves with its "
	     "status.\n");
	for (size_t i = 0; i < NOPTIONS; i++) {
		const struct option_of *o = &options[i];
		char left[64];

		snprintf(left, sizeof left, "%c%c%c --%s%s%s", o->letter ? '-' : ' ',
		         o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
		         o->argument ? " " : "", o->argument ? o->argument : "");
		printf("  %-31s %s\n", left, o->text);
	}
	puts("\nLeaves with 128 + N when signal N ended it, 124 at the time limit, 125 when "
	     "wean\nitself failed, 126 when it could not be started, 127 when it was not "
	     "found.");
	leave();
}

/* getopt_long(3) gives the letter, or NO_LETTER + the place in the table. */
static void
make_getopt(struct option *longs, char *shorts)
{
	*shorts++ = '+';
	*shorts++ = ':';
	for (int i = 0; i < NOPTIONS; i++) {
		const struct option_of *o = &options[i];

		longs[i] = (struct option){ o->name, o->argument != NULL, NULL, NO_LETTER + i };
		if (!o->letter)
			continue;
		*shorts++ = (char)o->letter;
		if (o->argument)
			*shorts++ = ':';
	}
	longs[NOPTIONS] = (struct option){ 0 };
	*shorts = '\0';
}

static const struct option_of *
option_of(int got)
{
	if (got >= NO_LETTER)
		return &options[got - NO_LETTER];
	for (size_t i = 0; i < NOPTIONS; i++)
		if (got != 0 && options[i].letter == got)
			return &options[i];
	return NULL;
}

static int
begins_an_option(const char *word)
{
	for (size_t i = 0; i < NOPTIONS; i++)
		if (strncmp(options[i].name, word + 2, strcspn(word + 2, "=")) == 0)
			return 1;
	return 0;
}

static void
refuse_option(int got, const char *word)
{
	if (got == ':')
		refuse("%s needs an argument", word);
	if (optopt >= NO_LETTER)
		refuse("%s takes no argument", word);
	if (optopt)
		refuse("there is no option -%c", optopt);
	if (begins_an_option(word))
		refuse("%s may be one of several options", word);
	refuse("there is no option %s", word);
}

static void
parse(struct command *c, int argc, char **argv)
{
	struct option longs[NOPTIONS + 1];
	char shorts[2 * NOPTIONS + 3];
	int got;

	make_getopt(longs, shorts);
	opterr = 0;
	while ((got = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (got == ':') /* of the last word; optind may be past it */
			refuse_option(got, argv[argc - 1]);
		if (got == '?')
			refuse_option(got, argv[optind - 1]);
		option_of(got)->take(c, optarg);
	}
	c->argv = argv + optind;
	if (!c->argv[0])
		refuse("no program is named");
}

/* Two opens of one file would overwrite each other. */
static void
join_outputs(struct wean_fd *a, struct wean_fd *b)
{
	if (a->kind == WEAN_OPEN && b->kind == WEAN_OPEN && a->target == 1 && b->target == 2
	    && strcmp(a->path, b->path) == 0)
		*b = (struct wean_fd){ .kind = WEAN_SAME, .target = 2, .source = 1 };
}

static void
check_descriptors(const struct command *c)
{
	for (size_t i = 0; i < c->opt.nfds; i++)
		for (size_t j = 0; j < c->opt.nfds; j++) {
			if (j < i && c->fds[i].target == c->fds[j].target)
				refuse("descriptor %d is given twice", c->fds[i].target);
			join_outputs(&c->fds[i], &c->fds[j]);
		}
}

/* The program's output and errors are pipes of ours, its input is what it would be. */
static void
settle_capture(struct command *c)
{
	c->opt.in = WEAN_INHERIT;
	for (size_t i = 0; i < c->opt.nfds; i++) {
		if (c->fds[i].target == 1 || c->fds[i].target == 2)
			refuse("--capture and another place for descriptor %d",
			       c->fds[i].target);
		if (c->fds[i].target == 0)
			c->opt.in = 0;
	}
}

/* What follows from the options together. */
static void
settle(struct command *c)
{
	struct wean_options *o = &c->opt;

	check_descriptors(c);
	if (c->captures)
		settle_capture(c);
	else if (c->most)
		refuse("--max-output without --capture");
	o->fds = c->fds;
	o->limits = c->limits;
	o->env_edit = c->nedits ? c->env_edit : NULL;
	if (c->limit_ms >= 0)
		o->flags |= o->flags & WEAN_NEW_SESSION ? 0 : WEAN_NEW_GROUP;
	/* The groups of another user's are not what it was given. */
	if ((o->flags & WEAN_SET_UID) && geteuid() == 0)
		o->flags |= WEAN_SET_GROUPS;
}

int
main(int argc, char **argv)
{
	static char line[BUFSIZ]; /* of ours is one write, among those of others */
	struct command c = { .limit_ms = -1, .grace_ms = 2000 };
	size_t most = (size_t)argc;
	int code;

	setvbuf(stderr, line, _IOLBF, sizeof line);
	c.fds = room(most, sizeof c.fds[0]);
	c.limits = room(most, sizeof c.limits[0]);
	c.env_edit = room(most, sizeof c.env_edit[0]);
	parse(&c, argc, argv);
	settle(&c);
	code = command_run(&c);
	free(c.fds);
	free(c.limits);
	free(c.env_edit);
	free(c.groups);
	return code;
}
