#!/bin/sh
# aarch64-kernel.sh DIR TEST...: boots the distribution's kernel for aarch64 in an
# emulated machine and runs these tests on it; called in a build for aarch64.
#
# There clone3 is the kernel's, so its assembly runs.  The kernel is kept in DIR.  Needs
# apt, qemu-system-aarch64, cpio and a cross compiler; not root.  Fails unless the machine
# says in the end that all tests passed.
set -eu

mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
cc=aarch64-linux-gnu-gcc
limit=600             # seconds, for the whole

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$scratch"  # apt reads as a user of its own

# From where this machine's packages come, without a change of its own apt.
fetch_kernel() {
	mkdir -p "$scratch/state/lists/partial" "$scratch/cache/archives/partial"
	: >"$scratch/status"
	options="-q -o Dir::State=$scratch/state -o Dir::State::status=$scratch/status
		-o Dir::Cache=$scratch/cache -o APT::Architecture=arm64
		-o APT::Architectures=arm64"
	# shellcheck disable=SC2086 # a list of options
	apt-get $options update </dev/null || echo "$0: not all entries answer" >&2
	# shellcheck disable=SC2086
	package=$(apt-cache $options depends linux-image-arm64 |
		sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
	# shellcheck disable=SC2086
	(cd "$scratch" && apt-get $options download "$package" </dev/null)
	dpkg-deb --fsys-tarfile "$scratch"/linux-image-*.deb |
		tar -x -O -f - --wildcards './boot/vmlinuz-*' >"$scratch/vmlinuz"
	mv "$scratch/vmlinuz" "$dir/vmlinuz"
}

# The first process: runs the tests, one by one.
write_init() {
	cat >"$scratch/init.c" <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(const char *test)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, 0);
		execl(test, test, (char *)0);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	printf("# %s: status %#x\n", test, (unsigned)status);
	return status != 0;
}

int main(void)
{
	static const char *const tests[] = { TESTS };
	int failed = 0;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	int console = open("/dev/console", O_RDWR);
	for (int fd = 0; fd <= 2; fd++)
		dup2(console, fd);
	if (console > 2)
		close(console);
	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("WEAN_KID", "/t/kid", 1);
	setenv("WEAN_SCALE", "0.05", 1);
	setenv("CK_TIMEOUT_MULTIPLIER", "20", 1);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		failed += run(tests[i]);
	printf("aarch64 kernel: %d failed\n", failed);
	reboot(RB_POWER_OFF);
}
END
	names=
	for test; do
		names="$names \"/$test\","
	done
	$cc -static -O1 -DTESTS="$names" "$scratch/init.c" -o "$scratch/root/init"
}

# The files of the machine: the tests, t/kid, libwean and libc, each where it is here.
gather() {
	root=$scratch/root
	libs=$(dirname "$(readlink -f "$($cc -print-file-name=libc.so.6)")")
	mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/t" "$root/src/.libs" "$root$libs"
	cp t/kid "$@" "$root/t/"
	cp src/.libs/libwean.so.* "$root/src/.libs/"
	cp "$libs"/ld-linux-aarch64.so.1 "$libs"/lib[cm].so.6 "$root$libs/"
	write_init "$@"
}

boot() {
	(cd "$scratch/root" && find . | cpio -o --quiet -H newc) >"$scratch/initramfs"
	timeout "$limit" qemu-system-aarch64 -M virt -cpu cortex-a57 -m 1024 -net none \
		-nographic -no-reboot -kernel "$dir/vmlinuz" -initrd "$scratch/initramfs" \
		-append 'console=ttyAMA0 quiet panic=-1' </dev/null | sed -u 's/\r$//' |
		tee "$scratch/log"
	grep -qx 'aarch64 kernel: 0 failed' "$scratch/log"
}

[ -f "$dir/vmlinuz" ] || fetch_kernel
gather "$@"
boot
