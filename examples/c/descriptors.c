/* descriptors.c - runs a program whose output and errors go to a file and
 * which reads a secret from descriptor 3: neither its arguments nor its
 * environment show the secret, and no other child is given it.
 *
 *    $ ./descriptors log sesame sh -c 'read -r word <&3; echo "$word" >&2'
 *    $ cat log
 *    sesame
 *    $ ./descriptors /none/log sesame true
 *    cannot open '/none/log' as descriptor 1: No such file or directory
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wean.h>

/* The read end of a pipe that holds the text and a newline.  A pipe has
   room for PIPE_BUF bytes, so the writes do not wait. */
static int pipe_with(const char *text)
{
	size_t len = strlen(text);
	int ends[2];

	if (len >= PIPE_BUF) {
		errno = EMSGSIZE;
		return -1;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	if (write(ends[1], text, len) < 0 || write(ends[1], "\n", 1) < 0) {
		close(ends[0]);
		ends[0] = -1;
	}
	close(ends[1]);
	return ends[0];
}

int main(int argc, char **argv)
{
	struct wean_fd fds[] = {
		{.kind = WEAN_OPEN, .target = 1,
		 .oflag = O_WRONLY | O_CREAT | O_APPEND},
		{.kind = WEAN_SAME, .target = 2, .source = 1},
		{.kind = WEAN_DUP, .target = 3},
	};
	struct wean_options options = {.fds = fds, .nfds = 3};
	struct wean_child child;
	struct wean_status status;
	char text[512];
	int error;

	if (argc < 4) {
		fprintf(stderr, "usage: descriptors file text program ...\n");
		return 2;
	}
	fds[0].path = argv[1];
	fds[2].source = pipe_with(argv[2]);
	if (fds[2].source < 0) {
		perror("descriptors");
		return 1;
	}
	error = wean_spawn(&child, argv + 3, &options);
	if (error) {
		wean_explain(&child, argv + 3, &options, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
		return 127;
	}
	close(fds[2].source);
	error = wean_wait(&child, -1, &status);
	wean_release(&child);
	return error ? 1 : status.code;
}
