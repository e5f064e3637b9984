from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplexmcp import folder
from simplexmcp.audit import Audit
from simplexmcp.clock import SystemClock
from simplexmcp.errors import UserError
from simplexmcp.folder import (
    ServerInfo,
    open_folder,
    read_server,
    running_pid,
    write_private,
)

INFO = ServerInfo(
    url="http://127.0.0.1:5226/mcp",
    port=5226,
    expire_hours=23,
    version="0.1.0",
    pid=4711,
    started=datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "agents" / "my-agent"


def opened(path: Path) -> tuple[str, list[str]]:
    """Opens and closes the folder; its token and the notices."""
    notices: list[str] = []
    with open_folder("my-agent", path, notices.append) as found:
        return found.token, notices


def modes(path: Path) -> dict[str, int]:
    return {entry.name: stat.S_IMODE(entry.lstat().st_mode) for entry in path.iterdir()}


@contextmanager
def umask(value: int):
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("value", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_the_folder_and_its_files_are_private_whatever_the_umask(data: Path, value: int):
    with umask(value):
        with open_folder("my-agent", data, pytest.fail) as found:
            found.write_server(INFO)
            found.subfolder("files", "group-15")
        assert os.umask(value) == value
    assert stat.S_IMODE(data.stat().st_mode) == stat.S_IMODE(data.parent.stat().st_mode) == 0o700
    assert modes(data) == {
        "lock": 0o600,
        "token": 0o600,
        "headers.json": 0o600,
        "server.json": 0o600,
        "files": 0o700,
    }
    assert stat.S_IMODE((data / "files" / "group-15").stat().st_mode) == 0o700


@settings(max_examples=40, deadline=None)
@given(value=st.integers(0, 0o777), bits=st.integers(0, 0o777))
def test_under_any_umask_nothing_is_ever_open_to_others(value: int, bits: int):
    with tempfile.TemporaryDirectory() as base:
        data = Path(base) / "agents" / "my-agent"
        for _ in range(2):
            with umask(value), open_folder("my-agent", data, lambda _: None) as found:
                _nothing_is_open(data)
                found.write_server(INFO)
                found.subfolder("files", "group-15")
                Audit(data / "audit.jsonl", SystemClock()).write("created", action=1)
                (data / "by the core").write_bytes(b"x")
                _nothing_is_open(data)
            for entry in data.iterdir():  # as another program may have left them; the next start repairs it
                entry.chmod((0o700 if entry.is_dir() else 0o600) | bits)
            (data / "by the core").unlink()
            data.chmod(0o700 | bits)


def _nothing_is_open(data: Path):
    for entry in (data, *data.rglob("*")):
        assert stat.S_IMODE(entry.lstat().st_mode) & 0o077 == 0, entry


def test_files_are_created_with_the_mode_and_never_looser(data: Path, monkeypatch: pytest.MonkeyPatch):
    """S11: a file that is open to others for a moment only can be opened in that moment."""
    made: list[int] = []
    real = os.open

    def watched(path, flags, mode=0o777, **rest):
        if flags & os.O_CREAT:
            made.append(mode)
            assert flags & os.O_NOFOLLOW
        return real(path, flags, mode, **rest)

    monkeypatch.setattr(os, "open", watched)
    opened(data)
    assert made == [0o600] * 3


def test_what_the_core_makes_inside_is_private(data: Path):
    with umask(0o000), open_folder("my-agent", data, pytest.fail) as found:
        (found.path / "simplex_chat.db").write_bytes(b"")
        assert stat.S_IMODE((found.path / "simplex_chat.db").stat().st_mode) == 0o600


def test_looser_modes_are_repaired_with_one_line(data: Path):
    opened(data)
    data.chmod(0o755)
    (data / "token").chmod(0o644)
    (data / "tmp").mkdir()
    (data / "tmp").chmod(0o777)
    assert opened(data)[1] == [f"Repaired modes in {data} that let others in: the folder 0755, token 0644, tmp 0777."]
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert modes(data)["token"] == 0o600
    assert opened(data)[1] == []


def test_a_folder_of_other_things_is_left_as_it_is(data: Path):
    data.mkdir(parents=True)
    data.chmod(0o755)
    opened(data)
    (data / "lock").unlink()
    for name in ("token", "headers.json"):
        (data / name).unlink()
    (data / "letters").mkdir()
    data.chmod(0o755)
    with pytest.raises(UserError, match="holds other things"):
        opened(data)
    assert stat.S_IMODE(data.stat().st_mode) == 0o755


def test_a_folder_that_is_a_symlink_is_refused(data: Path, tmp_path: Path):
    (tmp_path / "real").mkdir()
    data.parent.mkdir()
    data.symlink_to(tmp_path / "real")
    with pytest.raises(UserError, match="is a symlink"):
        opened(data)
    assert list((tmp_path / "real").iterdir()) == []
    with pytest.raises(UserError, match="is a symlink"):
        read_server("my-agent", data)


def test_a_dangling_symlink_is_refused(data: Path):
    data.parent.mkdir()
    data.symlink_to("nowhere")
    with pytest.raises(UserError, match="is a symlink"):
        opened(data)
    with pytest.raises(UserError, match="is a symlink"):
        read_server("my-agent", data)


def test_a_parent_that_is_a_symlink_is_refused(data: Path, tmp_path: Path):
    (tmp_path / "real").mkdir()
    data.parent.symlink_to(tmp_path / "real")
    with pytest.raises(UserError, match="agents is a symlink"):
        opened(data)


@pytest.mark.parametrize("name", ["token", "lock", "headers.json", "actions.jsonl", "simplex_chat.db"])
def test_a_file_that_is_a_symlink_is_refused(data: Path, tmp_path: Path, name: str):
    data.mkdir(0o700, parents=True)
    (tmp_path / "victim").write_text("mine")
    (data / name).symlink_to(tmp_path / "victim")
    with pytest.raises(UserError, match=f"{name} is a symlink"):
        opened(data)
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("name", ["token", "server.json"])
def test_a_file_that_is_no_regular_file_is_refused_without_waiting_for_it(data: Path, name: str):
    data.mkdir(0o700, parents=True)
    os.mkfifo(data / name, 0o600)
    with pytest.raises(UserError, match="is not a regular file"):
        opened(data)


def test_a_folder_of_another_user_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch):
    opened(data)
    monkeypatch.setattr(folder, "_check_parent", lambda path: None)
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    with pytest.raises(UserError, match="my-agent belongs to another user"):
        opened(data)
    with pytest.raises(UserError, match="my-agent belongs to another user"):
        read_server("my-agent", data)


def test_a_parent_of_another_user_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch):
    data.parent.mkdir()
    real = Path.stat

    def foreign(self: Path, **rest):
        found = real(self, **rest)
        return os.stat_result((*found[:4], 4242, *found[5:])) if self == data.parent else found

    monkeypatch.setattr(Path, "stat", foreign)
    with pytest.raises(UserError, match="agents belongs to another user"):
        opened(data)


