/* finalizer.c - what a collector does with children that nobody uses any more:
 * none is waited for, none is killed, and none stays as a zombie.
 *
 *    $ ./finalizer cat 'sleep 1; exit 3'
 *    forgotten: cat
 *    forgotten: sleep 1; exit 3
 *    over: 0
 *    over: 3
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <wean.h>

enum { MOST = 16 };

static struct wean_child forgotten[MOST];
static size_t n;

static void close_end(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

/* For each object that is collected, once.  A child that reads or writes
   learns that nobody is there any more; one that does neither runs on. */
static void finalize(const struct wean_child *child)
{
	struct wean_child *own = &forgotten[n++];

	*own = *child; /* moved: the other is not used again */
	close_end(&own->in);
	close_end(&own->out);
	close_end(&own->err);
}

/* After each collection, or before each start. */
static void sweep(void)
{
	struct wean_status status;
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		struct wean_child *child = &forgotten[i];
		int error = wean_wait(child, 0, &status);

		if (error == ETIMEDOUT) {
			forgotten[left++] = *child;
			continue;
		}
		if (!error)
			printf("over: %d\n", status.code);
		wean_release(child);
	}
	n = left;
}

static int start(struct wean_child *child, char *command)
{
	char shell[] = "/bin/sh", option[] = "-c";
	char *const argv[] = {shell, option, command, NULL};
	struct wean_options options = {.in = WEAN_PIPE};

	return wean_spawn(child, argv, &options);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc && i <= MOST; i++) {
		struct wean_child object;

		if (start(&object, argv[i]) != 0)
			continue;
		printf("forgotten: %s\n", argv[i]);
		finalize(&object);
	}
	while (n > 0) {
		sweep();
		poll(NULL, 0, 10); /* the program does something else */
	}
	return 0;
}
