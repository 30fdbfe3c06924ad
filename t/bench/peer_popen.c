/* peer_popen.c - a stream from a command: popen(3), and ours by each of its ways. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <wean_popen.h>

static int end(struct job *job, FILE *stream, int (*finish)(FILE *))
{
	int said = 0, status;

	job->started = now();
	if (!stream)
		return errno;
	if (job->pipes)
		said = getc(stream) != EOF && getc(stream) == EOF ? 0 : EPROTO;
	status = finish(stream);
	if (status == -1)
		return errno;
	return status ? EPROTO : said;
}

static int run_popen(struct job *job)
{
	return end(job, popen(job->command, "r"), pclose);
}

static int run_popenv(struct job *job)
{
	return end(job, wean_popenv(job->argv, "r"), wean_pclose);
}

static int run_plain(struct job *job)
{
	return end(job, wean_popen(job->command, "r"), wean_pclose);
}

static int run_shell(struct job *job)
{
	return end(job, wean_popen(job->command, "rs"), wean_pclose);
}

static int run_system(struct job *job)
{
	return run_to_its_end(job, wean_system);
}

const struct peer
	peer_popen = {.name = "popen", .what = "popen, which goes through sh",
	              .absent = never_absent, .run = run_popen,
	              .at_most = ONE_PIPE | LEAKS},
	peer_popenv = {.name = "wean_popenv", .what = "wean_popenv, wean_pclose",
	               .absent = never_absent, .run = run_popenv, .at_most = ONE_PIPE},
	peer_plain = {.name = "wean_popen", .what = "wean_popen of plain words: no shell",
	              .absent = never_absent, .run = run_plain, .at_most = ONE_PIPE},
	peer_shell = {.name = "wean_popen:s", .what = "wean_popen by mode \"rs\": through sh",
	              .absent = never_absent, .run = run_shell, .at_most = ONE_PIPE},
	peer_wean_system = {.name = "wean_system",
	                    .what = "wean_system of plain words: no shell",
	                    .absent = never_absent, .run = run_system, .at_most = NO_PIPE};
