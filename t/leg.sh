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
clang) $make -j"$jobs" check bench-programs demo-programs ;;
*) $make -j"$jobs" check TESTS="$*" ;;
esac
