/* bench.h - what the parts of the driver share, and what it asks of a peer. */
#ifndef BENCH_H
#define BENCH_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- peers: ways to start a program ------------------------------------ */

/* One start: the program says a byte on the pipe, if there is one, and ends. */
struct job {
	char *const *argv;   /* argv[0] is a path */
	const char *command; /* the same for a shell */
	int pipe;            /* its stdout comes to us and is read to the end */
};

struct peer {
	const char *name, *what;
	const char *(*absent)(void);    /* why it can't run here, or NULL */
	int (*run)(const struct job *); /* start, read, reap; 0 or an errno */
};

extern const struct peer peer_floor, peer_wean, peer_closefrom, peer_posix_spawn,
	peer_fork, peer_close_loop, peer_popen, peer_shell, peer_plain, peer_popenv,
	peer_glib, peer_uv;

const char *never_absent(void);

/* Reads what the program said and closes fd; EPROTO if it was not its one byte. */
int drain(int fd);

/* Waits for pid; EPROTO unless it exited with 0. */
int reap(pid_t pid);

/* ---- the driver -------------------------------------------------------- */

enum { FLOOR, WEAN, CLOSEFROM, POSIX_SPAWN, FORK, CLOSE_LOOP, POPEN, SHELL, PLAIN, POPENV,
       GLIB, LIBUV, PEERS };
enum { FEW, OPEN1000, OPEN19000, PIPE, PIPE19000, BIG, CASES };
enum { PASSES = 7 /* at most */, NOTE = 64 };

/* In what state the starting process is. */
struct kase {
	const char *name, *what;
	int open, pipe, resident; /* descriptors; yes or no; MB */
};

/* What one pass found about a peer in a case; ns. */
struct cell {
	int error;
	size_t starts;
	double best;   /* of all starts */
	double calm;   /* a tenth of the turns' bests are below: steady under load */
	double median; /* of the turns' medians */
};

extern const struct peer *const peers[PEERS];
extern const struct kase cases[CASES];
extern struct cell cells[CASES][PEERS][PASSES];
extern char notes[CASES][NOTE]; /* what of a case this machine can't do, or "" */

extern struct settings {
	int passes, slice; /* slice: ms a case and pass */
	int cases[CASES], peers[PEERS]; /* wanted */
	int to;            /* the peer that all are compared with, besides the floor */
	char program[PATH_MAX];
} set;

/* Sorts, and gives the value that so many tenths of the others are below; 0 of none. */
double tenths(size_t below, double *values, size_t n);

/* The most descriptors there can be; raises the limit so far. */
int limit_of_descriptors(void);

/* Runs a case for a pass, in the order of passes, and fills its cells; 0: it broke
   off, or a peer failed. */
int run_case(int c, int pass);
void end_cases(void);

void print_case(int c);
void print_bounds(void);
int write_csv(const char *path);

#endif
