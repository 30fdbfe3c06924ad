#include <errno.h>

#include "probe.h"
#include "probe_child.h"

int
wean_is_shortage(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

/* The first child in a new PID namespace is its init, with which it would end. */
static int
ask_child(int (*start)(const struct sys_clone *), char *stack, size_t size,
          int (*run)(void *), void *arg)
{
	struct sys_clone c = { .flags = SYS_VM | SYS_VFORK, .stack = stack,
	                       .stack_size = size, .run = run, .arg = arg };
	int pid = wean_sys_children_elsewhere() ? -EAGAIN : start(&c);

	if (pid > 0)
		wean_sys_wait(-1, pid, SYS_ANY, NULL);
	return pid;
}

static enum answer
answer(int yes, int error)
{
	return yes ? ANSWER_YES : wean_is_shortage(error) ? ANSWER_UNKNOWN : ANSWER_NO;
}

enum answer
wean_probe_memory(char *stack, size_t size)
{
	int word = 0;
	int pid = ask_child(wean_sys_clone, stack, size, wean_probe_write_word, &word);

	return answer(*(volatile int *)&word == 1, -pid);
}

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

enum answer
wean_probe_cut(int (*start)(const struct sys_clone *), char *stack, size_t size)
{
	struct cut cut = { start, stack, size / 2, -1 };
	int pid = ask_child(start, stack + size / 2, size / 2, wean_probe_fill_and_cut, &cut);
	int lowest = *(volatile int *)&cut.lowest;

	return pid < 0 ? ANSWER_UNKNOWN : answer(lowest == 64, -lowest);
}
