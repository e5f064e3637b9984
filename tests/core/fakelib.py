"""The fake libsimplex: compiling it, and being the core behind it."""

from __future__ import annotations

import math
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LIBRARY = "libsimplex.dylib" if sys.platform == "darwin" else "libsimplex.so"


def compiled(source: str | Path, folder: Path) -> Path:
    """`source`, a file or C text, as the library that the loader looks for."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    # `make test` installs a compiler from PyPI where the machine has none.
    compiler = [found] if found else [sys.executable, "-m", "ziglang", "cc"]
    folder.mkdir(parents=True, exist_ok=True)
    code = source.read_text("utf-8") if isinstance(source, Path) else source
    subprocess.run(
        [*compiler, "-x", "c", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", folder / LIBRARY, "-", "-ldl"],
        input=code.encode(),
        check=True,
    )
    return folder / LIBRARY


class LibraryCore:
    """The core behind the library. `on_command` answers commands as JSON text (None: a null pointer)."""

    def __init__(self, on_command: Callable[[str], Awaitable[str | None]]) -> None:
        self.on_command = on_command
        self.on_call: Callable[[str], None] = lambda _: None
        self.calls: list[str] = []
        self.waits: list[int] = []
        self.migrated: list[str] = []
        self.migration: str | None = '{"type":"ok"}'
        self.close_answer = ""
        self.receiving = 0
        self.most_receiving = 0
        self.say, self._said = trio.open_memory_channel[str | None](math.inf)

    async def serve(self, path: Path, *, task_status: trio.TaskStatus[None]) -> None:
        """Answers the library at a socket until cancelled."""
        sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        await sock.bind(str(path))
        sock.listen(64)
        task_status.started()
        await trio.serve_listeners(self._call, [trio.SocketListener(sock)])

    async def _call(self, stream: trio.SocketStream) -> None:
        async with stream:
            head = await _exactly(stream, 5)
            what, size = head[:1].decode(), struct.unpack("=I", head[1:])[0]
            answer = await self._answer(what, (await _exactly(stream, size)).decode())
            if answer is not None:
                data = answer.encode()
                await stream.send_all(struct.pack("=I", len(data)) + data)

    async def _answer(self, what: str, argument: str) -> str | None:
        match what:
            case "M":
                self.migrated = argument.split("\n")
                self._called("migrate")
                return self.migration
            case "C":
                self._called(argument)
                return await self.on_command(argument)
            case "R":
                self.on_call("receive")
                return await self._event(int(argument))
            case _:
                self._called("close")
                return self.close_answer

    def _called(self, call: str) -> None:
        self.calls.append(call)
        self.on_call(call)

    async def _event(self, microseconds: int) -> str | None:
        self.waits.append(microseconds)
        self.receiving += 1
        self.most_receiving = max(self.most_receiving, self.receiving)
        try:
            # Shorter than asked, so that tests end soon.
            with trio.move_on_after(min(microseconds / 1e6, 0.02)):
                return await self._said.receive()
            return ""
        finally:
            self.receiving -= 1


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part: Any = await stream.receive_some(size - len(data))
        if not part:
            raise trio.BrokenResourceError
        data += part
    return data
