/* peer_wean.c - all defaults: nothing but 0, 1 and 2 reaches the program. */
#include "bench.h"

#include <errno.h>
#include <wean.h>

static int run_wean(const struct job *job)
{
	struct wean_options options = {.out = job->pipe ? WEAN_PIPE : WEAN_INHERIT};
	struct wean_status status;
	struct wean_child child;
	int error = wean_spawn(&child, job->argv, &options), said = 0;

	if (error)
		return error;
	if (job->pipe) {
		said = drain(child.out);
		child.out = -1;
	}
	error = wean_wait(&child, -1, &status);
	wean_release(&child);
	if (error)
		return error;
	return status.code ? EPROTO : said;
}

const struct peer peer_wean = {"wean", "wean_spawn, wean_wait, wean_release; defaults",
                               never_absent, run_wean};
