/* explain.c - starts a program and tells how that was done, or which step
 * failed, and why.
 *
 *    $ ./explain true | cut -d ' ' -f 1-4
 *    true was started by
 *    $ ./explain /etc
 *    step exec, errno 13:
 *    cannot run '/etc' (it is a directory): Permission denied
 *    $ printf '#!/none\n' >s; chmod +x s; ./explain ./s
 *    step exec, errno 2:
 *    cannot run './s': its interpreter '/none': No such file or directory
 */
#include <errno.h>
#include <stdio.h>
#include <wean.h>

int main(int argc, char **argv)
{
	struct wean_child child;
	char text[128];
	int error;

	if (argc < 2) {
		fprintf(stderr, "usage: explain program ...\n");
		fprintf(stderr, "wean %s\n", wean_version());
		return 2;
	}
	error = wean_spawn(&child, argv + 1, NULL);
	if (!error) {
		printf("%s was started by %s\n", argv[1],
		       wean_method_name(child.method));
		error = wean_wait(&child, -1, NULL);
		wean_release(&child);
		return error ? 1 : 0;
	}
	printf("step %s, errno %d:\n", wean_stage_name(child.stage),
	       error);
	if (wean_explain(&child, argv + 1, NULL, error, text, sizeof text)
	    == EMSGSIZE)
		printf("%s ...\n", text);
	else
		printf("%s\n", text);
	return 1;
}
