# Everything a contributor needs. `make demo` and `make test` set themselves up on a fresh machine:
# they need Python 3.11+ and, for speed, a C++ compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE_SOURCES := CMakeLists.txt pyproject.toml $(wildcard native/*.cpp native/*.h)
CXX_FILES := $(wildcard native/*.cpp native/*.h native/tests/*.cpp native/tests/*.h)
SANITIZED := build/sanitized

.PHONY: help setup demo docs test test-python test-native lint format bench clean
help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/installed  ## create .venv and install tnesi into it, with all that development needs

$(VENV)/installed: $(NATIVE_SOURCES)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tnesi needs Python 3.11 or later")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: setup  ## learn the 8 x 8 digits of scikit-learn from few labels, with pictures and a report in demo/
	mkdir -p demo
	$(BIN)/tnesi fit digits --labels-per-class 1 -o demo/digits.tnesi
	$(BIN)/tnesi show demo/digits.tnesi -o demo/fields.png
	$(BIN)/tnesi reproduce digits-table -o demo
	@echo "Look at demo/fields.png (what was learned from one label per class) and demo/digits-table/report.html."

docs: setup  ## write the references of the command line and the API anew
	$(BIN)/python docs/generate.py

test: test-native test-python  ## run all tests

test-python: setup
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

test-native:  ## the kernels alone, with address and undefined-behaviour sanitizers
	@if command -v cmake >/dev/null && command -v c++ >/dev/null; then \
	  cmake -S . -B $(SANITIZED) -DTNESI_NATIVE_TESTS=ON -DTNESI_SANITIZE=address,undefined >/dev/null && \
	  cmake --build $(SANITIZED) -j2 >/dev/null && (cd $(SANITIZED) && ctest --verbose); \
	elif [ -n "$$CI" ]; then echo "CI needs cmake and a C++ compiler" >&2; exit 1; \
	else echo "no cmake or no C++ compiler: the native tests are left out"; fi

lint: setup  ## check style, types and layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

format: setup  ## bring all sources into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

bench: setup  ## measure speed, memory and accuracy on MNIST
	$(BIN)/python benchmarks/run.py

clean:  ## remove what was built
	rm -rf $(VENV) build demo
