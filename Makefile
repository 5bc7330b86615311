# The one command surface: for people, for hooks and for CI.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: setup demo up test faults cgroups soak year lint check bench help dev lock chromium jdbc prometheus reference

# Images of Python often forbid compiled modules. The tests start hundreds of processes, and each start would
# compile a thousand modules again, which takes longer than all other work of the start.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.runtime-$(shell cat pyproject.toml requirements.lock | cksum | cut -d' ' -f1)
DEV_STAMP := $(VENV)/.dev-$(shell cat pyproject.toml requirements-dev.lock | cksum | cut -d' ' -f1)

# Settings that reading the code wants and no server answers to.
LINT_ENV := SECRET_KEY=lint DATABASE_URL=postgres://lint@127.0.0.1:9/lint DATABASE_POOL_SIZE=0 \
	REDIS_URL=redis://127.0.0.1:9/0 SPARK_REMOTE=sc://localhost:9 SLICEWISE_DATA=/tmp

# For both Pythons, naming no host; --upgrade in ARGS takes newer versions.
LOCK_OPTIONS := -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-header --no-annotate $(ARGS)

setup: $(STAMP) ## make .venv with everything that Slicewise needs

demo: $(STAMP) ## backfill the flights of 2013 and show the pages (ONCE=1: end after the table)
	$(BIN)/slicewise demo $(if $(filter 1 yes true,$(ONCE)),--once)

up: $(STAMP) ## start everything on this machine; Ctrl-C ends it
	$(BIN)/slicewise up

# A test of 20 minutes hangs: the stacks of its process are printed, and the tests have failed.
HANGS := -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true --max-worker-restart 0

# Three processes on two cores: tests of faults and Spark wait much of the time.
test: $(DEV_STAMP) chromium jdbc prometheus ## all tests, on real servers and a real browser (ARGS="-k …" for some)
	$(BIN)/python -m pytest -n 3 --dist loadscope $(HANGS) $(ARGS)

# LONG_RUN_SECONDS, 600 unless told: how long the run lasts in which PostgreSQL is restarted.
faults: $(DEV_STAMP) ## kill, stop and fill what Slicewise stands on, three times over
	FAULT_ROUNDS=3 $(BIN)/python -m pytest tests/faults $(ARGS)

cgroups: $(DEV_STAMP) ## tests of control groups on a kernel of their own, emulated by QEMU (ARGS="-k …" for some)
	./bin/cgroups-vm $(ARGS)

soak: $(DEV_STAMP) ## kill processes for ten minutes, check what was made (ARGS="--seconds 60" for less), then a year
	$(BIN)/python -m bench.soak $(ARGS)
	$(MAKE) year ARGS=

# FAMILIES, 9 unless told: how often there are the 52 kinds of assets; one family takes some half an hour.
# FIRST_FAMILY, 0 unless told: two processes take half the time, one of them with FAMILIES=2 FIRST_FAMILY=2.
# DAYS, 365 unless told: definitions change after a third and two thirds of the days.
year: $(DEV_STAMP) ## simulate a year of 470 assets, and compare the record with a simple reference (some hours)
	SIMULATED=year $(BIN)/python -m pytest tests/simulation -s $(ARGS)

lint: $(DEV_STAMP) ## ruff, mypy, import-linter, the limits of tests/house, and no migration missing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint-types lint-structure

# mypy takes as long as all the rest: each has one core.
.PHONY: lint-types lint-structure
lint-types lint-structure: $(DEV_STAMP)
lint-types:
	$(LINT_ENV) $(BIN)/mypy

lint-structure:
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house --check
	$(LINT_ENV) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

check: lint ## lint, and all tests that need no server: for use while working
	$(BIN)/python -m pytest -n 2 --dist loadscope --without-servers -q $(ARGS)

.PHONY: migrations
migrations: $(DEV_STAMP) ## write the migrations that the models lack; no server needed (ARGS="--name …")
	$(LINT_ENV) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations $(ARGS)
	$(BIN)/ruff format -q */migrations slicewise_server/*/migrations

bench: $(DEV_STAMP) ## measure, and print the table of the figures to reach
	$(BIN)/python -m bench $(ARGS)

.PHONY: shots
shots: $(DEV_STAMP) chromium ## pictures of all pages, in build/shots (ARGS="--catalogue busy" for some)
	$(BIN)/python -m tests.shots $(ARGS)

reference: $(DEV_STAMP) ## write docs/reference/sdk.md anew from the docstrings of slicewise
	$(BIN)/python -m tests.docs.sdk_reference

.PHONY: styles
styles: $(DEV_STAMP) ## write static/vendor/tabler/tabler.used.css anew: the rules of Tabler that pages use
	$(BIN)/python -m tests.styles

dev: $(DEV_STAMP) ## make .venv with what tests and checks need as well

lock: $(STAMP) ## write the lock files anew from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --group installer $(LOCK_OPTIONS) -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml --group installer --group dev -c requirements.lock \
		$(LOCK_OPTIONS) -o requirements-dev.lock

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

$(BIN)/python:
	@./bin/make-venv $(VENV)

$(STAMP): $(BIN)/python
	@./bin/install-locked $(VENV) requirements.lock
	@touch $@

$(DEV_STAMP): $(BIN)/python
	@./bin/install-locked $(VENV) requirements-dev.lock
	@touch $@ $(STAMP)

jdbc:
	@./bin/ensure-jdbc >/dev/null

prometheus:
	@./bin/ensure-prometheus >/dev/null || true

chromium:
	@./bin/ensure-chromium
