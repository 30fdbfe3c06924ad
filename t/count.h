/* count.h - which system calls a piece of code makes, itself and in its children.
 *
 *   static int one_spawn(void *arg)
 *   {
 *           warm_up();                    // not counted
 *           count_begin();
 *           int error = the_call(arg);    // counted
 *           count_end();
 *           wait_for_the_child();         // not counted
 *           return error;                 // 0: all went well
 *   }
 *
 *   struct count c;
 *   ck_assert_int_eq(count_calls(&c, one_spawn, arg), 0);
 *   ck_assert_uint_eq(count_of(&c, COUNT_CHILD, SYS_close), 0);
 *   count_free(&c);
 *
 * The workload runs in a fork of the caller, traced with ptrace(2).  Counted are:
 *
 *   COUNT_PARENT  the calls of that process, all its threads, from count_begin()
 *                 to count_end(), which themselves do not count;
 *   COUNT_CHILD   the calls of every process that it (or such a process) made
 *                 in between, up to and including the execve(2) that succeeds,
 *                 or to its end.  There it is let go and runs on untraced.
 *
 * Only one thread may use the counter at a time, and the caller may have no other
 * child meanwhile: count_calls() waits for any.
 */
#ifndef COUNT_H
#define COUNT_H

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum { COUNT_PARENT = 1, COUNT_CHILD = 2, COUNT_BOTH = 3 };

/* The result of a call that never returned: exit, or a process that was killed. */
#define COUNT_NO_RESULT LONG_MIN

struct count_call {
	int who;               /* COUNT_PARENT or COUNT_CHILD */
	pid_t pid;             /* of the thread */
	long nr;               /* SYS_* */
	unsigned long args[6];
	long result;           /* as the kernel gives it: -errno on failure */
};

struct count {
	struct count_call *calls; /* in the order in which they were entered */
	size_t n, room;
	int children;          /* processes made between the marks */
	int executed;          /* of those, how many executed a program */
};

/* 0: the workload returned 0 and the numbers hold.  Otherwise a line on stderr
   says why not: no mark or an unpaired one, no system call between the marks,
   the workload failed or died, tracing is not permitted here.  The result is
   then an errno (ENOTSUP, EPERM: it can't be counted on this machine, which is
   a reason to skip), or -1.  *out is written in any case; count_free() it. */
int count_calls(struct count *out, int (*workload)(void *), void *arg);
void count_free(struct count *);

/* For the workload; the pair may be repeated, the counts then add up. */
void count_begin(void);
void count_end(void);

/* How many calls `nr` there were; how many in all; how many failed, with `error`
   or, when that is 0, with any errno. */
size_t count_of(const struct count *, int who, long nr);
size_t count_total(const struct count *, int who);
size_t count_failed(const struct count *, int who, long nr, int error);

/* Their names in order, "close_range fcntl execve", written into text, which it
   returns; "..." at the end says that size was too small. */
const char *count_names(const struct count *, int who, char *text, size_t size);
const char *count_name(long nr); /* a number where it is none of the usual ones;
                                    in a static buffer then */
/* One line a call: who, pid, name, arguments, result. */
void count_dump(const struct count *, FILE *);

#endif
