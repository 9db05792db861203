# Run `make` to list the targets.
SHELL := /usr/bin/env bash
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --match 'v*' 2>/dev/null | sed 's/^v//' || true)
# The version of builds without a tag.
DEVELOPMENT := 1.0.0-dev
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || true)
# The time of the commit, not of the build, so that builds are reproducible.
DATE    ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || true)
LDFLAGS := -s -w -X main.version=$(or $(VERSION),$(DEVELOPMENT)) -X main.commit=$(COMMIT) -X main.date=$(DATE)
BIN     := $(CURDIR)/bin
GO      ?= go
# Many tests wait for controllers or for another program: more of them than processors run at the same time.
PARALLEL ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n > 3 ? n : 3)))
# Tests start programs that are not part of the key of the test cache. tools/stress sets TESTFLAGS. Without symbols, the
# programs of tests are linked faster. make verify runs vet.
GOTEST  := $(GO) test $(TESTFLAGS) -vet=off -ldflags='-s -w' -count=1 -timeout 80m -p $(PARALLEL) -parallel $(PARALLEL)
# The packages of make test: test/e2e runs there only in part, and test/bench and test/public have no tests. The packages
# that take longest start first.
TESTED  := ./cmd/flux/script ./test/faults ./test/hostile ./cmd/... ./internal/... ./pkg/... ./manifests/... ./tools/... \
	./test/arch/... ./test/compat/... ./test/release/... ./test/support/...

# The same build flags everywhere: with other flags, Kubernetes is compiled again.
export CGO_ENABLED ?= 0
export GOFLAGS := -trimpath -buildvcs=false
export FLUX_SANDBOX_BIN := $(BIN)
# The API modules of Flux 2.10 need a newer Go than flux: the go command downloads it even if it is
# configured not to.
export GOTOOLCHAIN := auto

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: manifests ## Build bin/flux with the embedded manifests of the controllers, bin/flux-helper and bin/flux-ui
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/flux ./cmd/flux
	$(GO) build -ldflags '-s -w' -o $(BIN)/flux-helper ./cmd/flux-helper
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/flux-ui ./cmd/flux/flux-ui

.PHONY: manifests
manifests: ## Generate the CustomResourceDefinitions from the pinned API modules, and copy Graphviz from its pinned module
	manifests/generate
	tools/graphviz/generate

.PHONY: versions
versions: ## Generate the CustomResourceDefinitions of older versions of Flux for the tests
	test/versions/generate

.PHONY: sandbox
sandbox: ## Build bin/flux-sandbox and bin/kubectl (5 minutes the first time)
	sandbox/build $(BIN) flux-sandbox kubectl

.PHONY: controllers
controllers: ## Build the real Flux controllers for the sandbox (4 minutes the first time)
	sandbox/build $(BIN) controllers

.PHONY: operator
operator: ## Build the real flux-operator for the sandbox (5 minutes the first time)
	sandbox/build $(BIN) operator

.PHONY: gitea
gitea: ## Build a real Gitea for the bootstrap tests (3 minutes the first time)
	sandbox/build $(BIN) gitea

.PHONY: descriptions
descriptions: ## Download GitHub's OpenAPI description, which validates the test server; needs npm
	tools/openapi/fetch $(BIN)

.PHONY: demo
demo: build sandbox controllers ## Bootstrap Flux in a sandbox and deploy an application
	test/demo.sh

.PHONY: pictures
pictures: demo ## Generate the pictures in docs/pictures from the demo
	test/pictures.sh

.PHONY: test
test: lint verify test-unit smoke ## Tier 1, for every push: linters, generated files, unit tests, command scripts, one end-to-end test (12 minutes)

.PHONY: test-unit
test-unit: manifests sandbox controllers gitea descriptions
	$(GOTEST) $(TESTED)
	cd sandbox && $(GOTEST) -skip '^TestNightly' ./...

.PHONY: smoke
smoke: build sandbox controllers
	$(GOTEST) -run '^TestSmoke$$' ./test/e2e

.PHONY: compat
compat: manifests sandbox ## Compare commands and flags with the recorded contract, replay it, and list the differences
	$(GOTEST) -v -run TestContract ./cmd/flux/internal/root
	$(GOTEST) -v -run TestReplay ./test/compat

