from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simplexmcp import cli
from simplexmcp.auditlog import newest_lines, parse_since
from simplexmcp.folder import ServerInfo, open_folder

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def entry(number: int, minute: int = 0) -> bytes:
    at = f"2026-12-01T08:{minute:02}:00Z"
    fields = {"at": at, "event": "decided", "action": number, "decision": "approved", "by": "Al\x1b", "member": 3}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of an agent that was started once; local time is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    with open_folder("my-agent", tmp_path / "data", pytest.fail) as folder:
        folder.write_server(ServerInfo("http://127.0.0.1:5226/mcp", 5226, 23, "0.1.0", 4711, NOW))
    return tmp_path / "data"


def log(capsys: pytest.CaptureFixture[str], data: Path, *words: str) -> tuple[int, list[str], str]:
    code = cli.run(["log", "my-agent", "--data", str(data), *words])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def test_each_entry_is_a_line_with_the_day_and_who_decided(data: Path, capsys):
    (data / "audit.jsonl").write_bytes(entry(1) + entry(2, 5))
    assert log(capsys, data) == (
        0,
        [
            '2026-12-01 08:00:00  Action 1: approved by "Al<U+001B>" (member 3).',
            '2026-12-01 08:05:00  Action 2: approved by "Al<U+001B>" (member 3).',
        ],
        "",
    )


def test_json_gives_the_entries_as_they_are(data: Path, capsys):
    (data / "audit.jsonl").write_bytes(entry(1) + entry(2, 5))
    code, out, err = log(capsys, data, "--json")
    assert (code, err) == (0, "")
    assert [line.encode() + b"\n" for line in out] == [entry(1), entry(2, 5)]


def test_the_last_entries_and_those_since_a_time_can_be_chosen(data: Path, capsys):
    (data / "audit.jsonl").write_bytes(b"".join(entry(n, n) for n in range(1, 6)))
    assert [line.split()[3] for line in log(capsys, data, "-n", "2")[1]] == ["4:", "5:"]
    assert log(capsys, data, "-n", "0")[1] == []
    assert [line.split()[3] for line in log(capsys, data, "--since", "2026-12-01T08:04Z")[1]] == ["4:", "5:"]
    assert [line.split()[3] for line in log(capsys, data, "--since", "2026-12-01T08:02", "-n", "3")[1]] == [
        "3:", "4:", "5:",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "ago"), [("30m", timedelta(minutes=30)), ("2h", timedelta(hours=2)), ("7d", timedelta(days=7))]
)
def test_since_can_be_so_long_ago(text: str, ago: timedelta):
    assert parse_since(text, NOW) == NOW - ago


def test_damaged_lines_are_left_out_and_told(data: Path, capsys):
    (data / "audit.jsonl").write_bytes(entry(1) + b'{"at":"2026\n' + b"[]\n\n" + entry(2) + entry(3)[:30])
    code, out, err = log(capsys, data)
    assert (code, len(out)) == (0, 2)
    assert err == "3 lines are damaged, by a crash or a full disk, and left out.\n"


def test_a_last_line_that_is_whole_but_for_its_end_is_shown(data: Path, capsys):
    (data / "audit.jsonl").write_bytes(entry(1).rstrip())
    assert len(log(capsys, data)[1]) == 1


def test_a_line_that_is_longer_than_any_of_the_server_s_is_damaged(data: Path, capsys):
    (data / "audit.jsonl").write_bytes(b'{"event":"' + b"x" * 3_000_000 + b'"}\n' + entry(1))
    code, out, err = log(capsys, data)
    assert (code, len(out)) == (0, 1)
    assert err.startswith("1 line is damaged")


def test_before_the_first_entry_there_is_nothing_to_show(data: Path, capsys):
    assert log(capsys, data) == (0, [], "")


def test_an_agent_that_was_never_started_says_how_to_start_it(tmp_path: Path, capsys):
    code, out, err = log(capsys, tmp_path / "none")
    assert (code, out) == (1, [])
    assert err.startswith('Agent "my-agent" was never started. Start it with: simplexmcp serve my-agent --data ')


def test_a_log_that_is_a_link_or_a_folder_is_refused(data: Path, tmp_path: Path, capsys):
    (tmp_path / "other").write_bytes(entry(1))
    (data / "audit.jsonl").symlink_to(tmp_path / "other")
    assert log(capsys, data)[0::2][0] == 1
    (data / "audit.jsonl").unlink()
    (data / "audit.jsonl").mkdir()
    code, out, err = log(capsys, data)
    assert (code, out) == (1, [])
    assert "is not a regular file" in err


def test_the_newest_lines_come_first_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("simplexmcp.auditlog._BLOCK", 7)
    file = tmp_path / "x"
    file.write_bytes(b"first\nsecond line\n\nlast")
    assert list(newest_lines(file, 1000)) == [b"last", b"", b"second line", b"first"]
    assert list(newest_lines(file, 12)) == [b"last", b""]
    file.write_bytes(b"")
    assert not any(newest_lines(file, 10))


# Following


class Follower:
    """`simplexmcp log -f` as a process; `lines` are what it printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()


@contextmanager
def following(data: Path, *words: str):
    command = [sys.executable, "-m", "simplexmcp", "log", "my-agent", "--data", str(data), "-f", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(60, process.kill)
        limit.start()
        try:
            yield Follower(process)
        finally:
            limit.cancel()
            process.kill()


def append(file: Path, text: bytes) -> None:
    with file.open("ab") as out:
        out.write(text)


def test_following_shows_what_is_added_and_ends_with_ctrl_c(data: Path):
    file = data / "audit.jsonl"
    file.write_bytes(entry(1) + entry(2))
    with following(data, "-n", "1") as log:
        assert "Action 2" in log.line()
        append(file, entry(3)[:40])  # is being written
        append(file, entry(3)[40:] + entry(4))
        assert "Action 3" in log.line()
        assert "Action 4" in log.line()
        assert log.end(signal.SIGINT) == (130, "")


def test_following_waits_for_a_log_and_outlives_its_replacement(data: Path):
    file = data / "audit.jsonl"
    with following(data, "--json") as log:
        file.write_bytes(entry(1))
        assert log.line().encode() == entry(1)
        append(file, entry(2))
        file.rename(data / "audit.1")
        assert log.line().encode() == entry(2)
        append(data / "audit.1", entry(3))
        assert log.line().encode() == entry(3)
        file.write_bytes(entry(4))
        assert log.line().encode() == entry(4)
        file.write_bytes(b'{"event":"link-back"}\n')
        assert log.line() == '{"event":"link-back"}\n'
        assert log.end(signal.SIGINT)[0] == 130


def test_following_ends_when_its_reader_is_gone(data: Path):
    (data / "audit.jsonl").write_bytes(entry(1))
    with following(data) as log:
        assert "Action 1" in log.line()
        assert log.process.stdout is not None
        log.process.stdout.close()
        assert log.process.wait(60) == 0
        assert log.process.stderr is not None
        assert log.process.stderr.read() == ""


def test_following_uses_no_time_while_nothing_happens(data: Path):
    (data / "audit.jsonl").write_bytes(entry(1))
    with following(data) as log:
        log.line()
        before = ticks(log.process.pid)
        append(data / "audit.jsonl", entry(2))
        log.line()
        assert ticks(log.process.pid) - before < os.sysconf("SC_CLK_TCK") / 10


def ticks(pid: int) -> int:
    """The time on a processor, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
