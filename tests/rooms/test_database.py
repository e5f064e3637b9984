"""The database file: made, shared with the reference program, brought up to date, and refused with a clear reason."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplexmcp.rooms.errors import DatabaseError
from simplexmcp.rooms.store import database as module
from simplexmcp.rooms.store.database import open_database
from simplexmcp.rooms.store.rooms import find_room
from simplexmcp.rooms.store.schema import VERSION
from tests.rooms.client import InProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

# What the reference program makes, in its order, without what ours adds.
REFERENCE = """
PRAGMA journal_mode=WAL;
CREATE TABLE rooms (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, description TEXT, pinned TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE agents (id TEXT PRIMARY KEY, is_human INTEGER NOT NULL DEFAULT 0, brand TEXT, model TEXT, version TEXT,
  resume_word TEXT, runtime_epoch INTEGER NOT NULL DEFAULT 1, description TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE memberships (room_id INTEGER NOT NULL REFERENCES rooms(id), agent_id TEXT NOT NULL REFERENCES agents(id),
  joined_at TEXT NOT NULL DEFAULT (datetime('now')), last_read_seq INTEGER NOT NULL DEFAULT 0, last_seen TEXT,
  left_at TEXT, role TEXT, PRIMARY KEY (room_id, agent_id));
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, room_id INTEGER NOT NULL REFERENCES rooms(id),
  seq INTEGER NOT NULL, agent_id TEXT NOT NULL REFERENCES agents(id), format TEXT NOT NULL DEFAULT 'text',
  priority INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL, body_len INTEGER NOT NULL, mentions TEXT,
  reply_to_seq INTEGER, reply_to_agent TEXT, supersedes_seq INTEGER, client_message_id TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now')), UNIQUE (room_id, seq));
CREATE INDEX idx_messages_reply ON messages(room_id, reply_to_seq);
CREATE INDEX idx_messages_supersedes ON messages(room_id, supersedes_seq);
CREATE UNIQUE INDEX idx_messages_client_message_id ON messages(room_id, agent_id, client_message_id)
  WHERE client_message_id IS NOT NULL;
CREATE INDEX idx_messages_directed_candidates ON messages(room_id, seq)
  WHERE mentions IS NOT NULL OR reply_to_agent IS NOT NULL;
CREATE INDEX idx_memberships_agent_present ON memberships(agent_id, left_at, room_id);
CREATE TABLE claims (room_id INTEGER NOT NULL REFERENCES rooms(id), key TEXT NOT NULL, agent_id TEXT NOT NULL,
  note TEXT, expires_at TEXT NOT NULL, updated_at TEXT NOT NULL DEFAULT (datetime('now')), PRIMARY KEY (room_id, key));
CREATE TABLE wait_leases (room_id INTEGER NOT NULL REFERENCES rooms(id), agent_id TEXT NOT NULL REFERENCES agents(id),
  epoch INTEGER NOT NULL, started_at TEXT NOT NULL DEFAULT (datetime('now')), expires_at TEXT NOT NULL,
  PRIMARY KEY (room_id, agent_id));
CREATE VIRTUAL TABLE messages_fts USING fts5(body, content='messages', content_rowid='id');
CREATE TRIGGER messages_fts_ai AFTER INSERT ON messages BEGIN
  INSERT INTO messages_fts(rowid, body) VALUES (new.id, new.body); END;
CREATE TRIGGER messages_fts_ad AFTER DELETE ON messages BEGIN
  INSERT INTO messages_fts(messages_fts, rowid, body) VALUES ('delete', old.id, old.body); END;
"""
SEED = """
INSERT INTO rooms (name, pinned) VALUES ('hall', 'be kind');
INSERT INTO agents (id, brand, model, version, resume_word)
  VALUES ('acme-a-v1-000001', 'Acme', 'A', '1', 'calm-river-7');
INSERT INTO agents (id, is_human) VALUES ('anna', 1);
INSERT INTO memberships (room_id, agent_id, last_seen) VALUES (1, 'acme-a-v1-000001', datetime('now'));
INSERT INTO memberships (room_id, agent_id, last_seen) VALUES (1, 'anna', datetime('now'));
"""


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The reference program's connection to a file that it made."""
    connection = sqlite3.connect(tmp_path / "chat.db", isolation_level=None)
    connection.executescript(REFERENCE + SEED)
    connection.execute("PRAGMA foreign_keys=ON")
    yield connection
    connection.close()


def _post(connection: sqlite3.Connection, text: str, author: str = "anna") -> None:
    """Posts as the reference program does."""
    connection.execute("BEGIN IMMEDIATE")
    seq = connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM messages WHERE room_id = 1").fetchone()[0]
    connection.execute(
        "INSERT INTO messages (room_id, seq, agent_id, format, body, body_len, mentions, reply_to_seq, supersedes_seq)"
        " VALUES (1, ?, ?, 'text', ?, ?, NULL, NULL, NULL)",
        (seq, author, text, len(text)),
    )
    connection.execute("COMMIT")


def _columns(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in names}


def test_a_new_file_and_its_folder_are_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "chat.db"
    database = open_database(str(path))
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in (path.parent, *path.parent.iterdir())}
    assert modes == {"new": 0o700, "chat.db": 0o600, "chat.db-wal": 0o600, "chat.db-shm": 0o600}
    database.close()
    path.parent.chmod(0o755)
    path.chmod(0o644)
    open_database(str(path)).close()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_of_the_reference_program_opens_with_all_that_is_in_it(
    reference: sqlite3.Connection, tmp_path: Path
) -> None:
    _post(reference, "hello from before")
    before = _columns(reference)
    with InProcess(tmp_path / "chat.db") as ours:
        assert ours.database.value("PRAGMA user_version") == VERSION
        after = _columns(reference)
        assert {name: after[name] for name in before} == before
        assert set(after) - set(before) == {"simplexmcp_retention"}
        word = {"agent_id": "acme-a-v1-000001", "resume_word": "calm-river-7"}
        ours.call("resume_persona", brand="Acme", model="A", version="1", **word)
        assert ours.call("join_room", room="hall")["pinned"] == "be kind"
        assert [message["content"] for message in ours.call("catch_up")["messages"]] == ["hello from before"]
        assert len(ours.call("search_messages", query="before")["matches"]) == 1


def test_both_programs_write_to_one_file_in_turn(reference: sqlite3.Connection, tmp_path: Path) -> None:
    with InProcess(tmp_path / "chat.db") as ours:
        persona = ours.enter_room()
        for number in range(3):
            _post(reference, f"theirs{number}")
            assert ours.call("post_message", content=f"ours{number}")["seq"] == 2 * number + 2
        texts = [message["content"] for message in ours.call("catch_up")["messages"]]
        assert texts == ["theirs0", "theirs1", "theirs2"]
        found = "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'theirs1 OR ours1'"
        assert reference.execute(found).fetchone()[0] == 2
        assert reference.execute("SELECT count(*) FROM messages_fts_docsize").fetchone()[0] == 6
        reference.execute("INSERT INTO messages_fts(messages_fts) VALUES ('integrity-check')")
        mine = "SELECT count(*) FROM messages WHERE agent_id = ?"
        assert reference.execute(mine, (persona.agent_id,)).fetchone()[0] == 3
        # The reference makes what it finds missing by name: nothing of it is made twice.
        triggers = (
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'messages' AND name LIKE '%fts%'"
        )
        assert sorted(row[0] for row in reference.execute(triggers)) == ["messages_fts_ad", "messages_fts_ai"]


def test_the_reference_deletes_a_room_that_has_a_rule_of_ours(reference: sqlite3.Connection, tmp_path: Path) -> None:
    with InProcess(tmp_path / "chat.db") as ours:
        with ours.database.write():
            ours.database.run("INSERT INTO simplexmcp_retention (room_id, keep_last) VALUES (1, 10)")
        _post(reference, "x")
        reference.execute("BEGIN IMMEDIATE")
        for table in ("messages", "memberships", "claims", "wait_leases"):
            reference.execute(f"DELETE FROM {table} WHERE room_id = 1")
        reference.execute("DELETE FROM rooms WHERE id = 1")
        reference.execute("COMMIT")
        assert ours.database.value("SELECT count(*) FROM simplexmcp_retention") == 0
        assert ours.call("list_rooms")["total"] == 0


def test_a_file_that_ours_made_has_every_part_that_the_reference_wants(
    reference: sqlite3.Connection, tmp_path: Path
) -> None:
    ours = open_database(str(tmp_path / "new" / "chat.db"))
    wanted = {row[0] for row in reference.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")}
    made = {row["name"] for row in ours.all("SELECT name FROM sqlite_master")}
    assert wanted <= made
    assert {name.split("_")[0] for name in made - wanted if "reject_nul" not in name} <= {"simplexmcp", "sqlite"}
    ours.close()


def test_messages_written_without_the_search_index_are_found_after_opening(
    reference: sqlite3.Connection, tmp_path: Path
) -> None:
    reference.execute("DROP TRIGGER messages_fts_ai")
    _post(reference, "unindexed")
    with InProcess(tmp_path / "chat.db") as ours:
        found = "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'unindexed'"
        assert ours.database.value(found) == 1


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "chat.db")
    first = open_database(path)
    version = first.data_version()
    second = open_database(path)
    assert first.data_version() == version
    assert second.value("PRAGMA foreign_keys") == 1
    assert (second.value("PRAGMA journal_mode"), second.value("PRAGMA synchronous")) == ("wal", 1)
    first.close()
    second.close()


def test_several_processes_can_make_one_file_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "chat.db")
    code = (
        "import sys; from simplexmcp.rooms.store.database import open_database; sys.stdin.readline();"
        "open_database(sys.argv[1]).close()"
    )
    makers = [
        subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    assert [maker.communicate()[1] for maker in makers] == [""] * 6
    assert [maker.returncode for maker in makers] == [0] * 6
    database = open_database(path)
    assert database.value("PRAGMA integrity_check") == "ok"
    database.close()


def _refusal(path: Path | str, **options: bool) -> str:
    with pytest.raises(DatabaseError) as caught:
        open_database(str(path), **options)
    text = str(caught.value)
    assert str(path) in text
    assert "OperationalError" not in text
    assert text.endswith(".")
    return text


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    database = open_database(str(path))
    with database.write():
        database.run(f"PRAGMA user_version={VERSION + 1}")
    database.close()
    before = path.read_bytes()
    text = _refusal(path)
    assert "newer" in text
    assert "Install" in text
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    for number, sql in enumerate(
        (
            "CREATE TABLE bookmarks (url TEXT); PRAGMA user_version=77",
            "CREATE TABLE rooms (id INTEGER PRIMARY KEY, price REAL)",
            "CREATE TABLE rooms (id, name, description, pinned, created_at); CREATE TABLE agents (id, connection_id)",
        )
    ):
        path = tmp_path / f"other{number}.db"
        connection = sqlite3.connect(path)
        connection.executescript(sql)
        connection.close()
        before = path.read_bytes()
        assert "SIMPLEXMCP_ROOMS_DB" in _refusal(path)
        assert path.read_bytes() == before
        assert [each.name for each in tmp_path.iterdir() if each.name.startswith(path.name)] == [path.name]


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("just some notes\n" * 500)
    assert "no SQLite database" in _refusal(path)
    assert path.read_text() == "just some notes\n" * 500


def test_a_folder_or_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "cannot be opened" in _refusal(tmp_path)
    assert "There is no rooms database" in _refusal(tmp_path / "none.db", create=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="Cannot make"):
        open_database(str(tmp_path / "file" / "deeper" / "chat.db"))


@pytest.fixture
def locked_folder() -> Iterator[Path]:
    """A folder with a database, and a user who may read but not write them."""
    folder = Path(tempfile.mkdtemp())
    open_database(str(folder / "chat.db")).close()
    (folder / "chat.db").chmod(0o444)
    folder.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(user)
        folder.chmod(0o700)
        for each in folder.iterdir():
            each.unlink()
        folder.rmdir()


def test_a_file_that_may_not_be_written_is_refused_with_what_to_do(locked_folder: Path) -> None:
    text = _refusal(locked_folder / "chat.db")
    assert "writable" in text
    with pytest.raises(DatabaseError, match="Cannot make the file"):
        open_database(str(locked_folder / "other.db"))


def test_a_full_disk_refuses_the_post_and_keeps_what_was_there(alice: InProcess) -> None:
    alice.enter_room()
    alice.call("post_message", content="kept")
    pages = alice.database.value("PRAGMA page_count")
    alice.database.value(f"PRAGMA max_page_count={pages + 2}")
    error = alice.refused("post_message", content="x" * 100_000)["error"]
    assert "is full" in error
    assert "Nothing was written" in error
    assert [message["content"] for message in alice.call("read_history")["messages"]] == ["kept"]
    alice.database.value("PRAGMA max_page_count=1000000")
    assert alice.call("post_message", content="x" * 100_000)["seq"] == 2
    assert alice.database.value("PRAGMA integrity_check") == "ok"


def test_a_file_that_others_keep_busy_is_told_to_be_tried_again(
    alice: InProcess, bob: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.enter_room()
    monkeypatch.setattr(module, "_BUSY_MS", 20)
    with bob.database.write():
        error = alice.refused("post_message", content="x")["error"]
        assert "busy" in error
        assert "Try again" in error
        assert alice.call("read_history")["messages"] == []
    assert alice.call("post_message", content="x")["seq"] == 1


def test_a_damaged_file_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with InProcess(path) as ours:
        ours.enter_room()
        for _ in range(50):
            ours.call("post_message", content="x" * 2000)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    assert "damaged" in _refusal(path)


def test_a_read_only_connection_writes_nothing_and_migrates_nothing(
    reference: sqlite3.Connection, tmp_path: Path
) -> None:
    database = open_database(str(tmp_path / "chat.db"), create=False, read_only=True)
    assert find_room(database, "hall")["id"] == 1
    with pytest.raises(DatabaseError, match="cannot be written"), database.write():
        database.run("DELETE FROM rooms")
    assert reference.execute("PRAGMA user_version").fetchone()[0] == 0
    database.close()
