# Commands for developers and for CI. Each target sets up the environments that it needs.

PYTHONS := 3.11 3.12 3.13
PYTHON := .venv/bin/python
WORKERS := 4
RUFF_PATHS := formats commands shim spans agent collector cli web tests benchmarks examples setup.py

# Environments with TensorFlow, and for tests; tools/venv does nothing if an environment is up to date.
VENVS := .venvs/tf1 .venvs/tf2 .venvs/tf313 .venvs/digits .venvs/notebook .venvs/xprof .venvs/marks
MATRIX_VENVS := .venvs/tf24 .venvs/tf210 .venvs/tf215 .venvs/tf218
CI_VENVS := $(if $(CI),.venvs/tf24 .venvs/tf215)

# Jobs and workers start faster with compiled modules, and pytest with compiled tests.
unexport PYTHONDONTWRITEBYTECODE

RUN_TESTS := $(PYTHON) -m pytest -rs --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

# Maximum number of failed tests that run again.
AGAIN_MAX := 5

PAGES := $(wildcard docs/questions/*.md)

.PHONY: help venv venvs matrix matrix-venvs demo picture pages docs test test-fast test-thorough compiled-tests format lint check types \
	types-js bench protos schemas clean $(VENVS) $(MATRIX_VENVS)

help:
	@echo "make demo     profile two unmodified training scripts, end to end"
	@echo "make test     all tests, with TensorFlow 1.15 and 2.21 (TESTS='tests/unit/cli -k advise')"
	@echo "make test-thorough   the tests that repeat others with more versions and samples"
	@echo "make test-fast   unit, house and contract tests, without TensorFlow"
	@echo "make format   format the code        make check    ruff and house rules"
	@echo "make types    mypy, strict           make bench    overhead, ingest and query against their limits"
	@echo "make types-js the types of the page's modules; it needs npx"
	@echo "make schemas  the JSON Schemas of the documents"
	@echo "make docs     the pages and man pages   make picture  the picture of the README"
	@echo "make pages    the outputs on the pages of docs/questions"
	@echo "make matrix   small jobs of every kind with six versions of TensorFlow (MATRIX='--versions 2.4 --rows fork')"

# Installs tfprof itself, editable. C code that does not compile is an error, unless the compiler or
# the headers of Python are missing.
INCLUDE = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
NEED_C = $(shell cc -E -I $(INCLUDE) -include Python.h -x c /dev/null > /dev/null 2>&1 && echo TFPROF_NEED_C=1)
INSTALL = $(NEED_C) $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable

venv:
	@tools/venv .venv "$(PYTHONS)" setuptools wheel
	@$(MAKE) --no-print-directory --silent .venv/.built

# An editable install follows changes of Python modules, but not of C files and installed commands.
.venv/.built: setup.py setup.cfg commands/isolated.py commands/starter.c commands/starter.sh \
		$(wildcard shim/*/*.c collector/*/*.[ch])
	@$(INSTALL) '.[test,lint]'
	@touch $@

.venvs/tf1:
	@tools/venv .venvs/tf1 "3.7" 'tensorflow==1.15.5' 'protobuf<3.21' || [ -z "$$CI" ]

.venvs/tf2:
	@tools/venv .venvs/tf2 "$(PYTHONS) 3.10" 'tensorflow==2.21.*' tf_keras

# The newest CPython that TensorFlow supports.
.venvs/tf313:
	@tools/venv $@ "3.13" 'tensorflow==2.21.*' tf_keras || [ -z "$$CI" ]

# The examples need scikit-learn. It is only in this environment: Keras imports it if it is
# installed, and then the import of TensorFlow takes a quarter longer.
.venvs/digits: .venvs/tf2
	@ON=.venvs/tf2 tools/venv $@ "$(PYTHONS) 3.10" scikit-learn

# The tools behind the profile page of TensorBoard, which read exports.
.venvs/xprof:
	@tools/venv $@ "$(PYTHONS)" 'xprof==2.24.*'

# What the notebook of the documentation is run with. tfprof itself comes from .venv.
.venvs/notebook:
	@tools/venv $@ "$(PYTHONS)" 'nbclient>=0.10,<1' 'ipykernel>=6,<8' 'pandas>=2.2,<4' 'polars>=1,<2'

# What marks code, beside TensorFlow's own marks and tfprof_spans; used with the packages of .venvs/tf2.
.venvs/marks:
	@tools/venv $@ "$(PYTHONS) 3.10" 'nvtx>=0.2.10,<0.3' 'opentelemetry-sdk>=1.30,<2'

.venvs/tf24:
	@tools/venv $@ "3.8" 'tensorflow-cpu==2.4.*' 'protobuf<3.21'

.venvs/tf210:
	@tools/venv $@ "3.10 3.9" 'tensorflow-cpu==2.10.*' 'numpy<2'

.venvs/tf215:
	@tools/venv $@ "3.11 3.10" 'tensorflow-cpu==2.15.*'

.venvs/tf218:
	@tools/venv $@ "3.12 3.11 3.10" 'tensorflow==2.18.*' 'tf_keras==2.18.*'

venvs: $(VENVS) $(CI_VENVS)

matrix-venvs: $(VENVS) $(MATRIX_VENVS)

demo: venv .venvs/digits
	@PATH="$(CURDIR)/.venv/bin:$$PATH" examples/demo.sh .venvs/digits/bin/python

# Installs the extra `docs`, with Sphinx and rich, into .venv.
.venv/.docs: setup.cfg | venv
	@$(INSTALL) '.[docs]'
	@touch $@

# Warnings are errors. The pages go to docs/_build/html, the man pages to docs/_build/man.
docs: venv .venv/.docs
	$(PYTHON) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(PYTHON) -m sphinx -W --keep-going -q -b man docs docs/_build/man

picture: venv .venv/.docs .venvs/digits
	@PATH="$(CURDIR)/.venv/bin:$$PATH" $(PYTHON) tools/picture .venvs/digits/bin/python

# Renews the outputs on the pages of docs/questions.
pages: venv .venvs/digits
	@PATH="$(CURDIR)/.venv/bin:$$PATH" $(PYTHON) tools/pages .venvs/digits/bin/python $(PAGES)

# All tests of a file run in the same worker, since agents under test see each other's channels in
# /proc. The unit tests come last: they are short and balance the workers. Two of four workers
# begin with the files whose tests mostly wait (tests/fakes/scheduling.py). The base folder has a
# short name, since paths of sockets have a maximum length. A few tests that fail run again, alone: a
# job may not get a processor in time while four tests run. The log shows both results.
define run-tests
@folder=$$(mktemp -d); trap 'rm -rf $$folder' EXIT; trap 'exit 130' INT TERM; status=0; \
$(RUN_TESTS) --basetemp $$folder/t -o cache_dir=$$folder/cache $(1) || status=$$?; \
if [ $$status = 1 ] && [ $$(grep -c true $$folder/cache/v/cache/lastfailed) -le $(AGAIN_MAX) ]; then \
    echo "The tests that failed run again, alone:"; status=0; \
    $(PYTHON) -m pytest -vv --last-failed --basetemp $$folder/a -o cache_dir=$$folder/cache $(1) || status=$$?; \
fi; \
exit $$status
endef

# Compiles the tests. Otherwise each worker does it by itself.
compiled-tests: venv
	@$(PYTHON) -m pytest --collect-only --quiet > /dev/null

test: venv venvs
	$(call run-tests,-m "not thorough" $(TESTS))

# The tests that `make test` leaves out (tests/fakes/thorough.py), and more random cases.
test-thorough: venv venvs
	$(call run-tests,-m thorough)
	TFPROF_TEST_ORACLE=60 $(PYTHON) -m pytest tests/integration/oracle

test-fast: venv
	$(call run-tests,-m "not tf" tests/unit tests/house tests/contract)

matrix: venv matrix-venvs
	@PYTHONPATH=tests $(PYTHON) -m matrix $(MATRIX)

format: venv
	$(PYTHON) -m ruff format $(RUFF_PATHS)
	$(PYTHON) -m ruff check --fix $(RUFF_PATHS)

lint: venv
	$(PYTHON) -m ruff format --check $(RUFF_PATHS)
	$(PYTHON) -m ruff check $(RUFF_PATHS)

check: lint
	$(PYTHON) -m pytest tests/house

# mypy cannot follow an editable install, so it checks a copy.
types: venv
	@$(PYTHON) setup.py --quiet build_py --build-lib build/types
	MYPYPATH=build/types $(PYTHON) -m mypy \
		-p tfprof.formats -p tfprof.commands -p tfprof.shim -p tfprof.agent -p tfprof.collector -p tfprof.cli -p tfprof.web
	MYPYPATH=build/types:tests $(PYTHON) -m mypy tests/conftest.py tests/house tests/fakes tests/unit/shim tests/unit/agent

# The types in comments of the page's modules. Nothing else needs TypeScript.
TSC := npx --yes --package typescript@5 tsc

types-js:
	@$(TSC) --version
	@! $(TSC) --project web/tsconfig.json | grep -v -e '^web/static/vendor/' -e '^ '

bench: venv venvs
	@failed=; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(PYTHON) $$script || failed="$$failed $$script"; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

protos: venv
	tools/protos

# Writes the JSON Schemas of the documents that --json prints.
schemas: venv
	$(PYTHON) tools/schemas

clean:
	rm -rf build .venv .venvs *.egg-info
