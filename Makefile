# Every habit of the project is one command here. `make demo` and `make test` need only Python >= 3.11, pip and make.
PYTHON ?= python3
BIN := .venv/bin
export DO_NOT_TRACK = 1
export PREFECT_SERVER_ANALYTICS_ENABLED = false

.PHONY: demo test test-all browser format lint typecheck docs bench lock clean

## demo: capture the embedded models into lake/ and answer three questions
demo: .venv/ready
	$(BIN)/passnet refresh --models demo --warehouse lake

## test: the default suite
test: .venv/ready browser
	$(BIN)/python -m pytest -m "not slow and not gpu"

## test-all: the slow tests too (tests marked gpu skip themselves without a device)
test-all: .venv/ready browser
	$(BIN)/python -m pytest

## browser: a Chromium for the tests of pages, where this user may install one; without it those tests skip themselves
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "installing Chromium" \
		&& apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
		|| echo "no Chromium and none could be installed: tests of pages will be skipped"

format: .venv/ready
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: .venv/ready
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/lint-imports

typecheck: .venv/ready
	$(BIN)/mypy

## docs: make the answers in docs/queries.md again from the demo warehouse
docs: .venv/ready
	$(BIN)/python -m curate.ready --warehouse lake --write docs/queries.md

## bench: every figure of benchmarks/README.md (about an hour on 2 cores)
bench: export PYTHONPATH = .
bench: .venv/ready
	for part in timm types pairs torchvision; do $(BIN)/python benchmarks/zoo_yield.py $$part || exit 1; done
	$(BIN)/python benchmarks/zoo_yield.py mixed --count 300
	for name in capture_time memory hashing stored_size queries; do $(BIN)/python benchmarks/$$name.py || exit 1; done

## lock: choose versions again within the ranges of pyproject.toml
lock: .venv/ready
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--no-emit-index-url --no-header --no-annotate --upgrade -o requirements.lock

# The environment is made again when the lock changes; the stamp is written last, so a broken install is repeated.
.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("passnet needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "installing about 7 GB into .venv, which takes minutes"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf .venv build *.egg-info
