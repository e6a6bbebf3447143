# Everything runs inside .venv, which `setup` builds from pyproject.toml and brings up to date when that file changes. `tools` adds what tests need.
PYTHON ?= python3
# Where an extra has no package for your machine, leave it out: make test EXTRAS=dev
EXTRAS ?= gym,storm,cluster,parquet,validation,dev
BIN := .venv/bin
STAMP := .venv/.complete
TOOLS := .venv/.tools
WORKERS ?= 2
# How long `make fuzz` searches; it prints its seed, and keeps what fails in build/fuzz.
FUZZ_SECONDS ?= 180
# With a seed the search is the same every time.
FUZZ_SEED ?=
# Where `make study` keeps its runs; started again, it computes what is missing.
STUDY ?= build/study
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: run test setup tools browser lint bench ledger fuzz study clean

run: setup
	$(BIN)/tailpath compare river:30x10
	$(BIN)/tailpath compare gridworld:14x16

test: tools
	$(BIN)/pytest -n $(WORKERS)

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tailpath needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	$(BIN)/tailpath warm-up
	touch $(STAMP)

tools: $(TOOLS)

$(TOOLS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	touch $(TOOLS)

# What the tests of `tailpath page` need besides: a browser, its driver (packages of Debian and Ubuntu) and selenium.
browser: tools
	command -v chromium chromedriver >/dev/null || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -qq -y chromium chromium-driver; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[browser]'

lint: tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: tools
	$(BIN)/python -m benchmarks

# Every number of tests/ledger, kept from before the core was written anew, asked again: about ten minutes.
ledger: tools
	$(BIN)/python -m tests.ledger.compare

fuzz: tools
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

study: tools
	$(BIN)/tailpath study --out $(STUDY) --workers $(WORKERS)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
