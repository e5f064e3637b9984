"""Requests to the page of the rooms: each is answered in JSON, or refused, and the next good one is served."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.fuzz.mutate import as_text, changed, damaged, junk
from tests.rooms.client import InProcess
from tests.rooms.view.view import View, viewing

if TYPE_CHECKING:
    from random import Random

    from tests.fuzz.budget import Budget

__all__ = ["viewer"]

_TOGETHER = 25
"""Requests between two looks whether the room is still shown."""
_READS = ("rooms", "room", "room-exists", "messages", "me", "search", "around", "nothing")
_WRITES = ("join", "leave", "read", "post", "delete-room", "nothing")
_FIELDS: dict[str, Any] = {
    "room": 2, "id": 2, "name": "Ann", "body": "hello", "reply_to_seq": 1, "seq": 1, "q": "word", "limit": 5,
    "after": 0, "before": 9, "confirm": True,
}  # fmt: skip
_TEXTS = (
    "", "0", "-1", "1.5", "1e3", "nan", "inf", "9" * 400, "٣", "\0", "\ud800", '"', "NEAR(", "a*", "col:x", "Ann",
    "x" * 5_000, "<script>", "%", "../",
)  # fmt: skip


async def viewer(budget: Budget) -> None:
    """Requests with changed queries and bodies."""
    with tempfile.TemporaryDirectory() as folder, InProcess(Path(folder) / "rooms.db") as agent:
        agent.enter_room("kept")
        agent.call("post_message", content="a word")
        agent.text("create_room", name="lost")
        async with viewing(Path(folder) / "rooms.db") as view:
            for random in budget:
                status, answer = await _ask(view, random)
                assert status in (200, 400, 404, 409, 413), (status, answer)
                if budget.tried % _TOGETHER == 0:
                    await _shown(view)
            await _shown(view)


async def _ask(view: View, random: Random) -> tuple[int, Any]:
    given = {name: value for name, value in _FIELDS.items() if random.random() < 0.8}
    given["room"] = given["id"] = 2  # the other one stays
    for _ in range(random.choice((0, 1, 1, 2))):
        given[random.choice(list(_FIELDS))] = random.choice(_TEXTS)
    if random.random() < 0.5:
        given["room"] = 2 if given["room"] == "1" else given["room"]
        query = urlencode(given, errors="surrogatepass")
        reply = await view.ask("GET", f"/api/{random.choice(_READS)}?{query}")
    else:
        body = as_text(given).encode()
        kind = random.randrange(5)
        if kind == 0:
            body = damaged(random, body)
        elif kind == 1:
            body = as_text(junk(random) if random.random() < 0.3 else changed(random, given, [given])).encode()
        if b'"room": 1' in body:
            body = b"{}"
        reply = await view.ask("POST", f"/api/{random.choice(_WRITES)}", body, origin=None)
    try:
        return reply.status, json.loads(reply.body)
    except ValueError:
        assert reply.status == 404, reply
        return 404, None


async def _shown(view: View) -> None:
    assert [row["body"] for row in await view.rows(1)] == ["a word"]
