from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from simplexmcp.rooms import lock
from simplexmcp.rooms.errors import RoomsError

NAME = "scope.lock"
# Stops at the chosen call of the taking of a lock, where it is killed.
DIES = """
import os, signal, sys
from simplexmcp.rooms import lock
def die(*_arguments, **_options):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(sys.modules[{module!r}], {name!r}, die)
with lock.hold({lock!r}):
    pass
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path) + "/")


@pytest.fixture
def file() -> Path:
    """Where the lock is; its folder is there already."""
    folder = Path(lock.folder())
    folder.mkdir(0o700)
    return folder / NAME


def left(file: Path, pid: int, token: str = "0123") -> Path:
    """A file as the reference program makes it."""
    file.write_text(json.dumps({"pid": pid, "token": token}))
    return file


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_held_lock_is_a_private_file_with_pid_and_token_and_goes_with_its_holder():
    with lock.hold(NAME):
        file = Path(lock.folder()) / NAME
        content = json.loads(file.read_text())
        assert content["pid"] == os.getpid()
        assert len(content["token"]) > 16
        assert set(content) == {"pid", "token"}
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert lock.holder(str(file)) == os.getpid()
    assert not file.exists()


def test_the_folder_and_the_name_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch):
    scope = '["/data/chat.db","acme-b\u00fc-1",7,null,false]'
    name = lock.lock_name("/data/chat.db", "acme-b\u00fc-1", 7, None, mentions_only=False)
    assert name == sha256(scope.encode()).hexdigest() + ".lock"
    monkeypatch.setenv("TMPDIR", "/var/tmp/")
    assert lock.folder() == f"/var/tmp/agent-chat-pollers-{os.getuid()}"
    for variable in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.delenv(variable, raising=False)
    assert lock.folder() == f"/tmp/agent-chat-pollers-{os.getuid()}"


def test_each_part_of_the_scope_is_another_lock():
    scopes = [("a", 1, 1, True), ("b", 1, 1, True), ("a", None, 1, True), ("a", 1, None, True), ("a", 1, 1, False)]
    names = {lock.lock_name("/db", agent, room, epoch, mentions_only=only) for agent, room, epoch, only in scopes}
    assert len(names) == len(scopes)


def test_a_second_holder_is_told_who_holds_it():
    with lock.hold(NAME), pytest.raises(RoomsError, match=f"already running .process {os.getpid()}"), lock.hold(NAME):
        pytest.fail("two holders")


@pytest.mark.parametrize(
    "step",
    [
        ("simplexmcp.rooms.lock", "_settled_content"),
        ("fcntl", "flock"),
        ("simplexmcp.rooms.lock", "_is_at"),
        ("os", "pwrite"),
    ],
)
def test_case_u36_a_watcher_that_was_killed_while_it_took_the_lock_blocks_nobody(file: Path, step: tuple[str, str]):
    if step[1] == "_settled_content":
        file.touch()
        os.utime(file, (1, 1))
    module, name = step
    code = DIES.format(module=module, name=name, lock=NAME)
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert file.exists()
    with lock.hold(NAME):
        assert json.loads(file.read_text())["pid"] == os.getpid()
    assert not file.exists()


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"pid": "x"}', '{"pid": -1}', "\udce9"])
def test_case_u36_a_file_without_an_owner_in_it_is_taken_over(file: Path, content: str):
    file.write_text(content, errors="surrogateescape")
    with lock.hold(NAME):
        assert lock.holder(str(file)) == os.getpid()
    assert not file.exists()


def test_what_a_dead_process_left_is_taken_over(file: Path):
    left(file, dead_pid())
    assert lock.holder(str(file)) is None
    with lock.hold(NAME):
        assert json.loads(file.read_text())["pid"] == os.getpid()


def test_a_living_process_of_the_reference_program_keeps_its_scope(file: Path):
    left(file, os.getpid())
    assert lock.holder(str(file)) == os.getpid()
    with pytest.raises(RoomsError, match="already running"), lock.hold(NAME):
        pytest.fail("two holders")
    assert json.loads(file.read_text())["token"] == "0123"


def test_a_stranger_that_got_the_process_id_of_a_dead_holder_keeps_nothing(file: Path):
    left(file, os.getpid())
    os.utime(file, (time.time() - 86_400_000, time.time() - 86_400_000))
    with lock.hold(NAME):
        assert json.loads(file.read_text())["token"] != "0123"


def test_our_own_left_over_is_free_whoever_has_its_process_id_now(file: Path):
    with lock.hold(NAME):
        content = file.read_text()
    file.write_text(content)
    with lock.hold(NAME):
        assert file.read_text() != content


def test_a_lock_that_was_replaced_by_hand_is_not_removed_by_its_former_holder(file: Path):
    with lock.hold(NAME):
        file.unlink()
        left(file, os.getpid())
    assert json.loads(file.read_text())["token"] == "0123"


def test_a_lock_that_says_another_token_by_now_is_left_to_that_one(file: Path):
    with lock.hold(NAME):
        left(file, os.getpid())
    assert json.loads(file.read_text())["token"] == "0123"


def test_a_file_that_its_maker_fills_a_moment_later_is_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch):
    file.touch()
    monkeypatch.setattr(lock.time, "sleep", lambda _seconds: left(file, os.getpid()))
    with pytest.raises(RoomsError, match="already running"), lock.hold(NAME):
        pytest.fail("two holders")


def test_a_folder_that_is_not_the_users_own_is_refused(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    Path(lock.folder()).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RoomsError, match="no folder of this user"), lock.hold(NAME):
        pytest.fail("held")


def test_a_folder_that_others_can_write_to_is_closed(file: Path):
    file.parent.chmod(0o777)
    with lock.hold(NAME):
        assert file.parent.stat().st_mode & 0o777 == 0o700


def test_of_many_that_start_at_once_exactly_one_holds_it(file: Path):
    left(file, dead_pid())
    code = (
        "import sys\n"
        "from simplexmcp.rooms.lock import hold\n"
        "from simplexmcp.rooms.errors import RoomsError\n"
        "sys.stdin.readline()\n"
        "try:\n"
        f"    with hold({NAME!r}):\n"
        "        print('held', flush=True)\n"
        "        sys.stdin.readline()\n"
        "except RoomsError:\n"
        "    print('refused', flush=True)\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    try:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = sorted(process.stdout.readline() for process in processes if process.stdout is not None)
    finally:
        for process in processes:
            process.communicate("end\n", timeout=20)
    assert said == ["held\n"] + ["refused\n"] * 5
