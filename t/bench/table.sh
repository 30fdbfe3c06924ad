#!/bin/sh
# table.sh - what is made of the file that bench and reading write (--csv).
#
#   table.sh markdown CSV          a table of the starts, in Markdown
#   table.sh names                 the names in the first column of a table on standard input
#   table.sh plots CSV DIRECTORY   a plot a sweep, by gnuplot: DIRECTORY/SWEEP.svg
#   table.sh compare OLD NEW       ratios of ratios: how each has changed against the first
#                                  of its case, so that another machine's speed is none
#   table.sh usable CSV            whether anything was measured there; if not, says so
#   table.sh readme CSV [HIGH-CSV] README with these tables in the place of its own, on
#                                  standard output; README is read from standard input
set -eu
: "${AWK:=awk}"

# For each case and peer: base[case], the calm time and its ratio to the case's first peer.
# Medians over the passes; a ratio is of times of the same pass.
reading='
function median(list, n, i, j, x, v) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++) {
		x = v[i] + 0
		for (j = i - 1; j >= 1 && v[j] + 0 > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
	return n ? v[int((n + 1) / 2)] + 0 : 0
}

function median_time(file, c, p, i, list) {
	for (i = 0; i < 50; i++)
		if ((file, c, p, i) in calm)
			list = list " " calm[file, c, p, i]
	return median(list)
}

function ratio(file, c, p, i, q, list) {
	q = first[file, c]
	for (i = 0; i < 50; i++)
		if ((file, c, p, i) in calm && (file, c, q, i) in calm)
			list = list " " calm[file, c, p, i] / calm[file, c, q, i]
	return median(list)
}

BEGIN { FS = "," }
FNR == 1 { file++ }
/^#sweep,/ { sweeps[++nsweeps] = $0; next }
/^#/ || $1 == "case" || NF < 6 { next }
{
	if (!((file, $1) in first)) {
		first[file, $1] = $2
		cases[file, ++ncases[file]] = $1
	}
	if (!((file, $1, $2) in seen))
		peers[file, $1, ++npeers[file, $1]] = $2
	seen[file, $1, $2] = 1
	calm[file, $1, $2, $3] = $6
}
'

# A time of three digits or more has no fraction.
markdown() {
	$AWK -v columns="$2" "$reading"'
	function number(x, text, rest) {
		if (x <= 0)
			return "-"
		text = sprintf(x < 10 ? "%.1f" : "%.0f", x)
		rest = ""
		while (length(text) > 3 && text !~ /\./) {
			rest = "," substr(text, length(text) - 2) rest
			text = substr(text, 1, length(text) - 3)
		}
		return text rest
	}
	function row(name, cells, n, v, i) {
		printf "| %-21s |", name
		n = split(cells, v, "|")
		for (i = 1; i <= n; i++)
			printf " %8s |", v[i]
		printf "\n"
	}
	END {
		n = split(columns, column, " ")
		for (i = 1; i <= n; i++) {
			split(column[i], part, "=")
			column[i] = part[1]
			gsub(/_/, " ", part[2])
			heads = heads (i > 1 ? "|" : "") part[2]
			lines = lines (i > 1 ? "|" : "") "-------:"
		}
		row("microseconds", heads)
		gsub(/\|/, " | ", lines)
		print "|:----------------------| " lines " |"
		for (p = 1; p <= npeers[1, "few"]; p++) {
			name = peers[1, "few", p]
			cells = ""
			for (i = 1; i <= n; i++) {
				x = column[i] == "ratio" ? sprintf("%.2f", ratio(1, "few", name)) : \
					number(median_time(1, column[i], name))
				cells = cells (i > 1 ? "|" : "") x
			}
			row(name, cells)
		}
	}' "$1"
}

names() {
	sed -n 's/^| \([a-z][a-z0-9_+:-]*\) *|.*/\1/p' | grep -v '^microseconds$'
}

few_columns='few=few ratio=/_floor 1000=1,000 19000=19,000 8g=8_GB pipe=pipe'
high_columns='few=few ratio=/_floor nofile1g=2^30 1m=million pipe=pipe pipe1m=both'

# A line of the machine, and its table, between the marks of each kind.
readme() {
	measured="Measured on $($AWK -F, '/^#machine/ { print $2 ": " $3 "," $4 "," $5 "," $6 }' "$1" |
		sed 's/,/, /g')"
	new=$(mktemp)
	{
		echo "$measured,"
		echo "with few, 1,000 or 19,000 descriptors open, 8 GB resident, a pipe:"
		echo
		markdown "$1" "$few_columns"
		if [ $# -gt 1 ]; then
			echo
			echo "In a user-mode Linux, where every call costs more, by \`make bench-high\`, with a"
			echo "limit of 2^30 descriptors, and with a million open:"
			echo
			markdown "$2" "$high_columns"
		fi
	} >"$new"
	$AWK -v new="$new" '
	/^Measured on / { while ((getline line < new) > 0) print line; skips = 1; found = 1; next }
	skips && /^Times are/ { skips = 0; print "" }
	!skips
	END { exit !found || skips }' || { rm -f "$new" && return 1; }
	rm -f "$new"
}

# With log axes, 0 is a quarter of the next value.  Told apart by dash and point.
plots() {
	mkdir -p "$2"
	$AWK -v dir="$2" "$reading"'
	function place(x, next_x) {
		return x > 0 ? x : next_x / 4
	}
	# In the order of the ends of their lines; of ours the one that all are compared with.
	function sort_peers(c, last, p, n, j, name, y, ends) {
		for (p = 1; p <= npeers[1, c]; p++) {
			name = peers[1, c, p]
			if (name ~ /^wean_/)
				continue
			y = median_time(1, last, name)
			for (j = n++; j >= 1 && ends[j] < y; j--) {
				ends[j + 1] = ends[j]
				sorted[j + 1] = sorted[j]
			}
			ends[j + 1] = y
			sorted[j + 1] = name
		}
		return n
	}
	function plot(s, n, part, i, points, used, p, name, lines, tics, at, y) {
		n = split(s, part, ",")
		for (i = 4; i <= n; i++) {
			split(part[i], pair, "=")
			if (!((1, pair[1]) in first))
				continue
			points++
			where[points] = pair[1]
			value[points] = pair[2]
		}
		if (points < 2)
			return
		for (i = 1; i <= points; i++) {
			at[i] = place(value[i], value[2])
			tics = tics (i > 1 ? ", " : "") "\"" value[i] "\" " at[i]
		}
		printf "set output \"%s/%s.svg\"\n", dir, part[2]
		printf "set xlabel \"%s\"\nset xtics (%s)\n", part[3], tics
		printf "set xrange [%g:%g]\n", at[1] / 1.2, at[points] * 1.2
		used = sort_peers(where[1], where[points])
		for (p = 1; p <= used; p++) {
			name = sorted[p]
			lines = lines (p > 1 ? ", " : "") \
				sprintf("$data%d using 1:2 with linespoints dt %d pt %d lw %s title \"%s\"", \
				p, name == "wean" ? 1 : p % 5 + 1, p, name == "wean" ? 3 : 1, name)
			printf "$data%d << end\n", p
			for (i = 1; i <= points; i++)
				if ((y = median_time(1, where[i], name)) > 0)
					printf "%g %g\n", at[i], y
			print "end"
		}
		printf "plot %s\nset output\n", lines
	}
	END {
		print "set terminal svg size 900,560 noenhanced font \"sans,13\" background \"white\""
		print "set monochrome"
		print "set logscale xy\nset ylabel \"microseconds, start and wait\"\nset grid y"
		print "set key outside right top"
		for (i = 1; i <= nsweeps; i++)
			plot(sweeps[i])
	}' "$1" | ${GNUPLOT:-gnuplot}
}

usable() {
	if ! { [ -f "$1" ] && [ -r "$1" ]; }; then
		echo "table.sh: $1: no file that can be read" >&2
	elif ! grep -q '^[^#,]*,[^,]*,[0-9]' "$1"; then
		echo "table.sh: $1: nothing was measured there" >&2
	else
		return 0
	fi
	return 1
}

# Where there was no such cell before, nothing is said.
compare() {
	usable "$1"
	usable "$2"
	$AWK "$reading"'
	END {
		printf "%-14s %-22s %9s %9s %9s\n", "case", "peer / first of the case", "was", \
			"is", "is / was"
		for (c = 1; c <= ncases[2]; c++) {
			name = cases[2, c]
			for (p = 1; p <= npeers[2, name]; p++) {
				peer = peers[2, name, p]
				if (peer == first[2, name] || first[1, name] != first[2, name])
					continue
				was = ratio(1, name, peer)
				is = ratio(2, name, peer)
				if (was > 0 && is > 0 && ++rows)
					printf "%-14s %-22s %9.3f %9.3f %9.3f\n", name, peer, was, \
						is, is / was
			}
		}
		if (!rows) {
			print "table.sh: no case and peer that both have" | "cat >&2"
			exit 1
		}
		print "is / was below 1: better than before; a few % are noise.  Each row is relative\n" \
			"to the first peer of its case, which is left out: for starts the floor; for\n" \
			"reading it is wean, so that there above 1 is better for wean."
	}' "$1" "$2"
}

usage() {
	sed -n '/^#   table/,/^set/s/^# *//p' "$0" >&2
	exit 2
}

case $#${1-} in
2markdown) markdown "$2" "$few_columns" ;;
3plots) plots "$2" "$3" ;;
3compare) compare "$2" "$3" ;;
2usable) usable "$2" ;;
2readme | 3readme) shift && readme "$@" ;;
1names) names ;;
*) usage ;;
esac
