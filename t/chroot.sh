#!/bin/sh
# Static programs, the command among them, in a directory that holds nothing but them: no
# /proc, no /dev, no shell, no loader.  Run by the leg musl-static; takes root.
set -u

: "${WEAN_KID:?}" "${WEAN_COMMAND:?}" "${srcdir:=.}"
: "${CC:=cc}" "${CFLAGS=}" "${LDFLAGS=}"
LDFLAGS=$(echo "$LDFLAGS" | sed 's/-all-static/-static/') # that is libtool's word
chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
if ! "$chroot" / true; then
	echo "chroot(8) is not to be had by $(id -un)"
	exit 77
fi
root=$(mktemp -d) || exit 99
trap 'rm -rf "$root"' EXIT
good=0 bad=0

# says STATUS TEXT COMMAND...: what the command, in there, leaves and writes
says() {
	status=$1 text=$2
	shift 2
	said=$("$@" 2>&1)
	is=$?
	if [ "$is" -eq "$status" ] && [ "$said" = "$text" ]; then
		good=$((good + 1))
		return
	fi
	bad=$((bad + 1))
	echo "FAILED: $*"
	echo "wanted $status, $text"
	echo "got    $is, $said"
}

inside() {
	"$chroot" "$root" "$@"
}

with_no_input() {
	inside "$@" <&-
}

# Descriptors that stay open over the exec, low and high.
with_more_open() {
	inside "$@" 5<"$root/kid" 9<"$root/kid"
}

# A report without the lines that are others' business.
descriptors_of() {
	"$@" | grep '^\(listing\|fd\) ' | cut -d' ' -f1,2 | tr '\n' ' '
}

# shellcheck disable=SC2086 # lists
$CC $CFLAGS -I"$srcdir/include" -o "$root/first" "$srcdir/examples/c/first.c" $LDFLAGS \
	src/.libs/libwean.a || exit 99
cp "$WEAN_KID" "$root/kid" && cp "$WEAN_COMMAND" "$root/wean" || exit 99
printf '#!/bin/sh\n' >"$root/script" && chmod 755 "$root/script"
inside /kid exit 0 || {
	echo "t/kid is not static"
	exit 77
}

says 7 '/kid left with 7' inside /first /kid exit 7
says 127 "cannot run '/absent': No such file or directory" inside /first /absent
says 7 '' inside /wean -- /kid exit 7
missing=': No such file or directory'
says 127 "wean: cannot run '/script': its interpreter '/bin/sh'$missing" \
	inside /wean -- /script
says 127 "wean: cannot find 'kid' in PATH '/bin': No such file or directory" \
	env PATH=/bin "$chroot" "$root" /wean -- kid exit 7
says 126 "wean: cannot open '/dev/null' as descriptor 0: No such file or directory" \
	with_no_input /wean -- /kid exit 7
says 0 'listing scan fd 0 fd 1 fd 2 ' descriptors_of with_more_open /wean -- /kid report

echo "$good hold, $bad do not"
[ "$bad" -eq 0 ]
