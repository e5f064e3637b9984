"""The native link over a small C library with libsimplex's functions, whose core is the test."""

from __future__ import annotations

import http.client
import io
import json
import socket
import urllib.error
import urllib.request
import zipfile
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from simplex_chat import _native

from simplexmcp.core import native
from simplexmcp.core.native import open_native
from simplexmcp.errors import CoreError, LinkLost, Refused, UserError
from tests.core.fakelib import LIBRARY, LibraryCore, compiled

if TYPE_CHECKING:
    import ctypes
    from collections.abc import AsyncIterator
    from pathlib import Path


OK = '{"result":{"type":"cmdOk"}}'


async def _ok(_: str) -> str:
    return OK


@asynccontextmanager
async def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_command: Any = _ok) -> AsyncIterator[LibraryCore]:
    """The core at its socket."""
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            there = LibraryCore(on_command)
            path = tmp_path / "core"
            monkeypatch.setenv("FAKE_CORE", str(path))
            await nursery.start(there.serve, path)
            yield there
            nursery.cancel_scope.cancel()


@pytest.fixture
async def there(library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LibraryCore]:
    async with core(tmp_path, monkeypatch) as made:
        yield made


async def test_a_database_is_opened_and_migrated_up_with_its_key(there: LibraryCore, tmp_path: Path) -> None:
    async with open_native(tmp_path / "däta" / "simplex", "a key"):
        assert there.migrated == [str(tmp_path / "däta" / "simplex"), "a key", "yesUp"]


async def test_commands_are_answered_and_errors_have_their_tag(there: LibraryCore, tmp_path: Path) -> None:
    async def answer(command: str) -> str:
        if command == "/no":
            return '{"error":{"type":"errorStore","storeError":{"type":"groupLinkNotFound"}}}'
        return json.dumps({"result": {"type": "cmdOk", "echo": command}})

    there.on_command = answer
    async with open_native(tmp_path / "simplex") as link:
        assert await link.send("/ü 🙂\n") == {"type": "cmdOk", "echo": "/ü 🙂\n"}
        with pytest.raises(CoreError) as caught:
            await link.send("/no")
        assert caught.value.tag == "errorStore/groupLinkNotFound"
        assert link.down_since is None


async def test_events_come_in_order_asynchronous_errors_among_them(there: LibraryCore, tmp_path: Path) -> None:
    error = {"type": "error", "errorType": {"type": "noConnectionUser"}}
    async with open_native(tmp_path / "simplex") as link:
        for n in range(50):
            there.say.send_nowait(json.dumps({"result": {"type": "event", "n": n}}))
        there.say.send_nowait(json.dumps({"error": error}))
        assert [(await link.events.receive())["n"] for _ in range(50)] == list(range(50))
        assert await link.events.receive() == {"type": "chatError", "chatError": error}
    assert there.most_receiving == 1
    assert all(0 < wait <= 1_000_000 for wait in there.waits)


async def test_a_slow_command_does_not_hold_up_others(there: LibraryCore, tmp_path: Path) -> None:
    release = trio.Event()

    async def answer(command: str) -> str:
        if command == "/slow":
            await release.wait()
        return OK

    there.on_command = answer
    async with open_native(tmp_path / "simplex") as link, trio.open_nursery() as nursery:
        nursery.start_soon(link.send, "/slow")
        for _ in range(20):
            await link.send("/quick")
        assert not release.is_set()
        release.set()


async def test_a_cancelled_wait_ends_at_once_and_leaves_the_link_usable(there: LibraryCore, tmp_path: Path) -> None:
    release, came = trio.Event(), trio.Event()

    async def answer(command: str) -> str:
        if command == "/slow":
            came.set()
            await release.wait()
        return OK

    there.on_command = answer
    async with open_native(tmp_path / "simplex") as link:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.send, "/slow")
            await came.wait()
            nursery.cancel_scope.cancel()
        assert await link.send("/quick") == {"type": "cmdOk"}
        release.set()
    assert there.calls[-2:] == ["/_stop", "close"]


async def test_the_end_stops_the_core_and_closes_the_store_after_the_last_call(
    there: LibraryCore, tmp_path: Path, library: ctypes.CDLL
) -> None:
    async with open_native(tmp_path / "simplex") as link:
        await link.send("/user")
    assert there.calls == ["migrate", "/user", "/_stop", "close"]
    assert library.fake_busy() == 0
    waits = len(there.waits)
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert len(there.waits) == waits
    with pytest.raises(trio.EndOfChannel):
        await link.events.receive()
    with pytest.raises(LinkLost) as caught:
        await link.send("/user")
    assert caught.value.tag == "link/down"


