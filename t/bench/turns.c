/* turns.c - a case: its peers take turns in a process of their own, in the state that the
   case wants.  That process lives as long as the passes go on, and is stopped while it is
   not its turn.  A library may end it: what was measured counts, and the next pass has a
   new one. */
#include "bench.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BATCH = 16,      /* starts a turn, unless it gets longer than TURN */
	TURN = 4000000,  /* ns */
	TURNS = 1 << 14, /* at most */
	THREADS = 8      /* at most */
};

/* How far a peer is. */
struct play {
	int live, error;
	long long spent;
	size_t starts, turns;
	double best[TURNS], median[TURNS], blocked[TURNS]; /* of each turn */
};

/* A case: shared between the driver and the process that runs it, where a peer that
   forks does not pay for copying it. */
static struct table {
	pid_t pid;
	int alive, pass;
	char note[NOTE];
	struct counts counted[PEERS];
	struct play plays[PEERS];
} *tables[CASES], *table;

/* ---- turns ---- */

static void end_turn(struct play *play, double *times, double *blocked, size_t n,
                     size_t starts, long long spent)
{
	play->median[play->turns] = tenths(5, times, n);
	play->best[play->turns] = times[0]; /* sorted by now */
	play->blocked[play->turns] = tenths(0, blocked, n);
	play->live = ++play->turns < TURNS;
	play->starts += starts;
	play->spent += spent;
}

static void fail(struct play *play, int error)
{
	play->error = error;
	play->live = 0;
}

static void take_turn(const struct peer *peer, struct job job, struct play *play)
{
	double times[BATCH], blocked[BATCH];
	long long start = now(), before = start, after = start;
	size_t n = 0;

	while (n < BATCH && after - start < TURN) {
		int error = peer->run(&job);

		after = now();
		if (error) {
			fail(play, error);
			return;
		}
		times[n] = (double)(after - before);
		blocked[n++] = job.started ? (double)(job.started - before) : 0;
		before = after;
	}
	end_turn(play, times, blocked, n, n, after - start);
}

/* Several threads at once. */
struct worker {
	pthread_t thread;
	pthread_barrier_t *gate;
	const struct peer *peer;
	struct job job;
	size_t n;
	int error;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	long long begin;

	pthread_barrier_wait(w->gate);
	begin = now();
	while (!w->error && w->n < BATCH && now() - begin < TURN) {
		w->error = w->peer->run(&w->job);
		w->n++;
	}
	return NULL;
}

/* Their mean: how many starts the process gets done in a time. */
static void take_threads_turn(const struct peer *peer, const struct job *job, int threads,
                              struct play *play)
{
	struct worker workers[THREADS];
	pthread_barrier_t gate;
	double time, blocked = 0;
	long long begin, spent;
	size_t n = 0;

	pthread_barrier_init(&gate, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){.gate = &gate, .peer = peer, .job = *job};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			abort();
	}
	begin = now();
	pthread_barrier_wait(&gate);
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		n += workers[i].n;
		play->error = play->error ? play->error : workers[i].error;
	}
	spent = now() - begin;
	pthread_barrier_destroy(&gate);
	if (play->error) {
		play->live = 0;
		return;
	}
	time = (double)spent / (double)n;
	end_turn(play, &time, &blocked, 1, n, spent);
}

/* Some have a handler of SIGCHLD, installed once and for all: each has its own
   disposition, which stays out of the turns of the others. */
