"""Whatever links, second names and detours lead to a refused file, none of them gets it sent (case S30)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from simplexmcp.errors import Refused
from simplexmcp.files.outgoing import open_offer
from simplexmcp.files.paths import Rules

FOLDERS = (".ssh", "notes", "notes/deep", ".config/gh", "Pictures")
SECRETS = (".ssh/id_ed25519", ".config/gh/hosts.yml", "notes/.env", ".bash_history")
PLAIN = ("notes/a.txt", "notes/deep/b.txt", "Pictures/c.txt")
links = st.lists(
    st.tuples(
        st.sampled_from(("folder", "file", "hard")),
        st.sampled_from(("notes/x", "notes/y", "Pictures/x", "z", "notes/deep/x")),
        st.sampled_from((*FOLDERS, *SECRETS, *PLAIN, "notes/x", "z", ".")),
    ),
    max_size=5,
)
steps = st.lists(
    st.sampled_from(("notes", "deep", ".ssh", "x", "y", "z", ".", "..", "", ".config", "gh", "Pictures", "home")),
    max_size=5,
)
ends = st.sampled_from(
    ("id_ed25519", "hosts.yml", ".env", ".bash_history", "a.txt", "b.txt", "c.txt", "x", "y", "z", "")
)


def furnish(home: Path, wanted: list[tuple[str, str, str]]) -> None:
    for folder in FOLDERS:
        (home / folder).mkdir(parents=True, exist_ok=True)
    for file in (*SECRETS, *PLAIN):
        (home / file).write_text(f"the text of {file}\n")
    for kind, name, target in wanted:
        place = home / name
        if place.is_symlink() or place.exists():
            continue
        if kind == "hard":
            if (home / target).is_file():
                os.link(home / target, place, follow_symlinks=False)
        else:
            place.symlink_to(home / target)


def content_of(path: str, rules: Rules) -> str | None:
    """The text that would be sent; None when the path is refused."""

    async def offer() -> str | None:
        try:
            offered = await open_offer(path, "auto", rules)
        except Refused:
            return None
        return Path(offered.path).read_text()

    return trio.run(offer)


@settings(max_examples=150, deadline=None)
@given(links, steps, ends)
def test_no_path_gets_a_secret_out(wanted: list[tuple[str, str, str]], way: list[str], end: str) -> None:
    with tempfile.TemporaryDirectory() as base:
        root = Path(base).resolve()
        home, data = root / "home", root / "agents" / "my-agent"
        data.mkdir(parents=True)
        furnish(home, wanted)
        path = "/".join([str(home), *way, end])
        sent = content_of(path, Rules(data, home))
        assert sent is None or any(sent == f"the text of {file}\n" for file in PLAIN), (path, sent)
        if sent is not None:
            assert os.path.realpath(path) == path.replace("//", "/").replace("//", "/").replace("//", "/")


def test_a_plain_file_is_sent_by_its_own_path() -> None:
    with tempfile.TemporaryDirectory() as base:
        home, data = Path(base).resolve() / "home", Path(base).resolve() / "agents"
        data.mkdir()
        furnish(home, [])
        rules = Rules(data, home)
        assert [content_of(str(home / file), rules) for file in PLAIN] == [f"the text of {f}\n" for f in PLAIN]
