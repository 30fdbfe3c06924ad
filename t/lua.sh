#!/bin/sh
# examples/lua in every Lua that is here, beside the io.popen and os.execute that are Lua's
# own (t/lua.lua); and what it costs, by strace.
set -u

: "${WEAN_KID:?}" "${WEAN_COMMAND:?}" "${CC:=cc}" "${CPPFLAGS=}" "${CFLAGS=}" "${LDFLAGS=}"
PKG_CONFIG=${PKG_CONFIG:-pkg-config}
source=$(cd "${srcdir:-.}" && pwd) build=$PWD
# shellcheck source=t/script.sh
. "${srcdir:-.}/t/script.sh"
tested=0

need_loading

# Some use up what they may open.
[ "$(ulimit -n)" -le 1024 ] 2>/dev/null || ulimit -S -n 1024

# A path without a space, for command texts.
cd "$tmp" || exit 99
ln -s "$WEAN_KID" kid
mkfifo gate

compile() { # VERSION ARGUMENT...
	flags=$("$PKG_CONFIG" --cflags "lua$1" | sed 's/-I/-isystem /g')
	shift
	# shellcheck disable=SC2086 # lists
	$CC ${WARN_CFLAGS-} -I"$source/include" $CPPFLAGS $CFLAGS $flags "$@" $LDFLAGS
}

build_module() { # VERSION
	compile "$1" -shared -fPIC -o wean.so "$source/examples/lua/wean.c" \
		-L"$build/src/.libs" -lwean -Wl,-rpath,"$build/src/.libs"
}

refuse_memory() { # VERSION
	# shellcheck disable=SC2046 # a list
	compile "$1" -D_GNU_SOURCE -o lua_memory "$source/t/lua_memory.c" -Wl,-E \
		$("$PKG_CONFIG" --libs "lua$1") &&
		./lua_memory 'local c = wean.spawn{ kid, "cat", stdin = "pipe", stdout = "pipe",
			stderr = "merge" } c:write("x\n") c:read("*l") c:close()' \
			'wean.run{ kid, "cat", input = "y", env = { A = 1 }, setenv = { B = false },
			limits = { nofile = 64 }, on_out = function(s) return #s > 0 end }' \
			'wean.run{ kid, "say", 1, "x" } wean.run{ "./missing" }' \
			'wean.popen{ kid, "say", 1, "x" }:read("*a")' \
			'collectgarbage() collectgarbage() local all = debug.getregistry()
			all["wean.left"], all["wean.child"], all["wean.call"] = nil
			package.loaded.wean = nil require "wean"'
}

# Ends although one child runs and another waits for what its stream would bring.
leave_them() {
	timeout 60 "$1" -e '
		local wean = require "wean"
		a = wean.spawn{ "./kid", "pause", pdeathsig = 9, stdin = "pipe" }
		b = wean.popen("./kid exit-on-eof", "w")
		b:write("x")' </dev/null
}

# Handles that were dropped must not be what is missing for the next.
drop_many() {
	"$WEAN_COMMAND" --limit nofile=64 -- "$1" -e '
		local wean = require "wean"
		collectgarbage("setpause", 1000)
		for i = 1, 300 do
			assert(wean.spawn{ "./kid", "exit-on-eof", stdin = "pipe" })
		end'
}

LUA_CPATH='./?.so' LUA_INIT=''
export LUA_CPATH LUA_INIT
unset LUA_CPATH_5_2 LUA_CPATH_5_3 LUA_CPATH_5_4 LUA_INIT_5_2 LUA_INIT_5_3 LUA_INIT_5_4
for version in 5.1 5.2 5.3 5.4; do
	lua=$(command -v lua$version) || continue
	"$PKG_CONFIG" --exists lua$version || continue
	tested=$((tested + 1))
	build_module $version || { fail "building for Lua $version" && continue; }
	handles=100
	[ $version != 5.4 ] || handles=1000
	"$lua" "$source/t/lua.lua" ./kid . $handles || fail "t/lua.lua in Lua $version"
	leave_them "$lua" || fail "the end of Lua $version waits"
	refuse_memory $version || fail "memory that Lua $version was refused"
	drop_many "$lua" || fail "handles that Lua $version dropped"
done
[ $tested -gt 0 ] || skip 'not here: Lua and its headers (Debian: lua5.4, liblua5.4-dev)'
[ $bad -eq 0 ] || exit 1

# ---- what it costs, in the last of them ----------------------------------------

cat >count.lua <<'EOT'
local files = {}
for i = 1, 50 do
	files[i] = io.open("/dev/null")
end
if arg[1] == "wean" then
	require "wean".replace()
end
for _ = 1, 10 do
	os.execute("./kid exit 3")
	local f = io.popen("./kid write 1 200000")
	assert(#f:read("*a") == 200000)
	f:close()
end
os.execute("./kid exit 3 || ./kid exit 4")
EOT

# Prints the programs and shells that were started, the calls of close in children before
# that, those that closed nothing, and the reads that asked for less than 64 KiB of a pipe.
count() {
	strace -f -qq -e signal=none -e trace=execve,close,read,pipe2 -o "$1.trace" \
		"$lua" count.lua "$1" &&
		awk '
		/ execve\("\/bin\/sh"/ { shells++ }
		/ execve\("[^"]*kid"/ { programs++ }
		/ execve\("/ { executed[$1] = 1 }
		/ close\(/ && !executed[$1] { closes++ }
		/ EBADF/ { useless++ }
		NR == 1 { host = $1 }
		/ pipe2\(/ && $1 == host { piped = 1 }
		/ read\(/ && $1 == host && piped && match($0, /, [0-9]+(\)| <unf)/) &&
			substr($0, RSTART + 2) + 0 < 65536 { short++ }
		END { print programs + 0, shells + 0, closes + 0, useless + 0, short + 0 }' "$1.trace"
}

strace -o /dev/null true || skip 'not here: strace, or tracing'
stock=$(count stock) || fail "counting Lua's own"
ours=$(count wean) || fail 'counting'
echo "programs, shells, closes before exec, of nothing, short reads: Lua's $stock, wean's $ours"
[ "$ours" = '22 1 0 0 0' ] || fail "$ours"
[ $bad -eq 0 ]
