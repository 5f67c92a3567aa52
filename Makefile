# make demo   installs into .venv, runs examples/quickstart.ipynb, and says where the results are
# make test   lint, types, the front end's tests and all Python tests
# make help   the other targets

PYTHON ?= python3
VENV ?= .venv
# Workers of pytest; each test file stays in one of them.
JOBS ?= 2
DEMO_DIR ?= build/demo
LAB_DIR ?= examples

BIN := $(VENV)/bin
# Another environment that is active in the shell is not the one that runs here.
unexport VIRTUAL_ENV
STATIC := src/tfprof_widgets/static/widget.js
JS_SOURCES := $(shell find js/src -type f) js/build.mjs js/package.json js/package-lock.json
BROWSER := $(firstword $(shell command -v chromium chromium-browser google-chrome 2>/dev/null))

.PHONY: help examples demo test lint format js-test py-test versions-test lab docs docs-images bench binder-check build chromium clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /make \1  /p' Makefile

demo: $(VENV)/.installed-demo  ## install, run the quickstart notebook, leave it and its HTML in build/demo
	@$(MAKE) --silent --no-print-directory $(STATIC)
	$(BIN)/python examples/run_demo.py --into $(DEMO_DIR)

test: lint js-test versions-test py-test  ## everything that CI checks

lint: $(VENV)/.installed-dev js/node_modules/.package-lock.json docs  ## ruff, mypy, tsc, and the documentation's links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd js && npm run --silent typecheck

docs: $(VENV)/.installed-dev  ## the documentation as a site in build/docs; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The documentation: build/docs/index.html ($(BIN)/mkdocs serve shows it with a search)"

docs-images: $(VENV)/.installed-dev chromium  ## take the documentation's pictures anew
	@$(MAKE) --silent --no-print-directory $(STATIC)
	$(BIN)/python docs/screenshots.py

lab: $(VENV)/.installed-dev js/node_modules/.package-lock.json  ## JupyterLab on the examples, where changes to js/src show at once
	cd js && npm run --silent build
	@(cd js && exec node build.mjs --watch) & watcher=$$!; trap 'kill $$watcher' EXIT; \
	  ANYWIDGET_HMR=1 $(BIN)/jupyter lab --ServerApp.root_dir=$(abspath $(LAB_DIR)) $(LAB_OPTIONS)

format: $(VENV)/.installed-dev  ## let ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

js-test: js/node_modules/.package-lock.json  ## the front end's unit tests
	cd js && npm test --silent

# The newest is in $(VENV) itself. `python tests/versions.py 2.16 2.18` takes others.
versions-test: $(VENV)/.installed-dev  ## capturing with the oldest TensorFlow (skipped, with a word, where that cannot be installed)
	@$(MAKE) --silent --no-print-directory $(STATIC)
	$(BIN)/python tests/versions.py

# The last thing to print is pytest's own summary.
py-test: $(VENV)/.installed-dev chromium  ## the Python tests: unit, oracle, notebook and browser
	@$(MAKE) --silent --no-print-directory $(STATIC)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

examples: $(VENV)/.installed-dev  ## run the example notebooks and keep their outputs
	@$(MAKE) --silent --no-print-directory $(STATIC)
	$(BIN)/python examples/run_examples.py

bench: $(VENV)/.installed-dev chromium  ## measure against XProf and the bare decode, into docs/performance.md (BIG=1: 10 M events too)
	@$(MAKE) --silent --no-print-directory $(STATIC)
	$(BIN)/python benchmarks/bench.py $(if $(BIG),--big)

binder-check:  ## build Binder's environment afresh, as repo2docker does, and run the quickstart in it (minutes)
	PYTHON=$(PYTHON) binder/check.sh

build: $(VENV)/.installed-dev  ## an sdist, and the wheel made from it, in dist/
	$(BIN)/python -m build

clean:  ## remove what was built (not the virtual environment)
	rm -rf build dist js/node_modules src/tfprof_widgets/static/*.js .pytest_cache .mypy_cache .ruff_cache

# --- what the targets need -------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or later is needed; name one with: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "No virtual environment could be made. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

# An editable install: it builds the front end too, with the system's Node or one from PyPI.
$(VENV)/.installed-demo: pyproject.toml hatch_build.py | $(BIN)/python
	@echo "Installing tfprof_widgets with TensorFlow into $(VENV) (a few minutes the first time)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml hatch_build.py | $(BIN)/python
	@echo "Installing tfprof_widgets with all that its tests need into $(VENV) (a few minutes the first time)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.installed-demo

js/node_modules/.package-lock.json: js/package-lock.json
	@command -v npm >/dev/null || { echo "Node 20 or later is needed (https://nodejs.org)"; exit 1; }
	cd js && npm ci --no-audit --no-fund
	@touch $@

# After the first install this keeps the bundles as new as their sources. (It is made by a second
# make: the first has looked at the file's age before the install wrote it.)
$(STATIC): $(JS_SOURCES)
	@$(MAKE) --no-print-directory js/node_modules/.package-lock.json
	cd js && npm run --silent build
	@touch $@

chromium:
ifeq ($(BROWSER),)
	@echo "Chromium is missing: installing Debian's (the browser tests need it)"
	@if [ "$$(id -u)" = 0 ]; then run=""; elif command -v sudo >/dev/null; then run="sudo"; \
	  else echo "Neither root nor sudo: ask an administrator for 'apt-get install chromium'"; exit 1; fi; \
	  $$run apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$run apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null
endif
