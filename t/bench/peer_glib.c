/* peer_glib.c - g_spawn_async and GSubprocess, which close everything above 2 by
   themselves. */
#include "bench.h"

static const char spawn_does[] = "g_spawn_async_with_pipes, waitpid",
	subprocess_does[] = "g_subprocess_newv, communicate or wait";

#ifdef HAVE_GLIB

#include <errno.h>
#include <gio/gio.h>

static int run_glib(struct job *job)
{
	const int all = job->pipes == 3;
	const GSpawnFlags how = G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH;
	int in = -1, out = -1, err = -1, said, error;
	GPid pid;

	if (!g_spawn_async_with_pipes(NULL, (char **)job->argv, NULL,
	                              all ? how : how | G_SPAWN_CHILD_INHERITS_STDIN, NULL,
	                              NULL, &pid, all ? &in : NULL,
	                              job->pipes ? &out : NULL, all ? &err : NULL, NULL))
		return EIO;
	job->started = now();
	said = drain_ends(in, out, err);
	error = reap(pid);
	g_spawn_close_pid(pid);
	return error ? error : said;
}

static gsize size_of(GBytes *bytes)
{
	const gsize size = bytes ? g_bytes_get_size(bytes) : 0;

	if (bytes)
		g_bytes_unref(bytes);
	return size;
}

static int talk(GSubprocess *p, int pipes)
{
	GBytes *in = pipes == 3 ? g_bytes_new_static("", 0) : NULL, *out = NULL, *err = NULL;
	int good = g_subprocess_communicate(p, in, NULL, &out, &err, NULL);

	good &= size_of(out) == 1;
	good &= size_of(err) == 0;
	size_of(in);
	return good;
}

static int run_gsubprocess(struct job *job)
{
	static const GSubprocessFlags pipes[] = {
		G_SUBPROCESS_FLAGS_STDIN_INHERIT,
		G_SUBPROCESS_FLAGS_STDIN_INHERIT | G_SUBPROCESS_FLAGS_STDOUT_PIPE,
		0,
		G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE
			| G_SUBPROCESS_FLAGS_STDERR_PIPE,
	};
	GSubprocess *p = g_subprocess_newv((const char *const *)job->argv,
	                                   pipes[job->pipes], NULL);
	int good;

	job->started = now();
	if (!p)
		return EIO;
	good = job->pipes ? talk(p, job->pipes) : g_subprocess_wait(p, NULL, NULL);
	good = good && g_subprocess_get_successful(p);
	g_object_unref(p);
	return good ? 0 : EPROTO;
}

const struct peer
	peer_glib = {.name = "glib", .what = spawn_does, .absent = never_absent,
	             .run = run_glib},
	peer_gsubprocess = {.name = "gsubprocess", .what = subprocess_does,
	                    .absent = never_absent, .run = run_gsubprocess};

#else

static const char *glib_absent(void)
{
	return "built without GLib's development files";
}

const struct peer
	peer_glib = {.name = "glib", .what = spawn_does, .absent = glib_absent},
	peer_gsubprocess = {.name = "gsubprocess", .what = subprocess_does,
	                    .absent = glib_absent};

#endif
