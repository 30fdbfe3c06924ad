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
	[GLIB] = &peer_glib,
	[LIBUV] = &peer_uv,
};

const struct kase cases[CASES] = {
	[FEW] = {"few", "few descriptors open", 0, 0, 0},
	[OPEN1000] = {"1000", "1,000 descriptors open", 1000, 0, 0},
	[OPEN19000] = {"19000", "19,000 descriptors open", 19000, 0, 0},
	[PIPE] = {"pipe", "its output read from a pipe", 0, 1, 0},
	[PIPE19000] = {"pipe19000", "the same, 19,000 descriptors open", 19000, 1, 0},
	[BIG] = {"4g", "4 GB resident", 0, 0, 4096},
};

struct cell cells[CASES][PEERS][PASSES];
char notes[CASES][NOTE];
struct settings set = {PASSES, 4000, {0}, {0}, WEAN, ""};

static const char *csv;

static void list(void)
{
	printf("peers:\n");
	for (int p = 0; p < PEERS; p++) {
		const char *absent = peers[p]->absent();

		printf("  %-21s  %s%s%s\n", peers[p]->name, peers[p]->what,
		       absent ? "; absent: " : "", absent ? absent : "");
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

static int peer_named(const char *name)
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

static void all_if_none(int *wanted, int n)
{
	int any = 0;

	for (int i = 0; i < n; i++)
		any |= wanted[i];
	for (int i = 0; i < n; i++)
		wanted[i] |= !any;
}

static int usage(void)
{
	fprintf(stderr, "usage: bench [--quick] [--case NAME,...] [--peers NAME,...]\n"
	                "             [--to PEER] [--csv FILE] [--program FILE]\n"
	                "       bench --list\n");
	return 0;
}

static int take_option(int letter)
{
	switch (letter) {
	case 'q':
		set.passes = 3;
		set.slice = 1000;
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
	default:
		return usage();
	}
}

static int take_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"quick", 0, NULL, 'q'},   {"case", 1, NULL, 'c'},
		{"peers", 1, NULL, 'p'},   {"to", 1, NULL, 't'},
		{"csv", 1, NULL, 'f'},     {"program", 1, NULL, 'x'},
		{"list", 0, NULL, 'l'},    {NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(letter))
			return 0;
	all_if_none(set.cases, CASES);
	all_if_none(set.peers, PEERS);
	return optind == argc || usage();
}

/* Beside us, or above where libtool put us into a folder of its own. */
static int find_program(void)
{
	static const char *const places[] = {"/tiny", "/../tiny"};
	char self[PATH_MAX / 2] = "";

	if (*set.program)
		return 1;
	if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
		*strrchr(self, '/') = '\0';
	for (int i = 0; i < 2; i++) {
		snprintf(set.program, sizeof set.program, "%s%s", self, places[i]);
		if (access(set.program, X_OK) == 0)
			return 1;
	}
	fprintf(stderr, "bench: no program 'tiny' in '%s', see --program\n", self);
	return 0;
}

static void print_head(void)
{
	struct utsname uts;

	uname(&uts);
	printf("%s %s %s, %ld processors, at most %d descriptors, "
	       "%d passes of %.1f s a case\n\n",
	       uts.sysname, uts.release, uts.machine, sysconf(_SC_NPROCESSORS_ONLN),
	       limit_of_descriptors(), set.passes, set.slice / 1e3);
	printf("Microseconds to start a program that ends at once, and to reap it.\n"
	       "Peers take turns of up to 16 starts.  best: of all; calm: one in ten of\n"
	       "the turns' bests is below it; median: of the turns' medians.  Ratios\n"
	       "are of the calm times.\n");
}

/* 0: a case broke off, or a peer failed. */
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

	if (!take_options(argc, argv) || !find_program())
		return 2;
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
