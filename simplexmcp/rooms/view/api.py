"""What is asked over HTTP, and answered: parameters to functions, results and refusals to JSON.

`GET /api/…` reads, `POST /api/…` takes one JSON object. Paths, parameters, results and statuses are those of the
reference program's viewer; `/api/around` is ours.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, final

from simplexmcp.rooms.errors import DatabaseError, RoomsError
from simplexmcp.rooms.jsontext import loads
from simplexmcp.rooms.texts import is_unstorable
from simplexmcp.rooms.view import people, reading
from simplexmcp.rooms.view.handles import NoDatabase, is_busy
from simplexmcp.web.answers import Answer, HttpRefusal, json_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from simplexmcp.rooms.store.database import Database
    from simplexmcp.rooms.view.handles import Handles
    from simplexmcp.web.site import Handler, Request

__all__ = ["Api"]

T = TypeVar("T")

_BODY = 700_000  # bytes of a request
_SAFE = 2**53 - 1
# Those that the reference cuts off at the ends.
_BLANKS = (
    " \t\n\r\v\f\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


@final
class Api:
    """The handlers over a database."""

    def __init__(self, handles: Handles) -> None:
        self._handles = handles

    def routes(self) -> dict[tuple[str, str], Handler]:
        """All of them, by method and path."""
        reads: dict[str, Handler] = {
            "rooms": self._rooms,
            "room": self._room,
            "room-exists": self._room_exists,
            "messages": self._messages,
            "me": self._me,
            "search": self._search,
            "around": self._around,
        }
        writes = {
            "join": _join,
            "leave": _leave,
            "read": _read,
            "post": _post,
            "delete-room": _delete_room,
        }
        return {
            **{("GET", f"/api/{name}"): partial(_answered, read) for name, read in reads.items()},
            **{
                ("POST", f"/api/{name}"): partial(_answered, partial(self._write, work))
                for name, work in writes.items()
            },
        }

    async def _rooms(self, _request: Request) -> Any:
        def listed(db: Database) -> dict[str, Any]:
            rooms = reading.list_rooms(db)
            return {"rooms": [{key: value for key, value in room.items() if key != "latest"} for room in rooms]}

        return await self._read(listed, {"rooms": []})

    async def _room(self, request: Request) -> Any:
        room_id = _room_id(request, "id")
        return await self._read(lambda db: {"room": reading.room(db, room_id)}, {"room": None})

    async def _room_exists(self, request: Request) -> Any:
        room_id = _room_id(request, "id")
        return await self._read(lambda db: {"exists": reading.room_exists(db, room_id)}, {"exists": None})

    async def _messages(self, request: Request) -> Any:
        room_id = _room_id(request, "room")
        after, before = _number(request, "after"), _number(request, "before")
        limit = _limit(request, 200, 1000)

        def found(db: Database) -> dict[str, Any]:
            page = reading.messages(db, room_id, after=after, before=before, limit=limit)
            return {"messages": page.rows, **({"trimmed": True} if page.trimmed else {})}

        return await self._read(found, {"messages": []})

    async def _me(self, request: Request) -> Any:
        room_id, name = _room_id(request, "room"), request.query.get("name", "").strip(_BLANKS)
        if not name or is_unstorable(name):
            raise HttpRefusal(400, "name is missing.")
        return await self._read(lambda db: people.seat(db, room_id, name), {"joined": False})

    async def _search(self, request: Request) -> Any:
        room_id, query = _room_id(request, "room"), request.query.get("q", "").strip(_BLANKS)
        if not query or is_unstorable(query):
            raise HttpRefusal(400, "q is missing: the words to search for.")
        limit = _limit(request, 30, 100)

        def found(db: Database) -> dict[str, Any]:
            page = reading.search(db, room_id, query, limit)
            return {"matches": page.rows, "q": query, **({"trimmed": True} if page.trimmed else {})}

        return await self._read(found, {"matches": []})

    async def _around(self, request: Request) -> Any:
        room_id = _room_id(request, "room")
        return await self._read(
            lambda db: reading.around(db, room_id),
            {"agents": [], "total": 0, "claims": [], "claimed": 0, "pending": []},
        )

    async def _read(self, work: Callable[[Database], T], empty: dict[str, Any]) -> T | dict[str, Any]:
        try:
            return await self._handles.read(work)
        except NoDatabase as error:
            return {**empty, "error": str(error)}

    async def _write(self, work: Callable[[dict[str, Any]], Callable[[Database], Any]], request: Request) -> Any:
        return await self._handles.write(work(await _object(request)))


async def _answered(handler: Callable[[Request], Awaitable[Any]], request: Request) -> Answer:
    try:
        return json_answer(await handler(request))
    except DatabaseError as error:
        raise HttpRefusal(503 if isinstance(error, NoDatabase) or is_busy(error) else 500, str(error)) from error
    except RoomsError as error:
        raise HttpRefusal(400, str(error)) from error


async def _object(request: Request) -> dict[str, Any]:
    """The JSON object in a request. HttpRefusal: it is none, or too large."""
    try:
        body = b"".join([part async for part in request.chunks(_BODY)])
    except HttpRefusal as refusal:
        if refusal.status == 413:
            raise HttpRefusal(413, f"The request is too large: at most {_BODY:,} bytes.") from refusal
        raise
    try:
        value = loads(body.decode())
    except (ValueError, RecursionError):
        raise HttpRefusal(400, "The request is no JSON.") from None
    if not isinstance(value, dict):
        raise HttpRefusal(400, "The request must be a JSON object.")
    return value


def _join(given: dict[str, Any]) -> Callable[[Database], Any]:
    room_id, name = _given_room(given), _given_name(given)
    return lambda db: people.join(db, room_id, name)


def _leave(given: dict[str, Any]) -> Callable[[Database], Any]:
    room_id, name = _given_room(given), _given_name(given)
    return lambda db: people.leave(db, room_id, name)


def _read(given: dict[str, Any]) -> Callable[[Database], Any]:
    room_id, name = _given_room(given), _given_name(given)
    if (seq := _safe(given.get("seq"))) is None or seq < 0:
        raise HttpRefusal(400, "seq must be a safe integer that is not negative.")
    return lambda db: people.mark_read(db, room_id, name, seq)


def _post(given: dict[str, Any]) -> Callable[[Database], Any]:
    room_id, name = _given_room(given), _given_name(given)
    body = given.get("body")
    if not isinstance(body, str) or not (text := body.strip(_BLANKS)):
        raise HttpRefusal(400, "The message is empty.")
    reply_to = None
    if given.get("reply_to_seq") is not None and ((reply_to := _safe(given["reply_to_seq"])) is None or reply_to <= 0):
        raise HttpRefusal(400, "reply_to_seq must be a positive safe integer.")
    return lambda db: people.post(db, room_id, name, text, reply_to)


def _delete_room(given: dict[str, Any]) -> Callable[[Database], Any]:
    room_id = _given_room(given)
    if given.get("confirm") is not True:
        raise HttpRefusal(400, "This deletes the room with all that is in it, for good: it needs confirm: true.")
    return lambda db: people.delete_room(db, room_id)


def _given_room(given: dict[str, Any]) -> int:
    if (room_id := _safe(given.get("room"))) is None or room_id <= 0:
        raise HttpRefusal(400, "room must be a positive safe integer.")
    return room_id


def _given_name(given: dict[str, Any]) -> str:
    name = given.get("name")
    if not isinstance(name, str) or not people.NAME.fullmatch(name := name.strip(_BLANKS)):
        raise HttpRefusal(400, "name must have 1 to 200 letters a-z, digits, _ . or -, and begin with no . or -.")
    return name


def _safe(value: Any) -> int | None:
    """A JSON number that is whole and exact; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) <= _SAFE and value == int(value) else None


def _room_id(request: Request, name: str) -> int:
    if (room_id := _whole(request.query.get(name, ""))) is None or room_id <= 0:
        raise HttpRefusal(400, f"{name} must be a positive safe integer.")
    return room_id


def _number(request: Request, name: str) -> int:
    if (number := _whole(request.query.get(name, "").strip() or "0")) is None:
        raise HttpRefusal(400, f"{name} must be a safe integer that is not negative.")
    return number


def _whole(text: str) -> int | None:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(_SAFE)) or int(text) > _SAFE:
        return None
    return int(text)


def _limit(request: Request, usual: int, most: int) -> int:
    """How many rows; whatever is no number gives the usual ones."""
    try:
        wanted = float(request.query.get("limit", ""))
    except ValueError:
        return usual
    return max(1, min(int(wanted), most)) if abs(wanted) < _SAFE and int(wanted) else usual
