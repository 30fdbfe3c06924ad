#!/bin/sh
# What the manual says is what the library is: sections, prototypes, structs, names,
# and programs that compile and print what their comments tell.
set -u

section_order='NAME
LIBRARY
SYNOPSIS
DESCRIPTION
RETURN VALUES
ENVIRONMENT
EXIT STATUS
EXAMPLES
DIAGNOSTICS
ERRORS
NOTES
SEE ALSO
STANDARDS
HISTORY
CAVEATS'

CC=${CC:-cc} srcdir=${srcdir:-.}
man=$srcdir/man examples=$srcdir/examples/c
# All of the library: of libwean.a and libwean.so one may not have been built.
library='src/.libs/librest.a src/.libs/libbare.a'
command=${WEAN_COMMAND:-$PWD/src/wean}
backspace=$(printf '\b')
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
good=0 bad=0

for built in $library "$command"; do
	[ -f "$built" ] || {
		echo "FAILED: no $built in $PWD"
		exit 1
	}
done
command -v mandoc >/dev/null || {
	echo 'not here: mandoc'
	exit 77
}

fail() {
	bad=$((bad + 1))
	echo "FAILED: $*"
}

# same WHAT EXPECTED FOUND: two files
same() {
	if cmp -s "$2" "$3"; then
		good=$((good + 1))
	else
		fail "$1 (<: missing, >: too much)"
		diff "$2" "$3" | grep '^[<>]'
	fi
}

# same_lists WHAT EXPECTED FOUND: texts, a thing a line, in any order
same_lists() {
	printf '%s\n' "$2" | grep . | LC_ALL=C sort >"$tmp/expected"
	printf '%s\n' "$3" | grep . | LC_ALL=C sort >"$tmp/found"
	same "$1" "$tmp/expected" "$tmp/found"
}

# ---- the pages ----

# The blocks of a page that are shown as they are: $tmp/blocks/PAGE.N
cut_blocks() {
	mkdir -p "$tmp/blocks"
	awk -v to="$tmp/blocks/${1##*/}" '
		/^\.Ed/ { inside = 0 }
		inside { print >(to "." n) }
		/^\.Bd -literal/ { inside = 1; n++ }' "$1"
}

names_of() { # the functions that its NAME section lists
	sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \(wean_[a-z_]*\).*/\1/p' "$1"
}

# Declarations, one a line, with blanks only where C needs them.
declarations() {
	tr -s ' \t\n' '   ' | tr ';' '\n' | sed 's/ *\([][*(),{}]\) */\1/g; s/^ *//; s/ *$//'
}

prototypes_of() { # as a reader sees them
	mandoc -T ascii -O width=400 "$1" | sed "s/.$backspace//g" |
		sed '/^SYNOPSIS/,/^DESCRIPTION/!d; /^[A-Z]/d; /#include/d' |
		declarations | grep '('
}

required_sections() {
	case $1 in
	*.1) echo 'NAME,SYNOPSIS,DESCRIPTION,EXIT STATUS,EXAMPLES,SEE ALSO' ;;
	*.3) echo 'NAME,LIBRARY,SYNOPSIS,DESCRIPTION,EXAMPLES,ERRORS,NOTES,SEE ALSO' ;;
	*.7) echo 'NAME,DESCRIPTION,SEE ALSO' ;;
	esac | tr ',' '\n'
}

check_sections() {
	sed -n 's/^\.Sh //p' "$1" >"$tmp/sections"
	echo "$section_order" | grep -Fxf "$tmp/sections" >"$tmp/ordered"
	same "order of the sections of $1" "$tmp/ordered" "$tmp/sections"
	missing=$(required_sections "$1" | grep -vFxf "$tmp/sections")
	[ -z "$missing" ] || fail "$1 has no section" "$missing"
	if grep -q '^\.Ev PATH' "$1" && ! grep -q '^\.Sh ENVIRONMENT' "$1"; then
		fail "$1 names PATH and has no ENVIRONMENT"
	fi
}

