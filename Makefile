# Each target prepares .venv by itself, the first time or when the pins have changed; see tools/environment.py. What
# only the tests need (requirements-cluster.txt, requirements-dev.txt) is added when they first run.
#   PYTHON=python3.12            the interpreter to make .venv with
#   WARPLAB_REQUIREMENTS=cpu|gpu the pinned set, otherwise chosen by whether an NVIDIA driver is present
#   WARPLAB_BACKEND=simulator|gpu
#   LAB_ARGS="--no-browser"      more arguments for jupyter lab, and for digits
#   TEST_ARGS="-k doctor"        more arguments for pytest; WORKERS="-n 8" on more cores
#   LABS="04 05"                 the labs for bench, record, compare-ncu and notebooks; all, if not given
#   BENCH_ARGS="--only KEY"      more arguments for bench and record: measure one key of one lab

SHELL := /bin/sh
BIN := .venv/bin
# The first Python that runs at all; tools/bootstrap.py finds one that fits. $(SETUP) cluster dev: with these layers.
SETUP = set_up() { for python in $${PYTHON:-python3} python3.13 python3.12 python3.11 python; do \
		if $$python -c "" 2>/dev/null; then exec $$python tools/bootstrap.py "$$@"; fi; \
	done; \
	echo "error: no Python found. Warp Lab needs Python 3.11, 3.12 or 3.13." \
		"On Debian or Ubuntu: sudo apt install python3 python3-venv" >&2; exit 1; }; set_up
# From the default index alone: the pins must not depend on wheels that lie on one machine.
PINS = UV_INDEX= UV_FIND_LINKS= $(BIN)/python -m tools.run_uv pip compile pyproject.toml --quiet \
	--python-version 3.11 --python-platform x86_64-manylinux_2_28 --custom-compile-command "make pins" $(PINS_ARGS)
LABS ?=
# Three workers on two cores, since some tests wait for processes; the long tests at the end are shared out.
WORKERS ?= -n 3 --dist worksteal

.PHONY: help lab digits test test-quick check test-gpu bench record compare-ncu compare-machine-code differential numba-tests public-programs bench-simulator bench-grading exercises notebooks pages new-lab doctor pins setup setup-cluster setup-dev clean
.DEFAULT_GOAL := help

help: ## show this list
	@echo "Warp Lab. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-24s %s\n", $$1, $$2 }'

lab: setup ## open JupyterLab on your own copy of the lessons, in mine/
	$(BIN)/python -m warplab lab $(LAB_ARGS)

digits: setup ## open the page of lab 12: train, look inside and deploy a network
	$(BIN)/python -m warplab digits $(LAB_ARGS)

test: check ## lint, types, imports and all tests that need no GPU
	WARPLAB_BACKEND=simulator $(BIN)/python -m pytest $(WORKERS) -m "not gpu" $(TEST_ARGS)

test-quick: check ## the same without the slow tests, for work in progress
	WARPLAB_BACKEND=simulator $(BIN)/python -m pytest $(WORKERS) -m "not gpu and not slow" $(TEST_ARGS)

check: setup-dev ## lint, format, types, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

test-gpu: setup-dev ## the tests that need an NVIDIA GPU
	WARPLAB_BACKEND=gpu $(BIN)/python -m pytest -m gpu $(TEST_ARGS)

bench: setup ## each kernel's speed on this GPU against copy and library, all labs
	$(BIN)/python -m tools.bench $(BENCH_ARGS) $(LABS)

record: setup ## the same, written to the recordings that notebooks show where no GPU is
	$(BIN)/python -m tools.bench --record $(BENCH_ARGS) $(LABS)

compare-ncu: setup ## the simulator's counters against Nsight Compute's (needs an NVIDIA GPU and ncu)
	$(BIN)/python -m tools.ncu $(LABS)

compare-machine-code: setup ## instructions counted from machine code against Nsight Compute's (needs no GPU)
	$(BIN)/python -m tools.machine_code $(LABS)

differential: setup ## 2,400 random kernels in the simulator against results recorded on an H100
	$(BIN)/python -m tests.differential.compare

estimate-error: setup ## estimated times beside recorded ones (ERROR_ARGS=--held-out for those put aside)
	WARPLAB_BACKEND=simulator $(BIN)/python -m tools.estimate_error $(ERROR_ARGS)

numba-tests: setup-dev ## numba-cuda's own tests against the stand-in for numba.cuda; writes docs/numba_tests.md
	$(BIN)/python -m tools.numba_tests $(TEST_ARGS)

public-programs: setup ## published programs in the simulator: make public-programs REPOS="cuda-samples=DIR llm.c=DIR SGEMM_CUDA=DIR fast.cu=DIR"
	WARPLAB_BACKEND=simulator $(BIN)/python -m tools.public_programs $(REPOS)

bench-simulator: setup ## the simulator's speed against Numba's own
	$(BIN)/python -m tools.simulator_speed

bench-grading: setup-dev ## the grading of a class of 300, and its speed against nbgrader's own
	$(BIN)/python -m tools.grading_speed

exercises: setup ## generate exercises/ from solutions/, as nbgrader does
	$(BIN)/python -m tools.release_exercises

notebooks: setup ## execute the notebooks and write their outputs
	$(BIN)/python -m tools.execute_notebooks $(LABS)

pages: setup-dev ## write the generated pages and README's table of labs from what is there
	$(BIN)/python -m tools.labs_page
	$(BIN)/python -m tools.simulator_page
	$(BIN)/python -m tools.attacks_page

new-lab: setup-dev ## lay the skeleton of a lab: make new-lab NUMBER=06 TOPIC=convolution TITLE="Convolution and cuDNN"
	@test -n "$(NUMBER)" -a -n "$(TOPIC)" || { echo "error: make new-lab NUMBER=06 TOPIC=convolution TITLE=\"...\"" >&2; exit 1; }
	$(BIN)/python -m tools.new_lab "$(NUMBER)" "$(TOPIC)" "$(TITLE)"

doctor: setup ## what this machine has, which backend runs and why
	$(BIN)/python -m warplab doctor

pins: setup ## compile pyproject.toml into the pinned sets (PINS_ARGS=--upgrade for newer versions)
	$(PINS) --extra gpu --output-file requirements-gpu.txt
	@# uv keeps the versions of an existing file: so the sets agree on what they share.
	cp requirements-gpu.txt requirements.txt
	$(PINS) --extra cpu --output-file requirements.txt
	@# The layers hold only what they add to the sets below them.
	$(PINS) --extra cluster --excludes requirements.txt --output-file requirements-cluster.txt
	$(PINS) --extra dev --excludes requirements.txt --excludes requirements-cluster.txt \
		--output-file requirements-dev.txt

setup: ## prepare .venv only
	@$(SETUP)

setup-cluster: ## the same with dask and Ray: to grade a class on several machines, for the replicas of lab 11
	@$(SETUP) cluster

setup-dev: ## the same with all that the tests need
	@$(SETUP) cluster dev

clean: ## remove .venv and caches; your copy, submissions and grades stay
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis .estimate_error warplab.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -type d -prune -exec rm -rf {} +
