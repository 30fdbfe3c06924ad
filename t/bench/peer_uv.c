/* peer_uv.c - uv_spawn, and its loop until the program is over. */
#include "bench.h"

#ifdef HAVE_LIBUV

#include <errno.h>
#include <uv.h>

struct state {
	uv_process_t process;
	uv_pipe_t pipe;
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

static int start(struct state *s, const struct job *job)
{
	uv_stdio_container_t stdio[3];
	uv_process_options_t options = {.exit_cb = on_exit, .file = job->argv[0],
	                                .args = (char **)job->argv, .stdio = stdio,
	                                .stdio_count = 3};

	for (int fd = 0; fd < 3; fd++) {
		stdio[fd].flags = UV_INHERIT_FD;
		stdio[fd].data.fd = fd;
	}
	if (job->pipe) {
		uv_pipe_init(uv_default_loop(), &s->pipe, 0);
		stdio[1].flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE;
		stdio[1].data.stream = (uv_stream_t *)&s->pipe;
	}
	return uv_spawn(uv_default_loop(), &s->process, &options);
}

static int run_uv(const struct job *job)
{
	struct state s = {.said = 0};
	int error;

	s.process.data = s.pipe.data = &s;
	error = start(&s, job);
	if (!error && job->pipe)
		uv_read_start((uv_stream_t *)&s.pipe, give_buffer, on_read);
	if (error)
		uv_close((uv_handle_t *)&s.process, NULL);
	if (error && job->pipe)
		uv_close((uv_handle_t *)&s.pipe, NULL);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	if (error)
		return -error;
	return s.status == 0 && s.said == job->pipe ? 0 : EPROTO;
}

const struct peer peer_uv = {"libuv", "uv_spawn, uv_run", never_absent, run_uv};

#else

static const char *uv_absent(void)
{
	return "built without libuv's development files";
}

const struct peer peer_uv = {"libuv", "uv_spawn, uv_run", uv_absent, 0};

#endif
