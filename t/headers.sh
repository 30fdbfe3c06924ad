#!/bin/sh
# Every public header compiles alone, as each C and C++ and for 64 and 32 bits, without
# a warning and without padding, and includes nothing but <stddef.h>.
set -u

include=${srcdir:-.}/include
headers=$(cd "$include" && echo *.h)
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
good=0 bad=0

# compiles FILE COMPILER OPTION...: without a word, too
compiles() {
	file=$1
	shift
	"$@" -Wall -Wextra -Wpedantic -Wpadded -Werror -I"$include" -c "$tmp/$file" \
		-o "$tmp/out.o" >"$tmp/said" 2>&1 && [ ! -s "$tmp/said" ]
}

# all_headers SUFFIX COMPILER OPTION...
all_headers() {
	suffix=$1
	shift
	if ! compiles "none.$suffix" "$@"; then
		echo "left out, not known here: $*"
		return
	fi
	for header in $headers; do
		if compiles "$header.$suffix" "$@"; then
			good=$((good + 1))
		else
			echo "FAILED: $header: $*"
			cat "$tmp/said"
			bad=$((bad + 1))
		fi
	done
}

# all_ways SUFFIX COMPILER STANDARD...: does nothing if there is no such compiler
all_ways() {
	suffix=$1 compiler=$2
	shift 2
	command -v "$compiler" >/dev/null || {
		echo "left out, not here: $compiler"
		return
	}
	for standard; do
		all_headers "$suffix" "$compiler" "-std=$standard"
		all_headers "$suffix" "$compiler" "-std=$standard" -m32
	done
}

for suffix in c cc; do
	printf '#include <stddef.h>\nextern size_t none;\n' >"$tmp/none.$suffix"
	for header in $headers; do
		printf '#include <%s>\nextern int one;\n' "$header" >"$tmp/$header.$suffix"
	done
done

foreign=$(cd "$include" && grep -n '^[[:space:]]*#[[:space:]]*include' ./*.h /dev/null |
	grep -v '#include <\(stddef\|wean[a-z_]*\)\.h>$')
if [ "$foreign" ]; then
	echo "FAILED: an include that a header must not have:"
	echo "$foreign"
	bad=$((bad + 1))
fi

for compiler in gcc clang; do
	all_ways c $compiler c99 c11 c17 c2x
done
c=$good
for compiler in g++ clang++; do
	all_ways cc $compiler c++11 c++17 c++20
done

echo "$c compilations as C, $((good - c)) as C++, $bad failed"
[ "$bad" -eq 0 ] || exit 1
# No compiler at all: nothing was shown.
[ "$c" -gt 0 ] && [ "$good" -gt "$c" ] || exit 77
