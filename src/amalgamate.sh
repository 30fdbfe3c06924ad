#!/bin/sh
# amalgamate.sh VERSION BARE REST CMD POPEN: writes wean.c and wean.h here, the whole
# library as a pair of files.  The lists, each one argument, are paths below $srcdir: BARE
# runs between clone and exec, CMD and POPEN are options.  It relies on the house's style:
# a definition is a line of its type alone, then one that begins with its name; a prototype
# has both on one line.
set -eu

version=$1 bare=$2 rest=$3 cmd=$4 popen=$5
to=$PWD
cd "${srcdir:-.}"

# What a bare function has against instrumentation, as far as the compiler knows it.
attributes='no_stack_protector
no_instrument_function
no_profile_instrument_function
no_split_stack
no_sanitize("all")
no_sanitize_coverage
disable_sanitizer_instrumentation,no_sanitize("coverage")'

comment() {
	sed '1s/^/\/* /; 1!s/^/ * /; s/ *$//; $s/$/ *\//'
}

# What is public may be hidden or static, so it has a macro in front.
public() { # HEADER
	sed -e '/^#include <wean/d' -e '/^[A-Za-z].*[ *]wean_[a-z0-9_]*(/s/^/WEAN_API /' "$1"
}

one_blank_line() {
	awk 'NF || last; { last = NF }'
}

bare_macro() {
	echo '#ifndef __has_attribute'
	echo '# define __has_attribute(x) 0'
	echo '#endif'
	names=
	for attribute in $attributes; do
		name=${attribute%%[(,]*}
		names="$names WEAN_$name"
		echo "#if __has_attribute($name)"
		echo "# define WEAN_$name __attribute__(($attribute))"
		echo '#else'
		echo "# define WEAN_$name"
		echo '#endif'
	done
	# Its own section: there is seen that it calls nothing else.
	printf '#define WEAN_BARE \\\n'
	# shellcheck disable=SC2086 # a list
	printf '\t%s \\\n' $names
	printf '\t__attribute__((section(".text.wean_bare")))\n'
}

# The sources that are named, each header where the first asks for it, without the
# system's; "bare" and "rest" say of which kind those are that follow, and a directive is
# passed on.  What has a prototype is static by that, whatever its definition says.
private() {
	awk -v version="$version" '
	function put(line) {
		if (held != "")
			print (bare && line ~ /^[a-z0-9_]+\(/ ? "WEAN_BARE " : "") held
		held = line ~ /^[_a-z][A-Za-z0-9_ *()]*$/ ? line : ""
		if (held == "")
			print line
	}
	function add(file,    line, part) {
		put("\n/* ---- " file " ---- */\n")
		while ((getline line <file) > 0) {
			if (line ~ /^#include "/) {
				split(line, part, "\"")
				if (!seen[part[2]]++)
					add("src/" part[2])
			}
			if (line ~ /^#include/ || line ~ /^#define _[A-Z_]*SOURCE/)
				continue
			if (line ~ /"\.(globl|hidden) /) # a name for this file alone
				continue
			sub(/section \.text\\n/, "section .text.wean_bare\\n", line)
			sub(/PACKAGE_VERSION/, "\"" version "\"", line)
			if (file ~ /\.h$/ && line ~ /^[A-Za-z_].*[ *]wean_[a-z0-9_]+\(/)
				line = (line ~ /wean_clone3/ ? "WEAN_HIDDEN " : "static ") line
			put(line)
		}
		close(file)
	}
	BEGIN {
		for (i = 1; i < ARGC; i++)
			if (ARGV[i] ~ /\.c$/)
				add(ARGV[i])
			else if (ARGV[i] ~ /^#/)
				put("\n" ARGV[i])
			else if (ARGV[i] !~ /\.h$/)
				bare = ARGV[i] == "bare"
	}' "$@"
}

{
	echo "wean.h $version, as \"make amalgamation\" writes it; wean.c tells how to use it." |
		comment
	printf '%s\n' '#ifndef WEAN_API' '# define WEAN_API' '#endif' ''
	public include/wean.h
	printf '\n%s\n\n' '#ifdef WEAN_WITH_CMD'
	public include/wean_cmd.h
	printf '\n%s\n' '#endif' '#ifdef WEAN_WITH_POPEN'
	echo
	public include/wean_popen.h
	printf '\n%s\n' '#endif'
} >"$to/wean.h"

{
	comment <<END
wean $version in one file, as "make amalgamation" writes it.

Put it and wean.h into a source tree and compile it as the rest: as C11 or newer, not as
C++, with gcc or clang, for Linux with any libc.  Macros for the command line, the same
for wean.c and for what includes wean.h:

  WEAN_WITH_CMD, WEAN_WITH_POPEN
      They have what <wean_cmd.h> and <wean_popen.h> declare, too.
  WEAN_API
      Stands in front of what is public: an attribute, as of visibility; or static, for a
      file that includes wean.c before everything else.  The rest is static anyway, by
      short names: that file has little else.

A function that is marked WEAN_BARE runs between clone and exec, on the memory and the thread
pointer of the parent: a call that an instrumentation adds there would corrupt the host.  So
it has attributes against sanitizers, profiles, coverage and stack protectors, of which gcc
12 and clang 14 have all.

-flto is not for this file: give it -fno-lto.  It has a function in assembly, which gcc may
then put into another partition than its caller, where the linker does not find it.

$(cat LICENSE)
END
	printf '%s\n' '#ifndef _GNU_SOURCE' '# define _GNU_SOURCE' '#endif'
	# shellcheck disable=SC2086 # lists
	cat $bare $rest $cmd $popen | grep '^#include <[^w]' | LC_ALL=C sort -u
	printf '\n%s\n\n' '#include "wean.h"'
	bare_macro
	echo '#define WEAN_HIDDEN __attribute__((visibility("hidden")))'
	printf '\n%s\n' '/* Some of it is of use to an option alone. */' \
		'#pragma GCC diagnostic push' \
		'#pragma GCC diagnostic ignored "-Wunused-function"'
	# shellcheck disable=SC2086 # lists
	private bare $bare rest $rest '#ifdef WEAN_WITH_CMD' $cmd '#endif' \
		'#ifdef WEAN_WITH_POPEN' $popen '#endif' '#pragma GCC diagnostic pop' | one_blank_line
} >"$to/wean.c"
