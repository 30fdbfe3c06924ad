/* bench.c - how long a start takes, side by side: the command.

   All cases run several times (passes), so that slow drift of the machine meets them
   alike; within a case the peers take turns with small batches of starts. */
#include "bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const struct peer *const peers[PEERS] = {
	[FLOOR] = &peer_floor,
	[WEAN] = &peer_wean,
	[CLOSEFROM] = &peer_closefrom,
	[POSIX_SPAWN] = &peer_posix_spawn,
	[FORK] = &peer_fork,
	[CLOSE_LOOP] = &peer_close_loop,
	[POPEN] = &peer_popen,
	[SHELL] = &peer_shell,
	[PLAIN] = &peer_plain,
	[POPENV] = &peer_popenv,
	[SYSTEM] = &peer_system,
	[WEAN_SYSTEM] = &peer_wean_system,
	[GLIB] = &peer_glib,
	[GSUBPROCESS] = &peer_gsubprocess,
	[LIBUV] = &peer_uv,
	[LIBPIPELINE] = &peer_libpipeline,
	[PYTHON] = &peer_python,
	[GUILE] = &peer_guile,
	[NODE] = &peer_node,
	[RUBY] = &peer_ruby,
	[PERL] = &peer_perl,
	[LUA] = &peer_lua,
};

/* name, what, when, and of struct kase what is not as in the first */
#define CASE(name_, what_, when_, ...) \
	{.name = name_, .what = what_, .when = when_, __VA_ARGS__}

const struct kase cases[CASES] = {
	[FEW] = CASE("few", "few descriptors open", ALWAYS, .open = 0),
	[OPEN100] = CASE("100", "100 descriptors open", LONG, .open = 100),
	[OPEN1000] = CASE("1000", "1,000 descriptors open", ALWAYS, .open = 1000),
	[OPEN5000] = CASE("5000", "5,000 descriptors open", LONG, .open = 5000),
	[OPEN19000] = CASE("19000", "19,000 descriptors open", ALWAYS, .open = 19000),
	[OPEN1M] = CASE("1m", "1,000,000 descriptors open", HIGH, .open = 1000000,
	                .limit = 1073741816),
	[LIMIT256] = CASE("nofile256", "RLIMIT_NOFILE 256", LONG, .limit = 256),
	[LIMIT1024] = CASE("nofile1024", "RLIMIT_NOFILE 1,024", LONG, .limit = 1024),
	[LIMIT5000] = CASE("nofile5000", "RLIMIT_NOFILE 5,000", LONG, .limit = 5000),
	[LIMIT20000] = CASE("nofile20000", "RLIMIT_NOFILE 20,000", LONG, .limit = 20000),
	[LIMIT1M] = CASE("nofile1m", "RLIMIT_NOFILE 1,048,576", HIGH, .limit = 1048576),
	[LIMIT1G] = CASE("nofile1g", "RLIMIT_NOFILE 1,073,741,816", HIGH,
	                 .limit = 1073741816),
	[MB512] = CASE("512m", "512 MB resident", LONG, .resident = 512),
	[GB2] = CASE("2g", "2 GB resident", LONG, .resident = 2048),
	[GB8] = CASE("8g", "8 GB resident", LONG, .resident = 8192),
	[PIPE] = CASE("pipe", "its output read from a pipe", ALWAYS, .pipes = 1),
	[PIPES3] = CASE("pipes3", "input, output and errors by pipes", LONG, .pipes = 3),
	[PIPE19000] = CASE("pipe19000", "a pipe, 19,000 descriptors open", ALWAYS,
	                   .pipes = 1, .open = 19000),
	[PIPES3_19000] = CASE("pipes3-19000", "three pipes, 19,000 descriptors open", LONG,
	                      .pipes = 3, .open = 19000),
	[PIPE1M] = CASE("pipe1m", "a pipe, 1,000,000 descriptors open", HIGH, .pipes = 1,
	                .open = 1000000, .limit = 1073741816),
	[THREAD1] = CASE("thread1", "a thread of its own", LONG, .threads = 1),
	[THREADS2] = CASE("threads2", "two threads at the same time", LONG, .threads = 2),
	[THREADS4] = CASE("threads4", "four threads at the same time", LONG, .threads = 4),
	[THREADS8] = CASE("threads8", "eight threads at the same time", LONG, .threads = 8),
	[ENV2000] = CASE("env2000", "2,000 entries in the environment", LONG, .env = 2000),
	[PATH1] = CASE("path1", "searched, PATH of one element", LONG, .path = 1),
	[PATH50] = CASE("path50", "searched, PATH of fifty elements", LONG, .path = 50),
	[PROFILE] = CASE("profile", "clone3 and close_range refused", LONG, .profile = 1),
	[PROFILE1000] = CASE("profile1000", "the same, 1,000 descriptors open", LONG,
	                     .profile = 1, .open = 1000),
};

