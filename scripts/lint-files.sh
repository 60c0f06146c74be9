#!/usr/bin/env bash
# Checks of files that golangci-lint doesn't make: gofmt, shell syntax, length, left-overs.
set -euo pipefail
cd "$(dirname "$0")/.."

bad=0
complain() { # TITLE LINES
	if [ -n "$2" ]; then
		printf '%s\n%s\n' "$1" "$2"
		bad=1
	fi
}

mapfile -t go_files < <(git ls-files --cached --others --exclude-standard '*.go' | sort -u | while read -r f; do [ -f "$f" ] && echo "$f"; done)
mapfile -t shell_files < <(git ls-files --cached --others --exclude-standard 'scripts/*.sh' .ci/run)

complain "gofmt would change (make fmt):" "$(gofmt -l "${go_files[@]}")"
complain "longer than 450 lines (two files would say it better):" "$(wc -l "${go_files[@]}" | awk '$2 != "total" && $1 > 450 {print $1, $2}')"
complain "left-overs to finish:" "$(grep -nE 'TODO|FIXME|XXX|t\.Skip(f|Now)?\(' "${go_files[@]}" || true)"
for f in "${shell_files[@]}"; do
	bash -n "$f" || bad=1
	[ -x "$f" ] || [ "$f" = scripts/lib.sh ] || complain "not executable (git update-index --chmod=+x):" "$f"
done
if command -v shellcheck >/dev/null 2>&1; then
	shellcheck -x "${shell_files[@]}" || bad=1
fi
exit "$bad"
