#define _XOPEN_SOURCE 700
#include <fcntl.h>

#include "probe_child.h"

int
wean_probe_write_word(void *word)
{
	*(volatile int *)word = 1;
	wean_sys_exit(0);
}

/* Shares the table of the child below, whose numbers 64 to 127 are all open. */
static int
cut_and_look(void *arg)
{
	struct cut *cut = arg;

	cut->lowest = wean_sys_close_range(3, ~0U, SYS_UNSHARE);
	if (cut->lowest == 0)
		cut->lowest = wean_sys_dup_above(0, 64);
	wean_sys_exit(0);
}

int
wean_probe_fill_and_cut(void *arg)
{
	struct cut *cut = arg;
	struct sys_clone inner = {
		.flags = SYS_VM | SYS_VFORK | SYS_FILES, .stack = cut->stack,
		.stack_size = cut->size, .run = cut_and_look, .arg = cut,
	};
	int r = wean_sys_open("/", O_RDONLY | O_DIRECTORY, 0);

	if (r > 0)
		r = wean_sys_dup_onto(r, 0);
	for (int n = 64; n < 128 && r >= 0; n++)
		r = wean_sys_dup_onto(0, n);
	if (r >= 0)
		r = cut->start(&inner);
	if (r > 0)
		wean_sys_wait(-1, r, SYS_ANY, NULL);
	else
		cut->lowest = r;
	wean_sys_exit(0);
}
