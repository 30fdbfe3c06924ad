/* count.c - counts system calls with ptrace(2); see count.h. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "count.h"

/* Marks: a call that fails at once, with a first argument nobody else gives. */
enum { MARK_BEGIN = 0x7765616e, MARK_END };

void count_begin(void)
{
	syscall(SYS_getpriority, MARK_BEGIN, 0);
}

void count_end(void)
{
	syscall(SYS_getpriority, MARK_END, 0);
}

/* ---- registers ---------------------------------------------------------- */

struct regs {
	long nr, result;
	unsigned long args[6];
};

#if defined __x86_64__
#define GET_REGS(pid, u) ptrace(PTRACE_GETREGS, pid, NULL, u)
#define REGS(u) { (long)(u).orig_rax, (long)(u).rax, \
	{ (u).rdi, (u).rsi, (u).rdx, (u).r10, (u).r8, (u).r9 } }

#elif defined __i386__
#define GET_REGS(pid, u) ptrace(PTRACE_GETREGS, pid, NULL, u)
#define U(x) (unsigned long)(x)
#define REGS(u) { (u).orig_eax, (u).eax, { U((u).ebx), U((u).ecx), U((u).edx), \
	U((u).esi), U((u).edi), U((u).ebp) } }

#elif defined __aarch64__
#define GET_REGS(pid, u) ptrace(PTRACE_GETREGSET, pid, \
	(void *)(uintptr_t)NT_PRSTATUS, &(struct iovec){ u, sizeof *(u) })
#define REGS(u) { (long)(u).regs[8], (long)(u).regs[0], { (u).regs[0], \
	(u).regs[1], (u).regs[2], (u).regs[3], (u).regs[4], (u).regs[5] } }

#else
#define GET_REGS(pid, u) ((void)(pid), memset(u, 0, sizeof *(u)), errno = ENOTSUP)
#define REGS(u) { 0, 0, { 0 } }
#endif

static int read_regs(pid_t pid, struct regs *r)
{
	struct user_regs_struct u;

	if (GET_REGS(pid, &u))
		return errno;
	*r = (struct regs)REGS(u);
	return 0;
}

/* ---- the tracer --------------------------------------------------------- */

struct task {
	pid_t pid;
	int who;        /* COUNT_PARENT, COUNT_CHILD or one of these: */
	int inside;     /* between the entry of a call and its exit */
	size_t call;    /* its record then; NONE */
};

enum {
	OUTSIDE = 0,    /* a process made outside of the marks */
	HELD = -1       /* it stopped before its birth was told: does not run yet */
};

#define NONE ((size_t)-1)

struct tracer {
	struct count *out;
	struct task *tasks;
	size_t n, room;
	pid_t main;
	int active, begun, ended;
	int status;     /* of the main process, once it is over */
	int error;      /* the first that spoils the numbers */
};

/* error: an errno, or -1 when the words say it all. */
static void spoil(struct tracer *t, int error, const char *what)
{
	if (t->error)
		return;
	t->error = error;
	fprintf(stderr, "count: %s%s%s\n", what, error > 0 ? ": " : "",
	        error > 0 ? strerror(error) : "");
}

static void *grown(void *array, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return array;
	*room = *room ? 2 * *room : 64;
	array = realloc(array, *room * size);
	if (!array)
		abort();
	return array;
}

static void add_task(struct tracer *t, pid_t pid, int who)
{
	t->tasks = grown(t->tasks, t->n, &t->room, sizeof *t->tasks);
	t->tasks[t->n++] = (struct task){ pid, who, 0, NONE };
}

static struct task *find_task(struct tracer *t, pid_t pid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->tasks[i].pid == pid)
			return &t->tasks[i];
	return NULL;
}

static void forget(struct tracer *t, struct task *task)
{
	*task = t->tasks[--t->n];
}

static size_t record(struct count *c, const struct task *task, const struct regs *r)
{
	struct count_call *call;

	c->calls = grown(c->calls, c->n, &c->room, sizeof *c->calls);
	call = &c->calls[c->n];
	call->who = task->who;
	call->pid = task->pid;
	call->nr = r->nr;
	call->result = COUNT_NO_RESULT;
	memcpy(call->args, r->args, sizeof call->args);
	return c->n++;
}

static int is_mark(struct tracer *t, const struct regs *r)
{
	if (r->nr != SYS_getpriority)
		return 0;
	if (r->args[0] != MARK_BEGIN && r->args[0] != MARK_END)
		return 0;
	int begins = r->args[0] == MARK_BEGIN;
	if (t->active == begins)
		spoil(t, -1, "marks that do not pair");
	t->active = begins;
	*(begins ? &t->begun : &t->ended) += 1;
	return 1;
}

