# Everything a developer needs. Start with: make help
#
# Knobs, given as make VAR=value:
#   PKG      which packages              (./...)
#   RUN      which tests                 (all)
#   COUNT    repetitions of make race    (10)
#   FUZZTIME time for each fuzz target   (30s)
#   SEEDS    how many seeds of make sim  (200), or SEED for one

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PKG      ?= $(LONG) ./...
RUN      ?= .
COUNT    ?= 10
FUZZTIME ?= 30s
SEEDS    ?=
SEED     ?=
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

GO    := go
# Leaves out a rule of the validator that no type uses. It looks methods up by name, so the linker would keep every exported method.
TAGS  := validator_novalidatefn
# The packages with the longest tests start first, so that the others fill the remaining time.
LONG  := ./e2e ./e2e/browser ./store/redis ./dispatcher ./api ./pool ./store/sqlite ./notify ./internal/app ./dispatcher/work ./store/storetest
# The same for make unit.
SLOW  := ./notify ./store/storetest ./store/sqlite ./store/redis
# Four tests of a package run in parallel, also on machines with fewer processors: parallel tests mostly wait.
SIDE  := -parallel=4
# The race detector instruments everything except SQLite (C translated to Go) with its allocator and the Lua of miniredis: they share no
# memory with other goroutines, and would be up to six times slower. The SQLite driver and miniredis's server are instrumented.
CALM  := modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory/... github.com/yuin/gopher-lua/...
# Without inlining, go-redis and packages that import it are compiled in half the time: each has 740 method wrappers of its client.
# The browser's protocol and its JSON are compiled in a fifth less.
PLAIN := github.com/redis/go-redis/v9/... github.com/ringback/ringback/store/redis/... github.com/chromedp/... github.com/go-json-experiment/json/...
# With a heap of up to 1 GiB, and without debug information, the compiler takes 40 % less processor time.
HEAP  := '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'
BUILD := -gcflags=all=-dwarf=false
# make lint compiles with the same flags as the tests, so that each package is compiled once for both.
RACE  := -race $(BUILD) $(patsubst %,'-gcflags=%=-race=false -dwarf=false',$(CALM)) \
         $(patsubst %,'-gcflags=%=-l -dwarf=false',$(PLAIN))
# What runs the built program is compiled with the program's flags: what both need is compiled once, and clients and receivers without
# the race detector take half the processor time. Without inlining the compiler takes a fifth less.
QUICK := $(shell sed "s/.*/'&'/" internal/testkit/flags.txt)
# make test-all sets the tag: see internal/testkit.
LEVEL :=
# make lint vets.
# Without symbol tables, which only debuggers read, a test binary is linked with a fifth less processor time.
# The time limit ends tests that hang. No machine is so slow that they reach it otherwise.
EACH   = $(LEVEL) $(HEAP) -ldflags='-s -w' -vet=off -shuffle=on -timeout=40m $(SIDE) -run '$(RUN)'
# The packages whose tests run the program, or the go command, and little else in their own process; and the simulation, whose parts have
# tests of their own under the race detector, which would make it six times slower.
PLAIN_TESTS := /e2e|/packaging|/internal/arch|/internal/sim
# Two packages at a time, and beside them one of those that run the program, which mostly wait. The race detector would end each test
# binary with a second of sleep, for reports of other threads: a tenth suffices.
RACED  = GORACE=atexit_sleep_ms=100 $(GO) test $(RACE) $(EACH) -p=2
PLAIN_RUN = $(GO) test $(QUICK) $(EACH) -p=1

# tests runs the tests of PKG with further flags, and prints a line for each package as it ends.
define tests
all=$$($(GO) list $(LEVEL) $(PKG)); \
raced=$$(grep -Ev '$(PLAIN_TESTS)' <<<"$$all" || true); plain=$$(grep -E '$(PLAIN_TESTS)' <<<"$$all" || true); \
n=$$(wc -l <<<"$$all"); \
echo "testing $$n packages$(2); everything that the tests print is in bin/test.log"; \
bin/testreport -packages=$$n \
  <(test -z "$$raced" || $(RACED) -json $(1) $$raced) <(test -z "$$plain" || $(PLAIN_RUN) -json $(1) $$plain)
endef

# The tools have a separate go.mod, so that the product's does not list their dependencies.
TOOLS     := bin/golangci-lint bin/gofumpt bin/nfpm bin/chart
TOOLS_MOD := tools/go.mod tools/go.sum
# Not needed by make check: run by hand.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: help
help: ## show this text
	@echo 'Usage: make <target> [PKG=./pool] [RUN=TestName] …'
	@echo
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'
	@echo
	@echo 'To try it: make dev'

