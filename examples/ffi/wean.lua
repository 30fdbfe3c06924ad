-- wean.lua - wean for LuaJIT, by its foreign-function interface alone.
--
--    > wean = require "wean"            -- libwean.so.0 is where the loader looks
--
--    > wean.run({ "sort", "-r" }, nil, { input = "a\nb\n", timeout_ms = 5000 }).out
--    b
--    a
--    > wean.spawn{ "./missing" }
--    nil	cannot run './missing': No such file or directory	2
--
--    > c = assert(wean.spawn({ "ls", "/" }, { out = wean.PIPE, dir = "/" }))
--    > for line in c:lines() do print(line) end
--    > c:wait()                         -- as os.execute tells it
--    true	exit	0
--
-- wean.spawn(argv [, options]): a child, which is the struct wean_child itself: c.pid,
--   c.pidfd, c.out.  options and io are tables whose members have the names of those of the
--   structs, see man 3 wean_options and wean_run; flags: wean.NEW_GROUP + wean.SET_UMASK.
--   Where the member is a list, so is the value: env_edit = { "A=1", "B" },
--   fds = { { kind = wean.OPEN, target = 3, path = "/etc/passwd" } }.
-- c:wait([ms]), c:kill(sig), c:kill_group(sig), c:stop(grace_ms), c:lines(), c:close().
-- wean.poll(children, ms): which of them are over, by their pidfds.  A loop that has a
--   poll of its own takes the pidfds into that, and calls c:wait(0) then.
-- wean.run(argv [, options [, io]]): a table with out, err, ok, kind, code, timed_out ...
--   What fails gives nil, a message, an errno; after an error of a child that was started
--   comes the table.
--
-- What another runtime has to do alike is marked with a star.
local ffi = require "ffi"
local bit = require "bit"

-- * The structs, by hand: they have no padding on any machine, and need no header.
local structs = [[
struct wean_fd {
	int kind, target, source, oflag;
	unsigned mode;
	int reserved;
	const char *path;
};
struct wean_limit {
	int resource, reserved;
	unsigned long long soft, hard;
};
struct wean_options {
	unsigned long long flags, sigmask, sigdefault, sigignore;
	int in, out, err, pgid, umask, nice, pdeathsig, dirfd, ttyfd, cgroupfd;
	unsigned uid, gid;
	int reserved_int[8];
	const char *file;
	const char *const *candidates, *const *env, *const *env_edit;
	const char *dir;
	const struct wean_fd *fds;
	size_t nfds;
	const unsigned *groups;
	size_t ngroups;
	const struct wean_limit *limits;
	size_t nlimits;
	const void *reserved_ptr[7];
};
struct wean_child {
	int pid, pidfd, in, out, err, stage, index, method, opaque[16];
};
struct wean_status {
	int kind, value, core, code;
	long long user_us, system_us, maxrss_kb, reserved[3];
};
struct wean_io {
	const void *input;
	size_t input_len, out_max, err_max;
	void *on_out, *on_err, *context;
	int timeout_ms, grace_ms, linger_ms;
	unsigned flags;
	int reserved_int[4];
	const void *reserved_ptr[4];
};
struct wean_result {
	struct wean_child child;
	struct wean_status status;
	char *out;
	size_t out_len;
	char *err;
	size_t err_len, in_written, opaque[9];
	unsigned flags;
	int reserved[3];
};
]]

ffi.cdef(structs)
ffi.cdef [[
size_t wean_layout(const char *name);
int wean_spawn(struct wean_child *, const char *const argv[], const struct wean_options *);
int wean_explain(const struct wean_child *, const char *const argv[],
                 const struct wean_options *, int error, char *text, size_t size);
int wean_wait(struct wean_child *, int timeout_ms, struct wean_status *);
int wean_kill(const struct wean_child *, int sig);
int wean_kill_group(const struct wean_child *, int sig);
int wean_stop(struct wean_child *, int grace_ms, struct wean_status *);
void wean_release(struct wean_child *);
int wean_run(const char *const argv[], const struct wean_options *, const struct wean_io *,
             struct wean_result *);
void wean_result_free(struct wean_result *);
typedef struct wean_reader wean_reader;
int wean_reader_new(wean_reader **, int fd, size_t max_record);
int wean_read_line(wean_reader *, const char **data, size_t *len);
void wean_reader_free(wean_reader *);

struct wean_pollfd { int fd; short events, revents; };
int wean_lua_poll(struct wean_pollfd *, unsigned long n, int timeout_ms) __asm__("poll");
int close(int fd);
char *strerror(int error);
]]
local lib = ffi.load("libwean.so.0")

-- * Before anything else: a struct that differs from the library's would be read and written
-- where it is not.  The names are those of the text above, so none is forgotten.
local function check(name, here)
	local there = tonumber(ffi.cast("intptr_t", lib.wean_layout(name)))
	if there ~= here then
		error(("this binding does not fit the library: %s is %d here and %s there"):format(
			name, here, there == -1 and "unknown" or there), 0)
	end