static int is_counted(const struct tracer *t, const struct task *task)
{
	return task->who == COUNT_CHILD || (task->who == COUNT_PARENT && t->active);
}

static void at_entry(struct tracer *t, struct task *task, const struct regs *r)
{
	int mark = task->who == COUNT_PARENT && is_mark(t, r);

	if (!mark && is_counted(t, task))
		task->call = record(t->out, task, r);
}

static void at_return(struct tracer *t, struct task *task, const struct regs *r)
{
	if (task->call != NONE)
		t->out->calls[task->call].result = r->result;
	task->call = NONE;
}

static void at_syscall(struct tracer *t, struct task *task)
{
	struct regs r;
	int error = read_regs(task->pid, &r);

	if (error == ESRCH)
		return; /* killed meanwhile: its end comes next */
	if (error) {
		spoil(t, error, "registers");
		return;
	}
	if (task->inside)
		at_return(t, task, &r);
	else
		at_entry(t, task, &r);
	task->inside = !task->inside;
}

/* The program that a child executes is none of ours: it runs on untraced. */
static void at_exec(struct tracer *t, struct task *task)
{
	if (task->call != NONE) {
		t->out->calls[task->call].result = 0;
		t->out->executed++;
	}
	ptrace(PTRACE_DETACH, task->pid, NULL, NULL);
	forget(t, task);
}

static void go_on(pid_t pid, int sig)
{
	ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(uintptr_t)sig);
}

static int is_thread(const struct tracer *t, unsigned long pid)
{
	char name[64];

	snprintf(name, sizeof name, "/proc/%d/task/%lu", (int)t->main, pid);
	return !access(name, F_OK);
}

/* Who a child is depends on the marks at its birth, and its maker stands still
   just here; the child itself may be seen earlier or much later. */
static void at_birth(struct tracer *t, const struct task *maker)
{
	unsigned long pid = 0;
	int who = is_counted(t, maker) ? COUNT_CHILD : OUTSIDE;

	if (ptrace(PTRACE_GETEVENTMSG, maker->pid, NULL, &pid))
		return;
	if (is_thread(t, pid))
		who = COUNT_PARENT;
	t->out->children += who == COUNT_CHILD;
	struct task *child = find_task(t, (pid_t)pid);
	if (!child) {
		add_task(t, (pid_t)pid, who);
		return;
	}
	child->who = who;
	go_on(child->pid, 0);
}

static void at_event(struct tracer *t, struct task *task, int event, int sig)
{
	pid_t pid = task->pid;

	if (event == PTRACE_EVENT_EXEC && task->who != COUNT_PARENT) {
		at_exec(t, task);
		return;
	}
	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) {
		ptrace(PTRACE_LISTEN, pid, NULL, NULL); /* until SIGCONT */
		return;
	}
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
	    event == PTRACE_EVENT_CLONE)
		at_birth(t, task);
	go_on(pid, 0);
}

static void at_stop(struct tracer *t, struct task *task, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (sig == (SIGTRAP | 0x80)) {
		at_syscall(t, task);
		go_on(task->pid, 0);
	} else if (event) {
		at_event(t, task, event, sig);
	} else {
		go_on(task->pid, sig);
	}
}

static void at_end(struct tracer *t, struct task *task, int status)
{
	if (task->pid == t->main)
		t->status = status;
	forget(t, task);
}

static pid_t next_report(int *status)
{
	pid_t pid;

	do
		pid = waitpid(-1, status, __WALL);
	while (pid < 0 && errno == EINTR);
	return pid;
}

static void trace(struct tracer *t)
{
	while (t->n) {
		int status;
		pid_t pid = next_report(&status);
		struct task *task = find_task(t, pid);
		if (pid < 0) {
			spoil(t, errno, "waitpid");
			return;
		}
		if (task && WIFSTOPPED(status))
			at_stop(t, task, status);
		else if (task)
			at_end(t, task, status);
		else if (WIFSTOPPED(status))
			add_task(t, pid, HELD);
		else
			spoil(t, -1, "another child of the caller ended meanwhile");
	}
}

/* ---- start and verdict -------------------------------------------------- */

/* Waits until it is traced, that is until the pipe's other end is closed. */
static void run_tracee(const int gate[2], int (*workload)(void *), void *arg)
{
	char c;

	close(gate[1]);
	while (read(gate[0], &c, 1) < 0 && errno == EINTR)
		;
	close(gate[0]);
	_exit(workload(arg) ? 1 : 0);
}

static int seize(pid_t pid)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
	                     PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
	                     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int error;

	if (!ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) &&
	    !ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
		return 0;
	error = errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return error;
}

