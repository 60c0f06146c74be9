#!/usr/bin/env bash
# kcat, a Kafka client that shares no code with ours, out of Debian's package, into <cache>/kcat.
component=kcat
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=1 # of this recipe; the program is the distribution's
dir=$cache/kcat

lock kcat
if stamped "$dir" "$version"; then
	say "kcat is there: $dir/bin/kcat"
	exit 0
fi
start=$SECONDS
workdir
mkdir -p "$work/kcat/bin"
unpack_debs "$work/kcat/root" kcat
wrapper "$work/kcat/bin/kcat" usr/bin/kcat
"$work/kcat/bin/kcat" -V >/dev/null || die "the unpacked kcat does not run on this machine"
stamp "$work/kcat" "$version"
rm -rf "$dir"
mv "$work/kcat" "$dir"
say "kcat is ready after $((SECONDS - start)) s: $dir/bin/kcat"
