/* pipeline.c - feeds a text to a pipeline and shows what comes out of it.
 *
 *    $ ./pipeline 'pear fig pear' tr ' ' '\n' : sort -u : cat
 *    fig
 *    pear
 *    $ ./pipeline 'pear' cat : grep fig : cat
 *    stage 2 ended with 1
 *    $ ./pipeline 'pear' cat : /missing/grep fig : cat
 *    stage 2: cannot run '/missing/grep': No such file or directory
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <wean.h>

enum { MOST = 16 };

static struct wean_child children[MOST];
static struct wean_options options[MOST];
static char **argvs[MOST];

/* Cuts the words at each ":"; 0: there are too many, or an empty one. */
static size_t cut(char **words)
{
	size_t n = 0;

	for (argvs[n] = words; *words; words++)
		if (strcmp(*words, ":") == 0) {
			*words = NULL;
			if (++n == MOST)
				return 0;
			argvs[n] = words + 1;
		}
	return n + 1;
}

/* The one that could not be started has a stage. */
static void explain(size_t n, int error)
{
	char text[512];

	for (size_t i = 0; i < n; i++)
		if (children[i].stage) {
			wean_explain(&children[i], argvs[i], &options[i], error, text,
			             sizeof text);
			printf("stage %zu: %s\n", i + 1, text);
		}
}

/* The first one's input and the last one's output are the ends of the whole: in one
   struct they are fed and read at the same time. */
static int talk(const char *text, size_t n)
{
	struct wean_child *last = &children[n - 1];
	struct wean_io io = { .input = text, .input_len = strlen(text) };
	struct wean_result result = { 0 };
	int error;

	if (n > 1) {
		last->in = children[0].in;
		children[0].in = -1;
	}
	error = wean_communicate(last, &io, &result);
	if (!error)
		fwrite(result.out, 1, result.out_len, stdout);
	wean_result_free(&result);
	return error;
}

static void finish(size_t n)
{
	struct wean_status statuses[MOST];
	int error = wean_wait_all(children, n, -1, statuses);

	for (size_t i = 0; i < n; i++) {
		if (!error && statuses[i].code)
			printf("stage %zu ended with %d\n", i + 1, statuses[i].code);
		wean_release(&children[i]);
	}
}

int main(int argc, char **argv)
{
	size_t n = argc > 2 ? cut(argv + 2) : 0;
	int error;

	if (n == 0) {
		fprintf(stderr, "usage: pipeline text program ... : program ...\n");
		return 2;
	}
	options[0].in = options[n - 1].out = WEAN_PIPE;
	error = wean_pipeline(children, argvs, options, n);
	if (error) {
		explain(n, error);
		return 1;
	}
	error = talk(argv[1], n);
	if (error)
		fprintf(stderr, "%s\n", strerror(error));
	finish(n);
	return error != 0;
}
