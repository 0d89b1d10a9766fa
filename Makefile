# make demo   set up .venv if needed, synthesize an All-Reduce and print what came out
# make test   the same set-up, then the whole test suite
# make lint   ruff and mypy
# make bench  figures beside the published ones
# make bench-scale  time and memory up to a million NPUs; writes docs/scaling.md (a quarter of an hour)
# make docs   the pages as HTML, into docs/_build
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find cpp -name '*.h' -o -name '*.cpp')

.PHONY: demo test lint bench bench-scale docs clean

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

lint: $(VENV)/.core $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.core $(VENV)/.dev
	$(BIN)/python -m benchmarks

bench-scale: $(VENV)/.core $(VENV)/.dev
	$(BIN)/python -m benchmarks scale

docs: $(VENV)/.core $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

clean:
	rm -rf $(VENV) build dist docs/_build
