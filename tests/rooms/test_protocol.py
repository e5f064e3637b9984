"""What the server answers to each kind of message, without a process."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms.errors import BadArguments, DatabaseError, PersonaLost, RoomsError
from simplexmcp.rooms.fields import AnyContent, Integer, Text
from simplexmcp.rooms.protocol import Request, Session, decode, read_result
from simplexmcp.rooms.registry import ORDER, tools
from simplexmcp.rooms.runtime import Binding, Runtime, Tool
from simplexmcp.rooms.settings import Settings
from simplexmcp.rooms.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simplexmcp.errors import SimplexMcpError

MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


class Wait:
    """A call that waits until the test says what comes of it."""

    def __init__(self, seconds: float = 1000) -> None:
        self.deadline = time.monotonic() + seconds
        self.outcome: dict[str, Any] | Exception | None = None
        self.ended = 0

    def probe(self) -> dict[str, Any] | None:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def expire(self) -> dict[str, Any]:
        return {"timed_out": True}

    def end(self) -> None:
        self.ended += 1


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    settings = Settings(":memory:")
    database = open_database(settings.path)
    yield Runtime(database, settings)
    database.close()


def session(runtime: Runtime, call: Callable[[Runtime, dict[str, Any]], Any]) -> Session:
    fields = {"n": Integer("", 1, 5), "text": Text("", 5), "any": AnyContent("")}
    return Session(runtime, {"tool": Tool("tool", "A tool.", fields, call)})


def ask(session: Session, method: str, params: dict[str, Any] | None = None, key: int | str = 1) -> Any:
    answer = session.start(Request(key, method, params or {}))
    return None if answer is None else json.loads(answer)


def use(session: Session, **arguments: Any) -> tuple[bool, str]:
    return read_result(ask(session, "tools/call", {"name": "tool", "arguments": arguments})["result"])


def raising(error: Exception) -> Callable[[Runtime, dict[str, Any]], Any]:
    def call(_runtime: Runtime, _arguments: dict[str, Any]) -> Any:
        raise error

    return call


@pytest.mark.parametrize("key", [0, -1, 7, "", "a-b"])
def test_a_request_has_an_id_that_is_a_text_or_a_whole_number(key: int | str):
    line = json.dumps({"jsonrpc": "2.0", "id": key, "method": "ping"}).encode()
    assert decode(line) == Request(key, "ping", {})


def test_a_message_without_an_id_is_a_notification():
    assert decode(b'{"jsonrpc":"2.0","method":"m","params":{"a":1}}\r') == Request(None, "m", {"a": 1})


@pytest.mark.parametrize("line", [b"", b"  ", b"\r", b'{"jsonrpc":"2.0","id":1,"result":{}}'])
def test_there_is_nothing_to_do_for_an_empty_line_or_an_answer(line: bytes):
    assert decode(line) is None


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"ping"}', -32700),
        (b"[]", -32600),
        (b"1", -32600),
        (b"null", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602),
    ],
)
def test_a_line_that_is_no_request_is_answered_with_what_is_wrong(line: bytes, code: int):
    answer = decode(line)
    assert isinstance(answer, str)
    assert json.loads(answer)["error"]["code"] == code


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}", 7),
        (b'{ "jsonrpc": "2.0", "id": 8, "method": "m", "params": {"a": ' + b"1" * 5000 + b"}}", 8),
        (b'{"method":"m","params":{"a":NaN,"text":""id":3"},"jsonrpc":"2.0","id":9}\r', 9),
        (b'{"method":"m","params":{"jsonrpc":"2.0","id":3,"a":NaN}}', None),
        (b'{"jsonrpc":"2.0","id":1234567890123456,"params":{"a":NaN}}', None),
    ],
)
def test_a_request_that_cannot_be_read_is_answered_by_its_id(line: bytes, key: int | None):
    answer = decode(line)
    assert isinstance(answer, str)
    assert json.loads(answer)["id"] == key


def test_a_notification_is_never_answered(runtime: Runtime):
    used: list[Any] = []
    talk = session(runtime, lambda _runtime, arguments: used.append(arguments) or {})
    for method in ("notifications/initialized", "nothing/like/this", "tools/call"):
        assert talk.start(Request(None, method, {"name": "tool", "arguments": {}})) is None
    assert decode(b'{"jsonrpc":"2.0","method":"m","params":[]}') is None
    assert used == []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_handshake_takes_the_clients_version(runtime: Runtime, version: str):
    hello = ask(session(runtime, raising(KeyError())), "initialize", {"protocolVersion": version})["result"]
    assert hello["protocolVersion"] == version
    assert hello["capabilities"] == {"tools": {"listChanged": True}}
    assert hello["serverInfo"]["name"] == "agent-chat-mcp"


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", None, 5, ["2025-06-18"]])
def test_the_handshake_offers_its_newest_version_to_a_client_with_another(runtime: Runtime, version: Any):
    hello = ask(session(runtime, raising(KeyError())), "initialize", {"protocolVersion": version})["result"]
    assert hello["protocolVersion"] == "2025-11-25"


def test_the_instructions_name_the_way_in_within_a_paragraph(runtime: Runtime):
    text = ask(session(runtime, raising(KeyError())), "initialize")["result"]["instructions"]
    for name in ("create_persona", "resume_persona", "list_rooms", "join_room", "catch_up", "my_mentions"):
        assert name in text
    assert len(text) < 650


def test_the_instructions_name_the_short_way_where_it_is_offered(runtime: Runtime):
    for reference, offered in ((False, True), (True, False)):
        talk = Session(runtime, tools(Settings(":memory:", reference_tools=reference)))
        text = ask(talk, "initialize")["result"]["instructions"]
        assert ("enter puts you into a room" in text) is offered
        assert "{" not in text


def test_a_request_of_the_newest_revision_needs_no_handshake(runtime: Runtime):
    talk = session(runtime, lambda _runtime, _arguments: {"done": True})
    found = ask(talk, "server/discover", MODERN)["result"]
    assert found["supportedVersions"][0] == "2026-07-28"
    assert (found["resultType"], found["capabilities"]) == ("complete", {"tools": {"listChanged": True}})
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "agent-chat-mcp"
    result = ask(talk, "tools/call", {"name": "tool", **MODERN})["result"]
    assert (result["resultType"], read_result(result)) == ("complete", (False, '{"done":true}'))
    assert ask(talk, "tools/list", MODERN)["result"]["ttlMs"] > 0


def test_a_version_that_nobody_knows_is_refused_with_those_that_are_known(runtime: Runtime):
    params = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}}
    error = ask(session(runtime, raising(KeyError())), "tools/list", params)["error"]
    assert error["code"] == -32022
    assert error["data"]["requested"] == "2031-01-01"
    assert "2026-07-28" in error["data"]["supported"]


def test_a_method_that_does_not_exist_is_an_error(runtime: Runtime):
    talk = session(runtime, raising(KeyError()))
    for method in ("resources/list", "prompts/list", "logging/setLevel", "_call", ""):
        assert ask(talk, method)["error"]["code"] == -32601
    assert ask(talk, "ping", key="p") == {"jsonrpc": "2.0", "id": "p", "result": {}}


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}, {"name": "tool", "arguments": [1]}])
def test_a_call_that_makes_no_sense_is_a_protocol_error(runtime: Runtime, params: dict[str, Any]):
    assert ask(session(runtime, raising(KeyError())), "tools/call", params)["error"]["code"] == -32602


def test_a_result_is_one_text_of_compact_json_with_letters_as_they_are(runtime: Runtime):
    talk = session(runtime, lambda _runtime, _arguments: {"a": "ä\U0001f600", "b": [1, None]})
    result = ask(talk, "tools/call", {"name": "tool"})["result"]
    assert result == {"content": [{"type": "text", "text": '{"a":"ä\U0001f600","b":[1,null]}'}]}
    raw = talk.start(Request(1, "tools/call", {"name": "tool"}))
    assert raw is not None
    assert "ä\U0001f600" in raw


def test_the_tool_gets_every_argument_with_its_default(runtime: Runtime):
    got: list[Any] = []
    talk = session(runtime, lambda _runtime, arguments: got.append(arguments) or {})
    use(talk, n=3.0)
    assert got == [{"n": 3, "text": None, "any": None}]


def test_arguments_that_do_not_fit_are_listed_and_the_tool_is_not_called(runtime: Runtime):
    failed, text = use(session(runtime, raising(AssertionError())), n=9, extra=1)
    head, _, issues = text.partition(": [")
    assert (failed, head) == (
        True,
        "MCP error -32602: Input validation error: Invalid arguments for tool tool",
    )
    assert {issue["code"] for issue in json.loads("[" + issues)} == {"unrecognized_keys", "too_big"}


def test_a_tool_may_find_more_that_is_wrong_with_its_arguments(runtime: Runtime):
    issue = {"code": "custom", "path": ["n"], "message": "n cannot be that"}
    failed, text = use(session(runtime, raising(BadArguments("tool", [issue]))))
    assert failed
    assert text.startswith("MCP error -32602: Input validation error: Invalid arguments for tool tool: [")
    assert "n cannot be that" in text


def test_an_unknown_tool_is_a_failed_result(runtime: Runtime):
    result = ask(session(runtime, raising(KeyError())), "tools/call", {"name": "tol"})["result"]
    assert read_result(result) == (True, "MCP error -32602: Tool tol not found")


@pytest.mark.parametrize("error", [RoomsError("No."), DatabaseError("No.", "disk I/O error")])
def test_a_refusal_is_readable_json(runtime: Runtime, error: Exception):
    assert use(session(runtime, raising(error))) == (True, '{\n  "error": "No."\n}')


def test_a_lost_persona_is_let_go_only_while_it_is_still_held_at_that_epoch(runtime: Runtime):
    talk = session(runtime, raising(PersonaLost("ada", 1, 2)))
    runtime.bind(Binding("ada", 3))
    failed, text = use(talk)
    assert failed
    assert json.loads(text) | {"error": "", "recover": ""} == {
        "code": "persona_lost",
        "terminal": True,
        "agent_id": "ada",
        "your_epoch": 1,
        "current_epoch": 2,
        "error": "",
        "recover": "",
    }
    assert runtime.binding == Binding("ada", 3)
    runtime.bind(Binding("ada", 1))
    use(talk)
    assert runtime.binding is None


def test_an_unexpected_fault_is_an_answer_and_a_line_without_its_words(
    runtime: Runtime, capfd: pytest.CaptureFixture[str]
):
    failed, text = use(session(runtime, raising(ValueError("the word is amber-otter-7"))))
    assert failed
    assert "ValueError" in json.loads(text)["error"]
    told = capfd.readouterr().err
    assert "ValueError" in told
    assert "test_protocol.py" in told
    assert "otter" not in told + text


def test_a_result_that_is_no_json_is_an_answer_too(runtime: Runtime, capfd: pytest.CaptureFixture[str]):
    assert use(session(runtime, lambda _runtime, _arguments: {"n": float("inf")}))[0]
    assert "ValueError" in capfd.readouterr().err


def test_a_lone_surrogate_comes_back_as_an_escape(runtime: Runtime):
    talk = session(runtime, lambda _runtime, arguments: {"text": arguments["text"]})
    answer = talk.start(Request("k\ud800", "tools/call", {"name": "tool", "arguments": {"text": "a\ud800"}}))
    assert answer is not None
    answer.encode()
    assert json.loads(read_result(json.loads(answer)["result"])[1]) == {"text": "a\ud800"}


def test_a_waiting_call_is_answered_when_its_tool_has_a_result(runtime: Runtime):
    wait = Wait()
    talk = session(runtime, lambda _runtime, _arguments: wait)
    assert ask(talk, "tools/call", {"name": "tool"}, key="w") is None
    assert (talk.waits, runtime.waits_open, talk.next_deadline()) == (1, 1, wait.deadline)
    assert talk.probe() == []
    wait.outcome = {"messages": []}
    (answer,) = talk.probe()
    assert json.loads(answer)["id"] == "w"
    assert read_result(json.loads(answer)["result"]) == (False, '{"messages":[]}')
    assert (talk.waits, runtime.waits_open, talk.next_deadline(), wait.ended) == (0, 0, None, 1)
    assert talk.probe() == []


def test_a_waiting_call_ends_at_its_deadline(runtime: Runtime):
    wait = Wait(seconds=0)
    talk = session(runtime, lambda _runtime, _arguments: wait)
    ask(talk, "tools/call", {"name": "tool"})
    assert [read_result(json.loads(answer)["result"]) for answer in talk.probe()] == [(False, '{"timed_out":true}')]
    assert wait.ended == 1


@pytest.mark.parametrize("error", [RoomsError("deleted while waiting"), PersonaLost("ada", 1, 2), ValueError("x")])
def test_a_waiting_call_ends_with_what_goes_wrong(
    runtime: Runtime, error: SimplexMcpError | ValueError, capfd: pytest.CaptureFixture[str]
):
    wait = Wait()
    talk = session(runtime, lambda _runtime, _arguments: wait)
    runtime.bind(Binding("ada", 1))
    ask(talk, "tools/call", {"name": "tool"})
    wait.outcome = error
    (answer,) = talk.probe()
    assert read_result(json.loads(answer)["result"])[0]
    assert (wait.ended, talk.waits) == (1, 0)
    assert (runtime.binding is None) == isinstance(error, PersonaLost)


def test_a_cancelled_wait_is_over_without_an_answer_and_others_wait_on(runtime: Runtime):
    waits = [Wait(), Wait()]
    left = list(waits)
    talk = session(runtime, lambda _runtime, _arguments: left.pop(0))
    for key in (1, "1"):
        ask(talk, "tools/call", {"name": "tool"}, key=key)
    for other in (2, True, 1.5, None, {"a": 1}):
        talk.cancel(other)
    assert talk.waits == 2
    talk.cancel("1")
    assert [wait.ended for wait in waits] == [0, 1]
    assert (talk.waits, talk.probe()) == (1, [])
    talk.end()
    assert [wait.ended for wait in waits] == [1, 1]


def test_the_tools_have_the_known_names_and_order_and_strict_schemas():
    found = tools(Settings(":memory:"))
    assert tuple(found)[:27] == ORDER
    for tool in found.values():
        assert tool.description
        assert len(tool.description) < 1000, tool.name


def test_the_list_of_tools_is_no_larger_than_it_must_be(runtime: Runtime):
    talk = Session(runtime, tools(Settings(":memory:")))
    listed = ask(talk, "tools/list")["result"]["tools"]
    assert [sorted(tool) for tool in listed] == [["description", "inputSchema", "name"]] * len(listed)
    assert all(tool["inputSchema"]["additionalProperties"] is False for tool in listed)
    assert len(json.dumps(listed[:27], ensure_ascii=False, separators=(",", ":")).encode()) < 31_944


@pytest.mark.parametrize("longest", [1, 25, 120])
def test_the_longest_wait_is_that_of_the_settings(longest: int):
    field = tools(Settings(":memory:", longest))["catch_up"].fields["wait_seconds"]
    assert field.schema()["maximum"] == longest
    assert field.schema()["minimum"] == 0
