from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from simplexmcp.errors import UserError
from simplexmcp.rooms import seats
from simplexmcp.rooms.registry import ORDER, tools
from simplexmcp.rooms.settings import Settings, read_settings
from tests.rooms.client import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.rooms.client import InProcess, Server


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "state").rglob("personas/*.json"))


def test_one_call_makes_the_persona_joins_reads_and_hands_out_the_watcher(
    alice: InProcess, bob: InProcess, tmp_path: Path
):
    bob.enter_room()
    bob.call("post_message", content="Welcome")

    answer = alice.call("enter", room="hall", role="tester", description="Tests things", **MODEL)

    assert (answer["persona"], answer["role"], answer["persona_description"]) == ("created", "tester", "Tests things")
    assert (answer["room_name"], answer["new_membership"]) == ("hall", True)
    assert [message["content"] for message in answer["catch_up"]["messages"]] == ["Welcome"]
    assert f"--agent '{answer['agent_id']}'" in answer["poller_cmd"]
    (file,) = kept(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    word = json.loads(file.read_text())["resume_word"]
    assert word not in json.dumps(answer)
    assert alice.call("post_message", content="Thanks")["room_name"] == "hall"


def test_a_later_session_in_the_same_place_is_the_same_persona(runtime: Callable[..., InProcess], bob: InProcess):
    bob.enter_room()
    first = runtime().call("enter", room="hall", **MODEL)
    bob.call("post_message", content="While you were away")

    again = runtime().call("enter", room="hall", **MODEL)

    assert (again["persona"], again["agent_id"]) == ("resumed", first["agent_id"])
    assert "--epoch '2'" in again["poller_cmd"]
    assert [message["content"] for message in again["catch_up"]["messages"]] == ["While you were away"]


@pytest.mark.parametrize("other", ["client", "folder", "room", "role", "model"])
def test_another_place_is_another_persona(
    runtime: Callable[..., InProcess], bob: InProcess, monkeypatch: pytest.MonkeyPatch, other: str
):
    bob.enter_room()
    bob.call("create_room", name="attic")
    first, second = runtime(), runtime()
    mine = first.call("enter", room="hall", **MODEL)["agent_id"]
    words = {"room": "hall"} | MODEL
    getcwd = os.getcwd
    if other == "client":
        second.runtime.client = "another"
    elif other == "folder":
        monkeypatch.setattr("os.getcwd", lambda: "/elsewhere")
    else:
        words |= {"room": {"room": "attic"}, "role": {"role": "judge"}, "model": {"model": "Talker Two"}}[other]
    assert second.call("enter", **words)["agent_id"] != mine
    monkeypatch.setattr("os.getcwd", getcwd)
    assert runtime().call("enter", room="hall", **MODEL)["agent_id"] == mine


def test_a_session_that_has_a_persona_keeps_it(alice: InProcess, tmp_path: Path):
    persona = alice.enter_room()
    answer = alice.call("enter", room="hall", **MODEL)
    assert (answer["persona"], answer["agent_id"]) == ("held", persona.agent_id)
    assert kept(tmp_path) == []


def test_a_room_is_made_only_when_that_was_asked_for(alice: InProcess, tmp_path: Path):
    assert 'no room "hall"' in alice.refused("enter", room="hall", **MODEL)["error"]
    assert (alice.call("whoami")["bound"], kept(tmp_path)) == (False, [])
    assert alice.call("enter", room="hall", create_room=True, **MODEL)["room_name"] == "hall"
    assert alice.call("enter", room="hall", create_room=True, **MODEL)["room_id"] == 1


def test_a_persona_that_a_living_session_holds_is_not_taken_from_it(
    server: Callable[..., Server], bob: InProcess, tmp_path: Path
):
    bob.enter_room()
    first, second = server(), server()
    mine = first.call("enter", room="hall", **MODEL)["agent_id"]

    theirs = second.call("enter", room="hall", **MODEL)

    assert (theirs["persona"], theirs["agent_id"] != mine) == ("created", True)
    assert first.call("whoami").get("persona_lost") is None
    first.close()
    third = server()
    assert third.call("enter", room="hall", **MODEL)["agent_id"] == mine
    assert len(kept(tmp_path)) == 2


def test_a_killed_session_gives_its_persona_back(server: Callable[..., Server], bob: InProcess):
    bob.enter_room()
    first = server()
    mine = first.call("enter", room="hall", **MODEL)["agent_id"]
    first.kill()
    assert server().call("enter", room="hall", **MODEL)["agent_id"] == mine


def test_a_persona_that_the_database_forgot_is_made_anew(runtime: Callable[..., InProcess], tmp_path: Path):
    runtime().call("enter", room="hall", create_room=True, **MODEL)
    (file,) = kept(tmp_path)
    file.write_text(json.dumps({"agent_id": "gone", "resume_word": "a-b-1"}))
    assert runtime().call("enter", room="hall", **MODEL)["persona"] == "created"
    assert json.loads(file.read_text())["agent_id"] != "gone"


def test_what_cannot_be_kept_is_told(alice: InProcess, bob: InProcess, tmp_path: Path):
    bob.enter_room()
    (tmp_path / "state" / "simplexmcp").write_text("no folder")
    assert "Cannot write" in alice.refused("enter", room="hall", **MODEL)["error"]
    (tmp_path / "state" / "simplexmcp").unlink()
    alice.call("enter", room="hall", **MODEL)


def test_who_holds_a_persona_is_noted_by_each_server(server: Callable[..., Server], path: Path):
    agent = server()
    me = agent.enter_room().agent_id
    assert seats.seated(str(path), me) == agent.process.pid
    assert seats.seated(str(path), "another") is None
    agent.close()
    assert seats.seated(str(path), me) is None


def test_the_reference_programs_clients_can_have_its_tools_alone(monkeypatch: pytest.MonkeyPatch):
    assert tuple(tools(Settings("x"))) == (*ORDER, "enter")
    monkeypatch.setenv("SIMPLEXMCP_ROOMS_TOOLS", "reference")
    assert tuple(tools(read_settings())) == ORDER
    monkeypatch.setenv("SIMPLEXMCP_ROOMS_TOOLS", "few")
    with pytest.raises(UserError, match="SIMPLEXMCP_ROOMS_TOOLS"):
        read_settings()
