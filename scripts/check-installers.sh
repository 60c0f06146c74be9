#!/usr/bin/env bash
# Tests of the installers without network: what they say when something is missing or wrong, and that a complete component is left alone.
set -uo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# A PATH with the ordinary tools but none of those that the installers look for.
mkdir "$tmp/bin"
for tool in bash sh env cat cut sed awk sort grep find head tail wc uname mkdir rm mv cp ln ls mktemp dirname basename readlink sha256sum flock tar gzip chmod printf; do
	path=$(type -P "$tool") && ln -s "$path" "$tmp/bin/$tool"
done

expect() { # NAME CODE PATTERN COMMAND...
	local name=$1 code=$2 pattern=$3 out got
	shift 3
	out=$("$@" 2>&1)
	got=$?
	if [ "$got" -ne "$code" ] || ! grep -qE -- "$pattern" <<<"$out"; then
		printf 'check-installers: %s: exit %d (want %d), printed (want %s):\n%s\n' "$name" "$got" "$code" "$pattern" "$out"
		failed=1
	fi
}
bare() { env -i PATH="$tmp/bin" HOME="$tmp" ONCESINK_CACHE="$tmp/cache" "$@"; }

expect 'engine without npm' 1 'error: npm is needed .*ONCESINK_CHDB_LIB' bare scripts/get-engine.sh
expect 'redis without apt-get' 1 'error: apt-get is needed .*on PATH' bare scripts/get-redis.sh
expect 'kcat without apt-get' 1 'error: apt-get is needed' bare scripts/get-kcat.sh
expect 'kafka without java' 1 'error: java is needed .*17' bare scripts/get-kafka.sh
expect 'tools without go' 1 'error: go is needed' bare scripts/get-tools.sh

printf '#!/bin/sh\necho "openjdk version \\"11.0.2\\"" >&2\n' >"$tmp/bin/java"
chmod +x "$tmp/bin/java"
expect 'kafka with an old java' 1 'version 11; Kafka .* needs 17' bare scripts/get-kafka.sh
printf '#!/bin/sh\necho "openjdk version \\"21\\"" >&2\n' >"$tmp/bin/java"
expect 'kafka without mvn' 1 'error: mvn is needed' bare scripts/get-kafka.sh

printf '#!/bin/sh\necho something else >chdb.tgz\n' >"$tmp/bin/npm"
chmod +x "$tmp/bin/npm"
expect 'a changed engine package' 1 'error: .* has sha256 .*, expected' bare scripts/get-engine.sh
[ ! -e "$tmp/cache/engine" ] || { echo 'check-installers: a package with a wrong checksum was installed'; failed=1; }

version=$(sed -n 's/^version=//p' scripts/get-engine.sh)
mkdir -p "$tmp/cache/engine" && echo "$version" >"$tmp/cache/engine/.stamp"
expect 'a complete engine is left alone' 0 'is there' bare scripts/get-engine.sh

left=$(find "$tmp/cache" -name '.work.*')
[ -z "$left" ] || { echo "check-installers: scratch folders were left: $left"; failed=1; }
exit "$failed"
