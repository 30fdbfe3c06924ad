/* What the parts of the command share. */
#ifndef WEAN_MAIN_H
#define WEAN_MAIN_H

#include <stddef.h>

#include <wean.h>

enum { EXIT_LIMIT = 124, EXIT_OURS, EXIT_NOT_STARTED, EXIT_NOT_FOUND };

struct command {
	char **argv;
	struct wean_options opt;
	struct wean_fd *fds;      /* these four have room for an entry an argument */
	struct wean_limit *limits;
	char **env_edit;
	unsigned *groups;
	size_t nedits;
	int group_given;          /* by --gid: --uid leaves it then */
	int verbose, json;
	int limit_ms, grace_ms;   /* limit_ms < 0: none */
	int captures;
	size_t most;              /* bytes of each output; 0: all */
};

/* What became of it. */
struct end {
	const struct wean_result *result;
	int code;                 /* what the command leaves with */
	const char *complaint;    /* it did not start: why; else NULL */
	int error;
	long long elapsed_us;
};

/* main_run.c: starts it, waits for it, and gives what the command leaves with. */
int command_run(const struct command *);

/* main_json.c: one line on standard error. */
void command_tell_json(const struct command *, const struct end *);

#endif
