#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>

#include "probe.h"

static struct sys_clone
question(char *stack, size_t size, int (*run)(void *), void *arg)
{
	return (struct sys_clone){ .flags = SYS_VM | SYS_VFORK, .stack = stack,
	                           .stack_size = size, .run = run, .arg = arg };
}

int
wean_is_shortage(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

/* The first child in a new PID namespace is its init, with which it would end. */
static int
ask_child(int (*start)(const struct sys_clone *), const struct sys_clone *clone)
{
	int pid = wean_sys_children_elsewhere() ? -EAGAIN : start(clone);

	if (pid > 0)
		wean_sys_wait(-1, pid, SYS_ANY, NULL);
	return pid;
}

static enum answer
answer(int yes, int error)
{
	return yes ? ANSWER_YES : wean_is_shortage(error) ? ANSWER_UNKNOWN : ANSWER_NO;
}

/* ---- memory ---- */

static int
write_word(void *word)
{
	*(volatile int *)word = 1;
	wean_sys_exit(0);
}

enum answer
wean_probe_memory(char *stack, size_t size)
{
	volatile int word = 0;
	struct sys_clone c = question(stack, size, write_word, (void *)&word);
	int pid = ask_child(wean_sys_clone, &c);

	return answer(word == 1, -pid);
}

/* ---- the cut ---- */

int
wean_kernel_may_cut_badly(void)
{
	static const int fixed[][3] = {
		{ 5, 10, 225 }, { 5, 15, 166 }, { 6, 1, 107 }, { 6, 6, 48 }, { 6, 10, 7 },
	};
	int v[3];

	wean_sys_kernel(v);
	if ((v[0] > 0 && v[0] < 5) || (v[0] == 5 && v[1] < 9))
		return 0; /* has no such call */
	if (v[0] > 6 || (v[0] == 6 && v[1] >= 11))
		return 0;
	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
		if (v[0] == fixed[i][0] && v[1] == fixed[i][1])
			return v[2] < fixed[i][2];
	return 1;
}

struct cut {
	int (*start)(const struct sys_clone *);
	char *stack; /* of the inner child */
	size_t size;
	int lowest;
};

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

static int
fill_and_cut(void *arg)
{
	struct cut *cut = arg;
	struct sys_clone inner = question(cut->stack, cut->size, cut_and_look, cut);
	int r = wean_sys_open("/", O_RDONLY | O_DIRECTORY, 0);

	if (r > 0)
		r = wean_sys_dup_onto(r, 0);
	for (int n = 64; n < 128 && r >= 0; n++)
		r = wean_sys_dup_onto(0, n);
	inner.flags |= SYS_FILES;
	if (r >= 0)
		r = cut->start(&inner);
	if (r > 0)
		wean_sys_wait(-1, r, SYS_ANY, NULL);
	else
		cut->lowest = r;
	wean_sys_exit(0);
}

enum answer
wean_probe_cut(int (*start)(const struct sys_clone *), char *stack, size_t size)
{
	struct cut cut = { start, stack, size / 2, -1 };
	struct sys_clone c = question(stack + size / 2, size / 2, fill_and_cut, &cut);
	int pid = ask_child(start, &c);
	int lowest = *(volatile int *)&cut.lowest;

	return pid < 0 ? ANSWER_UNKNOWN : answer(lowest == 64, -lowest);
}
