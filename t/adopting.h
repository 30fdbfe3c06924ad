/* adopting.h - for the tests of processes that the library did not start. */
#ifndef ADOPTING_H
#define ADOPTING_H

#include "waiting.h"

/* One that lives until its end of the pipe sees EOF, then leaves with this value. */
struct own {
	pid_t pid;
	int hold;
};

static inline void fork_own(struct own *own, int value, int leads)
{
	int ends[2], error = errno;
	char byte;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_ge(own->pid = fork(), 0);
	if (own->pid == 0) {
		if (leads)
			setpgid(0, 0);
		close(ends[1]);
		while (read(ends[0], &byte, 1) > 0)
			;
		_exit(value);
	}
	if (leads)
		setpgid(own->pid, own->pid);
	close(ends[0]);
	own->hold = ends[1];
	errno = error;
}

static inline void end_own(struct own *own)
{
	close(own->hold);
	own->hold = -1;
}

static inline void adopt(struct wean_child *child, pid_t pid, unsigned long long flags)
{
	struct baseline b;

	memset(child, 0xa5, sizeof *child);
	baseline_take(&b);
	int error = wean_adopt(child, pid, flags);
	ck_assert_msg(!error, "adopt %d: %s", (int)pid, strerror(error));
	ck_assert_int_eq(errno, b.error);
	free(b.fds);
	ck_assert_int_eq(child->pid, pid);
	ck_assert_int_eq(child->in, -1);
	ck_assert_int_eq(child->out, -1);
	ck_assert_int_eq(child->err, -1);
	ck_assert_int_eq(child->stage, WEAN_STAGE_NONE);
	ck_assert_int_eq(child->index, -1);
	ck_assert_int_eq(child->method, 0);
}

#endif
