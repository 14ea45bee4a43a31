# Everything a contributor or CI runs. `make help` lists it.

PYTHON ?= $(shell for python in python3.12 python3.13 python3.11 python3 python; do \
	$$python -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
INSTALLED := $(VENV)/.installed

# The steps print in order, and the tests' closing line comes last.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: demo
demo: $(INSTALLED) ## context packs from a real chat history, then a server at 127.0.0.1:8321
	@exec $(BIN)/trivet demo

.PHONY: serve
serve: $(INSTALLED) ## the server at 127.0.0.1:8321
	@exec $(BIN)/trivet serve

.PHONY: test
test: $(INSTALLED) ## unit, property, contract and integration tests on the embedded PostgreSQL
	@$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile $(PYTEST_ARGS)

.PHONY: lint
lint: $(INSTALLED) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: format
format: $(INSTALLED) ## put the code into ruff's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: types
types: $(INSTALLED) ## mypy, strict
	@$(BIN)/mypy

.PHONY: imports
imports: $(INSTALLED) ## import-linter: who may import whom
	@$(BIN)/lint-imports

.PHONY: docs-check
docs-check: $(INSTALLED) ## links of the pages resolve, the README's commands exist
	@$(BIN)/python docs/check_links.py

.PHONY: check
check: lint types imports docs-check test ## all of the above, as CI does

.PHONY: bench
bench: $(INSTALLED) ## speed on 1,000 to 100,000 memories, peers that are installed beside it; BENCH_ARGS="--sizes 1m"
	@$(BIN)/trivet bench --out benchmarks/results $(BENCH_ARGS)

FUZZ_PORT ?= 8398
FUZZ_EXAMPLES ?= 1000

.PHONY: fuzz
fuzz: $(INSTALLED) ## 1,000 requests of each endpoint, made from the OpenAPI document, to a server of its own
	@folder=$$(mktemp -d /tmp/trivet-fuzz-XXXXXX) && chmod 755 "$$folder" || exit 1; \
	TRIVET_DATABASE_URL=embedded TRIVET_DATA_DIR="$$folder/data" \
		$(BIN)/trivet serve --port $(FUZZ_PORT) </dev/null >"$$folder/log" 2>&1 & server=$$!; \
	trap 'kill $$server 2>/dev/null; wait $$server; rm -rf "$$folder"' EXIT; trap 'exit 130' INT TERM; \
	PATH="$(abspath $(BIN)):$$PATH" benchmarks/schemathesis.sh http://127.0.0.1:$(FUZZ_PORT) $(FUZZ_EXAMPLES) \
		|| { tail -40 "$$folder/log"; exit 1; }

.PHONY: models
models: $(INSTALLED) ## build the embedder and the intent model anew; the weights and the rescorer: CONTRIBUTING.md
	@$(BIN)/python -m retrieval.embedding.build_onnx
	@$(BIN)/python -m classifier.training

.PHONY: lock
lock: $(LOCKED) ## resolve the lock files anew; UPGRADE=1 takes newer versions
	@for lock in requirements.lock "requirements-dev.lock --extra train --extra dev"; do \
		UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
			--generate-hashes --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) \
			pyproject.toml -o $$lock || exit 1; done

.PHONY: wheel
wheel: $(INSTALLED) ## dist/: the wheel and the source archive
	@$(BIN)/hatchling build

.PHONY: clean
clean: ## remove the environment and what the tools left
	rm -rf $(VENV) dist build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment holds exactly the lock; it is made anew only when the lock changes.
$(LOCKED): requirements-dev.lock
	@if [ -z "$(PYTHON)" ]; then \
		echo "Trivet needs Python 3.11 or newer with its venv module (Debian: apt install python3-venv);" >&2; \
		echo "if it is somewhere unusual: make PYTHON=/path/to/python3" >&2; exit 1; fi
	@echo "Setting up $(VENV) with $(PYTHON): takes a minute or two, once"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# Compiles native/, too.
$(INSTALLED): $(LOCKED) pyproject.toml $(wildcard native/*.c native/*.h native/*.py)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
