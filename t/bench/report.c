/* report.c - what the passes found.

   A ratio is the median over the passes of the ratio of two times of the same pass:
   what slows one pass down cancels out. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

/* What must hold: peer p in case c takes at most so much of peer q in case d. */
static const struct bound {
	int c, p, d, q;
	double most, aim;
} bounds[] = {
	{FEW, WEAN, FEW, FLOOR, 1.10, 1.05},
	{FEW, WEAN, FEW, CLOSEFROM, 0.80, 0},
	{OPEN1000, WEAN, FEW, WEAN, 1.15, 0},
	{OPEN19000, WEAN, FEW, WEAN, 1.15, 0},
	{LIMIT20000, WEAN, LIMIT256, WEAN, 1.15, 0},
	{PIPE19000, WEAN, PIPE, WEAN, 1.25, 0},
	{PIPES3_19000, WEAN, PIPES3, WEAN, 1.25, 0},
	{GB8, WEAN, FEW, WEAN, 1.10, 0},
	{OPEN1M, WEAN, FEW, WEAN, 1.15, 0},
	{LIMIT1G, WEAN, FEW, WEAN, 1.15, 0},
	{PIPE1M, WEAN, PIPE, WEAN, 1.25, 0},
	{FEW, POPENV, FEW, POPEN, 0.15, 0},
	{FEW, PLAIN, FEW, POPEN, 0.20, 0},
	{FEW, SHELL, FEW, POPEN, 1.02, 0},
};

/* All passes of a peer in a case. */
static struct cell sum_up(int c, int p)
{
	const struct cell *passes = cells[c][p];
	double bests[PASSES], calms[PASSES], medians[PASSES], blocked[PASSES];
	struct cell sum = {0};
	size_t n = 0;

	for (int i = 0; i < set.passes; i++) {
		sum.error = sum.error ? sum.error : passes[i].error;
		sum.starts += passes[i].starts;
		if (!passes[i].starts)
			continue;
		bests[n] = passes[i].best;
		calms[n] = passes[i].calm;
		medians[n] = passes[i].median;
		blocked[n++] = passes[i].blocked;
	}
	sum.best = tenths(0, bests, n);
	sum.calm = tenths(5, calms, n);
	sum.median = tenths(5, medians, n);
	sum.blocked = tenths(5, blocked, n);
	return sum;
}

static double calm(const struct cell *cell)
{
	return cell->calm;
}

static double middle(const struct cell *cell)
{
	return cell->median;
}

/* 0: one of them was not measured. */
static double ratio(int c, int p, int d, int q, double (*time)(const struct cell *))
{
	double values[PASSES];
	size_t n = 0;

	for (int i = 0; i < set.passes; i++) {
		double x = time(&cells[c][p][i]), base = time(&cells[d][q][i]);

		if (x > 0 && base > 0)
			values[n++] = x / base;
	}
	return tenths(5, values, n);
}

static void print_ratio(double x)
{
	if (x > 0)
		printf("%9.2f", x);
	else
		printf("%9s", "-");
}

static void print_counts(const struct counts *n)
{
	if (n->known)
		printf("%6zu+%-5zu%5zu", n->parent, n->child, n->allocations);
}

static void print_peer(int c, int p)
{
	const struct cell sum = sum_up(c, p);

	printf("  %-21s", peers[p]->name);
	if (!sum.starts || unfit(c, p)) {
		printf("  %s\n", unfit(c, p) ? unfit(c, p) : strerror(sum.error));
		return;
	}
	printf("%9zu%10.1f%10.1f%10.1f", sum.starts, sum.best / 1e3, sum.calm / 1e3,
	       sum.median / 1e3);
	if (sum.blocked > 0)
		printf("%10.1f", sum.blocked / 1e3);
	else
		printf("%10s", "-");
	print_ratio(ratio(c, p, c, FLOOR, calm));
	print_ratio(ratio(c, p, c, set.to, calm));
	print_counts(&counted[c][p]);
	printf("\n");
}

void print_case(int c)
{
	char ratio_to[32];

	snprintf(ratio_to, sizeof ratio_to, "/ %.6s", peers[set.to]->name);
	printf("\n%s: %s%s\n", cases[c].name, cases[c].what, notes[c]);
	printf("  %-21s%9s%10s%10s%10s%10s%9s%9s%s\n", "", "starts", "best", "calm",
	       "median", "blocked", "/ floor", ratio_to, "     calls     heap");
	for (int p = 0; p < PEERS; p++)
		if (set.peers[p] && !absent(p))
			print_peer(c, p);
}

/* 0: it is not of this kind of run. */
static int print_bound(const struct bound *b, int is_first)
{
	const double x = ratio(b->c, b->p, b->d, b->q, calm);
	const double y = ratio(b->c, b->p, b->d, b->q, middle);
	const double best = sum_up(b->c, b->p).best, base = sum_up(b->d, b->q).best;
	char text[64];

	if (x == 0)
		return 0;
	if (is_first)
		printf("\n%-41s%8s%8s%8s%8s\n", "bounds, by the calm times", "best", "calm",
		       "median", "most");
	snprintf(text, sizeof text, "%s, %s / %s, %s", peers[b->p]->name,
	         cases[b->c].name, peers[b->q]->name, cases[b->d].name);
	printf("  %-39s", text);
	printf("%8.3f%8.3f%8.3f%8.2f", best / base, x, y, b->most);
	printf("  %s", x <= b->most ? "met" : "missed");
	if (b->aim > 0)
		printf(", aim %.2f %s", b->aim, x <= b->aim ? "met" : "missed");
	printf("%s\n", notes[b->c]);
	return 1;
}