check_page() {
	said=$(mandoc -T lint -W warning "$1" 2>&1)
	[ -z "$said" ] || fail "mandoc: $said"
	check_sections "$1"
	prototypes_of "$1" >"$tmp/here"
	cat "$tmp/here" >>"$tmp/prototypes"
	if [ -s "$tmp/here" ]; then
		same_lists "functions that the NAME of $1 lists" \
			"$(grep -o 'wean_[a-z_]*(' "$tmp/here" | tr -d '(')" "$(names_of "$1")"
		grep -q '^\.Sh RETURN VALUES' "$1" || fail "$1 has no RETURN VALUES"
	fi
	cut_blocks "$1"
}

: >"$tmp/prototypes"
for page in "$man"/*.[137]; do
	check_page "$page"
done

# ---- against the headers and the map ----

headers=$(for header in "$srcdir"/include/*.h; do echo "#include <${header##*/}>"; done |
	$CC -I"$srcdir/include" -E -P -x c - | declarations)
same_lists 'prototypes of the headers against the pages' \
	"$(echo "$headers" | grep 'wean_[a-z_]*(')" "$(cat "$tmp/prototypes")"

symbols=$(sed -n '/global:/,/local:/s/^[[:space:]]*\(wean_[a-z0-9_]*\);.*/\1/p' \
	"$srcdir/src/libwean.map")
same_lists 'symbols of the map against the NAME sections' "$symbols" \
	"$(for page in "$man"/*.3; do names_of "$page"; done | grep -Fx "$symbols")"

constants=$(cat "$srcdir"/include/*.h | tr '\n' ' ' | sed 's|/\*|\n&|g; s|\*/|&\n|g' |
	grep -v '^/\*' | grep -o '\<WEAN_[A-Z0-9_]*' | grep -v '_H$' | sort -u)
documented=$(grep -h '^\..*Dv' "$man"/*.[37] | grep -o '\<WEAN_[A-Z0-9_]*' | sort -u)
same_lists 'constants of the headers against the pages' "$constants" "$documented"

members=$(echo "$headers" | awk '
	sub(/^struct wean_[a-z]*\{/, "") { inside = 1 }
	/^\}/ { inside = 0 }
	inside {
		gsub(/\[[0-9]*\]/, "")
		gsub(/\)\([^)]*\)/, "") # a function: the name alone
		for (n = split($0, part, ","); n > 0; n--) {
			sub(/.*[ *]/, "", part[n])
			print part[n]
		}
	}' | grep -Ev '^(reserved.*|opaque)$' | sort -u)
described=$(sed -n 's/^\.\(.*\)Fa /\1 /p' "$man"/*.3 | tr -c 'a-z_\n' ' ' |
	tr ' ' '\n' | sort -u)
same_lists 'members of the structs against the pages' "$members" \
	"$(echo "$described" | grep -Fx "$members")"

# "-x" and "--xyz", as --help and as the tags of the page have them.
options_of_command() {
	"$command" --help | sed -n 's/^  \(.\{31\}\) .*/\1/p' |
		grep -oE -e '-[A-Za-z]\>' -e '--[a-z-]+' | sort -u
}
options_of_page() {
	sed -n 's/\\-/-/g; s/^\.It Fl/, Fl/p' "$man/wean.1" | grep -oE ', Fl [A-Za-z-]+' |
		sed 's/, Fl /-/'
}
same_lists 'options of wean --help against wean.1' "$(options_of_command)" \
	"$(options_of_page)"

references=$(grep -h -o 'Xr wean[a-z_]* [137]' "$man"/*.[137] | sed 's/Xr //; s/ /./' | sort -u)
for one in $references; do
	[ -f "$man/$one" ] || echo "$symbols" | grep -qFx "${one%.3}" ||
		fail "a page refers to $one, which is not there"
done

echo "$headers" | tr -d '\n' >"$tmp/header"
for block in "$tmp"/blocks/*; do
	grep -q '^struct wean_[a-z]* {' "$block" || continue
	if grep -qF -- "$(declarations <"$block" | tr -d '\n')" "$tmp/header"; then
		good=$((good + 1))
	else
		fail "a struct of ${block##*/} is not that of the header"
		cat "$block"
	fi
