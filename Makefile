# Each target prepares .venv by itself, the first time or when the pins have changed; see tools/environment.py. What
# only the tests need (requirements-cluster.txt, requirements-dev.txt) is added when they first run.
#   PYTHON=python3.12            the interpreter to make .venv with
#   WARPLAB_REQUIREMENTS=...     the pinned set, small, cpu or gpu; otherwise chosen by labs and NVIDIA's driver
#   WARPLAB_BACKEND=simulator|gpu
#   LAB_ARGS="--no-browser"      more arguments for jupyter lab, and for digits
#   TEST_ARGS="-k doctor"        more arguments for pytest; WORKERS="-n 8" on more cores
#   LABS="04 05"                 the labs for bench, record, compare-ncu and notebooks; all, if not given. For lab: those
#                                whose packages are installed; without a GPU 00 to 06, 10 and 13, if not given
#   BENCH_ARGS="--only KEY"      more arguments for bench and record: measure one key of one lab

SHELL := /bin/sh
BIN := .venv/bin
# The first Python that runs at all; tools/bootstrap.py finds one that fits. $(SETUP) cluster dev: with these layers.
SETUP = set_up() { for python in $${PYTHON:-python3} python3.13 python3.12 python3.11 python3.14 python; do \
		if $$python -c "" 2>/dev/null; then exec $$python tools/bootstrap.py "$$@"; fi; \
	done; \
	echo "error: no Python found. Warp Lab needs Python 3.11, 3.12, 3.13 or 3.14." \
		"On Debian or Ubuntu: sudo apt install python3 python3-venv" >&2; exit 1; }; set_up
# From the default index alone: the pins must not depend on wheels that lie on one machine.
PINS = UV_INDEX= UV_FIND_LINKS= $(BIN)/python -m tools.run_uv pip compile warpcourse/pyproject.toml --quiet \
	--universal --fork-strategy fewest --python-version 3.11 --no-emit-package warplab --no-emit-package warpcourse \
	--custom-compile-command "make pins" $(PINS_ARGS)
LABS ?=
# Three workers on two cores, since some tests wait for processes; the long tests at the end are shared out.
WORKERS ?= -n 3 --dist worksteal

# Tests start Python some hundred times: its compiled files are kept, also where the environment says not to.
PYTEST = PYTHONDONTWRITEBYTECODE= WARPLAB_BACKEND=simulator $(BIN)/python -m pytest
# In three stages, whose workers stay small: what needs TensorFlow, 0.4 GB in a process; labs and lessons; all else.
# $(1): the target, $(2): what else marks say, $(3): more arguments. With TEST_ARGS all that they choose runs at once.
ifeq ($(TEST_ARGS),)
LESSONS = tests/labs tests/test_notebooks.py
STAGE = $(PYTEST) $(WORKERS) --target=$(1) --stage=$(4)/3 -m "$(5) and $(2)" $(3) $(6) || failed=$$?
STAGES = failed=0; \
	$(call STAGE,$(1),$(2),$(3),1,tensorflow,$$(grep -rl --include="test_*.py" mark.tensorflow tests)); \
	$(call STAGE,$(1),$(2),$(3),2,not tensorflow,$(LESSONS)); \
	$(call STAGE,$(1),$(2),$(3),3,not tensorflow,$(LESSONS:%=--ignore=%)); exit $$failed
else
STAGES = $(PYTEST) $(WORKERS) --target=$(1) -m "$(2)" $(3) $(TEST_ARGS)
endif

.PHONY: help lab digits test test-changed test-all check test-gpu bench record compare-ncu evidence exercises notebooks pages book colab new-lab doctor pins setup setup-cluster setup-dev setup-book clean
.DEFAULT_GOAL := help

help: ## show this list
	@echo "Warp Lab. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-24s %s\n", $$1, $$2 }'

lab: ## open JupyterLab on your own copy of the lessons, in mine/ (LABS=07: that lab, with what it needs; LABS=all)
	@$(SETUP) lab $(LABS)
	$(BIN)/python -m warplab lab $(LAB_ARGS)

digits: setup ## open the page of lab 12: train, look inside and deploy a network
	$(BIN)/python -m warplab digits $(LAB_ARGS)

test: check ## lint, types, imports, and of the tests that need no GPU what fits ten minutes on two cores
	$(call STAGES,test,not gpu and not thorough)

test-changed: setup-dev ## the tests that a change touches: make test-changed SINCE=origin/main BUDGET=1800 (seconds)
	@tests=$$($(BIN)/python -m tests.support.changed_tests --since "$(SINCE)" --seconds $(or $(BUDGET),inf)) || exit $$?; \
	test -z "$$tests" || $(PYTEST) $(WORKERS) --target=test-changed -m "not gpu" $(TEST_ARGS) $$tests

