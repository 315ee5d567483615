# One command each. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export DVC_NO_ANALYTICS := 1
export DO_NOT_TRACK := 1
# A fresh .venv has no bytecode. Where containers say that none is to be written, each of hundreds of processes would
# compile all that it imports, which takes half as long again as the import.
unexport PYTHONDONTWRITEBYTECODE

# Said before anything runs. The project's own params.yaml is edited by hand: only a workspace's is written by a command.
ifneq ($(and $(filter repro,$(MAKECMDGOALS)),$(SET)),)
ifndef PROFILE
$(error SET changes a workspace, so it needs a PROFILE; that of the defaults is cpu: make repro PROFILE=cpu SET="$(SET)")
endif
endif

.PHONY: help setup repro smoke test only-tests test-long lint up down status audit bench-learning bench-judge bench-panel bench-train bench-optimize bench-history fuzz soak soak-history soak-retrain clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

setup:  ## install everything into .venv (does nothing when it is already there)
	@.ci/setup

repro: setup  ## run every stage that is out of date; PROFILE=gpu-small does so in work/gpu-small; PROFILE=cpu SET="sft.steps=9" in work/cpu, with that change
	@$(if $(PROFILE),python -m flows.workspace 'work/$(PROFILE)' --profile '$(PROFILE)' $(foreach change,$(SET),--set '$(change)') && cd 'work/$(PROFILE)' && )python -m flows.dvc_lock && dvc repro

smoke: setup  ## the same pipeline at toy size, in work/smoke
	@python -m flows.workspace work/smoke --profile smoke
	@cd work/smoke && python -m flows.dvc_lock && dvc repro

lint: setup  ## format check, lint and types
	@ruff format --check .
	@ruff check .
	@mypy

test: setup  ## lint, types and the tests, side by side
	@$(MAKE) --no-print-directory --jobs=2 lint only-tests

only-tests: setup
	@python -m pytest -n 2 --no-loadscope-reorder --durations=15

up: setup  ## start Prefect, MLflow and the schedule on this machine, and show where they are: docs/operations.md
	@python -m flows.services up

down: setup  ## end exactly what `make up` started
	@python -m flows.services down

status: setup  ## show what `make up` started, and whether it answers
	@python -m flows.services status

audit: setup  ## known vulnerabilities of the pinned packages; needs the network; AUDIT="--vulnerability-service osv"
	@python -m flows.audit $(AUDIT)

test-long: setup  ## the tests that take minutes: servers, remotes, retraining, several processes, exact resuming
	@python -m pytest -m long -n 2 --no-loadscope-reorder

bench-learning: setup  ## three seeds and the ablations, up to an hour a seed; results in work/bench/learning.md; BENCH_LEARNING="--seeds 0"
	@python -m flows.benches.learning $(BENCH_LEARNING)

bench-judge: setup  ## candidates a minute, and what a judge costs over a plain loop; BENCH_JUDGE="--device cuda:0"
	@python -m flows.benches.judge $(BENCH_JUDGE)

bench-panel: setup  ## candidates an hour with 1, 2 and 4 GPUs, and how far neighbours shift speedups; BENCH_PANEL="--devices 1 2"
	@python -m flows.benches.panel $(BENCH_PANEL)

bench-train: setup  ## training beside plain TRL, on GPUs; BENCH_TRAIN="--only 1.5b" or "--size tiny --device cpu"
	@python -m flows.benches.train $(BENCH_TRAIN)

bench-optimize: setup  ## `cuda-l1 optimize` over the built-in problems, ten minutes; results in work/bench/optimize-cpu.md
	@python -m flows.benches.optimize $(BENCH_OPTIMIZE)

bench-history: setup  ## a history of 10 million rounds beside SQLite and JSON files; results in work/bench-history.json
	@python -m flows.benches.history $(BENCH_HISTORY)

fuzz: setup  ## 10,000 random candidates through the judge; resumes, results in work/fuzz
	@python -m flows.soaks.fuzz $(FUZZ)

soak: setup  ## 2,000 judgements in a row, looking for what they leave behind; results in work/soak.json
	@python -m flows.soaks.judge $(SOAK)

soak-history: setup  ## four writers and four readers of one history for 10 minutes, killed at random
	@python -m flows.soaks.history

soak-retrain: setup  ## nights of retraining struck by 200 faults; resumes, results in work/soak_retrain
	@python -m flows.soaks.retrain $(SOAK_RETRAIN)

clean:  ## remove working folders; data/, the history and .venv stay
	@[ ! -d work/services ] || python -m flows.services down
	@rm -rf work
