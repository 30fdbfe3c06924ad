#!/bin/sh
# (wean popen) of examples/guile does what Guile's manual says of (ice-9 popen), and a
# call makes no useless close.
#
#   guile.sh            the tests
#   guile.sh measure    what both take; the library is built already
set -u

CC=${CC:-cc} PKG_CONFIG=${PKG_CONFIG:-pkg-config}
srcdir=$(cd "${srcdir:-.}" && pwd)
examples=$srcdir/examples/guile
libs=$PWD/src/.libs
# shellcheck source=t/script.sh
. "${srcdir:-.}/t/script.sh"

need_tools guile guild "$PKG_CONFIG"
"$PKG_CONFIG" --exists guile-3.0 || skip 'not here: the development files of Guile 3.0'
need_loading

# ---- the module, built as its comment tells ----------------------------------

# Guile's headers are its own business.
guile_flags=$("$PKG_CONFIG" --cflags --libs guile-3.0 | sed 's/-I/-isystem /g')
# shellcheck disable=SC2086 # lists
$CC ${WARN_CFLAGS-} -g -O2 -shared -fPIC \
	-o "$tmp/guile-wean.so" "$examples/popen.c" -I"$srcdir/include" $guile_flags \
	-L"$libs" -lwean || die 'popen.c does not compile'

# Nothing is written outside of $tmp.
LC_ALL=C.UTF-8 GUILE_AUTO_COMPILE=0 GUILE_EXTENSIONS_PATH=$tmp LD_LIBRARY_PATH=$libs
export LC_ALL GUILE_AUTO_COMPILE GUILE_EXTENSIONS_PATH LD_LIBRARY_PATH

# compile NAME: without a word but the file's name
compile() {
	guild compile -W2 -L "$examples" -o "$tmp/$1.go" "$examples/$1.scm" >"$tmp/said" 2>&1 &&
		[ "$(wc -l <"$tmp/said")" -eq 1 ] || {
		cat "$tmp/said"
		die "$1.scm does not compile"
	}
}

mkdir "$tmp/wean" "$tmp/scratch"
compile wean/popen
cd "$tmp/scratch" || exit 99

# run NAME [ARGUMENT]: one that hangs is one that fails
run() {
	${tracer-} timeout 300 guile -L "$examples" -C "$tmp" \
		-c "(load-from-path \"$1\")" "${2-}"
}

if [ "${1-}" = measure ]; then
	compile measure
	guile --version | head -n 1
	run measure time
	exit
fi

# ---- what is promised ----------------------------------------------------------

: "${WEAN_KID:?}"
run test 2>stderr || {
	cat stderr
	die 'test.scm'
}

# ---- system calls, ours and those of (ice-9 popen) -----------------------------

command -v strace >/dev/null || skip 'the tests passed, calls are not counted: no strace'
tracer='strace -f -e trace=close,read -o calls'
$tracer true 2>/dev/null ||
	skip 'the tests passed, calls are not counted: no tracing is permitted here'
[ "$(ulimit -H -n)" = unlimited ] || [ "$(ulimit -H -n)" -ge 1024 ] ||
	skip 'the tests passed, calls are not counted: fewer than 1,024 descriptors'
run measure trace || die 'measure.scm trace'

# Between each two marks the calls of all processes; the reads of Guile alone.
awk '
/ close\(999999/ {
	guile = $1
	inside = !inside
	if (inside)
		n++
	marks = /unfinished/ # its rest comes in another line
	next
}
marks && $1 == guile && /close resumed/ {
	marks = 0
	next
}
/999999/ || !inside { next }
/ close\(/ { closes[n]++ }
/ close.*EBADF/ { useless[n]++ }
/ read\(/ && $1 == guile { reads[n]++ }
function row(what, of, at) {
	printf "%-40s %9d %9d\n", what, of[at], of[at + 1]
}
END {
	printf "%-40s %9s %9s\n", "", "(ice-9", "(wean"
	limit[1] = "1,024"
	limit[3] = "20,000"
	for (i = 1; i < n - 1; i += 2) {
		row("closes of one call, limit " limit[i], closes, i)
		row("of which on nothing", useless, i)
		calls++
		bad += useless[i + 1] > 0 || closes[i + 1] == 0
	}
	row("reads of 10,000 bytes", reads, i)
	bad += reads[i + 1] > 10 || reads[i + 1] == 0
	exit inside || bad || !calls
}' calls || die 'calls'
