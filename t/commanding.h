/* commanding.h - for the tests of wean(1): runs it as a user does, and not by the
   library, which is what it is made of. */
#ifndef COMMANDING_H
#define COMMANDING_H

#include "waiting.h"

static inline char *command(void)
{
	static char path[PATH_MAX];
	const char *given = getenv("WEAN_COMMAND");

	if (!path[0] && !realpath(given ? given : "./src/wean", path))
		ck_abort_msg("no command: set WEAN_COMMAND");
	return path;
}

static inline void find_programs(void)
{
	scratch_make();
	command();
}

#define WEAN(...) ((char *[]){ command(), __VA_ARGS__, NULL })

/* As a shell does it: in a group of its own, with no handler of Check's.  in: -1 for that
   of the test. */
static inline pid_t begin_with(char *const argv[], int in, int out, int err,
                               void (*prepare)(void))
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	setpgid(0, 0);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	if (in >= 0)
		dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (prepare)
		prepare();
	execv(argv[0], argv);
	_exit(99);
}

static inline pid_t begin(char *const argv[], int out, int err, void (*prepare)(void))
{
	return begin_with(argv, -1, out, err, prepare);
}

/* As the shell's $?; 1000 and more: a signal ended the command itself. */
static inline int code_of(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

struct result {
	int code;
	char *out, *err;
};

static inline struct result result_of(char *const argv[], void (*prepare)(void))
{
	char *names[] = { at("out"), at("err") };
	struct result r;
	size_t len;
	int fds[2];

	for (int i = 0; i < 2; i++) {
		fds[i] = open(names[i], O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
		              0666);
		ck_assert_int_ge(fds[i], 0);
	}
	r.code = code_of(begin(argv, fds[0], fds[1], prepare));
	close(fds[0]);
	close(fds[1]);
	r.out = read_all(names[0], &len);
	r.err = read_all(names[1], &len);
	return r;
}

static inline void gives(int code, const char *out, const char *err, char *const argv[])
{
	struct result r = result_of(argv, NULL);

	ck_assert_str_eq(r.err, err);
	ck_assert_str_eq(r.out, out);
	ck_assert_int_eq(r.code, code);
}

static inline struct report *report_after(char *const argv[], void (*prepare)(void))
{
	struct result r = result_of(argv, prepare);

	ck_assert_str_eq(r.err, "");
	ck_assert_int_eq(r.code, 0);
	struct report *report = report_read_file(at("out"));
	ck_assert_ptr_nonnull(report);
	return report;
}

/* What the program sees: options, then kid report. */
#define REPORT(...) report_after(WEAN(__VA_ARGS__, kid(), "report"), NULL)

static inline void reports(struct report *r, const char *key, const char *value)
{
	const char *is = report_value(r, key);

	ck_assert_msg(is && !strcmp(is, value), "%s is %s, not %s", key,
	              is ? is : "missing", value);
}

static inline void reports_number(struct report *r, const char *key, long value)
{
	char text[24];

	snprintf(text, sizeof text, "%ld", value);
	reports(r, key, text);
}

/* ---- while it runs ----------------------------------------------------- */

/* The read end of a pipe of its output in *out. */
static inline pid_t begin_piped(char *const argv[], int *out)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = begin(argv, ends[1], 2, NULL);
	close(ends[1]);
	*out = ends[0];
	return pid;
}

static inline int catches(pid_t pid, int sig)
{
	char path[64], line[256];
	unsigned long long set = 0;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "SigCgt:", 7))
			set = strtoull(line + 7, NULL, 16);
	fclose(f);
	return (set & WEAN_SIG(sig)) != 0;
}

#endif
