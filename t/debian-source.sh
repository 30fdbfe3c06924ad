# debian-source.sh - for scripts that build something of Debian's from its source.  They
# have a directory of their own for scratch: $scratch.
#
# The source is that of the distribution, from where this machine's packages come.  Needs
# apt and dpkg-dev, not root, and changes nothing of apt's.
# shellcheck shell=sh disable=SC2154

# The machine's entries, each for sources instead of packages.
source_entries() {
	list='' parts=''
	eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
	mkdir "$scratch/parts"
	for file in "$list" "$parts"/*.list; do
		[ ! -f "$file" ] || sed 's/^[[:blank:]]*deb\(-src\)\{0,1\}[[:blank:]]/deb-src /' "$file"
	done >"$scratch/sources.list"
	for file in "$parts"/*.sources; do
		[ ! -f "$file" ] || sed 's/^[Tt]ypes:.*/Types: deb-src/' "$file" \
			>"$scratch/parts/${file##*/}"
	done
}

private_apt() {
	apt-get -q -o Dir::Etc::sourcelist="$scratch/sources.list" \
		-o Dir::Etc::sourceparts="$scratch/parts" \
		-o Dir::State="$scratch/state" -o Dir::State::status=/var/lib/dpkg/status \
		-o Dir::Cache="$scratch/cache" "$@" </dev/null
}

update_sources() {
	chmod 755 "$scratch" # apt reads as a user of its own
	source_entries
	mkdir -p "$scratch/state/lists/partial" "$scratch/cache/archives/partial"
	# One entry that does not answer is not the end, if another has the source.
	private_apt update || echo "${0##*/}: not all entries answer" >&2
}

# debian_source PACKAGE DIRECTORY: its source, unpacked there
debian_source() {
	[ -d "$scratch/state" ] || update_sources
	mkdir "$scratch/get"
	(cd "$scratch/get" && private_apt source "$1")
	mv "$scratch/get/$1"-*/ "$2"
	rm -rf "$scratch/get"
}