test-all: export WARPLAB_VERDICTS = off
test-all: check ## the same with all tests that need no GPU; records what each takes, which `make test` chooses by
	$(call STAGES,test-all,not gpu,--hypothesis-profile=explore)

check: setup-dev ## lint, format, types, which room may import which, lines of code by room (budget.toml)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/python -m tools.line_budget

test-gpu: setup-dev ## the tests that need an NVIDIA GPU
	WARPLAB_BACKEND=gpu $(BIN)/python -m pytest -m gpu $(TEST_ARGS)

bench: setup ## each kernel's speed on this GPU against copy and library, all labs
	$(BIN)/python -m tools.bench $(BENCH_ARGS) $(LABS)

record: setup ## the same, written to the recordings that notebooks show where no GPU is
	$(BIN)/python -m tools.bench --record $(BENCH_ARGS) $(LABS)

compare-ncu: setup ## the simulator's counters against Nsight Compute's (needs an NVIDIA GPU and ncu)
	$(BIN)/python -m tools.ncu $(LABS)

evidence: setup-dev ## what all claims are held to, an hour or two: PARTS="numba-tests", ARGS="--resume"; evidence/README.md
	$(BIN)/python -m evidence $(PARTS) $(if $(ARGS),-- $(ARGS))

exercises: setup ## generate exercises/ from solutions/, as nbgrader does
	$(BIN)/python -m tools.release_exercises

notebooks: setup ## execute the notebooks and write their outputs
	$(BIN)/python -m tools.execute_notebooks $(LABS)

pages: setup-dev ## write the generated pages and README's table of labs from what is there
	$(BIN)/python -m tools.labs_page
	$(BIN)/python -m evidence.attacks_page

book: setup-book ## the course as web pages, in _build/book/html: lessons, pages, docstrings (BOOK_ARGS="--outside")
	$(BIN)/python -m tools.book $(BOOK_ARGS)

colab: setup ## lessons for Colab and Binder in _build/colab, and badges: make colab URL=https://github.com/... (docs/platforms.md)
	@$(BIN)/python -m tools.colab_notebooks "$(URL)"

new-lab: setup-dev ## lay the skeleton of a lab: make new-lab NUMBER=14 TOPIC=scan TITLE="Prefix sums" CLAIM="..."
	@test -n "$(NUMBER)" -a -n "$(TOPIC)" || { echo "error: make new-lab NUMBER=14 TOPIC=scan TITLE=\"...\"" >&2; exit 1; }
	$(BIN)/python -m tools.new_lab "$(NUMBER)" "$(TOPIC)" "$(TITLE)" --claim "$(CLAIM)"

doctor: ## what this machine has, which backend runs and why
	@$(SETUP) lab
	$(BIN)/python -m warplab doctor

pins: setup ## compile both pyproject.toml into the pinned sets (PINS_ARGS=--upgrade for newer versions)
	$(PINS) --extra gpu --output-file requirements-gpu.txt
	@# uv keeps the versions of an existing file: so the sets agree on what they share.
	cp requirements-gpu.txt requirements.txt
	$(PINS) --extra cpu --output-file requirements.txt
	@# Without the linker of machine code, which numba-cuda names and the simulator never loads.
	cp requirements.txt requirements-small.txt
	$(PINS) --no-emit-package nvidia-nvjitlink --output-file requirements-small.txt
	@# The layers hold only what they add to the sets below them.
	$(PINS) --extra cluster --excludes requirements.txt --output-file requirements-cluster.txt
	$(PINS) --extra dev --excludes requirements.txt --excludes requirements-cluster.txt \
		--output-file requirements-dev.txt
	@# The book's is read on top of the small set or of all, so it may repeat what the others hold, in their versions.
	cat requirements.txt requirements-cluster.txt requirements-dev.txt > requirements-book.txt
	$(PINS) --extra book --excludes requirements-small.txt --output-file requirements-book.txt

setup: ## prepare .venv only
	@$(SETUP)

setup-cluster: ## the same with dask and Ray: to grade a class on several machines, for the replicas of lab 11
	@$(SETUP) cluster

setup-dev: ## the same with all that the tests need
	@$(SETUP) cluster dev

setup-book: ## the same with what the book needs; the labs' packages as they are
	@$(SETUP) book lab

clean: ## remove .venv and caches; your copy, submissions and grades stay
	rm -rf .venv .verdicts .kept_code .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis .estimate_error dist _build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -type d -prune -exec rm -rf {} +
