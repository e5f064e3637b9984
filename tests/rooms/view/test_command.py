"""`simplexmcp rooms view`: what it takes, prints and returns."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from simplexmcp.rooms import cli
from simplexmcp.rooms.view.command import HELP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.rooms.client import InProcess


@contextmanager
def started(*options: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "simplexmcp", "rooms", "view", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | env,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


def test_it_prints_its_address_and_the_database_and_ends_orderly(path: Path, runtime: Callable[..., InProcess]) -> None:
    runtime().enter_room()
    with started(AGENT_CHAT_DB=str(path), AGENT_CHAT_VIEWER_PORT="0") as process:
        word, _, address = line(process).partition(": ")
        assert word == "agent-chat viewer"
        assert address.startswith("http://127.0.0.1:")
        assert line(process) == f"database: {path}"
        assert json.loads(fetched(f"{address}/api/rooms"))["rooms"][0]["name"] == "hall"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=10) == ("", "")
        assert process.returncode == 0


def test_it_starts_without_a_database_and_says_so_and_a_token_opens_it(path: Path) -> None:
    with started("--port", "0", "--token", "--db", str(path)) as process:
        address = line(process).partition(": ")[2]
        assert "/?token=" in address
        assert line(process) == f"database: {path}  (not there yet)"
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address, timeout=10) as page:
            assert b"<title>Rooms</title>" in page.read()
            assert "token" not in page.geturl()
        with pytest.raises(urllib.request.HTTPError) as refused:
            fetched(address.partition("?")[0])
        refused.value.close()
        assert refused.value.code == 401
    assert not path.exists()


@pytest.mark.parametrize("text", ["eighty", "-1", "65536", "8787.0", "９"])
def test_a_port_that_is_none_ends_it_before_anything(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_CHAT_VIEWER_PORT", text)
    assert cli.run(["view"]) == 1
    assert "AGENT_CHAT_VIEWER_PORT is a whole number from 0 to 65535" in capsys.readouterr().err
    assert cli.run(["view", "--port", text]) == 2
    assert "--port" in capsys.readouterr().err


def test_a_port_in_use_is_one_line_that_says_what_to_do(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.run(["view", "--port", str(port), "--db", str(path)]) == 1
    assert f"Port {port} is in use by another program" in capsys.readouterr().err


def test_a_database_in_memory_cannot_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["view", "--db", ":memory:"]) == 1
    assert ":memory:" in capsys.readouterr().err


def test_its_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["view", "--help"]) == 0
    assert capsys.readouterr().out == HELP
    for option in ("--port", "--token", "--db"):
        assert option in HELP
    assert cli.run(["view", "--what"]) == 2
