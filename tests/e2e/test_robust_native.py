"""`--core native` through the whole server, with a small C library in the place of libsimplex (case U20)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from simplex_chat import _native

from tests.core.fakelib import LibraryCore, compiled
from tests.e2e.robust import failure, nothing_left, open_files, tasks
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from tests.e2e.world import World


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent.parent / "core" / "fakelib.c"
    return compiled(source, tmp_path_factory.mktemp("libs"))


@pytest.fixture(autouse=True)
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader as at the start of a process."""
    for name in ("_lib", "_libc", "_backend"):
        monkeypatch.setattr(_native, name, None)


async def native(world: World, library: Path, monkeypatch: pytest.MonkeyPatch) -> LibraryCore:
    """The library's core is the agent's core of the network."""
    model = world.network.core("agent")

    async def answer(command: str) -> str:
        response = model.command(command)
        if response["type"] == "chatCmdError":
            return json.dumps({"error": response["chatError"]})
        return json.dumps({"result": response})

    there = LibraryCore(answer)
    model.subscribe(lambda event: there.say.send_nowait(json.dumps({"result": event})))
    socket = world.folder / "core"
    monkeypatch.setenv("FAKE_CORE", str(socket))
    monkeypatch.setenv("SIMPLEX_LIBS_DIR", str(library.parent))
    await world.nursery.start(there.serve, socket)
    return there


async def test_the_server_on_the_library_connects_sends_and_stops_as_on_a_port(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world, world.person("Bob") as bob:
        there = await native(world, library, monkeypatch)
        key = tmp_path / "key"
        key.write_text("a key of blanks \nsecond line\n")
        key.chmod(0o600)
        async with world.flow(core="native", database_key_file=key) as flow:
            assert there.migrated == [str(tmp_path / "data" / "simplex"), "a key of blanks ", "yesUp"]
            assert not any("Warning" in line for line in flow.server.lines.all)
            group, chat = await join_trail(flow, bob)
            result = await flow.result_of("send", "`hello`", f"approve {chat} 2", chat=chat, text="hello")
            assert result["status"] == "done"
            await bob.see(group, "hello")
            await bob.say(group, "welcome")
            received = await flow.agent.call("receive", chat=chat, wait=10)
            assert [m["text"] for m in received["messages"]] == ["welcome"]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: flow.agent.call("send", chat=chat, text="late"))
                await flow.card("`late`")
                flow.server.stop.asked.set()
            await flow.server.ended.wait()
            assert await flow.card("Cancelled: the server stopped.")
        assert there.calls[0] == "migrate"
        assert there.calls[-2:] == ["/_stop", "close"]
        assert there.most_receiving == 1


async def test_a_start_that_fails_after_the_library_is_open_stops_and_closes_it(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world:
        there = await native(world, library, monkeypatch)
        refusal: dict[str, Any] = {"type": "error", "errorType": {"type": "chatNotStarted"}}
        for step in ("/version", "/user", "/_create user", "/network", "/_start", "/_groups", "/_create link"):
            world.network.faults.fail(step, refusal, core="agent")
            error = await failure(world.options(core="native"))
            assert str(error) == "The SimpleX core refused to start: error/chatNotStarted"
            assert there.calls[-2:] == ["/_stop", "close"], step
        world.network.core("agent").started = False


async def test_no_library_or_a_key_that_others_read_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world:
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv("SIMPLEX_LIBS_DIR", str(tmp_path / "empty"))
        error = await failure(world.options(core="native"))
        assert "could not be loaded from SIMPLEX_LIBS_DIR" in str(error)
        assert error.code == 1
        key = tmp_path / "key"
        key.write_text("secret")
        key.chmod(0o644)
        error = await failure(world.options(core="native", database_key_file=key))
        assert "Others may read" in str(error)
        assert "secret:" not in str(error)


async def test_a_stop_in_the_middle_of_the_start_closes_the_library(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from simplexmcp import serve

    async with open_world(tmp_path) as world:
        there = await native(world, library, monkeypatch)
        files, running = open_files(), tasks()
        stop = serve.Stop()
        with stop.everything:
            there.on_call = lambda call: stop.everything.cancel() if call == "/user" else None
            await serve.serve(world.options(core="native"), stop)
        await nothing_left(running, files)
        assert there.calls == ["migrate", "/version", "/user", "/_stop", "close"]


def listening() -> set[int]:
    """The TCP ports on which this process listens."""
    ours = {str(what) for what in open_files().values()}
    rows = [
        row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/self/net/{name}").read_text().split("\n")[1:]
    ]
    return {
        int(row[1].rpartition(":")[2], 16) for row in rows if row and row[3] == "0A" and f"socket:[{row[9]}]" in ours
    }


async def test_with_the_library_there_is_no_port_to_the_core(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world:
        await native(world, library, monkeypatch)
        before = listening()
        async with world.flow(core="native") as flow:
            url = (tmp_path / "data" / "server.json").read_text()
            ports = listening() - before
            assert len(ports) == 1
            assert json.loads(url)["port"] in ports
            assert flow.server is not None