done

# ---- the programs ----

# C as a page has to write it.
escaped() {
	sed "s/\\\\/\\\\e/g; s/'/\\\\(aq/g; s/\`/\\\\(ga/g; s/\^/\\\\(ha/g; s/~/\\\\(ti/g
		s/-/\\\\-/g; s/^\./\\\\\&./" "$1"
}

plain() {
	sed "s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\(ga/\`/g; s/\\\\(ha/^/g; s/\\\\(ti/~/g
		s/^\\\\&//; s/\\\\e/\\\\/g" "$1"
}

compile() { # NAME
	# shellcheck disable=SC2086 # lists
	$CC ${WARN_CFLAGS-} -I"$srcdir/include" ${CPPFLAGS-} ${CFLAGS-} \
		-o "$tmp/run/$1" "$examples/$1.c" $library ${LDFLAGS-}
}

# A pid, a time and, where a filter is at work, the method are another each time.
steady() {
	sed 's/ started as [0-9]* by [a-z0-9_+]* in [0-9]* us/ started as N by M in N us/' "$1"
}

# What can be run here of a session, each command on one line: what has the prompt of
# root, with its output, is for root alone.
runnable() {
	sed -e ':more' -e '/^[$#] .*\\$/{' -e 'N; s/\\\n *//; b more' -e '}' "$1" |
		awk -v root="$(id -u)" '
			/^[$#] / { skips = /^#/ && root != 0 }
			!skips
			skips && /^#/ { print "left out, for root alone: " $0 >"/dev/stderr" }'
}

# run_session WHAT FILE: does what the lines with a prompt say, as in the file?
run_session() {
	runnable "$2" >"$tmp/runnable"
	grep '^[$#] ' "$tmp/runnable" | while IFS= read -r line; do
		printf '%s\n' "$line"
		(cd "$tmp/run" && PATH=${command%/*}:$PATH LC_ALL=C sh -c "${line#? }" 2>&1 </dev/null)
	done >"$tmp/output"
	steady "$tmp/runnable" >"$tmp/expected"
	steady "$tmp/output" >"$tmp/found"
	same "what $1 prints" "$tmp/expected" "$tmp/found"
}

check_program() { # NAME
	block=$(grep -l "^/\* $1\.c \\\\- " "$tmp"/blocks/*)
	if [ ! -f "$block" ]; then
		fail "$1.c is not shown by exactly one page: $block"
		return
	fi
	escaped "$examples/$1.c" >"$tmp/escaped"
	same "$1.c against ${block##*/}" "$tmp/escaped" "$block"
	compile "$1" || fail "$1.c does not compile"
	sed -n '/\*\//q; s/^ \*    //p' "$examples/$1.c" >"$tmp/session"
	grep -q '^\$ ' "$tmp/session" || fail "$1.c does not tell what it prints"
	run_session "$1.c" "$tmp/session"
}

mkdir "$tmp/run"
for file in "$examples"/*.c; do
	name=$(basename "$file" .c)
	case $name in
	demo | epoll | glib) ;; # too long for a page; the last two: t/loops.sh
	*) check_program "$name" ;;
	esac
done
for page in "$man"/*.3; do
	grep -q '^/\* [a-z0-9_]*\.c \\- ' "$page" || fail "$page shows no program"
done

for block in "$tmp"/blocks/*.1.*; do
	grep -q '^[$#] ' "$block" || continue
	plain "$block" >"$tmp/session"
	run_session "${block##*/}" "$tmp/session"
done

sed -n '/^    \/\* first\.c/,/^    }$/{ s/^    //; p; }' "$srcdir/README" >"$tmp/first.c"
same 'first.c against README' "$examples/first.c" "$tmp/first.c"

echo "$good agree, $bad do not"
[ "$bad" -eq 0 ] && [ "$good" -gt 0 ]