/* Those that do the same job: who closes nothing, where there is nothing to close, which
   one call tells. */
static int compete(int c, int p)
{
	const int leaks = peers[p]->at_most & LEAKS;

	return p != FLOOR && strncmp(peers[p]->name, "wean", 4) != 0 && !unfit(c, p) &&
	       !(leaks && (cases[c].open || cases[c].profile));
}

/* Where the shell is the job, ours is the one through the shell. */
static int ours(int p)
{
	return p == POPEN ? PLAIN : p == SYSTEM ? WEAN_SYSTEM : WEAN;
}

static double held(const struct cell *cell)
{
	return cell->blocked;
}

/* Of how many pairs. */
static int print_ahead(const char *what, double (*time)(const struct cell *))
{
	int n = 0, behind = 0;

	for (int c = 0; c < CASES; c++)
		for (int p = 0; p < PEERS; p++) {
			double x = compete(c, p) ? ratio(c, ours(p), c, p, time) : 0;

			n += x > 0;
			if (x < 1)
				continue;
			behind++;
			printf("  slower in %s: %s, %s / %s: %.3f\n", what, cases[c].name,
			       peers[ours(p)]->name, peers[p]->name, x);
		}
	if (n)
		printf("  in %s, wean is faster in %d of %d pairs of a case and a peer\n",
		       what, n - behind, n);
	return n;
}

void print_bounds(void)
{
	int n = 0;

	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		n += print_bound(&bounds[i], n == 0);
	if (n)
		printf("missed: not within the bound here; on a busy machine look at `best`, or\n"
		       "run it again.  The command does not fail for it.  aim: what is wished\n"
		       "for beyond the bound.\n");
	printf("\n");
	n = print_ahead("time", calm);
	print_ahead("time blocked", held); /* not known of all */
	if (n)
		printf("A peer that closes no descriptors counts where few are open: elsewhere\n"
		       "it does less.\n");
}

/* ---- for later ---- */

/* The name behind the last colon of the line "model name", or "". */
static void write_processor(FILE *f)
{
	char line[256], *name = NULL;
	FILE *info = fopen("/proc/cpuinfo", "r");

	while (!name && info && fgets(line, sizeof line, info))
		if (strncmp(line, "model name", 10) == 0 && (name = strchr(line, ':')))
			name[strcspn(name, "\n")] = '\0';
	if (info)
		fclose(info);
	fprintf(f, "%s", name ? name + 2 : "a processor");
}

static void write_machine(FILE *f)
{
	time_t t = time(NULL);
	struct utsname uts;
	char date[32];

	uname(&uts);
	strftime(date, sizeof date, "%Y-%m-%d", gmtime(&t));
	fprintf(f, "#machine,%s,%s %s %s,", date, uts.sysname, uts.release, uts.machine);
	write_processor(f);
	fprintf(f, ",%ld processors,", sysconf(_SC_NPROCESSORS_ONLN));
#ifdef __GLIBC__
	fprintf(f, "glibc %s", gnu_get_libc_version());
#else
	fprintf(f, "another libc than glibc");
#endif
	fprintf(f, "\n");
}

/* Cases in a row that differ in one thing: what a plot shows.  NAME=x, where x is 0 for
   none. */
static const char *const sweeps[] = {
	"open,open descriptors,few=3,100=100,1000=1000,5000=5000,19000=19000,1m=1000000",
	"limit,RLIMIT_NOFILE,nofile256=256,nofile1024=1024,nofile5000=5000,"
	"nofile20000=20000,nofile1m=1048576,nofile1g=1073741816",
	"memory,MB resident,few=0,512m=512,2g=2048,8g=8192",
	"threads,threads that start at the same time,thread1=1,threads2=2,threads4=4,"
	"threads8=8",
	"pipes,pipes,few=0,pipe=1,pipes3=3",
	"pipes19000,pipes with 19000 descriptors open,19000=0,pipe19000=1,pipes3-19000=3",
	"environment,entries in the environment,few=10,env2000=2000",
	"path,elements of PATH,path1=1,path50=50",
	"profile,open descriptors where clone3 and close_range are refused,profile=3,"
	"profile1000=1000",
};

static void write_counts(FILE *f, const struct counts *n)
{
	if (n->known)
		fprintf(f, ",%zu,%zu,%zu\n", n->parent, n->child, n->allocations);
	else
		fprintf(f, ",,,\n");
}

static void write_peer(FILE *f, int c, int p)
{
	for (int i = 0; i < set.passes; i++) {
		const struct cell *cell = &cells[c][p][i];

		if (!cell->starts)
			continue;
		fprintf(f, "%s,%s,%d,%zu,%.1f,%.1f,%.1f,%.1f", cases[c].name,
		        peers[p]->name, i, cell->starts, cell->best / 1e3,
		        cell->calm / 1e3, cell->median / 1e3, cell->blocked / 1e3);
		write_counts(f, &counted[c][p]);
	}
}

int write_csv(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return 0;
	write_machine(f);
	for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++)
		fprintf(f, "#sweep,%s\n", sweeps[i]);
	for (int c = 0; c < CASES; c++)
		if (*notes[c])
			fprintf(f, "#note,%s,%s\n", cases[c].name, notes[c]);
	fprintf(f, "case,peer,pass,starts,best_us,calm_us,median_us,blocked_us,"
	           "parent_calls,child_calls,allocations\n");
	for (int c = 0; c < CASES; c++)
		for (int p = 0; p < PEERS; p++)
			write_peer(f, c, p);
	return fclose(f) == 0;
}
