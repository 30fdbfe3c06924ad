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

# need_check CC NAME: a Check that CC has built in matrix/NAME.
need_check() {
	cc=$1 check=$PWD/matrix/$2
	[ -f "$check/lib/pkgconfig/check.pc" ] ||
		"${SHELL:-sh}" matrix/tree/t/check-from-source.sh "$cc" "$check"
}

# with_check CC NAME ARGUMENT...: configured with that; peers of the benchmark and all that
# pkg-config knows besides stay out.
with_check() {
	need_check "$1" "$2"
	shift 2
	configure CC="$cc" PKG_CONFIG=pkg-config PKG_CONFIG_LIBDIR="$check/lib/pkgconfig" "$@"
}

# The tests but those whose names, without "t/test_", match the pattern.
all_but() {
	pattern=$1
	shift
	printf '%s\n' "$@" | grep -v "^t/test_$pattern\$" | tr '\n' ' '
}

# The library of another machine's libc, as its compiler finds it.
libs_of() {
	dirname "$(readlink -f "$("$1" -print-file-name=libc.so.6)")"
}

# What valgrind found in any process: errors, and leaks of what the library allocated.
# Tests leave memory to their end.
found_by_valgrind() {
	awk '
	function end_block() {
		if (lines > 1 && (!is_leak || is_ours)) {
			printf "%s\n", block
			found = 1
		}
		block = ""
		lines = is_leak = is_ours = 0
	}
	!/^==[0-9]+==/ { next }
	NF == 1 { end_block(); next }
	{
		block = block FILENAME ": " $0 "\n"
		lines++
		is_leak = is_leak || /lost in loss record/
		is_ours = is_ours || /: wean_/
	}
	END { end_block(); exit !found }' t/*.log
}

# A command for whose programs of another machine the kernel takes qemu.  Only in a
# namespace of its own, so nothing of this machine is changed; and as a user: root there
# has one id.
emulating() {
	machine=$1
	shift
	case $machine in
	aarch64) class=2 number='\xb7' ;;
	i386) class=1 number='\x03' ;;
	esac
	# shellcheck disable=SC2016 # for the inner shell
	unshare -Urm sh -c '
	set -eu
	cd /proc/sys/fs/binfmt_misc
	mount -t binfmt_misc binfmt_misc .
	cd "$OLDPWD"
	ones="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
	head="\x7fELF\x0$2\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00$3\x00"
	printf "%s" ":wean:M::$head:$ones:$1:PF" >/proc/sys/fs/binfmt_misc/register
	shift 3
	exec unshare -U --map-user=1000 --map-group=1000 "$@"' \
	sh "$(command -v "qemu-$machine" || command -v "qemu-$machine-static")" \
	"$class" "$number" "$@"
}

