/* state.c - the state of the process that starts: its descriptors and their limit, its
   memory, its environment, what is refused to it. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../conditions.h"

extern char **environ;

/* ---- descriptors ---- */

enum { SPARE = 1000 }; /* descriptors that a case leaves free */

int limit_of_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max > INT_MAX ? INT_MAX : (int)limit.rlim_max;
}

/* A soft limit; the hard one is raised where it has to be and may be. */
static void set_limit(int soft, char *note)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)soft;
	if (limit.rlim_max < limit.rlim_cur)
		limit.rlim_max = limit.rlim_cur;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		snprintf(note, NOTE, " (but the limit is %d)", limit_of_descriptors());
}

/* From the lowest free number on, so that whatever is opened later is above. */
static void fill_descriptors(int wanted, char *note)
{
	int limit = limit_of_descriptors(), null = open("/dev/null", O_RDWR), n = 1;
	int most = wanted < limit - SPARE ? wanted : limit - SPARE, sockets[2], some;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return;
	do {
		some = most - n < A_MESSAGE ? most - n : A_MESSAGE;
		n += some;
	} while (some > 0 && receive_copies(sockets, null, some) >= 0);
	close(sockets[0]);
	close(sockets[1]);
	if (n < wanted)
		snprintf(note, NOTE, " (only %d: the limit is %d)", n, limit);
}

/* ---- memory ---- */

/* The number behind the last `key` in a file; 0: there is none. */
static long long number_in(const char *path, const char *key)
{
	char line[128];
	long long number = 0;
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			number = atoll(line + strlen(key));
	if (f)
		fclose(f);
	return number;
}

/* MB that can be had, by the word of the kernel and of a container. */
static long long memory_to_spare(void)
{
	long long mb = number_in("/proc/meminfo", "MemAvailable:") >> 10;
	long long most = number_in("/sys/fs/cgroup/memory.max", "") >> 20;

	return (most && most < mb ? most : mb) * 3 / 4;
}

/* In pages of the common size: huge ones would flatter fork. */
char *fill_memory(int wanted, char *note)
{
	long long mb = memory_to_spare();
	size_t bytes = (size_t)(mb < wanted ? mb : wanted) << 20;
	char *p = mmap(NULL, (size_t)wanted << 20, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		bytes = 0;
	else
		madvise(p, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	if (bytes < (size_t)wanted << 20)
		snprintf(note, NOTE, " (only %zu MB: no more is free)", bytes >> 20);
	return p;
}

void empty_memory(char *memory, int mb)
{
	if (memory != MAP_FAILED)
		munmap(memory, (size_t)mb << 20);
}

/* ---- the environment and the program ---- */

enum { ENTRIES = 10, VALUE = 80 }; /* entries where a case says nothing */

static const char *directory(void)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof path, "%s", set.program);
	*strrchr(path, '/') = '\0';
	return path;
}

static char *entry(const char *name, const char *value)
{
	size_t size = strlen(name) + strlen(value) + 2;
	char *text = malloc(size);

	if (!text)
		abort();
	snprintf(text, size, "%s=%s", name, value);
	return text;
}

/* The program's directory is the last element; in the others it is not. */
static char *search_path(int elements)
{
	const char *dir = directory();
	size_t size = (size_t)elements * sizeof "/usr/bin:" + strlen(dir);
	char *path = malloc(size);

	if (!path)
		abort();
	*path = '\0';
	for (int i = 1; i < elements; i++)
		strcat(path, "/usr/bin:");
	return strcat(path, dir);
}

static void set_environment(int entries, int elements)
{
	static const char *const kept[] = {"PATH", "HOME", "LD_LIBRARY_PATH"};
	char **env = calloc((size_t)entries + 1, sizeof *env);
	char name[32], value[VALUE + 1];
	int n = 0;

	if (!env)
		abort();
	memset(value, 'v', VALUE);
	value[VALUE] = '\0';
	if (elements)
		setenv("PATH", search_path(elements), 1);
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (getenv(kept[i]))
			env[n++] = entry(kept[i], getenv(kept[i]));
	while (n < entries) {
		snprintf(name, sizeof name, "VARIABLE_%d", n);
		env[n++] = entry(name, value);
	}
	environ = env;
}

/* ---- what is refused ---- */

/* As by the profile of a container that is older than these calls. */
static int refuse_calls(void)
{
	static const struct denial denied[] = {
#ifdef SYS_clone3
		{.nr = SYS_clone3, .error = ENOSYS}, /* libc takes no other for "not here" */
#endif
#ifdef SYS_close_range
		{.nr = SYS_close_range, .error = EPERM},
#endif
	};

	return refuse_these(denied, sizeof denied / sizeof *denied);
}

/* ---- the whole ---- */

const struct job *enter_case(int c, char *note)
{
	static char here[NAME_MAX + 3], command[sizeof here + 2], say[] = "x";
	static char *argv[3];
	static struct job job = {.argv = argv, .command = command};
	const struct kase *k = &cases[c];

	/* No name that a shell would want quoted. */
	if (chdir(directory()))
		snprintf(note, NOTE, " (no directory)");
	snprintf(here, sizeof here, "%s%s", k->path ? "" : "./",
	         strrchr(set.program, '/') + 1);
	snprintf(command, sizeof command, "%s%s", here, k->pipes ? " x" : "");
	argv[0] = here;
	argv[1] = k->pipes ? say : NULL;
	job.pipes = k->pipes;
	set_environment(k->env ? k->env : ENTRIES, k->path);
	limit_of_descriptors();
	if (k->limit)
		set_limit(k->limit, note);
	if (k->open)
		fill_descriptors(k->open, note);
	if (k->profile && !refuse_calls())
		snprintf(note, NOTE, " (not refused: no filter can be set)");
	return &job;
}
