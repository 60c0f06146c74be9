# make help tells what there is. Everything that is fetched goes to .cache (or $ONCESINK_CACHE), nothing is installed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE := $(or $(ONCESINK_CACHE),$(CURDIR)/.cache)
GO ?= go
# What sink version, sink_build_info and the dead letters' x-oncesink-version tell.
VERSION ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)
# Packages of the tests; P: how many of them at the same time. Each may start servers of its own, which want the cores for themselves.
PKG ?= ./...
P ?= 1

.PHONY: help setup setup-engine setup-redis setup-kafka setup-kcat setup-tools build demo test lint bench sim mutants chaos attacks upgrade fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## fetch what tests need: the engine, Redis, Kafka, kcat (once, about 250 MB)
	@$(MAKE) --no-print-directory -j2 setup-engine setup-redis setup-kafka setup-kcat

setup-engine setup-redis setup-kafka setup-kcat: setup-%:
	@scripts/get-$*.sh

setup-tools:
	@scripts/get-tools.sh golangci-lint

build: ## bin/sink
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/sink ./cmd/sink

demo: ## everything embedded, all kinds of duplicates, then the account
	@$(MAKE) --no-print-directory -j2 setup-engine setup-redis
	@$(MAKE) --no-print-directory build
	@bin/sink demo $(ARGS)

test: setup ## vet, then all tests with the race detector against real servers
	$(GO) vet $(PKG)
	@scripts/test.sh -race -shuffle=on -timeout=20m -p=$(P) $(PKG)

lint: setup-tools ## golangci-lint (with the arrows between packages), gofmt, shell scripts
	$(CACHE)/bin/golangci-lint run --allow-parallel-runners $(PKG)
	@scripts/lint-files.sh
	@scripts/check-installers.sh

bench: setup-engine setup-redis setup-kafka ## the sink against a bare path, verified
	@$(MAKE) --no-print-directory build
	$(GO) run ./bench $(ARGS)

sim: ## the protocol in simulation, ten minutes: make sim [SEEDS=10000] [FIRST=1]; one again: SEED=n [AIM='fault @ step'], WORLD=name [WAY=…]
	$(GO) run ./internal/sim/simulate -seeds "$(or $(SEEDS),10000)" -first "$(or $(FIRST),1)" -seed "$(or $(SEED),0)" -aim "$(AIM)" -focus "$(FOCUS)" \
		-world "$(WORLD)" -way "$(WAY)" $(if $(SEEDS)$(FIRST)$(FOCUS),,-page docs/simulation.md)

mutants: ## each rule of the protocol taken out, one at a time: the simulation has to notice, ten minutes: make mutants [MUTANT=prefix]
	MUTANT="$(MUTANT)" PAGE="$(if $(MUTANT),,docs/mutations.md)" $(GO) test -tags mutations ./internal/sim -run '^TestEveryMutantIsCaught$$' -count=1 -timeout 60m -v

chaos: setup-engine setup-redis setup-kafka ## three sinks under kills, zombies, cut links, lost stores, …: make chaos [ONLY=name,…] [ROWS=n]; ONLY=mixed MINUTES=30
	@mkdir -p bin
	$(GO) vet -tags chaos ./internal/e2e
	$(GO) test -tags chaos -c -o bin/chaos.test ./internal/e2e
	cd internal/e2e && ONCESINK_CHAOS_ONLY=$(ONLY) ONCESINK_CHAOS_ROWS=$(ROWS) ONCESINK_CHAOS_MINUTES=$(MINUTES) ONCESINK_CHAOS_SEED=$(SEED) \
		nice -n 5 ../../bin/chaos.test -test.run '^TestChaos$$' -test.timeout 0

attacks: setup-engine setup-redis setup-kafka ## attempts to have a row lost or doubled, each a script: make attacks [ONLY=name,…]
	@mkdir -p bin
	$(GO) vet -tags chaos ./internal/e2e
	$(GO) test -tags chaos -c -o bin/attack.test ./internal/e2e
	cd internal/e2e && ONCESINK_ATTACK_ONLY=$(ONLY) ONCESINK_CHAOS_SEED=$(SEED) nice -n 10 ../../bin/attack.test -test.run '^TestAttack$$' -test.timeout 0

upgrade: setup-engine setup-redis setup-kafka ## two builds in one group, and routes that change while they run, all of it (make test has the quick half)
	$(GO) test -tags chaos -count=1 -v -timeout 30m -run '^Test(RollingUpdate|RollingTo|UpdatesUnder|AnIntentOfANewer|AStore|ARoute|TwoSinks)' ./internal/e2e

fmt: ## gofmt
	gofmt -w $$(git ls-files '*.go')

clean: ## remove bin; what was fetched stays (remove .cache by hand)
	rm -rf bin
