"""The documents say what the program does: their commands are taken, their texts are its texts."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from docs.commands import rooms_commands
from simplexmcp import cards, commands, filecards
from simplexmcp.arguments import PARSERS
from simplexmcp.cards import Attachment, ConnectSubject, DownloadSubject, LeaveSubject, Outcome, SendSubject
from simplexmcp.chats import Chat
from simplexmcp.rooms.registry import tools as rooms_tools
from simplexmcp.rooms.settings import Settings
from simplexmcp.states import State
from simplexmcp.tools import arguments
from tests.test_readme import Reader

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TRAIL = Chat(ref="#15", kind="group", name="Trail", state="connected")
RIDGELINE = Chat(ref="#9", kind="business", name="Ridgeline", state="connected")
CONNECT = ConnectSubject("bot", "SimpleX Directory", "@directory.simplex", "", incognito=False, message=None)
ECHO = ConnectSubject("bot", "Echo", "@echo.simplex", "", incognito=False, message=None)
TEXT = SendSubject(TRAIL, "Who comes on Sunday?", None, ())
PICTURE = SendSubject(TRAIL, "trail map", None, (), Attachment("image", "/home/alice/trail.jpg", 245_760, ""))
REPORT = DownloadSubject(TRAIL, 30, "Switchback", "report.pdf", 2_516_582)
DONE = Outcome(State.DONE, by="Alice")


def path(name: str) -> Path:
    return ROOT / "README.md" if name == "README" else DOCS / f"{name}.md"


def text(name: str) -> str:
    return path(name).read_text()


def lines(name: str) -> list[str]:
    """The commands in the shell blocks of a document, on one line each."""
    blocks = re.findall(r"```(?:sh)?\n(.*?)```", text(name), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("simplexmcp ")]


NAMES = sorted(path.stem for path in DOCS.glob("*.md") if path.stem not in ("design", "flows", "reliability", "README"))


@pytest.mark.parametrize(("name", "line"), [(name, line) for name in ("README", *NAMES) for line in lines(name)])
def test_a_command_of_a_document_is_taken(name: str, line: str):
    _, command, *words = shlex.split(line)
    if command == "--version":
        return
    if command == "rooms":
        known = next(each for each in rooms_commands() if each.words == ("rooms", words[0]))
        options = {option for each in known.options for option in each.names}
        assert {word for word in words if word.startswith("--")} <= options
    else:
        PARSERS[command](prog="x").parse_args(words)


def anchors(file: Path) -> set[str]:
    """What a link can name in a document: its headings, as GitHub writes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", file.read_text())
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_place_that_a_document_links_to_is_there():
    files = [*ROOT.glob("*.md"), *DOCS.glob("*.md")]
    links = [
        (file, *found) for file in files for found in re.findall(r"\]\(([\w./-]*\.md)?#([^)]+)\)", file.read_text())
    ]
    assert len(links) > 5
    for file, target, anchor in links:
        assert anchor in anchors(file.parent / target if target else file), f"{file.name}: {target}#{anchor}"


def test_every_document_is_in_the_index():
    index = (DOCS / "README.md").read_text()
    for file in DOCS.glob("*.md"):
        assert file.name == "README.md" or f"({file.name})" in index
    readme = (ROOT / "README.md").read_text()
    for name in NAMES:
        assert f"(docs/{name}.md)" in readme


def test_the_commands_of_the_quick_start_work_in_their_order(tmp_path: Path):
    reader = Reader(tmp_path)
    words = [shlex.split(line)[1:] for line in lines("quickstart")]
    start = next(number for number, word in enumerate(words) if word[0] == "serve")
    assert "sandbox" in words[start]
    for word in words[:start]:
        assert reader.run(word)
    with reader.running([*words[start], "--port", "0"], "Listening on") as said:
        assert any(line.startswith("Phone (a simulation):") for line in said)
        for word in words[start + 1 :]:
            if word[0] != "serve":
                assert reader.run(word)


def quoted(name: str) -> list[str]:
    """The quotations of a document, each with its lines joined as it is written."""
    found = re.findall(r"(?m)((?:^> .*\n)+)", text(name))
    return [re.sub(r"(?m)^> ", "", block).strip() for block in found]


def shown(card: cards.Card) -> str:
    """A card as the app shows it."""
    return re.sub(r"/'([^']+)'", r"/\1", card.text)


def test_the_cards_of_the_owner_guide_are_the_programs_cards():
    expected = [
        cards.asking(CONNECT, 7),
        cards.asking(TEXT, 8),
        cards.asking(PICTURE, 9),
        cards.asking(REPORT, 10),
        cards.asking(LeaveSubject(RIDGELINE), 11),
        cards.outcome_card(TEXT, 8, DONE),
    ]
    assert quoted("owner-guide") == [shown(card) for card in expected]
    assert shown(cards.asking(ECHO, 1)) in quoted("quickstart")


