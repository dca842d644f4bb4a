# Needs Go (the version in go.mod), git and make. Linters come through the Go module
# proxy, pinned in tools/go.mod; the race detector needs a C compiler. For each tool that
# is missing, a line that begins with SKIP names what does not run.

GO        ?= go
VERSION   ?=
FUZZTIME  ?= 10s
BENCH     ?= .
BENCHTIME ?= 1s

TOOL = $(GO) tool -modfile=tools/go.mod

# The rules that the demo judges the sample log by.
DEMO_RULES = --limit 60/60s --ban 100/300s:1h --hot 200/60s

.PHONY: help
help: ## list the targets (the default)
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

.PHONY: build
build: ## build bin/lately (VERSION=1.2.3 sets its version)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X github.com/lately-go/lately/internal/cli.version=$(VERSION)' -o bin/lately ./cmd/lately

.PHONY: run
run: ## build and start the server with made-up traffic, to look at: the console is http://localhost:7380/
	@[ -x bin/lately ] || echo "a first build downloads some 30 modules and compiles them: that takes 2 to 3 minutes"
	@$(MAKE) --no-print-directory build
	bin/lately serve --demo

.PHONY: check
check: ## vet, format and the short tests, for the time while you work
	$(GO) vet ./...
	@$(MAKE) --no-print-directory fmt-check
	$(GO) test -vet=off -short $(SLOW) ./...

# Each phase prints its time, and a line twice a minute.
PHASE = tools/phase

.PHONY: test
test: ## the short form of every test, with adapters and clients; installs nothing, needs only Go (a first run compiles for some minutes)
	@NO_INSTALL=1 tools/have-servers
	@$(PHASE) "compile (minutes, if nothing is cached)" $(GO) build $(FAST) ./...
	@$(PHASE) "tests" $(MAKE) --no-print-directory -j2 test-short test-adapters test-clients

.PHONY: verify
verify: ## what else must pass before a change lands: race detector, attacks, storms, lint, manifests, packages (NO_INSTALL=1: installs nothing)
	@.ci/run race programs checks

.PHONY: tools
tools: servers node-modules ## install the Debian packages and npm modules that some tests need (NO_INSTALL=1: only list them)

.PHONY: servers
servers:
	@tools/have-servers

# A linter and a client that tests run, where there is npm.
.PHONY: node-modules
node-modules:
	@[ -n "$$NO_INSTALL" ] || ! command -v npm >/dev/null || npm install --prefix bin/node --no-audit --no-fund --silent ioredis@5.9.2 @redocly/cli@2.77.0 >/dev/null 2>&1 || true

# The packages whose tests take longest, which begin first: no core waits at the end.
SLOW = ./latelyredis ./internal/cli ./internal/test/deptest ./internal/server ./replay ./ratelimit ./internal/server/console ./internal/server/httpapi ./client

# Packages whose code runs goroutines: all their tests run under the race detector. In other packages, tests
# with Concurrent in their names do; internal/test/deptest checks the names.
CONCURRENT = client internal/event/crawlers latelygrpc latelyredis internal/server/follow internal/server/enforce internal/server/journal internal/server/loglimit internal/server \
	internal/server/access internal/server/engine internal/server/events internal/server/hotkeys internal/server/listen internal/server/httpapi internal/server/respapi

# By default a program with the race detector, the test of each package too, sleeps for a
# second before it exits.
export GORACE ?= atexit_sleep_ms=10

# Some tests wait for other programs: two packages more than there are cores run at a time.
PACKAGES := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)

# The compiler collects garbage only above a gigabyte: large packages take a fifth less time.
FAST = -toolexec 'env GOGC=off GOMEMLIMIT=1GiB'

# Tests run with -vet=off, since make lint runs vet with all its analyzers, and are linked without what
# debuggers need, which takes a third of the time.
GOTEST = $(GO) test $(FAST) -vet=off -ldflags=-w

.PHONY: test-short
test-short: ## the short forms of all tests
	$(GOTEST) -short -p $(PACKAGES) -timeout 10m $(SLOW) ./...

.PHONY: test-long
test-long: ## all tests in full, with fresh seeds, for the night
	$(GOTEST) -p $(PACKAGES) -timeout 30m $(SLOW) ./...

# The race detector allocates, and finds a control's fault before the test does.
RACE = $(GOTEST) -race -short -skip 'Alloc|Control|Caught' -p $(PACKAGES) -timeout 30m

.PHONY: test-race
test-race: ## concurrent tests in their short forms, and the adapters, under the race detector, where there is a C compiler
	@if tools/have-race; then set -x; $(RACE) $(addprefix ./,$(CONCURRENT)) && \
		$(RACE) -run Concurrent $$(grep -rl --include='*_test.go' --exclude-dir=adapters --exclude-dir=benchmarks '^func Test.*Concurrent' . | xargs -n 1 dirname | sort -u | grep -vxF "$$(printf './%s\n' $(CONCURRENT))"); fi
	@if tools/have-race; then $(MAKE) --no-print-directory test-adapters GOTEST="$(GOTEST) -race"; fi

