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
