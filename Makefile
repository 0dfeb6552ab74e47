# From a bare clone with Python 3.11+, pip, make and g++: `make demo`, `make test`.
#
#   make demo      from a table to a report, in a minute     make lint       style and types
#   make test      tests and doctests (ARGS="-k rbf")        make sanitize   core tests under sanitizers
#   make bench     the benchmarks                            make wheel      build, then test, the wheel
#   make docs      the pages, into build/docs                make format     what ruff can repair by itself
#   make lab       the page of `mercer lab`                  make build      compile what has changed
#   make clean     remove all that these have made

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --quiet --disable-pip-version-check
CORE := CMakeLists.txt $(wildcard cmake/*.cmake src/mercer/_core/*.?pp src/mercer/_core/*/*.?pp)
PYTEST := --doctest-modules -n $(WORKERS) --dist worksteal

# Workers take whole runs of tests, so that what a module prepares once is seldom prepared twice; and what is compiled to
# bytecode is kept, because the tests start a hundred processes that load the library.
unexport PYTHONDONTWRITEBYTECODE

# The install is editable: Python files are read from src/, so that only the files named in CORE (and
# pyproject.toml) ask for a rebuild, which compiles what has changed. `make wheel` tests what is shipped.
SETTINGS := build-dir=build/editable
SANITIZERS := address,undefined thread
SANITIZED = build-dir=build/sanitize-$* cmake.build-type=Debug cmake.define.MERCER_SANITIZE=$* install.strip=false

.PHONY: demo test bench docs lab lint format sanitize $(SANITIZERS:%=sanitize-%) wheel build clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	@$(BIN)/mercer demo --force

test: $(VENV)/.installed $(VENV)/.dev
	@$(BIN)/pytest $(PYTEST) tests src/mercer $(ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: $(VENV)/.installed $(VENV)/.bench
	@set -e; for program in $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)); do \
		echo "== $$program"; $(BIN)/python $$program; done

# Warnings are errors. What is drawn and written on the way lies in docs/generated.
docs: $(VENV)/.installed $(VENV)/.docs lab
	@$(BIN)/sphinx-build --quiet --fail-on-warning --builder html docs build/docs $(ARGS)
	@echo "build/docs/index.html"

build: $(VENV)/.installed

# The sanitizers' run-time must be loaded before Python itself; libstdc++ too, or the first C++ exception
# aborts. PYTHONMALLOC=malloc lets them see the ends of arrays that Python allocates; their reports go past
# pytest's capture of file descriptors, which would swallow them. Races are looked for where threads meet,
# too, and not in BLAS, whose locks the thread sanitizer does not know; its own memory counts in no budget, and
# importing polars ends the program under it.
sanitize: $(SANITIZERS:%=sanitize-%)

sanitize-address,undefined: ALSO := tests/kernels/strings tests/points/sets/test_paths.py
sanitize-thread: ALSO := tests/machine/test_threads.py tests/kernels/strings tests/gram -k 'not megabytes and not tables'

$(SANITIZERS:%=sanitize-%): sanitize-%:
	@$(MAKE) -s --no-print-directory VENV=.venv-sanitize-$* SETTINGS="$(SANITIZED)" build .venv-sanitize-$*/.dev
	@echo "== $*"; module=$$(echo .venv-sanitize-$*/lib/python*/site-packages/mercer/_core.*so); \
	preload=$$(ldd $$module | awk '/lib[at]san/ {san = $$3} /libstdc/ {cxx = $$3} END {print san " " cxx}'); \
	LD_PRELOAD="$$preload" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
		TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 OPENBLAS_NUM_THREADS=1 \
		.venv-sanitize-$*/bin/python -m pytest --capture=sys tests/core $(ALSO) $(ARGS)

