# make demo · make check · make test · make test-oldest · make other-processor · make mutate · make fuzz · make bench ·
# make picture · make gallery · make docs · make linkcheck · make dist · make compiled-wheel · make release-check · make clean
PYTHON ?= $(if $(filter Windows_NT,$(OS)),python,python3)
VENV ?= .venv
ARGS ?=
DATA ?= ../shared/data
# Both packages are installed in place, so an environment is stale only when a project file changes.
PROJECTS := pyproject.toml studies/pyproject.toml
# The version that the tests install; later ones may come with a gigabyte of libraries for GPUs.
TORCH ?= torch==2.13.0

BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
EXE := $(if $(filter Windows_NT,$(OS)),.exe)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo check test test-oldest other-processor mutate fuzz bench picture gallery docs linkcheck dist compiled-wheel release-check clean

demo: $(VENV)/.demo demo/digits.parquet ## train a forest on handwritten digits and audit it
	$(BIN)/trueodds audit demo/digits.parquet --html demo/digits.html --json demo/digits.json
	@echo "The page is demo/digits.html, the numbers are demo/digits.json. The command is $(BIN)/trueodds."

demo/digits.parquet: demo/digits.py | $(VENV)/.demo
	$(BIN)/python demo/digits.py $@

# Two tests run at once on two cores: threads of the linear algebra would only wait for each other.
test test-oldest check other-processor: export OPENBLAS_NUM_THREADS = 1
test test-oldest check other-processor: export OMP_NUM_THREADS = 1

# The slow tests, such as most simulations, the quick forms of studies, and layouts of figures, run with SLOW=1 or ENGINES=1.
# So do further parameters of tests that have more than five.
SELECTED := $(if $(SLOW)$(ENGINES),,-m "not slow and not further")

# ASCII=1 runs the tests in a locale without UTF-8, like many on Windows, where a file that is opened without naming its
# encoding is an error. Processes that tests start do not print this warning, because other libraries cause it.
ASCII_LOCALE := env LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 PYTHONWARNDEFAULTENCODING=1 \
  PYTHONWARNINGS=ignore::EncodingWarning

# What fails fastest comes first; pytest's closing line comes last. ENGINES=1 tests Dask, Spark and what PyTorch needs too.
test: $(VENV)/.test $(if $(ENGINES),$(VENV)/.engines)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/lint-imports
	$(BIN)/mypy --num-workers 2
	$(if $(ASCII),$(ASCII_LOCALE)) $(BIN)/python -m pytest -n 2 $(SELECTED) $(ARGS)

# The oldest versions of what pyproject.toml names, in an environment of their own, without the linters. They call what newer
# libraries beside them deprecate.
OLDEST := .venv-oldest
OLDEST_BIN := $(OLDEST)/$(notdir $(BIN))

test-oldest: $(OLDEST)/.test ## the tests with the oldest supported versions of all dependencies
	$(OLDEST_BIN)/python -m pytest -n 2 -W ignore::DeprecationWarning $(SELECTED) $(ARGS)

$(OLDEST)/.test: $(PROJECTS)
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST_BIN)/python -m pip --disable-pip-version-check --quiet install uv
	$(OLDEST_BIN)/uv pip install --quiet --python $(OLDEST) --resolution lowest-direct --editable '.[test]'
	$(OLDEST_BIN)/uv pip install --quiet --python $(OLDEST) --no-deps --editable ./studies
	@touch $@

# The foundations and the rules of the code, for use while working.
FAST := house import_cycles prose docstrings
check: $(VENV)/.test ## lint, types, and the basic tests, in less than a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/lint-imports
	$(BIN)/mypy --num-workers 2
	$(BIN)/python -m pytest -n 2 $(SELECTED) $(patsubst %,tests/test_%.py,$(FAST)) tests/core tests/lenses tests/binning tests/api $(ARGS)

# What sums and compares floats. Plain Python needs no second run: it has no code for a processor.
NUMERICAL := core kernels data lenses binning tallies estimators resampling hypotests calibrators
ONCE := tests/kernels/test_parallel.py::test_every_kernel_is_also_plain_python

