#!/usr/bin/env bash
# go test with a closing summary. Its output stays as it is; its arguments are go test's.
# A package that failed is run once more, alone: servers start and answer by the clock, and a loaded machine can be late for all of them at once.
# Both runs are shown, and the summary names what needed the second one.
set -uo pipefail
cd "$(dirname "$0")/.."

start=$SECONDS
log=$(mktemp)
trap 'rm -f "$log" "$log.again"' EXIT
go=${GO:-go}
"$go" test "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}

mapfile -t again < <(grep -E '^FAIL\s+\S+/' "$log" | grep -v 'build failed\|setup failed' | awk '{print $2}' | sort -u)
second=()
if [ "$code" -ne 0 ] && [ "${#again[@]}" -gt 0 ] && [ "${#again[@]}" -le 3 ] && ! grep -qE '^FAIL.*(build|setup) failed' "$log"; then
	flags=()
	for a in "$@"; do
		case $a in -*) flags+=("$a") ;; esac
	done
	code=0
	for p in "${again[@]}"; do
		printf '\n== %s failed; once more, alone\n' "$p"
		"$go" test "${flags[@]}" -count=1 "$p" 2>&1 | tee "$log.again"
		if [ "${PIPESTATUS[0]}" -eq 0 ]; then second+=("$p"); else code=1; fi
	done
fi

passed=$(grep -c '^ok ' "$log")
failed=$(grep -cE '^FAIL\s+\S+/' "$log")
passed=$((passed + ${#second[@]}))
failed=$((failed - ${#second[@]}))
printf '\n%d packages passed, %d failed, in %d s\n' "$passed" "$failed" $((SECONDS - start))
for p in "${second[@]}"; do printf 'passed only at the second run: %s\n' "$p"; done
if [ "$code" -ne 0 ]; then
	grep -E '^\s*--- FAIL|^FAIL\s+\S+' "$log" | sort -u
	seed=$(grep -m 1 '^-test.shuffle' "$log")
	[ -z "$seed" ] || printf 'The order of a failed package comes back with its own seed, for example %s\n' "${seed/ /=}"
fi
exit "$code"
