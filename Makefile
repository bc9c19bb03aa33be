# Everything happens in .venv, made on first use. Only Python 3.11 or newer and make are needed.
PYTHON ?= python3
BIN := .venv/bin
# Extra options for pytest, as in: make test ARGS="-k oracle"
ARGS ?=

.PHONY: demo test slow lint docs outputs clean

# Estimates on the screen; demo/report.html and demo/raf_mek.png beside them.
demo: .venv/ready
	$(BIN)/python examples/raf_mek.py demo

test: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "not slow" $(ARGS)

slow: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -m slow $(ARGS)

# The documentation, into build/docs: open build/docs/index.html. Warnings are errors.
docs: .venv/ready
	$(BIN)/sphinx-build -W --keep-going -n -q -b html -d build/doctrees docs build/docs

# What commands of the documentation print, recorded anew; takes minutes.
outputs: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python docs/record.py

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# torch first and pinned: an unpinned one may bring gigabytes of CUDA along.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "deminat needs Python 3.11 or newer: make PYTHON=python3.11")'
	@echo "installing into .venv, a minute or two ..."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@

clean:
	rm -rf .venv demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