.PHONY: e2e
e2e: build sandbox controllers operator gitea ## Tier 2, before a merge: one case for each behavior with the real controllers (12 minutes)
	$(GOTEST) -p 1 -parallel 4 -skip '^(TestNightly|TestSmoke$$)' ./test/e2e ./test/confine # the sandbox pool limits them

.PHONY: nightly
nightly: test e2e nightly-e2e nightly-unit failures-check race fuzz completions-check platforms reproducible public site-check ## Tier 3, every night: all cases, versions and faults, races, fuzzing, platforms, public repositories (5 hours)

.PHONY: nightly-e2e
nightly-e2e: build sandbox controllers operator gitea ## Run the end-to-end tests that make e2e excludes
	$(GOTEST) -timeout 120m -run '^TestNightly' ./test/e2e ./test/confine

.PHONY: nightly-unit
nightly-unit: manifests sandbox controllers operator gitea descriptions ## Run all cases of tests that make test only samples
	TIER=nightly $(GOTEST) -timeout 120m ./test/faults/...
	TIER=nightly $(GOTEST) ./test/hostile
	TIER=nightly $(GOTEST) -timeout 60m -run '^TestEveryCommand' ./cmd/flux/internal/root
	TIER=nightly $(GOTEST) -run '^TestVersions$$' ./cmd/flux/script
	cd sandbox && $(GOTEST) -run '^TestNightly' ./internal/kubelet ./internal/controller

.PHONY: failures-check
failures-check: ## Compare the list of controller failures with their sources; run `go run ./tools/failures` after a new version
	$(GO) run ./tools/failures
	git diff --exit-code pkg/diagnose/rules/testdata/failures.txt

.PHONY: race
race: manifests sandbox gitea descriptions ## Run the unit tests with the race detector; needs a C compiler
	CGO_ENABLED=1 $(GOTEST) -race ./internal/... ./pkg/...

.PHONY: public
public: manifests ## Compare builds and diffs of public repositories with the library of kustomize-controller; needs GitHub
	$(GO) run ./test/public -clone $(BIN)/public

STRESS_RUNS ?= 3
STRESS_LOAD ?= $(shell getconf _NPROCESSORS_ONLN)

.PHONY: stress
stress: ## Run make TARGET (default test) STRESS_RUNS times on fresh clones of HEAD beside STRESS_LOAD busy loops
	$(GO) run ./tools/stress -runs $(STRESS_RUNS) -load $(STRESS_LOAD) $(or $(TARGET),test)

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: manifests ## Run each fuzz target for FUZZTIME (default 1m); FUZZ=PACKAGE.TARGET selects by regular expression
	tools/fuzz $(FUZZTIME)

.PHONY: bench
bench: build sandbox controllers ## Run the benchmarks against kubectl
	$(GO) run ./test/bench

.PHONY: lint
lint: manifests ## Run the linters over every module
	tools/lint . ./...
	tools/lint sandbox ./...
	tools/lint test/outside ./...
	$(GO) run ./tools/language .
	$$(tools/build actionlint)

.PHONY: docs
docs: build ## Generate docs/cmd and docs/exit-codes.md from the commands
	rm -rf docs/cmd && $(BIN)/flux docgen --path docs/cmd --exit-codes docs/exit-codes.md

.PHONY: site
site: ## Build the documentation as a static site with a search in bin/site; needs npm
	rm -rf $(BIN)/site && tools/site/build $(BIN)/site

.PHONY: site-check
site-check: site ## Check the links and the search of the site in headless Chromium; needs npm and Chromium
	rm -rf $(BIN)/site-pictures && tools/site/check $(BIN)/site $(BIN)/site-pictures