static int start(struct tracer *t, int (*workload)(void *), void *arg)
{
	int gate[2], error;

	fflush(NULL);
	if (pipe(gate))
		return errno;
	t->main = fork();
	if (!t->main)
		run_tracee(gate, workload, arg);
	error = t->main < 0 ? errno : seize(t->main);
	close(gate[0]);
	close(gate[1]);
	return error;
}

static void judge(struct tracer *t)
{
	if (WIFSIGNALED(t->status))
		spoil(t, -1, "the workload was killed");
	else if (WEXITSTATUS(t->status))
		spoil(t, -1, "the workload failed");
	if (!t->begun)
		spoil(t, -1, "no mark of the begin was seen");
	if (t->begun != t->ended)
		spoil(t, -1, "no mark of the end was seen");
	if (!t->out->n)
		spoil(t, -1, "not one system call between the marks");
}

int count_calls(struct count *out, int (*workload)(void *), void *arg)
{
	struct tracer t = { .out = out };
	struct regs r;
	int error;

	memset(out, 0, sizeof *out);
	error = read_regs(0, &r) == ENOTSUP ? ENOTSUP : start(&t, workload, arg);
	if (error) {
		spoil(&t, error, "can't trace");
		return error;
	}
	add_task(&t, t.main, COUNT_PARENT);
	trace(&t);
	free(t.tasks);
	judge(&t);
	return t.error;
}

void count_free(struct count *c)
{
	free(c->calls);
	memset(c, 0, sizeof *c);
}

/* ---- asking ------------------------------------------------------------- */

static int is_from(const struct count_call *call, int who, long nr)
{
	return (call->who & who) && (nr < 0 || call->nr == nr);
}

size_t count_of(const struct count *c, int who, long nr)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += (size_t)is_from(&c->calls[i], who, nr);
	return n;
}

size_t count_total(const struct count *c, int who)
{
	return count_of(c, who, -1);
}

size_t count_failed(const struct count *c, int who, long nr, int error)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		long result = c->calls[i].result;
		int matches = error ? result == -error : result < 0 && result >= -4095;
		n += is_from(&c->calls[i], who, nr) && matches;
	}
	return n;
}

#define N(name) { SYS_##name, #name }

static const struct {
	long nr;
	const char *name;
} names[] = {
	N(read), N(write), N(close), N(lseek), N(ioctl), N(fcntl), N(openat), N(dup),
	N(dup3), N(pipe2), N(ppoll), N(pselect6), N(getdents64), N(close_range),
	N(unshare), N(clone), N(clone3), N(execve), N(exit), N(exit_group), N(wait4),
	N(waitid), N(kill), N(tgkill), N(pidfd_open), N(pidfd_getfd),
	N(pidfd_send_signal), N(rt_sigaction), N(rt_sigprocmask), N(rt_sigreturn),
	N(rt_sigtimedwait), N(rt_sigpending), N(getpid), N(getppid), N(gettid),
	N(setpgid), N(getsid), N(setsid), N(setuid), N(setgid), N(setresuid),
	N(setresgid), N(setgroups), N(umask), N(chdir), N(fchdir), N(prlimit64),
	N(setpriority), N(getpriority), N(prctl), N(uname), N(mmap), N(munmap),
	N(mprotect), N(brk), N(madvise), N(futex), N(statx), N(readlinkat),
	N(nanosleep), N(readv), N(writev),
#ifdef SYS_fork /* and what else the oldest machines alone have */
	N(fork), N(vfork), N(open), N(access), N(dup2), N(pipe), N(poll), N(readlink),
#endif
#ifdef SYS_fcntl64
	N(fcntl64), N(_llseek), N(mmap2), N(setresuid32), N(setresgid32),
	N(setgroups32),
#endif
#ifdef SYS_newfstatat
	N(fstat), N(newfstatat),
#endif
};

const char *count_name(long nr)
{
	static char number[32];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].nr == nr)
			return names[i].name;
	snprintf(number, sizeof number, "%ld", nr);
	return number;
}

const char *count_names(const struct count *c, int who, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < c->n; i++) {
		if (!(c->calls[i].who & who))
			continue;
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? " " : "",
		                        count_name(c->calls[i].nr));
		if (len >= size) {
			memcpy(text + size - 4, "...", 4);
			break;
		}
	}
	return text;
}

void count_dump(const struct count *c, FILE *f)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct count_call *call = &c->calls[i];
		fprintf(f, "%s %d %s(", call->who == COUNT_CHILD ? "child" : "parent",
		        (int)call->pid, count_name(call->nr));
		for (int k = 0; k < 6; k++)
			fprintf(f, "%s%#lx", k ? ", " : "", call->args[k]);
		if (call->result == COUNT_NO_RESULT)
			fputs(")\n", f);
		else
			fprintf(f, ") = %ld\n", call->result);
	}
}
