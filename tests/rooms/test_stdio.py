"""The server as a process behind pipes: order, cancellation, its end, and clients that behave badly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms.protocol import read_result
from simplexmcp.rooms.stdio import LINE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.rooms.client import InProcess, Server


def eventually(condition: Callable[[], Any], seconds: float = 10) -> None:
    """Waits until the condition holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.005)


def leases(database: InProcess) -> int:
    return database.database.value("SELECT count(*) FROM wait_leases")


def in_hall(server: Server, **model: str) -> str:
    return server.enter_room("hall", **model).agent_id


def line(key: Any, tool: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": params}).encode() + b"\n"


def test_it_says_that_it_is_ready_and_names_the_database(server: Callable[..., Server], path: Path):
    talk = server()
    assert talk.hello["serverInfo"]["name"] == "agent-chat-mcp"
    assert talk.close() == 0
    assert talk.errors == [f"simplexmcp rooms: ready, database {path}"]


def test_it_answers_without_a_handshake(server: Callable[..., Server]):
    talk = server(handshake=False)
    assert talk.call("what_time_is_it_right_now")["unix"] > 0


def test_pipelined_requests_are_handled_in_the_order_in_which_they_arrive(server: Callable[..., Server]):
    talk = server()
    in_hall(talk)
    talk.send_raw(b"".join(line(f"p{n}", "post_message", {"content": f"{n}"}) for n in range(200)))
    seqs = [json.loads(read_result(talk.answer(f"p{n}")["result"])[1])["seq"] for n in range(200)]
    assert seqs == list(range(1, 201))


def test_what_is_bound_by_one_request_holds_for_the_next_in_the_same_breath(server: Callable[..., Server]):
    talk = server()
    model = {"brand": "Acme", "model": "Talker", "version": "1"}
    talk.send_raw(
        line("a", "create_persona", model)
        + line("b", "create_room", {"name": "hall"})
        + line("c", "join_room", {"room": "hall"})
        + line("d", "post_message", {"content": "hello"})
    )
    assert json.loads(read_result(talk.answer("d")["result"])[1])["posted"] is True


def test_bytes_may_arrive_in_any_pieces(server: Callable[..., Server]):
    talk = server()
    whole = line("é", "whoami", {}) + b"\r\n\n" + line(2, "whoami", {})
    for place in range(len(whole)):
        talk.send_raw(whole[place : place + 1])
    assert talk.answer("é")["result"]
    assert talk.answer(2)["result"]


def test_a_request_that_is_cancelled_before_its_turn_does_nothing(server: Callable[..., Server]):
    talk = server()
    in_hall(talk)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "second"}}
    talk.send_raw(
        line("first", "post_message", {"content": "1"})
        + line("second", "post_message", {"content": "2"})
        + json.dumps(cancel).encode()
        + b"\n"
        + line("third", "post_message", {"content": "3"})
    )
    assert json.loads(read_result(talk.answer("third")["result"])[1])["seq"] == 2
    assert [message["content"] for message in talk.call("read_history")["messages"]] == ["1", "3"]


def test_a_cancelled_wait_gives_no_answer_reads_nothing_and_gives_its_lease_back(
    server: Callable[..., Server], runtime: Callable[..., InProcess]
):
    talk, other = server(), runtime()
    in_hall(talk)
    other.enter_room("hall")
    key = talk.start("catch_up", wait_seconds=20)
    eventually(lambda: leases(other) == 1)
    talk.cancel(key)
    eventually(lambda: leases(other) == 0)
    other.call("post_message", content="too late")
    assert talk.call("whoami")["last_read_seq"] == 0
    assert [message["content"] for message in talk.call("catch_up")["messages"]] == ["too late"]
    assert key not in talk._early


def test_a_cancellation_in_the_form_of_a_request_is_answered(server: Callable[..., Server]):
    talk = server()
    in_hall(talk)
    key = talk.start("catch_up", wait_seconds=20)
    assert talk.request("notifications/cancelled", {"requestId": key})["result"] == {}
    assert talk.call("whoami")["bound"] is True


def test_a_long_wait_does_not_hold_up_later_calls(server: Callable[..., Server]):
    talk = server()
    in_hall(talk)
    key = talk.start("catch_up", wait_seconds=20)
    assert talk.call("post_message", content="own words wake nobody")["seq"] == 1
    assert key not in talk._early


def test_a_wait_ends_when_another_process_posts(server: Callable[..., Server]):
    reader, writer = server(), server()
    in_hall(reader)
    in_hall(writer)
    delays: list[float] = []
    for number in range(5):
        key = reader.start("catch_up", wait_seconds=20)
        reader.call("whoami")
        posted = time.monotonic()
        writer.call("post_message", content=str(number))
        result = reader.result(key)
        delays.append(time.monotonic() - posted)
        assert [message["content"] for message in result["messages"]] == [str(number)]
    assert min(delays) < 0.15


