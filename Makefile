# The two commands of the README are `make demo` and `make test`. Both set up a virtual environment in .venv,
# which requires only Python and pip.

# Without cached bytecode, each of the hundreds of test processes would compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
SEEDS ?= 0
RECIPE ?=
N ?= 400
SEED ?= 1
MUTANTS ?=
VENV := .venv
BIN := $(VENV)/bin
VALIDATED := TextCraft Maze Wordle BabyAI ALFWorld WebShop SQLGym Weather Movie Academia Sheet TODOList
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := help
.PHONY: help demo test check suite cov shuffled verl verl-0.8 bare lowest properties exhaustive interrupts libraries agentgym alfworld webarena trainings algorithms train-demo pipeline smollm format bench figures mutants planted soak docs dist site validate sciworld screenshot clean

help: ## list these targets
	@grep -E '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.all ## an oracle and a random agent play TextCraft and Maze; the table, and runs/demo/report.html
	rm -rf runs/demo
	$(BIN)/agentgym eval examples/oracle_and_random.toml
	$(BIN)/agentgym report runs/demo --out runs/demo/report.html

test: $(VENV)/.dev ## run all checks: check, suite and verl; a failure in one does not leave out the others
	$(MAKE) --keep-going check suite verl

check: $(VENV)/.dev ## formatting, lint, types, import contracts, plain English
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/plain_english.py

suite: $(VENV)/.dev ## the tests, with the slow ones and without make exhaustive's
	$(BIN)/pytest -m "not exhaustive" --durations=30

cov: $(VENV)/.dev ## the tests of make suite with their coverage, which takes half as long again
	$(BIN)/pytest -m "not exhaustive" --cov --cov-report=term

shuffled: $(VENV)/.dev ## the tests of make suite in three random orders; SEEDS="4" for another
	@for seed in $(or $(filter-out 0,$(SEEDS)),1 2 3); do \
		$(BIN)/pytest -m "not exhaustive" -p randomly --randomly-seed="$$seed" || exit 1; done

verl: $(VENV)/.dev ## the tests with the newest and the oldest verl, inspect_ai and transformers serve (.nox)
	$(BIN)/nox --reuse-venv=yes

verl-0.8: $(VENV)/.dev ## the tests with verl 0.8, before a release
	$(BIN)/nox --reuse-venv=yes --session verl-0.8

bare: $(VENV)/.dev ## the tests that use programs or recordings, with these hidden: each is skipped or passes without
	env PATH="$(abspath $(BIN))" AGENTGYM_CHROMIUM= JAVA_HOME= AGENTGYM_WIRE=/nowhere AGENTGYM= WEBARENA= \
		$(BIN)/pytest -m "(needs or may_use) and not exhaustive"

lowest: $(VENV)/.dev ## quick tests with the lowest declared version of each dependency; needs Python 3.10 or 3.11
	$(BIN)/nox --reuse-venv=yes --session lowest

properties: $(VENV)/.dev ## the property tests with many more examples: half an hour
	HYPOTHESIS_PROFILE=full $(BIN)/pytest -m "" tests/properties tests/replies tests/cli/test_training_splits.py

exhaustive: $(VENV)/.dev ## the tests that take minutes each: all tasks, pages, benchmarks and interrupts
	HYPOTHESIS_PROFILE=full $(BIN)/pytest -m exhaustive

interrupts: $(VENV)/.dev ## a fault at every I/O point of a client: Ctrl-C, cancellation, lost replies, restarts; some minutes
	$(BIN)/pytest -m "" tests/test_fault_injection.py tests/test_real_interrupts.py

libraries: $(VENV)/.dev ## the tests with seven other libraries, under four minutes; needs Python 3.11 and Java
	$(BIN)/nox --reuse-venv=yes --session libraries

agentgym: $(VENV)/.dev ## let AgentGym's own clients and Evaluator play every local server: make agentgym AGENTGYM=../AgentGym
	AGENTGYM="$(abspath $(AGENTGYM))" $(BIN)/nox --reuse-venv=yes --session agentgym

alfworld: $(VENV)/.dev ## let TextWorld and the local server play games of ALFWorld's format; compiles Fast Downward first
	$(BIN)/nox --reuse-venv=yes --session alfworld

