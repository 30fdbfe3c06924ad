#!/bin/sh
# check-from-source.sh CC PREFIX: installs Check into PREFIX, built by the compiler CC,
# which may have flags: for a libc or a machine that Debian's own library is not for.
#
#   t/check-from-source.sh 'aarch64-linux-gnu-gcc -O1' "$PWD/matrix/check-aarch64"
#   ./configure PKG_CONFIG_LIBDIR="$PWD/matrix/check-aarch64/lib/pkgconfig" ...
#
# The library is static, and its check.pc says all that it needs.  The source is the one
# of the distribution, from where this machine's packages come; it is left in
# "check-source" beside PREFIX, and taken from there by the next call.  Needs apt and
# dpkg-dev, not root, and changes nothing of apt's.
set -eu

cc=$1
mkdir -p "$2"
prefix=$(cd "$2" && pwd)
source=$(dirname "$prefix")/check-source
jobs=$(getconf _NPROCESSORS_ONLN || echo 1)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
# shellcheck source=t/debian-source.sh
. "${0%/*}/debian-source.sh"

build() {
	mkdir "$scratch/build"
	cd "$scratch/build"
	[ -f "$source/configure" ] || autoreconf -fi "$source"
	# shellcheck disable=SC2086 # a compiler and its flags
	"$source/configure" CC="$cc" CFLAGS=-O1 --host="$($cc -dumpmachine)" \
		--prefix="$prefix" --libdir="$prefix/lib" --disable-shared --with-pic \
		--disable-subunit --disable-timeout-tests --disable-build-docs
	make -j"$jobs" -C lib
	make -j"$jobs" -C src libcheck.la
	make -C src install-libLTLIBRARIES install-includeHEADERS
	make install-includeHEADERS install-pcdataDATA
	# Debian's library has this name.
	sed 's/-lcheck_pic/-lcheck/' "$prefix/lib/pkgconfig/check.pc" >check.pc
	cp check.pc "$prefix/lib/pkgconfig/"
}

[ -d "$source" ] || debian_source check "$source"
build
