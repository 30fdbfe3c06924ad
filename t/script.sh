# script.sh - what test scripts read first: an empty directory, and ways to say what was
# found.

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
good=0 bad=0

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "FAILED: $*"
	bad=$((bad + 1))
}

die() {
	echo "FAILED: $*"
	exit 1
}

# need_tools COMMAND...: each may have options
need_tools() {
	for tool; do
		command -v "${tool%% *}" >/dev/null || skip "not here: $tool"
	done
}

# What an interpreter loads has no part of a sanitizer, and is shared.
need_loading() {
	case ${CFLAGS-} in
	*-fsanitize*) skip 'an interpreter without a sanitizer does not load what needs one' ;;
	esac
	[ -f src/.libs/libwean.so ] || skip 'there is no shared library'
}

# One word a line, sorted, each once.
words() {
	printf '%s\n' "$1" | tr -s ' \t' '\n' | grep . | LC_ALL=C sort -u
}

# same WHAT EXPECTED FOUND: as sets of words
same() {
	words "$2" >"$tmp/expected"
	words "$3" >"$tmp/found"
	if cmp -s "$tmp/expected" "$tmp/found"; then
		good=$((good + 1))
	else
		fail "$1 (<: missing, >: too many)"
		diff "$tmp/expected" "$tmp/found" | grep '^[<>]'
	fi
}