webarena: $(VENV)/.dev ## let WebArena's own code read and score the same pages as the local server: make webarena WEBARENA=../webarena
	WEBARENA="$(abspath $(WEBARENA))" $(BIN)/pytest -n0 -m "" -rP --durations=5 tests/servers/test_webarena_official.py tests/servers/test_webarena_evaluators.py

trainings: $(VENV)/.dev ## the tests in which verl 0.9 and 0.7 train for minutes: outages, curves, local servers, horizon
	$(BIN)/nox --reuse-venv=yes --session verl-0.9 verl-0.7 -- -m slow -k "not test_algorithms"

algorithms: $(VENV)/.dev ## three steps of each algorithm by verl 0.9, 0.8 and 0.7, with advantages recomputed
	$(BIN)/nox --reuse-venv=yes --session verl-0.9 verl-0.8 verl-0.7 -- -m slow -k test_algorithms

train-demo: $(VENV)/.dev ## train a tiny model on Maze with verl, on the CPU: docs/training/maze.md; SEEDS="0 1" for several
	$(BIN)/nox --reuse-venv=yes --session train-demo -- $(SEEDS:%=--seed=%)

pipeline: $(VENV)/.dev ## data, fine-tuning, GRPO, evaluation and report on the CPU: docs/training/pipeline.md; SEEDS="0 1 2"
	$(BIN)/nox --reuse-venv=yes --session pipeline -- $(SEEDS:%=--seed=%)

smollm: $(VENV)/.dev ## let a pretrained model learn three environments, in hours: docs/training/pretrained.md; RECIPE=smollm-alfworld for ALFWorld
	$(BIN)/nox --reuse-venv=yes --session smollm -- $(RECIPE:%=--recipe=%)

format: $(VENV)/.dev ## format the code and apply ruff's fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev ## measure the figures of benchmarks/README.md on this machine
	@for file in $(filter-out benchmarks/soak.py benchmarks/restarts.py,$(wildcard benchmarks/[a-z]*.py)); do \
		echo $$file; $(BIN)/python $$file || exit 1; done

figures: $(VENV)/.dev ## count lines, modules, names, long functions, and the modules of a step
	$(BIN)/python docs/figures.py

mutants: $(VENV)/.dev ## plant N faults drawn by SEED, and print which of them no test notices: docs/reliability.md
	PYTHONPATH=tools $(BIN)/python -m mutants --count $(N) --seed $(SEED) $(MUTANTS)

planted: $(VENV)/.dev ## plant each fault of tools/planted_faults.py, in judges, scores and records; all are noticed
	$(BIN)/python tools/planted_faults.py

soak: $(VENV)/.dev ## 10,000 episodes, 128 at once, on a failing server, and 200 restarts: docs/reliability.md
	$(BIN)/python benchmarks/soak.py
	$(BIN)/python benchmarks/restarts.py

site: $(VENV)/.dev ## build the documentation as a site: build/site/index.html
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --nitpicky --quiet docs build/site

docs: $(VENV)/.dev ## write the generated pages of docs/
	$(BIN)/python docs/generate.py

dist: $(VENV)/.dev ## build and check sdist and wheel, and run the wheel on each installed Python from 3.10 to 3.14
	$(BIN)/nox --session build
	$(BIN)/nox --session dist

validate: $(VENV)/.dev ## check that each task of each local server can be won; of SearchQA, every fiftieth
	@for name in $(VALIDATED); do $(BIN)/agentgym validate $$name || exit 1; done
	$(BIN)/agentgym validate SearchQA --tasks $$(seq 0 50 221327 | paste -sd , -)
	$(BIN)/agentgym validate WebArena # which needs Chromium, as does MiniWoB; of that, every tenth
	$(BIN)/agentgym validate MiniWoB --tasks $$(seq 0 10 7499 | paste -sd , -)

sciworld: $(VENV)/.dev ## play the solution of each task of SciWorld, for hours; continues where it stopped: build/sciworld.jsonl
	$(BIN)/python -m agentgym_servers.sciworld._play_solutions

screenshot: $(VENV)/.dev ## take docs/report.png and docs/report-matrix.png, of the report in Chromium
	$(BIN)/python docs/screenshot.py

clean: ## remove the virtual environments, builds and runs
	rm -rf $(VENV) .nox runs build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }
	$(PIP) --upgrade pip

$(VENV)/.all: $(VENV)/bin/python pyproject.toml
	$(PIP) --editable '.[all]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.all
