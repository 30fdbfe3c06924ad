#!/bin/sh
# Every public header compiles alone, as each C and C++ and for 64 and 32 bits, without
# a warning and without padding, and includes nothing but <stddef.h>; wean_popen.h has
# <stdio.h>, and wean_popen_compat.h turns a program over in any order of includes.
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
	compiles "libc.$suffix" "$@" && libc=yes || libc=no
	for header in $headers; do
		case $header-$libc in
		wean_popen*-no)
			echo "left out, no <stdio.h> here: $header: $*"
			continue
			;;
		esac
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
	printf '#include <stdio.h>\n#include <stdlib.h>\nextern FILE *none;\n' >"$tmp/libc.$suffix"
	for header in $headers; do
		printf '#include <%s>\nextern int one;\n' "$header" >"$tmp/$header.$suffix"
	done
done

foreign=$(cd "$include" && grep -n '^[[:space:]]*#[[:space:]]*include' ./*.h /dev/null |
	grep -v '#include <\(stddef\|wean[a-z_]*\)\.h>$' |
	grep -v '^\./wean_popen\.h:.*<stdio\.h>$\|^\./wean_popen_compat\.h:.*# *include <\(cstdlib\|wean_popen.h\)>$')
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
cc=$((good - c))

# ---- wean_popen_compat.h, before, between and after what declares the functions ----

# turned_over SUFFIX COMPILER STANDARD HEADER...: has a program with these headers ours?
turned_over() {
	suffix=$1 compiler=$2 standard=$3
	shift 3
	command -v "$compiler" >/dev/null || return
	{
		echo '#ifndef _GNU_SOURCE'
		echo '#define _GNU_SOURCE'
		echo '#endif'
		printf '#include <%s>\n' "$@"
		echo 'int use(const char *c, int (**other)(const char *));'
		echo 'int use(const char *c, int (**other)(const char *))'
		echo '{ FILE *f = popen(c, "r"); *other = system;'
		[ "$suffix" = c ] || echo 'if (std::system(c)) return 3;'
		echo 'return f ? pclose(f) : system(c) + asprintf(0, "%s", c); }'
	} >"$tmp/program.$suffix"
	# shellcheck disable=SC2086 # of the first way, options
	if compiles "program.$suffix" "$compiler" "-std=$standard" $before &&
		[ "$(${NM:-nm} -u "$tmp/out.o" | grep -o '[a-z_]*\(popen\|pclose\|system\)$' |
			sort | tr '\n' ' ')" = 'wean_pclose wean_popen wean_system ' ]; then
		good=$((good + 1))
	else
		echo "FAILED: turned over: $compiler -std=$standard $before $*"
		cat "$tmp/said"
		bad=$((bad + 1))
	fi
}

# all_orders SUFFIX COMPILER STANDARD STDIO STDLIB
all_orders() {
	ours=wean_popen_compat.h
	before="-include $ours"
	turned_over "$1" "$2" "$3" "$4" "$5"
	before=
	turned_over "$1" "$2" "$3" $ours "$4" "$5"
	turned_over "$1" "$2" "$3" "$4" $ours "$5"
	turned_over "$1" "$2" "$3" "$5" $ours "$4"
	turned_over "$1" "$2" "$3" "$4" "$5" $ours
	turned_over "$1" "$2" "$3" "$4" "$5" wean_popen.h $ours
	turned_over "$1" "$2" "$3" $ours wean_popen.h "$4" "$5"
}

programs=$good
for compiler in gcc clang; do
	all_orders c $compiler c11 stdio.h stdlib.h
done
for compiler in g++ clang++; do
	all_orders cc $compiler c++17 stdio.h stdlib.h
	all_orders cc $compiler c++17 cstdio cstdlib
done
programs=$((good - programs))

echo "$programs programs turned over, $c compilations as C, $cc as C++, $bad failed"
[ "$bad" -eq 0 ] || exit 1
# No compiler at all: nothing was shown.
[ "$c" -gt 0 ] && [ "$good" -gt "$c" ] || exit 77