end

for struct, body in structs:gmatch("struct (wean_%w+) (%b{})") do
	local type = "struct " .. struct
	for declaration in body:gmatch("[^{};]+") do
		for member in (declaration .. ","):gmatch("([%w_]+)[%[%d%]]*,") do
			check(struct .. "." .. member, ffi.offsetof(type, member))
		end
	end
	check(struct, ffi.sizeof(type))
end

local wean = {
	INHERIT = 1, NULL = 2, PIPE = 3, MERGE = 4, CLOSED = 5, DUP = 6, KEEP = 7, OPEN = 8,
	SAME = 9,
	NEW_GROUP = 1, JOIN_GROUP = 2, NEW_SESSION = 4, CONTROL_TTY = 8, FOREGROUND = 0x10,
	SET_UMASK = 0x20, SET_NICE = 0x40, SET_UID = 0x80, SET_GID = 0x100, SET_GROUPS = 0x200,
	NO_NEW_PRIVS = 0x400, IN_CGROUP = 0x800, DIR_FD = 0x1000, NONBLOCK = 0x2000,
	CHILD_PATH = 0x4000, SHELL_SCRIPT = 0x8000, KEEP_SIGMASK = 0x10000,
	KEEP_IGNORED = 0x20000, KEEP_SIGNALS = 0x30000, RESET_SIGNALS = 0x40000,
	INHERIT_ALL = 0x80000, STDIO_AS_IS = 0x100000, NO_SHARED_MEMORY = 0x200000,
	NEED_PIDFD = 0x400000, EINTR = 0x1000000,
}

-- ---- what is handed in ----------------------------------------------------------

