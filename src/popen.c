#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <wean_popen.h>

#include "command.h"
#include "streams.h"
#include "sys.h"

/* ---- what is wanted ---- */

struct request {
	const char *text;       /* or else: */
	char *const *argv;
	int writes, by_shell;
};

static int
read_mode(struct request *q, const char *mode)
{
	if (!mode || (*mode != 'r' && *mode != 'w') || mode[1 + strspn(mode + 1, "es")] != '\0')
		return EINVAL;
	q->writes = *mode == 'w';
	q->by_shell = strchr(mode, 's') != NULL;
	return 0;
}

static int
start_request(struct wean_child *child, const struct request *q,
              const struct wean_options *o)
{
	return q->text ? wean_command_start(child, q->text, o, q->by_shell)
	               : wean_spawn(child, q->argv, o);
}

/* What can't be killed at once is reaped when it is over. */
static void
end_by_force(struct stream *s, struct wean_status *status)
{
	if (wean_stop(&s->child, 0, status) == ETIMEDOUT)
		wean_stream_leave(s);
	else
		wean_stream_end(s);
}

/* ---- opening ---- */

static int
start_with_pipe(struct stream *s, const struct request *q)
{
	const struct wean_options o = { .in = q->writes ? WEAN_PIPE : 0,
	                                .out = q->writes ? 0 : WEAN_PIPE };
	int *end = q->writes ? &s->child.in : &s->child.out;
	int error = start_request(&s->child, q, &o), r;

	if (error)
		return error;
	r = wean_sys_dup_over(*end, s->fd);
	wean_sys_drop(end);
	return r < 0 ? -r : 0;
}

/* All that can fail for want of something comes before the start, so that no command is
   started in vain: the stream is made over a descriptor whose number the pipe then takes. */
static int
open_stream(struct stream *s, const struct request *q)
{
	FILE *file;
	int error;

	s->fd = wean_sys_lift(wean_sys_eventfd());
	s->writes = q->writes;
	if (s->fd < 0)
		return -s->fd;
	if (!(file = fdopen(s->fd, q->writes ? "w" : "r"))) {
		error = errno;
		wean_sys_close(s->fd);
		return error;
	}
	wean_stream_name(s, file);
	setvbuf(file, s->buffer, _IOFBF, sizeof s->buffer);
	if ((error = start_with_pipe(s, q)) != 0) {
		wean_stream_unname(s);
		fclose(file);
	}
	return error;
}

static FILE *
open_request(const struct request *q)
{
	int saved = errno, error;
	struct stream *s;

	wean_streams_reap();
	if (!(s = wean_stream_new())) {
		errno = ENOMEM;
		return NULL;
	}
	if ((error = open_stream(s, q)) != 0) {
		end_by_force(s, NULL);
		errno = error;
		return NULL;
	}
	FILE *file = s->file;
	wean_stream_open(s);
	errno = saved;
	return file;
}

FILE *
wean_popen(const char *command, const char *mode)
{
	struct request q = { .text = command };

	if (!command || read_mode(&q, mode) != 0) {
		errno = EINVAL;
		return NULL;
	}
	return open_request(&q);
}

FILE *
wean_popenv(char *const argv[], const char *mode)
{
	struct request q = { .argv = argv };

	if (!argv || read_mode(&q, mode) != 0) {
		errno = EINVAL;
		return NULL;
	}
	return open_request(&q);
}

/* ---- closing ---- */

/* A pipe that is said to be writable takes so much without waiting. */
static int
write_until(int fd, const char *data, size_t len, long long deadline)
{
	struct sys_poll p = { fd, SYS_POLL_OUT, 0 };

	while (len > 0) {
		int r = wean_sys_poll(&p, 1, wean_sys_left(deadline));

		if (r == 0)
			return ETIMEDOUT;
		if (r > 0)
			r = wean_sys_write_quietly(fd, data, len < PIPE_BUF ? len : PIPE_BUF);
		if (r < 0 && r != -EINTR && r != -EAGAIN)
			return -r;
		if (r > 0) {
			data += r;
			len -= (size_t)r;
		}
	}
	return 0;
}

