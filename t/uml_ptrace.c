/* uml_ptrace.c - loaded before user-mode Linux, which sets the floating-point registers of
   its processes by a buffer of 2,696 bytes.  Where the processor has more state (AMX), the
   kernel takes no part of it: EFAULT, and the machine panics before its init runs.  Then
   the rest is filled up with what the process has. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { XSTATE = 0x202 }; /* NT_X86_XSTATE */

static long set_all(int pid, const struct iovec *some)
{
	static char state[1 << 16];
	struct iovec all = { state, sizeof state };

	if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, XSTATE, &all))
		return -1;
	memcpy(state, some->iov_base, some->iov_len < all.iov_len ? some->iov_len : all.iov_len);
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, XSTATE, &all);
}

/* As libc declares it.  What is peeked comes by a pointer from the kernel. */
long ptrace(enum __ptrace_request request, ...)
{
	va_list args;
	long r, word;

	va_start(args, request);
	int pid = va_arg(args, int);
	long what = va_arg(args, long);
	void *data = va_arg(args, void *);
	va_end(args);
	int peeks = request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA ||
	            request == PTRACE_PEEKUSER;
	r = syscall(SYS_ptrace, request, pid, what, peeks ? &word : data);
	if (peeks)
		return r < 0 ? r : word;
	if (r < 0 && errno == EFAULT && request == PTRACE_SETREGSET && what == XSTATE)
		return set_all(pid, data);
	return r;
}
