/* report.h - what t/kid sees from inside, and how a test reads it.
 *
 * `kid report` writes lines "key value...", the last of them "end":
 *
 *   listing proc | scan          how it found its descriptors: /proc/self/fd, or
 *                                F_GETFD on 0 to 8191 where that can't be read
 *   fd N ACCESS FDFLAGS FLFLAGS DEV INO RDEV TYPE LINK
 *                                one each, ascending; see struct report_fd
 *   argc N, arg I LENGTH TEXT    envc N, env I LENGTH TEXT
 *   cwd TEXT ("?": none)         cgroup TEXT ("?": not known)
 *   umask 0OCTAL  pid  ppid  pgid  sid  tpgid (-1: no terminal)  nice
 *   uid R E S     gid R E S      groups N ID...
 *   sigblk 0xHEX  sigpnd  sigign  sigcgt          bit n-1 is signal n
 *   limit RESOURCE SOFT HARD     18446744073709551615: unlimited
 *   nonewprivs  pdeathsig  dumpable
 *
 * In TEXT and LINK the backslash and every byte that is not visible ASCII are
 * written \xHH, so that a line is a record and a blank a separator.  The functions
 * below give them back as they were.
 *
 * Everything returned belongs to the report and lives until report_free().
 */
#ifndef REPORT_H
#define REPORT_H

#include <stddef.h>

struct report;

struct report_fd {
	int number;
	int access;    /* 'r' read, 'w' write, 'b' both, 'p' O_PATH */
	int fd_flags;  /* of F_GETFD */
	int fl_flags;  /* of F_GETFL */
	unsigned long long dev, ino, rdev;
	int type;      /* 'f' file, 'd' directory, 'c' and 'b' device, 'p' pipe or FIFO,
	                  's' socket, 'l' link, 'a' anonymous */
	char *link;    /* as readlink(2) gives it, unescaped; "?": not known */
};

/* Reads fd to its end; fd stays the caller's.  NULL: a read failed, or what came
   is not one whole report (the child died on the way).  Leaves errno alone. */
struct report *report_read(int fd);
struct report *report_read_file(const char *path);
void report_free(struct report *);

/* What follows the key: report_value(r, "cwd"), (r, "limit 7"), (r, "uid").
   NULL: there is no such line. */
const char *report_value(const struct report *, const char *key);

/* The first number after the key, in the base it is written in; a key that is
   missing or no number ends the program with a message. */
unsigned long long report_mask(const struct report *, const char *key);
long report_number(const struct report *, const char *key);
void report_limit(const struct report *, int resource, unsigned long long *soft,
                  unsigned long long *hard);

/* All descriptors, ascending: how many there are, of which the first `room` are
   written to numbers (NULL with room 0 is fine); as a text "0 1 2 63", for
   ck_assert_str_eq; one of them, NULL when it is not open. */
size_t report_fds(const struct report *, int *numbers, size_t room);
const char *report_fd_list(const struct report *);
const struct report_fd *report_fd(const struct report *, int number);

/* Argument or environment entry i, unescaped and terminated; length may be NULL.
   NULL: past the last one. */
const char *report_arg(const struct report *, size_t i, size_t *length);
const char *report_env(const struct report *, size_t i, size_t *length);
const char *report_getenv(const struct report *, const char *name);

/* For kid itself.  Writes all of the above to where: a descriptor's number, a path
   of a file that exists, or NULL for 1.  0 or an errno. */
int report_write(const char *where, char **args, const char *listing,
                 const int *fds, size_t nfds);

/* Byte i of what `kid write` writes and `kid read` compares with. */
static inline unsigned char kid_pattern(unsigned long long i)
{
	return (unsigned char)((i ^ i >> 8 ^ i >> 16 ^ i >> 24) & 0xff);
}

#endif
