# One command does everything a target needs first: `make demo` on a fresh machine is enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
FAST   := $(wildcard src tests/unit tests/property)
SLOW   := $(wildcard tests/faults tests/integration tests/chaos)
# A data file for each run: two runs in one tree would otherwise report each other's coverage.
PYTEST  = mkdir -p build && COVERAGE_FILE=build/coverage.$$$$ $(BIN)/python -m pytest $(WORKERS) --cov --cov-report=term-missing:skip-covered
# Three processes, each with brokers of its own, take the test files one by one: two leave a fifth of two cores waiting.
# One that dies takes the run with it: xdist would give its file, with the test that killed it, to the next one, and hang in the end.
WORKERS = -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart=0

MAKEFLAGS     += --no-print-directory
# Some machines forbid Python to keep what it compiled: PySpark and the Kafka library are two CPU seconds then, at every start.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup jars lint check test demo faults chaos soak bench wheel lock clean python java

help: ## say what there is to make
	@echo 'Heliograph mirrors Apache Kafka clusters. Needs Python 3.11+, Java 17+ and Maven; the rest it fetches itself.'
	@echo
	@echo '  make demo              two Kafka clusters, sample traffic, a mirror and a live table, until Ctrl-C'
	@echo '  make demo SECONDS=20   the same for 20 seconds, then a comparison record by record'
	@echo '  make test              everything: checks, unit and property tests, real brokers, a real Spark, kills'
	@echo '  make check             the fast part: format, lint, import contracts, types, unit and property tests'
	@echo '  make faults            every fault of docs/faults.md on three brokers a side and on a Spark cluster, one after the other'
	@echo '  make chaos SECONDS=600 faults on three brokers a side and on the mirror, then a verdict: valid, or what went wrong; SEED=n repeats one'
	@echo '  make soak SECONDS=3600 steady load: memory, sockets and files of every process, flat or growing'
	@echo '  make bench             against the real MirrorMaker 2 on the same data; writes build/bench.json and docs/benchmarks.md'
	@echo '  make setup             the virtual environment alone: leaves $(BIN)/heliograph'
	@echo '  make jars              Kafka 4.3.1 into $${HELIOGRAPH_CACHE:-~/.cache/heliograph}'
	@echo '  make wheel             dist/heliograph-*.whl, which runs without this repository and without Maven'
	@echo '  make lock              requirements.lock anew from pyproject.toml'
	@echo '  make clean             remove the virtual environment and all that was built; the jars stay'

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'Python 3.11 or newer was not found: install it (Debian: apt-get install python3 python3-venv) or say where it is: make PYTHON=/path/to/python3.11' >&2; exit 1; }

java: python
	@PYTHONPATH=src $(PYTHON) -m heliograph.embedded.java

setup: python $(VENV)/.installed

# The lock names everything, so nothing is resolved: with --require-hashes older pips trip over an extra whose package has a newer release.
$(VENV)/.installed: requirements.lock pyproject.toml
	@echo 'Setting up $(VENV) from requirements.lock (once, a minute or two) ...'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src || true # a faster start where Python may not write its caches by itself
	@touch $@

jars: java setup
	@$(BIN)/python -m heliograph.embedded.jars
	@# Without these brokers start a second later, and Spark two.
	@$(BIN)/python -m heliograph.embedded.prepare || true
	@$(BIN)/python -m heliograph.spark.prepare || true

lint: setup
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-logo
	$(BIN)/mypy --strict src

check: lint
	$(PYTEST) $(FAST)

test: java setup jars lint
	$(PYTEST) $(FAST) $(SLOW)

demo: java setup jars
	@$(BIN)/heliograph demo $(if $(SECONDS),--seconds $(SECONDS))

# Part of `make test` too; alone they print how long delivery stood still.
faults: java setup jars
	$(BIN)/python -m pytest -p no:randomly --log-cli-level=INFO tests/faults

# Exit 0: valid, 1: an anomaly, 2: it could not run. The history is in build/chaos/SEED.
chaos: java setup jars
	@$(BIN)/python -m tests.histories $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(if $(SPARK),--spark $(SPARK))

soak: java setup jars
	@$(BIN)/python -m tests.histories.soak $(if $(SECONDS),--seconds $(SECONDS))

bench: java setup jars
	@mkdir -p build
	@$(BIN)/python -m tests.bench
	@$(BIN)/python -m tests.bench.rest
	@$(BIN)/python -m tests.bench.watched
	@$(BIN)/python -m tests.bench.restart
	@$(BIN)/python -m tests.bench.reattach
	@$(BIN)/python -m tests.bench.joining
	@$(BIN)/python -m tests.bench.report build > docs/benchmarks.md

wheel: setup
	@rm -rf dist
	@$(BIN)/python -m hatchling build -t wheel

lock: python
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/pip install --quiet --disable-pip-version-check uv
	@build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --extra demo --group dev pyproject.toml --output-file requirements.lock

clean:
	@rm -rf $(VENV) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
