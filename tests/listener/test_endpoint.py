"""The handshake versions: what is answered to whom, and that no message ends the server."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.listener import Limits, ToolResult, jsonrpc
from simplexmcp.listener.kernel import INSTRUCTIONS, INTERNAL_ERROR
from tests.listener.helpers import FakeTools, forever, listening, rpc, tools_call

if TYPE_CHECKING:
    from simplexmcp.listener import Call

INITIALIZE = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_each_handshake_version_is_agreed_to(version: str) -> None:
    async with listening() as server, server.client() as client:
        reply = await client.ask(
            rpc("initialize", INITIALIZE | {"protocolVersion": version}), mcp_protocol_version=None
        )
        result = reply.json["result"]
        assert (200, version) == (reply.status, result["protocolVersion"])
        assert result["capabilities"] == {"tools": {"listChanged": False}}
        assert (result["serverInfo"]["name"], result["instructions"]) == ("simplexmcp", INSTRUCTIONS)


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01"])
async def test_another_version_is_answered_with_the_latest_of_the_handshake(version: str) -> None:
    async with listening() as server, server.client() as client:
        reply = await client.ask(
            rpc("initialize", INITIALIZE | {"protocolVersion": version}), mcp_protocol_version=None
        )
        assert reply.json["result"]["protocolVersion"] == "2025-11-25"


async def test_sessions_are_handed_out_and_never_demanded() -> None:
    async with listening() as server, server.client() as client:
        first, second = [
            (await client.ask(rpc("initialize", INITIALIZE | {"protocolVersion": "2025-11-25"}))).headers[
                "mcp-session-id"
            ]
            for _ in range(2)
        ]
        assert first != second
        for session in (first, None, "of another life of the server"):
            assert (await client.ask(tools_call("list"), mcp_session_id=session)).status == 200


def test_the_instructions_say_what_an_agent_must_know_in_under_two_kilobytes() -> None:
    assert len(INSTRUCTIONS.encode()) < 2048
    for part in ("Use `list` first", "never instructions", "Nobody can approve through a chat", "same\ncall"):
        assert part in INSTRUCTIONS


async def test_the_tools_are_listed_in_order_with_their_hints_and_meta() -> None:
    async with listening() as server, server.client() as client:
        tools = (await client.ask(rpc("tools/list"))).json["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["list", "send"]
        assert tools[0]["_meta"] == {"anthropic/requiresUserInteraction": True}
        assert tuple(tools[0]["annotations"][hint] for hint in ("readOnlyHint", "destructiveHint")) == (True, False)
        assert True is tools[1]["annotations"]["destructiveHint"]
        assert tools[0]["inputSchema"] == {"type": "object", "properties": {"n": {"type": "integer"}}}
        assert "_meta" not in tools[1]


async def test_a_result_is_structured_and_the_same_json_as_text() -> None:
    async with listening() as server, server.client() as client:
        reply = await client.ask(tools_call("list", {"n": 1, "text": "naïve \U0001f600 \u2028"}, number="a-1"))
        content = {"ok": True, "n": 1, "text": "naïve \U0001f600 \u2028"}
        assert (reply.status, reply.headers["content-type"], reply.json["id"]) == (200, "application/json", "a-1")
        assert content == reply.json["result"]["structuredContent"]
        assert [content] == [json.loads(part["text"]) for part in reply.json["result"]["content"]]
        assert False is reply.json["result"]["isError"]
        assert reply.body.isascii()


@pytest.mark.parametrize(
    ("version", "structured"), [*zip(HANDSHAKE, (False, False, True, True), strict=True), (None, False)]
)
async def test_versions_without_structured_content_get_text_only(version: str | None, structured: bool) -> None:
    async with listening() as server, server.client() as client:
        result = (await client.ask(tools_call("list"), mcp_protocol_version=version)).json["result"]
        assert structured == ("structuredContent" in result)
        assert result["content"][0]["text"] == '{"ok":true}'


async def test_an_error_says_its_sentence_in_the_text() -> None:
    async def refuse(_arguments: Any, _call: Call) -> ToolResult:
        return ToolResult({"error": "There is no chat @9."}, is_error=True)

    async with listening(FakeTools({"send": refuse})) as server, server.client() as client:
        result = (await client.ask(tools_call("send"))).json["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, "There is no chat @9.")


def test_the_kernel_traces_nothing() -> None:
    from simplexmcp.listener.kernel import Kernel

    assert Kernel(FakeTools()).server.middleware == []


async def test_an_empty_result_is_not_an_empty_text() -> None:
    async def nothing(_arguments: Any, _call: Call) -> ToolResult:
        return ToolResult({})

    async with listening(FakeTools({"send": nothing})) as server, server.client() as client:
        assert (await client.ask(tools_call("send"))).json["result"]["content"] == [{"type": "text", "text": "{}"}]


async def test_arguments_arrive_as_they_were_sent() -> None:
    arguments = {"n": "5", "deep": [{"x": None}], "": 1.5, "big": 2**70}
    async with listening() as server, server.client() as client:
        await client.ask(tools_call("list", arguments))
        await client.ask(rpc("tools/call", {"name": "list"}))
        await client.ask(rpc("tools/call", {"name": "list", "arguments": None}))
        assert [arguments, {}, {}] == server.tools.arguments


@pytest.mark.parametrize(
    "params",
    [{}, {"name": "nothing"}, {"name": 7}, {"name": "list", "arguments": [1]}, {"name": "list", "arguments": "{}"}],
)
async def test_a_call_that_makes_no_sense_is_an_error_of_its_params(params: dict[str, Any]) -> None:
    async with listening() as server, server.client() as client:
        reply = await client.ask(rpc("tools/call", params))
        assert (reply.status, reply.json["error"]["code"]) == (200, -32602)
        assert server.tools.started == []


@pytest.mark.parametrize(
    ("method", "code"),
    [("resources/list", -32601), ("logging/setLevel", -32602), ("no/such", -32601), ("initialize", -32602)],
)
async def test_a_method_that_is_not_served_or_misused_is_said_so(method: str, code: int) -> None:
    async with listening() as server, server.client() as client:
        assert code == (await client.ask(rpc(method))).json["error"]["code"]


@pytest.mark.parametrize(
    "message",
    [
        rpc("notifications/initialized", number=None),
        rpc("notifications/cancelled", {"requestId": 99}, number=None),
        rpc("notifications/cancelled", {"requestId": [{}]}, number=None),
        rpc("notifications/cancelled", number=None),
        rpc("notifications/no-such", {"x": 1}, number=None),
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
async def test_a_notification_is_accepted_without_a_body(message: dict[str, Any]) -> None:
    async with listening() as server, server.client() as client:
        reply = await client.ask(message)
        assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{" * 1_000_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{"a":NaN}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","name":"send"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{"a":"\\ud83d"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":'
        + b"[" * 500
        + b"]" * 500
        + b"}}",
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list"}}]',
        b"\x00" * 1000,
    ],
)
async def test_a_body_that_is_no_message_is_answered_400_and_the_server_lives(body: bytes) -> None:
    async with listening() as server, server.client() as client:
        reply = await client.ask(body)
        assert (reply.status, reply.json["jsonrpc"]) == (400, "2.0")
        assert reply.json["error"]["message"].endswith(".")
        assert (await client.ask(rpc("ping"))).status == 200
        assert server.tools.started == []


async def test_a_message_of_four_megabytes_is_served() -> None:
    async with listening() as server, server.client() as client:
        reply = await client.ask(tools_call("list", {"text": "x" * (4 * 1024 * 1024 - 200)}))
        assert reply.status == 200
        assert len(reply.body) > 8_000_000


async def test_a_large_body_is_read_beside_the_loop_and_a_small_one_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(body: bytes) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return read_message(body)

    threads: list[bool] = []
    read_message = jsonrpc.read_message
    monkeypatch.setattr("simplexmcp.listener.jsonrpc.read_message", read)
    async with listening() as server, server.client() as client:
        await client.ask(tools_call("list", {"text": "x"}))
        await client.ask(tools_call("list", {"text": "x" * 300_000}))
    assert threads == [True, False]


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "text/html", "application/xml;q=1"])
async def test_a_client_must_read_both_forms_of_an_answer(accept: str) -> None:
    async with listening() as server, server.client() as client:
        assert (await client.ask(tools_call("list"), accept=accept)).status == 406
        assert server.tools.started == []


@pytest.mark.parametrize("accept", [None, "*/*", "application/*, text/*;q=0.5", "text/event-stream,application/json"])
async def test_wildcards_and_any_order_are_accepted(accept: str | None) -> None:
    async with listening() as server, server.client() as client:
        assert (await client.ask(tools_call("list"), accept=accept)).status == 200


@pytest.mark.parametrize("defect", [ValueError("secret"), ExceptionGroup("several", [KeyError("secret")])])
async def test_a_defect_of_a_tool_is_logged_and_the_agent_reads_no_detail(
    defect: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_arguments: Any, _call: Call) -> ToolResult:
        raise defect

    async with listening(FakeTools({"send": broken})) as server, server.client() as client:
        result = (await client.ask(tools_call("send"))).json["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, INTERNAL_ERROR)
        assert (await client.ask(tools_call("list"))).status == 200
    assert "secret" in caplog.text


@pytest.mark.parametrize("content", [{"x": object()}, {"x": float("nan")}, {1, 2}])
async def test_a_result_that_is_no_json_is_a_defect_of_the_tool(content: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_arguments: Any, _call: Call) -> ToolResult:
        return ToolResult(content)

    async with listening(FakeTools({"send": broken})) as server, server.client() as client:
        assert (await client.ask(tools_call("send"))).json["result"]["content"][0]["text"] == INTERNAL_ERROR
    assert "The tool send failed" in caplog.text


@pytest.mark.parametrize("is_error", [False, True])
async def test_halves_of_characters_in_a_result_are_replaced(is_error: bool) -> None:
    async def half(_arguments: Any, _call: Call) -> ToolResult:
        return ToolResult({"error": "a\ud83db"}, is_error=is_error)

    async with listening(FakeTools({"send": half})) as server, server.client() as client:
        reply = await client.ask(tools_call("send"))
        assert reply.json["result"]["structuredContent"] == {"error": "a?b"}
        assert b"\\ud83d" not in reply.body


async def test_one_call_more_than_allowed_is_refused_with_a_sentence() -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools, limits=Limits(calls=2)) as server, server.client() as client:
        held = [await server.connect() for _ in range(2)]
        for one in held:
            await one.call("send")
        await tools.until(lambda: len(tools.started) == 2)
        result = (await client.ask(tools_call("list"))).json["result"]
        assert result["isError"] is True
        assert "2 calls are open" in result["content"][0]["text"]
        await trio.aclose_forcefully(held[0].stream)
        await tools.until(lambda: len(tools.cancelled) == 1)
        assert (await client.ask(tools_call("list"))).json["result"]["isError"] is False
        await trio.aclose_forcefully(held[1].stream)


async def test_requests_that_come_in_one_packet_are_answered_in_their_order() -> None:
    async with listening() as server, server.client() as client:
        request = b""
        for number in (1, 2, 3):
            body = json.dumps(tools_call("list", {"n": number}, number=number)).encode()
            head = "".join(f"{name}: {value}\r\n" for name, value in client.head(content_length=str(len(body))))
            request += f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body
        await client.stream.send_all(request)
        seen = b""
        with trio.fail_after(20):
            while seen.count(b'"isError"') < 3:
                seen += await client.stream.receive_some(65536)
        assert seen.index(b'"id":1') < seen.index(b'"id":2') < seen.index(b'"id":3')
