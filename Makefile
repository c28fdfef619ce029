# Each target is one line of work, the same that CI runs. `make demo` and `make test` need Python 3.11 and nothing else.
PYTHON ?= python3
BIN := .venv/bin
USABLE := 'import pip, sys; sys.exit(sys.version_info < (3, 11))'

.PHONY: demo test engine lint format bench train-demo serve-demo
.DEFAULT_GOAL := demo

demo: .venv/.ready
	@$(BIN)/spotrail plan dev --as-of 2026-11-29
	@$(BIN)/python -m tests.google_cloud.demo

test: .venv/.ready
	$(BIN)/pytest -n auto --dist loadfile -q --ignore tests/engine

data/shakespeare/MANIFEST.json: | .venv/.ready
	@$(BIN)/python -m training prepare --corpus shakespeare --out data/shakespeare --vocab-size 2048 --sequence-length 128

# Three minutes: Shakespeare is fetched once, and a small model learns to write like him. Run it again to see it resume.
train-demo: data/shakespeare/MANIFEST.json
	@$(BIN)/python -m training --config training/configs/demo.yaml

# Serves the model of train-demo, or one that a minute of training makes, and asks it with OpenAI's client.
serve-demo: data/shakespeare/MANIFEST.json
	@$(BIN)/python -m tests.serving_demo

# Under Pulumi's own engine. Its CLI is built once from its Go module where the PATH has none, which takes minutes.
engine: .venv/.ready
	@$(BIN)/python -m tests.engine.command
	$(BIN)/pytest -n 2 --dist loadfile -q tests/engine

lint: .venv/.ready
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports --no-cache && $(BIN)/mypy

format: .venv/.ready
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: .venv/.ready
	$(BIN)/python tests/bench/preview.py
	$(BIN)/python tests/bench/readers.py
	$(BIN)/python -m tests.bench.audit
	$(BIN)/python -m tests.bench.optimizers -n 8
	$(BIN)/python -m tests.bench.mixers
	$(BIN)/python -m tests.bench.loader --tokens 10000000
	$(BIN)/python -m tests.bench.kills
	$(BIN)/python -m tests.bench.weights
	$(BIN)/python -m tests.bench.scheduler
	$(BIN)/python -m tests.bench.serving
	$(BIN)/python -m tests.bench.long_context

# A .venv that uv made gets pip; one that was left half-made, or has an older Python, is made again.
# --inexact keeps pip and uv themselves, which the lock does not list. Bytecode is compiled once here, because the
# first import of pulumi_gcp takes four seconds without it.
.venv/.ready: pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'spotrail needs Python 3.11 or later: make demo PYTHON=python3.11' >&2; exit 2; }
	@$(BIN)/python -c $(USABLE) 2>/dev/null || { $(BIN)/python -m ensurepip >/dev/null 2>&1 && $(BIN)/python -c $(USABLE) 2>/dev/null; } || $(PYTHON) -m venv --clear .venv
	@echo 'installing into .venv (about a minute, once) ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
	@VIRTUAL_ENV=.venv $(BIN)/uv sync --frozen --inexact --compile-bytecode --quiet
	@touch $@