def test_a_wait_ends_soon_where_the_kernel_tells_nothing(server: Callable[..., Server]):
    reader, writer = server(patch="from simplexmcp.rooms import wake; wake._watch = lambda folder: None"), server()
    in_hall(reader)
    in_hall(writer)
    key = reader.start("catch_up", wait_seconds=20)
    reader.call("whoami")
    posted = time.monotonic()
    writer.call("post_message", content="news")
    assert [message["content"] for message in reader.result(key)["messages"]] == ["news"]
    assert time.monotonic() - posted < 10  # far from the end of the wait


def test_a_fifth_wait_is_refused_until_one_is_over(server: Callable[..., Server]):
    talk = server()
    in_hall(talk)
    keys = [talk.start("catch_up", wait_seconds=20) for _ in range(4)]
    assert "4" in talk.refused("catch_up", wait_seconds=20)["error"]
    talk.cancel(keys[0])
    assert talk.result(talk.start("catch_up", wait_seconds=1))["timed_out"] is True


def test_a_takeover_ends_the_wait_and_leaves_the_message_to_the_new_runtime(server: Callable[..., Server]):
    first, second, writer = server(), server(), server()
    persona = first.enter_room("hall")
    in_hall(writer)
    key = first.start("catch_up", wait_seconds=20)
    first.call("whoami")
    second.resume(persona)
    failed, text = read_result(first.answer(key)["result"])
    assert (failed, json.loads(text)["code"]) == (True, "persona_lost")
    writer.call("post_message", content="for whoever holds it now")
    second.call("join_room", room="hall")
    assert len(second.call("catch_up")["messages"]) == 1


def test_a_wait_ends_when_this_process_deletes_its_room(server: Callable[..., Server]):
    talk = server()
    in_hall(talk)
    key = talk.start("catch_up", wait_seconds=20)
    talk.call("delete_room", room="hall", confirm=True)
    failed, text = read_result(talk.answer(key)["result"])
    assert failed
    assert "deleted while waiting" in text


def test_a_wait_ends_at_its_time(server: Callable[..., Server]):
    talk = server()
    in_hall(talk)
    started = time.monotonic()
    result = talk.result(talk.start("catch_up", wait_seconds=1))
    assert result["timed_out"] is True
    assert 0.9 < time.monotonic() - started < 15


def test_the_end_of_the_input_ends_an_open_wait_and_its_lease(
    server: Callable[..., Server], runtime: Callable[..., InProcess]
):
    talk, other = server(), runtime()
    in_hall(talk)
    talk.start("catch_up", wait_seconds=20)
    eventually(lambda: leases(other) == 1)
    assert talk.close() == 0
    assert leases(other) == 0
    assert talk.receive() is None


def test_requests_before_the_end_of_the_input_are_answered(path: Path):
    asked = (
        line(1, "create_persona", {"brand": "a", "model": "b", "version": "c"})
        + line(2, "create_room", {"name": "hall"})
        + line(3, "join_room", {"room": "hall"})
        + b"".join(line(n, "post_message", {"content": "x"}) for n in range(4, 104))
        + line(104, "catch_up", {"wait_seconds": 20})
    )
    done = subprocess.run(
        [sys.executable, "-m", "simplexmcp", "rooms", "mcp"],
        input=asked + b'{"jsonrpc": "2.0", "id": 105, "met',
        capture_output=True,
        env=os.environ | {"AGENT_CHAT_DB": str(path)},
        timeout=20,
        check=True,
    )
    assert [json.loads(answer)["id"] for answer in done.stdout.splitlines()] == list(range(1, 104))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(
    server: Callable[..., Server], runtime: Callable[..., InProcess], number: signal.Signals
):
    talk, other = server(), runtime()
    in_hall(talk)
    talk.start("catch_up", wait_seconds=20)
    eventually(lambda: leases(other) == 1)
    talk.process.send_signal(number)
    assert talk.wait() == 0
    assert leases(other) == 0


def started(path: Path) -> subprocess.Popen[bytes]:
    """A server whose pipes the test handles itself."""
    return subprocess.Popen(
        [sys.executable, "-m", "simplexmcp", "rooms", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"AGENT_CHAT_DB": str(path)},
    )


