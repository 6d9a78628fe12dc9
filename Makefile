# `make setup` builds .venv, `make run` starts a broker, `make test` is what CI calls.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
# Processes that share the tests; two cores are what CI has.
WORKERS ?= 2
# Seconds a test may take: one that hangs is named instead of stopping the run.
TIMEOUT ?= 600

.PHONY: help setup run test test-all test-cluster check format bench bench-cluster bench-storage bench-client bench-spark proto docs clean

help:
	@echo "make setup        build $(VENV)"
	@echo "make run          start pulsar-py standalone on ports 6650 and 8080, data under ./data"
	@echo "make check        format, lint, types, unit tests"
	@echo "make test         check, and every test that CI runs"
	@echo "make test-all     the long tests, too"
	@echo "make test-cluster against real ZooKeepers, bookies and Apache Pulsar; needs Java 17 and Maven"
	@echo "make bench        benchmarks of the broker; also bench-cluster, bench-storage, bench-client, bench-spark"
	@echo "make proto        write again what is generated of proto/*.proto"
	@echo "make docs         write again what is generated of documents, and build/site of all of them"
