#!/bin/sh
# examples/python: the module is built for each interpreter that is here, and does what
# t/python.py says.  Then Python's own test_subprocess judges it, under the first of them
# or under all that PYTHON names: what fails there, and why, is in t/python.py too.  (It
# takes long: without PYTHON only the layer that has all of wean in it, without the class
# that does all once more by select(2), which is not called, and not in legs that do
# repeated things less often.)  A start takes no more system calls than Python's
# own, a wait does not look every now and then, and other threads run during an exec.
set -u

: "${WEAN_KID:?}" "${CC:=cc}" "${CFLAGS=}" "${LDFLAGS=}"
source=$(cd "${srcdir:-.}" && pwd) library=$PWD/src/.libs
missing='' seen=' '
# shellcheck source=t/script.sh
. "${srcdir:-.}/t/script.sh"
need_loading

PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# ask INTERPRETER EXPRESSION
ask() {
	"$1" -c "import sys, sysconfig; print($2)" 2>/dev/null
}

# of t/python.py, in $python, where $version was built
run() {
	# shellcheck disable=SC2086 # words
	(cd "$tmp/$version" && PYTHONPATH="$PWD:$source/examples/python" \
		exec ${tracer-} "$python" "$source/t/python.py" "$@")
}

build() {
	include=$(ask "$python" 'sysconfig.get_path("include")')
	mkdir "$tmp/$version"
	# shellcheck disable=SC2086 # lists
	$CC ${WARN_CFLAGS-} $CFLAGS \
		-shared -fPIC -fvisibility=hidden \
		-I"$source/include" -isystem "$include" \
		-o "$tmp/$version/_wean.so" "$source/examples/python/_weanmodule.c" \
		-L"$library" -lwean -Wl,-rpath,"$library" $LDFLAGS
}

# ---- test_subprocess ---------------------------------------------------------

# Most of its time it sleeps, so its parts run at once.
judge() {
	ask "$python" '__import__("test.test_subprocess")' >/dev/null || {
		missing="$missing, test_subprocess of python $version"
		return
	}
	parts="ProcessTestCase ${PYTHON:+ProcessTestCaseNoPoll }POSIXProcessTestCase others"
	layers=${PYTHON:+1 }2
	for layer in $layers; do
		for part in $parts; do
			run suite $layer "$part" >"$tmp/$version/$layer.$part" 2>&1 &
		done
	done
	wait
	for layer in $layers; do
		for part in $parts; do
			log=$tmp/$version/$layer.$part
			grep '^to fail' "$log"
			awk '/^figures/ { good = $3 == 0 } END { exit !good }' "$log" || {
				cat "$log"
				fail "python $version, layer $layer, $part"
			}
		done
		echo "python $version, layer $layer: test_subprocess:" "$(
			cat "$tmp/$version/$layer".* | awk '
			/^figures/ { run += $2; failed += $3; skipped += $4; known += $5 }
			END { printf "%d run, %d failed, %d failed as known, %d skipped",
				run, failed, known, skipped }')"
	done
}

# ---- what strace sees --------------------------------------------------------

# calls OPTION... -- ARGUMENT...: how many system calls there were
calls() {
	(tracer='strace -qq -c -o calls'
	while [ "$1" != -- ]; do
		tracer="$tracer $1"
		shift
	done
	shift
	run "$@" >/dev/null) && awk '/ total$/ { print $4 }' "$tmp/$version/calls"
}

count_starts() { # OPEN
	n=10
	none=$(calls -f -- start 0 0 "$1" plain)
	for kind in plain pipes; do
		before=$(($(calls -f -- start 0 $n "$1" $kind) - none))
		for layer in 1 2; do
			ours=$(($(calls -f -- start $layer $n "$1" $kind) - none))
			echo "python $version, layer $layer, $1 open, $kind:" \
				"$n starts: $ours system calls, by python's own $before"
			if [ "$ours" -le $((20 * n)) ] || [ "$ours" -gt "$before" ]; then
				fail "so many system calls"
			fi
		done
	done
}

count_sleeps() {
	n=$(calls -e trace=poll,ppoll,select,pselect6,nanosleep,clock_nanosleep -- wait 2)
	echo "python $version: a wait with a limit sleeps $n times"
	[ "$n" -eq 1 ] || fail "a wait that looks every now and then"
}

run_during_exec() {
	n=$(tracer='strace -f -qq -o /dev/null -e inject=execve:delay_enter=300000' &&
		run ticks 1)
	echo "python $version: another thread counted to $n during an exec"
	[ "$n" -ge 3 ] || fail "other threads stand still during an exec"
}

count() {
	if ! strace -o /dev/null true 2>/dev/null; then
		missing="$missing, strace"
		return
	fi
	count_starts 10
	if [ "$(ulimit -H -n)" = unlimited ] || [ "$(ulimit -H -n)" -ge 1024 ]; then
		count_starts 900
	else
		missing="$missing, 1,024 descriptors"
	fi
	count_sleeps
	run_during_exec
}

# ---- the interpreters --------------------------------------------------------

for name in ${PYTHON:-python3 python3.10 python3.11 python3.12 python3.13}; do
	python=$(ask "$name" 'sys.executable') || continue
	version=$(ask "$python" '"%d.%d.%d" % sys.version_info[:3]')
	case $version$seen in
	2.* | 3.[0-9].* | *" $version "*) continue ;;
	esac
	[ -f "$(ask "$python" 'sysconfig.get_path("include")')/Python.h" ] || {
		missing="$missing, headers of python $version"
		continue
	}
	first=${first-$version}
	seen="$seen$version "
	if ! build; then
		fail "building for python $version"
		continue
	fi
	run own || fail "python $version"
	[ "$first" = "$version" ] || [ "${PYTHON-}" ] || continue
	count
	case ${PYTHON:-${WEAN_SCALE:-1}} in
	0*) ;;
	*) judge ;;
	esac
done

[ "${first-}" ] || skip "no python from 3.10 on with its headers"
[ $bad -eq 0 ] || exit 1
[ -z "$missing" ] || skip "not here: ${missing#, }"