struct cell cells[CASES][PEERS][PASSES];
struct counts counted[CASES][PEERS];
char notes[CASES][NOTE];
struct settings set = {.passes = 3, .slice = 1000, .to = WEAN, .counts = 1};

const char *absent(int p)
{
	return peers[p]->script ? script_absent(peers[p]) : peers[p]->absent();
}

/* Another job than the case's. */
const char *unfit(int c, int p)
{
	const struct kase *k = &cases[c];
	const int most = peers[p]->at_most;

	if (k->pipes && most & NO_PIPE)
		return "has no pipe";
	if (k->pipes > 1 && most & ONE_PIPE)
		return "has one pipe at most";
	if (k->threads && most & ONE_THREAD)
		return "is not for several threads";
	return NULL;
}

static const char *csv;
static int most = LONG; /* the kind of run: cases so far are measured */

static void list(void)
{
	printf("peers:\n");
	for (int p = 0; p < PEERS; p++) {
		const char *why = absent(p);

		printf("  %-21s  %s%s%s\n", peers[p]->name, peers[p]->what,
		       why ? "; absent: " : "", why ? why : "");
	}
	printf("cases:\n");
	for (int c = 0; c < CASES; c++)
		printf("  %-21s  %s\n", cases[c].name, cases[c].what);
}

static int case_named(const char *name)
{
	int c = 0;

	while (c < CASES && strcmp(cases[c].name, name) != 0)
		c++;
	return c;
}

int peer_named(const char *name)
{
	int p = 0;

	while (p < PEERS && strcmp(peers[p]->name, name) != 0)
		p++;
	return p;
}

static int unknown(const char *name)
{
	fprintf(stderr, "bench: nothing is named '%s', see --list\n", name);
	return 0;
}

/* Marks the names of a list as wanted; 0: one is unknown. */
static int choose(char *names, int (*named)(const char *), int *wanted, int end)
{
	for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		int i = named(name);

		if (i == end)
			return unknown(name);
		wanted[i] = 1;
	}
	return 1;
}

static int any(const int *wanted, int n)
{
	int found = 0;

	for (int i = 0; i < n; i++)
		found |= wanted[i];
	return found;
}

/* What was named, or else what belongs to this kind of run; a peer, all. */
static void complete_choice(void)
{
	if (!any(set.cases, CASES))
		for (int c = 0; c < CASES; c++)
			set.cases[c] = most == HIGH
				? c == FEW || c == PIPE || cases[c].when == HIGH
				: cases[c].when <= most;
	if (!any(set.peers, PEERS))
		for (int p = 0; p < PEERS; p++)
			set.peers[p] = 1;
}

/* For who writes tables: "peer NAME" and "case NAME" in their order. */
static void list_names(void)
{
	for (int p = 0; p < PEERS; p++)
		printf("peer %s\n", peers[p]->name);
	for (int c = 0; c < CASES; c++)
		printf("case %s\n", cases[c].name);
}

static void help(FILE *f)
{
	fprintf(f, "usage: bench [OPTION]...\n"
	           "Measures how long a start takes, in each case by each peer.\n\n"
	           "  --quick           fewer cases, in less than a minute\n"
	           "  --high            the cases that want a limit of 2^30 descriptors\n"
	           "  --case NAME,...   these cases alone\n"
	           "  --peers NAME,...  these peers alone; floor is what ratios are of\n"
	           "  --to PEER         ratios are of this one too; else wean\n"
	           "  --csv FILE        what was measured into FILE, for table.sh\n"
	           "  --passes N        each case N times, 1 to %d; else 3\n"
	           "  --slice MS        milliseconds a case and pass; else 1000\n"
	           "  --no-counts       system calls and allocations are not counted\n"
	           "  --program FILE    what is started; else 'tiny', beside bench\n"
	           "  --list            tells what each peer and case is\n"
	           "  --names           the names alone, for scripts\n"
	           "  -h, --help        tells this\n", PASSES);
}

static int usage(void)
{
	help(stderr);
	return 0;
}

