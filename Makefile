# Everything runs in an environment of its own: .venv is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Compiled modules are kept also where a shell asks Python for none: tests start hundreds of
# processes, and pytest rewrites every assertion.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick check docs docs-outputs bench evaluation clean

demo: $(STAMP)  ## a poisoned collection by every method, then a collector with 20,000 devices
	$(BIN)/python -m unpoison.demo

# One process of tests a core: further threads of linear algebra would wait for each other, busily.
test quick: export OPENBLAS_NUM_THREADS = 1

test: $(STAMP)  ## all tests and the examples in the docstrings, on all cores
	$(BIN)/python -m pytest -n auto --dist loadfile

quick: $(STAMP)  ## the tests that need no server, browser, database or long simulation
	$(BIN)/python -m pytest -n auto --dist loadfile -m 'not (server or browser or database or slow)'

check: $(STAMP)  ## lint, format, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: $(VENV)/.docs  ## the documentation, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-outputs: $(STAMP)  ## run what the documentation shows, and write down what it prints
	$(BIN)/python docs/refresh.py

bench: $(VENV)/.bench  ## speed and memory as ratios, into docs/performance.md
	$(BIN)/unpoison bench --markdown docs/performance.md

evaluation: $(STAMP)  ## the tables and pictures of docs/evaluation.md in full (under an hour)
	$(BIN)/unpoison reproduce all --markdown docs/evaluation.md
	mkdir -p docs/figures && cp results/*.png docs/figures/

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "unpoison needs Python 3.11 or newer; set PYTHON=…"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) site demo results dist build .import_linter_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
