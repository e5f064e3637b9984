from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import simplexmcp
from simplexmcp.rooms import watcher_command as module
from simplexmcp.rooms.registry import tools
from simplexmcp.rooms.settings import Settings
from simplexmcp.rooms.watcher_command import LAUNCHER, quoted, watcher_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rooms.client import InProcess


def words(command: str) -> list[str]:
    return shlex.split(command)


def test_the_command_names_runtime_watcher_persona_owner_and_epoch(alice: InProcess):
    me = alice.enter_room().agent_id
    answer = alice.call("wait_for_messages")
    pid = os.getpid()
    assert answer["command"] == (
        f"'{sys.executable}' -X poller.js '{LAUNCHER}' --agent '{me}' --owner-pid '{pid}' --epoch '1' --ok-on-timeout"
    )
    assert list(answer)[:6] == ["command", "run_as", "how_to", "exit_codes", "baselined", "single_process"]
    assert set(answer["exit_codes"]) == {"0", "124", "2"}
    assert (answer["baselined"], answer["single_process"]) == (False, True)
    assert "server_build" in answer


def test_who_looks_for_a_poller_finds_the_tool():
    assert "poller" in tools(Settings(":memory:"))["wait_for_messages"].description


def test_what_is_asked_for_is_in_the_command_in_a_fixed_order(alice: InProcess):
    alice.enter_room()
    command = alice.call("wait_for_messages", room="hall", timeout=60, interval=5, mentions_only=True)["command"]
    assert words(command)[8:] == [
        *("--room", "1", "--epoch", "1", "--timeout", "60", "--interval", "5"),
        *("--ok-on-timeout", "--mentions-only"),
    ]


@pytest.mark.parametrize(
    ("argument", "value"), [("timeout", 0), ("timeout", 86_401), ("interval", 4), ("interval", 3601)]
)
def test_times_have_bounds(alice: InProcess, argument: str, value: int):
    alice.enter_room()
    failed, text = alice.text("wait_for_messages", **{argument: value})
    assert failed
    assert argument in text


def test_what_cannot_be_watched_is_refused(alice: InProcess):
    assert "no persona bound" in alice.refused("wait_for_messages")["error"]
    alice.persona()
    assert "no_room_memberships" in alice.refused("wait_for_messages")["error"]
    assert "no room" in alice.refused("wait_for_messages", room="hall")["error"]
    alice.call("create_room", name="hall")
    assert "never joined" in alice.refused("wait_for_messages", room="hall")["error"]
    alice.call("join_room", room="hall")
    alice.call("leave_room")
    nowhere = alice.refused("wait_for_messages")["error"]
    assert "left_all_rooms" in nowhere
    assert "not present in any room" in nowhere
    assert "LEFT room" in alice.refused("wait_for_messages", room="hall")["error"]


def test_a_persona_that_was_taken_over_gets_no_command(alice: InProcess, bob: InProcess):
    persona = alice.enter_room()
    bob.resume(persona)
    assert alice.refused("wait_for_messages")["code"] == "persona_lost"


def test_any_shell_reads_a_quoted_word_as_it_was():
    for word in ("plain", "two words", "it's", '$HOME `x` \\ "q"', "a\nb", "\u00e4*?"):
        assert subprocess.run(["sh", "-c", f"printf %s {quoted(word)}"], capture_output=True).stdout.decode() == word


def test_the_command_runs_from_any_folder_without_an_installation(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch, runtime: Callable[..., InProcess]
):
    alice, bob = runtime(), runtime()
    me = alice.enter_room().agent_id
    bob.enter_room()
    bob.call("post_message", content="x")
    place = tmp_path / "it's a $place"
    source = Path(simplexmcp.__file__).parent
    shutil.copytree(source / "rooms", place / "simplexmcp" / "rooms")
    for name in ("__init__.py", "errors.py"):
        shutil.copy(source / name, place / "simplexmcp" / name)
    monkeypatch.setattr(module, "LAUNCHER", str(place / "simplexmcp" / "rooms" / "launcher.py"))
    # A runtime that knows nothing of the package.
    bare = tmp_path / "a runtime"
    bare.write_text(f'#!/bin/sh\nexec {quoted(sys.executable)} -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(module.sys, "executable", str(bare))

    env = {"AGENT_CHAT_DB": str(path), "TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(watcher_command(me, 1), shell=True, env=env, capture_output=True, text=True, cwd="/")

    assert (done.returncode, done.stderr) == (0, "")
    assert '"has_updates":true' in done.stdout
