/* The child's descriptors: the steps from the parent's table to its own. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>

#include "child_steps.h"
#include "closer.h"

static int
relaunch(struct child *c, enum table table)
{
	c->report->table = (int)table;
	return ECANCELED;
}

/* The init of a new PID namespace takes it along when it ends: after its failure there
   is no relaunch. */
static int
is_only_chance(const struct plan *p)
{
	return p->nfetches > 0 && wean_sys_getpid() == 1;
}

/* The first thing of all: until then the table is the parent's, and nothing may be
   placed, opened or closed in it. */
int
wean_child_own_table(struct child *c)
{
	const struct plan *p = c->plan;
	unsigned cut = p->cut;
	int r;

	c->top = p->top;
	if (p->table == TABLE_COPIED)
		return 0;
	if (is_only_chance(p)) {
		c->uncut = 1;
		cut = c->top = ~0U;
	}
	r = wean_sys_close_range(cut, ~0U, SYS_UNSHARE);
	if (r == 0) {
		c->report->closed = CLOSE_UNSHARE;
		return 0;
	}
	c->top = ~0U;
	r = wean_sys_unshare_files();
	return r < 0 && wean_sys_not_here(-r) ? relaunch(c, TABLE_COPIED) : positive(r);
}

static char *
put_text(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	*at = '\0';
	return at;
}

static char *
put_number(char *at, int n)
{
	char digits[12], *d = digits + sizeof digits;

	*--d = '\0';
	do
		*--d = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	return put_text(at, d);
}

static int
open_again(const struct plan *p, const struct fetch *f)
{
	char path[80], *at = path;

	at = put_number(put_text(at, "/proc/"), p->pid);
	at = put_number(put_text(at, "/task/"), p->tid);
	put_number(put_text(at, "/fd/"), f->number);
	return wean_sys_open(path, f->oflag | O_CLOEXEC | O_NOCTTY, 0);
}

static int
move_to(int from, int to)
{
	int r;

	if (from == to)
		return 0;
	r = wean_sys_dup_onto(from, to);
	wean_sys_close(from);
	return positive(r);
}

static int
is_file(int fd, const struct sys_file *wanted)
{
	struct sys_file file;

	return wean_sys_file(fd, &file) == 0 && file.device == wanted->device
	    && file.inode == wanted->inode;
}

/* Whichever way it came, it is used only if it is the file that the parent saw: where
   process numbers mean another process, both ways give a stranger's. */
static int
fetch_one(struct child *c, const struct fetch *f)
{
	const struct plan *p = c->plan;
	int fd;

	c->report->index = f->index;
	if (c->uncut)
		return positive(wean_sys_dup_onto(f->number, f->land));
	fd = f->oflag >= 0 ? open_again(p, f) : wean_sys_pidfd_getfd(p->parent, f->number);
	if (fd < 0 || !is_file(fd, &f->file) || move_to(fd, f->land) != 0)
		return relaunch(c, TABLE_CUT_HIGH);
	return 0;
}

/* A handle on the very thread whose table is meant. */
static int
open_parent(struct child *c)
{
	const struct plan *p = c->plan;
	int fd;

	if (wean_sys_getppid() != p->pid)
		return relaunch(c, TABLE_CUT_HIGH);
	fd = wean_sys_pidfd_open(p->tid, p->tid != p->pid);
	if (fd < 0 || move_to(fd, p->parent) != 0)
		return relaunch(c, TABLE_CUT_HIGH);
	return 0;
}

int
wean_child_fetch_high(struct child *c)
{
	const struct plan *p = c->plan;
	int opened = 0, error = 0;

	for (size_t i = 0; i < p->nfetches && !error; i++) {
		if (p->fetches[i].oflag < 0 && !opened && !c->uncut) {
			opened = 1;
			error = open_parent(c);
		}
		if (!error)
			error = fetch_one(c, &p->fetches[i]);
	}
	return error;
}

/* The inherited ones of 0, 1, 2 that are closed or close-on-exec.  The pidfd of this
   launch, close-on-exec, may be what lies there. */
static void
find_lost(struct child *c)
{
	for (int fd = 0; fd <= 2; fd++)
		if ((c->plan->inherited & 1 << fd) && wean_sys_close_on_exec(fd) != 0)
			c->lost |= 1 << fd;
}

static int
make_move(const struct fd_move *m)
{
	return m->from == m->to ? wean_sys_set_close_on_exec(m->to, 0)
	                        : wean_sys_dup_onto(m->from, m->to);
}

int
wean_child_place(struct child *c)
{
	const struct plan *p = c->plan;
	int r = 0;

	find_lost(c);
	for (size_t i = 0; i < p->nmoves && r >= 0; i++) {
		c->report->index = p->moves[i].index;
		r = make_move(&p->moves[i]);
	}
	if (r == -EBADF && p->table == TABLE_CUT_LOW)
		return relaunch(c, TABLE_CUT_HIGH); /* kept above a lowered limit */
	for (int fd = 0; fd <= 2; fd++)
		if (c->lost & 1 << fd)
			wean_sys_close(fd);
	if (r >= 0 && p->wake >= 0)
		r = wean_sys_set_close_on_exec(p->wake_there, 1);
	return positive(r);
}

int
wean_child_close_others(struct child *c)
{
	const struct plan *p = c->plan;
	int rung = CLOSE_NONE, error;

	for (size_t i = 0; i < p->shut.n; i++)
		wean_sys_close(p->shut.number[i]);
	if (has(c, WEAN_INHERIT_ALL))
		return 0;
	error = wean_close_others(0, c->top - 1, &p->keep, c->birth->buf, c->birth->buf_size,
	                          &rung);
	if (c->report->closed == CLOSE_NONE)
		c->report->closed = rung;
	return error;
}

static int
open_onto(int target, const char *path, int oflag, unsigned mode)
{
	int fd = wean_sys_open(path, oflag, mode);

	return fd < 0 ? -fd : move_to(fd, target);
}

static int
open_entry(struct child *c, const struct slot *s)
{
	const struct wean_fd *e = c->plan->opt->fds + s->index;

	c->report->index = s->index;
	if (s->kind == WEAN_NULL)
		return open_onto(s->target, "/dev/null", O_RDWR, 0);
	return open_onto(s->target, e->path, (e->oflag & ~O_CLOEXEC) | O_NOCTTY,
	                 e->mode ? e->mode : 0666);
}

int
wean_child_open_files(struct child *c)
{
	const struct plan *p = c->plan;
	int error = 0;

	for (int fd = 0; fd <= 2 && !error; fd++) {
		if (!(c->lost & 1 << fd) || has(c, WEAN_STDIO_AS_IS))
			continue;
		c->report->index = (int)p->opt->nfds + fd;
		error = open_onto(fd, "/dev/null", O_RDWR, 0);
	}
	for (size_t i = 0; i < p->nopens && !error; i++)
		error = open_entry(c, p->opens[i]);
	return error;
}

int
wean_child_copy_same(struct child *c)
{
	const struct plan *p = c->plan;

	int r = 0;

	for (size_t i = 0; i < p->nsames && r >= 0; i++) {
		c->report->index = p->sames[i]->index;
		r = wean_sys_dup_onto(p->sames[i]->source, p->sames[i]->target);
	}
	return positive(r);
}
