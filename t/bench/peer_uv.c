/* peer_uv.c - uv_spawn, and its loop until the program is over. */
#include "bench.h"

static const char uv_does[] = "uv_spawn, uv_run";

#ifdef HAVE_LIBUV

#include <errno.h>
#include <uv.h>

struct state {
	uv_process_t process;
	uv_pipe_t pipes[3];
	char data[512];
	ssize_t said;
	int64_t status;
};

static void on_exit(uv_process_t *process, int64_t status, int signal)
{
	struct state *s = process->data;

	s->status = signal ? 128 + signal : status;
	uv_close((uv_handle_t *)process, NULL);
}

static void give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
	struct state *s = handle->data;

	(void)wanted;
	*buffer = uv_buf_init(s->data, sizeof s->data);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
	struct state *s = stream->data;

	(void)buffer;
	if (got < 0)
		uv_close((uv_handle_t *)stream, NULL);
	else
		s->said += got;
}

static int has_pipe(const struct job *job, int fd)
{
	return job->pipes == 3 || (job->pipes == 1 && fd == 1);
}

static int start(struct state *s, const struct job *job)
{
	uv_stdio_container_t stdio[3];
	uv_process_options_t options = {.exit_cb = on_exit, .file = job->argv[0],
	                                .args = (char **)job->argv, .stdio = stdio,
	                                .stdio_count = 3};

	for (int fd = 0; fd < 3; fd++) {
		stdio[fd].flags = UV_INHERIT_FD;
		stdio[fd].data.fd = fd;
		if (!has_pipe(job, fd))
			continue;
		uv_pipe_init(uv_default_loop(), &s->pipes[fd], 0);
		s->pipes[fd].data = s;
		stdio[fd].flags = UV_CREATE_PIPE | (fd ? UV_WRITABLE_PIPE : UV_READABLE_PIPE);
		stdio[fd].data.stream = (uv_stream_t *)&s->pipes[fd];
	}
	return uv_spawn(uv_default_loop(), &s->process, &options);
}

static void use_pipe(struct state *s, int fd, int error)
{
	if (error || fd == 0)
		uv_close((uv_handle_t *)&s->pipes[fd], NULL);
	else
		uv_read_start((uv_stream_t *)&s->pipes[fd], give_buffer, on_read);
}

static int run_uv(struct job *job)
{
	struct state s = {.said = 0};
	int error;

	s.process.data = &s;
	error = start(&s, job);
	job->started = now();
	for (int fd = 0; fd < 3; fd++)
		if (has_pipe(job, fd))
			use_pipe(&s, fd, error);
	if (error)
		uv_close((uv_handle_t *)&s.process, NULL);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	if (error)
		return -error;
	return s.status == 0 && s.said == (job->pipes > 0) ? 0 : EPROTO;
}

const struct peer peer_uv = {.name = "libuv", .what = uv_does, .absent = never_absent,
                             .run = run_uv, .at_most = ONE_THREAD | LEAKS};

#else

static const char *uv_absent(void)
{
	return "built without libuv's development files";
}

const struct peer peer_uv = {.name = "libuv", .what = uv_does, .absent = uv_absent};

#endif
