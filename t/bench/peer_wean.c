/* peer_wean.c - all defaults: nothing but 0, 1 and 2 reaches the program. */
#include "bench.h"

#include <errno.h>
#include <wean.h>

static int run_wean(struct job *job)
{
	struct wean_options options = {0};
	struct wean_status status;
	struct wean_child child;
	int error, said;

	if (job->pipes == 3)
		options.in = options.err = WEAN_PIPE;
	if (job->pipes > 0)
		options.out = WEAN_PIPE;
	error = wean_spawn(&child, job->argv, &options);
	job->started = now();
	if (error)
		return error;
	said = drain_ends(child.in, child.out, child.err);
	child.in = child.out = child.err = -1;
	error = wean_wait(&child, -1, &status);
	wean_release(&child);
	if (error)
		return error;
	return status.code ? EPROTO : said;
}

const struct peer peer_wean = {.name = "wean",
                               .what = "wean_spawn, wean_wait, wean_release; defaults",
                               .absent = never_absent, .run = run_wean};
