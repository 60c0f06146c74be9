#!/usr/bin/env bash
# The embedded ClickHouse engine: libchdb.so out of a pinned npm package, into <cache>/engine.
component=engine
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

package=@chdb/lib-linux-x64-gnu
version=26.7.3-stable.1
sha_tgz=c0d32b129e988f2b9a9a31c9141aecf5e1e2453f9a079efc4d36ab8e3f92b2ad
sha_lib=36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5
dir=$cache/engine

lock engine
if stamped "$dir" "$version"; then
	say "libchdb $version is there: $dir/libchdb.so"
	exit 0
fi
[ "$(uname -sm)" = "Linux x86_64" ] || die "the engine is pinned for Linux x86_64 with glibc, this is $(uname -sm). Point ONCESINK_CHDB_LIB at a libchdb 26.7 or later of your own."
need npm "Install Node.js with npm (Debian: apt-get install npm), or unpack $package $version elsewhere and point ONCESINK_CHDB_LIB at its libchdb.so."
need sha256sum "It is part of GNU coreutils."

start=$SECONDS
say "fetching $package $version by npm (178 MB, 566 MB unpacked)"
workdir
(cd "$work" && npm pack --silent --no-update-notifier "$package@$version" >/dev/null) ||
	die "npm pack $package@$version failed, its message is above. Check the network and npm's registry setting (npm config get registry)."
tgz=$(find "$work" -name '*.tgz' | head -n 1)
[ -n "$tgz" ] || die "npm pack left no package behind"
check_sha "$tgz" "$sha_tgz"
mkdir "$work/engine"
tar -xzf "$tgz" -C "$work"
rm -f "$tgz"
lib=$(find "$work/package" -name libchdb.so | head -n 1)
[ -n "$lib" ] || die "$package $version holds no libchdb.so"
check_sha "$lib" "$sha_lib"
mv "$lib" "$work/engine/libchdb.so"
find "$work/package" -maxdepth 1 -iname 'LICENSE*' -exec mv {} "$work/engine/" \;
stamp "$work/engine" "$version"
rm -rf "$dir"
mv "$work/engine" "$dir"
say "libchdb $version is ready after $((SECONDS - start)) s: $dir/libchdb.so"
