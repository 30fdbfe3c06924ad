/* epoll.c - runs a program many times, so many at once, in one thread and without a
 * handler of SIGCHLD: an epoll(7) has two descriptors of each run, its output and its end.
 * A run has its number as one more argument; what they wrote is shown in that order.
 *
 *    $ ./epoll 1000 50 echo run | sed -n '1p; 1000p; $p'
 *    run 1
 *    run 1000
 *    1000 runs, 0 failed
 *    $ ./epoll 3 2 sh -c 'echo $1; sleep 5 2>&1 & exit $(($1 - 1))' sh; echo $?
 *    1
 *    2
 *    3
 *    3 runs, 2 failed
 *    1
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <wean.h>

struct run {
	struct wean_child child;
	char *text;
	size_t len, is_kept;
};

enum { OUTPUT, END };
enum { LATER_MS = 10 };

static struct run *runs;
static size_t count, begun, over, failed, kept;
static int loop;

static void *no_less(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "epoll: no memory\n");
	exit(1);
}

static void keep(struct run *run, const char *data, size_t len)
{
	run->text = no_less(realloc(run->text, run->len + len));
	for (size_t i = 0; i < len; i++)
		run->text[run->len++] = data[i];
}

static void watch(size_t number, int fd, unsigned what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 2 * number + what};

	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event)) {
		perror("epoll");
		exit(1);
	}
}

static void forget(int fd)
{
	epoll_ctl(loop, EPOLL_CTL_DEL, fd, NULL);
}

/* 0: there is no more, for now or for ever. */
static int read_some(struct run *run)
{
	static char data[65536];
	ssize_t len = read(run->child.out, data, sizeof data);

	if (len > 0)
		keep(run, data, (size_t)len);
	else if (len == 0)
		forget(run->child.out); /* or it would be ready for ever */
	return len > 0;
}

/* What it wrote is there; the end of its output may never come, if something that it
   left behind holds the pipe open.  A child that a debugger keeps is asked again later:
   its pidfd would wake us on and on. */
static void finish(struct run *run)
{
	struct wean_status status;
	int error;

	while (read_some(run))
		;
	forget(run->child.pidfd);
	error = wean_wait(&run->child, 0, &status);
	kept -= run->is_kept;
	kept += run->is_kept = error == ETIMEDOUT;
	if (run->is_kept)
		return;
	failed += error || status.code != 0;
	forget(run->child.out);
	wean_release(&run->child);
	over++;
}

static void begin(size_t number, char **argv, char *last)
{
	struct wean_options options = {
		.in = WEAN_NULL, .out = WEAN_PIPE, .flags = WEAN_NONBLOCK | WEAN_NEED_PIDFD,
	};
	struct run *run = &runs[number];
	char text[512];
	int error;

	snprintf(last, 24, "%zu", number + 1);
	error = wean_spawn(&run->child, argv, &options);
	if (error) {
		wean_explain(&run->child, argv, &options, error, text, sizeof text);
		fprintf(stderr, "epoll: %s\n", text);
		over++;
		failed++;
		return;
	}
	watch(number, run->child.out, OUTPUT);
	watch(number, run->child.pidfd, END);
}

/* One of the same round may have been the end of the run. */
static void serve(const struct epoll_event *event)
{
	struct run *run = &runs[event->data.u64 / 2];

	if (run->child.pidfd < 0)
		return;
	if (event->data.u64 % 2 == OUTPUT)
		read_some(run);
	else
		finish(run);
}

static void run_all(size_t at_once, char **argv, char *last)
{
	struct epoll_event events[64];

	for (;;) {
		while (begun < count && begun - over < at_once)
			begin(begun++, argv, last);
		if (over == count)
			return;
		for (int n = epoll_wait(loop, events, 64, kept ? LATER_MS : -1); n > 0; )
			serve(&events[--n]);
		for (size_t i = 0; kept && i < begun; i++)
			if (runs[i].is_kept)
				finish(&runs[i]);
	}
}

int main(int argc, char **argv)
{
	size_t at_once = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	char number[24];

	if (at_once == 0) {
		fprintf(stderr, "usage: epoll runs at-once program ...\n");
		return 2;
	}
	count = strtoul(argv[1], NULL, 10);
	runs = no_less(calloc(count + 1, sizeof *runs));
	loop = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 3; i < argc; i++)
		argv[i - 3] = argv[i];
	argv[argc - 3] = number;
	argv[argc - 2] = NULL;
	run_all(at_once, argv, number);
	for (size_t i = 0; i < count; i++)
		fwrite(runs[i].text, 1, runs[i].len, stdout);
	printf("%zu runs, %zu failed\n", count, failed);
	return failed != 0;
}