.PHONY: build
build: ## build bin/ringback, static and stripped
	@CGO_ENABLED=0 $(GO) build $(HEAP) $(BUILD) -trimpath -tags '$(TAGS)' -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ringback ./cmd/ringback
	@echo 'built bin/ringback $(VERSION)'

.PHONY: dist
dist: bin/nfpm ## build the release into dist/: archives, packages, chart; the same commit gives the same bytes (needs GNU tar)
	@packaging/dist '$(VERSION)'

.PHONY: dev
dev: ## run a server with an inbox to try things out: 127.0.0.1:8080 and 8081, and ringback.db
	@echo 'compiling: a minute or two the first time'
	@$(GO) run ./cmd/ringback dev

.PHONY: site
site: ## render the documentation as static pages with a search, into site/
	@rm -rf site && $(GO) -C tools run ./site .. ../site

.PHONY: test
test: deps bin/testreport bin/nfpm bin/chart ## install what is missing, then run the tests under the race detector
	@$(call tests,,$(if $(filter ./...,$(PKG)), in ten to fifteen minutes on two cores))
	@$(if $(filter ./...,$(PKG)),$(GO) -C tools test ./testreport ./site)

.PHONY: test-all
test-all: LEVEL := -tags=testall,$(TAGS)
test-all: deps bin/testreport bin/nfpm bin/chart ## for releases: the same with every engine and larger numbers, about half an hour
	@$(call tests,)

.PHONY: unit
unit: ## run the tests that need neither servers nor a build of the binary, without the race detector: about a minute
	$(GO) test -short -shuffle=on -timeout=3m -p=4 $(SIDE) -run '$(RUN)' $(if $(filter ./...,$(PKG)),$(SLOW) ./...,$(PKG))

.PHONY: e2e
e2e: deps ## test the real binary: jobs, crashes, stops
	$(GO) test -shuffle=on -timeout=40m -count=1 -v $(SIDE) -run '$(RUN)' ./e2e

.PHONY: race
race: deps bin/testreport bin/nfpm bin/chart ## run tests COUNT times, to find races and flaky tests
	@$(call tests,-timeout=10h -count=$(COUNT))

.PHONY: assets
assets: ## fetch the console's copy of htmx, as console/assets/packages.txt pins it (needs npm and the internet)
	@console/assets/fetch

.PHONY: licences
licences: ## write docs/licences.md anew, from the modules in use; fails for a licence that is not permissive
	@$(GO) -C tools run ./licences .. >docs/licences.md.new && mv docs/licences.md.new docs/licences.md

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	@for pkg in $$($(GO) list $(PKG)); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' $$pkg; \
	  done; \
	done

.PHONY: generate
generate: ## write the files that are made from others anew; a test fails when they are stale
	$(GO) test -count=1 -run 'AreThoseOfTheTypes' ./api -update # schemas, tables of the docs, flags
	$(GO) test -count=1 -run 'TestTexts_AreTheComments' ./cmd/ringback -update # with those of the flags
	$(GO) test -count=1 -run 'TestDocs_ListEveryCommand' ./cmd/ringback -update # from those texts
	$(GO) test -count=1 -run 'TestDocs_HaveTheTable' ./internal/capacity -update

.PHONY: newfield
newfield: deps ## print the files that a new field (of jobs, topics, schedules) or route touches; try each on every face
	@$(GO) test $(QUICK) $(HEAP) -vet=off -timeout=40m -count=1 -v -run 'NewField_' ./internal/arch

.PHONY: zones
zones: ## compare the ticks of schedules with the clocks of all time zones over two years, some minutes
	SCHEDULE_ZONES=all $(GO) test -count=1 -timeout=30m -run 'Next_AllZones' ./job/schedule

.PHONY: sim
sim: ## simulate the service: SEED=17 one seed with its story, SEEDS=10000 that many, else those of make test
	SEED='$(SEED)' SEEDS='$(SEEDS)' FROM='$(FROM)' $(GO) test -count=1 -timeout=10h $(if $(SEED),-v) -run 'Seeds' ./internal/sim

.PHONY: transfer
transfer: deps ## export and import 100,000 jobs: SQLite, a Redis cluster, SQLite; about a minute
	RINGBACK_TRANSFER_JOBS=100000 $(GO) test -count=1 -timeout=30m -v -run 'Transfer_BetweenEngines' ./dispatcher/transfer

.PHONY: screens
screens: SCREENS ?= screens
screens: deps ## take a picture of each page of the console in light, dark and narrow, into SCREENS (screens)
	SCREENS='$(abspath $(SCREENS))' $(GO) test -count=1 -timeout=10m -run 'TestScreens' ./e2e/browser

# The pictures of the console that the documentation shows.
DOCS_SCREENS := now-light now-dark topic-light job-retried-light dead-light work-new-light schedules-light

