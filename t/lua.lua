-- lua.lua - examples/lua, for t/lua.sh, in any Lua from 5.1 on.
--
--   lua lua.lua KID SCRATCH HANDLES

local wean = require "wean"
local kid, scratch, handles = arg[1], arg[2], tonumber(arg[3])
local unpack = table.unpack or unpack
local checks = dofile((arg[0]:gsub("[^/]*$", "")) .. "checks.lua")
local pack, gives, contents, children = checks.pack, checks.gives, checks.contents,
	checks.children

-- ---- what a check is --------------------------------------------------------

local function fails_with(text, f, ...)
	local good, message = pcall(f, ...)
	gives(false)(good)
	if not tostring(message):find(text, 1, true) then
		error("got " .. tostring(message) .. ", not " .. text, 2)
	end
end

-- With those that the question needs, always as many: it waits until its start is over.
local function descriptors()
	local n = 0
	local c = wean.spawn{ "sh", "-c", "read go; exec ls /proc/" .. checks.pid .. "/fd",
		stdin = "pipe", stdout = "pipe" }
	c:write("go\n")
	for _ in c:lines() do
		n = n + 1
	end
	c:close()
	return n
end

local function nap()
	wean.run{ kid, "sleep", 5 }
end

-- After what was dropped is over; each look reaps.
local function await(condition)
	for _ = 1, 2000 do
		if condition() then
			return
		end
		nap()
	end
	error("it never came", 2)
end

local function blocked_signals()
	return contents("/proc/self/status"):match("SigBlk:%s*(%x+)")
end

