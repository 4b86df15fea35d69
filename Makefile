# Two commands do everything on a fresh machine: `make demo` and `make test`. While you work,
# `make check` says within 90 seconds whether something broke.
# Needed: git, make, Python >= 3.11 and the package registries.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Three on two cores: tests of servers, browsers and Spark wait for a third of their time.
WORKERS ?= 3
STAMP  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo check test lint bench attack studies docs system release clean

# what pages are looked at with, and what draws the formulas of the documentation
NPM := npm install --prefix tests/browser --silent --no-package-lock --no-audit --no-fund

help:  ## Say what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(STAMP)  ## Make the environment in .venv

$(STAMP): pyproject.toml studies/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "discreet needs Python 3.11 or newer; name one with: make PYTHON=python3.12 setup"; exit 1; }
	@echo "==> making the environment in $(VENV) (a minute or two the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --constraint constraints.txt --editable '.[dev]' --editable ./studies
	@touch $(STAMP)

demo: setup  ## Make demo data and open the table builder on it
	@echo "==> the demo: an invented census, tabulated and protected"
	@$(BIN)/discreet demo $(DEMO)

check: setup  ## Style, types and some tests of every room, in 90 seconds: before each commit
	@$(BIN)/python tools/check.py

test: setup system check  ## Check, then run everything else; WORKERS=n in n processes
	@echo "==> testing the rest"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(or $(TESTS),--unchecked)

lint: setup  ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

system: setup  ## Install what the tests need beside .venv, or say what it is
	@$(BIN)/python tools/system_packages.py
	@$(NPM)

bench: setup  ## Run the benchmarks; ONLY=name runs one
	@$(BIN)/python -m benchmarks $(ONLY)

attack: setup  ## Attack every method on the demo census and write the page of what each withstands
	@$(BIN)/python tools/attack_page.py

studies: setup  ## Run the papers again; STUDY=name runs one
	@$(BIN)/discreet study run $(or $(STUDY),all)

docs: setup  ## Build the documentation, which can be read offline
	@$(NPM)
	@$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build
	@echo "==> open docs/_build/index.html"

release: setup  ## Build sdist and wheel twice, compare them, and write the bill of materials
	@$(BIN)/python tools/release.py $(if $(FINAL),--final)

clean:  ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .deps
