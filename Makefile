# Everything runs inside .venv, which is built from pyproject.toml and brought up to date when that file changes. `setup` also compiles the kernels,
# `tools` adds what tests and the site need; with -j they run side by side.
PYTHON ?= python3
# Where an extra has no package for your machine, leave it out: make test EXTRAS=dev
EXTRAS ?= gym,storm,mpi,parquet,validation,browser,docs,dev
BIN := .venv/bin
# Python compiles what it imports; all that is installed would take longer.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
PACKAGE := .venv/.package
WARM := .venv/.warm
TOOLS := .venv/.tools
WORKERS ?= 2
# What `make fuzz` searches: by default three minutes. It prints its seed, and keeps what fails in build/fuzz.
# With a seed and counts the search is the same every time: FUZZ='--seed 1 --files 5000 --models 400'.
FUZZ ?= --seconds 180
# Where `make study` keeps its runs; started again, it computes what is missing.
STUDY ?= build/study
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: run test setup tools browser chromium docs packages lint bench indices coverage mutate ledger fuzz soak study clean

run: setup
	$(BIN)/tailpath compare river:30x10
	$(BIN)/tailpath compare gridworld:14x16

test: setup tools
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

$(PACKAGE): pyproject.toml papers/forpecvar/pyproject.toml cases/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tailpath needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(INSTALL) -e . -e papers/forpecvar -e cases
	touch $(PACKAGE)

setup: $(WARM)

$(WARM): $(PACKAGE)
	$(BIN)/tailpath warm-up
	touch $(WARM)

tools: $(TOOLS)

$(TOOLS): $(PACKAGE)
	$(INSTALL) -e '.[$(EXTRAS)]'
	touch $(TOOLS)

# What the tests of `tailpath page` need besides: a browser and its driver (packages of Debian and Ubuntu).
browser: tools chromium

chromium:
	command -v chromium chromedriver >/dev/null || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -qq -y chromium chromium-driver; }

# The site, in build/site: tutorials and pictures are run, and every warning is an error. No network is needed.
docs: setup tools
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/site
	@echo 'build/site/index.html'

# Wheel and sdist, as they would be released: checked, and tried in empty environments of every Python that is on the path.
packages: tools
	$(INSTALL) build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	for python in python3.11 python3.12 python3.13 python3.14; do \
	  command -v $$python >/dev/null || continue; \
	  for package in dist/*.whl dist/*.tar.gz; do \
	    rm -rf build/empty && $$python -m venv build/empty && build/empty/bin/pip install --quiet "$$PWD/$$package" && \
	    (cd build && empty/bin/tailpath info gridworld:14x16 && empty/bin/tailpath compare river:5x5 --alpha 0.1) || exit 1; \
	  done; \
	done

lint: tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

bench: setup tools
	$(BIN)/python -m benchmarks

# The tests that call most kernels, with every index checked. Numba would take machine code without the checks for that with them: it is kept apart.
indices: setup tools
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/indices $(BIN)/pytest -n $(WORKERS) --dist worksteal tests/kernels tests/dp tests/solvers tests/evaluation tests/policies

# Lines and branches that tests run; kernels count as they are written, so this takes a while.
coverage: setup tools
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n $(WORKERS) --cov=tailpath --cov-branch --cov-report=term:skip-covered --cov-report=html:build/coverage

# Changes of the source that no test notices: docs/testing.md.
MUTANTS ?= 200
mutate: setup tools
	$(BIN)/python -m tests.mutation --count $(MUTANTS) --workers $(WORKERS)

# Every number of tests/ledger, asked again: about ten minutes.
ledger: setup tools
	$(BIN)/python -m tests.ledger.compare

fuzz: setup tools
	$(BIN)/python -m tests.fuzz $(FUZZ)

# An hour of threads, processes, interrupts, studies and notebooks: same numbers, nothing left behind.
soak: setup tools
	$(BIN)/python -m tests.soak

study: setup tools
	$(BIN)/tailpath study --out $(STUDY) --workers $(WORKERS)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
