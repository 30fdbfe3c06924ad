#!/bin/sh
# examples/ffi in LuaJIT (t/ffi.lua), and that it is not loaded where a struct of its own
# differs from the library's.
set -u

: "${WEAN_KID:?}" "${CFLAGS=}"
source=$(cd "${srcdir:-.}" && pwd)
# shellcheck source=t/script.sh
. "${srcdir:-.}/t/script.sh"

need_tools luajit
need_loading

LD_LIBRARY_PATH=$PWD/src/.libs LUA_INIT=''
export LD_LIBRARY_PATH LUA_INIT LUA_PATH

LUA_PATH="$source/examples/ffi/?.lua"
luajit "$source/t/ffi.lua" "$WEAN_KID" || fail 't/ffi.lua'

# Handles that were dropped must not be what is missing for the next.
(ulimit -n 64 && exec luajit - "$WEAN_KID" <<'EOT') || fail 'handles that were dropped'
local wean = require "wean"
collectgarbage("setpause", 1000)
for i = 1, 300 do
	assert(wean.spawn({ arg[1], "exit-on-eof" }, { ["in"] = wean.PIPE }))
end
EOT

# refused EXPRESSION MESSAGE: of the file as sed's expression makes it
refused() {
	LUA_PATH="$tmp/?.lua"
	sed "$1" "$source/examples/ffi/wean.lua" >"$tmp/wean.lua"
	! cmp -s "$tmp/wean.lua" "$source/examples/ffi/wean.lua" || fail "$1 changes nothing"
	said=$(luajit -e 'print(select(2, pcall(require, "wean")))' 2>&1)
	echo "$said"
	case $said in
	*"this binding does not fit the library: "$2) ;;
	*) fail "it is no refusal of $1" ;;
	esac
}

refused 's/int kind, target,/int target, kind,/' 'wean_fd.target is 0 here and 4 there'
refused 's/soft, hard;/soft, hard, more;/' 'wean_limit.more is 24 here and unknown there'
refused 's/maxrss_kb, reserved.3.;/maxrss_kb, reserved[2];/' 'wean_status is 56 here and 64 there'
refused 's/unsigned mode;/unsigned long mode;/' 'wean_fd.reserved is *'
refused 's/opaque.9.;/opaque[8];/' 'wean_result.flags is *'
refused 's/^struct wean_limit {/struct wean_bound {/' 'wean_bound.resource is 0 here and unknown there'
[ $bad -eq 0 ]
