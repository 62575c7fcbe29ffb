# `make demo` shows Sluice, `make test` checks it. Each does its own set-up.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
RUST := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)

.PHONY: help
help: ## list what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: prerequisites
prerequisites:
	@command -v $(PYTHON) >/dev/null || { echo "missing: $(PYTHON) (Python 3.11 or later)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "missing: Python 3.11 or later ($(PYTHON) is $$($(PYTHON) -V 2>&1)); set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "missing: Python's venv module (Debian: python3-venv)" >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "missing: cargo (a Rust toolchain, 1.85 or later)" >&2; exit 1; }

$(VENV)/.locked: requirements/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.built: $(VENV)/.locked pyproject.toml $(RUST)
	PATH="$(BIN):$$PATH" $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

.PHONY: setup
setup: prerequisites $(VENV)/.built ## create .venv with locked dependencies and build the Rust core

.PHONY: demo
demo: setup ## the paper in miniature on an embedded simulated plant (FAST=1: sooner)
	$(BIN)/sluice demo --out demo $(if $(FAST),--fast)

.PHONY: reference
reference: setup ## write docs/reference/api.md and cli.md from docstrings and command help
	$(BIN)/python -m tools.reference

.PHONY: docs
docs: setup ## build the documentation as an offline site into build/site
	$(BIN)/python -m tools.reference --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@! grep -rlE "(src|href)=\"?https?://[^\"]*\.(js|css|woff2?)" build/site || { echo "these pages load from another server" >&2; exit 1; }
	@echo "build/site/index.html (for search: python3 -m http.server --directory build/site)"

.PHONY: dist
dist: setup ## build wheel and sdist, check them in a clean environment, write SBOM and SHA256SUMS into dist/
	PYTHON=$(PYTHON) BIN=$(BIN) bash tools/dist.sh

.PHONY: audit
audit: setup ## look for known vulnerabilities and licence conflicts of all dependencies
	PYTHON=$(PYTHON) bash tools/audit.sh

.PHONY: tools
tools: ## stock snarkjs and circomlibjs, which tests hold our proofs against (GPL, never shipped)
	@if command -v npm >/dev/null; then test -d build/tools/node_modules/snarkjs || \
	  npm install --silent --no-audit --no-fund --prefix build/tools snarkjs@0.7.4 circomlibjs@0.1.7; \
	  else echo "no npm: proofs are not held against snarkjs" >&2; fi

.PHONY: rival
rival: prerequisites tools ## stock circom and the paper's circuit, for bench attest-sampled (GPL, never shipped)
	@command -v npm >/dev/null || { echo "missing: npm (node 18 or later)" >&2; exit 1; }
	test -d build/tools/node_modules/circom2 || \
	  npm install --silent --no-audit --no-fund --prefix build/tools circom2@0.2.23 circomlib@2.0.5
	cargo build --locked --quiet --release -p attest-core --example benchmark_only_powers_of_tau
	mkdir -p build/rival
	cp benchmarks/rival/paper.circom target/release/examples/benchmark_only_powers_of_tau build/rival/

build/broker/.locked: requirements/broker.txt
	$(PYTHON) -m venv build/broker
	build/broker/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/broker.txt
	@touch $@

.PHONY: broker
broker: prerequisites build/broker/.locked ## an MQTT broker for the tests of watch, in an environment of its own

.PHONY: test
test: setup lint tools broker ## everything that must hold: lint, types, imports, tests, Rust
	@mkdir -p build; failed=0; \
	echo "tests/unit here; the other tests and Rust's beside them, into build/tests.log"; \
	{ others=0; $(BIN)/python -m pytest --ignore=tests/unit tests || others=1; \
	  cargo test --locked --quiet || others=1; exit $$others; } >build/tests.log 2>&1 & \
	$(BIN)/python -m pytest tests/unit || failed=1; \
	wait $$! || failed=1; cat build/tests.log; exit $$failed

.PHONY: test-network
test-network: setup ## federations of real Flower processes over TLS through nginx: attacks, kills, faults (60 minutes)
	@command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || { echo "missing: nginx (Debian: nginx-light)" >&2; exit 1; }
	SLUICE_NETWORK=1 SLUICE_NETWORK_PAGE=1 $(BIN)/python -m pytest tests/integration/test_network.py \
	  tests/integration/test_network_malicious.py tests/integration/test_network_operators.py \
	  tests/integration/test_network_moments.py tests/integration/test_network_varied.py \
	  tests/integration/test_network_faults.py \
	  tests/integration/test_network_filter.py tests/integration/test_wire.py tests/integration/test_soak.py