/* By itself fclose(3) waits for a reader as long as it takes: it writes to a file in
   memory, which then is written on. */
static void
close_by(struct stream *s, FILE *file, int pipe, int memory, long long deadline)
{
	int r = pipe < 0 || memory < 0 ? -1 : wean_sys_dup_over(memory, s->fd);
	int n;

	fclose(file);
	if (r < 0 || wean_sys_rewind(memory) < 0)
		return;
	while ((n = wean_sys_read(memory, s->buffer, sizeof s->buffer)) > 0)
		if (write_until(pipe, s->buffer, (size_t)n, deadline) != 0)
			return;
}

/* The limit on files holds for one in memory too, and not for a pipe: who has a low one
   would be sent SIGXFSZ. */
static int
make_memory(void)
{
	unsigned long long most = 0;

	wean_sys_fsize(&most);
	return most < STREAM_BUFFER ? -1 : wean_sys_memfd("wean_pclose_status");
}

static void
close_until(struct stream *s, FILE *file, long long deadline)
{
	int pipe = s->writes ? wean_sys_dup_above(s->fd, 3) : -1;
	int memory = s->writes ? make_memory() : -1;

	close_by(s, file, pipe, memory, deadline);
	wean_sys_drop(&pipe);
	wean_sys_drop(&memory);
}

/* The stream is closed already. */
static int
finish_stream(struct stream *s, long long deadline, struct wean_status *status)
{
	int error = ECHILD;

	if (wean_stream_is_ours(s))
		error = wean_wait(&s->child, wean_sys_left(deadline), status);
	if (error == ETIMEDOUT)
		end_by_force(s, status);
	else
		wean_stream_end(s);
	return error;
}

/* NULL: it is not ours. */
static struct stream *
take(FILE *file)
{
	struct stream *s = wean_stream_take(file);

	if (s)
		wean_stream_unname(s);
	wean_streams_reap();
	return s;
}

int
wean_pclose_status(FILE *file, int timeout_ms, struct wean_status *status)
{
	long long deadline = wean_sys_deadline(timeout_ms);
	int saved = errno, error = EINVAL;
	struct stream *s = take(file);

	if (s) {
		close_until(s, file, deadline);
		error = finish_stream(s, deadline, status);
	}
	errno = saved;
	return error;
}

/* As of wait(2), or -1 with errno, which else becomes what it was. */
static int
wait_status(int error, const struct wean_status *s, int saved)
{
	if (!error && s->kind == WEAN_UNKNOWN)
		error = ECHILD;
	errno = error ? error : saved;
	if (error)
		return -1;
	return s->kind == WEAN_EXITED ? s->value << 8 : s->value | (s->core ? 0x80 : 0);
}

int
wean_pclose(FILE *file)
{
	int saved = errno, error = EINVAL;
	struct wean_status status;
	struct stream *s = take(file);

	if (s) {
		fclose(file);
		error = finish_stream(s, wean_sys_deadline(-1), &status);
	}
	return wait_status(error, &status, saved);
}

/* ---- without a stream ---- */

static int
run(const struct request *q)
{
	static const struct wean_options none;
	int saved = errno, error;
	struct wean_status status;
	struct wean_child child = { 0 }; /* nothing, until it is started */

	wean_streams_reap();
	error = start_request(&child, q, &none);
	if (!error)
		error = wean_wait(&child, -1, &status);
	wean_release(&child);
	return wait_status(error, &status, saved);
}

/* It started, though another may have reaped it and its status be lost. */
static int
has_shell(void)
{
	int saved = errno, status = wean_system("exit 0");

	if (status < 0 && errno == ECHILD) {
		errno = saved;
		return 1;
	}
	return status == 0;
}

int
wean_system(const char *command)
{
	if (!command)
		return has_shell();
	return run(&(struct request){ .text = command });
}

int
wean_systemv(char *const argv[])
{
	return run(&(struct request){ .argv = argv });
}
