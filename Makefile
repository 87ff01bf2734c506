# Tools, pinned. Nothing else is needed than Go itself (the version in go.mod) and a POSIX shell.
GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

GO      ?= go
BIN      = .cache/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION)
BUILD    = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'

# Packages that share memory between goroutines: the race detector runs them. Of the command's tests it gets those whose
# processes do: the rest would only run the library once more.
RACE_PKGS  = . ./sched ./store ./synth
RACE_CMD   = TestSignals|TestBar|TestTwoRuns|TestScript/(streams|dirs)
# Packages with assembly: the generic code behind -tags noasm must pass the same tests.
NOASM_PKGS = ./checksum ./codec/...
# How long each fuzz target runs in `make test` and `make fuzz`; a duration, or a count such as 20000x.
FUZZTIME  ?= 3s

DIST = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: all build test lint bench bench-peers dist generate fuzz check clean

all: build

# build: the command, for this machine, in bin/.
build:
	$(BUILD) -o bin/ ./cmd/wcodec

# test: everything that must pass before a change counts. Needs no tool but Go.
test: check fuzz
	@echo '== noasm'
	$(GO) test -tags noasm $(NOASM_PKGS)
	@echo '== race'
	$(GO) test -race -short $(RACE_PKGS)
	$(GO) test -race -short -run '$(RACE_CMD)' ./cmd/wcodec
	@echo '== test'
	$(GO) test ./...

# check: what can be said without running the code.
check:
	@echo '== gofmt'
	@out=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	@echo '== vet'
	$(GO) vet ./...
	@echo '== other platforms'
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/wcodec
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/wcodec

# fuzz: every fuzz target for FUZZTIME. Each package is compiled once for all of its targets.
fuzz:
	@echo '== fuzz, $(FUZZTIME) a target'
	@mkdir -p .cache/fuzz
	@set -e; root=$$PWD; \
	for dir in $$(git ls-files '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n1 dirname | sort -u); do \
		bin=$$root/.cache/fuzz/$$(echo $$dir | tr /. __).test; \
		$(GO) test -c -fuzz=Fuzz -o $$bin ./$$dir; \
		for target in $$(cd $$dir && $$bin -test.list '^Fuzz'); do \
			echo "== fuzz $$dir $$target"; \
			(cd $$dir && $$bin -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzcachedir $$root/.cache/fuzz/corpus/$$dir); \
		done; \
	done

# lint: golangci-lint, built once into .cache/bin.
lint: $(BIN)/golangci-lint
	$(BIN)/golangci-lint run ./...
	$(GO) test ./internal/street

$(BIN)/golangci-lint: Makefile
	GOBIN=$(CURDIR)/$(BIN) $(GO) install $(GOLANGCI_LINT)

# bench: the figures of docs/BENCHMARKS.md for this machine.
bench: build
	$(GO) test -run '^$$' -bench . -benchtime 1s ./checksum ./codec/...
	bin/wcodec bench --synthetic llama-3-8b --layers 1

# bench-peers: the same weights through ZipNN and zstd, on one core. Needs Python 3, its headers and a C compiler.
bench-peers: build .cache/peers/venv/installed
	.cache/peers/venv/bin/python bench/peers.py

.cache/peers/venv/installed: bench/requirements.txt
	python3 -m venv .cache/peers/venv
	.cache/peers/venv/bin/pip install --quiet --no-deps -r bench/requirements.txt
	touch $@

# generate: assembly from its generators, by the go:generate lines beside it. The result is committed.
generate:
	$(GO) generate ./...

# dist: static binaries for every platform, with their checksums, in dist/.
dist:
	@rm -rf dist && mkdir -p dist
	@set -e; \
	for p in $(DIST); do \
		os=$${p%/*}; arch=$${p#*/}; ext=; [ $$os = windows ] && ext=.exe; \
		out=dist/wcodec-$(VERSION)-$$os-$$arch$$ext; \
		echo $$out; \
		GOOS=$$os GOARCH=$$arch $(BUILD) -o $$out ./cmd/wcodec; \
	done
	@cd dist && sha256sum wcodec-* > SHA256SUMS && cat SHA256SUMS

clean:
	rm -rf bin dist .cache