ROUNDS ?= 500

.PHONY: soak
soak: setup ## ROUNDS (500) rounds of real processes with kills and malicious plants drawn by SEED (0), into docs/results (40 minutes)
	@command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || { echo "missing: nginx (Debian: nginx-light)" >&2; exit 1; }
	SLUICE_SOAK=$(ROUNDS) SLUICE_SOAK_SEED=$(SEED) SLUICE_SOAK_PAGE=1 $(BIN)/python -m pytest -q tests/integration/test_soak.py

.PHONY: many
many: setup ## what 10, 20 and 50 plants cost their coordinator, into docs/results (2 minutes)
	$(BIN)/python -m benchmarks many --out docs/results/many.md

.PHONY: lint
lint: setup ## formatting, lint, types, import contracts, clippy
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cargo fmt --check
	cargo clippy --locked --quiet --all-targets -- -D warnings

.PHONY: bench
bench: setup ## speed as ratios, rival and ours side by side
	$(BIN)/python -m benchmarks gate
	$(BIN)/python -m benchmarks train
	$(BIN)/python -m benchmarks moments
	$(BIN)/python -m benchmarks attest-full
	$(BIN)/python -m benchmarks attest-sampled
	$(BIN)/python -m benchmarks reading
	$(BIN)/python -m benchmarks watch
	$(BIN)/python -m benchmarks startup

.PHONY: evaluate
evaluate: setup ## what the gate tells apart, measured into docs/results (several minutes)
	$(BIN)/python -m benchmarks evaluation --out docs/results/gate.md

.PHONY: detector
detector: setup ## what the detectors find, measured into docs/results (15 minutes)
	$(BIN)/python -m benchmarks detector --out docs/results/detector.md

.PHONY: worth
worth: setup ## what a plant gains by joining, into docs/results (15 minutes; continues where it was stopped)
	$(BIN)/python -m benchmarks worth --out docs/results/worth.md

.PHONY: mapping
mapping: setup ## how often `plant map` is right on 20 varied sites, into docs/results (3 minutes)
	$(BIN)/python -m benchmarks mapping --out docs/results/mapping.md

.PHONY: cold-start
cold-start: setup ## borrowed thresholds of a plant in its first days, into docs/results (30 minutes; continues where it was stopped)
	$(BIN)/python -m benchmarks cold-start --out docs/results/cold-start.md

.PHONY: unlike-plants
unlike-plants: setup ## what plants of other kinds give a plant, into docs/results (5 minutes)
	$(BIN)/python -m benchmarks unlike-plants --out docs/results/unlike-plants.md

.PHONY: vote
vote: setup ## attacks on the members of a vote beside its certificate, into docs/results (hours; continues)
	$(BIN)/python -m benchmarks vote --out docs/results/vote.md

.PHONY: exactness
exactness: setup ## whether gate and circuit ever disagree, measured into docs/results (an hour)
	$(BIN)/python -m benchmarks exactness --out docs/results/exactness.md

.PHONY: verifiers
verifiers: setup ## whether the two verifiers of full proofs ever disagree, measured into docs/results (10 minutes)
	$(BIN)/python -m benchmarks verifiers --seed $(SEED) --out docs/results/verifiers.md

.PHONY: parameters
parameters: setup ## other parameters of the full proof, each built and timed, into docs/results (30 minutes; continues where it was stopped)
	$(BIN)/python -m benchmarks parameters --out docs/results/parameters.md

.PHONY: scaling
scaling: setup ## what a proof costs by the rows of its batch, measured into docs/results (15 minutes)
	$(BIN)/python -m benchmarks attest-full --scaling --out docs/results/scaling.md

.PHONY: verifying
verifying: setup ## what the proofs of 10 to 1,000 plants cost the coordinator, measured into docs/results (2 minutes)
	$(BIN)/python -m benchmarks verify-many --out docs/results/verifying.md

ARM := aarch64-unknown-linux-gnu