def test_the_readme_shows_a_card_of_the_program():
    readme = re.sub(r"(?m)^>\n", "", (ROOT / "README.md").read_text())
    assert "\n".join(f"> {line}" for line in shown(cards.asking(TEXT, 8)).splitlines()) in readme


def rows(name: str, heading: str) -> list[list[str]]:
    """The rows of the table below a heading."""
    part = text(name).partition(f"## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]


def test_the_owner_guide_has_every_command():
    listed = {span for row in rows("owner-guide", "Commands") for span in re.findall(r"`(/[^`]+)`", row[0])}
    assert set(re.findall(r"`(/[^`]+)`", commands.USAGE)) <= listed
    for command in listed:
        typed = command.replace("CHAT", "#15").replace(" N", " 7")
        assert commands.parse(typed) not in (None, "usage"), command


def test_the_answers_in_the_owner_guide_are_the_programs():
    guide = text("owner-guide")
    for card in (
        cards.approved_for(TRAIL, "Alice", None, None),
        filecards.files_approved(TRAIL, "Alice"),
    ):
        assert f"`{card.text.partition(' /')[0]}`" in guide
    assert cards.approved_for(TRAIL, "Alice", "16:30", None).text.partition(" /")[0].endswith("by Alice until 16:30.")
    assert "for 20 messages." in cards.approved_for(TRAIL, "Alice", None, 20).text
    for answer in (filecards.files_need_approval(TRAIL, had=True), filecards.deleted("#15", 3, 2_202_010)):
        assert f"`{answer.text}`" in guide
    for state, line in ((State.REJECTED, "Rejected by Alice."), (State.EXPIRED, "Expired.")):
        assert cards.outcome_card(TEXT, 8, Outcome(state, by="Alice")).text.endswith(f"\n{line}")
        assert f"`{line}`" in guide


@cache
def sources() -> str:
    """Every text in the program, with a mark between the parts of one that is put together."""
    found = list[str]()
    for path in (ROOT / "simplexmcp").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                found.append("\0".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def said() -> list[str]:
    """What the program says according to the troubleshooting: the code in the first cells of its tables."""
    first = [line.split("|")[1] for line in text("troubleshooting").splitlines() if line.startswith("| ")]
    spans = [span for cell in first for span in re.findall(r"`([^`]+)`", cell)]
    return [span for span in spans if " " in span and not span.startswith(("simplexmcp", "http"))]


@pytest.mark.parametrize("message", said())
def test_a_message_in_the_troubleshooting_is_one_of_the_program(message: str):
    parts = re.split(r'my-agent|5226|\b8\b|\(process P\)|daemon-reload|"|--user|bus$|systemctl', message)
    parts = [part.strip(" .") for part in parts if len(part.strip(" .")) > 3]
    assert parts
    for part in parts:
        if part != "Failed to connect to" and not part.endswith("Failed to connect to"):
            assert part in sources(), part


def test_the_agent_guide_has_every_tool_with_its_inputs_and_defaults():
    models = {
        model.tool: model
        for model in vars(arguments).values()
        if isinstance(model, type) and issubclass(model, arguments._Arguments) and hasattr(model, "tool")
    }
    table = {row[0].strip("`"): row[1] for row in rows("agent-guide", "Tools")}
    assert set(table) == set(models)
    for tool, model in models.items():
        expected = []
        for name, field in model.model_fields.items():
            shown_name = field.alias or name
            if field.is_required() or field.default == "":
                expected.append(f"`{shown_name}`")
            elif field.default in (None, ()):
                expected.append(f"`{shown_name}?`")
            else:
                expected.append(f"`{shown_name}` ({str(field.default).lower()})")
        assert table[tool] == ", ".join(expected), tool


def test_the_agent_guide_explains_every_status():
    listed = {row[0].strip("`") for row in rows("agent-guide", "Status")}
    assert listed == {*(state.value for state in State), "known"} - {"pending"}


def test_the_rooms_guide_has_every_tool_once():
    listed = [name for row in rows("rooms", "Tools") for name in re.findall(r"`(\w+)`", row[1])]
    assert sorted(listed) == sorted(rooms_tools(Settings(":memory:")))


@pytest.mark.needs("systemd-analyze")
def test_systemd_takes_the_unit_for_another_user(tmp_path: Path):
    (unit,) = re.findall(r"```ini\n(.*?)```", text("server"), re.DOTALL)
    file = tmp_path / "simplexmcp@.service"
    file.write_text(
        unit.replace("/opt/simplexmcp/bin/simplexmcp", sys.executable).replace("User=simplexmcp", "User=daemon")
    )
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        ["systemd-analyze", "--man=no", "verify", f"{tmp_path}/simplexmcp@my-agent.service"], capture_output=True,
        text=True, env=env, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
