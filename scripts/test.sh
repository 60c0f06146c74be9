#!/usr/bin/env bash
# go test with a closing summary. Its output stays as it is; its arguments are go test's.
set -uo pipefail
cd "$(dirname "$0")/.."

start=$SECONDS
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${GO:-go}" test "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}

passed=$(grep -c '^ok ' "$log")
failed=$(grep -cE '^FAIL\s+\S+' "$log")
printf '\n%d packages passed, %d failed, in %d s\n' "$passed" "$failed" $((SECONDS - start))
if [ "$code" -ne 0 ]; then
	grep -E '^\s*--- FAIL|^FAIL\s+\S+' "$log" | sort -u
	seed=$(grep -m 1 '^-test.shuffle' "$log")
	[ -z "$seed" ] || printf 'The order of a failed package comes back with its own seed, for example %s\n' "${seed/ /=}"
fi
exit "$code"
