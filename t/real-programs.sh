#!/bin/sh
# Programs of Debian that use popen(3) and system(3) are built as they are and turned over
# by wean_popen_compat.h: both do the same, and the second asks a shell for nothing but what
# needs one.  Run by the leg "programs"; needs apt, dpkg-dev and a mount of its own.
set -eu

CC=${CC:-cc} NM=${NM:-nm} MAKE=${MAKE:-make}
include=$(cd "${srcdir:-.}/include" && pwd)
library=$PWD/src/.libs/libwean.a
unset MAKEFLAGS MFLAGS MAKELEVEL
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
# shellcheck source=t/debian-source.sh
. "${srcdir:-.}/t/debian-source.sh"
bad=0

fail() {
	echo "FAILED: $*"
	bad=$((bad + 1))
}

# ---- a shell that keeps a list -----------------------------------------------

# In the place of /bin/sh, in a namespace of its own: it notes each call in $log.
log=$scratch/log
shell=$(readlink -f /bin/sh)
cp "$shell" "$scratch/sh"
cat >"$scratch/listing" <<EOF
#!$scratch/sh
echo "\$*" >>"$log"
exec $scratch/sh "\$@"
EOF
chmod 755 "$scratch/listing"

with_list() {
	: >"$log"
	# shellcheck disable=SC2016 # for the inner shell
	unshare -Urm "$scratch/sh" -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' \
		sh "$scratch/listing" "$shell" "$@"
}

with_list true || {
	echo 'no mount of its own is allowed here'
	exit 77
}

# ---- both kinds of a program -------------------------------------------------

as_is='-g -O1'
turned_over="$as_is -I$include -include $include/wean_popen_compat.h"
with_library="-Wl,--whole-archive $library -Wl,--no-whole-archive"

# make_NAME DIRECTORY CFLAGS LDFLAGS
make_ed() {
	(cd "$1" && ./configure CC="$CC" CFLAGS="$2" LDFLAGS="$3" && $MAKE ed)
}

make_remind() {
	(cd "$1" && ./configure CC="$CC" CFLAGS="$2" LDFLAGS="$3" && $MAKE -C src remind)
}

# both NAME PATH: as_is/NAME and over/NAME, whose program is at PATH in them
both() {
	debian_source "$1" "$scratch/as_is/$1"
	cp -R "$scratch/as_is/$1" "$scratch/over/$1"
	"make_$1" "$scratch/as_is/$1" "$as_is" ''
	"make_$1" "$scratch/over/$1" "$turned_over" "$with_library"
	undefined=$($NM -D -u "$scratch/over/$1/$2" | grep -w 'popen\|pclose\|system') || :
	[ -z "$undefined" ] || fail "$1 still uses" "$undefined"
}

# run_as KIND PROGRAM ARGUMENT...: in work.KIND, where all that comes of it is left
run_as() {
	kind=$1 program=$2 work=$scratch/work
	shift 2
	rm -rf "$work.$kind"
	cp -R "$scratch/input" "$work"
	status=0
	(cd "$work" && LC_ALL=C with_list "$scratch/$kind/$program" "$@" \
		<script >out 2>err) || status=$?
	echo "status $status" >>"$work/out"
	mv "$work" "$work.$kind"
	cp "$log" "$scratch/shells.$kind"
}

# same COMMANDS SHELLS PROGRAM ARGUMENT...: of so many commands only so many need a shell
same() {
	commands=$1 shells=$2
	shift 2
	run_as as_is "$@"
	run_as over "$@"
	cat "$scratch/work.over/out"
	diff -r "$scratch/work.as_is" "$scratch/work.over" || fail "$1: another result"
	[ "$(wc -l <"$scratch/shells.as_is")" -eq "$commands" ] || fail "$1: not $commands commands"
	[ "$(wc -l <"$scratch/shells.over")" -eq "$shells" ] || fail "$1: not $shells shells"
	echo "$1: $commands commands, of which a shell was asked for these:"
	cat "$scratch/shells.over"
}

mkdir "$scratch/as_is" "$scratch/over" "$scratch/input"
both ed ed
both remind src/remind

printf 'pears\napples\noranges\n' >"$scratch/input/fruit"

cat >"$scratch/input/script" <<'EOF'
r !cat fruit
1,$p
$r !seq 2 4
$r !sort -r fruit | head -n 2
1,3w !wc -l
1,4w !sort > sorted
!ls fruit
!echo from the shell
1,$p
w !tr a-z A-Z
r !missing-program x
p
EOF
same 9 4 ed/ed -s

cat >"$scratch/input/script" <<'EOF'
SET whole SHELL("cat fruit")
SET some SHELL("sort -r fruit | head -n 2")
MSG [whole] / [some] / [SHELL("seq 3 5")] / [SHELL("missing-program")] /
INCLUDECMD cat more
REM RUN cp fruit copied
REM RUN echo from the shell > echoed
EOF
echo 'MSG from another file' >"$scratch/input/more"
same 7 3 remind/src/remind -q script 2023-01-01

[ $bad -eq 0 ]
