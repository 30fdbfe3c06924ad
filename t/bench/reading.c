/* reading.c - how fast the output of a program is read, side by side.

   In each round every way has its turn, in another order each time and in a process of
   its own, so that no heap is warm for one and cold for another.  A ratio is the median
   over the rounds of the ratio of two times of the same round. */
#include "reading.h"
#include "times.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 15, QUICK_ROUNDS = 5, LINE = 79 /* bytes, its newline besides */ };

/* ---- texts ---- */

enum { LINES, CHUNKS, COLLECT, COLLECT4, PIPED, TEXTS };

static struct source {
	const char *name, *what;
	size_t mb;             /* of 1,000,000 bytes */
	int repeats;
	char path[64];
	char *argv[20], command[512];
	struct text text;
} sources[TEXTS] = {
	[LINES] = {.name = "lines", .what = "lines of 79 bytes, one by one", .mb = 400,
	             .repeats = 1},
	[CHUNKS] = {.name = "chunks", .what = "as they come, for nothing", .mb = 400,
	             .repeats = 1},
	[COLLECT] = {.name = "collect", .what = "all of the output in memory", .mb = 64,
	             .repeats = 1},
	[COLLECT4] = {.name = "collect4", .what = "four times as much", .mb = 64,
	             .repeats = 4},
	[PIPED] = {.name = "piped", .what = "five of cat in a row", .mb = 64, .repeats = 16},
};

/* In a directory for such, without a name once it is there: nothing is left behind,
   however we end. */
static FILE *new_file(void)
{
	const char *directory = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof path, "%s/reading.XXXXXX", directory ? directory : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return NULL;
	unlink(path);
	return fdopen(fd, "w");
}

/* 0: it could not be written. */
static int write_lines(struct source *s)
{
	const size_t lines = s->mb * 1000000 / (LINE + 1);
	FILE *f = new_file();
	int good = f != NULL;

	for (size_t i = 0; good && i < lines; i++)
		good = fprintf(f, "%0*zu\n", LINE, i) == LINE + 1;
	if (!good || fflush(f) != 0) {
		perror("reading: a file");
		return 0;
	}
	snprintf(s->path, sizeof s->path, "/proc/%d/fd/%d", (int)getpid(), fileno(f));
	s->text.lines = lines * (size_t)s->repeats;
	s->text.bytes = s->text.lines * (LINE + 1);
	return 1;
}

static void describe(struct source *s, const char *path)
{
	size_t len = (size_t)snprintf(s->command, sizeof s->command, "cat");

	s->argv[0] = "cat";
	for (int i = 1; i <= s->repeats; i++) {
		s->argv[i] = (char *)path;
		len += (size_t)snprintf(s->command + len, sizeof s->command - len, " %s",
		                        path);
	}
	s->text.argv = s->argv;
	s->text.command = s->command;
}

static int make_texts(int quick)
{
	for (int i = 0; i < TEXTS; i++)
		sources[i].mb /= quick ? 4 : 1;
	if (!write_lines(&sources[LINES]) || !write_lines(&sources[COLLECT]))
		return 0;
	describe(&sources[LINES], sources[LINES].path);
	sources[CHUNKS].text = sources[LINES].text;
	describe(&sources[CHUNKS], sources[LINES].path);
	for (int i = COLLECT; i < TEXTS; i++) {
		sources[i].text.lines = (size_t)sources[i].repeats * sources[COLLECT].text.lines;
		sources[i].text.bytes = (size_t)sources[i].repeats * sources[COLLECT].text.bytes;
		describe(&sources[i], sources[COLLECT].path);
	}
	return 1;
}

/* ---- ways ---- */

enum { READER, GETLINE, BARE, SOME, FREAD, WEAN, GLIB, PYTHON, WEAN4, GLIB4, PYTHON4,
       PIPELINE, SHELL, WAYS };

