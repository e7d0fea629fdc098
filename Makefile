# plainformer: `make` builds the course, `make test` checks it, `make help` lists the rest.
# Everything here is a short call of a Python command; README.md gives them for systems without make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := book,test,triton,cluster
comma := ,
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))
PORT ?= 8000
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := course
.PHONY: course install learner assets release book class serve lab check test test-fast lint \
        audit bench chromium postgres clean help

course: book class  ## build everything: environment, data, book, sample class (the default)
	@echo
	@echo "The book:        _build/html/index.html   (or: make serve, then http://localhost:$(PORT))"
	@echo "The notebooks:   chapters/                (make lab opens them)"

install: $(STAMP)  ## create .venv with the pinned dependencies

$(STAMP): pyproject.toml requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is not installed; install Python 3.11 or newer, or say make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: Python 3.11 or newer is needed, $$($(PYTHON) --version) was found; say make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import shutil, sys; sys.exit(shutil.disk_usage(".").free < 6e9)' || { echo "make: at least 6 GB of free disk are needed here (the environment takes about 3); free some, or move the checkout"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "make: python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "Installing the pinned dependencies into $(VENV) (two minutes or so)"
	@$(BIN)/python -m pip install --disable-pip-version-check -c requirements.lock -e ".$(if $(EXTRAS),[$(EXTRAS)])"
	@touch $@

learner:  ## the small environment: enough for the notebooks, no book, no tests
	@$(MAKE) --no-print-directory install EXTRAS=

assets: install  ## fetch and verify the data that the chapters use
	@plainformer assets

release: install  ## rebuild chapters/ from solutions/
	@python -m autograde release

book: assets  ## build the site into _build/html
	@python _ext/build_book.py --strict

class: install  ## grade the sample class into _build/class
	@python -m autograde grade --sample

serve: book  ## serve the site on PORT (8000)
	@echo "http://localhost:$(PORT)  (stop with Ctrl-C)"
	@python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

$(BIN)/jupyter:
	@$(MAKE) --no-print-directory learner

lab: $(BIN)/jupyter  ## open JupyterLab on the notebooks (the small environment will do)
	@plainformer assets
	@jupyter lab --notebook-dir=chapters $(if $(filter 0,$(shell id -u)),--allow-root)

check: $(BIN)/jupyter  ## check your notebook: make check CH=02
	@test -n "$(CH)" || { echo "make: say which chapter, for example make check CH=02"; exit 2; }
	@python -m autograde check $(CH); test $$? -ne 2  # something to mend is no error of make's

test: assets chromium postgres lint  ## run every test, and say where the time went
	@python -m pytest

test-fast: assets  ## run the tests that the uncommitted change touches
	@python tests/touched.py | xargs python -m pytest

audit: install  ## grade all known right and wrong answers, show the table
	@python -m autograde audit

lint: install  ## ruff check and format
	@ruff check . && ruff format --check .

bench: install  ## side-by-side measurements; prints ratios
	@for file in benchmarks/*.py; do echo "== $$file"; python $$file || exit 1; done

chromium:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || test -n "$$CHROMIUM" || \
	{ if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing chromium for the page tests"; apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	  else echo "make: the page tests need Chromium; install it (Debian: apt-get install chromium) or set CHROMIUM=/path/to/chrome"; exit 1; fi; }

postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	{ if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing PostgreSQL for the gradebook tests"; apt-get update -qq && apt-get install -y -qq postgresql >/dev/null; \
	  else echo "make: without PostgreSQL the tests of gradebooks in it are skipped (Debian: apt-get install postgresql)"; fi; }

clean:  ## remove what was built (the data cache outlives it)
	rm -rf _build build *.egg-info lib/*.egg-info .pytest_cache .ruff_cache

help:  ## this list
	@grep -E '^[a-z-]+:.*  ##' $(MAKEFILE_LIST) | sed -E 's/:.*  ##/\t/' | expand -t 14
