/* pty.h - for the tests of terminals: a fresh one, and a caller whose own it is. */
#ifndef PTY_H
#define PTY_H

#include <sys/ioctl.h>
#include <termios.h>

#include "attributes.h"

struct pty {
	int master, slave;
};

static inline struct pty pty_open(void)
{
	struct pty p = { posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), -1 };

	ck_assert_int_ge(p.master, 0);
	ck_assert_int_eq(grantpt(p.master) | unlockpt(p.master), 0);
	ck_assert_int_ge(p.slave = open(ptsname(p.master), O_RDWR | O_NOCTTY | O_CLOEXEC),
	                 0);
	return p;
}

static inline void pty_close(struct pty *p)
{
	close(p->master);
	close(p->slave);
}

/* SIGTTOU, which a caller in the background would get for it, is blocked. */
static inline void set_foreground(int tty, pid_t group)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &old);
	ck_assert_int_eq(tcsetpgrp(tty, group), 0);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static inline void lead_session(const struct pty *p)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ck_assert_int_eq(setsid(), getpid());
	ck_assert_int_eq(ioctl(p->slave, TIOCSCTTY, 0), 0);
}

/* Calls act() in a process that leads a session on a fresh terminal: the test itself
   leads a group and can't.  What fails there fails the test. */
static inline void in_session(void (*act)(const struct pty *))
{
	struct pty p = pty_open();
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		lead_session(&p);
		act(&p);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status))
		_exit(WEXITSTATUS(status)); /* Check has its message already */
	pty_close(&p);
}

#endif