.PHONY: check-arm
check-arm: ## whether the core compiles for ARM64, and its tests pass there (emulated) and without this machine's vector unit
	@rustup target list --installed | grep -qx $(ARM) || { echo "missing: rustup target add $(ARM)"; exit 2; }
	@command -v aarch64-linux-gnu-gcc > /dev/null || echo "aarch64-linux-gnu-gcc is missing: BLAKE3 is checked without its C code"
	cargo check --locked -p attest-core --target $(ARM) $(if $(shell command -v aarch64-linux-gnu-gcc),,--features blake3/no_neon)
	RUSTFLAGS="" CARGO_TARGET_DIR=target/portable cargo test --release --locked -p attest-core --test full_vectors --test full_chain
	@command -v aarch64-linux-gnu-gcc > /dev/null && command -v qemu-aarch64 > /dev/null || { \
	  echo "aarch64-linux-gnu-gcc or qemu-aarch64 is missing (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user): no test ran on ARM64"; exit 2; }
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	  CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
	  cargo test --release --locked -p attest-core --target $(ARM) --test full_vectors --test full_proofs

.PHONY: profile-prover
profile-prover: setup ## where the prover's time goes, by phase and as flame graphs in build/profile (needs perf)
	$(BIN)/python -m benchmarks profile-prover

SEED ?= 0
COUNT ?= 48

.PHONY: mutants
mutants: setup ## weaken COUNT (48) lines that refuse, drawn by SEED (0): a test must notice each (40 minutes)
	$(BIN)/python -m tools.mutants --seed $(SEED) --count $(COUNT)

.PHONY: fuzz
fuzz: ## a bit in every byte of a proof, then broken proofs of any sort for MINUTES (5)
	MINUTES=$(or $(MINUTES),5) cargo test --release --locked -p attest-core --test full_fuzz -- --ignored --nocapture

.PHONY: evidence
evidence: setup ## poisoning with and without the gate, all modes and rules, into docs/results (hours)
	$(BIN)/python -m benchmarks evidence --out docs/results/evidence.md

PAPER ?= build/paper
FEDERATIONS = benchmarks/paper-federations.jsonl

.PHONY: paper
paper: setup ## the paper's 1,120 cells in folder PAPER (build/paper), then their page in docs/results (hours; continues where it was stopped, on any machine)
	@mkdir -p $(dir $(PAPER)); if [ -e $(PAPER)/cells.sqlite ]; then stage="resume $(PAPER)"; else stage="run paper --out $(PAPER)"; fi; \
	  $(BIN)/sluice lab $$stage --federations $(FEDERATIONS) || [ $$? -eq 3 ]
	$(BIN)/sluice lab audit $(PAPER)
	$(BIN)/sluice lab report $(PAPER) --out $(PAPER)/report.html --paper docs/results/lab-paper.md

.PHONY: kills
kills: setup ## kill a grid of 200 BATADAL cells ten times: the same results, byte for byte (30 min)
	$(BIN)/python -m benchmarks kills --folder kills

.PHONY: red-team
red-team: setup ## every attack at the gate, into docs/results (hours; continues where it was stopped)
	$(BIN)/python -m benchmarks red-team --out docs/results/red-team.md

.PHONY: detectability
detectability: setup ## which slow noise in BATADAL's levels a test could notice, into docs/results (a minute)
	$(BIN)/python -m benchmarks detectability --out docs/results/detectability.md

.PHONY: drift
drift: setup ## which leaks, drifting meters and set-points are named, into docs/results (a few minutes)
	$(BIN)/python -m benchmarks drift --out docs/results/drift.md

.PHONY: sampling
sampling: setup ## table 8: how often drawn rows let a batch pass, into docs/results (a few minutes)
	$(BIN)/python -m benchmarks sampling --out docs/results/sampling.md

.PHONY: format
format: setup ## rewrite files in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cargo fmt

LOCK := uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header \
  --universal --python-version 3.11

.PHONY: lock
lock: ## resolve the locks again, all extras together
	@command -v uv >/dev/null || { echo "missing: uv" >&2; exit 1; }
	$(LOCK) --all-extras pyproject.toml requirements/engines.in -o requirements/all.txt
	$(LOCK) -c requirements/all.txt pyproject.toml -o requirements/runtime.txt
	$(LOCK) --extra network -c requirements/all.txt pyproject.toml -o requirements/network.txt
	$(LOCK) --extra mqtt --extra opcua -c requirements/all.txt pyproject.toml -o requirements/watch.txt
	$(LOCK) --extra lab --extra network --extra export -c requirements/all.txt pyproject.toml -o requirements/lab.txt
	$(LOCK) --extra dev -c requirements/all.txt pyproject.toml -o requirements/dev.txt
	$(LOCK) requirements/release.in -o requirements/release.txt
	$(LOCK) requirements/broker.in -o requirements/broker.txt

.PHONY: clean
clean: ## remove what the targets above made
	rm -rf $(VENV) target build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