# Other modules, each in its folder: a program that uses an adapter downloads one framework. A command
# runs in those that can download what they need. By the tag nomsgpack, gin lacks a codec that takes half
# a minute to compile; go-redis takes as long if it is optimized.
LEAN = -tags nomsgpack -gcflags='github.com/redis/go-redis/v9=-N -l'
ADAPTERS  = adapters/goredis adapters/echo adapters/fiber adapters/gin
CLIENTS   = internal/server/respapi/clienttest
MANIFESTS = deploy/kubernetes/validate
in-modules = @for m in $(1); do [ -f $$m/go.mod ] || continue; \
	if (cd $$m && $(GO) mod download) >/dev/null 2>&1; then (set -x; cd $$m && $(2)) || exit 1; else echo "SKIP $$m: its modules cannot be downloaded"; fi; done

.PHONY: test-adapters
test-adapters: ## test the adapters for gin, echo, fiber and go-redis
	$(call in-modules,$(ADAPTERS),$(GOTEST) $(LEAN) ./...)

.PHONY: test-clients
test-clients: export NODE_PATH ?= $(CURDIR)/bin/node/node_modules
test-clients: ## the server with the Redis clients of other projects, a module of its own
	$(call in-modules,$(CLIENTS),$(GOTEST) $(LEAN) -timeout 5m ./...)

.PHONY: test-manifests
test-manifests: ## Kubernetes manifests and the snippet for Envoy against their types, a module of its own
	$(call in-modules,$(MANIFESTS),$(GOTEST) ./...)

.PHONY: hostile
hostile: build ## attack the built server: memory stays under a limit, latency of others within a multiple
	LATELY_HOSTILE=$(CURDIR)/bin $(GO) test -run '^TestHostile$$' -count=1 -v -timeout 15m ./internal/cli

.PHONY: hostile-controls
hostile-controls: ## each attack on a program without the defence against it, which must fail: at night
	LATELY_HOSTILE_CONTROLS=1 $(GO) test -run '^TestHostileControls$$' -count=1 -v -timeout 90m ./internal/cli

.PHONY: storm
storm: build ## random servers, rules, traffic and faults against the built server (SEEDS=1000: fresh seeds, SEED=7: one)
	LATELY_STORM=$(CURDIR)/bin $(if $(SEED),STORM_FIRST=$(SEED) STORM_SEEDS=1,$(if $(SEEDS),STORM_FRESH=1 STORM_SEEDS=$(SEEDS),STORM_FOR=50s)) $(GO) test -run '^TestStorm$$' -vet=off -count=1 -v -timeout 6h ./internal/test/storm

.PHONY: storm-planted
storm-planted: ## build the server with each of the planted bugs, and have storms find it (PLANTED=budget: one)
	LATELY_PLANTED=1 PLANTED=$(PLANTED) $(GO) test -run '^TestPlanted$$' -vet=off -count=1 -v -timeout 2h ./internal/test/storm

.PHONY: lint
lint: vet fmt-check staticcheck actionlint ## vet, 32-bit vet, gofumpt, staticcheck, actionlint

# On 32 bits only the types matter: what vet compiles for them is not optimized.
.PHONY: vet
vet:
	$(GO) vet ./...
	GOARCH=386 $(GO) vet -gcflags='all=-N -l' ./...
	$(GO) vet -tags explore ./internal/counting/ring/
	$(call in-modules,$(ADAPTERS) $(CLIENTS) $(MANIFESTS) benchmarks,$(GO) vet $(LEAN) ./...)

.PHONY: fmt-check
fmt-check:
	@if ! $(TOOL) -n gofumpt >/dev/null 2>&1; then echo "SKIP gofumpt: it cannot be downloaded; gofmt -s instead"; unformatted=$$(gofmt -s -l .); \
	else echo "$(TOOL) gofumpt -l ."; unformatted=$$($(TOOL) gofumpt -l .); fi; \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi

.PHONY: staticcheck
staticcheck:
	@if ! $(TOOL) -n staticcheck >/dev/null 2>&1; then echo "SKIP staticcheck: it cannot be downloaded"; \
	else set -x; $(TOOL) staticcheck ./... && $(TOOL) staticcheck -tags explore ./internal/counting/ring/; fi