def test_a_parent_that_everybody_may_change_is_refused_unless_it_is_sticky(data: Path):
    data.parent.mkdir()
    data.parent.chmod(0o777)
    with pytest.raises(UserError, match="can be changed by every user"):
        opened(data)
    data.parent.chmod(0o1777)
    opened(data)


def test_a_place_that_everybody_may_change_is_refused_for_folders_to_be_made_too(data: Path, tmp_path: Path):
    tmp_path.chmod(0o777)
    with pytest.raises(UserError, match="can be changed by every user"):
        opened(data)
    assert not data.parent.exists()


def test_a_folder_that_can_not_be_looked_at_gives_one_line(data: Path, monkeypatch: pytest.MonkeyPatch):
    def denied(self: Path, **rest):
        raise PermissionError(13, "Permission denied")

    opened(data)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", denied)
        with pytest.raises(UserError, match="Permission denied"):
            opened(data)
        with pytest.raises(UserError, match="Permission denied"):
            read_server("my-agent", data)


def test_a_file_in_the_place_of_the_folder_is_refused(data: Path):
    data.parent.mkdir()
    data.write_text("")
    with pytest.raises(UserError, match="is not a folder"):
        opened(data)


def test_a_disk_that_refuses_gives_one_line(data: Path, monkeypatch: pytest.MonkeyPatch):
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "write_private", full)
    with pytest.raises(UserError, match=r"No space left on device\. Repair it"):
        opened(data)
    monkeypatch.undo()
    opened(data)


def test_the_token_is_32_random_bytes_made_once(data: Path, tmp_path: Path):
    token = opened(data)[0]
    assert len(base64.urlsafe_b64decode(token + "=")) == 32
    assert opened(data)[0] == token
    assert opened(tmp_path / "other")[0] != token