other-processor: $(VENV)/.test ## the numerical tests again, with the code that the libraries have for the oldest processor
	$(BIN)/python -m tests.other_processor $(BIN)/python -m pytest -n 2 $(addprefix tests/,$(NUMERICAL)) --deselect $(ONCE) $(ARGS)

mutate: $(VENV)/.mutation ## change MODULE, a folder of the package, in 300 places drawn by a seed; does a test notice each?
	$(BIN)/python -m tests.mutate $(MODULE) $(ARGS)

fuzz: $(VENV)/.test ## random calls and settings for a minute, drawn by a seed; ARGS="--seconds 600 --seed 7" for others
	$(BIN)/python -m tests.fuzz.calls --seconds 60 $(ARGS)

bench: $(VENV)/.demo ## speed beside the peers that are installed, start-up, an audit; ARGS="tally --rows 1000000" for more
	$(BIN)/python -m benchmarks $(ARGS)

picture: $(VENV)/.demo demo/digits.parquet ## draw the README's picture again
	$(BIN)/python demo/picture.py demo/digits.parquet docs/digits.svg

gallery: $(VENV)/.demo ## draw every diagram from the files in DATA, and the page that shows them
	$(BIN)/python demo/gallery.py $(DATA) docs

.PHONY: doors
doors: ## test the connections to other tools, each with its real library in its own environment; ARGS="mlflow sql" for some
	$(PYTHON) .ci/doors.py $(ARGS)

SPHINX = $(BIN)/sphinx-build -W --keep-going -d docs/_build/doctrees

docs: $(VENV)/.docs ## build the documentation site; every warning is an error
	$(SPHINX) -b html docs docs/_build/html $(ARGS)
	@echo "The site is docs/_build/html/index.html."

linkcheck: docs ## check links, anchors and searches within the site, and list the other links; EXTERNAL=1 follows those too
	$(BIN)/python docs/_ext/trueodds_docs/check_links.py docs/_build/html
	$(BIN)/python docs/_ext/trueodds_docs/check_search.py docs/_build/html
	$(if $(EXTERNAL),$(SPHINX) -b linkcheck docs docs/_build/linkcheck $(ARGS))

# The files in an archive have the time of the commit, so that another build of it has the same bytes.
dist compiled-wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)

dist: | $(BIN)/python$(EXE) ## the source archive and the pure wheel, in the folder dist
	$(PIP) install build twine
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

compiled-wheel: $(VENV)/.demo ## a wheel with the kernels as machine code for this platform and Python, in the folder dist
	$(PIP) install wheel
	$(BIN)/python .ci/compiled_wheel.py dist

release-check: ## rehearse a release; ARGS="--only oldest" runs one step, ARGS=--help lists them
	$(PYTHON) .ci/release_check.py $(ARGS)

$(VENV)/.demo: $(PROJECTS) | $(BIN)/python$(EXE)
	$(PIP) install --editable '.[report,files]' --editable ./studies
	@touch $@

$(VENV)/.test: $(PROJECTS) | $(BIN)/python$(EXE)
	$(PIP) install --editable '.[test]' --editable ./studies
	@touch $(VENV)/.demo $@

$(VENV)/.docs: $(PROJECTS) | $(BIN)/python$(EXE)
	$(PIP) install --editable '.[docs]' --editable ./studies
	@touch $(VENV)/.demo $@

# Dask and Spark, PyTorch, Lightning, Transformers and Keras, Playwright, two gigabytes: their tests are skipped without them.
$(VENV)/.engines: $(VENV)/.test
	$(PIP) install --editable '.[test,engines,training,browser]' '$(TORCH)'
	@touch $@

$(VENV)/.mutation: $(VENV)/.test
	$(PIP) install --editable '.[test,mutation]'
	@touch $@

# A half-made environment is removed: without pip it would fail again, with a worse message.
$(BIN)/python$(EXE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "trueodds needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo absent)." >&2; \
	  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) could not make an environment; on Debian and Ubuntu install python3-venv." >&2; exit 1; }

clean:
	rm -rf $(VENV) $(OLDEST) build dist studies/build studies/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf docs/_build docs/auto_examples docs/codes docs/reference/*/
	rm -f demo/digits.parquet demo/digits.html demo/digits.json
	find src studies tests demo benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