.PHONY: actionlint
actionlint:
	@if ! $(TOOL) -n actionlint >/dev/null 2>&1; then echo "SKIP actionlint: it cannot be downloaded"; \
	else set -x; $(TOOL) actionlint .github/workflows/*.yml; fi

.PHONY: fmt
fmt: ## format all Go files
	$(TOOL) gofumpt -w .

.PHONY: demo
demo: build ## replay a generated log and print the report
	$(GO) run ./cmd/samplelog > bin/access.log
	bin/lately replay $(DEMO_RULES) bin/access.log

# 33,000,000 lines are a little more than 5 GB.
LARGE_LINES ?= 33000000

.PHONY: pictures
pictures: ## remake the pictures of README and docs from the demo, with a headless Chromium
	LATELY_PICTURES=$(CURDIR)/docs/pictures $(GO) test -vet=off -count=1 -run '^(TestConcurrentDemo|TestConcurrentFleet|TestPicture|TestTopOfServer)$$' ./internal/server/console ./internal/server/replaypage ./internal/cli

.PHONY: screenshots
screenshots: ## write a picture of every page, wide and narrow, light and dark, full and empty, to bin/screenshots
	LATELY_SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -vet=off -count=1 -run '^(TestConsole|TestInBrowser)$$/^pictures?$$' ./internal/server/console ./internal/server/replaypage

.PHONY: large-log
large-log: build ## replay a generated log of 5 GB in bounded memory and print what that took (LARGE_LINES=3300000)
	$(GO) build -o bin/samplelog ./cmd/samplelog
	bin/samplelog -lines $(LARGE_LINES) -duration 168h 2>/dev/null | /usr/bin/time -f '%M KB at most, %U s of CPU time, %e s' bin/lately replay --lateness 5s --limit 60/1m - > bin/large-log.txt
	head -n 4 bin/large-log.txt

.PHONY: manuals
manuals: build ## man pages and shell completion, in bin/
	rm -rf bin/man bin/completion && mkdir -p bin/man bin/completion
	$(GO) run -ldflags '-X github.com/lately-go/lately/internal/cli.version=$(VERSION)' ./cmd/manpages bin/man && gzip -9n bin/man/*.1
	bin/lately completion bash > bin/completion/lately.bash
	bin/lately completion zsh > bin/completion/_lately
	bin/lately completion fish > bin/completion/lately.fish

# nfpm is not pinned in tools/go.mod: its dependencies are many, and only packagers need
# them.
NFPM ?= $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4
ARCH ?= $(shell $(GO) env GOARCH)

# The same commit gives the same packages.
MADE := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)

.PHONY: packages
packages: export VERSION := $(or $(VERSION),0.0.0)
packages: export SOURCE_DATE_EPOCH := $(MADE)
packages: export ARCH := $(ARCH)
packages: manuals ## bin/package/*.deb and *.rpm (VERSION=1.2.3 ARCH=arm64)
	rm -rf bin/package && mkdir -p bin/package
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -tags timetzdata -ldflags '-s -w -X github.com/lately-go/lately/internal/cli.version=$(VERSION)' -o bin/package/lately ./cmd/lately
	gzip -9n < CHANGELOG.md > bin/package/changelog.gz
	printf -- '- {semver: %s-1, date: %s, packager: "The Lately authors <lately@example.org>", deb: {urgency: medium, distributions: [stable]}, changes: [note: "New version; changelog.gz beside this file has what is new."]}\n' \
		$(VERSION) "$$(date -u -d @$(MADE) +%Y-%m-%dT%H:%M:%SZ)" > bin/package/changelog.yaml
	{ cat deploy/nfpm.yaml; for doc in bin/man/*=man/man1 deploy/copyright=doc/lately bin/package/changelog.gz=doc/lately; do \
		for src in $${doc%=*}; do \
			dst=/usr/share/$${doc#*=}/$$(basename $$src); \
			printf '  - {src: %s, dst: %s, packager: deb}\n  - {src: %s, dst: %s, packager: rpm, type: doc}\n' $$src $$dst $$src $$dst; \
		done; done; } > bin/package/nfpm.yaml
	$(NFPM) package -f bin/package/nfpm.yaml -p deb -t bin/package/
	$(NFPM) package -f bin/package/nfpm.yaml -p rpm -t bin/package/

.PHONY: test-packages
test-packages: ## install and purge the packages, and check them with lintian and rpmlint
	@if ! $(NFPM) --version >/dev/null 2>&1; then echo "SKIP packages: nfpm cannot be downloaded"; \
	else set -x; $(MAKE) --no-print-directory packages VERSION=1.2.3 && LATELY_PACKAGES=$(CURDIR)/bin/package $(GO) test ./internal/server -run TestPackages -count 1 -v; fi

.PHONY: bench
bench: ## run the benchmarks (BENCH=regexp BENCHTIME=1s)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for a short while (FUZZTIME=10s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
			echo "fuzz $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$pkg"; \
		done; \
	done

.PHONY: clean
clean: ## remove build results
	rm -rf bin
	find . -name '*.test' -type f -delete -o -name '*.prof' -type f -delete
