/* layout.c - tells where the members of a struct are, as a foreign-function
 * interface has to know.
 *
 *    $ ./layout wean_fd.kind wean_fd.target wean_fd.path wean_status.code
 *    0 wean_fd.kind
 *    4 wean_fd.target
 *    24 wean_fd.path
 *    12 wean_status.code
 *    $ ./layout wean_fd.fd
 *    there is no wean_fd.fd
 */
#include <stdio.h>
#include <wean.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t at = wean_layout(argv[i]);

		if (at == (size_t)-1)
			printf("there is no %s\n", argv[i]);
		else
			printf("%zu %s\n", at, argv[i]);
	}
	return 0;
}