static void swap_handler(int p, int begins)
{
	static struct sigaction own[PEERS];
	static const struct sigaction none;

	sigaction(SIGCHLD, begins ? &own[p] : &none, begins ? NULL : &own[p]);
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
static void take_turns(const struct job *job, int threads, long long share)
{
	long long least;

	for (int round = 0; (least = least_spent()) < share; round++) {
		for (int i = 0; i < PEERS; i++) {
			int p = (round + i) % PEERS;
			struct play *play = &table->plays[p];

			if (!play->live || play->spent > least + TURN)
				continue;
			swap_handler(p, 1);
			if (threads)
				take_threads_turn(peers[p], job, threads, play);
			else
				take_turn(peers[p], *job, play);
			swap_handler(p, 0);
		}
	}
}

static int take_script_turn(struct script *s, size_t n, struct play *play)
{
	double times[BATCH], blocked[BATCH];
	long long begin = now();
	int error = script_run(s, n, times, blocked);

	if (!error)
		end_turn(play, times, blocked, n, n, now() - begin);
	return error;
}

/* One that is a process plays alone: in turns, too, the length of which it learns. */
static void play_script(const struct peer *peer, const struct job *job, int mb,
                        struct play *play, long long share)
{
	struct script *s = script_begin(peer, job, mb);
	double time, blocked;
	int error = s ? script_run(s, 1, &time, &blocked) : errno;

	while (!error && play->spent < share && play->turns < TURNS) {
		size_t n = time > 0 ? (size_t)(TURN / time) : 1;

		error = take_script_turn(s, n < 1 ? 1 : n > BATCH ? BATCH : n, play);
		if (!error)
			time = play->median[play->turns - 1];
	}
	if (error)
		fail(play, error);
	if (s)
		script_end(s);
}

/* ---- the process of a case ---- */

static int plays(int c, int p)
{
	return set.peers[p] && !absent(p) && !unfit(c, p);
}

static int is_apart(int p)
{
	return peers[p]->script || peers[p]->at_most & APART;
}

/* How many play that are no processes of their own. */
static int begin_pass(int c)
{
	int players = 0;

	memset(table->plays, 0, sizeof table->plays);
	for (int p = 0; p < PEERS; p++) {
		table->plays[p].live = plays(c, p) && !is_apart(p);
		players += table->plays[p].live;
	}
	return players;
}

/* Before any peer has played: what threads one has then is not there in a fork. */
static void count_case(int c, const struct job *job)
{
	if (!set.counts || cases[c].threads || cases[c].resident)
		return;
	for (int p = 0; p < PEERS; p++)
		if (plays(c, p) && peers[p]->run)
			count_start(peers[p], job, &table->counted[p]);
}

/* To fill the memory of each takes long: that is done once. */
static void play_scripts(int c, const struct job *job, int pass)
{
	const int mb = cases[c].resident;

	for (int p = 0; p < PEERS; p++)
		if (plays(c, p) && is_apart(p) && (pass == 0 || !mb))
			play_script(peers[p], job, mb, &table->plays[p],
			            set.slice * 1000000LL / 16);
}

static void play_pass(int c, const struct job *job, int pass)
{
	const int mb = cases[c].resident, players = begin_pass(c);
	char *memory = mb ? fill_memory(mb, table->note) : NULL;

	if (players)
		take_turns(job, cases[c].threads, set.slice * 1000000LL / players);
	if (mb)
		empty_memory(memory, mb);
	play_scripts(c, job, pass);
}

/* Stops when it is ready and after each pass. */
static _Noreturn void play_case(int c)
{
	const struct job *job;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	job = enter_case(c, table->note);
	if (table->pass == 0)
		count_case(c, job);
	for (;;) {
		raise(SIGSTOP);
		play_pass(c, job, table->pass);
	}
}

/* ---- the driver's side ---- */

/* 0: it is dead. */
static int stops(pid_t pid)
{
	int status;

	return waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
}

static void begin_case(int c)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		play_case(c);
	table->pid = pid;
	table->alive = pid > 0 && stops(pid);
	memcpy(counted[c], table->counted, sizeof counted[c]);
}

static struct cell cell_of(struct play *play)
{
	struct cell cell = {.error = play->error, .starts = play->starts};

	cell.median = tenths(5, play->median, play->turns);
	cell.calm = tenths(1, play->best, play->turns);
	cell.best = tenths(0, play->best, play->turns);
	cell.blocked = tenths(1, play->blocked, play->turns);
	return cell;
}

static void keep(int c, int pass)
{
	memcpy(notes[c], table->note, NOTE);
	for (int p = 0; p < PEERS; p++)
		cells[c][p][pass] = cell_of(&table->plays[p]);
}

static struct table *table_of(int c)
{
	if (!tables[c])
		tables[c] = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE,
		                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return tables[c] == MAP_FAILED ? NULL : tables[c];
}

int run_case(int c, int pass)
{
	table = table_of(c);
	if (!table)
		return 0;
	table->pass = pass;
	if (!table->alive)
		begin_case(c);
	if (table->alive) {
		kill(table->pid, SIGCONT);
		table->alive = stops(table->pid);
	}
	if (!table->alive)
		fprintf(stderr, "bench: case %s broke off in pass %d\n", cases[c].name, pass);
	keep(c, pass);
	return !plays(c, WEAN) || (cells[c][WEAN][pass].starts && !cells[c][WEAN][pass].error);
}

void end_cases(void)
{
	for (int c = 0; c < CASES; c++)
		if (tables[c] && tables[c]->alive) {
			kill(tables[c]->pid, SIGKILL);
			waitpid(tables[c]->pid, NULL, 0);
		}
}
