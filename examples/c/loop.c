/* loop.c - an event loop of one's own: the lines of both streams of a program
 * and its end, whichever comes first.
 *
 *    $ ./loop sh -c 'echo one; echo two >&2; exit 3' | sort
 *    err: two
 *    out: one
 *    over: 3
 *    $ ./loop sh -c 'echo one; sleep 5 & exit 0'
 *    out: one
 *    over: 0
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <wean.h>

/* As far as lines are there.  0: more may come. */
static int show_lines(wean_reader *reader, const char *name)
{
	const char *line;
	size_t len;
	int error;

	do {
		error = wean_read_line(reader, &line, &len);
		if (line)
			printf("%s: %s\n", name, line);
	} while (line);
	return error == EAGAIN ? 0 : -1;
}

/* poll(2) skips a negative number.  Something that the program left behind
   may hold the pipes open, so their end is not waited for: when the program is
   over, all that it wrote is there at once.  Where there is no pidfd, the end
   of the streams has to do. */
static void loop(const struct wean_child *child, wean_reader *const readers[2])
{
	static const char *const names[2] = {"out", "err"};
	struct pollfd fds[3] = {
		{.fd = child->out, .events = POLLIN},
		{.fd = child->err, .events = POLLIN},
		{.fd = child->pidfd, .events = POLLIN},
	};

	while (fds[0].fd >= 0 || fds[1].fd >= 0 || fds[2].fd >= 0) {
		if (poll(fds, 3, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++)
			if (fds[i].revents && show_lines(readers[i], names[i]))
				fds[i].fd = -1;
		if (fds[2].revents && !fds[0].revents && !fds[1].revents)
			return;
	}
}

int main(int argc, char **argv)
{
	struct wean_options options = {
		.out = WEAN_PIPE, .err = WEAN_PIPE, .flags = WEAN_NONBLOCK,
	};
	struct wean_child child;
	struct wean_status status;
	wean_reader *readers[2] = {NULL, NULL};

	if (argc < 2) {
		fprintf(stderr, "usage: loop program ...\n");
		return 2;
	}
	if (wean_spawn(&child, argv + 1, &options)
	    || wean_reader_new(&readers[0], child.out, 0)
	    || wean_reader_new(&readers[1], child.err, 0)) {
		fprintf(stderr, "loop: cannot start %s\n", argv[1]);
		return 1;
	}
	loop(&child, readers);
	if (wean_wait(&child, -1, &status) == 0)
		printf("over: %d\n", status.code);
	wean_reader_free(readers[0]);
	wean_reader_free(readers[1]);
	wean_release(&child);
	return 0;
}
