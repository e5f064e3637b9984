from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplexmcp import cli
from simplexmcp.arguments import PARSERS

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_generated_is_up_to_date(generate: ModuleType):
    stale = [path.name for path, text in generate.generated().items() if path.read_text() != text]
    assert stale == [], "run: make docs"


def test_every_command_has_a_parser():
    assert set(PARSERS) == set(cli._COMMANDS)


def test_the_manual_names_every_option(generate: ModuleType):
    manual = generate.manual().replace("\\", "")
    for name, parser in PARSERS.items():
        assert f"simplexmcp {name}" in manual
        for action in parser(prog="x").options():
            for option in action.option_strings:
                assert f"fB{option}fR" in manual


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed here")
def test_the_manual_is_well_formed():
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", ROOT / "man" / "simplexmcp.1"], capture_output=True, timeout=60, check=True
    )
    assert done.stderr == b""


def completed(*words: str) -> list[str]:
    script = f"""
        source {ROOT}/completions/simplexmcp.bash
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
        COMP_CWORD={len(words) - 1}
        $(complete -p simplexmcp | sed 's/.*-F \\([^ ]*\\).*/\\1/') simplexmcp "${{COMP_WORDS[-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed here")
def test_bash_completes_commands_options_and_choices():
    assert completed("simplexmcp", "reg") == ["register"]
    assert completed("simplexmcp", "serve", "--exp") == ["--expire-hours"]
    assert completed("simplexmcp", "register", "--scope", "pro") == ["project"]


def test_the_table_of_serve_in_the_readme_has_every_option_and_its_default():
    readme = (ROOT / "README.md").read_text()
    table = readme.partition("### Options of `serve`")[2].partition("\n## ")[0]
    serve = PARSERS["serve"](prog="x")
    rows = {}
    for line in table.splitlines():
        if line.startswith("| `--"):
            options, default, _ = re.split(r"(?<!\\)\|", line[1:])[:3]
            rows |= {option: default.strip() for option in re.findall(r"--[a-z-]+", options)}
    known = {action.option_strings[0]: action for action in serve.options() if action.option_strings}
    assert set(rows) == set(known) - {"-h"}
    for option, action in known.items():
        if isinstance(action.default, (str, int)) and not isinstance(action.default, bool) and option != "-h":
            assert rows[option] == str(action.default), option


def test_documents_that_are_linked_exist():
    for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/flows.md", "docs/design.md"):
        file = ROOT / name
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", file.read_text()):
            assert (file.parent / target).exists(), f"{name}: {target}"
