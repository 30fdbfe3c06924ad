#!/bin/sh
# The library as one file: "make amalgamation" writes it, it compiles without a warning and
# without what configure found, exports what is public and nothing else, works, and what it
# runs between clone and exec calls nothing else, with instrumentation too.
# amalgamation.sh OBJECT OPTIONS: the last alone, of an object that was made of it so.
set -u

CC=${CC:-cc} CFLAGS=${CFLAGS-} NM=${NM:-nm} READELF=${READELF:-readelf} MAKE=${MAKE:-make}
srcdir=${srcdir:-.}
parts='-DWEAN_WITH_CMD -DWEAN_WITH_POPEN'
# shellcheck source=t/script.sh
. "${srcdir:-.}/t/script.sh"
need_tools "$NM" "$READELF"

# src/ has assembly for these: on others it calls libc for the kernel and the compiler's
# library for arithmetic, and wean_clone3 is C, global and hidden.
has_assembly() { # OBJECT
	$READELF -hW "$1" | grep -q 'ELF64$' && $READELF -hW "$1" | grep -q 'X86-64\|AArch64'
}

# What the section of the bare functions refers to outside of itself and of constants.
called_by_bare() { # OBJECT
	{
		$READELF -SW "$1" | sed 's/^ *\[ *\([0-9]*\)\] */section \1 /'
		$READELF -sW "$1"
		$READELF -rW "$1"
	} | awk '
	$1 == "section" { section[$2] = $3 }
	$1 ~ /^[0-9]+:$/ && NF >= 7 {
		where = $7 in section ? section[$7] : $7
		if (where !~ /^\.(text\.wean_bare|rodata|data\.rel\.ro)/)
			outside[NF > 7 ? $8 : where] = 1
	}
	/^Relocation section/ { bare = /\.text\.wean_bare/ }
	bare && / R_/ {
		n++
		if ($5 in outside)
			print $5
	}
	END { if (!n) print "not one reference" }'
}

# Only a compiler that does not optimise clears and copies structs by calls.
look_at_bare() { # OBJECT OPTIONS
	case $2 in
	*-O[123s]*) plain= ;;
	*) plain='memcpy\|memset' ;;
	esac
	has_assembly "$1" ||
		plain="$plain\|syscall\|__errno_location\|_GLOBAL_OFFSET_TABLE_\|__x86\..*\|__.*div.*\|__.*mod.*"
	same "calls of what runs between clone and exec, compiled with $2" '' \
		"$(called_by_bare "$1" | grep -vx "$plain")"
}

if [ $# -gt 0 ]; then
	look_at_bare "$1" "$2"
	exit $bad
fi

# compile OUTPUT OPTION...
compile() {
	output=$1
	shift
	# shellcheck disable=SC2086 # lists
	if $CC ${WARN_CFLAGS-} ${CPPFLAGS-} $CFLAGS "$@" -fno-lto -o "$tmp/$output" \
		>"$tmp/said" 2>&1; then
		good=$((good + 1))
	else
		bad=$((bad + 1))
		echo "FAILED: $CC $*"
		cat "$tmp/said"
		return 1
	fi
}

# These belong to the make that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL
$MAKE amalgamation >"$tmp/said" 2>&1 || {
	cat "$tmp/said"
	exit 1
}
cp wean.c wean.h "$tmp"
cat >"$tmp/program.c" <<'END'
#include "wean.h"

int main(int argc, char **argv)
{
	static char *const missing[] = { "./missing", NULL };
	struct wean_result result;
	struct wean_child child;
	char text[128];
	int error = wean_run(argv + 1, NULL, NULL, &result), code = result.status.code;

	if (argc < 2 || error)
		return 120;
	wean_result_free(&result);
	error = wean_spawn(&child, missing, NULL);
	wean_explain(&child, missing, NULL, error, text, sizeof text);
	puts(text);
#ifdef WEAN_WITH_CMD
	puts(wean_cmd_new(NULL) ? "a command" : "no command");
#endif
	return wean_system("exit 3") == 3 << 8 ? code : 121;
}
END
printf '%s\n' '#define WEAN_API static' '#define WEAN_WITH_POPEN' '#include "wean.c"' \
	'#include "program.c"' >"$tmp/alone.c"

# ---- what it exports ----

global_names() { # OBJECT
	$NM -g --defined-only "$1" | awk 'NF == 3 && $3 !~ /^(__|DW\.ref)/ { print $3 }' |
		if has_assembly "$1"; then cat; else grep -v '^wean_clone3$'; fi
}

# shellcheck disable=SC2086 # lists
compile wean.o -std=c11 $parts -c "$tmp/wean.c" && {
	same 'global names against the map' \
		"$(sed -n '/global:/,/local:/s/^[[:space:]]*\(wean_[a-z0-9_]*\);.*/\1/p' \
			"$srcdir/src/libwean.map")" "$(global_names "$tmp/wean.o")"
	look_at_bare "$tmp/wean.o" "$CFLAGS"
}
compile alone.o -std=gnu11 -O0 -c "$tmp/alone.c" &&
	same 'global names of a file that has it inside' main "$(global_names "$tmp/alone.o")"

# ---- what it does ----

# shellcheck disable=SC2086 # lists
for program in with alone; do
	case $program in
	with) set -- "$tmp/program.c" "$tmp/wean.o" $parts ;;
	alone) set -- "$tmp/alone.o" ;;
	esac
	compile "$program" "$@" ${LDFLAGS-} || continue
	found=$(cd "$tmp" && "./$program" "$WEAN_KID" exit 7)
	same "status of $program" 7 "$?"
	case $program in
	with) expected="cannot run './missing': No such file or directory no command" ;;
	alone) expected="cannot run './missing': No such file or directory" ;;
	esac
	same "output of $program" "$expected" "$found"
done

# ---- what instrumentation adds to it ----

# What the compiler has an attribute against.
instrumented=-O0
while read -r attribute flag; do
	printf '#if !__has_attribute(%s)\n#error\n#endif\nint x;\n' "$attribute" >"$tmp/empty.c"
	# shellcheck disable=SC2086 # a list
	$CC $CFLAGS -Werror $instrumented $flag -c "$tmp/empty.c" -o "$tmp/empty.o" \
		>/dev/null 2>&1 && instrumented="$instrumented $flag"
done <<'END'
no_stack_protector -fstack-protector-all
no_instrument_function -finstrument-functions
no_instrument_function -pg
no_profile_instrument_function --coverage
no_sanitize_coverage -fsanitize-coverage=trace-pc
disable_sanitizer_instrumentation -fsanitize-coverage=trace-pc
END
# shellcheck disable=SC2086 # lists
compile more.o -std=c11 $instrumented $parts -c "$tmp/wean.c" &&
	look_at_bare "$tmp/more.o" "$instrumented"

echo "$good agree, $bad do not"
[ "$bad" -eq 0 ] && [ "$good" -gt 0 ]
