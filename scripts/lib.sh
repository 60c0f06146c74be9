# shellcheck shell=bash
# Common parts of the installers: sourced, never run.
# Every installer is idempotent: it fills one folder of the cache, and a folder with its stamp is done.

set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${ONCESINK_CACHE:-$repo/.cache}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

say() { printf '%-8s %s\n' "$component" "$*" >&2; }
die() { printf '%-8s error: %s\n' "$component" "$*" >&2; exit 1; }

# need TOOL WHAT-TO-DO: ends with a sentence when a tool is missing.
need() {
	command -v "$1" >/dev/null 2>&1 || die "$1 is needed and was not found. $2"
}

# stamped DIR VERSION: whether DIR was completed by this very version of the installer.
stamped() { [ -f "$1/.stamp" ] && [ "$(cat "$1/.stamp")" = "$2" ]; }
stamp() { printf '%s\n' "$2" >"$1/.stamp"; }

# check_sha FILE SHA256 (through stdin: ends with a sentence when the content differs)
check_sha() {
	local got
	got=$(sha256sum "$1" | cut -d' ' -f1)
	[ "$got" = "$2" ] || die "$1 has sha256 $got, expected $2. Delete it and run again; if it stays so, the package was changed after it was pinned."
}

# lock NAME: one installer of a component at a time, over all processes of this cache.
lock() {
	exec 9>"$cache/.$1.lock"
	flock 9
}

# workdir: a scratch folder beside the cache (same file system, so that the last step is one rename).
workdir() {
	work=$(mktemp -d "$cache/.work.XXXXXX")
	trap 'rm -rf "$work"' EXIT
}

# unpack_debs DIR PACKAGE...: unpacks Debian packages, and what they depend on and this machine lacks, below DIR. Nothing is installed and no service
# is started. Works without root: when the machine's package lists are empty or stale, a private copy of them is fetched.
unpack_debs() {
	local dir=$1 names opts=()
	shift
	need apt-get "This installer works on Debian and Ubuntu; elsewhere install $* by the system's package manager, so that it is on PATH."
	need dpkg "It unpacks the packages that apt-get fetches."
	mkdir -p "$dir" "$work/debs"
	if ! apt-cache show "$1" >/dev/null 2>&1; then
		private_lists
	fi
	fetch_debs "$@" || {
		private_lists # the lists of this machine may name versions that the mirror has dropped
		fetch_debs "$@" || die "apt-get could not fetch $names. Its message is above; check the network and /etc/apt/sources.list."
	}
	local deb
	for deb in "$work"/debs/*.deb; do
		dpkg -x "$deb" "$dir"
	done
}

fetch_debs() {
	# A simulated installation names what is missing here; the packages themselves are wanted even when they are installed.
	names=$(apt-get "${opts[@]}" -s install --no-install-recommends "$@" 2>/dev/null | awk '$1 == "Inst" {print $2}')
	names=$(printf '%s\n' "$@" $names | sort -u)
	# shellcheck disable=SC2086 # a list of names
	(cd "$work/debs" && apt-get "${opts[@]}" -q=2 -o APT::Sandbox::User= download $names >&2)
}

private_lists() {
	mkdir -p "$work/lists/partial" "$work/aptcache/archives/partial"
	opts=(-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/aptcache" -o APT::Sandbox::User=)
	apt-get "${opts[@]}" -q=2 update >&2 || say "apt-get update complained (above); going on"
}

# wrapper FILE BINARY: a program of unpacked packages, run with their libraries. exec keeps the process id, so signals reach the program.
wrapper() {
	cat >"$1" <<-SH
		#!/bin/sh
		root=\$(dirname "\$(readlink -f "\$0")")/../root
		for d in "\$root"/usr/lib/*-linux-gnu "\$root"/lib/*-linux-gnu; do
			[ -d "\$d" ] && LD_LIBRARY_PATH=\$d\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
		done
		export LD_LIBRARY_PATH
		exec "\$root/$2" "\$@"
	SH
	chmod +x "$1"
}
