-- ffi.lua - examples/ffi, for t/ffi.sh.
--
--   luajit ffi.lua KID

-- As another module may have it.
local ffi = require "ffi"
ffi.cdef "struct pollfd { int fd; short events, revents; };"
local wean = require "wean"
ffi.cdef "int poll(struct pollfd *, unsigned long, int);"
local kid = arg[1]
local checks = dofile((arg[0]:gsub("[^/]*$", "")) .. "checks.lua")
local gives, contents, children = checks.gives, checks.contents, checks.children

-- Listed once its start is over for us too, so that the ends of its pipes are closed here.
local function descriptors()
	local list = wean.run({ "sh", "-c", "read go; exec ls /proc/" .. checks.pid .. "/fd" },
		{ err = wean.NULL }, { input = "go\n" .. ("x"):rep(4000000) }).out
	return select(2, list:gsub("%d+", ""))
end

-- ---- run --------------------------------------------------------------------

local r = wean.run{ kid, "say", 1, "good", "--then", "say", 2, "bad", "--then", "exit", 3 }
gives("good\n", "bad\n", nil, "exit", 3)(r.out, r.err, r.ok, r.kind, r.code)
r = wean.run({ kid, "cat" }, nil, { input = "a\0b" })
gives("a\0b", true, "exit", 0, 3)(r.out, r.ok, r.kind, r.code, r.in_written)
gives(nil, "cannot run './missing': No such file or directory", 2)(wean.run{ "./missing" })
local _, message, _, late = wean.run(
	{ kid, "say", 1, "so far", "--then", "sleep", 60000 }, nil, { timeout_ms = 100 })
