/* high.h - for the tests of sources with high numbers: a caller with many descriptors,
   and which way a start went. */
#ifndef HIGH_H
#define HIGH_H

#include "descriptors.h"
#include "spawning.h"

#include <sched.h>

#include "count.h"

enum { MANY = 19000 };

/* All below n are open. */
static inline void fill_below(struct filling *f, int n)
{
	int lowest = dup(0);

	close(lowest);
	*f = (struct filling){ NULL, 0 };
	if (n > lowest)
		fill_descriptors(f, n - lowest);
}

/* ---- a start ------------------------------------------------------------- */

static inline int one_start(void *options)
{
	struct wean_child child;
	char *argv[] = { kid(), (char[]){ "exit" }, (char[]){ "0" }, NULL };

	count_begin();
	int error = wean_spawn(&child, argv, options);
	count_end();
	if (!error)
		error = wean_wait(&child, -1, NULL);
	wean_release(&child);
	return error;
}

static inline int main_is_gone(void)
{
	char path[64], line[256] = "", *end;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, line, sizeof line - 1);
	close(fd);
	return n > 0 && (end = strrchr(line, ')')) && end[2] == 'Z';
}

struct job {
	int (*act)(void *);
	void *arg;
	int result;
};

static inline void *do_job(void *arg)
{
	struct job *j = arg;

	j->result = j->act(j->arg);
	return NULL;
}

static inline int in_a_thread(int (*act)(void *), void *arg)
{
	struct job j = { act, arg, -1 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, do_job, &j) || pthread_join(thread, NULL))
		return -1;
	return j.result;
}

static inline int one_start_in_a_thread(void *options)
{
	return in_a_thread(one_start, options);
}

static inline int one_start_unshared(void *options)
{
	return unshare(CLONE_FILES) ? -1 : one_start(options);
}

/* In a table of the thread's own, where the leader has nothing of what is opened. */
static inline int one_start_in_a_table_of_its_own(void *options)
{
	return in_a_thread(one_start_unshared, options);
}

/* The child may take a descriptor from its parent: Yama may forbid it, and Linux before
   5.6 can't. */
