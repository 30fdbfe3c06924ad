#!/bin/sh
# Every constant, option, function, struct member and documented error of the API is
# named in a test, where the test uses it and not in a comment.
set -u

cd "${srcdir:-.}" || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

covered=0 missing=0

# found WHAT STATUS: counts it
found() {
	if [ "$2" -eq 0 ]; then
		covered=$((covered + 1))
	else
		missing=$((missing + 1))
		echo "MISSING: $1"
	fi
}

# A C source without its comments.
code() {
	awk '{
		line = $0
		text = ""
		while (line != "") {
			at = index(line, inside ? "*/" : "/*")
			if (!at) {
				text = text (inside ? "" : line)
				break
			}
			text = text (inside ? " " : substr(line, 1, at - 1))
			line = substr(line, at + 2)
			inside = !inside
		}
		print text
	}' "$1"
}

mkdir "$tmp/t" || exit 99
for test in t/test_*.c; do
	code "$test" >"$tmp/$test"
done
for header in include/*.h; do
	code "$header"
done >"$tmp/api.h"
cat "$tmp"/t/test_*.c >"$tmp/tests.c"

# ---- constants and functions --------------------------------------------------

constants=$(grep -o '\<WEAN_[A-Z0-9_]*' "$tmp/api.h" | grep -v '_H$' | sort -u)
for constant in $constants; do
	grep -qw "$constant" "$tmp/tests.c"
	found "constant $constant" $?
done

functions=$(grep -o '\<wean_[a-z0-9_]* *(' "$tmp/api.h" | tr -d ' (' | sort -u)
for function in $functions; do
	grep -q "\<$function *(" "$tmp/tests.c"
	found "function $function" $?
done

# ---- members ------------------------------------------------------------------

# "STRUCT MEMBER" for each; a declaration may name several.
awk '
/^struct [a-z_]+ \{/ { name = $2; next }
/^\}/ { name = "" }
name {
	text = text " " $0
	while ((at = index(text, ";")) > 0) {
		declaration = substr(text, 1, at - 1)
		text = substr(text, at + 1)
		gsub(/\[[^]]*\]/, "", declaration)
		if (declaration ~ /\(\*/) { # a function: its arguments are no members
			sub(/.*\(\*/, "", declaration)
			sub(/\).*/, "", declaration)
		}
		n = split(declaration, declared, ",")
		for (i = 1; i <= n; i++) {
			sub(/ *$/, "", declared[i])
			sub(/.*[^A-Za-z0-9_]/, "", declared[i])
			print name, declared[i]
		}
	}
}' "$tmp/api.h" >"$tmp/members"

while read -r struct member; do
	grep -q "MEMBER($struct, $member)" "$tmp/t/test_layout.c"
	found "$struct.$member in t/test_layout.c" $?
	[ "$struct" = wean_options ] || continue
	# An initializer's, or by a name such as opt.
	grep -Eq "(^|[^])A-Za-z0-9_>]|\<[a-z_]*opt[a-z]*)(\.|->)$member\>" "$tmp/tests.c"
	found "option $member" $?
done <"$tmp/members"

# ---- errors -------------------------------------------------------------------

# "PAGE ERROR FUNCTION|..." for each [ERROR] of an ERRORS section: of the functions that
# the entry begins with, or else those of the page, or else those that the section does.
awk -v functions=" $(echo "$functions" | tr '\n' ' ') " '
function name() {
	return index(functions, " " $2 " ") ? "|" $2 : ""
}
function flush(   names, i) {
	names = own ? own : of_page ? of_page : of_section ? of_section : "|wean_[a-z_]*"
	for (i = 1; i <= errors; i++)
		print page, error[i], substr(names, 2)
	errors = 0
	own = ""
}
FNR == 1 {
	flush()
	page = FILENAME
	sub(/.*\//, "", page)
	section = of_page = of_section = ""
}
/^\.Sh / { flush(); section = $2; part = "before"; next }
section == "NAME" && $1 == ".Nm" { of_page = of_page name() }
section != "ERRORS" { next }
/^\.(It|El)/ { flush(); part = "" }
/^\.It/ {
	for (i = 2; i < NF; i++)
		if ($i == "Er")
			error[++errors] = $(i + 1)
	part = "begins"
	next
}
part == "before" && ($1 == ".Fn" || $1 == ".Xr") { of_section = of_section name() }
part == "begins" && $1 == ".Fn" { own = own name(); next }
part == "begins" && $1 != "and" && $1 != "or" { part = "" }
END { flush() }' man/*.3 | sort -u >"$tmp/errors"

# Most tests call wean_spawn by way of a helper in a header, or of a helper of it.
for header in t/*.h; do
	code "$header"
done | awk '
/^static inline .*\(/ {
	caller = $0
	sub(/\(.*/, "", caller)
	sub(/.*[^a-z_0-9]/, "", caller)
	next
}
caller { body[caller] = body[caller] $0 " " }
/^\}/ { caller = "" }
END {
	names = "wean_spawn"
	do {
		more = 0
		for (caller in body)
			if (!(caller in known) &&
			    body[caller] ~ "[^a-z_0-9](" names ") *[(]") {
				known[caller] = more = 1
				names = names "|" caller
			}
	} while (more)
	print names
}' >"$tmp/spawning"

while read -r page error names; do
	hit=1 called=$names
	[ "$names" = wean_spawn ] && called=$(cat "$tmp/spawning")
	for test in "$tmp"/t/test_*.c; do
		if grep -qw "$error" "$test" && grep -Eq "\<($called) *\(" "$test"; then
			hit=0
			break
		fi
	done
	found "[$error] of $page, $names" $hit
done <"$tmp/errors"

echo "$covered covered, $missing missing; $(wc -l <"$tmp/members" | tr -d ' ') members," \
	"$(wc -l <"$tmp/errors" | tr -d ' ') documented errors"
[ "$missing" -eq 0 ] && [ -s "$tmp/members" ] && [ -s "$tmp/errors" ]
