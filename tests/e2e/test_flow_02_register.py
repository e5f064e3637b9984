"""Flow 2: `register`, and the entry that it makes used as Claude Code uses it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import httpx2
import trio

from simplexmcp import cli
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CLAUDE = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
"""


async def test_flow_2_the_registered_entry_opens_the_server_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, program = tmp_path / "log", tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    async with open_world(tmp_path) as world:
        server = await world.serve(data=tmp_path / "a folder; $(with) 'signs'")
        arguments = ["register", "my-agent", "--data", str(server.options.data)]
        assert await trio.to_thread.run_sync(cli.run, arguments) == 0
        assert capsys.readouterr().out == "Added to Claude Code: scope user, server simplex-my-agent.\n"

        remove, add = [json.loads(line) for line in log.read_text().splitlines()]
        assert remove == ["mcp", "remove", "--scope", "user", "simplex-my-agent"]
        assert add[:5] == ["mcp", "add-json", "--scope", "user", "simplex-my-agent"]
        entry = json.loads(add[5])
        assert (entry["type"], entry["url"], entry["timeout"]) == ("http", server.url, 169_800_000)

        # Claude Code runs the helper through a shell, and sends the headers that it prints.
        helper = await trio.run_process(entry["headersHelper"], shell=True, capture_stdout=True)
        headers = json.loads(helper.stdout)
        assert server.token not in add[5]
        hello = {
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "claude-code", "version": "2.1.197"},
            },
        }  # fmt: skip
        accept = {"accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient() as http:
            answer = await http.post(entry["url"], json=hello, headers=headers | accept)
            refused = await http.post(entry["url"], json=hello, headers=accept)
        assert answer.status_code == 200
        assert answer.json()["result"]["serverInfo"]["name"]
        assert refused.status_code == 401
        await server.end()


async def test_flow_2_an_agent_that_was_never_started_cannot_be_registered(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "simplexmcp", "register", "my-agent", "--data", str(tmp_path / "data")]
    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(
        'Agent "my-agent" was never started. Start it with: simplexmcp serve my-agent'
    )
