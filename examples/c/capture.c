/* capture.c - runs a program and shows what it wrote, by stream.
 *
 *    $ ./capture sh -c 'echo good; echo bad >&2; exit 3'
 *    sh left with 3
 *    out, 5 bytes:
 *    good
 *    err, 4 bytes:
 *    bad
 *    $ ./capture ./missing
 *    cannot run './missing': No such file or directory
 */
#include <stdio.h>
#include <string.h>
#include <wean.h>

/* What failed: the start, or what came after it. */
static void complain(char **argv, const struct wean_result *result, int error)
{
	char text[512];

	if (result->child.stage)
		wean_explain(&result->child, argv, NULL, error, text,
		             sizeof text);
	else
		snprintf(text, sizeof text, "%s: %s", argv[0],
		         strerror(error));
	fprintf(stderr, "%s\n", text);
}

static void show(const char *stream, const char *text, size_t len)
{
	printf("%s, %zu bytes:\n", stream, len);
	fwrite(text, 1, len, stdout);
}

int main(int argc, char **argv)
{
	struct wean_result result;
	int error, code = 1;

	if (argc < 2) {
		fprintf(stderr, "usage: capture program ...\n");
		return 2;
	}
	error = wean_run(argv + 1, NULL, NULL, &result);
	if (error) {
		complain(argv + 1, &result, error);
	} else {
		code = result.status.code;
		printf("%s left with %d\n", argv[1], code);
		show("out", result.out, result.out_len);
		show("err", result.err, result.err_len);
	}
	wean_result_free(&result);
	return code;
}
