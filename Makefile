# Everything a contributor or CI runs. `make help` lists it.

# The versions that the locked packages have wheels for; of free-threaded builds some have none.
FITS := -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15) or "t" in sys.abiflags)' 2>/dev/null
# The system's Python first: distributions build theirs with profile-guided optimisation, pyenv does not (docs/decisions/0037).
PYTHON ?= $(shell for python in $(addprefix /usr/bin/python,3.12 3.13 3.14 3.11) \
	python python3.12 python3.13 python3.14 python3.11 python3; do $$python $(FITS) && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
INSTALLED := $(VENV)/.installed
DEVELOPMENT := $(VENV)/.development
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Everything stays in this folder: pip and uv keep no cache, matplotlib's is in .venv, the demo's database in .demo.
# Bytecode is kept in .venv: without it, every program that a test starts compiles the modules it imports.
# `make clean` removes it.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/$(VENV)/.bytecode
export PIP_NO_CACHE_DIR ?= 1
export UV_NO_CACHE ?= 1
export MPLCONFIGDIR ?= $(CURDIR)/$(VENV)/.matplotlib
DEMO_DATA := $(CURDIR)/.demo

# The steps print in order, and the tests' closing line comes last.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo serve test lint format types imports docs-check docs sanitize sanitize-threads check bench mutants \
	fuzz console models lock wheel clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(INSTALLED) ## context packs from a real chat history, then a server at 127.0.0.1:8321
	@TRIVET_DATA_DIR="$${TRIVET_DATA_DIR:-$(DEMO_DATA)}" exec $(BIN)/trivet demo

serve: $(INSTALLED) ## the server at 127.0.0.1:8321
	@exec $(BIN)/trivet serve

test: export OMP_NUM_THREADS = 1
test: $(INSTALLED) $(DEVELOPMENT) ## unit, property, contract and integration tests on the embedded PostgreSQL
	@# More threads of NumPy and LightGBM would only spin.
	@# No reordering: files with a few long tests would come last and keep one process busy while the others wait.
	@$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

lint: $(INSTALLED) $(DEVELOPMENT) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(INSTALLED) $(DEVELOPMENT) ## format the code with ruff
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(INSTALLED) $(DEVELOPMENT) ## mypy, strict
	@$(BIN)/mypy

imports: $(INSTALLED) $(DEVELOPMENT) ## import-linter: who may import whom
	@$(BIN)/lint-imports

docs-check: $(INSTALLED) $(DEVELOPMENT) ## links of the pages resolve, the README's commands exist
	@$(BIN)/python docs/check_links.py

KERNEL_TESTS = tests/unit/native/test_worker_pool.py tests/unit/index/test_quantized_vectors.py \
	tests/unit/classifier/test_trees.py tests/unit/classifier/test_traits.py \
	tests/unit/graph/test_adjacency.py tests/unit/graph/test_pagerank.py tests/unit/legs/test_maxscore.py \
	tests/unit/ranking/test_fusion.py tests/unit/ranking/test_rescoring_kernels.py \
	tests/property/legs/test_bm25_context_properties.py tests/property/ranking/test_dedup_properties.py \
	tests/property/legs/test_graph_walk_properties.py

docs: $(INSTALLED) $(DEVELOPMENT) ## the documentation as a site: build/docs/site
	@$(BIN)/python -m docs.build

sanitize: $(INSTALLED) $(DEVELOPMENT) ## tests of native/ under AddressSanitizer and UndefinedBehaviorSanitizer; needs gcc
	@native/sanitize.sh address $(BIN)/python $(KERNEL_TESTS) -k 'not ranx' # ranx compiles with LLVM in a separate process

SANITIZE_SECONDS ?= 600

sanitize-threads: $(INSTALLED) $(DEVELOPMENT) ## searches among writes for ten minutes under ThreadSanitizer; needs gcc
	@native/sanitize.sh thread $(BIN)/python benchmarks/thread_stress.py --seconds $(SANITIZE_SECONDS)

check: lint types imports docs-check docs sanitize test ## all of the above, as CI does

bench: $(INSTALLED) $(DEVELOPMENT) ## speed on 1,000 to 100,000 memories, compared with installed peers; BENCH_ARGS="--sizes 1m"
	@$(BIN)/trivet bench --out benchmarks/results $(BENCH_ARGS)

mutants: $(INSTALLED) $(DEVELOPMENT) ## small changes of meaning, one by one: a test must notice each; MUTANTS="pack entity" for some
	@$(BIN)/python benchmarks/mutants.py $(MUTANTS)

FUZZ_PORT ?= 8398
FUZZ_EXAMPLES ?= 1000

fuzz: $(INSTALLED) $(DEVELOPMENT) ## 1,000 requests per endpoint, generated from the OpenAPI document, to a separate server
	@folder=$$(mktemp -d /tmp/trivet-fuzz-XXXXXX) && chmod 755 "$$folder" || exit 1; \
	TRIVET_DATABASE_URL=embedded TRIVET_DATA_DIR="$$folder/data" \
		$(BIN)/trivet serve --port $(FUZZ_PORT) </dev/null >"$$folder/log" 2>&1 & server=$$!; \
	trap 'kill $$server 2>/dev/null; wait $$server; rm -rf "$$folder"' EXIT; trap 'exit 130' INT TERM; \
	PATH="$(abspath $(BIN)):$$PATH" benchmarks/schemathesis.sh http://127.0.0.1:$(FUZZ_PORT) $(FUZZ_EXAMPLES) \
		|| { tail -40 "$$folder/log"; exit 1; }

console: ## rebuild the page at `/` from console/; the only target that needs Node
	@cd console && npm ci --ignore-scripts --silent && npm run --silent build

models: $(INSTALLED) $(DEVELOPMENT) ## rebuild the embedder and the intent model; the weights and the rescorer: CONTRIBUTING.md
	@$(BIN)/python -m retrieval.embedding.build_onnx
	@$(BIN)/python -m classifier.training

lock: $(DEVELOPMENT) ## update the lock files; UPGRADE=1 upgrades all versions
	@for lock in requirements.lock "requirements-dev.lock --extra train --extra dev" \
		"requirements-image.lock --extra documents --extra mcp --extra otel --constraint requirements-dev.lock"; do \
		UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
			--generate-hashes --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) \
			pyproject.toml -o $$lock || exit 1; done

wheel: $(INSTALLED) $(DEVELOPMENT) ## dist/: the wheel and the source archive
	@$(BIN)/hatchling build

clean: ## remove the environment and the tools' leftovers
	rm -rf $(VENV) $(DEMO_DATA) dist build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis
	rm -f native/_kernels-*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What serving needs: `make demo` installs no more.
$(LOCKED): requirements.lock
	@$(or $(PYTHON),false) $(FITS) || { \
		echo "Trivet needs Python 3.11 to 3.14, not free-threaded, with its venv module (Debian: apt install python3-venv);" >&2; \
		echo "if it is somewhere unusual: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON): takes about a minute, once"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@touch $@

# Also compiles native/, with build requirements that pip fetches temporarily.
$(INSTALLED): $(LOCKED) pyproject.toml hatch_build.py $(wildcard native/*.c native/*.h native/*.py)
	@$(PIP_INSTALL) --no-deps --editable .
	@touch $@

# What tests, checks and training need in addition.
$(DEVELOPMENT): $(LOCKED) requirements-dev.lock
	@echo "Adding what development needs to $(VENV): takes some minutes, once"
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@
