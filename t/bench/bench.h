/* bench.h - what the parts of the driver share, and what it asks of a peer. */
#ifndef BENCH_H
#define BENCH_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "times.h"

/* ---- peers: ways to start a program ------------------------------------ */

/* One start: the program says a byte on its stdout if that is a pipe, and ends. */
struct job {
	char *const *argv;    /* argv[0] is a path, or a name to be searched in PATH */
	const char *command;  /* the same for a shell */
	int pipes;            /* 1: its stdout comes to us and is read to the end;
	                         3: its stdin and stderr are pipes too, for nothing */
	long long started;    /* by the peer: when its start had returned, ns */
};

/* What a peer can at most; and that what is open, but for close-on-exec, goes on to the
   program: less than the job; and that it wants a process for itself, as a script has. */
enum { ONE_PIPE = 1, NO_PIPE = 2, ONE_THREAD = 4, LEAKS = 8, APART = 16 };

struct peer {
	const char *name, *what;
	const char *(*absent)(void); /* why it can't run here, or NULL */
	int (*run)(struct job *);    /* start, read, reap; 0 or an errno */
	int at_most;                 /* bits of these */
	/* A process of its own instead of run: interpreters' names, options, file. */
	const char *interpreters[3], *option, *script;
};

extern const struct peer peer_floor, peer_wean, peer_closefrom, peer_posix_spawn,
	peer_fork, peer_close_loop, peer_popen, peer_shell, peer_plain, peer_popenv,
	peer_system, peer_wean_system, peer_glib, peer_gsubprocess, peer_uv,
	peer_libpipeline, peer_python, peer_guile, peer_node, peer_ruby, peer_perl,
	peer_lua;

/* Why a peer can't run here, or not in this case; NULL: it can. */
const char *never_absent(void);
int peer_named(const char *name); /* PEERS: none is */
const char *absent(int p);
const char *unfit(int c, int p);

/* Closes our ends of the program's 0, 1 and 2, each -1 if it is no pipe, after reading what
   it said; EPROTO if that was not a byte on 1 and nothing on 2. */
int drain_ends(int in, int out, int err);

/* By a call that returns when the program is over, with the status of wait(2). */
int run_to_its_end(struct job *, int (*system_like)(const char *));

/* Waits for pid; EPROTO unless it exited with 0. */
int reap(pid_t pid);

/* A peer that is a process: several starts for one call, in the state of the calling
   process, with so many MB of its own.  NULL and errno: it does not start.
   script_run: the ns of n starts each, or their mean where it has no clock; and for how
   long their caller was blocked, 0: not known. */
struct script *script_begin(const struct peer *, const struct job *, int mb);
int script_run(struct script *, size_t n, double *ns, double *blocked);
void script_end(struct script *);
const char *script_absent(const struct peer *);
/* That process of one that is apart: ARGV is PEER PIPES MB PROGRAM... */
int serve(char **argv);

/* ---- the driver -------------------------------------------------------- */

enum { FLOOR, WEAN, CLOSEFROM, POSIX_SPAWN, FORK, CLOSE_LOOP, POPEN, SHELL, PLAIN, POPENV,
       SYSTEM, WEAN_SYSTEM, GLIB, GSUBPROCESS, LIBUV, LIBPIPELINE,
       PYTHON, GUILE, NODE, RUBY, PERL, LUA, PEERS };
enum { FEW, OPEN100, OPEN1000, OPEN5000, OPEN19000, OPEN1M,
       LIMIT256, LIMIT1024, LIMIT5000, LIMIT20000, LIMIT1M, LIMIT1G,
       MB512, GB2, GB8, PIPE, PIPES3, PIPE19000, PIPES3_19000, PIPE1M,
       THREAD1, THREADS2, THREADS4, THREADS8, ENV2000, PATH1, PATH50,
       PROFILE, PROFILE1000, CASES };
enum { PASSES = 9 /* at most */, NOTE = 64 };

/* When a case is measured, if it is not named. */
enum { ALWAYS, LONG /* not with --quick */, HIGH /* with --high */ };

/* In what state the starting process is. */
struct kase {
	const char *name, *what;
	int when;
	int open, limit;      /* descriptors, and the soft limit on them; 0: few, the hard one */
	int resident;         /* MB */
	int pipes;
	int threads;          /* that start at the same time; then times are the mean of all */
	int env, path;        /* entries of the environment, elements of PATH; 0: ten, no search */
	int profile;          /* clone3 and close_range are refused */
};

/* What one pass found about a peer in a case; ns. */
struct cell {
	int error;
	size_t starts;
	double best;    /* of all starts */
	double calm;    /* a tenth of the turns' bests are below: steady under load */
	double median;  /* of the turns' medians */
	double blocked; /* as calm, until the call that starts returned; 0: not known */
};

/* What one start takes, start to release. */
struct counts {
	int known;
	size_t parent, child; /* system calls; the child's to its exec */
	size_t allocations;
};

extern const struct peer *const peers[PEERS];
extern const struct kase cases[CASES];
extern struct cell cells[CASES][PEERS][PASSES];
extern struct counts counted[CASES][PEERS];
extern char notes[CASES][NOTE]; /* what of a case this machine can't do, or "" */

extern struct settings {
	int passes, slice; /* slice: ms a case and pass */
	int cases[CASES], peers[PEERS]; /* wanted */
	int to;            /* the peer that all are compared with, besides the floor */
	int counts;        /* counts are wanted */
	char program[PATH_MAX]; /* absolute */
} set;

/* The most descriptors there can be; raises the limit so far. */
int limit_of_descriptors(void);

/* Brings the calling process into the state of a case, but for its memory; what can't
   be done is told in a note.  The job that belongs to it. */
const struct job *enter_case(int c, char *note);
char *fill_memory(int mb, char *note); /* what is then to be given to empty_memory() */
void empty_memory(char *memory, int mb);

/* Counts one start of the peer. */
void count_start(const struct peer *, const struct job *, struct counts *);

/* Runs a case for a pass, in the order of passes, and fills its cells; 0: ours
   was not measured. */
int run_case(int c, int pass);
void end_cases(void);

void print_case(int c);
void print_bounds(void);
int write_csv(const char *path);

#endif
