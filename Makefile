# Needs Python 3.11 or newer with its venv module, and make. Everything else goes into .venv.

PYTHON ?= python3
WORKERS ?= 2
DEV_EXTRAS ?= dev,dashboard,envpool,examples,games,plot,postgres,ray,s3,tensorboard,wandb
TORCH ?= 2.13.0
BENCH_ARGS ?=
TRAIN_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help venv train test test-again lint check bench test-faults format constraints clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' \
		| while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

$(VENV)/.created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hookloop needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# torch goes first and by its exact release, so that a build the machine already offers is taken as it is.
$(VENV)/.core: $(INPUTS) | $(VENV)/.created
	$(INSTALL) "$$(grep '^torch==' constraints.txt)"
	$(INSTALL) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(INSTALL) -e '.[$(DEV_EXTRAS)]'
	@touch $@

$(VENV)/.bench: $(VENV)/.core
	$(INSTALL) -e '.[bench]'
	@touch $@

venv: $(VENV)/.dev ## create .venv with the library and the development tools

train: $(VENV)/.core ## train the default recipe (TRAIN_ARGS="--seed 1"); installs no development tools
	$(BIN)/hookloop train $(TRAIN_ARGS)

test: $(VENV)/.dev ## run all tests but the long versions of test-faults
	$(BIN)/pytest -n $(WORKERS) tests

test-again: $(VENV)/.dev ## run the tests that failed last once more, one after the other
	$(BIN)/pytest -n 0 --last-failed --last-failed-no-failures none tests

lint: $(VENV)/.dev ## format, lint, types and import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

check: lint ## lint, then the unit and contract tests
	$(BIN)/pytest -n $(WORKERS) tests/unit tests/contracts

test-faults: $(VENV)/.dev ## kill processes and damage files hundreds of times (tests/faults, the long versions)
	$(BIN)/pytest -m faults tests

bench: $(VENV)/.bench ## run every script in benchmarks/ (BENCH_ARGS="--quick")
	@set -e; for script in $(sort $(wildcard benchmarks/[!_]*.py)); do \
		echo "== $$script"; $(BIN)/python "$$script" $(BENCH_ARGS); \
	done

format: $(VENV)/.dev ## rewrite the sources in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(VENV)/.created ## resolve every extra again and rewrite constraints.txt (TORCH=2.13.0)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --dry-run --ignore-installed \
		--report $(VENV)/report.json 'torch==$(TORCH)' -e '.[all,envpool,examples,bench,dev]'
	$(BIN)/python tools/constraints.py $(VENV)/report.json > $(VENV)/constraints.txt
	mv $(VENV)/constraints.txt constraints.txt

clean: ## remove .venv, caches and build output; runs are kept
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
