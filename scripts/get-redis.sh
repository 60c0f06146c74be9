#!/usr/bin/env bash
# The real Redis server and redis-cli out of Debian's package, into <cache>/redis. Nothing is installed, no service is started.
component=redis
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=1 # of this recipe; the server is the distribution's
dir=$cache/redis

lock redis
if stamped "$dir" "$version"; then
	say "$("$dir/bin/redis-server" --version | cut -d' ' -f1-3) is there: $dir/bin"
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1 && command -v redis-server >/dev/null 2>&1; then
	say "using $(command -v redis-server) of this machine"
	exit 0
fi
start=$SECONDS
workdir
mkdir -p "$work/redis/bin"
unpack_debs "$work/redis/root" redis-tools
# Debian ships one binary under several names, and its name decides what it is.
server=$work/redis/root/usr/bin/redis-check-rdb
[ -x "$server" ] || die "the package redis-tools holds no usr/bin/redis-check-rdb, which is the server's binary under another name"
ln -sf redis-check-rdb "$work/redis/root/usr/bin/redis-server"
wrapper "$work/redis/bin/redis-server" usr/bin/redis-server
wrapper "$work/redis/bin/redis-cli" usr/bin/redis-cli
said=$("$work/redis/bin/redis-server" --version) || die "the unpacked redis-server does not run on this machine"
stamp "$work/redis" "$version"
rm -rf "$dir"
mv "$work/redis" "$dir"
say "$(cut -d' ' -f1-3 <<<"$said") is ready after $((SECONDS - start)) s: $dir/bin"
