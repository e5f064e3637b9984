"""Any call in any order: each is answered once, in JSON, and none of them finds a fault of the program."""

from __future__ import annotations

import json
import time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simplexmcp.rooms.protocol import Request, Session, read_result
from simplexmcp.rooms.registry import tools
from simplexmcp.rooms.runtime import Runtime
from simplexmcp.rooms.settings import Settings
from simplexmcp.rooms.store.database import open_database

SETTINGS = Settings(":memory:", reference_tools=True)
TOOLS = tools(SETTINGS)
WORDS = ["hall", "attic", "1", "2", "a", "word", "beginning", "latest", "acme-talker-v1-abcdef", "file:src/**", '"a b"']
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 60)
    | st.sampled_from([2**53, -(2**70), 1.5, 3.0, 100_000])
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
    | st.characters(categories=["Cs", "Cc"])
)
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a field takes, most of the time."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.none() | fitting(schema["anyOf"][0])
    kind = schema.get("type")
    if kind == "string":
        return st.sampled_from(WORDS) | st.text(min_size=schema.get("minLength", 0), max_size=12)
    if kind in ("integer", "number"):
        lowest = int(schema.get("minimum", schema.get("exclusiveMinimum", 0)))
        return st.integers(lowest, lowest + 40)
    if kind == "boolean":
        return st.booleans()
    if kind == "array":
        return st.lists(fitting(schema["items"]), max_size=3)
    if kind == "object":
        return st.fixed_dictionaries({name: fitting(inner) for name, inner in schema["properties"].items()})
    return junk


def calls_of(name: str) -> st.SearchStrategy[tuple[str, Any]]:
    """Calls of a tool: with arguments that fit, and with some that do not."""
    required: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    for field_name, field in TOOLS[name].fields.items():
        values = st.just(0) if field_name == "wait_seconds" else fitting(field.schema())
        (required if field.required else optional)[field_name] = values
    fit = st.fixed_dictionaries(required, optional=optional)
    spoilt = st.dictionaries(st.sampled_from([*TOOLS[name].fields, "zzz"]), junk, max_size=3)
    return st.tuples(st.just(name), st.one_of(fit, fit, fit, spoilt, junk))


any_call = st.one_of([calls_of(name) for name in TOOLS])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calls=st.lists(any_call, min_size=1, max_size=12))
def test_any_calls_in_any_order_are_answered(calls: list[tuple[str, Any]]):
    database = open_database(SETTINGS.path)
    talk = Session(Runtime(database, SETTINGS), TOOLS)
    start = [
        ("create_persona", {"brand": "Acme", "model": "Talker", "version": "1"}),
        ("create_room", {"name": "hall"}),
        ("join_room", {"room": "hall"}),
        ("post_message", {"content": "a word", "to": ["somebody"]}),
    ]
    for key, (name, arguments) in enumerate([*start, *calls]):
        line = talk.start(Request(key, "tools/call", {"name": name, "arguments": arguments}))
        if line is None:
            # It waits; a moment later it is over.
            talk._parked[0].waiting.deadline = time.monotonic()
            (line,) = talk.probe()
        line.encode()
        answer = json.loads(line)
        assert answer["id"] == key
        if "error" in answer:
            assert answer["error"]["code"] == -32602
            assert not isinstance(arguments, dict | None)
            continue
        failed, text = read_result(answer["result"])
        assert "unexpected" not in text or "unexpected" in json.dumps(arguments), (name, arguments, text)
        if not text.startswith("MCP error -32602: "):
            assert failed == ("error" in json.loads(text))
    assert talk.waits == 0
    database.close()
