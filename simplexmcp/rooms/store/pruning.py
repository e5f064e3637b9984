"""Removing old messages: by hand, and by a room's own rule. Numbers never start again: the newest message stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from simplexmcp.rooms.store.unread import latest_seq

if TYPE_CHECKING:
    from simplexmcp.rooms.store.database import Database

__all__ = ["BATCH", "Pruning", "Retention", "apply_retention", "prune", "retention", "set_retention"]

# In one transaction of a room's own rule: a room that was never pruned must not keep the writers waiting.
BATCH = 1000
_DELETE = "DELETE FROM messages WHERE room_id = ? AND seq <= ?"


class Pruning(NamedTuple):
    """What happened: `deleted` and `kept` messages; when refused, how many that somebody has not read are in the way
    and the lowest marker of those members."""

    deleted: int
    kept: int
    unread: int = 0
    lowest_marker: int | None = None


class Retention(NamedTuple):
    """A room's own rule: at most `keep_last` messages, none older than `max_age_days` days; None: no such bound."""

    keep_last: int | None
    max_age_days: int | None


def prune(db: Database, room_id: int, keep_last: int, *, force: bool) -> Pruning:
    """Inside a transaction: deletes all but the newest messages, unless a member has not read one of the others."""
    cutoff = db.value(
        "SELECT seq FROM messages WHERE room_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?", room_id, keep_last
    )
    total = db.value("SELECT count(*) FROM messages WHERE room_id = ?", room_id)
    if cutoff is None:
        return Pruning(0, total)
    if not force:
        blocking = db.one(
            # Per doomed message: is there any member, present or not, who neither wrote nor read it?
            "SELECT count(*) AS unread, min(lowest) AS lowest FROM ("
            " SELECT (SELECT min(m.last_read_seq) FROM memberships m WHERE m.room_id = d.room_id"
            "  AND m.agent_id <> d.agent_id AND m.last_read_seq < d.seq) AS lowest"
            " FROM messages d WHERE d.room_id = ?1 AND d.seq <= ?2"
            "  AND d.seq > (SELECT coalesce(min(last_read_seq), ?2) FROM memberships WHERE room_id = ?1)"
            ") WHERE lowest IS NOT NULL",
            room_id,
            cutoff,
        )
        assert blocking is not None
        if blocking["unread"]:
            return Pruning(0, total, blocking["unread"], blocking["lowest"])
    deleted = db.run(_DELETE, room_id, cutoff).rowcount
    return Pruning(deleted, total - deleted)


def retention(db: Database, room_id: int) -> Retention | None:
    """The room's own rule, if it has one."""
    row = db.one("SELECT keep_last, max_age_days FROM simplexmcp_retention WHERE room_id = ?", room_id)
    return None if row is None else Retention(row["keep_last"], row["max_age_days"])


def set_retention(db: Database, room_id: int, rule: Retention | None) -> None:
    """Inside a transaction: gives the room a rule, or (None) takes it away."""
    if rule is None:
        db.run("DELETE FROM simplexmcp_retention WHERE room_id = ?", room_id)
        return
    db.run(
        "INSERT INTO simplexmcp_retention (room_id, keep_last, max_age_days) VALUES (?, ?, ?)"
        " ON CONFLICT (room_id) DO UPDATE SET keep_last = excluded.keep_last, max_age_days = excluded.max_age_days",
        room_id,
        rule.keep_last,
        rule.max_age_days,
    )


def apply_retention(db: Database, room_id: int) -> int:
    """Deletes what the room's rule gives up, oldest first and at most BATCH, as far as every member has read it: how
    many messages."""
    rule = retention(db, room_id)
    if rule is None:
        return 0
    with db.write():
        rule = retention(db, room_id)
        latest = latest_seq(db, room_id)
        if rule is None or latest == 0:
            return 0
        given_up = 0
        if rule.keep_last is not None:
            given_up = latest - rule.keep_last
        if rule.max_age_days is not None:
            # Numbers and times rise together: the first message that is young enough ends what is too old.
            young = db.value(
                "SELECT seq FROM messages WHERE room_id = ? AND created_at >= datetime('now', ?) ORDER BY seq LIMIT 1",
                room_id,
                f"-{rule.max_age_days} days",
            )
            given_up = max(given_up, (latest if young is None else young) - 1)
        oldest = db.value("SELECT min(seq) FROM messages WHERE room_id = ?", room_id)
        last = min(given_up, _read_by_all(db, room_id, latest), oldest + BATCH - 1)
        deleted = db.run(_DELETE, room_id, last).rowcount
    if deleted:
        db.shrink()
    return deleted


def _read_by_all(db: Database, room_id: int, latest: int) -> int:
    """The number up to which no member, present or not, lacks a message of another."""
    unread = db.value(
        "SELECT min((SELECT d.seq FROM messages d WHERE d.room_id = m.room_id AND d.seq > m.last_read_seq"
        " AND d.agent_id <> m.agent_id ORDER BY d.seq LIMIT 1)) FROM memberships m WHERE m.room_id = ?",
        room_id,
    )
    return latest if unread is None else unread - 1