def test_the_headers_follow_the_token(data: Path):
    token = opened(data)[0]
    assert json.loads((data / "headers.json").read_text()) == {"Authorization": f"Bearer {token}"}
    (data / "token").unlink()
    token = opened(data)[0]
    assert json.loads((data / "headers.json").read_text()) == {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("damage", [b"", b"short\n", b"\xff" * 43, b"x" * 44])
def test_a_damaged_token_is_never_used(data: Path, damage: bytes):
    opened(data)
    (data / "token").write_bytes(damage)
    with pytest.raises(UserError, match=r"token is damaged\. Delete it"):
        opened(data)


def test_a_second_server_is_refused_with_the_process_of_the_first(data: Path):
    with open_folder("my-agent", data, pytest.fail):
        with pytest.raises(UserError) as refused:
            opened(data)
        assert str(refused.value) == f"Agent my-agent is already running (process {os.getpid()})."
        assert running_pid(data) == os.getpid()
    assert running_pid(data) is None
    opened(data)


def test_a_lock_file_without_a_lock_stops_nobody(data: Path):
    """U36, S16: what a killed server leaves is only a file."""
    data.mkdir(0o700, parents=True)
    for content in (b"", b"4711\n", b"rubbish"):
        (data / "lock").write_bytes(content)
        (data / "lock").chmod(0o600)
        assert running_pid(data) is None
        opened(data)


def test_a_server_that_holds_the_lock_without_its_number_is_seen(data: Path):
    with open_folder("my-agent", data, pytest.fail):
        (data / "lock").write_bytes(b"")
        assert running_pid(data) == 0
        with pytest.raises(UserError, match=r"^Agent my-agent is already running\.$"):
            opened(data)


def test_no_server_runs_where_there_is_no_folder(data: Path):
    assert running_pid(data) is None


KILLED = """
import os, signal, sys
from pathlib import Path
from simplexmcp import folder
step, left = sys.argv[2], int(sys.argv[3])
real = getattr(os, step)
def dying(*args, **rest):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **rest)
setattr(os, step, dying)
if step == "mkdir":
    Path.mkdir = lambda self, mode: dying(self, mode)
with folder.open_folder("my-agent", Path(sys.argv[1]), print):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("step", "nth"),
    [
        ("mkdir", 1),
        ("mkdir", 2),
        ("open", 1),
        ("pwrite", 1),
        ("open", 3),
        ("fsync", 1),
        ("fsync", 2),
        ("fsync", 3),
        ("getpid", 99),
    ],
)
def test_after_a_kill_at_any_step_the_next_start_works(data: Path, step: str, nth: int):
    """U36, S16."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(data), step, str(nth)], check=False, timeout=30)
    assert killed.returncode == -signal.SIGKILL
    assert running_pid(data) is None
    token, notices = opened(data)
    assert len(token) == 43
    assert notices == []
    assert not list(data.glob("*.new"))


def test_server_json_is_read_as_it_was_written(data: Path):
    with open_folder("my-agent", data, pytest.fail) as found:
        found.write_server(INFO)
    assert json.loads((data / "server.json").read_text()) == {
        "url": "http://127.0.0.1:5226/mcp",
        "port": 5226,
        "expireHours": 23,
        "version": "0.1.0",
        "pid": 4711,
        "started": "2026-11-30T12:00:00Z",
    }
    assert read_server("my-agent", data) == INFO


def test_an_agent_that_was_never_started_has_no_server_json(data: Path):
    assert read_server("my-agent", data) is None
    opened(data)
    assert read_server("my-agent", data) is None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"url":1}', b"\xff", b'{"url":"u","port":true,"expireHours":1}']
)
def test_a_damaged_server_json_says_what_to_do(data: Path, content: bytes):
    opened(data)
    write_private(data / "server.json", content)
    with pytest.raises(UserError, match=r"server.json is damaged. Start the agent again: simplexmcp serve my-agent"):
        read_server("my-agent", data)


def test_a_write_that_fails_leaves_the_old_file(data: Path, monkeypatch: pytest.MonkeyPatch):
    opened(data)
    write_private(data / "server.json", b"old")

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"):
        write_private(data / "server.json", b"new")
    assert (data / "server.json").read_bytes() == b"old"


def test_the_folder_can_be_moved(data: Path, tmp_path: Path):
    token = opened(data)[0]
    shutil.move(data, tmp_path / "moved")
    assert opened(tmp_path / "moved")[0] == token
