# One command per chore; each makes the environment it needs. Only python3 (3.11 or later), make and PyPI are needed,
# and for `make test` the PACKAGES below.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test check docs bench reliability format clean tools

# What the tests use: a browser for the pages, shells for the completions, readers of the manual, systemd's checker.
TOOLS = chromedriver bash zsh fish mandoc groff systemd-analyze
PACKAGES = chromium chromium-driver bash zsh fish mandoc groff systemd

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

test: $(VENV)/test.done tools
	@$(BIN)/python -m pytest -n auto --dist worksteal $(foreach tool,$(call missing),--without $(tool)) $(ARGS)

missing = $(strip $(foreach tool,$(TOOLS),$(if $(shell command -v $(tool)),,$(tool))))

# Installs them where it may. Where it cannot, the tests that need them are left out, and that is said; not in CI.
tools:
	@missing="$(call missing)"; test -z "$$missing" || \
	  { test "$$(id -u)" = 0 && apt-get update -q && apt-get install -y -q $(PACKAGES); } || \
	  { echo "Left out are the tests that need $$missing. For them: sudo apt-get install $(PACKAGES)" >&2; test -z "$(CI)"; }

check: $(VENV)/check.done
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports
	@$(BIN)/python -m docs.generate --check

docs: $(VENV)/test.done
	@$(BIN)/python -m docs.generate

format: $(VENV)/check.done
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/test.done
	@$(BIN)/python -m benchmarks

# Measures everything again, for docs/reliability.md: some minutes.
reliability: $(VENV)/test.done
	@$(BIN)/python -m benchmarks.reliability --measure

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
