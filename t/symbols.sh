#!/bin/sh
# What the libraries export, what runs between clone and exec may call, what is kept in
# memory between calls, and what the ELF notes say.
set -u

# The objects that run between clone and exec, and what they call outside of themselves:
# these and nothing else.  No libc, no allocation, no instrumentation.
between='child child_fds closer probe_child'
called_between='
wean_sys_chdir wean_sys_close wean_sys_close_on_exec wean_sys_close_range
wean_sys_control_tty wean_sys_disposition wean_sys_dup_above wean_sys_dup_onto
wean_sys_exec wean_sys_exit
wean_sys_fchdir wean_sys_file wean_sys_file_at wean_sys_foreground wean_sys_getpgid
wean_sys_getpid wean_sys_getppid wean_sys_is_cgroup2 wean_sys_last_signal wean_sys_limit wean_sys_list_open
wean_sys_list_read wean_sys_rewind wean_sys_listed wean_sys_nice
wean_sys_no_new_privs wean_sys_not_here wean_sys_open wean_sys_open_at
wean_sys_nofile wean_sys_pdeathsig wean_sys_pidfd_getfd wean_sys_pidfd_open wean_sys_poll
wean_sys_set_close_on_exec wean_sys_table_size
wean_sys_set_disposition wean_sys_set_foreground wean_sys_set_mask wean_sys_setgid
wean_sys_setgroups wean_sys_setpgid wean_sys_setsid wean_sys_setuid wean_sys_sleep_us
wean_sys_umask wean_sys_unshare_files wean_sys_wait wean_sys_write
'

# The variables that outlive a call.
remembered='
cannot_unshare cuts_cleanly memory_is_shared refused_rungs streams widened
'

CC=${CC:-cc} CFLAGS=${CFLAGS-} NM=${NM:-nm} OBJDUMP=${OBJDUMP:-objdump} READELF=${READELF:-readelf}
srcdir=${srcdir:-.}
shared=src/.libs/libwean.so
static=src/.libs/libwean.a
# shellcheck source=t/script.sh
. "${srcdir:-.}/t/script.sh"
need_tools "$NM" "$OBJDUMP" "$READELF"

# What waits for the link to become code has nothing to look at yet.
all=
for object in src/*.o src/.libs/*.o; do
	case $object in
	src/main*.o) ;;
	*) [ ! -f "$object" ] || all="$all $object" ;;
	esac
done
# shellcheck disable=SC2086 # a list; and /dev/null, so that each is named
objects=$($READELF -sW $all /dev/null 2>/dev/null | awk '
	/^File: / { file = $2 }
	/^Symbol table/ { code[file] = 1 }
	/__gnu_lto_slim/ { slim[file] = 1 }
	END { for (file in code) if (!(file in slim)) print file }' | sort | tr '\n' ' ')
postponed=$(($(echo "$all" | wc -w) - $(echo "$objects" | wc -w)))

case $objects in
*child.o*) ;;
*)
	echo "FAILED: no objects in $PWD/src"
	exit 1
	;;
esac

# ---- public names: the map, the headers, the libraries ----

public=$(sed -n '/global:/,/local:/s/^[[:space:]]*\([A-Za-z0-9_*]*\);.*/\1/p' "$srcdir/src/libwean.map")
same 'a name in the map does not start with wean_' '' \
	"$(words "$public" | grep -v '^wean_[a-z0-9_]*$')"

declared=$(for header in "$srcdir"/include/*.h; do echo "#include <${header##*/}>"; done |
	$CC -I"$srcdir/include" -E -P -x c - | grep -o '\<wean_[a-z0-9_]* *(' | tr -d '( ')
same 'functions of the headers against the map' "$public" "$declared"

if [ -f $shared ]; then
	same 'exports of the shared library against the map' "$public" \
		"$($NM -D --defined-only $shared | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')"
fi

# A sanitizer adds names and data of its own.
# shellcheck disable=SC2086 # a list
instrumented=$($NM $objects | grep -c ' U __\(asan\|tsan\|ubsan\|gcov\|llvm\|sanitizer\)')

if [ -f $static ]; then
	same 'global names of the static library that do not start with wean_' '' \
		"$($NM -g --defined-only $static | awk 'NF == 3 { print $3 }' |
			grep -v '^wean_\|^__\(odr_asan\|llvm\|prof\|cov\|x86.get_pc_thunk\)')"
fi

# ---- what runs between clone and exec ----

for dir in src src/.libs; do
	[ -f $dir/child.o ] || continue
	for object in $between; do
		$NM $dir/"$object".o || echo "U $object.o"
	done >"$tmp/names"
	own=$(awk 'NF == 3 { print $3 }' "$tmp/names")
	same "calls of $between in $dir" "$called_between" \
		"$(awk 'NF == 2 && $2 != "_GLOBAL_OFFSET_TABLE_" { print $2 }' "$tmp/names" |
			grep -vxF "$own")"
done

# They call sys.o, which makes its system calls by itself where it can.  Only a compiler
# that does not optimise clears and copies structs by calls.
case $CFLAGS in
*-O[123s]*) plain= ;;
*) plain='\|memcpy\|memset' ;;
esac
for object in src/sys.o src/.libs/sys.o; do
	[ -f $object ] || continue
	same "calls of $object beside the way into the kernel" 'wean_clone3' \
		"$($NM -u $object | awk '{ print $NF }' |
			grep -vx "syscall\|__errno_location\|___errno_location\|_GLOBAL_OFFSET_TABLE_$plain")"
done

# ---- writable memory ----

# shellcheck disable=SC2086 # a list
$OBJDUMP -t $objects | awk '/ O / && / \.t?(data|bss)|\*COM\*/ && !/\.data\.rel\.ro/ { print $NF, $(NF - 1) }' |
	sed 's/\.[0-9]* / /' | sort -u >"$tmp/memory"
if [ "$instrumented" -gt 0 ] || [ "$postponed" -gt 0 ]; then
	echo "instrumented or postponed to the link: writable memory is not looked at"
else
	sed 's/^/remembered: /; s/ 0*\([0-9a-f]*\)$/, 0x\1 bytes/' "$tmp/memory"
	same 'variables that outlive a call' "$remembered" "$(cut -d' ' -f1 "$tmp/memory")"
fi

# ---- ELF notes ----

# shellcheck disable=SC2086 # a list; and /dev/null, so that each is named
same 'objects with a stack note that asks for no executable stack' "$objects" \
	"$($READELF -SW $objects /dev/null 2>/dev/null | awk '
		/^File: / { file = $2 }
		/\.note\.GNU-stack/ && !/ A?X / { print file }')"

if [ -f $shared ]; then
	same 'flags of the stack of the shared library' 'RW' \
		"$($READELF -lW $shared | awk '$1 == "GNU_STACK" { print $7 }')"
	same 'relocations in the text of the shared library' '' \
		"$($READELF -dW $shared | grep -o TEXTREL)"
	same 'whether the shared library stays when a plugin goes' 'NODELETE' \
		"$($READELF -dW $shared | grep -o NODELETE)"
fi

for object in $(words "$objects" | grep '/clone3\.o$'); do
	case $($READELF -hW "$object" | tr '\n' ' ') in
	*ELF64*X86-64*) features='IBT SHSTK' ;;
	*ELF64*AArch64*) features='BTI' ;;
	*) continue ;;
	esac
	same "$object: features that its note claims" "$features" \
		"$($READELF -nW "$object" | grep -o '\<IBT\>\|\<SHSTK\>\|\<BTI\>')"
done

echo "$good agree, $bad do not"
[ "$bad" -eq 0 ] && [ "$good" -gt 0 ]
