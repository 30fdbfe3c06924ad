/* options.c - runs a job as another user: with that user's groups and no
 * others, from the root directory, in a group of its own, for a minute of
 * processor time at the most, and at the lowest priority.
 *
 *    $ ./options none true
 *    options: there is no user 'none'
 *    # ./options nobody sh -c 'id -un; pwd; umask; ulimit -t; nice'
 *    nobody
 *    /
 *    0077
 *    60
 *    19
 */
#define _GNU_SOURCE
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/resource.h>
#include <wean.h>

enum { MOST = 256 };

/* Fails where the user has more groups than that. */
static int become(struct wean_options *options, const char *name,
                  unsigned groups[MOST])
{
	const struct passwd *user = getpwnam(name);
	int n = MOST;

	if (!user) {
		fprintf(stderr, "options: there is no user '%s'\n", name);
		return -1;
	}
	if (getgrouplist(name, user->pw_gid, groups, &n) < 0) {
		fprintf(stderr, "options: %s has %d groups\n", name, n);
		return -1;
	}
	options->flags |= WEAN_SET_UID | WEAN_SET_GID | WEAN_SET_GROUPS;
	options->uid = user->pw_uid;
	options->gid = user->pw_gid;
	options->groups = groups;
	options->ngroups = (size_t)n;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct wean_limit limits[] = {
		{.resource = RLIMIT_CPU, .soft = 60, .hard = 60},
		{.resource = RLIMIT_CORE, .soft = 0, .hard = 0},
	};
	struct wean_options options = {
		.flags = WEAN_NEW_GROUP | WEAN_SET_UMASK | WEAN_SET_NICE
		         | WEAN_NO_NEW_PRIVS,
		.umask = 077, .nice = 19, .dir = "/",
		.limits = limits, .nlimits = 2,
	};
	struct wean_child child;
	struct wean_status status;
	unsigned groups[MOST];
	char text[512];
	int error;

	if (argc < 3) {
		fprintf(stderr, "usage: options user program ...\n");
		return 2;
	}
	if (become(&options, argv[1], groups) < 0)
		return 1;
	error = wean_spawn(&child, argv + 2, &options);
	if (error) {
		wean_explain(&child, argv + 2, &options, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
		return 127;
	}
	error = wean_wait(&child, -1, &status);
	wean_release(&child);
	return error ? 1 : status.code;
}
