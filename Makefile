# make demo   set up .venv if needed, synthesize an All-Reduce and print what came out
# make test   the same set-up, then the whole test suite
# make test-runtime  every collective, type, operation, count and number of ranks on processes: hours
# make test-cpp  the kernels' own tests, which need no Python
# make sanitize  the same under the address, undefined-behaviour and thread sanitizers
# make format ruff and clang-format over everything
# make lint   ruff, clang-format, mypy, who imports whom, and whether the stub is that of the core
# make stub   the types of the core, after a change of its bindings
# make bench  figures beside the published ones
# make bench-scale  time and memory up to a million NPUs; writes docs/scaling.md (a quarter of an hour)
# make docs   the pages as HTML, into docs/_build
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP := $(shell find cpp -name '*.h' -o -name '*.cpp')
SOURCES := pyproject.toml CMakeLists.txt $(filter-out cpp/tests/%,$(CPP))
CMAKE := $(shell command -v cmake || echo $(BIN)/cmake)

.PHONY: demo test test-runtime test-cpp sanitize format lint stub bench bench-scale docs clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# What runs Weft, what tests it, what makes its pages: each is installed once, when it is needed.
$(VENV)/.core: $(SOURCES) | $(BIN)/python
	@$(BIN)/python tools/install.py core
	@touch $@

$(VENV)/.dev $(VENV)/.docs: $(VENV)/.%: pyproject.toml | $(VENV)/.core
	@$(BIN)/python tools/install.py $*
	@touch $@

demo: $(VENV)/.core
	$(BIN)/weft synth mesh:8x8 all-reduce --size 1GiB --bandwidth 50GiB/s --latency 0.5us

test: $(VENV)/.core $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal

test-runtime: $(VENV)/.core $(VENV)/.dev
	WEFT_WHOLE_PRODUCT=1 $(BIN)/python -m pytest -n 0 tests/runtime --examples 50

# The kernels and their tests in a build folder of their own, with the sanitizers that it is named after.
define test_cpp
	$(CMAKE) -S . -B build/cpp-$(1) -DWEFT_CPP_TESTS=ON -DWEFT_SANITIZE=$(2)
	$(CMAKE) --build build/cpp-$(1) --parallel $$(nproc)
	build/cpp-$(1)/weft_tests
endef

test-cpp:
	$(call test_cpp,tests,)

comma := ,
sanitize:
	$(call test_cpp,address,address$(comma)undefined)
	$(call test_cpp,thread,thread)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

STUBGEN := $(BIN)/python -m nanobind.stubgen --quiet --module weft._core --output-file
STUB := src/weft/_core.pyi

stub: $(VENV)/.core $(VENV)/.dev
	$(STUBGEN) $(STUB)

lint: $(VENV)/.core $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(STUBGEN) build/_core.pyi
	diff build/_core.pyi $(STUB) || { echo "$(STUB) is out of date: run make stub"; exit 1; }
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.core $(VENV)/.dev
	$(BIN)/python -m papers bench

bench-scale: $(VENV)/.core $(VENV)/.dev
	$(BIN)/python -m papers scale

docs: $(VENV)/.core $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

clean:
	rm -rf $(VENV) build dist docs/_build
