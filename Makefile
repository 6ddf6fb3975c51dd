# The same few commands for a person and for CI. `make demo` and `make test` set up all that they need.

PYTHONS := 3.11 3.12 3.13
PYTHON := .venv/bin/python
RUFF_PATHS := shim agent collector tests benchmarks examples setup.py

.PHONY: help venv venvs demo test format check types bench protos clean

help:
	@echo "make demo     profile two unmodified training scripts, end to end"
	@echo "make test     all tests, with every TensorFlow"
	@echo "make format   format the code        make check    ruff and house rules"
	@echo "make types    mypy, strict           make bench    overhead, ingest and query against their limits"

venv:
	@tools/venv .venv "$(PYTHONS)" setuptools wheel --editable '.[test,lint]'
	@$(MAKE) --no-print-directory --silent .venv/.built

# An editable install follows the Python files by itself, compiled ones and commands it does not.
.venv/.built: setup.py setup.cfg shim/isolated.py $(wildcard commands/*) $(wildcard collector/*/*.[ch])
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.venvs/tf1:
	@tools/venv .venvs/tf1 "3.7" 'tensorflow==1.15.5' 'protobuf<3.21' || [ -z "$$CI" ]

.venvs/tf2:
	@tools/venv .venvs/tf2 "$(PYTHONS) 3.10" 'tensorflow==2.21.*' tf_keras scikit-learn

venvs: .venvs/tf1 .venvs/tf2

demo: venv .venvs/tf2
	@PATH="$(CURDIR)/.venv/bin:$$PATH" examples/demo.sh .venvs/tf2/bin/python

test: venv venvs
	$(PYTHON) -m pytest -rs $(TESTS)

format: venv
	$(PYTHON) -m ruff format $(RUFF_PATHS)
	$(PYTHON) -m ruff check --fix $(RUFF_PATHS)

check: venv
	$(PYTHON) -m ruff format --check $(RUFF_PATHS)
	$(PYTHON) -m ruff check $(RUFF_PATHS)
	$(PYTHON) -m pytest tests/house

# mypy cannot see through an editable install: it gets a copy, made anew lest modules be in it that are no more.
types: venv
	@rm -rf build/types build/lib.*
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --target build/types .
	MYPYPATH=build/types $(PYTHON) -m mypy -p tfprof.shim -p tfprof.agent -p tfprof.collector
	MYPYPATH=build/types:tests $(PYTHON) -m mypy tests/conftest.py tests/house tests/fakes tests/unit/shim tests/unit/agent

bench: venv venvs
	@for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(PYTHON) $$script || exit 1; done

protos: venv
	tools/protos

clean:
	rm -rf build .venv .venvs *.egg-info