.PHONY: docs-screens
docs-screens: deps ## take the pictures of the console in docs/console anew
	SCREENS='$(abspath docs/console)' SCREENS_ONLY='$(DOCS_SCREENS)' $(GO) test -count=1 -timeout=10m -run 'TestScreens' ./e2e/browser

.PHONY: console-scale
console-scale: ## measure each page of the console with a million jobs on SQLite and on Redis, against its bounds of 50 ms and 100 kB; some minutes
	RINGBACK_CONSOLE_JOBS=1000000 $(GO) test -count=1 -timeout=30m -v -run 'ConsoleScale_Bounds' ./internal/app

.PHONY: bench
bench: deps ## compare Ringback with its peers and the machine's limit, about half an hour; writes docs/benchmarks.md
	@$(GO) -C bench run . -docs ../docs

.PHONY: bench-quick
bench-quick: deps ## the same in a minute or two, with too few jobs for a comparison; writes nothing
	@$(GO) -C bench run . -quick

.PHONY: microbench
microbench: deps ## run every Go benchmark
	$(GO) test -run '^$$' -bench . -benchmem $(PKG)

.PHONY: bench-check
bench-check: ## vet and test the module bench, which takes a while to compile
	@$(GO) -C bench vet ./...
	@$(GO) -C bench test ./...

.PHONY: check
check: format lint tidy ## all checks without tests: format, lint (with vet), tidy

.PHONY: format
format: bin/gofumpt
	@bad=$$(bin/gofumpt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then printf 'gofumpt would change these; run bin/gofumpt -w on them:\n%s\n' "$$bad"; exit 1; fi

# With a heap of up to 4 GiB it takes a third less processor time than with Go's default.
.PHONY: lint
lint: bin/golangci-lint
	@GOFLAGS="$$($(GO) env GOFLAGS) $(RACE) $(HEAP)" GOGC=400 GOMEMLIMIT=4GiB bin/golangci-lint run $(FIX) ./...

.PHONY: fix
fix: FIX = --fix
fix: lint ## rewrite the code as the linters propose, where they can

# Only go.mod, and with -e: tests of dependencies import modules that some proxies do not serve. A failure without a diff is
# an error of the command: it is run again to print it.
.PHONY: tidy
tidy:
	@status=0; all=$$($(GO) mod tidy -e -diff 2>/dev/null) || status=$$?; \
	if [ -z "$$all" ] && [ $$status != 0 ]; then $(GO) mod tidy -e -diff; exit $$status; fi; \
	diff=$$(sed '\,/go.sum$$,,$$d' <<<"$$all"); \
	if [ -n "$$diff" ]; then printf 'go.mod is not tidy; run go mod tidy -e\n%s\n' "$$diff"; exit 1; fi

.PHONY: alerts
alerts: ## check and test the alert rules for Prometheus (needs promtool)
	@promtool check rules packaging/monitoring/alerts.yaml
	@promtool test rules packaging/monitoring/alerts_test.yaml

.PHONY: vuln
vuln: ## ask the Go vulnerability database about Go and the modules in use (needs the internet)
	@$(GO) run $(GOVULNCHECK) ./...

# Without inlining, the linter is built with a quarter less processor time, and runs as fast. The standard library is compiled
# as for the tests that build ringback.
TOOL := $(GO) build $(QUICK) $(HEAP) -ldflags='-s -w'

# Without the linters that are not enabled.
bin/golangci-lint: $(TOOLS_MOD) tools/linters .golangci.yml
	@echo 'building $@ (about a minute, once)'
	@tools/linters bin/linters
	@cd tools && $(TOOL) -modfile=../bin/linters/go.mod -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@rm -rf bin/linters

bin/testreport: $(wildcard tools/testreport/*.go)
	@cd tools && $(TOOL) -o ../$@ ./testreport

bin/gofumpt: $(TOOLS_MOD)
	@cd tools && $(TOOL) -o ../$@ mvdan.cc/gofumpt

# Packages of the release, which tests install; and charts, which tests render.
bin/nfpm: $(TOOLS_MOD)
	@echo 'building $@ (about a minute, once)'
	@cd tools && $(TOOL) -o ../$@ github.com/goreleaser/nfpm/v2/cmd/nfpm

bin/chart: $(TOOLS_MOD) $(wildcard tools/chart/*.go)
	@echo 'building $@ (about a minute, once)'
	@cd tools && $(TOOL) -o ../$@ ./chart

.PHONY: tools
tools: $(TOOLS) ## build the linters, and what makes packages and renders charts, into bin/

.PHONY: deps
deps: ## install what the tests need: redis-server, PostgreSQL, MariaDB, a C compiler for the race detector, Node.js, Python, PHP, a JDK, OpenSSL, curl, chromium, dpkg, rpm and man
	@.ci/deps

.PHONY: clean
clean: ## remove what was built
	@rm -rf bin dist
