# make demo   set up .venv if needed, synthesize an All-Reduce and print what came out
# make test   the same set-up, then the whole test suite
# make lint   ruff and mypy
# make bench  figures beside the published ones
# make bench-scale  time and memory up to a million NPUs; writes docs/scaling.md (a quarter of an hour)
# make docs   the pages as HTML, into docs/_build
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/*.h cpp/*.cpp cpp/bindings/*)

.PHONY: demo test lint bench bench-scale docs clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/weft synth mesh:8x8 all-reduce --size 1GiB --bandwidth 50GiB/s --latency 0.5us

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks

bench-scale: $(VENV)/.installed
	$(BIN)/python -m benchmarks scale

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

clean:
	rm -rf $(VENV) build dist docs/_build
