/* demo.c - one program, started four ways by a process with many descriptors.

   The process opens three quarters of what its limit allows.  Each way then starts
   this program again: once traced, to count the calls that the child makes before the
   program begins; once as `demo count`, which says on its stdout how many descriptors
   it was given; and then `demo exit` again and again against the clock. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wean.h>

#if defined __GLIBC__ && defined __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
#define HAVE_ADDCLOSEFROM 1
#endif
#endif
#ifndef HAVE_ADDCLOSEFROM
#define HAVE_ADDCLOSEFROM 0
#endif

enum { MOST = 20000, ROUNDS = 51 };

extern char **environ;

static int limit; /* of our descriptors: the numbers 0 to limit - 1 */

/* ---- the ways: each starts a program and waits for it; 0 or an errno ---- */

static int reap(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return errno;
	return status ? ECHILD : 0;
}

/* As Guile's open-input-pipe did, and many others. */
static int by_fork(char *const argv[])
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int fd = 3; fd < limit; fd++)
			close(fd);
		execve(argv[0], argv, environ);
		_exit(127);
	}
	return reap(pid);
}

static int by_posix_spawn(char *const argv[])
{
	pid_t pid;
	int error = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);

	return error ? error : reap(pid);
}

static int by_closefrom(char *const argv[])
{
#if HAVE_ADDCLOSEFROM
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error = posix_spawn_file_actions_init(&actions);

	if (error)
		return error;
	error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (!error)
		error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error ? error : reap(pid);
#else
	(void)argv;
	return ENOSYS;
#endif
}

static int by_wean(char *const argv[])
{
	struct wean_status status;
	struct wean_child child;
	int error = wean_spawn(&child, argv, NULL);

	if (!error)
		error = wean_wait(&child, -1, &status);
	wean_release(&child);
	return error ? error : status.code;
}

struct way {
	const char *name;
	int (*run)(char *const argv[]);
	int absent;
	int closes, calls; /* of the child, before the program; -1: not counted */
	int given;         /* descriptors of the program */
	double us[ROUNDS], median;
};

static struct way ways[] = {
	{.name = "fork, close up to the limit", .run = by_fork},
	{.name = "posix_spawn, addclosefrom_np", .run = by_closefrom,
	 .absent = !HAVE_ADDCLOSEFROM},
	{.name = "posix_spawn, closing nothing", .run = by_posix_spawn},
	{.name = "wean_spawn", .run = by_wean},
};

enum { WAYS = sizeof ways / sizeof *ways };

static struct way *const old = &ways[0], *const wean = &ways[WAYS - 1];

static void check(const struct way *way, int error)
{
	if (!error)
		return;
	fprintf(stderr, "demo: %s: %s\n", way->name, strerror(error));
	exit(1);
}

/* ---- the calls of the child, counted by ptrace(2) ------------------------ */

/* -1: unknown. */
static long number_of_call(pid_t pid)
{
	struct user_regs_struct regs;
	struct iovec io = {&regs, sizeof regs};

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &io))
		return -1;
#if defined __x86_64__
	return (long)regs.orig_rax;
#elif defined __aarch64__
	return (long)regs.regs[8];
#else
	return -1;
#endif
}

/* One stop of the process that starts the program or of a child that it made. */
static void go_on(struct way *way, pid_t pid, int status, int is_child)
{
	static int inside; /* a call: not where a child begins, with a SIGSTOP */
	int event = status >> 16, signal = WSTOPSIG(status);
	int at_call = signal == (SIGTRAP | 0x80);
	long number;

	if (event == PTRACE_EVENT_EXEC) {
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
		return;
	}
	if (signal == SIGSTOP)
		inside = 0;
	if (at_call && (inside = !inside)) {
		number = number_of_call(pid);
		way->calls += number >= 0;
		way->closes += number == SYS_close;
	}
	if (event || signal == SIGSTOP || at_call)
		signal = 0;
	ptrace(is_child ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL, (void *)(long)signal);
}

