# The two commands of the README are `make demo` and `make test`. Both set up a virtual environment of their
# own in .venv, from nothing but Python and pip.

# Without cached bytecode each of the hundreds of processes that tests start compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
SEEDS ?= 0
N ?= 400
SEED ?= 1
MUTANTS ?=
VENV := .venv
BIN := $(VENV)/bin
WHOLE := TextCraft Maze Wordle BabyAI WebShop SQLGym Weather Movie Academia Sheet TODOList
PAGES := $(wildcard *.md docs/*.md docs/howto/*.md docs/training/*.md benchmarks/*.md verl_bridge/recipes/templates/*.md)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := help
.PHONY: help demo test check cov verl properties libraries trainings algorithms train-demo pipeline format bench figures mutants soak docs dist site validate screenshot clean

help: ## list these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.all ## an oracle and a random agent play TextCraft and Maze; the table, and runs/demo/report.html
	rm -rf runs/demo
	$(BIN)/agentgym eval examples/oracle_and_random.toml
	$(BIN)/agentgym report runs/demo --out runs/demo/report.html

test: check cov verl ## formatting, lint, types, tests with coverage, the bridge with each verl

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/plain_english.py $(PAGES)

cov: $(VENV)/.dev
	$(BIN)/pytest -m "not exhaustive" --cov --cov-report=term

verl: $(VENV)/.dev ## the bridge's tests with the real verl 0.9, 0.8 and 0.7, and those with inspect_ai, each in an environment of its own
	$(BIN)/nox --reuse-venv=yes

properties: $(VENV)/.dev ## the property tests of tests/properties with many more examples, exhaustive ones included: half an hour
	HYPOTHESIS_PROFILE=full $(BIN)/pytest -m "" tests/properties

libraries: $(VENV)/.dev ## games of seven other libraries, evaluated and trained in at eight at once; needs Java
	$(BIN)/nox --reuse-venv=yes --session libraries

trainings: $(VENV)/.dev ## the tests in which verl 0.9 and 0.7 train for minutes: outages, curves, local servers, the horizon
	$(BIN)/nox --reuse-venv=yes --session verl-0.9 verl-0.7 -- -m slow -k "not test_algorithms"

algorithms: $(VENV)/.dev ## three steps of each algorithm by verl 0.9, 0.8 and 0.7, their advantages computed anew
	$(BIN)/nox --reuse-venv=yes --session verl-0.9 verl-0.8 verl-0.7 -- -m slow -k test_algorithms

train-demo: $(VENV)/.dev ## let a tiny model learn Maze by verl, on the CPU: docs/training/maze.md; SEEDS="0 1" for more
	$(BIN)/nox --reuse-venv=yes --session train-demo -- $(SEEDS:%=--seed=%)

pipeline: $(VENV)/.dev ## data, fine-tuning, GRPO, evaluation, report on Maze and TextCraft, on the CPU: docs/training/pipeline.md; SEEDS="0 1 2"
	$(BIN)/nox --reuse-venv=yes --session pipeline -- $(SEEDS:%=--seed=%)

format: $(VENV)/.dev ## format the code and repair what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev ## print the figures of benchmarks/README.md as they are on this machine
	@for each in $(filter-out benchmarks/soak.py benchmarks/restarts.py,$(wildcard benchmarks/[a-z]*.py)); do \
		echo $$each; $(BIN)/python $$each || exit 1; done

figures: $(VENV)/.dev ## count lines, modules, names, long functions, and what a step crosses
	$(BIN)/python docs/figures.py

mutants: $(VENV)/.dev ## plant N faults drawn by SEED, and print which of them no test notices: docs/reliability.md
	PYTHONPATH=tests/support $(BIN)/python -m mutants --count $(N) --seed $(SEED) $(MUTANTS)

soak: $(VENV)/.dev ## 10,000 episodes at 128 at once on a server that fails, 200 restarts: docs/reliability.md
	$(BIN)/python benchmarks/soak.py
	$(BIN)/python benchmarks/restarts.py

site: $(VENV)/.dev ## build the documentation as a site: build/site/index.html
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --nitpicky --quiet docs build/site

docs: $(VENV)/.dev ## write anew the pages of docs/ that are generated
	$(BIN)/python docs/generate.py

dist: $(VENV)/.dev ## build sdist and wheel into dist/, check them, and play from the wheel on each Python from 3.10 to 3.14 that is there
	$(BIN)/nox --session build
	$(BIN)/nox --session dist

validate: $(VENV)/.dev ## find out whether each task of each local server can be won; of SearchQA, each fiftieth
	@for each in $(WHOLE); do $(BIN)/agentgym validate $$each || exit 1; done
	$(BIN)/agentgym validate SearchQA --tasks $$(seq 0 50 221327 | paste -sd , -)

screenshot: $(VENV)/.dev ## take docs/report.png anew, of the report in a real Chromium
	$(BIN)/python docs/screenshot.py

clean: ## remove the virtual environment and all that was built or run
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
