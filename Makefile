# `make demo` and `make test` make .venv once, from the versions in constraints.txt, and use it again.

PYTHON ?= python3
SEED ?= 1
CONTROL ?=
# Address of a further package index for torch alone, e.g. the one the PyTorch site names for CPU.
TORCH_INDEX ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --quiet --no-compile

# Idle OpenMP threads must not spin beside the environments, and nothing is fetched at run time.
export OMP_WAIT_POLICY := PASSIVE
export HF_HUB_OFFLINE := 1

.PHONY: help demo test test-full lint browser clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

help:
	@echo "make demo [SEED=1] [CONTROL=1]  train a small agent by SFT, then RL, and measure the gain"
	@echo "make test                       linters, then the tests in random order"
	@echo "make test-full                  the same, with the full form of the tests that are sampled"
	@echo "make lint                       linters, format and types only"
	@echo "make clean                      remove .venv, caches and builds; runs/ stays"
	@echo "Settings: PYTHON=python3 (3.11 or newer), TORCH_INDEX=address of the index for torch alone"

demo: $(VENV)/demo-ready
	@$(BIN)/turngym demo --seed $(SEED) $(if $(filter-out 0 no false,$(CONTROL)),--control)

test: lint browser
	@echo "Tests, in random order"
	@$(BIN)/python -m pytest -q -m "not gpu and not full"

test-full: lint browser
	@echo "Tests in their full form, in random order"
	@$(BIN)/python -m pytest -q -m "not gpu" --full

lint: $(VENV)/test-ready
	@echo "Linters, format, types, layers"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "Run $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports > $(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }

# The tests of pages need Chromium, which pip does not bring. Without it they are skipped, and say so.
browser:
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } > /dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && echo "Installing Chromium for the tests of pages" && \
	    apt-get -qq -o Acquire::Retries=3 update && DEBIAN_FRONTEND=noninteractive \
	    apt-get -qq -o Acquire::Retries=3 install -y --no-install-recommends chromium > /dev/null; } || \
	  echo "No Chromium here: the tests of pages are skipped; on Debian: apt-get install chromium"

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp is written last, so a failed installation is tried again.

$(VENV)/torch-ready: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "turngym needs Python 3.11 or newer; name one: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2> /dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && \
	    apt-get -qq update && apt-get -qq install -y python3-venv > /dev/null; } || \
	  { echo "$(PYTHON) cannot make environments; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@echo "Installing torch into $(VENV) (1 of 2)"
	@$(PIP) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c constraints.txt torch
	@touch $@

$(VENV)/demo-ready: $(VENV)/torch-ready pyproject.toml constraints.txt
	@echo "Installing turngym into $(VENV) (2 of 2)"
	@$(PIP) -c constraints.txt -e '.[plot]'
	@touch $@

$(VENV)/test-ready: $(VENV)/torch-ready pyproject.toml constraints.txt
	@echo "Installing turngym and its tests' tools into $(VENV) (2 of 2)"
	@$(PIP) -c constraints.txt -e '.[dev,plot,textworld]'
	@touch $(VENV)/demo-ready $@
