/* wait.c - runs shell commands side by side, for so many milliseconds at the
 * most, and tells how each of them ended.
 *
 *    $ ./wait 60000 'exit 3' 'kill -TERM $$' true
 *    3 exit 3
 *    143 kill -TERM $$
 *    0 true
 *    $ ./wait 500 true 'sleep 60'
 *    0 true
 *    still runs: sleep 60
 */
#include <stdio.h>
#include <stdlib.h>
#include <wean.h>

/* A command that cannot be started leaves a struct without a child, for which
   wean_wait_all() does not wait. */
static void start(struct wean_child *child, char *command)
{
	char shell[] = "/bin/sh", option[] = "-c", text[512];
	char *const argv[] = {shell, option, command, NULL};
	struct wean_options options = {.flags = WEAN_NEW_GROUP};
	int error = wean_spawn(child, argv, &options);

	if (error) {
		wean_explain(child, argv, &options, error, text, sizeof text);
		fprintf(stderr, "%s\n", text);
	}
}

/* Whatever still runs is ended. */
static void tell(struct wean_child *child, const char *command,
                 const struct wean_status *status)
{
	if (child->pid == 0) {
		printf("not started: %s\n", command);
	} else if (status->kind == 0) {
		printf("still runs: %s\n", command);
		wean_stop(child, 1000, NULL);
	} else {
		printf("%d %s\n", status->code, command);
	}
	wean_release(child);
}

int main(int argc, char **argv)
{
	struct wean_child children[64];
	struct wean_status statuses[64];
	int limit, n = argc - 2;

	if (n < 1 || n > 64 || (limit = atoi(argv[1])) <= 0) {
		fprintf(stderr, "usage: wait milliseconds command ...\n");
		return 2;
	}
	for (int i = 0; i < n; i++)
		start(&children[i], argv[i + 2]);
	wean_wait_all(children, (size_t)n, limit, statuses);
	for (int i = 0; i < n; i++)
		tell(&children[i], argv[i + 2], &statuses[i]);
	return 0;
}
