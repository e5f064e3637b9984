from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms import check, watch
from simplexmcp.rooms.lock import hold, lock_name
from tests.rooms.watchers import WatcherProcess, locks, stepped, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rooms.client import InProcess
    from tests.rooms.watchers import Steps

# Watches as the command does, but looks at nothing of its own accord: whatever ends it, it was told.
TOLD = """
import sys
from simplexmcp.rooms import bell, watch, watching
bell._OWNER_SLICE = watching._SAFETY = 3600.0
sys.exit(watch.run(sys.argv[1:]))
"""
QUIET = {"has_updates": False, "timed_out": True}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return stepped(monkeypatch)


@pytest.fixture
def me(alice: InProcess, bob: InProcess) -> str:
    """Alice's persona; Bob is in the same room, number 1."""
    persona = alice.enter_room()
    bob.enter_room()
    return persona.agent_id


class Program:
    """The watcher inside the test; what it printed."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = str(path)
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, list[dict[str, Any]], str]:
        code = watch.run([*words, "--db", self.path])
        out, err = self._capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err


@pytest.fixture
def program(path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(path, capsys)


def epoch_moves(alice: InProcess) -> None:
    alice.database.run("UPDATE agents SET runtime_epoch = runtime_epoch + 1")


# --- news


def test_news_that_are_there_end_it_at_once(alice: InProcess, bob: InProcess, me: str, program: Program, steps: Steps):
    bob.call("post_message", content="Here is\n the plan\u202e.")
    bob.call("post_message", content="And this is for you", to=[me])
    sender = bob.call("whoami")["agent_id"]

    code, lines, err = program("--agent", me)

    assert (code, err, steps.now) == (0, "", 0.0)
    assert lines == [
        {
            "has_updates": True,
            "agent": me,
            "room_id": 1,
            "room_name": "hall",
            "mentions_only": False,
            "unread": 2,
            "directed": 1,
            "previews": [
                {"seq": 1, "from": sender, "directed": False, "preview": "Here is the plan ."},
                {"seq": 2, "from": sender, "directed": True, "preview": "And this is for you"},
            ],
        }
    ]
    assert list(lines[0])[:5] == ["has_updates", "agent", "room_id", "room_name", "mentions_only"]


def test_previews_show_what_is_directed_first_and_are_three_at_most(bob: InProcess, me: str, program: Program):
    for number in range(5):
        bob.call("post_message", content=f"{number} " + "long " * 200)
    for number in range(2):
        bob.call("post_message", content=f"for you {number}", to=[me])

    _code, lines, _err = program("--agent", me)

    assert [preview["seq"] for preview in lines[0]["previews"]] == [1, 6, 7]
    assert len(lines[0]["previews"][0]["preview"]) == 103
    assert (lines[0]["unread"], lines[0]["directed"]) == (7, 2)


def test_a_message_wakes_a_process_within_moments(path: Path, bob: InProcess, alice: InProcess, me: str):
    delays: list[float] = []
    for _ in range(3):
        with WatcherProcess(path, "--agent", me, "--room", "1") as watcher:
            watcher.armed()
            written = time.perf_counter()
            bob.call("post_message", content="now")
            assert watcher.line()["has_updates"] is True
            delays.append(time.perf_counter() - written)
            assert watcher.end()[0] == 0
        alice.call("catch_up")
    assert min(delays) < 0.3


def test_a_wal_file_made_anew_is_noticed(path: Path, bob: InProcess, alice: InProcess, me: str):
    with WatcherProcess(path, "--agent", me) as watcher:
        watcher.armed()
        alice.database.value("PRAGMA wal_checkpoint(TRUNCATE)")
        bob.call("post_message", content="after it")
        assert watcher.end()[0] == 0


def test_ones_own_message_wakes_nobody(alice: InProcess, me: str, program: Program, steps: Steps):
    steps.at(3, lambda: alice.call("post_message", content="mine"))
    assert program("--agent", me, "--ok-on-timeout", "--timeout", "60") == (0, [QUIET], "")
    assert steps.now == 60


def test_only_mentions_and_answers_count_with_mentions_only(
    alice: InProcess, bob: InProcess, me: str, program: Program, steps: Steps
):
    asked = alice.call("post_message", content="a question")["seq"]
    steps.at(1, lambda: bob.call("post_message", content="for all"))
    steps.at(2, lambda: bob.call("post_message", content="for another", to=[me + "0"]))
    steps.at(3, lambda: bob.call("post_message", content="the answer", reply_to_seq=asked))

    code, lines, _err = program("--agent", me, "--mentions-only")

    assert (code, steps.now) == (0, 3)
    assert (lines[0]["mentions_only"], lines[0]["unread"], lines[0]["directed"]) == (True, 3, 1)


def test_all_rooms_are_watched_without_one_and_rooms_that_were_left_are_not(
    alice: InProcess, bob: InProcess, me: str, program: Program, steps: Steps
):
    bob.call("create_room", name="attic")
    for runtime in (alice, bob):
        runtime.call("join_room", room="attic")
    alice.call("join_room", room="hall")
    alice.call("leave_room")
    steps.at(1, lambda: bob.call("post_message", content="in the hall", room="hall"))
    steps.at(2, lambda: bob.call("post_message", content="in the attic", room="attic"))

    code, lines, _err = program("--agent", me)

    assert (code, steps.now, lines[0]["room_name"]) == (0, 2, "attic")


def test_a_room_is_found_by_its_exact_name_and_digits_are_an_id(
    alice: InProcess, bob: InProcess, me: str, program: Program
):
    bob.call("post_message", content="x")
    assert program("--agent", me, "--room", "hall")[1][0]["room_id"] == 1
    assert program("--agent", me, "--room=0001")[1][0]["room_id"] == 1
    code, lines, err = program("--agent", me, "--room", "Hall")
    assert (code, lines) == (2, [])
    assert 'no room "Hall"' in err


# --- time


def test_an_interval_is_kept_to_the_second_and_the_last_look_is_at_the_deadline(
    bob: InProcess, me: str, program: Program, steps: Steps
):
    steps.at(0.5, lambda: bob.call("post_message", content="early"))
    assert program("--agent", me, "--interval", "5")[0] == 0
    assert steps.looks == [0, 5]

    steps.now, steps.looks = 0.0, []
    bob.database.run("UPDATE memberships SET last_read_seq = 1")
    steps.at(13, lambda: bob.call("post_message", content="late"))
    assert program("--agent", me, "--interval", "5", "--timeout", "14")[0] == 0
    assert steps.looks == [0, 5, 10, 14]


def test_a_quiet_end_is_124_or_with_the_flag_0(me: str, program: Program, steps: Steps):
    assert program("--agent", me) == (124, [], '{"timed_out":true}\n')
    assert steps.now == 1200
    assert program("--agent", me, "--ok-on-timeout", "--timeout", "7") == (0, [QUIET], "")
    assert steps.now == 1207


def test_nothing_written_costs_one_look_in_five_seconds(me: str, program: Program, steps: Steps):
    program("--agent", me, "--timeout", "60")
    assert len(steps.looks) == 13


def test_where_the_kernel_does_not_tell_the_database_is_asked(
    path: Path, bob: InProcess, me: str, program: Program, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("simplexmcp.rooms.wake._watch", lambda _folder: None)
    posted: list[float] = []
    wait = watch.Bell.wait

    def post_at_the_second_wait(bell: Any, moment: float) -> None:
        if bell.polls and not posted:
            posted.append(time.monotonic())
            bob.call("post_message", content="x")
        wait(bell, moment)

    monkeypatch.setattr(watch.Bell, "wait", post_at_the_second_wait)
    assert program("--agent", me)[0] == 0
    assert time.monotonic() - posted[0] < 4  # at the latest it looks after 5


# --- signs of life


def last_seen(alice: InProcess) -> dict[str, str]:
    rows = alice.database.all(
        "SELECT r.name, m.last_seen FROM memberships m JOIN rooms r ON r.id = m.room_id WHERE agent_id = ?",
        alice.runtime.bound().agent_id,
    )
    return {row["name"]: row["last_seen"] for row in rows}


def long_ago(alice: InProcess) -> None:
    alice.database.run("UPDATE memberships SET last_seen = '2001-01-01 00:00:00'")


@pytest.mark.parametrize(("words", "beats"), [([], True), (["--room", "1"], True), (["--room", "2"], False)])
def test_an_owned_watcher_says_every_two_minutes_that_the_persona_listens(
    alice: InProcess, me: str, program: Program, steps: Steps, words: list[str], beats: bool
):
    alice.call("create_room", name="attic")
    alice.call("join_room", room="attic")
    owned = ("--owner-pid", str(os.getpid()), "--epoch", "1", "--timeout", "130")
    long_ago(alice)
    steps.at(119, lambda: long_ago(alice))
    program("--agent", me, *owned, *words)
    assert (last_seen(alice)["hall"] > "2002") is beats


@pytest.mark.parametrize("words", [["--epoch", "1"], ["--owner-pid", str(os.getpid())]])
def test_without_owner_and_epoch_nothing_is_written(
    alice: InProcess, me: str, program: Program, steps: Steps, words: list[str]
):
    long_ago(alice)
    assert program("--agent", me, "--timeout", "9", *words)[0] == 124
    assert last_seen(alice)["hall"] < "2002"


# --- what ends it for good


def leaves(alice: InProcess) -> None:
    alice.call("leave_room")


def goes(alice: InProcess) -> None:
    alice.call("delete_room", room="1", confirm=True)


def vanishes(alice: InProcess) -> None:
    alice.database.run("PRAGMA foreign_keys=OFF")
    alice.database.run("DELETE FROM agents")


@pytest.mark.parametrize(
    ("words", "event", "text"),
    [
        ([], epoch_moves, "stale_binding: .* epoch 2 .* epoch 1"),
        ([], leaves, "left_all_rooms: .*join_room"),
        ([], goes, "no_room_memberships: .*join_room"),
        ([], vanishes, "no longer exists"),
        (["--room", "1"], epoch_moves, "stale_binding: .* epoch 2 .* epoch 1"),
        (["--room", "1"], leaves, "left_room: .* LEFT room 1.*join_room"),
        (["--room", "1"], goes, "no longer exists.*list_rooms.*create_room"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--follow"]])
def test_what_ends_the_watched_ends_the_watcher_with_its_name(
    alice: InProcess, me: str, program: Program, steps: Steps, words: list[str], event: Any, text: str, more: list[str]
):
    steps.at(4, lambda: event(alice))

    code, lines, err = program("--agent", me, "--epoch", "1", *words, *more)

    assert (code, steps.now) == (2, 4)
    assert err.startswith("agent-chat-poller: ")
    assert err.count("\n") == 1
    assert re.search(text, err)
    assert [line["has_updates"] for line in lines] == ([False] if more else [])
    assert [line["reason"] for line in lines] == ([err.removeprefix("agent-chat-poller: ").strip()] if more else [])


@pytest.mark.parametrize(
    ("words", "before", "text"),
    [
        (["--epoch", "2"], None, "stale_binding"),
        ([], leaves, "left_all_rooms"),
        (["--room", "1"], leaves, "left_room"),
        ([], goes, "no_room_memberships"),
        (["--room", "1"], goes, "no room"),
        (["--room", "hall"], lambda alice: alice.database.run("DELETE FROM memberships"), "never joined"),
    ],
)
def test_what_cannot_be_watched_is_refused_at_the_start(
    alice: InProcess, me: str, program: Program, words: list[str], before: Any, text: str
):
    if before is not None:
        before(alice)
    code, lines, err = program("--agent", me, *words)
    assert (code, lines) == (2, [])
    assert text in err
    assert locks() == []


def test_the_epoch_goes_before_the_membership_and_both_before_news(
    alice: InProcess, bob: InProcess, me: str, program: Program
):
    bob.call("post_message", content="x")
    leaves(alice)
    assert "left_all_rooms" in program("--agent", me, "--epoch", "1")[2]
    epoch_moves(alice)
    assert "stale_binding" in program("--agent", me, "--epoch", "1")[2]


def test_a_database_that_is_replaced_ends_it(path: Path, me: str, program: Program, steps: Steps):
    steps.at(3, lambda: path.rename(path.with_name("old.db")))
    assert "removed or replaced" in program("--agent", me)[2]


def test_the_end_of_the_owner_ends_it_at_once(path: Path, me: str):
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        words = ["--agent", me, "--owner-pid", str(owner.pid), "--epoch", "1"]
        with WatcherProcess(path, command=shlex.join([sys.executable, "-c", TOLD, *words])) as watcher:
            watcher.armed()
            owner.kill()
            code, out, err = watcher.end()
        assert (code, out) == (2, "")
        assert f"owner MCP process {owner.pid} has ended" in err
    finally:
        owner.communicate()
    with WatcherProcess(path, "--agent", me, "--owner-pid", str(owner.pid)) as watcher:
        assert watcher.end()[0] == 2


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=str
)
def test_a_signal_ends_it_with_its_code_and_without_a_lock_left(path: Path, me: str, number: Any, code: int):
    with WatcherProcess(path, "--agent", me) as watcher:
        watcher.armed().signal(number)
        assert watcher.end() == (code, "", "")
    assert locks() == []


# --- one for each scope


def test_a_second_watcher_of_a_scope_is_refused_and_another_scope_is_not(path: Path, bob: InProcess, me: str):
    with WatcherProcess(path, "--agent", me) as first:
        first.armed()
        with WatcherProcess(path, "--agent", me) as second:
            code, out, err = second.end()
        assert (code, out) == (2, "")
        assert "already running" in err
        assert locks()[0] in err
        with WatcherProcess(path, "--agent", me, "--mentions-only") as other:
            other.armed()
            bob.call("post_message", content="x", to=[me])
            assert other.end()[0] == 0
        assert first.end()[0] == 0
    assert locks() == []


def test_a_killed_watcher_blocks_nobody(path: Path, me: str):
    with WatcherProcess(path, "--agent", me) as first:
        first.armed().signal(signal.SIGKILL)
        first.end()
        assert len(locks()) == 1
        with WatcherProcess(path, "--agent", me) as second:
            second.armed().signal(signal.SIGTERM)
            assert second.end()[0] == 143
    assert locks() == []


# --- following


def test_following_tells_each_news_once_at_most_each_second(
    bob: InProcess, alice: InProcess, me: str, program: Program, steps: Steps
):
    for moment in (0.1, 0.2, 0.3, 0.4, 9):
        steps.at(moment, lambda moment=moment: bob.call("post_message", content=f"at {moment}"))
    steps.at(10.5, lambda: alice.call("catch_up"))
    steps.at(11, lambda: bob.call("post_message", content="at 11", to=[me]))
    steps.at(20, lambda: setattr(steps, "signal", signal.SIGTERM))

    code, lines, err = program("--agent", me, "--follow")

    assert (code, err) == (143, "")
    assert [[preview["preview"] for preview in line["previews"]] for line in lines] == [
        ["at 0.1"],
        ["at 0.2", "at 0.3", "at 0.4"],
        ["at 9"],
        ["at 11"],
    ]
    assert [(line["unread"], line["directed"]) for line in lines] == [(1, 0), (4, 0), (5, 0), (1, 1)]


def test_a_process_that_follows_writes_each_line_when_it_comes(path: Path, bob: InProcess, me: str):
    with WatcherProcess(path, "--agent", me, "--follow") as watcher:
        watcher.armed()
        for number in (1, 2):
            bob.call("post_message", content=str(number))
            assert watcher.line()["previews"][0]["preview"] == str(number)
        watcher.signal(signal.SIGTERM)
        assert watcher.end() == (143, "", "")


def test_following_tells_rooms_one_after_the_other_and_ends_only_at_a_given_timeout(
    bob: InProcess, alice: InProcess, me: str, program: Program, steps: Steps
):
    bob.call("create_room", name="attic")
    for runtime in (alice, bob):
        runtime.call("join_room", room="attic")
    for room in ("hall", "attic"):
        bob.call("post_message", content="x", room=room)

    code, lines, _err = program("--agent", me, "--follow", "--timeout", "5000")

    assert (code, steps.now) == (0, 5000)
    assert [line["room_name"] for line in lines] == ["hall", "attic"]


def test_a_busy_room_hides_no_other_from_who_follows(
    bob: InProcess, alice: InProcess, me: str, program: Program, steps: Steps
):
    bob.call("create_room", name="attic")
    for runtime in (alice, bob):
        runtime.call("join_room", room="attic")
    for number in range(60):
        steps.at(number / 10, lambda: bob.call("post_message", content="chatter", room="hall"))
    steps.at(1.05, lambda: bob.call("post_message", content="quiet", room="attic", to=[me]))

    _code, lines, _err = program("--agent", me, "--follow", "--timeout", "6")

    assert [line["room_name"] for line in lines[:4]] == ["hall", "hall", "attic", "hall"]


def test_following_with_an_interval_tells_at_its_looks(bob: InProcess, me: str, program: Program, steps: Steps):
    for moment in (0, 6, 7):
        steps.at(moment, lambda moment=moment: bob.call("post_message", content=f"at {moment}"))
    _code, lines, _err = program("--agent", me, "--follow", "--interval", "5", "--timeout", "21")
    assert [line["unread"] for line in lines] == [1, 3]
    assert steps.looks == [0, 5, 10, 15, 20, 21]


def test_a_reason_not_to_watch_is_on_stdout_too_when_it_follows(me: str, program: Program):
    with hold(lock_name(program.path, me, None, None, mentions_only=False)):
        code, lines, err = program("--agent", me, "--follow")
    assert (code, lines[0]["has_updates"], lines[0]["ended"]) == (2, False, "error")
    assert lines[0]["reason"] in err


def test_a_line_that_follows_is_short_whatever_it_tells(
    path: Path, alice: InProcess, bob: InProcess, me: str, steps: Steps, capsys: pytest.CaptureFixture[str]
):
    bob.call("create_room", name="\U0001f600" * 100)
    for runtime in (alice, bob):
        runtime.call("join_room", room="\U0001f600" * 100)
    bob.call("post_message", content="\U0001f680" * 500)
    steps.at(3, lambda: setattr(steps, "signal", signal.SIGTERM))

    watch.run(["--agent", me, "--follow", "--db", str(path)])

    line = capsys.readouterr().out
    assert len(line.encode()) <= 500
    assert json.loads(line)["room_id"] == 2


def test_a_database_that_only_the_reference_program_used_is_watched_and_counted(
    path: Path, alice: InProcess, bob: InProcess, me: str, program: Program, capsys: pytest.CaptureFixture[str]
):
    bob.call("post_message", content="x", to=[me])
    for kind, name in alice.database.all("SELECT type, name FROM sqlite_master WHERE name LIKE 'simplexmcp%'"):
        alice.database.run(f"DROP {kind} {name}")
    alice.database.run("PRAGMA user_version=0")
    for more in ([], ["--mentions-only"]):
        assert program("--agent", me, *more)[1][0]["directed"] == 1
        assert check.run(["--agent", me, "--db", str(path), *more]) == 0
        assert json.loads(capsys.readouterr().out)["unread_mentions"] == 1
    assert alice.database.value("PRAGMA user_version") == 0


# --- the command line


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "--agent is required"),
        (["--agent", " "], "--agent requires a non-empty value"),
        (["--agent"], "--agent requires a value"),
        (["--agent", "--room", "1"], "--agent requires a value"),
        (["--agent", "a" * 201], "too long"),
        (["--agent", "a", "--room", "r" * 501], "too long"),
        (["--agent", "a", "--interval", "4"], "between 5 and 3600"),
        (["--agent", "a", "--interval", "3601"], "between 5 and 3600"),
        (["--agent", "a", "--interval", "5s"], "--interval must be an integer"),
        (["--agent", "a", "--timeout", "0"], "between 1 and 86400"),
        (["--agent", "a", "--timeout", "-1"], "--timeout must be an integer"),
        (["--agent", "a", "--epoch", "0"], "at least 1"),
        (["--agent", "a", "--owner-pid", "2147483648"], "too large"),
        (["--agent", "a", "--since", "3"], "--since"),
        (["--agent", "a", "--mentions-only=yes"], "takes no value"),
        (["--agent", "a", "--loud"], "unknown argument: --loud"),
        (["--agent", "a", "extra"], "unknown argument: extra"),
    ],
)
def test_a_wrong_command_line_is_exit_2_with_the_usage(words: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    assert watch.run(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.startswith("agent-chat-poller: ")) == ("", True)
    assert text in err
    assert "Usage:" in err


def test_help_shows_the_usage_and_needs_nothing_else(capsys: pytest.CaptureFixture[str]):
    for word in ("--help", "-h"):
        assert watch.run([word]) == 0
        assert capsys.readouterr().out.startswith("Usage: ")


def test_a_database_is_never_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for path in (str(tmp_path / "none.db"), ":memory:"):
        assert watch.run(["--agent", "a", "--db", path]) == 2
        assert "database" in capsys.readouterr().err
    assert not (tmp_path / "none.db").exists()


def test_a_reader_that_is_gone_is_exit_2(path: Path, bob: InProcess, me: str):
    with WatcherProcess(path, "--agent", me) as watcher:
        watcher.armed()
        assert watcher.process.stdout is not None
        watcher.process.stdout.close()
        bob.call("post_message", content="x")
        until(lambda: watcher.process.poll() is not None)
        assert watcher.process.returncode == 2
        assert watcher.process.stderr is not None
        assert "nobody reads" in watcher.process.stderr.read()
        watcher.process.stdout = None


def test_it_loads_no_large_library(path: Path):
    code = "import sys, simplexmcp.rooms.watch; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"trio", "mcp", "argparse", "logging", "inspect", "dataclasses", "hashlib", "subprocess", "urllib.parse"}
    assert heavy.isdisjoint(loaded)