# One HTML file: the core compiled to WebAssembly, the catalogue of kernels, and the page around them. Exceptions do not link
# there, and nothing in it throws; vectors are those of WebAssembly.
LAB := src/mercer/lab/lab.html
LAB_SOURCES := $(wildcard lab/*.* lab/core/* lab/src/*.ts lab/src/*/*.ts)
LAB_FLAGS := -std=c++20 -O3 -s -target wasm32-wasi -msimd128 -mexec-model=reactor -fno-exceptions -fno-rtti \
	-fno-math-errno -fno-trapping-math -ffp-contract=fast -w -DMERCER_ISA=baseline -DMERCER_DENSE_ALONE -Isrc/mercer/_core

lab: $(LAB)

build/lab/core.wasm: $(VENV)/.lab $(wildcard lab/core/* src/mercer/_core/*.hpp src/mercer/_core/engine/* src/mercer/_core/machines/*)
	@mkdir -p $(@D); echo "Compiling the core to WebAssembly"
	@$(BIN)/python -m ziglang c++ $(LAB_FLAGS) -o $@ lab/core/lab.cpp

build/lab/.tools: lab/package.json
	@mkdir -p $(@D); cd lab && npm install --silent --no-fund --no-audit --no-package-lock 2>$(CURDIR)/build/lab/npm.log
	@touch $@

lab/src/catalogue.ts: $(VENV)/.installed $(VENV)/.lab lab/export.py $(wildcard src/mercer/kernels/*.py src/mercer/kernels/*/*.py src/mercer/points/formulas/*.py)
	@$(BIN)/python lab/export.py $@

$(LAB): build/lab/core.wasm build/lab/.tools lab/src/catalogue.ts $(LAB_SOURCES)
	@cd lab && node_modules/.bin/tsc -p .
	@mkdir -p $(@D); cd lab && node bundle.mjs $(CURDIR)/build/lab/core.wasm $(CURDIR)/$@
	@echo "$@: $$(wc -c <$@) bytes"

# Source archive, wheel from the archive, and the tests from the wheel, in a folder with no sources about.
wheel: $(VENV)/.dev $(LAB)
	@rm -rf dist; mkdir -p build
	@$(BIN)/python -m build --outdir dist . >build/wheel.log 2>&1 || { tail -n 40 build/wheel.log; exit 1; }
	@set -e; away=$$(mktemp -d); trap 'rm -rf "$$away"' EXIT; \
	$(PYTHON) -m venv $$away/venv; mkdir $$away/run; cp -r tests pyproject.toml $$away/run/; \
	$$away/venv/bin/python -m pip install $(PIP_FLAGS) "$$(ls $(CURDIR)/dist/*.whl)[dev]"; cd $$away/run; \
	package=$$($$away/venv/bin/python -c "import mercer; print(mercer.__path__[0])"); \
	case $$package in $$away/*) ;; *) echo "mercer was imported from $$package, not from the wheel"; exit 1;; esac; \
	$$away/venv/bin/pytest $(PYTEST) --rootdir . -c pyproject.toml tests $$package $(ARGS)

clean:
	rm -rf .venv .venv-sanitize-* build dist demo docs/generated src/mercer/lab lab/node_modules lab/src/catalogue.ts
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# Requirements come from pyproject.toml alone; these rules copy its lists to files that pip reads.
# CMake and Ninja are not assumed on the machine: build requirements like the others.
requirements = $(BIN)/python -c "import tomllib; t = tomllib.load(open('pyproject.toml', 'rb')); print(*t$(1), sep='\n')"

$(VENV)/.created:
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.builders: $(VENV)/.created pyproject.toml
	@$(call requirements,['build-system']['requires']) > $@.txt
	@$(BIN)/python -m pip install $(PIP_FLAGS) -r $@.txt cmake ninja
	@touch $@

$(VENV)/.installed: $(VENV)/.builders $(CORE)
	@echo "Installing mercer into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) $(SETTINGS:%=--config-settings=%) --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev $(VENV)/.bench $(VENV)/.docs $(VENV)/.lab: $(VENV)/.%: $(VENV)/.created pyproject.toml
	@$(call requirements,['project']['optional-dependencies']['$*']) > $@.txt
	@echo "Installing the requirements of mercer[$*] into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) -r $@.txt
	@touch $@
