/* report.c - what the passes found.

   A ratio is the median over the passes of the ratio of two times of the same pass:
   what slows one pass down cancels out. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What must hold: peer p in case c takes at most so much of peer q in case d. */
static const struct bound {
	int c, p, d, q;
	double most, aim;
} bounds[] = {
	{FEW, WEAN, FEW, FLOOR, 1.10, 1.05},
	{FEW, WEAN, FEW, CLOSEFROM, 0.80, 0},
	{OPEN19000, WEAN, FEW, WEAN, 1.15, 0},
	{PIPE19000, WEAN, PIPE, WEAN, 1.25, 0},
	{BIG, WEAN, FEW, WEAN, 1.10, 0},
	{FEW, POPENV, FEW, POPEN, 0.15, 0},
	{FEW, PLAIN, FEW, POPEN, 0.20, 0},
	{FEW, SHELL, FEW, POPEN, 1.02, 0},
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double tenths(size_t below, double *values, size_t n)
{
	if (n == 0)
		return 0;
	qsort(values, n, sizeof *values, compare);
	return values[(n - 1) * below / 10];
}

/* All passes of a peer in a case. */
static struct cell sum_up(int c, int p)
{
	const struct cell *passes = cells[c][p];
	double calms[PASSES], medians[PASSES];
	struct cell sum = {.best = passes[0].best};

	for (int i = 0; i < set.passes; i++) {
		sum.error = sum.error ? sum.error : passes[i].error;
		sum.starts += passes[i].starts;
		sum.best = passes[i].best < sum.best ? passes[i].best : sum.best;
		calms[i] = passes[i].calm;
		medians[i] = passes[i].median;
	}
	sum.calm = tenths(5, calms, (size_t)set.passes);
	sum.median = tenths(5, medians, (size_t)set.passes);
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

	for (int i = 0; i < set.passes; i++) {
		double base = time(&cells[d][q][i]);

		values[i] = base > 0 ? time(&cells[c][p][i]) / base : 0;
	}
	return tenths(5, values, (size_t)set.passes);
}

static void print_ratio(double x)
{
	if (x > 0)
		printf("%9.2f", x);
	else
		printf("%9s", "-");
}

static void print_peer(int c, int p)
{
	const struct cell sum = sum_up(c, p);
	const char *absent = peers[p]->absent();

	printf("  %-21s", peers[p]->name);
	if (absent || sum.error) {
		printf("  %s: %s\n", absent ? "absent" : "failed",
		       absent ? absent : strerror(sum.error));
		return;
	}
	printf("%9zu%10.1f%10.1f%10.1f", sum.starts, sum.best / 1e3, sum.calm / 1e3,
	       sum.median / 1e3);
	print_ratio(ratio(c, p, c, FLOOR, calm));
	print_ratio(ratio(c, p, c, set.to, calm));
	printf("\n");
}

void print_case(int c)
{
	printf("\n%s: %s%s\n", cases[c].name, cases[c].what, notes[c]);
	printf("  %-21s%9s%10s%10s%10s%9s  / %s\n", "", "starts", "best", "calm",
	       "median", "/ floor", peers[set.to]->name);
	for (int p = 0; p < PEERS; p++)
		if (set.peers[p])
			print_peer(c, p);
}

static void print_bound(const struct bound *b)
{
	const double x = ratio(b->c, b->p, b->d, b->q, calm);
	const double y = ratio(b->c, b->p, b->d, b->q, middle);
	const double best = sum_up(b->c, b->p).best, base = sum_up(b->d, b->q).best;
	char text[64];

	snprintf(text, sizeof text, "%s, %s / %s, %s", peers[b->p]->name,
	         cases[b->c].name, peers[b->q]->name, cases[b->d].name);
	printf("  %-39s", text);
	if (x == 0) {
		printf("  not measured\n");
		return;
	}
	printf("%8.3f%8.3f%8.3f%8.2f", best / base, x, y, b->most);
	printf("  %s", x <= b->most ? "PASS" : "over");
	if (b->aim > 0)
		printf(", aim %.2f %s", b->aim, x <= b->aim ? "met" : "missed");
	printf("%s\n", notes[b->c]);
}

void print_bounds(void)
{
	printf("\n%-41s%8s%8s%8s%8s\n", "what must hold, by the calm times", "best",
	       "calm", "median", "most");
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		print_bound(&bounds[i]);
}

static void write_peer(FILE *f, int c, int p)
{
	for (int i = 0; i < set.passes; i++) {
		const struct cell *cell = &cells[c][p][i];

		if (cell->starts)
			fprintf(f, "%s,%s,%d,%zu,%.1f,%.1f,%.1f\n", cases[c].name,
			        peers[p]->name, i, cell->starts, cell->best / 1e3,
			        cell->calm / 1e3, cell->median / 1e3);
	}
}

int write_csv(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return 0;
	fprintf(f, "case,peer,pass,starts,best_us,calm_us,median_us\n");
	for (int c = 0; c < CASES; c++)
		for (int p = 0; p < PEERS; p++)
			write_peer(f, c, p);
	return fclose(f) == 0;
}
