# `make setup` builds .venv, `make run` starts a broker, `make test` is what CI calls.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
# Processes that share the tests: many tests wait, so two cores keep four busy. The scheduler leaves
# neighbouring tests together, which share what a module or a package starts.
WORKERS ?= 4
# Seconds a test may take: one that hangs is named instead of stopping the run.
TIMEOUT ?= 600
# Bytecode is kept whatever the environment says: each process that tests start would compile the
# package again, which is two thirds of its start.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup setup-browser run test fuzz test-all test-cluster check format bench bench-cluster bench-storage bench-client bench-admin bench-spark proto docs clean

help:
	@echo "make setup        build $(VENV)"
	@echo "make setup-browser Chromium of the system's packages, for the tests of the console"
	@echo "make run          start pulsar-py standalone on ports 6650 and 8080, data under ./data"
	@echo "make check        format, lint, types, unit tests"
	@echo "make test         check, and every test that CI runs"
	@echo "make test-all     the long tests, too"
	@echo "make test-cluster against real ZooKeepers, bookies and Apache Pulsar; needs Java 17 and Maven"
	@echo "make fuzz         a million inputs each for frames, commands and REST, then as many by coverage"
	@echo "make bench        benchmarks of the broker; also bench-cluster, bench-storage, bench-client, bench-admin, bench-spark"
	@echo "make proto        write again what is generated of proto/*.proto"
	@echo "make docs         write again what is generated of documents, and build/site of all of them"

setup: $(STAMP)

# pip writes the bytecode of what it copies; an editable install is not copied.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -q -j 0 pulsar_py
	@touch $@

# Without apt or its rights the tests that need a browser say so and are skipped.
setup-browser:
	@if command -v chromium >/dev/null; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    chromium chromium-driver fonts-dejavu; } >/dev/null 2>&1 \
	    || echo "setup-browser: Chromium could not be installed; the console's tests will be skipped"; \
	else echo "setup-browser: no apt-get that may install Chromium; the console's tests will be skipped"; fi

run: setup
	$(BIN)/pulsar-py standalone --data-dir data

define static-checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
endef

# Collecting compiles the tests, on the core that the type checker leaves free: otherwise each of the
# processes that share the tests does it.
define static-checks-while-collecting
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(BIN)/pytest -qq --collect-only -m "not slow" >$(VENV)/collected.txt & collecting=$$!; \
	echo "$(BIN)/mypy"; $(BIN)/mypy || exit 1; wait $$collecting || { cat $(VENV)/collected.txt; exit 1; }
endef

check: setup
	$(static-checks)
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal --timeout $(TIMEOUT) -m "not slow" tests/unit tests/test_architecture.py tests/test_exports.py tests/test_mirror.py

test: setup
	$(static-checks-while-collecting)
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal --timeout $(TIMEOUT) -m "not slow"

test-all: setup
	$(static-checks)
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal --timeout $(TIMEOUT)

test-cluster: setup
	$(BIN)/pytest -q --timeout $(TIMEOUT) tests/cluster tests/contracts
	$(BIN)/pytest -q --timeout $(TIMEOUT) --on-bookkeeper tests/interop

# First by chance, as fast as it goes, on protobuf's compiled part and (what parses it) on its own Python;
# then by the code that is reached, which costs several times as much.
fuzz: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,fuzz]'
	$(BIN)/python -m tests.fuzz
	PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python $(BIN)/python -m tests.fuzz --target frames --target commands
	$(BIN)/python -m tests.fuzz.guided

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.micro_receipts
	$(BIN)/python -m benchmarks.micro_receipts --broker --rounds 3

bench-storage: setup
	$(BIN)/python -m benchmarks.storage
	$(BIN)/python -m benchmarks.micro_cursor

bench-client: setup
	$(BIN)/python -m benchmarks.client

bench-admin: setup
	$(BIN)/python -m benchmarks.admin_command

bench-cluster: setup
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/python -m benchmarks.cluster --mixed

bench-spark: setup
	$(BIN)/python -m benchmarks.spark

proto: setup
	$(BIN)/python proto/generate.py

docs: setup
	$(BIN)/pip install --quiet --constraint constraints.txt -e '.[docs]'
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
