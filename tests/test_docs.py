from __future__ import annotations

import importlib
import re
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
    return importlib.import_module("docs.generate")


def test_what_is_generated_is_up_to_date(generate: ModuleType):
    stale = [path.name for path, text in generate.generated().items() if path.read_text() != text]
    assert stale == [], "run: make docs"


def test_every_command_has_a_parser():
    assert set(PARSERS) == set(cli._COMMANDS)


def test_the_table_of_serve_has_every_option_and_its_default():
    server = (ROOT / "docs" / "server.md").read_text()
    table = server.partition("## Options of `serve`")[2].partition("\n## ")[0]
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
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    assert len(documents) > 10
    for file in documents:
        name = file.name
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", file.read_text()):
            assert (file.parent / target).exists(), f"{name}: {target}"
