# Needs Python 3.11 or later with pip, and make. Everything goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SLOW ?=

.PHONY: demo test check bench docs clean

# Trains about two minutes on two cores, then ranks the policy against random and greedy.
demo: $(VENV)/train
	$(BIN)/python -m training.train configs/demo.toml --overwrite
	$(BIN)/python -m training.tournament random greedy ppo:runs/demo/policy.pt --out runs/demo --overwrite
	@echo "curves:     $(BIN)/tensorboard --logdir runs/demo"

# SLOW=1 also runs the tests marked slow.
test: $(VENV)/dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(if $(SLOW),,-m "not slow")

check: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Some seven minutes.
bench: $(VENV)/bench $(VENV)/train
	$(BIN)/python -m tests.bench --out bench.json
	$(BIN)/python -m tests.bench_learner

# The documentation as a site, into site/.
docs: $(VENV)/docs
	$(BIN)/python docs/build.py site
	@echo "open site/index.html; with the search: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site"

$(VENV)/train $(VENV)/dev $(VENV)/bench $(VENV)/docs: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing, which takes a few minutes"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[$(@F)]'
	touch $@

clean:
	rm -rf $(VENV) runs dist site
