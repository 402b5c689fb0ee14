# Development tasks. Each target sets up .venv first, which needs Python 3.11+ and, for speed, a C++ compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE_SOURCES := CMakeLists.txt pyproject.toml $(wildcard native/*.cpp native/*.h)
CXX_FILES := $(wildcard native/*.cpp native/*.h native/tests/*.cpp native/tests/*.h)
CORES := $(shell nproc 2>/dev/null || echo 1)
# one more worker than cores, since tests of the page and of clusters mostly wait
WORKERS ?= $(shell echo $$(( $(CORES) + 1 )))
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal
# without bytecode, each test process would compile all modules
unexport PYTHONDONTWRITEBYTECODE
PRELOADED = $(shell c++ -print-file-name=libasan.so) $(shell c++ -print-file-name=libubsan.so)

.PHONY: help setup demo docs test test-python coverage test-quick test-random test-everywhere test-native test-arm64 test-sanitized lint \
        format wheel test-wheel test-sdist test-oldest fuzz bench clean
help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(VENV)/installed  ## create .venv and install tnesi with its development dependencies

$(VENV)/installed: $(NATIVE_SOURCES)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tnesi needs Python 3.11 or later")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: setup  ## compare tnesi with scikit-learn on 8 x 8 digits with few labels: a table, and a plot in demo/
	$(BIN)/tnesi demo -o demo/comparison.png

docs: $(VENV)/installed-docs  ## build the documentation site into site/, and docs/cli.md from the help texts
	$(BIN)/python docs/command_line.py
	rm -rf docs/generated/api
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --doctree-dir build/docs docs site
	@echo "open site/index.html"

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/uv pip install --quiet --python $(BIN)/python --requirement pyproject.toml --extra docs
	touch $@

test: test-native test-python  ## run all tests

test-python: setup
	$(PYTEST)

# what other processes run (studio, clusters) does not count
coverage: setup  ## line and branch coverage of the suite: a table of uncovered lines, and pages in build/coverage/html; TESTS=tests/data selects
	mkdir -p build/coverage
	$(PYTEST) --cov --cov-report=term-missing:skip-covered --cov-report=html:build/coverage/html $(TESTS)

# its tests do not wait; importing the two plugins takes seconds and only skipped tests need them
test-quick: WORKERS = $(CORES)
test-quick: setup  ## run the tests within a minute, without slow ones and those that start other programs
	$(PYTEST) -m "not slow" -p no:schemathesis -p no:zarr

test-random: setup  ## property tests with other seeds and ten times the examples; SEED=... repeats a run
	@seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; echo "seed $$seed: repeat with SEED=$$seed"; \
	TNESI_EXAMPLES=random $(PYTEST) -m hypothesis --hypothesis-seed="$$seed"

test-everywhere: setup  ## the suite in many configurations; ONLY="numpy avx2" selects some
	$(BIN)/python tests/everywhere.py $(ONLY)

test-native: build/sanitized-address,undefined.tested build/sanitized-thread.tested  ## the kernels alone, with sanitizers

build/sanitized-%.tested: $(NATIVE_SOURCES) $(CXX_FILES)
	@if command -v cmake >/dev/null && command -v c++ >/dev/null; then \
	  cmake -S . -B build/sanitized-$* -DTNESI_NATIVE_TESTS=ON -DTNESI_SANITIZE=$* >/dev/null && \
	  cmake --build build/sanitized-$* -j2 >/dev/null && \
	  (cd build/sanitized-$* && ctest -j2 --output-on-failure --timeout 600) && touch $@; \
	elif [ -n "$$CI" ]; then echo "CI needs cmake and a C++ compiler" >&2; exit 1; \
	else echo "no cmake or no C++ compiler: the native tests are skipped"; fi

# by zig's compiler and an emulator (Debian: apt install qemu-user-static)
test-arm64: setup  ## the native tests, compiled for arm64 and emulated
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "ziglang==0.17.*"
	mkdir -p build/arm64
	printf '#!/bin/sh\nexec "%s" -m ziglang c++ -target aarch64-linux-musl "$$@"\n' "$(CURDIR)/$(BIN)/python" >build/arm64/zig-c++
	chmod +x build/arm64/zig-c++
	cmake -S . -B build/arm64/native -DTNESI_NATIVE_TESTS=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_CXX_COMPILER=$(CURDIR)/build/arm64/zig-c++ -DCMAKE_EXE_LINKER_FLAGS=-static \
	  -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64-static >/dev/null
	cmake --build build/arm64/native -j$(CORES) >/dev/null
	cd build/arm64/native && ctest --output-on-failure --timeout 3600

test-sanitized: setup  ## the tests of the kernels through Python, with address and undefined-behavior sanitizers
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/sanitized-module \
	  --config-settings build-dir=build/sanitized-build --config-settings cmake.define.TNESI_SANITIZE=address,undefined .
	LD_PRELOAD="$(PRELOADED)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TNESI_KERNELS=native \
	  $(BIN)/python tests/sanitized.py build/sanitized-module -n0 tests/kernels

lint: setup  ## check style, types and layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

format: setup  ## format all sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

wheel: setup  ## build the source distribution and the wheels for Linux twice, into dist/; both must be equal
	$(BIN)/python release/wheels.py --twice

test-wheel:  ## install the wheels in dist/ into empty environments without a compiler and run the demo
	$(PYTEST) -o pythonpath=release release -k "not source_distribution"

test-oldest: setup  ## run the quick suite with the oldest supported versions of all dependencies
	test -x build/oldest/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python build/oldest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --extra all --extra frames pyproject.toml -o build/oldest.txt
	$(BIN)/uv pip install --quiet --python build/oldest --requirement build/oldest.txt
	$(BIN)/uv pip install --quiet --python build/oldest --constraint build/oldest.txt --editable ".[test]"
	CI=$(CI) build/oldest/bin/python -m pytest --numprocesses $(CORES) --dist worksteal -m "not slow" -p no:schemathesis -p no:zarr

test-sdist:  ## run the quick suite from the tarball in dist/, in an environment of its own
	$(PYTEST) -n0 -o pythonpath=release release -k source_distribution

SECONDS ?= 600
fuzz: setup  ## coverage-guided fuzzing of all file readers, ten minutes together; SECONDS=60 changes that
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "atheris>=2.3"
	$(BIN)/python fuzz/fuzz.py --seconds $(SECONDS)

bench: setup  ## measure speed, memory and accuracy on MNIST
	$(BIN)/python benchmarks/run.py

clean:  ## remove build products
	rm -rf $(VENV) build demo dist docs/generated site