.PHONY: verify
verify: build ## Check formatting, go.mod files, vet, and that generated documents are current
	found=$$(gofmt -l cmd internal pkg manifests test sandbox tools) && test -z "$$found" || { echo "✗ not formatted, run gofmt -w: $$found" >&2; exit 1; }
	$(GO) mod tidy -diff
	cd sandbox && $(GO) mod tidy -diff
	cd test/outside && $(GO) mod tidy -diff
	cd test/outside && $(GO) vet ./...
	$(GO) vet ./...
	rm -rf $(BIN)/cmd && $(BIN)/flux docgen --path $(BIN)/cmd --exit-codes $(BIN)/exit-codes.md
	diff -r docs/cmd $(BIN)/cmd && diff docs/exit-codes.md $(BIN)/exit-codes.md || { echo "✗ docs/cmd or docs/exit-codes.md is outdated: run make docs" >&2; exit 1; }

.PHONY: licenses
licenses: ## Collect the license texts of all linked modules in bin/licenses
	rm -rf bin/licenses && $(GO) run ./tools/licenses bin/licenses ./cmd/flux ./cmd/flux-helper ./cmd/flux/flux-ui
	cp -R tools/graphviz/licenses/. bin/licenses

.PHONY: completions
completions: build ## Generate the completion scripts of the shells in bin/completions
	mkdir -p $(BIN)/completions
	for shell in bash zsh fish powershell; do $(BIN)/flux completion $$shell >$(BIN)/completions/flux.$$shell || exit; done

.PHONY: completions-check
completions-check: completions ## Complete words with the completion scripts in real shells; needs zsh and fish
	test/completions.sh $(BIN)

.PHONY: platforms
platforms: manifests ## Vet and build all programs for the platforms of releases (1 hour)
	tools/platforms

.PHONY: man
man: ## Generate the manual pages in bin/man
	rm -rf $(BIN)/man && $(GO) run ./cmd/flux/manual $(BIN)/man $(or $(VERSION),$(DEVELOPMENT)) $(DATE)

PLATFORMS ?= $(shell $(GO) env GOOS)/$(shell $(GO) env GOARCH)

.PHONY: sandbox-archives
sandbox-archives: ## Pack flux-sandbox, kubectl and the controllers for PLATFORMS in bin/archives
	rm -rf $(BIN)/archives && sandbox/archive $(BIN)/archives $(or $(VERSION),$(DEVELOPMENT)) $(PLATFORMS)

.PHONY: reproducible
reproducible: ## Build all binaries twice in different directories and compare them (20 minutes)
	test/reproducible.sh

.PHONY: empty-machine
empty-machine: build sandbox-archives ## Measure the time from release archives to a running application
	tar -C $(BIN) -czf $(BIN)/archives/flux_$(or $(VERSION),$(DEVELOPMENT))_$(subst /,_,$(PLATFORMS)).tar.gz flux flux-helper flux-ui
	test/empty-machine.sh $(BIN)/archives $(or $(VERSION),$(DEVELOPMENT))

.PHONY: release
release: ## Build and sign a draft release for the tag of HEAD, and push the image to IMAGE; needs cosign and a GitHub token
	PATH="$$(dirname "$$(tools/build cyclonedx-gomod)"):$$PATH" "$$(tools/build goreleaser)" release --clean
	cp dist/flux_*_checksums.txt dist/checksums.txt
	$(MAKE) image
	if [ -n "$(IMAGE)" ]; then $(GO) run ./tools/images push dist/image "$(IMAGE):$(VERSION)" >dist/image.txt && cosign sign --yes "$$(<dist/image.txt)"; fi

.PHONY: snapshot
snapshot: ## Build all release files in dist, unsigned, with the sandbox for this machine only
	PATH="$$(dirname "$$(tools/build cyclonedx-gomod)"):$$PATH" SANDBOX_PLATFORMS="$(PLATFORMS)" "$$(tools/build goreleaser)" release --snapshot --clean --skip=sign
	$(MAKE) image

.PHONY: image
image: ## Build the container image from the archives in dist, as OCI layout in dist/image
	rm -rf dist/image && $(GO) run ./tools/images build dist/image "$(COMMIT)" "$(DATE)" dist/flux_*_linux_*.tar.gz

.PHONY: vulnerabilities
vulnerabilities: manifests ## Report known vulnerabilities in the code that the binaries call; needs access to vuln.go.dev
	$$(tools/build govulncheck) ./cmd/...

.PHONY: clean
clean: ## Remove build output, except for the cache outside the repository
	rm -rf $(BIN) dist manifests/crds/*/
