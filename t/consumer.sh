#!/bin/sh
# A program of somebody else's finds an installed wean by pkg-config, links it either
# way and starts a child.  Where wean was installed there is no space, which libtool's
# own install step does not know; the leg `clang` builds in a path that has one.  What
# was installed is for all to read, whatever the umask, and no page refers to none.
set -u

: "${WEAN_KID:?}" "${libdir:?}" "${MAKE:=make}" "${CC:=cc}" "${CFLAGS=}" "${LDFLAGS=}"
PKG_CONFIG=${PKG_CONFIG:-pkg-config}
command -v "$PKG_CONFIG" >/dev/null || {
	echo "not here: $PKG_CONFIG"
	exit 77
}

# These belong to the make that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
case ${TMPDIR-} in
*' '*) unset TMPDIR ;;
esac
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

die() {
	echo "FAILED: $*"
	exit 1
}

cat >"$tmp/consumer.c" <<'EOF'
#include <stdio.h>
#include <wean.h>

int main(int argc, char **argv)
{
	struct wean_child child;
	struct wean_status status;
	int error = wean_spawn(&child, argv + 1, NULL);

	if (argc < 2 || error)
		return 120;
	wean_wait(&child, -1, &status);
	wean_release(&child);
	printf("wean %s: the child left with %d\n", wean_version(), status.code);
	return status.code;
}
EOF

# build_consumer NAME ROOT OPTION...: against what was installed under ROOT
build_consumer() {
	name=$1 root=$2
	shift 2
	flags=$(PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_PATH='' \
		PKG_CONFIG_LIBDIR="$root$libdir/pkgconfig" "$PKG_CONFIG" --cflags --libs "$@" wean) ||
		die "pkg-config for $name"
	echo "$name: $flags"
	# What pkg-config quotes is quoted for a shell.
	eval "set -- $flags"
	# shellcheck disable=SC2086 # lists
	$CC $CFLAGS -o "$tmp/$name" "$tmp/consumer.c" "$@" $LDFLAGS || die "building $name"
}

run_consumer() { # NAME [LIBRARY PATH]
	LD_LIBRARY_PATH=${2-} "$tmp/$1" "$WEAN_KID" exit 7
	[ $? -eq 7 ] || die "$1 did not give its child's value"
}

# Both ways of linking, as far as this build has them.
use() { # ROOT
	if [ -f "$1$libdir/libwean.so" ]; then
		build_consumer shared "$1"
		run_consumer shared "$1$libdir"
		# Only the static one is left for the linker to find.
		rm -f "$1$libdir"/libwean.so*
	fi
	if [ -f "$1$libdir/libwean.a" ]; then
		build_consumer static "$1" --static
		run_consumer static
	fi
}

quietly() {
	"$@" >"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		die "$*"
	}
}

# By root with a cautious umask, and with names of the packager's.
(umask 077 && quietly "$MAKE" install DESTDIR="$tmp/root" transform='s/^/x-/') || exit 1
hidden=$(find "$tmp/root" -type f ! -perm -444)
[ -z "$hidden" ] || die "not for all to read:" "$hidden"
man=$(find "$tmp/root" -name man3) aliases=0
for page in $(sed -n 's/^\.so //p' "$man"/*.3); do
	[ -f "${man%man3}$page" ] || die "a manual page refers to $page"
	aliases=$((aliases + 1))
done
echo "$aliases names of manual pages"
[ $aliases -gt 0 ] || die 'no function has a page by another name'
use "$tmp/root"