static void count_calls(struct way *way, char *const argv[])
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
	                     PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
	                     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	pid_t starter = fork(), pid;
	int status;

	if (starter == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
			raise(SIGSTOP);
		_exit(way->run(argv));
	}
	waitpid(starter, &status, 0);
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_SETOPTIONS, starter, NULL, (void *)options);
		ptrace(PTRACE_CONT, starter, NULL, NULL);
		while ((pid = waitpid(-1, &status, __WALL)) > 0)
			if (WIFSTOPPED(status))
				go_on(way, pid, status, pid != starter);
			else if (pid == starter)
				break;
	}
	check(way, WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD);
	if (way->calls == 0)
		way->calls = way->closes = -1;
}

/* ---- what the program was given ------------------------------------------ */

static int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < MOST; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static void ask_count(struct way *way, char *const argv[])
{
	char answer[16] = "";
	int ends[2], terminal = fcntl(1, F_DUPFD_CLOEXEC, 3);

	if (pipe2(ends, O_CLOEXEC))
		check(way, errno);
	dup2(ends[1], 1);
	check(way, way->run(argv));
	dup2(terminal, 1);
	close(terminal);
	close(ends[1]);
	if (read(ends[0], answer, sizeof answer - 1) > 0)
		way->given = atoi(answer);
	close(ends[0]);
}

/* ---- time ----------------------------------------------------------------- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void take_time(struct way *way, int round, char *const argv[])
{
	double start = now();

	check(way, way->run(argv));
	way->us[round] = now() - start;
}

/* ---- the whole ------------------------------------------------------------ */

static void open_three_quarters(void)
{
	struct rlimit nofile;
	int fd = open("/dev/null", O_RDWR);

	getrlimit(RLIMIT_NOFILE, &nofile);
	limit = nofile.rlim_max < MOST ? (int)nofile.rlim_max : MOST;
	nofile.rlim_cur = (rlim_t)limit;
	setrlimit(RLIMIT_NOFILE, &nofile);
	while (fd >= 0 && fd < limit / 4 * 3 - 1)
		fd = dup(fd);
}

static void measure(char *program)
{
	char count[] = "count", quit[] = "exit";
	char *const counts[] = {program, count, NULL};
	char *const exits[] = {program, quit, NULL};

	for (int i = 0; i < WAYS; i++)
		if (!ways[i].absent) {
			count_calls(&ways[i], exits);
			ask_count(&ways[i], counts);
		}
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < WAYS; i++)
			if (!ways[i].absent)
				take_time(&ways[i], round, exits);
	for (int i = 0; i < WAYS; i++) {
		qsort(ways[i].us, ROUNDS, sizeof *ways[i].us, compare);
		ways[i].median = ways[i].us[ROUNDS / 2];
	}
}

/* -1: not known. */
static void print_number(int width, int n)
{
	if (n < 0)
		printf("%*s", width, "?");
	else
		printf("%*d", width, n);
}

static void print_way(const struct way *way)
{
	printf("%-29s", way->name);
	if (way->absent) {
		printf("%8s\n", "absent");
		return;
	}
	print_number(8, way->closes);
	print_number(11, way->calls);
	print_number(13, way->given);
	printf("%9.0f%7.1f\n", way->median, way->median / wean->median);
}

static int conclude(void)
{
	if (wean->given != 3) {
		printf("\nwean_spawn gave the program %d descriptors, not 3: a fault.\n",
		       wean->given);
		return 1;
	}
	printf("\nThe old way closes every number below the limit, open or not.\n"
	       "wean_spawn gave the program descriptors 0, 1 and 2 and nothing else,\n");
	if (wean->closes >= 0)
		printf("with %d calls of close(2), ", wean->closes);
	printf("in 1/%.1f of the time.\n", old->median / wean->median);
	return 0;
}

int main(int argc, char **argv)
{
	char program[] = "/proc/self/exe";

	if (argc > 1 && strcmp(argv[1], "count") == 0)
		printf("%d", count_open());
	if (argc > 1)
		return 0;
	open_three_quarters();
	printf("A process with %d of %d possible descriptors open starts a program.\n\n"
	       "%29s%8s%11s%13s%9s%7s\n%29s%8s%11s%13s%9s%7s\n",
	       count_open(), limit,
	       "", "close", "all calls", "descriptors", "us", "",
	       "", "calls", "until exec", "inherited", "a start", "ratio");
	fflush(stdout);
	measure(program);
	for (int i = 0; i < WAYS; i++)
		print_way(&ways[i]);
	return conclude();
}
