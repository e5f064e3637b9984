"""What the tests of a server's robustness share: what it told its core, what it leaves behind, a line that can be cut,
the program as a process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from trio.testing import wait_all_tasks_blocked

from simplexmcp import serve
from simplexmcp.errors import UserError
from tests.clocks import within
from tests.e2e.forked import Forked
from tests.e2e.world import DEADLINE, Agent, Lines
from tests.fakes import TrioClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from simplexmcp.options import ServeOptions
    from tests.e2e.world import World


def told(world: World, profile: str = "agent") -> list[str]:
    """The commands of this core from now on, as they come."""
    core = world.network.core(profile)
    commands: list[str] = []
    answer = core.command

    def record(text: str) -> dict[str, Any]:
        commands.append(text)
        return answer(text)

    core.command = record  # type: ignore[method-assign]
    return commands


def open_files() -> dict[int, str]:
    """The open file descriptors of this process and what they are."""
    found: dict[int, str] = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[int(entry.name)] = str(entry.readlink())
        except FileNotFoundError:
            continue  # the one that listed them
    return found


def tasks() -> int:
    """How many tasks there are in this run of trio."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    count, left = 0, [root]
    while left:
        task = left.pop()
        count += 1
        left += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return count


async def failure(options: ServeOptions, lines: Lines | None = None) -> UserError:
    """The error that ends a start; it leaves no task and no open file."""
    files, running = open_files(), tasks()
    with pytest.raises(UserError) as caught, within(DEADLINE):
        await serve.serve(options, serve.Stop(), out=lines or Lines(), clock=TrioClock())
    await nothing_left(running, files)
    text = str(caught.value)
    assert text.isprintable(), text
    assert "Traceback" not in text
    return caught.value


async def nothing_left(running: int, files: dict[int, str]) -> None:
    """No more tasks run than `running`, and what was opened since `files` is closed; the far ends of sockets are in
    this process too and get a moment."""
    left: dict[int, str] = {}
    for _ in range(100):
        left = {fd: what for fd, what in open_files().items() if files.get(fd) != what}
        if not left and tasks() == running:
            break
        await trio.sleep(0.1)
    assert left == {}
    assert tasks() == running


class Cable:
    """A TCP line between a server and its core that can be cut at any moment."""

    def __init__(self, nursery: trio.Nursery, target: int) -> None:
        self._nursery, self._target = nursery, target
        self._lines: set[trio.CancelScope] = set()
        self._stalled: set[trio.CancelScope] = set()
        self.port = 0
        self.made = 0

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Carry until cancelled."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        task_status.started()
        await trio.serve_listeners(self._carry, listeners)

    def cut(self) -> None:
        """Every connection ends now, in the middle of whatever it carries."""
        for line in self._lines:
            line.cancel()

    def stall(self) -> None:
        """The connections that there are carry nothing any more, and stay open."""
        self._stalled |= self._lines

    def unplug(self) -> None:
        """Cut it, and carry nothing any more."""
        self._target = 1
        self.cut()

    async def _carry(self, near: trio.SocketStream) -> None:
        self.made += 1
        with trio.CancelScope() as line:
            self._lines.add(line)
            try:
                try:
                    far = await trio.open_tcp_stream("127.0.0.1", self._target)
                except OSError:
                    return
                async with far, trio.open_nursery() as nursery:
                    nursery.start_soon(self._pipe, line, near, far, nursery.cancel_scope)
                    nursery.start_soon(self._pipe, line, far, near, nursery.cancel_scope)
            finally:
                self._lines.discard(line)
                self._stalled.discard(line)
                await trio.aclose_forcefully(near)

    async def _pipe(
        self, line: trio.CancelScope, source: trio.SocketStream, target: trio.SocketStream, both: trio.CancelScope
    ) -> None:
        try:
            async for data in source:
                if line not in self._stalled:
                    await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the other side went: so does this line
        both.cancel()


def taken_port() -> socket.socket:
    """A port that somebody else listens on."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    return taken


class Program:
    """`python -m simplexmcp serve` as a process: its lines on the terminal, those on stderr, its exit code."""

    forked = False
    """Whether it comes from a process that has imported it, for tests that start it often."""

    def __init__(self, world: World, *options: str, core: str = "agent", data: Path | None = None) -> None:
        url = core if "://" in core else world.core_url(core)
        self.data = data or world.folder / "data"
        self.command = [
            *(sys.executable, "-m", "simplexmcp", "serve", "my-agent", "--display-name", "My Agent"),
            *("--data", str(self.data), "--core", url, "--qr-code", "none", *options),
            *(() if "--port" in options else ("--port", "0")),
        ]
        self.lines, self.errors = Lines(), Lines()
        self.process: trio.Process | Forked
        self.ended = trio.Event()
        self.code: int | None = None
        self._terminal = trio.CancelScope()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """From its start to its end; killed when this is cancelled."""
        self.process = Forked(self.command[3:]) if self.forked else await self._open()
        task_status.started()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read_terminal)
                nursery.start_soon(_read_lines, self.process.stderr, self.errors)
                self.code = await self.process.wait()
        finally:
            self.process.kill()
            with trio.CancelScope(shield=True):
                await self.process.wait()
            if isinstance(self.process, Forked):
                self.process.close()
            self.lines.end(self.errors.all)
            self.ended.set()

    async def _open(self) -> trio.Process:
        env = {**os.environ, "PYTHONUNBUFFERED": "1"}
        return await trio.lowlevel.open_process(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)

    async def _read_terminal(self) -> None:
        with self._terminal:
            await _read_lines(self.process.stdout, self.lines)

    async def lose_terminal(self) -> None:
        """Nobody reads its lines any more."""
        self._terminal.cancel()
        await wait_all_tasks_blocked()
        assert self.process.stdout is not None
        await self.process.stdout.aclose()

    async def listening(self) -> str:
        """Its URL, as soon as it listens."""
        return (await self.lines.see("Listening on ")).removeprefix("Listening on ")

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def end(self, *signals: int, within: float) -> int:
        """Send these signals, wait for the end; the exit code."""
        for number in signals:
            self.signal(number)
        with trio.fail_after(within):
            await self.ended.wait()
        assert self.code is not None
        return self.code

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Agent]:
        """A real MCP client."""
        url = await self.listening()
        headers = {"Authorization": f"Bearer {(self.data / 'token').read_text().strip()}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=None) as http,
            Client(streamable_http_client(url, http_client=http), mode="legacy", cache=None) as client,
        ):
            await client.list_tools()  # else it asks for them at its first result, when the server may be gone
            yield Agent(client)


async def _read_lines(stream: trio.abc.ReceiveStream | None, lines: Lines) -> None:
    assert stream is not None
    rest = b""
    async for data in stream:
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            lines(line.decode())
    if rest:
        lines(rest.decode())
