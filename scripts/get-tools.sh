#!/usr/bin/env bash
# The pinned Go tools of `make lint` and `make bench`, into <cache>/bin. Their versions are no part of go.mod: they are not what sink is built of.
component=tools
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need go "Install Go as named in go.mod."
lock tools
export GOBIN=$cache/bin GOFLAGS=-mod=mod
mkdir -p "$GOBIN"

tool() { # NAME MODULE VERSION
	if [ -x "$GOBIN/$1" ] && stamped "$GOBIN/.$1" "$3"; then
		say "$1 $3 is there"
		return
	fi
	local start=$SECONDS
	say "building $1 $3"
	(cd /tmp && go install "$2@$3") || die "go install $2@$3 failed, its message is above"
	mkdir -p "$GOBIN/.$1"
	stamp "$GOBIN/.$1" "$3"
	say "$1 $3 is ready after $((SECONDS - start)) s"
}

for name in "${@:-golangci-lint}"; do
	case $name in
	golangci-lint) tool golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint v2.15.0 ;;
	govulncheck) tool govulncheck golang.org/x/vuln/cmd/govulncheck v1.9.0 ;;
	benchstat) tool benchstat golang.org/x/perf/cmd/benchstat v0.0.0-20260908200009-22c9c6c9d4da ;;
	*) die "unknown tool $name: golangci-lint, govulncheck or benchstat" ;;
	esac
done