static struct way {
	int source;
	const char *name, *what;
	read_fn *read;
	const char *absent;    /* why it can't run here, or NULL */
	int error;
	double ns[ROUNDS];     /* 0: not measured */
} ways[WAYS] = {
	[READER] = {.source = LINES, .name = "wean_reader", .read = read_lines_wean,
	            .what = "wean_read_line"},
	[GETLINE] = {.source = LINES, .name = "popen", .read = read_lines_getline,
	            .what = "popen, getline"},
	[BARE] = {.source = LINES, .name = "bare", .read = read_bare,
	            .what = "read alone; same pipe, same buffer"},
	[SOME] = {.source = CHUNKS, .name = "wean_reader", .read = read_chunks_wean,
	          .what = "wean_read_some"},
	[FREAD] = {.source = CHUNKS, .name = "popen", .read = read_chunks_popen,
	           .what = "popen, fread of 64 KiB"},
	[WEAN] = {.source = COLLECT, .name = "wean_run", .read = collect_wean,
	            .what = "defaults"},
	[GLIB] = {.source = COLLECT, .name = "glib",
	           .what = "g_subprocess_communicate"},
	[PYTHON] = {.source = COLLECT, .name = "python", .read = collect_python,
	            .what = "Popen.communicate"},
	[WEAN4] = {.source = COLLECT4, .name = "wean_run", .read = collect_wean,
	            .what = "defaults"},
	[GLIB4] = {.source = COLLECT4, .name = "glib",
	           .what = "g_subprocess_communicate"},
	[PYTHON4] = {.source = COLLECT4, .name = "python", .read = collect_python,
	            .what = "Popen.communicate"},
	[PIPELINE] = {.source = PIPED, .name = "wean_pipeline", .read = pipe_wean,
	            .what = "defaults"},
	[SHELL] = {.source = PIPED, .name = "shell", .read = pipe_shell,
	            .what = "/bin/sh, cat | cat | cat | cat | cat"},
};

static void find_absent(void)
{
	const char *glib = collect_glib ? NULL : "built without GLib's development files";
	const char *python = system("python3 -c 0 >/dev/null 2>&1") ? "no python3" : NULL;

	ways[GLIB].read = ways[GLIB4].read = collect_glib;
	ways[GLIB].absent = ways[GLIB4].absent = glib;
	ways[PYTHON].absent = ways[PYTHON4].absent = python;
}

static _Noreturn void read_once(const struct way *w, long long *ns)
{
	long long begin = now(), own = 0;
	int error = w->read(&sources[w->source].text, &own);

	*ns = own ? own : now() - begin;
	_exit(error);
}

/* ns: shared with the process that reads. */
static void take_turn(struct way *w, int round, long long *ns)
{
	int status;
	pid_t pid;

	if (w->absent || w->error)
		return;
	pid = fork();
	if (pid == 0)
		read_once(w, ns);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		w->error = errno;
	else if (status != 0)
		w->error = WIFEXITED(status) ? WEXITSTATUS(status) : ECANCELED;
	else
		w->ns[round] = (double)*ns;
}

/* ---- results ---- */

static double median(const double *values, int n, double *least)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, (size_t)n * sizeof *values);
	*least = tenths(0, sorted, (size_t)n);
	return tenths(5, sorted, (size_t)n);
}

static int measured(const struct way *w)
{
	return !w->absent && !w->error;
}

/* How much of the time of b a takes. */
static double ratio(const struct way *a, const struct way *b, int rounds)
{
	double values[ROUNDS], least;

	for (int i = 0; i < rounds; i++)
		values[i] = a->ns[i] / b->ns[i];
	return median(values, rounds, &least);
}

static void print_way(const struct way *w, const struct way *first, int rounds)
{
	const double bytes = (double)sources[w->source].text.bytes;
	double best, middle;

	printf("  %-13s %-35s", w->name, w->what);
	if (!measured(w)) {
		printf("  %s: %s\n", w->absent ? "absent" : "failed",
		       w->absent ? w->absent : strerror(w->error));
		return;
	}
	middle = median(w->ns, rounds, &best);
	printf("%9.1f%9.1f%9.0f", best / 1e6, middle / 1e6, bytes * 1e3 / middle);
	if (measured(first))
		printf("%9.2f", ratio(w, first, rounds));
	printf("\n");
}

static void print_source(int source, int rounds)
{
	const struct way *first = NULL;

	printf("\n%s: %s, %.1f MB\n  %-13s %-35s%9s%9s%9s  / first\n", sources[source].name,
	       sources[source].what, (double)sources[source].text.bytes / 1e6, "", "",
	       "best ms", "median", "MB/s");
	for (int i = 0; i < WAYS; i++)
		if (ways[i].source == source) {
			first = first ? first : &ways[i];
			print_way(&ways[i], first, rounds);
		}
}

