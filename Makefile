# Everything a newcomer runs. Each target sets itself up; Python 3.11+ and make are all it needs.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# pip reads this for build requirements too, so that nothing unpinned is ever installed.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick faults fuzz lint types bench bench-quick docs wheel screenshot clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "targetdp needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --editable ".[dev]"
	@touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(RUN) -m pip install --quiet --editable ".[bench]"
	@touch $@

# Anonymeter needs an older numpy than everyone else, so it lives, for benchmarks only, in a place of its own.
$(VENV)-anonymeter/.ready: tests/attacks/anonymeter/requirements.txt
	$(PYTHON) -m venv $(VENV)-anonymeter
	PIP_CONSTRAINT= $(VENV)-anonymeter/bin/python -m pip install --quiet --requirement $<
	@touch $@

# So do OpenDP and diffprivlib.
$(VENV)-peers/.ready: benchmarks/peers.txt
	$(PYTHON) -m venv $(VENV)-peers
	PIP_CONSTRAINT= $(VENV)-peers/bin/python -m pip install --quiet --requirement $<
	@touch $@

demo: $(VENV)/.ready  ## the whole tour on invented people; what it makes is in demo/
	@$(RUN) -m examples.tour demo

test: $(VENV)/.ready lint types  ## lint, type-check and run every test
	$(RUN) -m pytest -q -n auto

# What the inner loop can do without: the browser, Spark, kills, whole sweeps and the slowest simulations.
SLOW := report/browser release/engine/test_spark.py end_to_end faults fuzz paper examples docs/test_site.py \
  docs/test_choosing_B.py test_wheel.py tradeoff/test_killed_sweeps.py tradeoff/test_workers.py \
  accounting/test_composition.py targeting/test_expectation.py targeting/test_allocate.py \
  privacy/test_audit_grid.py cli/test_learn_command.py report/test_figures.py

test-quick: $(VENV)/.ready  ## most tests in a minute or two, for the inner loop; no lint, no types
	$(RUN) -m pytest -q -n auto $(foreach path,$(SLOW),--ignore=tests/$(path))

FAULTS := tests/faults tests/end_to_end/test_killed.py tests/end_to_end/test_killed_desks.py \
  tests/end_to_end/test_full_disk.py tests/end_to_end/test_races.py tests/end_to_end/test_in_stores.py \
  tests/end_to_end/test_from_databases.py tests/tradeoff/test_killed_sweeps.py \
  tests/release/ledger/test_chain.py \
  tests/release/engine/test_spark.py::test_a_worker_that_is_killed

faults: $(VENV)/.ready  ## killed, full, damaged, crowded: every fault, in ten minutes (writes docs/reliability.md)
	PYTHONPATH=tests TARGETDP_FAULTS=whole $(RUN) -m pytest -q -n auto -p support.faults_tally $(FAULTS)

$(VENV)/.fuzz: $(VENV)/.ready
	$(RUN) -m pip install --quiet --editable ".[fuzz]"
	@touch $@

fuzz: $(VENV)/.fuzz  ## everything that reads a file meets a million odd ones, some minutes
	TARGETDP_REQUIRE_ATHERIS=1 TARGETDP_FUZZ_SECONDS=60 TARGETDP_FUZZ=1000 $(RUN) -m pytest -q -n auto tests/fuzz

lint: $(VENV)/.ready  ## ruff: style and format
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(VENV)/.ready  ## mypy, strict
	$(RUN) -m mypy

bench: $(VENV)/.bench $(VENV)-anonymeter/.ready $(VENV)-peers/.ready  ## measure the ratios that the documentation quotes (writes docs/benchmarks.md)
	$(RUN) -m benchmarks.run --markdown docs/benchmarks.md

bench-quick: $(VENV)/.bench  ## the same on small tables, under two minutes; writes nothing
	$(RUN) -m benchmarks.run --quick

$(VENV)/.docs: $(VENV)/.ready
	$(RUN) -m pip install --quiet --editable ".[docs]"
	@touch $@

docs: $(VENV)/.docs  ## build the documentation in site/, and check that it agrees with the code
	rm -rf site
	$(RUN) -m zensical build --clean --strict
	TARGETDP_REQUIRE_SITE=1 $(RUN) -m pytest -q -n auto tests/docs

wheel: $(VENV)/.ready  ## build the wheel in dist/, install it into an empty environment and try it there
	rm -rf dist
	$(RUN) -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(RUN) scripts/try_wheel.py dist/targetdp-*.whl

screenshot: $(VENV)/.ready  ## the README's picture of the decision page (needs Chromium)
	rm -rf build/screenshot
	$(VENV)/bin/targetdp tradeoff togo --quick --simulations 25 --out build/screenshot
	$(RUN) scripts/screenshot.py build/screenshot docs/images/page.png

clean:  ## remove the environment and all caches
	rm -rf $(VENV) $(VENV)-anonymeter $(VENV)-peers .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache build dist site demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
