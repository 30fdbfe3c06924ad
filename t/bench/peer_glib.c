/* peer_glib.c - g_spawn_async, which closes everything above 2 by itself. */
#include "bench.h"

#ifdef HAVE_GLIB

#include <errno.h>
#include <glib.h>

static int run_glib(const struct job *job)
{
	const GSpawnFlags how = G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_CHILD_INHERITS_STDIN;
	int out = -1, said = 0, error;
	GPid pid;

	if (!g_spawn_async_with_pipes(NULL, (char **)job->argv, NULL, how, NULL, NULL,
	                              &pid, NULL, job->pipe ? &out : NULL, NULL, NULL))
		return EIO;
	if (job->pipe)
		said = drain(out);
	error = reap(pid);
	g_spawn_close_pid(pid);
	return error ? error : said;
}

const struct peer peer_glib = {"glib", "g_spawn_async, waitpid", never_absent, run_glib};

#else

static const char *glib_absent(void)
{
	return "built without GLib's development files";
}

const struct peer peer_glib = {"glib", "g_spawn_async, waitpid", glib_absent, 0};

#endif