local tests, order = {}, {}
setmetatable(tests, { __newindex = function(t, name, f)
	order[#order + 1] = name
	rawset(t, name, f)
end })

-- ---- run --------------------------------------------------------------------

function tests.what_a_program_writes_is_collected()
	local r = wean.run{ kid, "say", 1, "good", "--then", "say", 2, "bad",
		"--then", "exit", 3 }
	gives("good\n", "bad\n", nil, "exit", 3)(r.out, r.err, r.ok, r.kind, r.code)
	r = wean.run{ kid, "kill", wean.SIGKILL }
	gives(nil, "signal", 9)(r.ok, r.kind, r.code)
	r = wean.run{ kid, "cat", input = "a\0b" }
	gives("a\0b", true, "exit", 0, 3)(r.out, r.ok, r.kind, r.code, r.in_written)
end

function tests.what_is_not_there_is_told_as_lua_tells_it()
	gives(nil, "cannot run './missing': No such file or directory", 2)(
		wean.run{ "./missing" })
	gives(nil, "cannot run './missing': No such file or directory", 2)(
		wean.spawn{ "./missing", stdin = "pipe", stdout = "pipe" })
	gives(nil, 2)((select(1, wean.spawn{ kid, dir = "/missing" })),
		(select(3, wean.spawn{ kid, dir = "/missing" })))
	gives(22)((select(3, wean.spawn{})))
end

function tests.a_limit_of_time_leaves_what_was_written()
	local _, message, errno, r = wean.run{ kid, "say", 1, "so far",
		"--then", "sleep", 60000, timeout_ms = 100 }
	gives("timed out", 110, "so far\n", true, "signal")(
		message, errno, r.out, r.timed_out, r.kind)
end

function tests.a_cap_holds()
	local r = wean.run{ kid, "write", 1, 100000, out_max = 100 }
	gives(100, true, true)(#r.out, r.out_truncated, r.ok)
	r = wean.run{ kid, "write", 2, 100000, err_max = 7 }
	gives(7, true, false)(#r.err, r.err_truncated, r.out_truncated)
end

function tests.functions_take_lines()
	local got = {}
	local r = wean.run{ kid, "lines", 1, 1000, lines = true,
		on_out = function(line) got[#got + 1] = line end }
	gives(1000, "0", "999", nil)(#got, got[1], got[1000], r.out)
end

function tests.a_function_ends_the_child_by_false()
	local n = 0
	local _, message, errno, r = wean.run{ kid, "lines", 1, 1000, "--then", "sleep", 60000,
		lines = true, on_out = function() n = n + 1; return n < 3 end }
	gives(3, 125, "signal")(n, errno, r.kind)
	gives("string")(type(message))
end

function tests.an_error_in_a_function_is_thrown_on_and_ends_the_child()
	local thrown = {}
	for _ = 1, 20 do
		gives(false, thrown)(pcall(wean.run, { kid, "say", 1, "x", "--then", "sleep", 60000,
			on_out = function() error(thrown) end }))
		gives(false, thrown)(pcall(wean.run, { kid, "say", 2, "x", "--then", "sleep", 60000,
			on_err = function() error(thrown) end }))
	end
	gives(0)(children())
	fails_with("C-call boundary", coroutine.wrap(function()
		wean.run{ kid, "say", 1, "x", on_out = function() coroutine.yield() end }
	end))
	gives(0)(children())
end

function tests.functions_and_coroutines_may_run_others()
	local inner
	coroutine.wrap(function()
		wean.run{ kid, "say", 1, "x", on_out = function()
			inner = wean.run{ kid, "say", 1, "y" }.out
			collectgarbage()
		end }
	end)()
	gives("y\n")(inner)
end

-- ---- options ----------------------------------------------------------------

function tests.the_child_has_what_it_was_given_and_nothing_else()
	local open = {}
	for i = 1, 20 do
		open[i] = assert(io.open("/dev/null"))
	end
	gives("0\n1\n2\n3\n")(wean.run{ "ls", "/proc/self/fd" }.out)
	gives("0\n1\n2\n3\n7\n")(wean.run{ "ls", "/proc/self/fd", fds = { [7] = open[9] } }.out)
	gives("0\n1\n2\n3\n")(wean.popen("ls /proc/self/fd"):read("*a"))
	for i = 1, 20 do
		open[i]:close()
	end
end

function tests.files_and_numbers_are_passed_on()
	local name = scratch .. "/file"
	local file = assert(io.open(name, "w"))
	file:write("first ")
	gives(true, "exit", 0)(wean.spawn{ kid, "say", 1, "second", stdout = file }:wait())
	gives("first second\n")(contents(name))
	file:close()
	fails_with("a closed file", wean.spawn, { kid, stdout = file })
	file = assert(io.open(name))
	gives("first second\n")(wean.run{ kid, "cat", stdin = file }.out)
	file:close()
	local r = wean.run{ kid, "say", 2, "to 2", stderr = "merge" }
	gives("to 2\n", nil)(r.out, r.err)
	r = wean.run{ kid, "say", 1, "x", "--then", "say", 2, "y", stdout = "null" }
	gives(nil, "y\n")(r.out, r.err)
end

function tests.variables_are_set_and_removed()
	gives("A=1\nB=two\n")((wean.run{ "env", env = { A = 1, B = "two" } }.out
		:gsub("(.*\n)(A=1\n)$", "%2%1")))
	gives("C=\n")(wean.run{ "env", env = { A = 1 }, setenv = { A = false, C = "" } }.out)
	fails_with("'A=B' is no name", wean.spawn, { "env", env = { ["A=B"] = 1 } })
	fails_with("zero byte", wean.spawn, { "env", env = { A = "x\0y" } })
end

function tests.other_options_reach_the_child()
	gives("/\n")(wean.run{ "pwd", dir = "/" }.out)
	gives("7\n")(wean.run{ "sh", "-c", "ulimit -n", limits = { nofile = 7 } }.out)
	gives("5\n9\n")(wean.run{ "sh", "-c", "ulimit -S -n; ulimit -H -n",
		limits = { nofile = { 5, 9 } } }.out)
	gives("0077\n")(wean.run{ "sh", "-c", "umask", umask = 63 }.out)
	gives(true)(wean.run{ kid, "kill", 15, sigignore = { 15 } }.ok)
	gives("name\n")(wean.run{ "name", "-c", "echo $0", file = "sh" }.out)
	local c = wean.spawn{ kid, "sleep", 60000, new_group = true }
	gives(true)(c:kill_group(wean.SIGKILL))
	gives(nil, "signal", 9)(c:wait())
	gives(nil, "No such process", 3)(c:kill())
end

function tests.a_wrong_option_is_an_error()
	fails_with("'user' is no option", wean.spawn, { kid, user = 1 })
	fails_with("'input' is no option", wean.spawn, { kid, input = "x" })
	fails_with("option: string expected, got table", wean.spawn, { kid, [{}] = 1 })
	fails_with("'9' is no option", wean.spawn, { kid, [9] = "exit" })
	fails_with("argument: string expected, got boolean", wean.spawn, { kid, false })
	fails_with("uid: number expected, got string", wean.spawn, { kid, uid = "root" })
	fails_with("umask: it can't be", wean.spawn, { kid, umask = 1.5 })
	fails_with("nice: it can't be", wean.spawn, { kid, nice = 2 ^ 40 })
	fails_with("stdin: it is no", wean.spawn, { kid, stdin = "mergo" })
	fails_with("stdin: it is no", wean.spawn, { kid, stdin = {} })
	fails_with("zero byte", wean.spawn, { kid, "say", "1", "a\0b" })
	fails_with("on_out: function expected", wean.run, { kid, on_out = 1 })
	fails_with("limits: 'files' is unknown", wean.run, { kid, limits = { files = 1 } })
	fails_with("table expected", wean.spawn, kid)
	gives(0)(children())
end

-- By a table that answers, or a finalizer (5.1: of files alone), which runs where memory is
-- taken.
function tests.a_table_that_grows_while_it_is_read_is_an_error()
	local fds = {}
	for i = 10, 2000 do
		fds[i] = "null"
	end
	fails_with("fds: changed meanwhile", wean.spawn, setmetatable({ kid, "exit", 0 },
		{ __index = function(t, key) rawset(t, key, key == "fds" and fds or nil) end }))
	for i = 1, 2000 do
		local env = {}
		setmetatable({}, { __gc = function()
			for j = 1, 500 do
				env["NAME" .. j] = "x"
			end
		end })
		local good, message = pcall(wean.spawn, { "./missing", env = env, ("x"):rep(i) })
		gives(true)(good or message == "env: changed meanwhile")
	end
end

-- ---- a child ----------------------------------------------------------------

function tests.a_child_reads_writes_and_ends_as_a_popen()
	local c = wean.spawn{ kid, "cat", stdin = "pipe", stdout = "pipe" }
	gives("file", "file", nil)(io.type(c.stdin), io.type(c.stdout), c.stderr)
	gives(c)(c:write("12 and\n", 7, "\nrest\nmore"))
	gives(12, " and", "7\n")(c:read("*n", "*l", 2))
	gives(true)(c.stdin:close())
	local lines = {}
	for line in c:lines() do
		lines[#lines + 1] = line
	end
	gives("rest", "more", nil)(unpack(lines, 1, 3))
	gives(nil)(c:read("*l"))
	gives(true, "exit", 0)(c:close())
	gives(true, "exit", 0)(c:wait())
	gives("closed file")(io.type(c.stdout))
	fails_with("closed file", c.read, c)
	c = wean.spawn{ kid, "exit", 0 }
	fails_with("stdin is no pipe", c.write, c, "x")
end

function tests.standard_error_is_a_file_too()
	local c = wean.spawn{ kid, "say", 2, "bad", stderr = "pipe" }
	gives("bad\n")(c.stderr:read("*a"))
	gives(true, "exit", 0)(c:close())
end

function tests.waiting_has_a_limit()
	local c = wean.spawn{ kid, "sleep", 60000 }
	gives(nil, "timed out", 110)(c:wait(0))
	gives(nil, "timed out", 110)(c:wait(20))
	gives(true)(c:kill())
	gives(nil, "signal", 15)(c:wait())
	c = wean.spawn{ kid, "ignore", 15, "--then", "say", 1, "x", "--then", "sleep", 60000,
		stdout = "pipe" }
	c:read(1)
	gives(nil, "signal", 9)(c:stop(20))
	c = wean.spawn{ kid, "exit", 4 }
	gives(nil, "exit", 4)(c:wait(60000))
end

function tests.a_write_that_nobody_reads_is_no_end_of_the_interpreter()
	local mask = blocked_signals()
	local c = wean.spawn{ kid, "exit", 0, stdin = "pipe" }
	c:wait()
	gives(nil, "Broken pipe", 32)(c:write("x"))
	fails_with("bad argument", c.write, c, {})
	gives(true, "exit", 0)(c:close())
	gives(mask)(blocked_signals())
end

-- ---- the collector ----------------------------------------------------------

function tests.handles_that_are_dropped_leave_nothing()
	local open = descriptors()
	for _ = 1, handles / 4 do
		wean.spawn{ kid, "exit", 0 }
		wean.spawn{ kid, "exit-on-eof", stdin = "pipe" }
		wean.spawn{ kid, "say", 1, "x", stdout = "pipe", stderr = "pipe" }
		wean.popen(kid .. " exit 0")
	end
	collectgarbage()
	collectgarbage()
	await(function() wean.execute(kid .. " exit 0"); return children() == 0 end)
	gives(open)(descriptors())
end

function tests.a_child_that_was_dropped_runs_on()
	local name = scratch .. "/dropped"
	local stdin
	do
		local file = assert(io.open(name, "w"))
		local c = wean.spawn{ kid, "cat", stdin = "pipe", stdout = file }
		stdin = c.stdin
	end
	collectgarbage()
	collectgarbage()
	gives(1)(children())
	stdin:write("still here")
	stdin:close()
	await(function() return children() == 0 end)
	gives("still here")(contents(name))
end

-- Its reader waits for a line of the FIFO, with its pipe full.
function tests.what_was_written_to_a_dropped_stream_arrives()
	local name = scratch .. "/late"
	local waits = "read x <" .. scratch .. "/gate; exec "
	local f = wean.popen(waits .. kid .. " cat >" .. name, "w")
	f:write(("x"):rep(65536))
	f:flush()
	f:write(("y"):rep(60000))
	f = nil
	collectgarbage()
	collectgarbage()
	local gate = assert(io.open(scratch .. "/gate", "w"))
	gate:write("go\n")
	gate:close()
	await(function() wean.execute(kid .. " exit 0"); return children() == 0 end)
	gives(("x"):rep(65536) .. ("y"):rep(60000))(contents(name))
end

-- Neither is waited for.
function tests.the_end_of_a_scope_closes_and_does_not_wait()
	if _VERSION < "Lua 5.4" then
		return
	end
	local open = descriptors()
	local pid = assert(load([[
		local wean, kid = ...
		local c <close> = wean.spawn{ kid, "exit-on-eof", stdin = "pipe" }
		local f <close> = wean.popen(kid .. " sleep 60000")
		return c.pid
	]]))(wean, kid)
	await(function() return children() == 1 end)
	gives(nil)((io.open("/proc/" .. pid)))
	gives(open + 1)(descriptors()) -- the pidfd of the one that runs
	wean.execute("kill " .. contents("/proc/self/task/" .. checks.pid .. "/children"))
	await(function() wean.execute(kid .. " exit 0"); return children() == 0 end)
	gives(open)(descriptors())
end

-- ---- io.popen, os.execute ---------------------------------------------------

local function of_popen(popen, command)
	local f, message, errno = popen(command)
	if not f then
		return nil, message, errno
	end
	local kind, text = io.type(f), f:read("*a")
	local ended = pack(f:close())
	return kind, text, io.type(f), tostring(f), unpack(ended, 1, ended.n)
end

local function of_writing(popen, command)
	local f = popen("{ " .. command .. "\n} >" .. scratch .. "/written", "w")
	local wrote = f:write("some\n", 12, "\n") and true
	local ended = pack(f:close())
	return wrote, contents(scratch .. "/written"), unpack(ended, 1, ended.n)
end

-- As read by every kind of handle.
local function by_formats(f)
	local got = pack(f:read("*n", "*l", "*l", 5, 0))
	got[#got + 1] = f:read("*a")
	got[#got + 1] = tostring(f:read("*a"))
	got[#got + 1] = tostring(f:read("*l"))
	got[#got + 1] = tostring(f:read(0))
	return unpack(got)
end

-- But for the name that Lua finds for the function.
local function refusal(f, ...)
	local good, message = pcall(f, ...)
	return good, (tostring(message):gsub("to '.-' ", ""))
end

function tests.results_are_those_of_lua()
	local commands = {
		"exit 0", "exit 3", "kill -9 $$", "kill $$", "missing-program 2>&1",
		"echo a; echo b; exit 1", ":", "cat /missing 2>&1", kid .. " exit 5",
		kid .. " lines 1 3", "exec " .. kid .. " say 1 'a  b'",
	}
	for _, command in ipairs(commands) do
		gives(of_popen(io.popen, command))(of_popen(wean.popen, command))
		command = "{ " .. command .. "\n} >/dev/null 2>&1"
		gives(os.execute(command))(wean.execute(command))
	end
	for _, command in ipairs{ "cat", kid .. " cat", "cat; exit 2", "cat; kill $$" } do
		gives(of_writing(io.popen, command))(of_writing(wean.popen, command))
	end
	gives(os.execute())(wean.execute())
	gives(os.execute(kid .. " exit 5"))(wean.execute(kid .. " exit 5"))
	local text = "printf '0x10 rest\\nline\\n12345\\0tail'"
	gives(by_formats(io.popen(text)))(by_formats(wean.popen(text)))
	gives(by_formats(io.popen(text)))(by_formats(
		wean.spawn{ "sh", "-c", text, stdout = "pipe" }))
	gives(refusal(io.popen))(refusal(wean.popen))
	gives(refusal(io.popen, "x", {}))(refusal(wean.popen, "x", {}))
	gives(refusal(io.popen, "x", "rw"))(refusal(wean.popen, "x", "rw"))
end

function tests.a_failure_is_told_as_lua_tells_it()
	local good, bad = wean.popen, function(f, ...)
		local files = {}
		repeat
			files[#files + 1] = io.open("/dev/null")
		until not io.open("/dev/null")
		local got = pack(f(...))
		for _, file in ipairs(files) do
			file:close()
		end
		return unpack(got, 1, got.n)
	end
	gives(bad(io.popen, "exit 0"))(bad(good, "exit 0"))
	gives(nil, "missing-program: No such file or directory", 2)(
		wean.popen{ "missing-program" })
end

function tests.words_need_no_shell()
	gives("$x 'y' *\n")(wean.popen{ kid, "say", "1", "$x 'y' *" }:read("*a"))
	gives(_VERSION < "Lua 5.2" and 1280 or nil)((wean.execute{ kid, "exit", 5 }))
	if _VERSION > "Lua 5.1" then
		gives(nil, "signal", 9)(wean.execute(kid .. " kill 9"))
		gives(nil, "signal", 9)(wean.popen(kid .. " kill 9"):close())
	end
end

function tests.they_are_replaced_on_request()
	local stock_popen, stock_execute = io.popen, os.execute
	gives(stock_popen, stock_execute)(wean.replace())
	gives(wean.popen, wean.execute)(io.popen, os.execute)
	local before = io.output()
	io.output(io.popen("cat >" .. scratch .. "/default", "w"))
	io.write("by io.write\n")
	io.close()
	io.output(before)
	gives("by io.write\n")(contents(scratch .. "/default"))
	gives(wean.popen, wean.execute)(wean.replace())
	io.popen, os.execute = stock_popen, stock_execute
end

-- ---- all of them ------------------------------------------------------------

local failed = 0
for _, name in ipairs(order) do
	local good, message = pcall(tests[name])
	collectgarbage()
	collectgarbage()
	if good then
		good, message = pcall(await, function()
			wean.execute(kid .. " exit 0")
			return children() == 0
		end)
	end
	if not good then
		failed = failed + 1
		print("FAILED: " .. name .. ": " .. tostring(message))
	end
end
print(("%s: %d tests, %d checks, %d failed"):format(_VERSION, #order, checks.n, failed))
os.exit(failed == 0 and 0 or 1)
