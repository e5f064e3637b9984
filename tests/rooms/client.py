"""Clients of the rooms server: a real process behind pipes, and the same session inside the test's own process."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from simplexmcp.rooms.protocol import Session, read_result
from simplexmcp.rooms.registry import tools
from simplexmcp.rooms.runtime import Runtime, Waiting
from simplexmcp.rooms.settings import Settings
from simplexmcp.rooms.store.database import Database, open_database

if TYPE_CHECKING:
    from pathlib import Path

MODEL = {"brand": "Acme", "model": "Talker One", "version": "1.0"}
PATIENCE = 20.0  # seconds until a missing answer fails a test


class ToolError(AssertionError):
    """A call that was to succeed was refused."""


@dataclass(frozen=True)
class Persona:
    """What `create_persona` gave."""

    agent_id: str
    resume_word: str


class Calls:
    """What both clients can do; `_result` gives the `tools/call` result."""

    def _result(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def text(self, tool: str, /, **arguments: Any) -> tuple[bool, str]:
        """Whether the result is an error, and its text."""
        return read_result(self._result(tool, arguments))

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result object of a call that succeeds."""
        failed, text = self.text(tool, **arguments)
        if failed:
            raise ToolError(f"{tool}: {text}")
        return json.loads(text)

    def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error object of a call that the tool refuses."""
        failed, text = self.text(tool, **arguments)
        assert failed, f"{tool} succeeded: {text}"
        return json.loads(text)

    def invalid(self, tool: str, /, **arguments: Any) -> str:
        """The text of a call whose arguments are invalid."""
        failed, text = self.text(tool, **arguments)
        assert failed, f"{tool} succeeded: {text}"
        assert text.startswith("MCP error -32602: "), text
        return text

    def persona(self, **model: str) -> Persona:
        """Creates a persona and holds it."""
        made = self.call("create_persona", **(MODEL | model))
        return Persona(made["agent_id"], made["resume_word"])

    def resume(self, persona: Persona, **model: str) -> dict[str, Any]:
        """Takes a persona over."""
        return self.call(
            "resume_persona", agent_id=persona.agent_id, resume_word=persona.resume_word, **(MODEL | model)
        )

    def enter_room(self, name: str = "hall", **model: str) -> Persona:
        """A new persona in the room, which is made when it is missing."""
        persona = self.persona(**model)
        self.text("create_room", name=name)
        self.call("join_room", room=name)
        return persona


class Parked:
    """A call that waits, inside the test's process."""

    def __init__(self, session: Session, waiting: Waiting) -> None:
        self._session = session
        self.waiting = waiting
        session._runtime.waits_open += 1

    def probe(self) -> dict[str, Any] | None:
        """The result of the call, once it has one."""
        result = self._session._guarded("the wait", self.waiting.probe)
        return None if result is None else self._ended(result)

    def expire(self) -> dict[str, Any]:
        """The result at the deadline."""
        result = self._session._guarded("the wait", self.waiting.expire)
        assert result is not None
        return self._ended(result)

    def cancel(self) -> None:
        """Ends the wait as a cancelled request does."""
        self._session._runtime.waits_open -= 1
        self.waiting.end()

    def _ended(self, result: dict[str, Any]) -> dict[str, Any]:
        self.cancel()
        return json.loads(read_result(result)[1])


class InProcess(Calls):
    """One runtime on a database file, called directly: arguments are checked as in the server. A context manager."""

    def __init__(self, path: Path | str, *, max_wait: int = 25, database: Database | None = None) -> None:
        settings = Settings(str(path), max_wait)
        self.runtime = Runtime(database or open_database(settings.path), settings)
        self.session = Session(self.runtime, tools(settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def database(self) -> Database:
        """The runtime's own connection."""
        return self.runtime.database

    def close(self) -> None:
        """Lets go of the file."""
        self.session.end()
        self.runtime.database.close()

    def waits(self, tool: str, /, **arguments: Any) -> Parked:
        """Starts a call that must wait; end it with what `Parked` offers."""
        outcome = self.session.call(tool, arguments)
        assert not isinstance(outcome, dict), f"{tool} did not wait: {outcome}"
        return Parked(self.session, outcome)

    def _result(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        # Through JSON, as on the wire.
        outcome = self.session.call(tool, json.loads(json.dumps(arguments)))
        if isinstance(outcome, dict):
            return outcome
        while True:
            ask = outcome.expire if time.monotonic() >= outcome.deadline else outcome.probe
            if (result := self.session._guarded(tool, ask)) is not None:
                outcome.end()
                return result
            time.sleep(0.005)


class Server(Calls):
    """`simplexmcp rooms mcp` as a process, with `patch` run before it. A context manager; `close` returns the exit
    code."""

    def __init__(
        self, path: Path | str, *, env: dict[str, str] | None = None, handshake: bool = True, patch: str = ""
    ) -> None:
        self.path = str(path)
        program = f"{patch}\nfrom simplexmcp.cli import run\nraise SystemExit(run(['rooms', 'mcp']))"
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("AGENT_CHAT", "SIMPLEXMCP"))}
        self.process = subprocess.Popen(
            [sys.executable, *(["-c", program] if patch else ["-m", "simplexmcp", "rooms", "mcp"])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean | {"SIMPLEXMCP_ROOMS_DB": self.path} | (env or {}),
        )
        self._ids = itertools.count(1)
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._early: dict[Any, dict[str, Any]] = {}
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        if handshake:
            self.hello = self.initialize()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()

    def initialize(self, version: str = "2025-06-18") -> dict[str, Any]:
        """The handshake; its result."""
        client = {"name": "test", "version": "0"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        result = self.request("initialize", params)["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def send(self, message: Any) -> None:
        """Writes one message as a line."""
        self.send_raw(json.dumps(message).encode() + b"\n")

    def send_raw(self, data: bytes) -> None:
        """Writes bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, method: str, params: Any = None) -> int:
        """Sends a request without waiting; its ID."""
        key = next(self._ids)
        self.send({"jsonrpc": "2.0", "id": key, "method": method, **({} if params is None else {"params": params})})
        return key

    def start(self, tool: str, /, **arguments: Any) -> int:
        """Starts a call without waiting; its ID."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def cancel(self, key: int) -> None:
        """Cancels a call."""
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": key}})

    def receive(self, patience: float = PATIENCE) -> dict[str, Any] | None:
        """The next message of the server; None when it closed its output."""
        return self._answers.get(timeout=patience)

    def answer(self, key: int | str, patience: float = PATIENCE) -> dict[str, Any]:
        """The answer to a request, whatever came before it."""
        while key not in self._early:
            message = self.receive(patience)
            if message is None:
                raise EOFError(f"the server ended: {self.errors}")
            self._early[message.get("id")] = message
        return self._early.pop(key)

    def result(self, key: int) -> dict[str, Any]:
        """The result object of a call that succeeds."""
        failed, text = read_result(self.answer(key)["result"])
        if failed:
            raise ToolError(text)
        return json.loads(text)

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        """The whole answer to one request."""
        return self.answer(self.ask(method, params))

    def close(self) -> int:
        """Ends the input and waits for the end of the process; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        """Waits for the end of the process; its exit code."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def kill(self) -> None:
        """Ends the process at once, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # what was not sent any more

    def _result(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.answer(self.start(tool, **arguments))["result"]

    def _read_answers(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(line.decode().rstrip("\n") for line in self.process.stderr)
