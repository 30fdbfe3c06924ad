#!/bin/sh
# leg.sh NAME TEST...: builds matrix/tree in matrix/NAME, as this leg of the matrix has
# it, and runs those tests whose needs the leg meets.  For "make check-matrix".
set -eu

leg=$1
shift
lacks=                # the needs (t/common.h) that this leg does not meet
scale=0.05            # of repeated things: the full number runs in the first build alone
jobs=$(getconf _NPROCESSORS_ONLN || echo 1)

configure() {
	mkdir "matrix/$leg"
	cd "matrix/$leg"
	../tree/configure --enable-werror "$@"
}

case $leg in
clang)
	configure CC=clang
	;;
posix_spawn | fork)
	lacks=default
	configure --with-launcher="$leg"
	;;
space)
	# Built from its distribution in a path with a space, the source as well.
	mkdir "matrix/a space"
	ln -s 'a space' matrix/space
	cp -Rp matrix/tree/. 'matrix/a space'
	cd 'matrix/a space'
	./configure --enable-werror --prefix=/usr
	;;
user)
	# Nobody may be kept out of where this tree is.
	lacks=root
	own=$(mktemp -d)
	trap 'rm -rf "$own"' EXIT
	cp -Rp matrix/tree "$own"
	chmod -R a+rX "$own"
	mkdir -p "matrix/$leg/t" "$own/$leg"
	logs=$PWD/matrix/$leg/t
	cd "$own/$leg"
	../tree/configure --enable-werror
	;;
highlimit)
	configure
	;;
*)
	echo "leg.sh: no leg $leg" >&2
	exit 2
	;;
esac

WEAN_SCALE=$scale CK_EXCLUDE_TAGS=$lacks
export WEAN_SCALE CK_EXCLUDE_TAGS
make=${MAKE:-make}
$make -j"$jobs" all
case $leg in
clang) $make -j"$jobs" check bench-programs demo-programs storm-programs ;;
space) $make -j"$jobs" check TESTS=t/consumer.sh check_PROGRAMS=t/kid ;;
user)
	$make -j"$jobs" check TESTS=
	as=
	if [ "$(id -u)" = 0 ]; then
		chown -R nobody .
		as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
	fi
	status=0
	# shellcheck disable=SC2086 # a command and its options, or nothing
	$as $make -j"$jobs" check TESTS="$*" || status=$?
	cp t/*.log t/*.trs "$logs"
	exit $status
	;;
highlimit) $make check check_PROGRAMS= TESTS=t/highlimit.sh ;;
*) $make -j"$jobs" check TESTS="$*" ;;
esac
