/* peer_scripts.c - what the scripts beside this file do. */
#include "bench.h"

/* The language's way, with all its defaults. */
#define SCRIPT(name_, what_, file_, option_, most_, ...) \
	peer_##name_ = {.name = #name_, .what = what_, .script = file_, .option = option_, \
	                .at_most = (most_) | ONE_THREAD, .interpreters = {__VA_ARGS__}}

const struct peer
	SCRIPT(python, "subprocess.Popen, communicate", "peer.py", "-I", 0, "python3"),
	SCRIPT(guile, "open-pipe* of Guile, close-pipe", "peer.scm", "--no-auto-compile",
	       ONE_PIPE, "guile", "guile3.0", "guile-3.0"),
	SCRIPT(node, "child_process.spawn; closes nothing", "peer.js", 0, LEAKS, "node",
	       "nodejs"),
	SCRIPT(ruby, "Process.spawn, IO.popen, Open3; closes nothing", "peer.rb",
	       "--disable=gems", LEAKS, "ruby"),
	SCRIPT(perl, "system, open, IPC::Open3; closes nothing", "peer.pl", 0, LEAKS, "perl"),
	SCRIPT(lua, "io.popen, which goes through sh", "peer.lua", 0, ONE_PIPE | LEAKS, "lua5.4",
	       "lua");
