#!/bin/sh
# The table in README has a row for each peer of the benchmark; each peer that is there can
# do its job in each kind of case; what is made of the benchmark's file is right.
set -u

srcdir=${srcdir:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

table() {
	"${SHELL:-sh}" "$srcdir/t/bench/table.sh" "$@"
}

fail() {
	echo "FAILED: $*"
	status=1
}

same() { # WHAT FILE FILE
	diff "$2" "$3" || fail "$1"
}

# ---- what it tells of itself.

for program in bench reading parts; do
	[ ! -x t/bench/$program ] || t/bench/$program --help | grep -q "^usage: $program " ||
		fail "$program --help"
done
t/bench/bench --list | grep 'where its script was' && fail "scripts of peers not found"

# ---- README: first the table of an ordinary machine, then that of a kernel with more.

t/bench/bench --names | sed -n 's/^peer //p' >"$work/peers"
[ -s "$work/peers" ] || fail "the benchmark names no peers"
sed -n '/^Measured on/,/^In a user-mode/p' "$srcdir/README" | table names >"$work/named"
same "the rows of README are not the benchmark's; make bench-readme writes them" \
	"$work/peers" "$work/named"
sed -n '/^In a user-mode/,/^Times are/p' "$srcdir/README" | table names >"$work/named"
[ -s "$work/named" ] || fail "no table of the kernel with a million descriptors"
grep -vxFf "$work/peers" "$work/named" && fail "a row of README is no peer"

# ---- peers: each that is not absent has done what it can.

t/bench/bench --passes 1 --slice 1 --case few,pipe,pipes3,threads2,path50 \
	--csv "$work/csv" >"$work/out" 2>&1 || fail "the benchmark left with $?"
sed -n 's/^absent: \([^:]*\):.*/\1/p' "$work/out" >"$work/absent"
[ -z "${CI-}" ] || [ ! -s "$work/absent" ] || fail "absent where all can be had:" \
	"$(tr '\n' ' ' <"$work/absent")"
for case in few pipe pipes3 threads2 path50; do
	case $case in
	few) unfit=none ;;
	pipe) unfit='system|wean_system' ;;
	pipes3) unfit='system|wean_system|popen|wean_popen.*|libpipeline|guile|lua' ;;
	threads2) unfit='system|libuv|libpipeline|python|guile|node|ruby|perl|lua' ;;
	path50) unfit=none ;;
	esac
	sed -n "s/^$case,\([^,]*\),.*/\1/p" "$work/csv" | sort >"$work/did"
	grep -vxE "$unfit" "$work/peers" | grep -vxFf "$work/absent" - | sort >"$work/expected"
	same "$case: not each peer did its job" "$work/expected" "$work/did"
done

# ---- counts of ours.

case $(sed -n 's/^few,wean,0,.*,\([^,]*,[^,]*,[^,]*\)$/\1/p' "$work/csv") in
6,9,0 | ,,) ;; # ptrace may be refused
*) grep '^few,wean,' "$work/csv" && fail "calls or allocations of a start" ;;
esac

# ---- what is made of the file.

cat >"$work/old" <<'END'
#machine,2026-01-01,Linux 6 x86_64,A Processor,2 processors,glibc 2
#sweep,open,open descriptors,few=3,1000=1000
case,peer,pass,starts,best_us,calm_us,median_us,blocked_us,parent_calls,child_calls,allocations
few,floor,0,9,1,100.0,1,1,,,
few,floor,1,9,1,200.0,1,1,,,
few,floor,2,9,1,50.0,1,1,,,
few,wean,0,9,1,110.0,1,1,,,
few,wean,1,9,1,240.0,1,1,,,
few,wean,2,9,1,1234.0,1,1,,,
1000,floor,0,9,1,1234567.0,1,1,,,
1000,wean,0,9,1,50.0,1,1,,,
END
sed 's/240.0/480.0/; s/110.0/220.0/' "$work/old" >"$work/new"
table compare "$work/old" "$work/new" >"$work/compared" || fail "compare left with $?"
grep -q '^few  *wean  *1.200  *2.400  *2.000$' "$work/compared" ||
	{ cat "$work/compared" && fail "the ratio of the medians of ratios"; }
grep -q '^few  *floor ' "$work/compared" && fail "the first of a case against itself"
for new in /absent "$work" /dev/null; do
	table compare "$work/old" "$new" >"$work/compared" 2>&1 && fail "compare with $new"
	grep -q "^table.sh: $new: " "$work/compared" || fail "compare does not name $new"
done
sed 's/^few,/other,/; s/^1000,/others,/' "$work/old" >"$work/other"
table compare "$work/old" "$work/other" >"$work/compared" 2>&1 && fail "compare of other cases"
table markdown "$work/old" >"$work/table" || fail "markdown left with $?"
grep -q '^| wean  *|  *240 |  *1.20 |  *50 |  *- ' "$work/table" ||
	{ cat "$work/table" && fail "a row of a table"; }
grep -q '^| floor  *|  *100 |  *1.00 |  *1,234,567 |' "$work/table" ||
	{ cat "$work/table" && fail "a large number"; }
printf 'before\n\nMeasured on x:\n\n| old |\n\nTimes are.\nafter\n' |
	table readme "$work/old" >"$work/readme" || fail "readme left with $?"
{
	printf 'before\n\nMeasured on 2026-01-01: Linux 6 x86_64, A Processor, 2 processors, '
	printf 'glibc 2,\n'
	printf 'with few, 1,000 or 19,000 descriptors open, 8 GB resident, a pipe:\n\n'
	cat "$work/table"
	printf '\nTimes are.\nafter\n'
} >"$work/expected"
same "README is not as it was but for the table" "$work/expected" "$work/readme"

# ---- pictures.

cat >"$work/gnuplot" <<END
#!/bin/sh
cat >'$work/plot'
END
chmod 755 "$work/gnuplot"
unset GNUPLOT
(PATH=$work:$PATH && table plots "$work/old" "$work/plots") || fail "plots left with $?"
grep -q 'output "[^"]*/open.svg"' "$work/plot" || fail "no plot of a sweep"
grep -qx '1000 1.23457e+06' "$work/plot" || { cat "$work/plot" && fail "a point"; }
if command -v gnuplot >/dev/null; then
	table plots "$work/old" "$work/plots"
	grep -q '</svg>' "$work/plots/open.svg" || fail "gnuplot"
fi
exit $status
