/* A command, between cmd.c and cmd_text.c. */
#ifndef WEAN_SRC_CMD_H
#define WEAN_SRC_CMD_H

#include <wean_cmd.h>

struct wean_cmd {
	int error;        /* the first one */
	int cleared;      /* the environment was */
	char **argv, **edits;
	size_t argc, nedits;
	char *dir;
	struct wean_fd *fds;
	struct wean_limit *limits;
	struct wean_options o; /* with nfds and nlimits, and without the lists */
};

#endif
