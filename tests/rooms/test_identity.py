"""Personas: how one is made, taken up again, and lost."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

import pytest

from tests.rooms.client import MODEL, Persona

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rooms.client import InProcess, Server

    Runtimes = Callable[..., InProcess]
    Servers = Callable[..., Server]

OPUS = {"brand": "Anthropic", "model": "Claude Opus", "version": "5.0"}


def test_a_new_persona_is_named_after_its_model_and_bound_at_epoch_one(alice: InProcess) -> None:
    made = alice.call("create_persona", **OPUS, description="writes")
    assert list(made) == [
        *("agent_id", "resume_word", "brand", "model", "version", "persona_description", "runtime_epoch"),
        *("save_this", "next", "server_stale"),
    ]
    assert re.fullmatch(r"anthropic-claude-opus-v5-0-[0-9a-f]{6}", made["agent_id"])
    assert re.fullmatch(r"[a-z]+-[a-z]+-\d{1,5}", made["resume_word"])
    assert int(made["resume_word"].rpartition("-")[2]) < 65_536
    assert {key: made[key] for key in OPUS} == OPUS
    assert (made["persona_description"], made["runtime_epoch"]) == ("writes", 1)
    assert isinstance(made["server_stale"], bool)
    assert alice.refused("list_agents")["error"].count("join a room first with join_room") == 1


@pytest.mark.parametrize(
    ("model", "stem"),
    [
        ({"brand": "  ACME Inc.  ", "model": "GPT--5_x", "version": "v5.0!"}, "acme-inc-gpt-5-x-vv5-0"),
        ({"brand": "Ärzte", "model": "日本x", "version": "1"}, "rzte-x-v1"),
    ],
)
def test_the_id_is_made_of_letters_digits_and_hyphens_and_the_model_is_kept_as_given(
    alice: InProcess, model: dict[str, str], stem: str
) -> None:
    made = alice.call("create_persona", **model)
    assert made["agent_id"].rpartition("-")[0] == stem
    assert {key: made[key] for key in model} == model


@pytest.mark.parametrize("name", ["brand", "model", "version"])
@pytest.mark.parametrize("text", ["---", " ", "日本"])
def test_a_part_of_the_model_without_any_plain_letter_is_refused(alice: InProcess, name: str, text: str) -> None:
    assert name in alice.refused("create_persona", **(OPUS | {name: text}))["error"]


def test_an_id_that_would_be_too_long_says_how_much_to_shorten(alice: InProcess) -> None:
    error = alice.refused("create_persona", brand="b" * 100, model="m" * 100, version="1")["error"]
    assert "exceeds 200" in error
    assert "by 11 characters" in error
    made = alice.call("create_persona", brand="b" * 100, model="m" * 89, version="1")
    assert len(made["agent_id"]) == 200


def test_a_runtime_holds_one_persona(alice: InProcess, bob: InProcess) -> None:
    first, other = alice.persona(), bob.persona()
    assert "already holds" in alice.refused("create_persona", **MODEL)["error"]
    error = alice.refused("resume_persona", agent_id=other.agent_id, resume_word=other.resume_word, **MODEL)["error"]
    assert "already holds" in error
    assert first.agent_id in error
    assert alice.call("whoami")["agent_id"] == first.agent_id


def test_a_resume_takes_the_persona_over_and_fences_the_earlier_holder(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    resumed = bob.resume(persona)
    assert list(resumed)[:11] == [
        *("agent_id", "runtime_epoch", "brand", "model", "version", "persona_description"),
        *("reattached", "fenced", "next", "poller_cmd", "server_build"),
    ]
    assert (resumed["runtime_epoch"], resumed["reattached"]) == (2, False)
    assert f"--agent '{persona.agent_id}'" in resumed["poller_cmd"]
    assert "--epoch '2'" in resumed["poller_cmd"]
    lost = alice.refused("post_message", content="still me?")
    assert list(lost) == [
        *("code", "terminal", "agent_id", "your_epoch", "current_epoch", "error", "recover"),
    ]
    assert (lost["code"], lost["terminal"]) == ("persona_lost", True)
    assert (lost["agent_id"], lost["your_epoch"], lost["current_epoch"]) == (persona.agent_id, 1, 2)
    assert "resume_persona" in lost["recover"]
    assert "create_persona" in lost["recover"]
    assert "no persona bound" in alice.refused("post_message", content="again")["error"]
    bob.call("join_room", room="hall")
    assert bob.call("catch_up")["messages"] == []


def test_after_the_loss_the_session_may_resume_or_create_again(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.resume(persona)
    assert alice.refused("leave_room")["code"] == "persona_lost"
    assert alice.resume(persona)["runtime_epoch"] == 3
    assert bob.refused("create_room", name="mine")["code"] == "persona_lost"
    assert bob.persona().agent_id != persona.agent_id


def test_an_unnoticed_loss_is_disclosed_by_the_next_resume(alice: InProcess, bob: InProcess) -> None:
    persona = alice.persona()
    bob.resume(persona)
    resumed = alice.resume(persona)
    assert (resumed["runtime_epoch"], resumed["previous_epoch"], resumed["reattached"]) == (3, 1, False)


def test_resuming_what_one_holds_changes_nothing(alice: InProcess) -> None:
    persona = alice.enter_room()
    again = alice.resume(persona)
    assert list(again)[:10] == [
        *("agent_id", "runtime_epoch", "brand", "model", "version", "persona_description"),
        *("reattached", "note", "poller_cmd", "server_build"),
    ]
    assert (again["reattached"], again["runtime_epoch"]) == (True, 1)
    assert alice.call("whoami")["joined"] is True


def test_a_wrong_word_changes_nothing(alice: InProcess, bob: InProcess) -> None:
    persona = alice.persona()
    for word in ("wrong-word-1", persona.resume_word.upper(), persona.resume_word + " ", "é\ud800"):
        error = bob.refused("resume_persona", agent_id=persona.agent_id, resume_word=word, **MODEL)
        assert list(error) == ["error"]
        assert "resume word" in error["error"]
        assert "resume rejected" in error["error"]
        mine = alice.refused("resume_persona", agent_id=persona.agent_id, resume_word=word, **MODEL)["error"]
        assert "still holds" in mine
        assert "resume word" in mine
    assert alice.call("whoami")["runtime_epoch"] == 1
    assert "persona_lost" not in alice.call("whoami")
    assert bob.call("whoami") == {"bound": False, "joined": False}


def test_the_word_counts_before_the_model(alice: InProcess, bob: InProcess) -> None:
    persona = alice.persona()
    error = bob.refused("resume_persona", agent_id=persona.agent_id, resume_word="wrong-word-1", **OPUS)
    assert "code" not in error


def test_another_model_needs_another_persona_and_learns_where_the_old_one_was(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room("one")
    for room in ("two", "left"):
        alice.call("create_room", name=room)
        alice.call("join_room", room=room)
    alice.call("leave_room")
    for client in (alice, bob):
        refusal = client.refused(
            "resume_persona",
            agent_id=persona.agent_id,
            resume_word=persona.resume_word,
            **(MODEL | {"version": "1.00"}),
        )
        assert list(refusal) == [
            *("code", "agent_id", "persona_model", "your_model", "persona_rooms", "error", "recover"),
        ]
        assert refusal["code"] == "new_persona_required"
        assert refusal["persona_model"] == MODEL
        assert refusal["your_model"] == MODEL | {"version": "1.00"}
        assert refusal["persona_rooms"] == ["one", "two"]
        assert "create_persona" in refusal["recover"]
    assert "persona_lost" not in alice.call("whoami")


@pytest.mark.parametrize("agent_id", ["nobody", "a\x00b", "\ud800", "human-anna"])
def test_only_a_models_persona_can_be_resumed(alice: InProcess, agent_id: str) -> None:
    with alice.database.write():
        alice.database.run("INSERT INTO agents (id, is_human) VALUES ('human-anna', 1)")
    error = alice.refused("resume_persona", agent_id=agent_id, resume_word="a-b-1", **MODEL)["error"]
    assert "no LLM persona" in error


def test_the_word_is_never_shown_again(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.enter_room()
    alice.call("post_message", content="hello", to=[persona.agent_id])
    texts = [
        client.text(tool, **arguments)[1]
        for client in (alice, bob)
        for tool, arguments in (
            ("whoami", {}),
            ("list_agents", {}),
            ("list_rooms", {}),
            ("catch_up", {}),
            ("read_history", {}),
            ("server_info", {}),
            ("join_room", {"room": "hall"}),
            ("resume_persona", {"agent_id": persona.agent_id, "resume_word": "wrong-word-1", **MODEL}),
        )
    ]
    texts.append(alice.text("resume_persona", agent_id=persona.agent_id, resume_word=persona.resume_word, **MODEL)[1])
    assert not [text for text in texts if persona.resume_word in text]


def test_the_word_is_in_no_line_of_the_servers_log(server: Servers) -> None:
    first, second = server(), server()
    persona = first.persona()
    second.resume(persona)
    second.text("resume_persona", agent_id=persona.agent_id, resume_word="wrong-word-1", **MODEL)
    assert first.close() == second.close() == 0
    log = "\n".join(first.errors + second.errors)
    assert "ready" in log
    assert persona.resume_word not in log


def test_a_persona_whose_record_is_gone_is_lost_with_no_epoch(alice: InProcess) -> None:
    persona = alice.persona()
    with alice.database.write():
        alice.database.run("DELETE FROM agents")
    shown = alice.call("whoami")
    assert (shown["persona_lost"], shown["your_epoch"], shown["current_epoch"]) == (True, 1, None)
    assert shown["brand"] is None
    lost = alice.refused("create_room", name="mine")
    assert (lost["code"], lost["current_epoch"]) == ("persona_lost", None)
    assert (
        "no LLM persona"
        in alice.refused("resume_persona", agent_id=persona.agent_id, resume_word=persona.resume_word, **MODEL)["error"]
    )


def test_whoami_says_where_the_session_stands(alice: InProcess, bob: InProcess) -> None:
    assert alice.call("whoami") == {"bound": False, "joined": False}
    persona = alice.persona()
    identity = ("bound", "agent_id", "brand", "model", "version", "persona_description", "runtime_epoch")
    assert list(alice.call("whoami")) == [*identity, "joined"]
    alice.call("create_room", name="hall", description="about")
    alice.call("join_room", room="hall", role="scribe")
    bob.enter_room()
    bob.call("post_message", content="hello")
    here = alice.call("whoami")
    place = ("room_id", "room_name", "room_description", "role", "last_read_seq", "unread")
    assert list(here) == [*identity, "joined", *place]
    assert here["agent_id"] == persona.agent_id
    assert [here[key] for key in place] == [1, "hall", "about", "scribe", 0, 1]


def test_whoami_after_the_room_was_deleted_names_the_way_on(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.persona()
    bob.call("delete_room", room="hall", confirm=True)
    here = alice.call("whoami")
    assert (here["bound"], here["joined"]) == (True, False)
    assert "list_rooms" in here["note"]
    assert "create_room" in here["note"]
    assert "rejoin" not in here["note"]
    assert "note" not in alice.call("whoami")


def test_a_taken_over_session_still_reads_and_is_told(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.resume(persona)
    told = {"persona_lost": True, "your_epoch": 1, "current_epoch": 2}
    for tool in ("list_agents", "list_claims"):
        assert list(alice.call(tool).items())[:3] == list(told.items())
    here = alice.call("whoami")
    assert {key: here[key] for key in told} == told
    assert list(here).index("persona_lost") == list(here).index("runtime_epoch") + 1


def test_personas_survive_the_server_that_made_them(server: Servers) -> None:
    first = server()
    persona = first.enter_room()
    first.call("post_message", content="for later")
    assert first.close() == 0
    second = server()
    assert second.resume(persona)["runtime_epoch"] == 2
    joined = second.call("join_room", room="hall")
    assert (joined["new_membership"], joined["last_read_seq"]) == (False, 1)


def test_an_id_that_is_taken_is_drawn_again(
    alice: InProcess, runtime: Runtimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["000001", "000001", "000001", "000002"])
    monkeypatch.setattr(secrets, "token_hex", lambda _size: next(drawn, "000001"))
    first = alice.persona()
    assert first.agent_id.endswith("-000001")
    assert runtime().persona().agent_id.endswith("-000002")
    assert "No free persona id" in runtime().refused("create_persona", **MODEL)["error"]
    assert alice.database.value("SELECT resume_word FROM agents WHERE id = ?", first.agent_id) == first.resume_word


def test_each_persona_gets_a_word_and_an_id_of_its_own(runtime: Runtimes) -> None:
    made: set[Persona] = {runtime().persona() for _ in range(20)}
    assert len({persona.agent_id for persona in made}) == 20
    assert len({persona.resume_word for persona in made}) == 20
