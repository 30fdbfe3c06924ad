/* peer_popen.c - a stream from a command: popen(3), and ours by each of its ways. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <wean_popen.h>

static int end(const struct job *job, FILE *stream, int (*finish)(FILE *))
{
	int said = 0, status;

	if (!stream)
		return errno;
	if (job->pipe)
		said = getc(stream) != EOF && getc(stream) == EOF ? 0 : EPROTO;
	status = finish(stream);
	if (status == -1)
		return errno;
	return status ? EPROTO : said;
}

static int run_popen(const struct job *job)
{
	return end(job, popen(job->command, "r"), pclose);
}

static int run_popenv(const struct job *job)
{
	return end(job, wean_popenv(job->argv, "r"), wean_pclose);
}

static int run_plain(const struct job *job)
{
	return end(job, wean_popen(job->command, "r"), wean_pclose);
}

static int run_shell(const struct job *job)
{
	return end(job, wean_popen(job->command, "rs"), wean_pclose);
}

const struct peer
	peer_popen = {"popen", "popen, which goes through sh", never_absent, run_popen},
	peer_popenv = {"wean_popenv", "wean_popenv, wean_pclose", never_absent, run_popenv},
	peer_plain = {"wean_popen", "wean_popen of plain words: no shell", never_absent,
	              run_plain},
	peer_shell = {"wean_popen:s", "wean_popen by mode \"rs\": through sh", never_absent,
	              run_shell};
