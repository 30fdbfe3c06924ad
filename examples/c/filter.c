/* filter.c - reads all of its input, has a program work on it, and shows what
 * that made of it.  Both may be of any size: the program is fed and read at
 * the same time.
 *
 *    $ seq 200000 | ./filter sort -rn | tail -n 1
 *    1
 *    $ seq 200000 | ./filter head -n 1
 *    1
 *    the rest of the input was not wanted
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wean.h>

/* NULL: no memory. */
static char *read_all(FILE *stream, size_t *len)
{
	size_t size = 65536, got;
	char *text = malloc(size), *larger;

	*len = 0;
	while (text && (got = fread(text + *len, 1, size - *len, stream)) > 0) {
		*len += got;
		if (*len < size)
			continue;
		larger = realloc(text, size *= 2);
		if (!larger)
			free(text);
		text = larger;
	}
	return text;
}

int main(int argc, char **argv)
{
	struct wean_options options = {.err = WEAN_INHERIT};
	struct wean_io io = {0};
	struct wean_result result;
	char *input;
	int error;

	if (argc < 2) {
		fprintf(stderr, "usage: filter program ...\n");
		return 2;
	}
	input = read_all(stdin, &io.input_len);
	if (!input)
		return 1;
	io.input = input;
	error = wean_run(argv + 1, &options, &io, &result);
	if (error)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(error));
	if (result.out)
		fwrite(result.out, 1, result.out_len, stdout);
	if (result.flags & WEAN_INPUT_UNREAD)
		printf("the rest of the input was not wanted\n");
	wean_result_free(&result);
	free(input);
	return error ? 1 : result.status.code;
}
