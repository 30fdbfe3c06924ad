#include <stddef.h>

#include "closer.h"
#include "launch.h"

const char *
wean_stage_name(int stage)
{
	static const char *const names[] = {
		"none", "options", "memory", "pipe", "launch", "closefds", "fd", "open",
		"session", "group", "tty", "cgroup", "umask", "limit", "nice", "ids", "dir",
		"pdeathsig", "privs", "signals", "exec",
	};

	if (stage < 0 || (size_t)stage >= sizeof names / sizeof names[0])
		return "unknown";
	return names[stage];
}

#define CLOSED_BY(launch) \
	{ launch, launch "+unshare", launch "+close_range", launch "+closefrom", \
	  launch "+procfs", launch "+scan" }

const char *
wean_method_name(int method)
{
	static const char *const names[][6] = {
		[RUNG_CLONE3] = CLOSED_BY("clone3"),
		[RUNG_CLONE] = CLOSED_BY("clone"),
		[RUNG_CLONE3_COPY] = CLOSED_BY("clone3copy"),
		[RUNG_FORK] = CLOSED_BY("fork"),
		[RUNG_POSIX_SPAWN] = CLOSED_BY("posix_spawn"),
	};
	unsigned launched = (unsigned)method & 0xff, closed = (unsigned)method >> 8;

	if (launched == 0 && closed == 0)
		return "none";
	if (launched < RUNG_CLONE3 || launched > RUNG_POSIX_SPAWN || closed > CLOSE_SCAN)
		return "unknown";
	return names[launched][closed];
}

const char *
wean_version(void)
{
	return PACKAGE_VERSION;
}
