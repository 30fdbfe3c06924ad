/* build.c - puts a command together, shows it as a line for a shell, and runs it.
 *
 *    $ ./build
 *    cd / && umask 077 && env -i 'GREETING=it'\''s me' sh -c 'echo $GREETING; umask'
 *    it's me
 *    0077
 *    ended with 0
 */
#include <stdio.h>
#include <string.h>
#include <wean_cmd.h>

/* What went wrong on the way sticks: the last call tells of it too. */
static int build(wean_cmd *cmd)
{
	wean_cmd_arg(cmd, "-c");
	wean_cmd_arg(cmd, "echo $GREETING; umask");
	wean_cmd_clearenv(cmd);
	wean_cmd_setenv(cmd, "GREETING", "it's me");
	wean_cmd_set(cmd, "umask", 077);
	return wean_cmd_dir(cmd, "/");
}

static int show(wean_cmd *cmd)
{
	char line[200];
	int error = wean_cmd_tostring(cmd, line, sizeof line);

	printf("%s\n", line);
	return error;
}

static int run(wean_cmd *cmd)
{
	struct wean_result result;
	int error = wean_cmd_run(cmd, NULL, &result);

	if (!error) {
		fwrite(result.out, 1, result.out_len, stdout);
		printf("ended with %d\n", result.status.code);
	}
	wean_result_free(&result);
	return error;
}

int main(void)
{
	wean_cmd *cmd = wean_cmd_new("sh");
	int error;

	if (!cmd) {
		perror("build");
		return 1;
	}
	error = build(cmd);
	if (!error)
		error = show(cmd);
	if (!error)
		error = run(cmd);
	wean_cmd_free(cmd);
	if (error)
		fprintf(stderr, "%s\n", strerror(error));
	return error != 0;
}
