/* glib.c - runs a program many times, so many at once, under a main loop of GLib, but
 * without its watches of children, which take a thread and a handler of SIGCHLD: the loop
 * has two descriptors of each run, its output and its end.  A run has its number as one
 * more argument; what they wrote is shown in that order.
 *
 *    $ ./glib 1000 50 echo run | sed -n '1p; 1000p; $p'
 *    run 1
 *    run 1000
 *    1000 runs, 0 failed
 *    $ ./glib 3 2 sh -c 'echo $1; sleep 5 2>&1 & exit $(($1 - 1))' sh; echo $?
 *    1
 *    2
 *    3
 *    3 runs, 2 failed
 *    1
 */
#include <errno.h>
#include <glib-unix.h>
#include <stdio.h>
#include <unistd.h>
#include <wean.h>

enum { LATER_MS = 10 };

struct run {
	struct wean_child child;
	GString *text;
	guint output; /* the source, 0 after the end of the output */
};

static struct run *runs;
static size_t count, at_once, begun, over, failed;
static char **program, number[24];
static GMainLoop *loop;

/* What read(2) says: 0 is the end of the output, < 0: there is no more for now. */
static ssize_t read_some(struct run *run)
{
	static char data[65536];
	ssize_t len = read(run->child.out, data, sizeof data);

	if (len > 0)
		g_string_append_len(run->text, data, len);
	return len;
}

static gboolean on_output(gint fd, GIOCondition condition, gpointer data)
{
	struct run *run = data;

	(void)fd, (void)condition;
	if (read_some(run) != 0)
		return G_SOURCE_CONTINUE;
	run->output = 0;
	return G_SOURCE_REMOVE;
}

static void begin_some(void);

/* What it wrote is there; the end of its output may never come, if something that it
   left behind holds the pipe open. */
static gboolean finish(gpointer data)
{
	struct run *run = data;
	struct wean_status status;
	int error;

	while (read_some(run) > 0)
		;
	error = wean_wait(&run->child, 0, &status);
	if (error == ETIMEDOUT)
		return G_SOURCE_CONTINUE;
	failed += error || status.code != 0;
	if (run->output)
		g_source_remove(run->output);
	wean_release(&run->child);
	over++;
	begin_some();
	return G_SOURCE_REMOVE;
}

/* A child that a debugger keeps is asked again later: its pidfd would wake us on and on. */
static gboolean on_end(gint fd, GIOCondition condition, gpointer data)
{
	(void)fd, (void)condition;
	if (finish(data) == G_SOURCE_CONTINUE)
		g_timeout_add(LATER_MS, finish, data);
	return G_SOURCE_REMOVE;
}

static void begin(struct run *run)
{
	struct wean_options options = {
		.in = WEAN_NULL, .out = WEAN_PIPE, .flags = WEAN_NONBLOCK | WEAN_NEED_PIDFD,
	};
	char text[512];
	int error;

	snprintf(number, sizeof number, "%td", run - runs + 1);
	run->text = g_string_new(NULL);
	error = wean_spawn(&run->child, program, &options);
	if (error) {
		wean_explain(&run->child, program, &options, error, text, sizeof text);
		fprintf(stderr, "glib: %s\n", text);
		over++;
		failed++;
		return;
	}
	run->output = g_unix_fd_add(run->child.out, G_IO_IN | G_IO_HUP, on_output, run);
	g_unix_fd_add(run->child.pidfd, G_IO_IN, on_end, run);
}

static void begin_some(void)
{
	while (begun < count && begun - over < at_once)
		begin(&runs[begun++]);
	if (over == count)
		g_main_loop_quit(loop);
}

static gboolean on_first(gpointer data)
{
	(void)data;
	begin_some();
	return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
	at_once = argc > 3 ? g_ascii_strtoull(argv[2], NULL, 10) : 0;
	if (at_once == 0) {
		fprintf(stderr, "usage: glib runs at-once program ...\n");
		return 2;
	}
	count = g_ascii_strtoull(argv[1], NULL, 10);
	runs = g_new0(struct run, count);
	for (int i = 3; i < argc; i++)
		argv[i - 3] = argv[i];
	argv[argc - 3] = number;
	argv[argc - 2] = NULL;
	program = argv;
	loop = g_main_loop_new(NULL, FALSE);
	g_idle_add(on_first, NULL);
	g_main_loop_run(loop);
	for (size_t i = 0; i < count; i++)
		fwrite(runs[i].text->str, 1, runs[i].text->len, stdout);
	printf("%zu runs, %zu failed\n", count, failed);
	return failed != 0;
}