/* What must hold: the time of a is at least, or at most, so much of b's. */
static const struct bound {
	int a, b, least;
	double bound;
} bounds[] = {
	{GETLINE, READER, 1, 2.0},
	{BARE, READER, 1, 0.85},
	{FREAD, SOME, 1, 1.0},
	{GLIB4, WEAN4, 1, 1.5},
	{PYTHON4, WEAN4, 1, 1.5},
	{WEAN4, WEAN, 0, 4.6},
	{SHELL, PIPELINE, 1, 0.95},
};

/* 1: it was missed. */
static int print_bound(const struct bound *b, int rounds)
{
	const struct way *x = &ways[b->a], *y = &ways[b->b];
	double best, base, found;
	char text[64];
	int met;

	snprintf(text, sizeof text, "%s, %s / %s, %s", x->name, sources[x->source].name,
	         y->name, sources[y->source].name);
	printf("  %-39s", text);
	if (!measured(x) || !measured(y)) {
		printf("  not measured\n");
		return 0;
	}
	median(x->ns, rounds, &best);
	median(y->ns, rounds, &base);
	found = ratio(x, y, rounds);
	met = b->least ? found >= b->bound : found <= b->bound;
	printf("%8.2f%8.2f%10s %.2f  %s\n", best / base, found,
	       b->least ? "at least" : "at most", b->bound, met ? "met" : "missed");
	return !met;
}

/* More rows for the file that bench writes.  0: not possible. */
static int add_to_csv(const char *path, int rounds)
{
	FILE *f = fopen(path, "a");

	if (!f)
		return 0;
	for (int i = 0; i < WAYS; i++)
		for (int round = 0; round < rounds && measured(&ways[i]); round++) {
			const double us = ways[i].ns[round] / 1e3;

			fprintf(f, "%s,%s,%d,1,%.1f,%.1f,%.1f,,,,\n", sources[ways[i].source].name,
			        ways[i].name, round, us, us, us);
		}
	return fclose(f) == 0;
}

static int help(FILE *f, int status)
{
	fprintf(f, "usage: reading [--quick] [--csv FILE]\n"
	           "Measures how fast the output of a program is read, in several ways.\n\n"
	           "  --quick     a quarter of the bytes, %d rounds instead of %d\n"
	           "  --csv FILE  adds what was measured to the FILE that bench wrote\n"
	           "  -h, --help  tells this\n", QUICK_ROUNDS, ROUNDS);
	return status;
}

int main(int argc, char **argv)
{
	const int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
	const int saves = argc == quick + 3 && strcmp(argv[quick + 1], "--csv") == 0;
	const int rounds = quick ? QUICK_ROUNDS : ROUNDS;
	long long *ns = mmap(NULL, sizeof *ns, PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double load = 0;
	int good = 1, missed = 0;

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return help(stdout, 0);
	if (argc > 1 + quick + 2 * saves)
		return help(stderr, 2);
	if (ns == MAP_FAILED || !make_texts(quick))
		return 2;
	find_absent();
	getloadavg(&load, 1);
	printf("\nMilliseconds to start `cat` of a file, to read what it writes, and to reap"
	       " it;\n%d rounds, turns in another order each.  Ratios are of times in the"
	       " same round.\nLoad average %.2f.\n", rounds, load);
	fflush(stdout);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < WAYS; i++)
			take_turn(&ways[(round + i) % WAYS], round, ns);
	for (int i = 0; i < TEXTS; i++)
		print_source(i, rounds);
	printf("\n%-41s%8s%8s\n", "bounds, by the medians", "best", "median");
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		missed |= print_bound(&bounds[i], rounds);
	if (missed)
		printf("missed: not within the bound here; on a busy machine look at `best`, or\n"
		       "run it again.  The command does not fail for it.\n");
	for (int i = 0; i < WAYS; i++)
		good &= ways[i].error == 0;
	if (saves && !add_to_csv(argv[quick + 2], rounds)) {
		perror(argv[quick + 2]);
		return 2;
	}
	return good ? 0 : 1;
}
