/* readers.c - the ways to read, but for GLib's. */
#include "reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <wean.h>

/* As the reader has them once its pipe was found full a few times. */
enum { PIPE_SIZE = 1 << 20, BUFFER = 1 << 18 };

static int start(const struct text *text, struct wean_child *child)
{
	const struct wean_options options = {.out = WEAN_PIPE};

	return wean_spawn(child, text->argv, &options);
}

/* error: of the reading. */
static int end(struct wean_child *child, int error)
{
	struct wean_status status;
	int failed = wean_wait(child, -1, &status);

	wean_release(child);
	if (error || failed)
		return error ? error : failed;
	return status.code ? EPROTO : 0;
}

static int compare(const struct text *text, size_t lines, size_t bytes)
{
	return lines == text->lines && bytes == text->bytes ? 0 : EPROTO;
}

int read_lines_wean(const struct text *text, long long *ns)
{
	size_t lines = 0, bytes = 0, len;
	wean_reader *reader = NULL;
	struct wean_child child;
	const char *line;
	int error = start(text, &child);

	(void)ns;
	if (error)
		return error;
	error = wean_reader_new(&reader, child.out, 0);
	while (!error && (error = wean_read_line(reader, &line, &len)) == 0 && line) {
		lines++;
		bytes += len + 1;
	}
	wean_reader_free(reader);
	return end(&child, error ? error : compare(text, lines, bytes));
}

int read_lines_getline(const struct text *text, long long *ns)
{
	FILE *stream = popen(text->command, "r");
	size_t lines = 0, bytes = 0, size = 0;
	char *line = NULL;
	ssize_t len;

	(void)ns;
	if (!stream)
		return errno;
	while ((len = getline(&line, &size, stream)) > 0) {
		lines++;
		bytes += (size_t)len;
	}
	free(line);
	if (pclose(stream) != 0)
		return EPROTO;
	return compare(text, lines, bytes);
}

/* Whatever is there, at once. */
int read_chunks_wean(const struct text *text, long long *ns)
{
	wean_reader *reader = NULL;
	struct wean_child child;
	size_t bytes = 0, len;
	const char *data;
	int error = start(text, &child);

	(void)ns;
	if (error)
		return error;
	error = wean_reader_new(&reader, child.out, 0);
	while (!error && (error = wean_read_some(reader, &data, &len)) == 0 && data)
		bytes += len;
	wean_reader_free(reader);
	return end(&child, error ? error : compare(text, text->lines, bytes));
}

int read_chunks_popen(const struct text *text, long long *ns)
{
	static char data[1 << 16];
	FILE *stream = popen(text->command, "r");
	size_t bytes = 0, got;

	(void)ns;
	if (!stream)
		return errno;
	while ((got = fread(data, 1, sizeof data, stream)) > 0)
		bytes += got;
	if (pclose(stream) != 0)
		return EPROTO;
	return compare(text, text->lines, bytes);
}

/* Looks at nothing. */
int read_bare(const struct text *text, long long *ns)
{
	struct wean_child child;
	size_t bytes = 0;
	char *buffer = malloc(BUFFER);
	int error = buffer ? start(text, &child) : ENOMEM;
	ssize_t got;

	(void)ns;
	if (error) {
		free(buffer);
		return error;
	}
	fcntl(child.out, F_SETPIPE_SZ, PIPE_SIZE);
	while ((got = read(child.out, buffer, BUFFER)) > 0)
		bytes += (size_t)got;
	free(buffer);
	return end(&child, got < 0 ? errno : compare(text, text->lines, bytes));
}

int collect_wean(const struct text *text, long long *ns)
{
	struct wean_result result;
	int error = wean_run(text->argv, NULL, NULL, &result);

	(void)ns;
	if (!error && (result.status.code || result.out_len != text->bytes || result.err_len))
		error = EPROTO;
	wean_result_free(&result);
	return error;
}

/* Its time is taken by itself: a start of the interpreter is not part of it. */
int collect_python(const struct text *text, long long *ns)
{
	static const char program[] =
		"import subprocess, sys, time\n"
		"begin = time.monotonic_ns()\n"
		"p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE,\n"
		"                     stderr=subprocess.PIPE)\n"
		"out, err = p.communicate()\n"
		"print(time.monotonic_ns() - begin, len(out), len(err), p.returncode)\n";
	char *argv[16] = {"python3", "-c", (char *)program};
	struct wean_result result;
	size_t out, err;
	int error, code, n = 3;

	for (int i = 0; text->argv[i] && n < 15; i++)
		argv[n++] = text->argv[i];
	error = wean_run(argv, NULL, NULL, &result);
	if (!error && (result.status.code ||
	               sscanf(result.out, "%lld %zu %zu %d", ns, &out, &err, &code) != 4 ||
	               out != text->bytes || err || code))
		error = EPROTO;
	wean_result_free(&result);
	return error;
}

/* ---- through a pipeline ---- */

enum { STAGES = 5 };

int pipe_wean(const struct text *t, long long *ns)
{
	static char *cat[] = {"cat", NULL};
	char **argvs[STAGES] = {(char **)t->argv, cat, cat, cat, cat};
	struct wean_options options[STAGES] = {[STAGES - 1] = {.out = WEAN_NULL}};
	struct wean_child children[STAGES];
	struct wean_status statuses[STAGES];
	int error = wean_pipeline(children, argvs, options, STAGES);

	(void)ns;
	if (!error)
		error = wean_wait_all(children, STAGES, -1, statuses);
	for (int i = 0; i < STAGES; i++) {
		if (!error && statuses[i].code != 0)
			error = EPROTO;
		wean_release(&children[i]);
	}
	return error;
}

int pipe_shell(const struct text *t, long long *ns)
{
	char command[600];

	(void)ns;
	snprintf(command, sizeof command, "%s | cat | cat | cat | cat >/dev/null", t->command);
	return system(command) == 0 ? 0 : EPROTO;
}
