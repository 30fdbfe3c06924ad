-- peer.lua PIPES MB PROGRAM ARGUMENT... - for each line "N" that it reads, N starts by
-- io.popen, and an empty line for each: Lua has no clock of the real time.
local pipes, mb = tonumber(arg[1]), tonumber(arg[2])
local command = table.concat(arg, " ", 3)
local memory = {}
for i = 256, mb, 256 do
	memory[i] = ("\1"):rep(256 << 20)
end

local function start()
	local stream = assert(io.popen(command))
	local said = stream:read("a")
	assert(stream:close() and #said == pipes, "the program said something else")
end

for line in io.lines() do
	for _ = 1, tonumber(line) do
		start()
	end
	io.write(("\n"):rep(tonumber(line))):flush()
end
