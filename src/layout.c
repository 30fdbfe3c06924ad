#include <stddef.h>
#include <string.h>

#include <wean.h>

#define WHOLE(type) { #type, sizeof(struct type) }
#define MEMBER(type, member) { #type "." #member, offsetof(struct type, member) }

static const struct {
	const char *name;
	size_t value;
} layout[] = {
	WHOLE(wean_fd), MEMBER(wean_fd, kind), MEMBER(wean_fd, target),
	MEMBER(wean_fd, source), MEMBER(wean_fd, oflag), MEMBER(wean_fd, mode),
	MEMBER(wean_fd, reserved), MEMBER(wean_fd, path),

	WHOLE(wean_limit), MEMBER(wean_limit, resource), MEMBER(wean_limit, reserved),
	MEMBER(wean_limit, soft), MEMBER(wean_limit, hard),

	WHOLE(wean_options), MEMBER(wean_options, flags), MEMBER(wean_options, sigmask),
	MEMBER(wean_options, sigdefault), MEMBER(wean_options, sigignore),
	MEMBER(wean_options, in), MEMBER(wean_options, out), MEMBER(wean_options, err),
	MEMBER(wean_options, pgid), MEMBER(wean_options, umask),
	MEMBER(wean_options, nice), MEMBER(wean_options, pdeathsig),
	MEMBER(wean_options, dirfd), MEMBER(wean_options, ttyfd),
	MEMBER(wean_options, cgroupfd), MEMBER(wean_options, uid),
	MEMBER(wean_options, gid), MEMBER(wean_options, reserved_int),
	MEMBER(wean_options, file), MEMBER(wean_options, candidates),
	MEMBER(wean_options, env), MEMBER(wean_options, env_edit),
	MEMBER(wean_options, dir), MEMBER(wean_options, fds), MEMBER(wean_options, nfds),
	MEMBER(wean_options, groups), MEMBER(wean_options, ngroups),
	MEMBER(wean_options, limits), MEMBER(wean_options, nlimits),
	MEMBER(wean_options, reserved_ptr),

	WHOLE(wean_child), MEMBER(wean_child, pid), MEMBER(wean_child, pidfd),
	MEMBER(wean_child, in), MEMBER(wean_child, out), MEMBER(wean_child, err),
	MEMBER(wean_child, stage), MEMBER(wean_child, index),
	MEMBER(wean_child, method), MEMBER(wean_child, opaque),

	WHOLE(wean_status), MEMBER(wean_status, kind), MEMBER(wean_status, value),
	MEMBER(wean_status, core), MEMBER(wean_status, code),
	MEMBER(wean_status, user_us), MEMBER(wean_status, system_us),
	MEMBER(wean_status, maxrss_kb), MEMBER(wean_status, reserved),

	WHOLE(wean_io), MEMBER(wean_io, input), MEMBER(wean_io, input_len),
	MEMBER(wean_io, out_max), MEMBER(wean_io, err_max), MEMBER(wean_io, on_out),
	MEMBER(wean_io, on_err), MEMBER(wean_io, context), MEMBER(wean_io, timeout_ms),
	MEMBER(wean_io, grace_ms), MEMBER(wean_io, linger_ms), MEMBER(wean_io, flags),
	MEMBER(wean_io, reserved_int), MEMBER(wean_io, reserved_ptr),

	WHOLE(wean_result), MEMBER(wean_result, child), MEMBER(wean_result, status),
	MEMBER(wean_result, out), MEMBER(wean_result, out_len), MEMBER(wean_result, err),
	MEMBER(wean_result, err_len), MEMBER(wean_result, in_written),
	MEMBER(wean_result, opaque), MEMBER(wean_result, flags),
	MEMBER(wean_result, reserved),
};

size_t
wean_layout(const char *name)
{
	for (size_t i = 0; name && i < sizeof layout / sizeof layout[0]; i++)
		if (strcmp(name, layout[i].name) == 0)
			return layout[i].value;
	return (size_t)-1;
}
