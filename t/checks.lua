-- checks.lua - what t/lua.lua and t/ffi.lua say a check is, and what they look at, in any
-- Lua from 5.1 on.
local unpack = table.unpack or unpack
local checks = { n = 0 }

function checks.pack(...)
	return { n = select("#", ...), ... }
end

local function show(t)
	local words = {}
	for i = 1, t.n do
		words[i] = type(t[i]) == "string" and ("%q"):format(t[i]) or tostring(t[i])
	end
	return table.concat(words, ", ")
end

-- gives(want...)(got...)
function checks.gives(...)
	local want = checks.pack(...)
	return function(...)
		local got = checks.pack(...)
		local good = got.n == want.n
		for i = 1, want.n do
			good = good and got[i] == want[i]
		end
		checks.n = checks.n + 1
		if not good then
			error("got " .. show(got) .. ", not " .. show(want), 2)
		end
	end
end

function checks.contents(path)
	local file = assert(io.open(path))
	local text = file:read("*a")
	file:close()
	return text
end

checks.pid = checks.contents("/proc/self/stat"):match("^%d+")

function checks.children()
	local list = checks.contents("/proc/" .. checks.pid .. "/task/" .. checks.pid .. "/children")
	return select(2, list:gsub("%d+", ""))
end

return checks
