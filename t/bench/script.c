/* script.c - peers that are processes: interpreters, which start the program in their own
   way and take the time themselves, and libraries that want a process for themselves.
   They are told how many starts to make and answer with a line for each; what it takes to
   start them counts nowhere. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct script {
	pid_t pid;
	int end;   /* of a socket that is its input and output */
	FILE *out;
};

/* A program itself, not the script that a version manager puts before it: that would
   want the PATH that a case changes. */
static int is_program(const char *path)
{
	char magic[4] = "";
	FILE *f = access(path, X_OK) == 0 ? fopen(path, "r") : NULL;
	int good = f && fread(magic, 1, 4, f) == 4 && memcmp(magic, "\177ELF", 4) == 0;

	if (f)
		fclose(f);
	return good;
}

static int find_in(const char *list, const char *name, char *path)
{
	for (const char *at = list; at; at = strchr(at, ':')) {
		at += *at == ':';
		snprintf(path, PATH_MAX, "%.*s/%s", (int)strcspn(at, ":"), at, name);
		if (is_program(path))
			return 1;
	}
	return 0;
}

/* The PATH that we were started with: "" if there is no interpreter. */
static const char *find_interpreter(const struct peer *peer)
{
	static char found[PEERS][PATH_MAX];
	static const char *list;
	const int p = peer_named(peer->name);

	if (!list)
		list = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	for (int i = 0; !*found[p] && i < 3 && peer->interpreters[i]; i++)
		if (!find_in(list, peer->interpreters[i], found[p]))
			*found[p] = '\0';
	return found[p];
}

const char *script_absent(const struct peer *peer)
{
	static char text[PEERS][64];
	const int p = peer_named(peer->name);

	if (access(SCRIPTS, R_OK) != 0)
		return "no " SCRIPTS ", where its script was";
	if (*find_interpreter(peer))
		return NULL;
	snprintf(text[p], sizeof text[p], "no %s in PATH", peer->interpreters[0]);
	return text[p];
}

/* In pages of the common size, as fill_memory() does it. */
static _Noreturn void become(const struct peer *peer, const struct job *job, int mb, int end)
{
	char pipes[16], megabytes[16], script[PATH_MAX + 32];
	const char *argv[16];
	int n = 0;

	snprintf(pipes, sizeof pipes, "%d", job->pipes);
	snprintf(megabytes, sizeof megabytes, "%d", mb);
	snprintf(script, sizeof script, "%s/%s", SCRIPTS, peer->script);
	argv[n++] = peer->script ? find_interpreter(peer) : "/proc/self/exe";
	if (peer->option)
		argv[n++] = peer->option;
	argv[n++] = peer->script ? script : "--serve";
	if (!peer->script)
		argv[n++] = peer->name;
	argv[n++] = pipes;
	argv[n++] = megabytes;
	for (int i = 0; job->argv[i]; i++)
		argv[n++] = job->argv[i];
	argv[n] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	dup2(end, 0);
	dup2(end, 1);
	execv(argv[0], (char **)(size_t)argv);
	_exit(127);
}

struct script *script_begin(const struct peer *peer, const struct job *job, int mb)
{
	struct script *s = calloc(1, sizeof *s);
	int ends[2];

	if (!s || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return NULL;
	s->pid = fork();
	if (s->pid == 0)
		become(peer, job, mb, ends[1]);
	close(ends[1]);
	s->end = ends[0];
	s->out = fdopen(s->end, "r");
	return s->pid < 0 || !s->out ? NULL : s;
}

/* No signal where it has ended. */
static int tell(struct script *s, size_t n)
{
	char line[32];
	int len = snprintf(line, sizeof line, "%zu\n", n);

	return send(s->end, line, (size_t)len, MSG_NOSIGNAL) == len;
}

int script_run(struct script *s, size_t n, double *ns, double *blocked)
{
	const long long begin = now();
	char line[64];
	int has_clock = 1;

	if (!tell(s, n))
		return EPIPE;
	for (size_t i = 0; i < n; i++) {
		if (!fgets(line, sizeof line, s->out))
			return EPIPE;
		ns[i] = blocked[i] = 0;
		has_clock &= sscanf(line, "%lf %lf", &ns[i], &blocked[i]) > 0;
	}
	for (size_t i = 0; i < n && !has_clock; i++)
		ns[i] = (double)(now() - begin) / (double)n;
	return 0;
}

void script_end(struct script *s)
{
	fclose(s->out);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	free(s);
}

/* ---- a library in a process of its own ---- */

static int serve_one(const struct peer *peer, struct job *job)
{
	const long long begin = now();
	int error = peer->run(job);

	if (!error)
		printf("%lld %lld\n", now() - begin, job->started ? job->started - begin : 0);
	return error;
}

int serve(char **argv)
{
	char line[32], command[PATH_MAX], note[NOTE];
	struct job job = {.argv = argv + 3, .command = command, .pipes = atoi(argv[1])};
	const int mb = atoi(argv[2]), p = peer_named(argv[0]);
	int error = p == PEERS ? EINVAL : 0;

	snprintf(command, sizeof command, "%s%s", argv[3], argv[4] ? " x" : "");
	if (mb)
		fill_memory(mb, note);
	while (!error && fgets(line, sizeof line, stdin)) {
		for (int n = atoi(line); n > 0 && !error; n--)
			error = serve_one(peers[p], &job);
		fflush(stdout);
	}
	return error;
}
