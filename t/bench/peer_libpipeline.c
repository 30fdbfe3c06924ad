/* peer_libpipeline.c - a pipeline of one command.  Apart: it ends its host where a child
   of its own was reaped by the handler that it installs, in another thread of GLib's. */
#include "bench.h"

static const char libpipeline_does[] = "pipeline_start, pipeline_wait";

#ifdef HAVE_LIBPIPELINE

#include <errno.h>
#include <pipeline.h>
#include <string.h>

static int said(pipeline *p)
{
	size_t len = 2;
	const char *data = pipeline_read(p, &len);

	return data && len == 1 ? 0 : EPROTO;
}

static int run_libpipeline(struct job *job)
{
	pipecmd *command = pipecmd_new(job->argv[0]);
	pipeline *p = pipeline_new();
	int error = 0, status;

	for (int i = 1; job->argv[i]; i++)
		pipecmd_arg(command, job->argv[i]);
	pipeline_command(p, command);
	if (job->pipes)
		pipeline_want_out(p, -1);
	pipeline_start(p);
	job->started = now();
	if (job->pipes)
		error = said(p);
	status = pipeline_wait(p);
	pipeline_free(p);
	return status ? EPROTO : error;
}

const struct peer peer_libpipeline = {.name = "libpipeline", .what = libpipeline_does,
                                      .absent = never_absent, .run = run_libpipeline,
                                      .at_most = ONE_PIPE | ONE_THREAD | LEAKS | APART};

#else

static const char *libpipeline_absent(void)
{
	return "built without libpipeline's development files";
}

const struct peer peer_libpipeline = {.name = "libpipeline", .what = libpipeline_does,
                                      .absent = libpipeline_absent};

#endif