def test_a_client_that_closes_its_ear_ends_it_with_1(path: Path):
    with started(path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"ready" in process.stderr.readline()
        process.stdout.close()
        assert process.wait(10) == 1
        assert b"stdout is closed" in process.stderr.read()


def test_a_closed_stderr_neither_stops_it_nor_spoils_its_answers(path: Path):
    program = f"exec '{sys.executable}' -m simplexmcp rooms mcp 2>&-"
    done = subprocess.run(
        ["sh", "-c", program],
        input=line(1, "what_time_is_it_right_now", {}),
        stdout=subprocess.PIPE,
        env=os.environ | {"AGENT_CHAT_DB": str(path)},
        check=True,
    )
    assert [json.loads(answer)["id"] for answer in done.stdout.splitlines()] == [1]


def test_a_client_that_writes_megabytes_before_it_reads_is_served_in_the_end(path: Path):
    # More answers than the server keeps (8 MiB), and more input than a pipe holds.
    asked = b"".join(line(n, "server_info", {}) for n in range(2000)) + b" " * 2_000_000 + b"\n"
    with started(path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(asked)
        process.stdin.close()
        assert [json.loads(answer)["id"] for answer in process.stdout] == list(range(2000))
        assert process.wait(10) == 0


def test_a_busy_database_holds_up_its_end_for_3_seconds_at_most(
    server: Callable[..., Server], runtime: Callable[..., InProcess]
):
    waiting, posting, other = server(), server(), runtime()
    in_hall(waiting)
    in_hall(posting)
    waiting.start("catch_up", wait_seconds=20)
    eventually(lambda: leases(other) == 1)
    with other.database.write():
        posting.start("post_message", content="it has to wait for its turn")
        waiting.process.stdin.close()
        posting.process.send_signal(signal.SIGTERM)
        closed = time.monotonic()
        assert (waiting.wait(), posting.wait()) == (1, 1)
        assert 2.5 < time.monotonic() - closed < 10


def test_a_line_of_64_mib_is_read_and_one_byte_more_ends_the_server(server: Callable[..., Server]):
    talk = server()
    call = line("big", "whoami", {})[:-1]
    talk.send_raw(call + b" " * (LINE_LIMIT - len(call)) + b"\n")
    assert talk.answer("big")["result"]
    with suppress(BrokenPipeError):  # it may end before it has read all
        talk.send_raw(b" " * (LINE_LIMIT + 1))
    assert talk.wait() == 1
    assert any("67108864 bytes" in told for told in talk.errors)


def test_broken_messages_are_answered_and_the_next_one_is_served(server: Callable[..., Server]):
    talk = server()
    talk.send_raw(b'nonsense\n[]\n\x00\x01\n\xff\xfe\n{"jsonrpc":"2.0","id":{},"method":"ping"}\n')
    answers = [talk.receive() for _ in range(5)]
    assert [answer["error"]["code"] for answer in answers if answer] == [-32700, -32600, -32700, -32700, -32600]
    assert talk.request("ping")["result"] == {}


@pytest.mark.parametrize("content", ['"\\ud800"', '{"a":["\\udfff"]}', '{"\\ud800":1}'])
def test_a_lone_surrogate_is_answered_with_an_error(server: Callable[..., Server], content: str):
    talk = server()
    in_hall(talk)
    arguments = f'{{"name":"post_message","arguments":{{"content":{content}}}}}'
    talk.send_raw(f'{{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{arguments}}}\n'.encode())
    failed, text = read_result(talk.answer("s")["result"])
    assert failed
    assert "lone surrogate" in json.loads(text)["error"]
    assert talk.call("whoami")["unread"] == 0


def test_letters_of_every_kind_come_back_as_they_went_in(server: Callable[..., Server], runtime: Any):
    talk, other = server(), runtime()
    in_hall(talk)
    other.enter_room("hall")
    content = 'ä \U0001f600 \u2028 \u202e \x01 \\ " </script> \ufeff'
    other.call("post_message", content=content)
    assert talk.call("catch_up")["messages"][0]["content"] == content


@pytest.mark.parametrize("value", ["0", "121", "1.5", "-1", "abc", "١", "5 ", " "])
def test_a_longest_wait_that_makes_no_sense_stops_it_before_the_database_is_touched(path: Path, value: str):
    done = subprocess.run(
        [sys.executable, "-m", "simplexmcp", "rooms", "mcp"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | {"AGENT_CHAT_DB": str(path), "AGENT_CHAT_MAX_WAIT_SECONDS": value},
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "simplexmcp rooms: AGENT_CHAT_MAX_WAIT_SECONDS is a whole number of seconds from 1 to 120.\n"
    )
    assert not path.parent.exists()


def test_a_file_that_is_no_database_stops_it_with_one_line(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to have a header" * 10)
    done = subprocess.run(
        [sys.executable, "-m", "simplexmcp", "rooms", "mcp"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | {"SIMPLEXMCP_ROOMS_DB": str(path)},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert str(path) in done.stderr