static inline int may_fetch(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int parent = (int)syscall(SYS_pidfd_open, getppid(), 0);
		_exit(syscall(SYS_pidfd_getfd, parent, 2, 0) < 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return !status;
}

/* What the children of one start did: paths of /proc opened anew, handles on the parent,
   descriptors fetched by them, and where the last one cut the table. */
struct trip {
	int children;
	size_t opens, opened, handles, fetches, fetched;
	unsigned long cut; /* 0: nowhere */
};

static inline void read_trip(struct trip *t, const struct count *c)
{
	*t = (struct trip){
		.children = c->children,
		.opens = count_of(c, COUNT_CHILD, SYS_openat),
		.handles = count_of(c, COUNT_CHILD, SYS_pidfd_open),
		.fetches = count_of(c, COUNT_CHILD, SYS_pidfd_getfd),
	};
	t->opened = t->opens - count_failed(c, COUNT_CHILD, SYS_openat, 0);
	t->fetched = t->fetches - count_failed(c, COUNT_CHILD, SYS_pidfd_getfd, 0);
	for (size_t i = 0; i < c->n; i++)
		if (c->calls[i].who == COUNT_CHILD && c->calls[i].nr == SYS_close_range &&
		    !c->calls[i].result && c->calls[i].args[2] == 2 /* UNSHARE */)
			t->cut = c->calls[i].args[0];
}

/* 0: it can't be counted on this machine. */
static inline int take_trip(struct trip *t, int (*act)(void *), void *arg)
{
	struct count c;
	int error = count_calls(&c, act, arg);

	if (error > 0)
		return 0;
	if (getenv("WEAN_DUMP"))
		count_dump(&c, stderr);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(c.executed, 1);
	read_trip(t, &c);
	count_free(&c);
	return 1;
}

static inline void assert_trip(const struct trip *t, const struct trip *wanted)
{
	ck_assert_int_eq(t->children, wanted->children);
	ck_assert_uint_eq(t->opens, wanted->opens);
	ck_assert_uint_eq(t->opened, wanted->opened);
	ck_assert_uint_eq(t->handles, wanted->handles);
	ck_assert_uint_eq(t->fetches, wanted->fetches);
	ck_assert_uint_eq(t->fetched, wanted->fetched);
	ck_assert_uint_eq(t->cut, wanted->cut);
}

/* The members of the trip that is wanted. */
#define GOES(act, arg, ...) \
	do { \
		struct trip trip_; \
		if (!take_trip(&trip_, act, arg)) \
			SKIP("calls can't be counted here"); \
		assert_trip(&trip_, &(struct trip){ __VA_ARGS__ }); \
	} while (0)

/* In one go, by so many paths of /proc and fetched descriptors, with the table cut right
   above the highest. */
#define GOES_STRAIGHT(act, arg, n_opened, n_fetched, highest) \
	GOES(act, arg, .children = 1, .opens = (n_opened), .opened = (n_opened), \
	     .handles = (n_fetched) > 0, .fetches = (n_fetched), .fetched = (n_fetched), \
	     .cut = (highest) + 1)

/* ---- a start whose every descriptor is looked at -------------------------- */

/* Three files and three pipes, all far up; not too far for a kid that has to look at each
   number, where it has no listing. */
enum { FILES = 3000, PIPES = 1000, LAST_PIPE = PIPES + 5 };

static const struct wean_fd three_files[] = {
	DUP(7, FILES + 1), DUP(8, FILES), KEEP(FILES + 2),
};

#define THREE_FILES  .fds = three_files, .nfds = COUNT(three_files)
#define THREE_PIPES  .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE

struct asked {
	struct wean_options o;
	int (*before)(void);  /* in the caller, 0: done; may be NULL */
	char *path;           /* of the report; NULL: one is made */
	const int *gives;     /* an entry's file is this one of the caller, if not NULL */
};

static inline void open_three_files(void)
{
	for (int i = 0; i < 3; i++)
		open_at(FILES + i);
}

/* Exactly what was asked for, each the caller's own file. */
static inline int is_right(const struct asked *a, const struct report *r,
                           const struct wean_child *child)
{
	const struct wean_options *o = &a->o;
	size_t wrong = 0;

	for (size_t i = 0; i < o->nfds; i++) {
		const struct wean_fd *e = &o->fds[i];
		int source = e->kind == WEAN_KEEP ? e->target : e->source;

		wrong += !holds(r, e->target, a->gives ? a->gives[i] : source);
	}
	wrong += o->in == WEAN_PIPE && !holds(r, 0, child->in);
	wrong += o->out == WEAN_PIPE && !holds(r, 1, child->out);
	wrong += o->err == WEAN_PIPE && !holds(r, 2, child->err);
	if (wrong || report_fds(r, NULL, 0) != 3 + o->nfds)
		fprintf(stderr, "%zu wrong, of %s\n", wrong, report_fd_list(r));
	return !wrong && report_fds(r, NULL, 0) == 3 + o->nfds;
}

/* 0: the start went well and its child held what is right. */
static inline int right_start(void *arg)
{
	struct asked *a = arg;
	char *path = a->path ? a->path : report_path();
	char *argv[] = { kid(), (char[]){ "report" }, path, NULL };
	struct wean_status status = { 0 };
	struct wean_child child;
	struct filling f;

	if (a->before && a->before())
		return -1;
	fill_below(&f, PIPES);
	count_begin();
	int error = wean_spawn(&child, argv, &a->o);
	count_end();
	if (error)
		fprintf(stderr, "%s at %s, index %d\n", strerror(error),
		        wean_stage_name(child.stage), child.index);
	if (error || wean_wait(&child, -1, &status) || status.code != 0)
		return -1;
	struct report *r = report_read_file(path);
	int right = r && is_right(a, r, &child);
	report_free(r);
	wean_release(&child);
	release_descriptors(&f);
	if (!a->path)
		unlink(path);
	return right ? 0 : -1;
}

static inline int right_start_in_a_thread(void *asked)
{
	return in_a_thread(right_start, asked);
}

#endif
