/* turns.c - a case: its peers take turns in a process of their own, whose descriptors
   and memory are as the case says.  That process lives as long as the passes go on,
   and is stopped while it is not its turn: filling memory takes longer than a pass. */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 16,      /* starts a turn, unless it gets longer than TURN */
	TURN = 4000000,  /* ns */
	TURNS = 1 << 14, /* at most */
	SPARE = 1000     /* descriptors that a case leaves free */
};

/* How far a peer is. */
struct play {
	int live, error;
	long long spent;
	size_t starts, turns;
	double best[TURNS], median[TURNS]; /* of each turn */
};

/* A case: shared between the driver and the process that runs it, where a peer that
   forks does not pay for copying it. */
static struct table {
	pid_t pid;
	int alive;
	char note[NOTE];
	struct play plays[PEERS];
} *tables[CASES], *table;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void take_turn(const struct peer *peer, const struct job *job, struct play *play)
{
	double times[BATCH];
	long long start = now(), before = start, after = start;
	size_t n = 0;

	while (n < BATCH && after - start < TURN) {
		play->error = peer->run(job);
		after = now();
		if (play->error) {
			play->live = 0;
			return;
		}
		times[n++] = (double)(after - before);
		before = after;
	}
	play->median[play->turns] = tenths(5, times, n);
	play->best[play->turns] = times[0]; /* sorted by now */
	play->live = ++play->turns < TURNS;
	play->starts += n;
	play->spent += after - start;
}

/* LLONG_MAX: nobody plays. */
static long long least_spent(void)
{
	long long least = LLONG_MAX;

	for (int p = 0; p < PEERS; p++)
		if (table->plays[p].live && table->plays[p].spent < least)
			least = table->plays[p].spent;
	return least;
}

/* All get the same time: who is a turn ahead of the last lets the others go, and the
   last one's share ends it. */
static void take_turns(const struct job *job, long long share)
{
	long long least;

	for (int round = 0; (least = least_spent()) < share; round++) {
		for (int i = 0; i < PEERS; i++) {
			int p = (round + i) % PEERS;
			struct play *play = &table->plays[p];

			if (play->live && play->spent <= least + TURN)
				take_turn(peers[p], job, play);
		}
	}
}

int limit_of_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max > INT_MAX ? INT_MAX : (int)limit.rlim_max;
}

/* From the lowest free number on, so that whatever is opened later is above. */
static void fill_descriptors(int wanted)
{
	int limit = limit_of_descriptors(), null = open("/dev/null", O_RDWR), n = 1;

	while (n < wanted && n < limit - SPARE && dup(null) >= 0)
		n++;
	if (n < wanted)
		snprintf(table->note, NOTE, " (only %d: the limit is %d)", n, limit);
}

/* The number behind the last `key` in a file; 0: there is none. */
static long long number_in(const char *path, const char *key)
{
	char line[128];
	long long number = 0;
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			number = atoll(line + strlen(key));
	if (f)
		fclose(f);
	return number;
}

/* MB that can be had, by the word of the kernel and of a container. */
static long long memory_to_spare(void)
{
	long long mb = number_in("/proc/meminfo", "MemAvailable:") >> 10;
	long long most = number_in("/sys/fs/cgroup/memory.max", "") >> 20;

	return (most && most < mb ? most : mb) * 3 / 4;
}

static void *new_memory(size_t bytes, int flag)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flag | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* In pages of the common size: huge ones would flatter fork. */
static void fill_memory(long long wanted)
{
	long long mb = memory_to_spare();
	size_t bytes = (size_t)(mb < wanted ? mb : wanted) << 20;
	char *p = new_memory(bytes, MAP_PRIVATE);

	if (!p)
		bytes = 0;
	else
		madvise(p, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	if (bytes < (size_t)wanted << 20)
		snprintf(table->note, NOTE, " (only %zu MB: no more is free)",
		         bytes >> 20);
}

/* How many play. */
static int begin_pass(void)
{
	int players = 0;

	memset(table->plays, 0, sizeof table->plays);
	for (int p = 0; p < PEERS; p++) {
		table->plays[p].live = set.peers[p] && !peers[p]->absent();
		players += table->plays[p].live;
	}
	return players;
}

/* The process of a case: stops when it is ready and after each pass. */
static _Noreturn void play_case(int c)
{
	const int pipe = cases[c].pipe;
	char say[] = "x", *argv[] = {set.program, pipe ? say : NULL, NULL};
	char command[PATH_MAX + 2];
	const struct job job = {argv, command, pipe};
	int players;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(command, sizeof command, "%s%s", set.program, pipe ? " x" : "");
	if (cases[c].open)
		fill_descriptors(cases[c].open);
	if (cases[c].resident)
		fill_memory(cases[c].resident);
	for (;;) {
		raise(SIGSTOP);
		players = begin_pass();
		if (players)
			take_turns(&job, set.slice * 1000000LL / players);
	}
}

/* 0: it is dead. */
static int stops(pid_t pid)
{
	int status;

	return waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
}

static struct table *begin_case(int c)
{
	pid_t pid;

	table = new_memory(sizeof *table, MAP_SHARED);
	if (!table)
		return NULL;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		play_case(c);
	table->pid = pid;
	table->alive = pid > 0 && stops(pid);
	memcpy(notes[c], table->note, NOTE);
	return table;
}

static struct cell cell_of(struct play *play)
{
	struct cell cell = {.error = play->error, .starts = play->starts};

	cell.median = tenths(5, play->median, play->turns);
	cell.calm = tenths(1, play->best, play->turns);
	cell.best = tenths(0, play->best, play->turns);
	return cell;
}

/* 0: a peer failed. */
static int keep(int c, int pass)
{
	int good = 1;

	for (int p = 0; p < PEERS; p++) {
		cells[c][p][pass] = cell_of(&table->plays[p]);
		good &= cells[c][p][pass].error == 0;
	}
	return good;
}

int run_case(int c, int pass)
{
	table = tables[c];
	if (pass == 0)
		table = tables[c] = begin_case(c);
	if (!table || !table->alive)
		return 0;
	kill(table->pid, SIGCONT);
	table->alive = stops(table->pid);
	if (!table->alive)
		fprintf(stderr, "bench: case %s broke off\n", cases[c].name);
	return keep(c, pass) && table->alive;
}

void end_cases(void)
{
	for (int c = 0; c < CASES; c++)
		if (tables[c] && tables[c]->alive) {
			kill(tables[c]->pid, SIGKILL);
			waitpid(tables[c]->pid, NULL, 0);
		}
}