-- * What a struct points to must live until the call; LuaJIT does not see that a struct
-- points to it.  So all of it is in one table, out of which the call then gets its arguments.
local function keep(kept, object)
	kept[#kept + 1] = object
	return object
end

-- * C would end it at its first zero byte.
local function word(value)
	if type(value) == "string" and value:find("\0", 1, true) then
		error("a word has a zero byte", 0)
	end
	return value
end

local function words(kept, values)
	local list = keep(kept, ffi.new("const char *[?]", #values + 1)) -- the last is NULL
	for i = 1, #values do
		list[i - 1] = keep(kept, word(tostring(values[i])))
	end
	return list
end

-- * C takes another number where one does not fit: 2^32, as a uid, would be root.
local function assign(to, name, value)
	to[name] = word(value)
	local there = to[name]
	if type(value) == "number" then
		there = tonumber(there)
	end
	if type(value) ~= "string" and tonumber(value) and there ~= value then
		error(("%s: it can't be %s"):format(name, tostring(value)), 0)
	end
end

local function array(element)
	return function(kept, values)
		local list = keep(kept, ffi.new(element .. "[?]", #values))
		for i = 1, #values do
			if type(values[i]) == "table" then
				for name, member in pairs(values[i]) do
					assign(list[i - 1], name, member)
				end
			else
				assign(list, i - 1, values[i])
			end
		end
		return list
	end
end

local lists = { candidates = words, env = words, env_edit = words }
local counted = {
	fds = array "struct wean_fd",
	groups = array "unsigned",
	limits = array "struct wean_limit",
}

-- A name that is no member is an error.
local function set(kept, struct, members)
	keep(kept, members)
	for name, value in pairs(members or {}) do
		local make = lists[name] or counted[name]
		if make then
			struct[name] = make(kept, value)
		elseif name == "input" then
			struct.input = value
		else
			assign(struct, name, value)
		end
		if counted[name] then
			struct["n" .. name] = #value
		end
	end
	return struct
end

local function request(argv, options)
	local r = {}
	r.argv = words(r, argv)
	r.options = set(r, ffi.new("struct wean_options"), options)
	return r
end

-- ---- what comes back ------------------------------------------------------------

local function failure(error)
	return nil, ffi.string(ffi.C.strerror(error)), error
end

local function not_started(child, r, error)
	local text = ffi.new("char[1024]")
	lib.wean_explain(child, r.argv, r.options, error, text, 1024)
	return nil, ffi.string(text), error
end

local kinds = { "exit", "signal" }

local function ended(error, status)
	if error ~= 0 then
		return failure(error)
	end
	local known = status.kind == 1 or status.kind == 2
	return known and status.code == 0 or nil, known and kinds[status.kind] or "unknown",
		known and status.value or 255
end

local function done(error)
	if error ~= 0 then
		return failure(error)
	end
	return true
end

-- ---- children -------------------------------------------------------------------

-- * A child that was dropped is to be reaped once it is over, and a finalizer does not wait:
-- it is kept here until then.  A struct may be moved, as long as one alone is used.
local left = {}

local function reap()
	for i = #left, 1, -1 do
		if lib.wean_wait(left[i], 0, nil) == 0 then
			lib.wean_release(left[i])
			table.remove(left, i)
		end
	end
end

local function close_ends(child)
	for _, name in ipairs{ "in", "out", "err" } do
		local fd = child[name]
		child[name] = -1
		if fd >= 0 then
			ffi.C.close(fd)
		end
	end
end

local function drop(child)
	if child.pid > 0 then
		close_ends(child)
		left[#left + 1] = ffi.new("struct wean_child", child)
	end
end

local EMFILE = 24

-- * Has its finalizer before the start: an error of a hook, which is how Ctrl-C comes, may
-- be thrown between any two instructions.
function wean.spawn(argv, options)
	local child = ffi.gc(ffi.new("struct wean_child"), drop)
	local r = request(argv, options)
	reap()
	local error = lib.wean_spawn(child, r.argv, r.options)
	if error == EMFILE then -- * what was dropped holds some, and weighs little
		collectgarbage()
		reap()
		error = lib.wean_spawn(child, r.argv, r.options)
	end
	if error ~= 0 then
		return not_started(child, r, error)
	end
	return child
end

local methods = {}
ffi.metatype("struct wean_child", { __index = methods })

function methods.wait(child, ms)
	local status = ffi.new("struct wean_status")
	return ended(lib.wean_wait(child, ms or -1, status), status)
end

function methods.stop(child, grace_ms)
	local status = ffi.new("struct wean_status")
	return ended(lib.wean_stop(child, grace_ms, status), status)
end

function methods.kill(child, sig)
	return done(lib.wean_kill(child, sig))
end

function methods.kill_group(child, sig)
	return done(lib.wean_kill_group(child, sig))
end

-- Closes what is left of its pipes, and waits for it, as the file of an io.popen.
function methods.close(child)
	local status = ffi.new("struct wean_status")
	close_ends(child)
	local error = lib.wean_wait(child, -1, status)
	if error == 0 then
		lib.wean_release(ffi.gc(child, nil))
	end
	return ended(error, status)
end

local LONGEST = 0x7fffffff -- no string of LuaJIT's is longer

-- * Takes the descriptor over: a reader is freed before what it reads is closed, and nobody
-- knows in which order a collector finalizes two objects.
function methods.lines(child)
	local fd, made = child.out, ffi.new("wean_reader *[1]")
	local data, len = ffi.new("const char *[1]"), ffi.new("size_t[1]")
	assert(done(lib.wean_reader_new(made, fd, LONGEST)))
	child.out = -1
	local reader = ffi.gc(made[0], function(reader)
		lib.wean_reader_free(reader)
		ffi.C.close(fd)
	end)
	return function()
		local error = lib.wean_read_line(reader, data, len)
		if data[0] ~= nil then
			return ffi.string(data[0], len[0])
		end
		assert(done(error))
	end
end

local POLLIN = 1

-- * A pidfd can be read once its child is over.  -1 is passed over by poll(2): who polls and
-- may run out of descriptors starts with NEED_PIDFD.
function wean.poll(children, ms)
	local polls, over = ffi.new("struct wean_pollfd[?]", #children), {}
	for i, child in ipairs(children) do
		polls[i - 1].fd, polls[i - 1].events = child.pidfd, POLLIN
	end
	ffi.C.wean_lua_poll(polls, #children, ms)
	for i, child in ipairs(children) do
		if polls[i - 1].revents ~= 0 then
			over[#over + 1] = child
		end
	end
	return over
end

-- ---- the whole of a child's output ----------------------------------------------

local flags = { timed_out = 1, out_truncated = 2, err_truncated = 4, still_open = 8,
	input_unread = 16 }

local function result_of(result)
	local r = { in_written = tonumber(result.in_written) }
	r.out = result.out ~= nil and ffi.string(result.out, result.out_len) or nil
	r.err = result.err ~= nil and ffi.string(result.err, result.err_len) or nil
	r.ok, r.kind, r.code = ended(0, result.status)
	for name, flag in pairs(flags) do
		r[name] = bit.band(result.flags, flag) ~= 0
	end
	return r
end

function wean.run(argv, options, io)
	local result = ffi.gc(ffi.new("struct wean_result"), lib.wean_result_free)
	local r = request(argv, options)
	r.io = set(r, ffi.new("struct wean_io"), io)
	r.io.input_len = io and io.input and #io.input or 0
	local error = lib.wean_run(r.argv, r.options, r.io, result)
	if result.child.stage ~= 0 then
		return not_started(result.child, r, error)
	end
	local all = result_of(result)
	if error ~= 0 then
		local _, message = failure(error)
		return nil, all.timed_out and "timed out" or message, error, all
	end
	return all
end

return wean