gives("timed out", "so far\n", true, "signal")(message, late.out, late.timed_out, late.kind)
r = wean.run({ kid, "write", 1, 100000 }, nil, { out_max = 100 })
gives(100, true, true)(#r.out, r.out_truncated, r.ok)

-- ---- options ----------------------------------------------------------------

gives("0\n1\n2\n3\n")(wean.run{ "ls", "/proc/self/fd" }.out)
gives("/\n")(wean.run({ "pwd" }, { dir = "/" }).out)
gives("A=1\n")(wean.run({ "env" }, { env = { "A=1", "B=2" }, env_edit = { "B" } }).out)
gives("7\n")(wean.run({ "sh", "-c", "ulimit -n" },
	{ limits = { { resource = 7, soft = 7, hard = 7 } } }).out)
gives("0077\n")(wean.run({ "sh", "-c", "umask" },
	{ umask = 63, flags = wean.SET_UMASK }).out)
gives(contents("/proc/version"))(wean.run({ kid, "cat" },
	{ fds = { { kind = wean.OPEN, target = 0, path = "/proc/version" } } }).out)
gives(22)((select(3, wean.spawn({ kid }, { uid = 1 }))))
gives(false)((pcall(wean.spawn, { kid }, { user = 1 })))
for _, options in ipairs{ { file = "a\0b" }, { dir = "/\0" }, { env = { "A=\0" } },
	{ fds = { { kind = wean.OPEN, target = 3, path = "/\0" } } }, { [1] = "a\0b" } } do
	local good, message = pcall(wean.spawn, { kid, options[1] }, options)
	gives(false)(good)
	gives("a word has a zero byte")(message:match("a word.*"))
end
for _, options in ipairs{ { uid = 2^32, flags = wean.SET_UID }, { uid = 0/0 }, { gid = -1 },
	{ uid = 2^32 * 1ULL }, { umask = 0.5 }, { flags = -1 },
	{ groups = { 1, 2^32 }, flags = wean.SET_GROUPS },
	{ limits = { { resource = 7, soft = -1 } } }, { fds = { { source = 2^32 } } } } do
	local good, message = pcall(wean.spawn, { kid }, options)
	gives(false, "it can't be")(good, tostring(message):match("it can't be"))
end
gives(false)((pcall(wean.spawn, { kid }, { fds = { { tagret = 3 } } })))
gives(false)((pcall(wean.run, { kid }, nil, { timeout_ms = 2^32 + 1 })))
gives(true)((pcall(wean.run, { kid }, { groups = { 1, 2 }, flags = wean.SET_GROUPS })))
for _ = 1, 200 do
	local edits = {}
	for i = 1, 50 do
		edits[i] = ("NAME%d=%s"):format(i, ("x"):rep(i))
	end
	gives("xxxxx\n")(wean.run({ "sh", "-c", "echo $NAME5" }, { env_edit = edits }).out)
end

-- ---- a child ----------------------------------------------------------------

local c = assert(wean.spawn({ kid, "lines", 1, 3 }, { out = wean.PIPE }))
local lines = {}
for line in c:lines() do
	lines[#lines + 1] = line
end
gives(3, "0", "2")(#lines, lines[1], lines[3])
gives(true, "exit", 0)(c:close())
c = assert(wean.spawn({ "sh", "-c", "printf '%03000000d\\n' 7" }, { out = wean.PIPE }))
gives(3000000)(#c:lines()())
gives(true, "exit", 0)(c:close())
gives(nil, "cannot run './missing': No such file or directory", 2)(wean.spawn{ "./missing" })

local a = wean.spawn{ kid, "exit", 4 }
local b = wean.spawn({ kid, "sleep", 60000 }, { flags = wean.NEW_GROUP })
local over = wean.poll({ a, b }, 60000)
gives(1, a)(#over, over[1])
gives(nil, "exit", 4)(a:wait(0))
gives(nil)((b:wait(0)))
gives(0)(#wean.poll({ b }, 0))
gives(true)(b:kill_group(9))
gives(b)(wean.poll({ b }, 60000)[1])
gives(nil, "signal", 9)(b:wait())
gives(nil, "No such process", 3)(b:kill(15))
c = wean.spawn{ kid, "sleep", 60000 }
gives(nil, "signal", 15)(c:stop(60000))

-- By a handler that does nothing: it can be called again.
ffi.cdef [[
int abs(int);
void *signal(int, int (*)(int));
unsigned ualarm(unsigned us, unsigned interval);
]]
ffi.C.signal(14, ffi.C.abs)
c = wean.spawn({ kid, "pause" }, { flags = wean.EINTR })
ffi.C.ualarm(20000, 10000)
gives(nil, "Interrupted system call", 4)(c:close())
ffi.C.ualarm(0, 0)
gives(true)(c:kill(9))
gives(nil, "signal", 9)(c:close())

-- ---- what is dropped --------------------------------------------------------

a, b, c, over = nil, nil, nil, nil
collectgarbage()
collectgarbage()
wean.spawn{ kid, "exit", 0 }:close()
local open = descriptors()
for _ = 1, 100 do
	wean.spawn({ kid, "say", 1, "x" }, { out = wean.PIPE, err = wean.PIPE })
	wean.spawn({ kid, "exit-on-eof" }, { ["in"] = wean.PIPE })
	wean.spawn({ kid, "lines", 1, 9 }, { out = wean.PIPE }):lines()()
end
collectgarbage()
collectgarbage()
local looks = 0
repeat
	wean.spawn{ kid, "sleep", 5 }:close()
	looks = looks + 1
until children() == 0 or looks > 2000
gives(0, open)(children(), descriptors())

-- As Ctrl-C does, after each number of instructions.
jit.off()
for n = 1, 400 do
	pcall(function()
		debug.sethook(function()
			debug.sethook()
			error "interrupted"
		end, "", n)
		wean.spawn({ kid, "exit", 0 }, { out = wean.PIPE })
		debug.sethook()
	end)
end
collectgarbage()
collectgarbage()
looks = 0
repeat
	wean.spawn{ kid, "sleep", 5 }:close()
	looks = looks + 1
until children() == 0 or looks > 2000
gives(0, open)(children(), descriptors())

print(("%s: %d checks"):format(jit.version, checks.n))
