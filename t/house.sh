#!/bin/sh
# The walls of the house: who may include whom, where the platform's #if stands, and
# that no header of the kernel is needed.
set -u

cd "${srcdir:-.}" || exit 99

# FILES: what these files, .c and .h, may include of src/ besides their own headers.
# Public headers and the system's are free to all.  Every file has its place here.
low='sys fdmap env path closer'
rooms="
clone3:
sys:                clone3
fdmap env path probe_child sys_host: sys
probe:              sys probe_child
closer:             sys fdmap
close:              closer
plan slots table:   $low plan request
child child_fds child_steps: $low plan child child_steps
launch launch_steps ladder posix_spawn verdict: $low plan child probe launch launch_steps handle
names:              closer launch
handle:             sys
spawn:              $low plan child launch handle
pipeline:           sys handle spawn
adopt kill stop wait wait_any: sys handle
utf8:
widen:              sys
reader talk:        sys widen reader
output:             sys reader utf8 widen
communicate run:    sys handle output talk
words:              env
command:            sys env words command
streams:            sys streams
popen:              sys command streams
explain explain_exec: sys env path explain request
cmd cmd_text:       cmd
layout:
main main_json main_run: main
request:
"

# What Makefile.am does not name is not in a distribution.  A program is named without
# its .c.
unnamed=0
for file in src/*.[ch] src/*.sh include/*.h t/*.[ch] t/*.sh t/*.lua t/*.py t/highlimit \
	t/bench/*.[ch] t/bench/*.sh t/bench/peer.* t/bench/*.svg examples/*/*.c \
	examples/*/*.lua examples/*/*.py examples/*/*.scm examples/*/*/*.scm man/*.[137]; do
	tr -s ' \t\\' '\n' <Makefile.am | grep -qx -e "$file" -e "${file%.c}" && continue
	echo "FAILED: $file is not in Makefile.am"
	unnamed=$((unnamed + 1))
done

awk -v rooms="$rooms" '
function fail(what) {
	printf "FAILED: %s:%d: %s\n", FILENAME, FNR, what
	bad++
}

BEGIN {
	n = split(rooms, lines, "\n")
	for (i = 1; i <= n; i++) {
		split(lines[i], part, ":")
		for (m = split(part[1], names, " "); m > 0; m--)
			room[names[m]] = " " names[m] " " part[2] " "
	}
}

FNR == 1 {
	files++
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.[ch]$/, "", name)
	if (FILENAME ~ /^src/ && !(name in room))
		fail("no line in t/house.sh")
}

/^[ \t]*#[ \t]*include/ {
	includes++
	if ($0 ~ /[<"](linux|asm|asm-generic)\//)
		fail($0)
	if (match($0, /"[^"]*"/)) {
		header = substr($0, RSTART + 1, RLENGTH - 2)
		sub(/\.h$/, "", header)
		if (!index(room[name], " " header " "))
			fail($0)
	}
}

/^[ \t]*#[ \t]*(if|elif)/ && FILENAME !~ /^src\/(sys|sys_host|clone3|ladder|posix_spawn)\.c$|popen_compat/ {
	guard = FILENAME ~ /\.h$/ && ($0 == "#ifdef __cplusplus" || $0 ~ /^#ifndef WEAN_[A-Z0-9_]*H$/)
	if (!guard)
		fail($0)
}

END {
	printf "%d files, %d includes, %d breaches\n", files, includes, bad
	exit bad || !includes
}' src/*.[ch] include/*.h && [ $unnamed -eq 0 ]
