/* poll.c - copies what a program writes, until the program is over.
 * Something that it left behind may hold its output open: that is not
 * waited for.
 *
 *    $ ./poll sh -c 'echo text; sleep 5 & exit 3'; echo $?
 *    text
 *    3
 */
#define _XOPEN_SOURCE 700
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <wean.h>

/* 0: no more will come. */
static int copy_some(int fd)
{
	static char data[65536];
	ssize_t len = read(fd, data, sizeof data);

	if (len <= 0)
		return 0;
	fwrite(data, 1, (size_t)len, stdout);
	return 1;
}

/* poll(2) skips a negative number: where there is no pidfd, the end of the
   output has to do. */
static void copy(const struct wean_child *child)
{
	struct pollfd fds[2] = {
		{.fd = child->out, .events = POLLIN},
		{.fd = child->pidfd, .events = POLLIN},
	};

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents) {
			if (!copy_some(fds[0].fd))
				fds[0].fd = -1;
		} else {
			return; /* over, and nothing is left in the pipe */
		}
	}
}

int main(int argc, char **argv)
{
	struct wean_options options = {.out = WEAN_PIPE};
	struct wean_child child;
	struct wean_status status;
	char text[512];
	int error;

	if (argc < 2) {
		fprintf(stderr, "usage: poll program ...\n");
		return 2;
	}
	error = wean_spawn(&child, argv + 1, &options);
	if (error) {
		wean_explain(&child, argv + 1, &options, error, text,
		             sizeof text);
		fprintf(stderr, "%s\n", text);
		return 127;
	}
	copy(&child);
	error = wean_wait(&child, -1, &status);
	wean_release(&child);
	return error ? 1 : status.code;
}
