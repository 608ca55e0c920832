# make app    opens the simulator; make test runs every check. Both set themselves up.

PORT ?= 8501
ADDRESS ?= localhost
WORKERS ?= 2
PYTEST_ARGS ?=

PY := .venv/bin/python

# The tests start some sixty Pythons; without it, each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help app test lint bench docs wheel clean distclean runtime dev

help:
	@echo "make app     open the simulator           PORT=$(PORT) ADDRESS=$(ADDRESS)"
	@echo "make test    lint, types and all tests    PYTEST_ARGS='-k share' CHROMIUM=/path"
	@echo "make lint    ruff and mypy alone"
	@echo "make bench   engine speed"
	@echo "make docs    API pages from the docstrings, to build/api"
	@echo "make wheel   wheel and sdist, to dist"
	@echo "make clean   remove caches; make distclean: .venv too"

app: runtime
	@$(PY) -m s11 app --port "$(PORT)" --address "$(ADDRESS)"

test: lint
	@chromium=$$(scripts/find_chromium.sh --install) && export CHROMIUM="$$chromium" \
		|| echo "s11: without it the browser tests are skipped (with CI set, they fail)" >&2; \
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

lint: dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

bench: runtime
	@$(PY) -m s11 bench

docs: dev
	@$(PY) scripts/api_docs.py build/api && echo "s11: build/api/index.html"

wheel: dev
	@$(PY) -m build --no-isolation --outdir dist .

clean:
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info test-results
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean
	rm -rf .venv

runtime:
	@scripts/setup_venv.sh requirements.txt

dev:
	@scripts/setup_venv.sh requirements-dev.txt