static int take_option(int letter)
{
	switch (letter) {
	case 'q':
		set.passes = 3;
		set.slice = 1000;
		most = ALWAYS;
		return 1;
	case 'H':
		most = HIGH;
		return 1;
	case 'n':
		set.passes = atoi(optarg);
		return (set.passes > 0 && set.passes <= PASSES) || usage();
	case 's':
		set.slice = atoi(optarg);
		return set.slice > 0 || usage();
	case 'o':
		set.counts = 0;
		return 1;
	case 'c':
		return choose(optarg, case_named, set.cases, CASES);
	case 'p':
		return choose(optarg, peer_named, set.peers, PEERS);
	case 't':
		set.to = peer_named(optarg);
		return set.to < PEERS || unknown(optarg);
	case 'f':
		csv = optarg;
		return 1;
	case 'x':
		snprintf(set.program, sizeof set.program, "%s", optarg);
		return 1;
	case 'l':
		list();
		exit(0);
	case 'N':
		list_names();
		exit(0);
	case 'h':
		help(stdout);
		exit(0);
	default:
		return usage();
	}
}

static int take_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"quick", 0, NULL, 'q'},   {"high", 0, NULL, 'H'},
		{"case", 1, NULL, 'c'},    {"peers", 1, NULL, 'p'},
		{"to", 1, NULL, 't'},      {"csv", 1, NULL, 'f'},
		{"passes", 1, NULL, 'n'},  {"slice", 1, NULL, 's'},
		{"no-counts", 0, NULL, 'o'}, {"program", 1, NULL, 'x'},
		{"list", 0, NULL, 'l'},    {"names", 0, NULL, 'N'},
		{"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "h", options, NULL)) != -1)
		if (!take_option(letter))
			return 0;
	complete_choice();
	return optind == argc || usage();
}

/* Beside us, or above where libtool put us into a folder of its own. */
static int find_program(void)
{
	static const char *const places[] = {"", "/.."};
	char self[PATH_MAX / 2] = "";

	if (*set.program)
		return 1;
	if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
		*strrchr(self, '/') = '\0';
	for (int i = 0; i < 2; i++) {
		snprintf(set.program, PATH_MAX, "%s%s/tiny", self, places[i]);
		if (access(set.program, R_OK) == 0)
			return 1;
	}
	fprintf(stderr, "bench: there is no program 'tiny', see --program\n");
	return 0;
}

static void print_absent(void)
{
	for (int p = 0; p < PEERS; p++)
		if (set.peers[p] && absent(p))
			printf("absent: %s: %s\n", peers[p]->name, absent(p));
}

static void print_head(void)
{
	struct utsname uts;
	double load = 0;

	uname(&uts);
	getloadavg(&load, 1);
	printf("%s %s %s, %ld processors, load average %.2f,\n"
	       "at most %d descriptors, %d passes of %.1f s a case\n\n",
	       uts.sysname, uts.release, uts.machine, sysconf(_SC_NPROCESSORS_ONLN), load,
	       limit_of_descriptors(), set.passes, set.slice / 1e3);
	printf("Microseconds to start a program that ends at once, and to reap it.\n"
	       "Peers take turns of up to 16 starts.  best: of all; calm: one in ten of\n"
	       "the turns' bests is below it; median: of the turns' medians; blocked: of\n"
	       "the calm time what passes before the call that starts returns.  Ratios\n"
	       "are of the calm times.  calls: system calls of the caller for start, wait\n"
	       "and release + of the child before its exec; heap: allocations of the\n"
	       "caller.\n");
	print_absent();
	fflush(stdout);
}

/* 0: somewhere ours was not measured. */
static int run_all(void)
{
	int good = 1;

	for (int pass = 0; pass < set.passes; pass++)
		for (int c = 0; c < CASES; c++)
			if (set.cases[c])
				good &= run_case(c, pass);
	end_cases();
	return good;
}

int main(int argc, char **argv)
{
	int good;

	if (argc > 5 && strcmp(argv[1], "--serve") == 0)
		return serve(argv + 2);
	if (!take_options(argc, argv) || !find_program())
		return 2;
	for (int p = 0; p < PEERS; p++)
		absent(p); /* looked for before a case changes PATH */
	print_head();
	good = run_all();
	for (int c = 0; c < CASES; c++)
		if (set.cases[c])
			print_case(c);
	print_bounds();
	if (csv && !write_csv(csv)) {
		perror(csv);
		return 2;
	}
	return good ? 0 : 1;
}
