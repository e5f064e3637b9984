# One command per chore; each makes the environment it needs. Only python3 (3.11 or later), make and PyPI are needed.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test check docs bench format clean

$(VENV)/run.done: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/test.done: $(VENV)/run.done
	@$(BIN)/python -m pip install --quiet "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --group test
	@# The native link is tested with a small C library: a compiler comes from PyPI where the machine has none.
	@command -v cc gcc clang >/dev/null || $(BIN)/python -m pip install --quiet ziglang
	@# Previews of videos are tested with the machine's ffmpeg, or with one from PyPI.
	@command -v ffprobe >/dev/null || $(BIN)/python -m pip install --quiet imageio-ffmpeg
	@touch $@

$(VENV)/check.done: $(VENV)/test.done
	@$(BIN)/python -m pip install --quiet --group check
	@touch $@

demo: $(VENV)/run.done
	@$(BIN)/python -m simplexmcp.demo $(if $(KEEP),--keep)

test: $(VENV)/test.done
	@$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

check: $(VENV)/check.done
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports
	@$(BIN)/python docs/generate.py --check

docs: $(VENV)/test.done
	@$(BIN)/python docs/generate.py

format: $(VENV)/check.done
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/test.done
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
