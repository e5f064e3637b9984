"""Getting the core ready: what it is told, in which order, and what is refused before anything is done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.core.api import ChatApi
from simplexmcp.errors import CoreError, LinkLost, UserError, core_error
from simplexmcp.sandbox.network import Network
from simplexmcp.startup import CoreSetup, Known, prepare_core

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEY = "d6y7jNf2QVk0nH351ZQuLFI11aTOxVJ-qENs9L_0Rpc"
SMP = f"smp://{KEY}=@127.0.0.1:7001"
OTHER = f"smp://{KEY}=:secret@relay.example,second.example"
XFTP = f"xftp://{KEY}=@127.0.0.1:7002"
NEW_USER = (
    '{"profile":{"displayName":"My Agent","fullName":"","peerType":"bot"},'
    '"pastTimestamp":false,"userChatRelay":false,"clientService":false}'
)


class Core:
    """A simulated core that is reached at once, and what it was told. `answer` may answer first."""

    def __init__(self) -> None:
        self.model = Network(lambda: 0.0, population=False).core("agent")
        self.told: list[str] = []
        self.answer: Callable[[str], dict[str, Any] | None] = lambda _: None
        self.down_since = None
        self.api = ChatApi(self)  # type: ignore[arg-type]

    async def send(self, command: str) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        self.told.append(command)
        response = self.answer(command) or self.model.command(command)
        if response["type"] == "chatCmdError":
            raise core_error(response["chatError"])
        return response

    def words(self) -> list[str]:
        """The first words of what it was told, since the last look."""
        told, self.told = self.told, []
        return [command.split(" ")[0] for command in told]

    async def ready(self, **setup: Any) -> dict[str, Any]:
        return await prepare_core(self.api, made(**setup))


def made(**setup: Any) -> CoreSetup:
    return CoreSetup(**{"display_name": "My Agent", "temp_folder": None, **setup})


def error(tag: str, **fields: Any) -> dict[str, Any]:
    return {"type": "chatCmdError", "chatError": {"type": "error", "errorType": {"type": tag, **fields}}}


async def test_a_new_core_gets_its_user_before_it_starts_and_a_known_one_keeps_its_profile(tmp_path: Path) -> None:
    core = Core()
    user = await core.ready(temp_folder=tmp_path / "tmp")
    assert core.told == [
        "/version",
        "/user",
        f"/_create user {NEW_USER}",
        "/network socks=off smp-proxy=always smp-proxy-fallback=protected",
        f"/_temp_folder {tmp_path}/tmp",
        "/_start",
    ]
    core.words()
    again = await core.ready(display_name="Another Name", temp_folder=tmp_path / "tmp")
    assert core.words() == ["/version", "/user", "/network", "/_temp_folder", "/_start"]
    assert again["profile"] == user["profile"]


async def test_a_core_on_another_machine_is_told_no_folder() -> None:
    core = Core()
    await core.ready(temp_folder=None)
    assert "/_temp_folder" not in core.words()


async def test_own_relays_are_set_right_after_the_start_and_again_only_when_they_differ() -> None:
    core = Core()
    await core.ready(smp_servers=(SMP,), xftp_servers=(XFTP,))
    assert core.told[-4:] == ["/_start", "/_servers 1", f"/smp {SMP}", f"/xftp {XFTP}"]
    core.words()
    await core.ready(smp_servers=(SMP,), xftp_servers=(XFTP,))
    assert core.words()[-2:] == ["/_start", "/_servers"]
    await core.ready(smp_servers=(SMP.replace("=@", "@"),))
    assert core.words()[-2:] == ["/_start", "/_servers"]
    await core.ready(smp_servers=(OTHER, SMP), xftp_servers=(XFTP,))
    assert core.told[-2:] == ["/_servers 1", f"/smp {OTHER} {SMP}"]
    core.words()
    await core.ready()
    assert core.words()[-1] == "/_start"


@pytest.mark.parametrize(
    "preset",
    [
        {"server": f"smp://{KEY}=@public.example", "enabled": True, "deleted": False},
        {"server": SMP, "enabled": False, "deleted": False},
        {"server": SMP, "enabled": True, "deleted": True},
    ],
)
async def test_relays_beside_the_own_ones_or_switched_off_are_a_difference(preset: dict[str, Any]) -> None:
    core = Core()
    own = {"server": SMP, "enabled": True, "deleted": False}
    entries = [{"operator": {}, "smpServers": [preset]}]
    if preset["server"] != SMP:
        entries.append({"smpServers": [own]})
    core.answer = lambda text: {"type": "userServers", "userServers": entries} if text.startswith("/_servers") else None
    await core.ready(smp_servers=(SMP,))
    assert core.told[-1] == f"/smp {SMP}"


async def test_a_relay_that_the_core_does_not_take_is_one_line_without_its_password() -> None:
    core = Core()
    core.answer = lambda text: error("commandError", message="bad") if text.startswith("/smp") else None
    with pytest.raises(UserError) as caught:
        await core.ready(smp_servers=(OTHER,), xftp_servers=(XFTP,))
    assert "--smp-server (relay.example,second.example)" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.code == 2
    assert not any(text.startswith("/xftp") for text in core.told)


@pytest.mark.parametrize(
    "answer", [{}, {"userServers": None}, {"userServers": [7]}, {"userServers": {"smpServers": []}}]
)
async def test_an_answer_without_relays_is_the_cores_error_and_sets_nothing(answer: dict[str, Any]) -> None:
    core = Core()
    core.answer = lambda text: {"type": "userServers", **answer} if text.startswith("/_servers") else None
    with pytest.raises(CoreError, match="userServers"):
        await core.ready(smp_servers=(SMP,))
    assert "/smp" not in core.words()


async def test_strange_entries_among_the_relays_are_a_difference_and_no_defect() -> None:
    core = Core()
    odd = {"type": "userServers", "userServers": [{"smpServers": ["x", None, {}]}, {"smpServers": None}]}
    core.answer = lambda text: odd if text.startswith("/_servers") else None
    await core.ready(smp_servers=(SMP,))
    assert core.told[-1] == f"/smp {SMP}"


@pytest.mark.parametrize("version", ["6.5.3.0", "6", "", "5.9\x1b[31m"])
async def test_an_old_core_is_refused_with_its_version_before_anything_else(version: str) -> None:
    core = Core()
    core.answer = lambda text: (
        {"type": "versionInfo", "versionInfo": {"version": version}} if text == "/version" else None
    )
    with pytest.raises(UserError, match="or later: update it") as caught:
        await core.ready()
    assert str(caught.value).isprintable()
    assert core.told == ["/version"]


@pytest.mark.parametrize("version", ["7.0.0.6", "7.1", "10.0.1"])
async def test_a_core_of_7_0_or_later_will_do(version: str) -> None:
    core = Core()
    core.answer = lambda text: (
        {"type": "versionInfo", "versionInfo": {"version": version}} if text == "/version" else None
    )
    assert (await core.ready())["userId"] == 1


async def test_a_new_user_is_an_agent_where_the_core_knows_the_word_and_a_bot_elsewhere() -> None:
    core = Core()  # the simulated core is 7.0: it refuses the word, as a newer one might
    core.answer = lambda text: (
        {"type": "versionInfo", "versionInfo": {"version": "7.1.0.0"}} if text == "/version" else None
    )
    assert (await core.ready())["profile"]["peerType"] == "bot"
    made = [command for command in core.told if command.startswith("/_create user")]
    assert ['"peerType":"agent"' in command for command in made] == [True, False]
    older = Core()
    await older.ready()
    assert not any('"peerType":"agent"' in command for command in older.told)


async def test_a_person_on_a_core_of_somebody_else_is_refused_untouched() -> None:
    core = Core()
    await core.api.create_user("Alice", "human")
    core.words()
    with pytest.raises(UserError) as caught:
        await core.ready(own_database=False)
    assert str(caught.value) == (
        'The core\'s user "Alice" is a person; give the agent a database of its own: '
        "simplex-chat -d … --create-bot-display-name …"
    )
    assert core.words() == ["/version", "/user"]


async def test_the_user_in_the_agents_own_database_is_the_agent_whatever_its_profile_says() -> None:
    core = Core()
    await core.api.create_user("Alice", "human")
    assert (await core.ready())["localDisplayName"] == "Alice"


async def test_a_name_that_the_core_refuses_is_answered_with_one_that_fits() -> None:
    core = Core()
    with pytest.raises(UserError) as caught:
        await core.ready(display_name="#bad'name")
    told = json.loads(core.told[-1].removeprefix("/_create user "))
    assert told["profile"]["displayName"] == "#bad'name"
    assert '--display-name "' in str(caught.value)
    assert caught.value.code == 2


async def test_the_same_core_is_known_again_and_prepared_as_at_the_start(tmp_path: Path) -> None:
    core = Core()
    known = await _known(core)
    setup = made(temp_folder=tmp_path, smp_servers=(SMP,), own_database=False)
    await prepare_core(core.api, setup, known)
    words = ["/version", "/user", "/network", "/_temp_folder", "/_start", "/_members", "/_servers", "/smp"]
    assert core.words() == words


@pytest.mark.parametrize("other", ["no user", "another user", "no such chat", "another chat"])
async def test_another_core_is_refused_after_a_lost_link_and_nothing_is_made_in_it(other: str) -> None:
    core = Core()
    known = await _known(core)
    if other == "no user":
        core.answer = lambda text: error("noActiveUser") if text == "/user" else None
    elif other == "another user":
        known = Known(2, known.group_id, known.member_id)
    elif other == "no such chat":
        known = Known(1, 99, known.member_id)
    else:
        known = Known(1, known.group_id, "of another group")
    with pytest.raises(UserError, match="another database"):
        await prepare_core(core.api, made(smp_servers=(SMP,)), known)
    assert not {"/_create", "/smp", "/_servers"} & set(core.words())


async def test_a_link_that_goes_while_the_relays_are_set_is_no_fault_of_theirs() -> None:
    core = Core()

    def lost(text: str) -> None:
        if text.startswith("/smp"):
            raise LinkLost("link/lost", "gone")

    core.answer = lost
    with pytest.raises(LinkLost):
        await core.ready(smp_servers=(SMP,))


async def _known(core: Core) -> Known:
    await core.ready()
    group = await core.api.new_group({"displayName": "My Agent", "fullName": ""})
    core.words()
    return Known(1, group["groupId"], group["membership"]["memberId"])