async def test_an_error_of_the_body_leaves_bare_and_the_core_is_closed(there: LibraryCore, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_native(tmp_path / "simplex"):
            raise ZeroDivisionError
    assert there.calls == ["migrate", "/_stop", "close"]


async def test_a_cancelled_body_still_closes_the_core(there: LibraryCore, tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with open_native(tmp_path / "simplex") as link:
            await link.send("/user")
            scope.cancel()
            await trio.sleep_forever()
    assert there.calls == ["migrate", "/user", "/_stop", "close"]


async def test_a_core_that_hangs_at_its_end_is_left_after_a_deadline(
    there: LibraryCore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("simplexmcp.core.native._STOP_WAIT", 0.05)
    monkeypatch.setattr("simplexmcp.core.native._CLOSE_WAIT", 0.05)
    release = trio.Event()

    async def answer(_: str) -> str:
        await release.wait()
        return OK

    there.on_command = answer
    async with open_native(tmp_path / "simplex"):
        pass
    assert "close" not in there.calls, "the store is not closed under a command"
    assert "still at work" in caplog.text
    release.set()


async def test_errors_at_the_end_are_logged(
    there: LibraryCore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(_: str) -> str:
        return '{"error":{"type":"error","errorType":{"type":"internalError","message":"m"}}}'

    there.on_command = answer
    there.close_answer = "cannot close"
    async with open_native(tmp_path / "simplex"):
        pass
    assert "error/internalError" in caplog.text
    assert "cannot close" in caplog.text


@pytest.mark.parametrize("odd", ["no json", "[]", '{"result":7}', "", None])
async def test_an_answer_that_is_none_is_an_error_of_the_core(
    odd: str | None, there: LibraryCore, tmp_path: Path
) -> None:
    async def answer(command: str) -> str | None:
        return odd if command == "/x" else OK

    there.on_command = answer
    async with open_native(tmp_path / "simplex") as link:
        with pytest.raises(CoreError) as caught:
            await link.send("/x")
        assert caught.value.tag == "unexpected/unreadable"
        assert await link.send("/y") == {"type": "cmdOk"}


@pytest.mark.parametrize("odd", ["no json", "[]", '{"result":7}', None])
async def test_an_event_that_is_none_is_logged_and_ignored(
    odd: str | None,
    there: LibraryCore,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "_RECEIVE_WAIT", 0.01)  # it rests so long after each
    async with open_native(tmp_path / "simplex") as link:
        there.say.send_nowait(odd)
        there.say.send_nowait('{"result":{"type":"after"}}')
        assert (await link.events.receive())["type"] == "after"
    assert "ignored" in caplog.text


async def test_what_no_link_can_carry_is_refused_before_it_is_sent(there: LibraryCore, tmp_path: Path) -> None:
    async with open_native(tmp_path / "simplex") as link:
        for command in ("/x \ud800", "/x \0 y"):
            with pytest.raises(Refused):
                await link.send(command)
    assert there.calls == ["migrate", "/_stop", "close"]


async def test_every_text_of_the_library_is_freed_once(
    there: LibraryCore, tmp_path: Path, library: ctypes.CDLL
) -> None:
    async def answer(command: str) -> str | None:
        return None if command.endswith("7") else json.dumps({"result": {"type": "cmdOk", "pad": "x" * 10_000}})

    there.on_command = answer
    async with open_native(tmp_path / "simplex") as link, trio.open_nursery() as nursery:

        async def send(n: int) -> None:
            try:
                await link.send(f"/n {n}")
            except CoreError:
                assert n % 10 == 7
            if n % 50 == 0:
                there.say.send_nowait('{"result":{"type":"event"}}')

        for n in range(500):
            nursery.start_soon(send, n)
    assert library.fake_allocated() > 450
    assert library.fake_freed() == library.fake_allocated()
    assert library.fake_busy() == 0


MIGRATIONS = {
    '{"type":"errorNotADatabase","dbFile":"/d/simplex_chat.db"}': "/d/simplex_chat.db does not open: its key",
    '{"type":"errorMigration","dbFile":"/d/a.db","migrationError":{"type":"downgrade"}}': "newer SimpleX",
    '{"type":"errorMigration","dbFile":"/d/a.db","migrationError":{"type":"migrationError"}}': "restore it",
    '{"type":"errorSQL","dbFile":"/d/a.db","migrationSQLError":"disk\\nfull"}': "/d/a.db does not open: disk full",
    '{"type":"agentError","agentError":{}}': "do not open (agentError)",
    '{"type":"invalidConfirmation"}': "do not open (invalidConfirmation)",
    "no json": "not of a version that works",
}


@pytest.mark.parametrize("answer", MIGRATIONS)
async def test_databases_that_do_not_open_are_one_clear_line(
    answer: str, there: LibraryCore, tmp_path: Path, library: ctypes.CDLL
) -> None:
    there.migration = answer
    with pytest.raises(UserError) as caught:
        async with open_native(tmp_path / "simplex", "secret key"):
            pass
    text = str(caught.value)
    assert MIGRATIONS[answer] in text
    assert text.isprintable()
    assert "secret key" not in text
    assert there.calls == ["migrate"]
    assert library.fake_freed() == library.fake_allocated()


async def test_a_migration_without_an_answer_is_one_clear_line(there: LibraryCore, tmp_path: Path) -> None:
    there.migration = None
    with pytest.raises(UserError, match="a null pointer"):
        async with open_native(tmp_path / "simplex"):
            pass


async def test_a_key_that_c_would_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="NUL"):
        async with open_native(tmp_path / "simplex", "a\0b"):
            pass


def _zip(*files: tuple[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files:
            archive.writestr(name, content)
    return data.getvalue()


class Download(io.BytesIO):
    """What urlopen gives."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.headers = {"Content-Length": str(len(data))}


async def _failure(tmp_path: Path, said: list[str] | None = None) -> str:
    lines: list[str] = [] if said is None else said
    with pytest.raises(UserError) as caught:
        async with open_native(tmp_path / "simplex", say=lines.append):
            pass
    assert caught.value.code == 1
    assert str(caught.value).isprintable()
    assert "--core ws://" in str(caught.value)
    assert "SIMPLEX_LIBS_DIR" in str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value)


NO_INTERNET = {
    "the host is not known": urllib.error.URLError(socket.gaierror(-2, "Name or service not known")),
    "nothing answers": TimeoutError("timed out"),
    "it is not there": urllib.error.HTTPError("https://x", 404, "Not Found", http.client.HTTPMessage(), None),
    "it ends too soon": http.client.IncompleteRead(b"", 10),
}


@pytest.mark.parametrize("why", NO_INTERNET)
async def test_no_download_is_one_clear_line(
    why: str, unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def urlopen(*_: Any, **__: Any) -> Any:
        raise NO_INTERNET[why]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    said: list[str] = []
    assert "could not be downloaded" in await _failure(tmp_path, said)
    assert len(said) == 1
    assert said[0].startswith("Downloading ")
    assert capsys.readouterr() == ("", "")


async def test_a_download_that_is_no_archive_is_one_clear_line(
    unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: Download(b"<html>"))
    assert "could not be downloaded" in await _failure(tmp_path)


async def test_a_download_is_announced_by_one_line_on_stderr(
    library_file: Path,
    unloaded: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    archive = _zip((f"libs/{LIBRARY}", library_file.read_bytes()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: Download(archive))
    async with core(tmp_path, monkeypatch), open_native(tmp_path / "simplex") as link:
        await link.send("/user")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"Downloading libsimplex {version('simplex-chat')} from github.com, once ...\n"


async def test_a_machine_without_a_library_is_one_clear_line(
    unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native.platform, "machine", lambda: "riscv64")
    assert "no libsimplex for this machine" in await _failure(tmp_path)


@pytest.mark.parametrize("content", [None, b"no library"])
async def test_a_named_folder_without_a_library_is_one_clear_line(
    content: bytes | None, unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / LIBRARY).write_bytes(content)
    monkeypatch.setenv("SIMPLEX_LIBS_DIR", str(tmp_path))
    assert f"SIMPLEX_LIBS_DIR ({tmp_path})" in await _failure(tmp_path)


async def test_a_library_without_the_functions_is_one_clear_line(
    unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled("int something_else(void) { return 0; }", tmp_path)
    monkeypatch.setenv("SIMPLEX_LIBS_DIR", str(tmp_path))
    assert "could not be loaded" in await _failure(tmp_path)


async def test_a_cancelled_start_ends_at_once(unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, release = trio.Event(), __import__("threading").Event()
    token = trio.lowlevel.current_trio_token()

    def urlopen(*_: Any, **__: Any) -> Any:
        token.run_sync_soon(waiting.set)
        release.wait()
        raise TimeoutError

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    with trio.fail_after(20), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                await waiting.wait()
                scope.cancel()

            nursery.start_soon(cancel)
            async with open_native(tmp_path / "simplex", say=lambda _: None):
                pass
    assert scope.cancelled_caught
    release.set()


@pytest.mark.parametrize("moment", ["migrate", "receive", "/user", "/_stop", "close"])
async def test_a_cancellation_at_any_moment_leaves_a_closed_store(
    moment: str, there: LibraryCore, tmp_path: Path, library: ctypes.CDLL
) -> None:
    scope = trio.CancelScope()
    there.on_call = lambda call: scope.cancel() if call == moment else None
    with scope:
        async with open_native(tmp_path / "simplex") as link:
            await link.send("/user")
            if moment == "receive":
                await trio.sleep_forever()
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert there.calls[-2:] == ["/_stop", "close"]
    assert library.fake_busy() == 0
    assert library.fake_freed() == library.fake_allocated()
