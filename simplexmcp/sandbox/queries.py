"""The few database queries that programs use."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

from simplexmcp.sandbox import errors, shapes
from simplexmcp.sandbox.times import is_time

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Item

__all__ = ["sql"]

_PENDING = re.compile(
    r"SELECT count\(\*\)( AS \w+)? FROM snd_message_deliveries WHERE failed = 0"
    r"(?: AND conn_id IN \((?P<conns>.*)\))?\s*;?",
    re.IGNORECASE | re.DOTALL,
)
_CAST = re.compile(r"CAST\('(?P<id>[^']*)' AS BLOB\)", re.IGNORECASE)
_CONNS = re.compile(
    r"SELECT (?P<columns>c\.agent_conn_id)\s.*\bgroup_id = (?P<group>\d{1,18}).*", re.IGNORECASE | re.DOTALL
)


_AGE = re.compile(
    r"UPDATE chat_items SET item_ts = '(?P<ts>[-\d]+ [:.\d]+)', created_at = '(?P<created>[-\d]+ [:.\d]+)'"
    r" WHERE chat_item_id = (?P<item>\d{1,18})",
    re.IGNORECASE,
)


_CARD = re.compile(
    r"UPDATE contact_profiles SET contact_link = CAST\('(?P<link>[^']+)' AS BLOB\) WHERE contact_profile_id = "
    r"\(SELECT contact_profile_id FROM contacts WHERE contact_id = (?P<contact>\d{1,18})\)",
    re.IGNORECASE,
)


_DESCRIPTION = re.compile(
    r"SELECT d\.file_descr_complete, d\.file_descr_text FROM rcv_files r JOIN xftp_file_descriptions d "
    r"ON d\.file_descr_id = r\.file_descr_id WHERE r\.file_id = (?P<file>\d{1,18})\s*;?",
    re.IGNORECASE,
)


def sql(core: SimulatedCore, a: Arguments) -> Event:
    """`/sql …`: pending deliveries, the connections of a group, making an item older, giving a card an address, the
    description of a file."""
    query = a.text("query").strip()
    if a.text("base") == "agent" and (m := _PENDING.fullmatch(query)):
        return _pending(core, m)
    if a.text("base") == "chat" and (m := _CONNS.fullmatch(query)):
        return _group_connections(core, int(m["group"]), ready="conn_status" in query)
    if a.text("base") == "chat" and (m := _AGE.fullmatch(query)) and int(m["item"]) in core.state.items:
        return _age(core, core.state.items[int(m["item"])], m["ts"], m["created"])
    if a.text("base") == "chat" and (m := _CARD.fullmatch(query)) and int(m["contact"]) in core.state.contacts:
        return _set_address(core, int(m["contact"]), m["link"])
    if a.text("base") == "chat" and (m := _DESCRIPTION.fullmatch(query)):
        return _description(core, int(m["file"]))
    if query.rstrip(";").casefold() == "select 1":
        return {"type": "sQLResult", "rows": ["1", "1"]}
    raise errors.not_modelled("this SQL query")


def _description(core: SimulatedCore, number: int) -> Event:
    row = core.state.files.get(number)
    if row is None or row.sent:
        return {"type": "sQLResult", "rows": []}
    shown = f"{1 if row.description else 0}|{row.description}"
    return {"type": "sQLResult", "rows": ["file_descr_complete|file_descr_text", shown]}


def _pending(core: SimulatedCore, m: re.Match[str]) -> Event:
    wanted = None if m["conns"] is None else {c["id"] for c in _CAST.finditer(m["conns"])}
    waiting = core.network.waiting(core.name)
    count = sum(len(d["bodies"]) for d in waiting if wanted is None or _raw(d["conn"]) in wanted)
    return {"type": "sQLResult", "rows": ["count(*)", str(count)]}


def _age(core: SimulatedCore, row: Item, ts: str, created: str) -> Event:
    times = [text.replace(" ", "T") + "Z" for text in (ts, created)]
    if not all(is_time(text) for text in times):
        raise errors.not_modelled("times of another form")
    core.index.remove(row)
    row.ts, row.created = times
    core.index.add(row)
    return {"type": "sQLResult", "rows": []}


def _set_address(core: SimulatedCore, contact_id: int, link: str) -> Event:
    profile = core.state.profiles[core.state.contacts[contact_id].profile_id]
    profile.data = {**profile.data, "contactLink": link}
    return {"type": "sQLResult", "rows": []}


def _raw(agent_id: str) -> str:
    return urlsafe_b64decode(agent_id).decode()


def _group_connections(core: SimulatedCore, group_id: int, *, ready: bool) -> Event:
    rows = [
        _raw(conn.agent_id)
        for member in shapes.members_of(core.state, group_id)
        if (conn := core.conn_of(member)) is not None and (conn.status == "ready" or not ready)
    ]
    return {"type": "sQLResult", "rows": ["agent_conn_id", *rows] if rows else []}
