"""The program forked from a process that has imported it: as a new one, without the second that the imports take."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from typing import TYPE_CHECKING

import trio

from simplexmcp import cli

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

__all__ = ["Forked"]

_context = multiprocessing.get_context("forkserver")
# What the program imports when it needs it.
_PARTS = ("arguments", "serve", "listener.server", "core.websocket", "setup")
_context.set_forkserver_preload([__name__, "pytest", *(f"simplexmcp.{part}" for part in _PARTS)])


class Forked:
    """A running program: the parts of `trio.Process` that a test needs."""

    def __init__(self, arguments: list[str]) -> None:
        ours, theirs = socket.socketpair(), socket.socketpair()
        self._process: BaseProcess = _context.Process(target=_main, args=(arguments, ours[1], theirs[1]))
        self._process.start()
        for pair in (ours, theirs):
            pair[1].close()
        self.stdout, self.stderr = (
            trio.SocketStream(trio.socket.from_stdlib_socket(pair[0])) for pair in (ours, theirs)
        )
        assert self._process.pid is not None
        self.pid = self._process.pid

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        if self._process.exitcode is None:
            await trio.lowlevel.wait_readable(self._process.sentinel)
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal to it while it runs."""
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def close(self) -> None:
        """Nobody reads what it wrote any more; after its end."""
        self.stdout.socket.close()
        self.stderr.socket.close()
        self._process.close()


def _main(arguments: list[str], stdout: socket.socket, stderr: socket.socket) -> None:
    os.dup2(stdout.fileno(), 1)
    os.dup2(stderr.fileno(), 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
    sys.exit(cli.run(arguments))
