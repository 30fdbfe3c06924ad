#!/bin/sh
# The programs that have many children in an event loop, examples/c/epoll.c and glib.c: they
# print what their comments say, start no thread, do not catch SIGCHLD, and have no more
# children at once than they are told.
set -u

CC=${CC:-cc} CFLAGS=${CFLAGS-} LDFLAGS=${LDFLAGS-} srcdir=${srcdir:-.}
# All of the library: of libwean.a and libwean.so one may not have been built.
library='src/.libs/librest.a src/.libs/libbare.a'
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0

# same WHAT EXPECTED FOUND
same() {
	printf '%s\n' "$2" >"$tmp/expected"
	printf '%s\n' "$3" >"$tmp/found"
	cmp -s "$tmp/expected" "$tmp/found" && return
	bad=$((bad + 1))
	echo "FAILED: $1 (<: missing, >: too much)"
	diff "$tmp/expected" "$tmp/found" | grep '^[<>]'
}

# hold PID: traces it, says so to "held", and ends a while later.
cat >"$tmp/hold.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int error = ptrace(PTRACE_SEIZE, argc > 1 ? atoi(argv[1]) : 0, NULL, NULL) != 0;

	fputs(error ? "no\n" : "yes\n", fopen("held", "w"));
	fcloseall();
	sleep(1);
	return error;
}
END
$CC -D_GNU_SOURCE -o "$tmp/hold" "$tmp/hold.c"
mkfifo "$tmp/held"

# try_loop NAME [OPTION...]
# shellcheck disable=SC3045 # every shell of Linux has ulimit -n
try_loop() {
	name=$1 source=$srcdir/examples/c/$1.c
	shift
	# shellcheck disable=SC2086 # lists
	$CC ${WARN_CFLAGS-} -I"$srcdir/include" ${CPPFLAGS-} ${GLIB_CFLAGS-} $CFLAGS \
		-o "$tmp/$name" "$source" $library $LDFLAGS "$@" || {
		bad=$((bad + 1))
		echo "FAILED: $name.c does not compile"
		return
	}
	session=$(sed -n '/\*\//q; s/^ \*    //p' "$source")
	same "what $name prints" "$session" "$(cd "$tmp" && echo "$session" | sed -n 's/^\$ //p' |
		while IFS= read -r line; do
			printf '$ %s\n' "$line"
			LC_ALL=C sh -c "$line" 2>&1 </dev/null
		done)"
	# shellcheck disable=SC2016 # for the child's shell
	seen=$("$tmp/$name" 2 1 sh -c 'sed -n "s/^Threads:\t/threads=/p; s/^SigCgt:\t/caught=0x/p" \
		/proc/$PPID/status' sh | grep '=')
	eval "$seen"
	same "threads of $name" 1 "${threads-}"
	same "whether $name catches SIGCHLD" 0 "$((${caught-} >> 16 & 1))"
	# A debugger that keeps a child: it may not be allowed.
	# shellcheck disable=SC2016 # for the child's shell
	seen=$(cd "$tmp" && "./$name" 1 1 sh -c './hold $$ & read -r is <held; echo "$is"' sh)
	case $seen in
	no*) echo "$name: not traced" ;;
	*) same "$name with a child that a tracer keeps" "yes
1 runs, 0 failed" "$seen" ;;
	esac
	# Two of each child, those of its start, and the program's own.
	same "$name with descriptors for 50" '1000 runs, 0 failed' \
		"$(ulimit -n 112 && "$tmp/$name" 1000 50 echo 2>&1 | tail -n 1)"
	same "$name with too many at once" '100 runs, some failed' \
		"$(ulimit -n 112 && "$tmp/$name" 100 100 sh -c 'sleep 1' 2>/dev/null |
			sed 's/ [1-9][0-9]* failed/ some failed/')"
}

try_loop epoll
if [ "${GLIB_LIBS-}" ]; then
	# shellcheck disable=SC2086 # a list
	try_loop glib $GLIB_LIBS
fi

echo "$bad do not agree"
[ "$bad" -eq 0 ] || exit 1
[ "${GLIB_LIBS-}" ] || {
	echo "not here: GLib"
	exit 77
}