# A copy of the build in the tree, for what needs no other.
copy_build() {
	mkdir -p "$1"
	tar c --exclude=./matrix --exclude=./.git . | tar x -C "$1"
	cd "$1"
	rm -f t/*.log t/*.trs
}

# The library closes by a system call of its own, so for ThreadSanitizer a number that comes
# again is the same descriptor.
suppress_close() {
	echo 'race:^__interceptor_close$' >suppressions
	TSAN_OPTIONS=suppressions=$PWD/suppressions
	export TSAN_OPTIONS
}

# With a Check built for another machine, whose programs find their loader by themselves:
# t/kid is executed with any environment; libc loads libgcc_s, to end a thread, by the
# path of the old kind alone.
cross() {
	libs=$(libs_of "$1-gcc")
	with_check "$1-gcc" "check-$leg" --host="$1" CFLAGS='-g -O1' \
		LDFLAGS="-Wl,--dynamic-linker=$libs/$2 -Wl,-rpath,$libs -Wl,--disable-new-dtags"
}

case $leg in
clang)
	# In a path with a space, the source as well.
	mkdir 'matrix/a space'
	ln -s 'a space' matrix/clang
	cp -Rp matrix/tree/. 'matrix/a space'
	cd 'matrix/a space'
	# The user has another wean, as before an update.
	mkdir other
	for file in libwean.so libwean.so.0 libwean.a wean.h wean_cmd.h wean_popen.h; do
		echo '#error another wean' >other/$file
	done
	LD_LIBRARY_PATH=$PWD/other
	export LD_LIBRARY_PATH
	./configure --enable-werror --prefix=/usr CC=clang CPPFLAGS=-Iother LDFLAGS=-Lother
	;;
posix_spawn | fork)
	lacks=default
	copy_build "matrix/$leg"
	./configure --with-launcher="$leg"
	touch src/ladder.c src/posix_spawn.c
	;;
user)
	# Nobody may be kept out of where this tree is.
	lacks=root
	mkdir -p "matrix/$leg/t"
	logs=$PWD/matrix/$leg/t
	own=$(mktemp -d)
	trap 'rm -rf "$own"' EXIT
	chmod 755 "$own"
	copy_build "$own/tree"
	;;
programs) copy_build "matrix/$leg" ;;
amalgamation)
	need_check musl-gcc check-musl
	copy_build "matrix/$leg"
	;;
highlimit | valgrind)
	lacks='default ptrace seccomp native pidfd table exec signals'
	copy_build "matrix/$leg"
	;;
aarch64)
	lacks='default ptrace seccomp native root exec kernel'
	cross aarch64-linux-gnu ld-linux-aarch64.so.1
	;;
i686)
	lacks='default ptrace seccomp native root exec kernel'
	cross i686-linux-gnu ld-linux.so.2
	;;
musl)
	lacks=reuse
	with_check musl-gcc check-musl --host=x86_64-linux-musl
	;;
musl-static)
	lacks=reuse
	with_check musl-gcc check-musl --host=x86_64-linux-musl --disable-shared
	;;
asan)
	lacks=native
	UBSAN_OPTIONS=print_stacktrace=1
	export UBSAN_OPTIONS
	configure CC=gcc CFLAGS='-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -Wno-format-truncation'
	;;
tsan)
	lacks='native ptrace signals'
	configure CC=gcc CFLAGS='-g -O1 -fsanitize=thread' # clang's dies on libc's clone
	suppress_close
	;;
*)
	echo "leg.sh: no leg $leg" >&2
	exit 2
	;;
esac

WEAN_SCALE=$scale CK_EXCLUDE_TAGS=$lacks
export WEAN_SCALE CK_EXCLUDE_TAGS
case $leg in
valgrind | aarch64 | i686 | asan | tsan) # a test that takes a second takes several
	CK_TIMEOUT_MULTIPLIER=10
	export CK_TIMEOUT_MULTIPLIER
	tests=$jobs
	;;
*) tests=$((2 * jobs)) ;; # most wait for something
esac
make=${MAKE:-make}
[ $leg != musl-static ] || make="$make LDFLAGS=-all-static"
run="$make -j$tests check"
$make -j"$jobs" all

# The programs NAME..., which alone are built, and what else $also says.
run_some() {
	some=$(printf 't/test_%s ' "$@")
	$run check_PROGRAMS="t/kid $some" TESTS="$some ${also-}"
}

# one_file NAME CC OPTIONS TEST...: those tests, linked to what CC makes of wean.c.  Their
# own objects serve, unless they are for another libc or have to know of a sanitizer.
# shellcheck disable=SC2016,SC2086 # for make; lists
one_file() {
	name=$1 with=$2 options="-g -O1 $3" libs='$(CHECK_LIBS)'
	some=$(shift 3; printf 't/test_%s ' "$@")
	rm -f $some
	case $name in
	asan | tsan)
		rm -f t/test_*.o
		;;
	musl)
		rm -f t/kid t/*.o t/*.lo t/libtest.la
		options="$options -isystem $check/include"
		libs=$(PKG_CONFIG_LIBDIR=$check/lib/pkgconfig pkg-config --libs check)
		;;
	esac
	$with -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror $options \
		-DWEAN_WITH_CMD -DWEAN_WITH_POPEN -c wean.c
	"${SHELL:-sh}" ../tree/t/amalgamation.sh wean.o "$options"
	$run CC="$with" CFLAGS="$options" check_PROGRAMS="t/kid $some" TESTS="$some" \
		LDADD="t/.libs/libtest.a wean.o $libs -lpthread"
	for file in t/test_*.log t/test_*.trs; do
		mv "$file" "t/$name-${file#t/}"
	done
}

# What every way to start a child has to do, whatever the machine.
quick='adopt cmd names open pipeline popen popen_close program request spawn stdio system'
every="$quick maps reaped stop threads wait_many"
pure='cmd_text cut explain fdmap layout path plan table words'
output='communicate reader run utf8'
whole="$every $pure $output close closer pipeline_ends"

# shellcheck disable=SC2086 # lists
case $leg in
clang)
	$make -j"$jobs" bench-programs demo-programs storm-programs
	$run
	;;
posix_spawn | fork) run_some $every kill_group limits signals stranger terminals ;;
user)
	as=
	if [ "$(id -u)" = 0 ]; then
		chown -R nobody .
		as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
	fi
	status=0
	PYTHON=python3 $as $run abs_builddir="$PWD" \
		TESTS="$(all_but '\(sweep\|denied\).*' "$@") t/python.sh" || status=$?
	cp t/*.log t/*.trs "$logs"
	exit $status
	;;
highlimit) $make check check_PROGRAMS= TESTS=t/highlimit.sh ;;
programs) $make check check_PROGRAMS= TESTS=t/real-programs.sh ;;
valgrind)
	# The command and t/kid run natively.
	under="valgrind -q --error-exitcode=99 --num-callers=30 --leak-check=full"
	under="$under --show-leak-kinds=definite --errors-for-leak-kinds=none"
	run="$run LOG_COMPILER='$under'"
	eval "$run" TESTS="'$(printf 't/test_%s ' $quick $pure $output maps stop wait_many)'"
	if found_by_valgrind; then
		exit 1
	fi
	;;
aarch64)
	aarch64-linux-gnu-objdump -d src/.libs/clone3.o | grep 'svc.*#0x0'
	run="emulating aarch64 $run"
	run_some $every $pure $output close closer
	"${SHELL:-sh}" ../tree/t/aarch64-kernel.sh ../kernel-aarch64 \
		t/test_names t/test_spawn
	;;
i686)
	run="emulating i386 $run"
	run_some $every $pure $output close closer
	;;
musl) run_some $whole counts descriptors failures frugal host scan ;;
musl-static)
	also=t/chroot.sh
	run_some maps spawn stdio $output
	;;
amalgamation)
	$make amalgamation
	core=$(all_but '\(command\|denied\).*' $PUBLIC_TESTS | sed 's/t.test_//g')
	few='close pipeline popen run spawn threads'
	one_file gcc gcc '' $core
	one_file clang clang '' $few
	one_file protector gcc -fstack-protector-all $few
	CK_EXCLUDE_TAGS=native CK_TIMEOUT_MULTIPLIER=10 UBSAN_OPTIONS=print_stacktrace=1
	export CK_TIMEOUT_MULTIPLIER UBSAN_OPTIONS
	one_file asan gcc '-fsanitize=address,undefined -fno-sanitize-recover=all' \
		$few adopt cmd communicate explain open popen_threads reader stop
	CK_EXCLUDE_TAGS='native ptrace signals'
	suppress_close
	one_file tsan gcc -fsanitize=thread popen_threads races reader run spawn threads
	CK_EXCLUDE_TAGS=
	one_file musl musl-gcc '' $few
	;;
asan) run_some $whole environment explain_exec failures popen_threads scan sweep_calls ;;
tsan) run_some $output popen_threads races reaped spawn stress threads wait_many ;;
esac
