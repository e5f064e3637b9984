"""The rooms: how fast they start, post, read, search and wake, compared with the figures of the reference program.

The reference's figures were measured once, on a machine like that of our tests; the bar is its version 0.17.0.
"""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Bar, Figure, percentile
from benchmarks.roomstage import RoomServer, Stage, cpu_ms, rss_mb, stage, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["rooms_large", "rooms_memory", "rooms_posting", "rooms_reading", "rooms_start", "rooms_waiting"]

_REFERENCE = json.loads((Path(__file__).parent / "data" / "rooms-reference.json").read_text())["figures"]
LARGE = 100_000  # messages of a large room
QUICK_LARGE = 2_000
QUICK_SECONDS = 0.3


def rooms_start(*, quick: bool) -> Iterator[Figure]:
    """From the start of a server to its list of tools."""
    rounds = 3 if quick else 15
    with stage() as at:
        size = 0
        fresh: list[float] = []
        known: list[float] = []
        for _ in range(rounds):
            path = at.path()
            for times in (fresh, known):
                with RoomServer(path, seat=False) as talk:
                    size = len(talk.ask("tools/list", {}))
                    times.append((time.perf_counter() - talk.started) * 1000)
    yield _figure("start → tools/list, new database", fresh)
    yield _figure("start → tools/list, existing database", known)
    yield _figure("tools/list", [size])


def rooms_posting(*, quick: bool) -> Iterator[Figure]:
    """Posts one after the other, and by several servers at once."""
    rounds = 20 if quick else 300
    draw = random.Random(1)
    with stage() as at:
        path = at.path()
        talk, other = at.server(path), at.server(path)
        kinds: dict[str, Callable[[int], dict[str, Any]]] = {
            "post, 200 letters": lambda _: {"content": words(draw)},
            "post, 200 letters and a mention": lambda _: {"content": words(draw), "to": [other.agent_id]},
            "post, 200 letters and a key": lambda n: {"content": words(draw), "client_message_id": f"key {n}"},
            "post, 10 kB": lambda _: {"content": words(draw, 10_000)},
            "post, JSON of 1 kB": lambda n: {"content": {"n": n, "parts": [words(draw, 100) for _ in range(9)]}},
        }
        for name, arguments in kinds.items():
            yield _figure(name, [talk.timed("post_message", **arguments(n)) for n in range(rounds)])
        for servers in (1, 2, 4):
            rate, latencies = _posts_at_once(at, servers, QUICK_SECONDS if quick else 10)
            yield _figure(f"posts by {servers} server{'s' if servers > 1 else ''}", [rate])
        yield _figure("post, 4 servers at once", latencies)


def rooms_reading(*, quick: bool) -> Iterator[Figure]:
    """catch_up over backlogs of 100 and 10,000 messages."""
    rounds = 2 if quick else 11
    with stage() as at:
        for backlog, label in ((100, "100"), (QUICK_LARGE if quick else 10_000, "10,000")):
            path = at.path()
            talk, author = at.server(path), at.server(path)
            at.fill(path, author.agent_id, backlog)
            of = f"catch_up of {label}:"
            yield _figure(f"{of} page of 50", _first_pages(talk, rounds))
            if backlog == 100:
                yield _figure(f"{of} all", _first_pages(talk, rounds, limit=500))
                continue
            yield _figure(f"{of} page of 500", _first_pages(talk, rounds, limit=500))
            large = _first_pages(talk, rounds, limit=500, max_bytes=400_000)
            yield _figure(f"{of} page of 500, 400,000 letters", large)
            yield _figure(f"{of} priority_only", _first_pages(talk, rounds, priority_only=True))
            yield _figure(f"{of} all, 500 a page", [_drain(talk) for _ in range(2 if quick else 5)])
            yield _figure("catch_up of nothing", talk.times(rounds * 3, "catch_up"))


def rooms_large(*, quick: bool) -> Iterator[Figure]:
    """Reading and searching in a room of 100,000 messages that are all unread."""
    rounds = 2 if quick else 11
    count = QUICK_LARGE if quick else LARGE
    with stage() as at:
        path = at.path()
        talk, author = at.server(path), at.server(path)
        at.fill(path, author.agent_id, count)
        reads: dict[str, tuple[str, dict[str, Any]]] = {
            "read_history": ("read_history", {}),
            "get_message": ("get_message", {"seq": count // 2}),
            "get_thread": ("get_thread", {"seq": count // 2}),
            "list_rooms": ("list_rooms", {}),
            "list_agents": ("list_agents", {}),
            "whoami": ("whoami", {}),
            "my_mentions": ("my_mentions", {}),
            "pending_work": ("pending_work", {}),
            "server_info": ("server_info", {}),
            "search, rare word": ("search_messages", {"query": "seldom"}),
            "search, word in 1 %": ("search_messages", {"query": "onepercent"}),
            "search, word in most": ("search_messages", {"query": "anchor"}),
            "search, word in most, offset 1000": ("search_messages", {"query": "anchor", "offset": 1000}),
            "search, two words in most": ("search_messages", {"query": "anchor basket"}),
            "search, phrase": ("search_messages", {"query": '"anchor basket candle"'}),
            "search, prefix": ("search_messages", {"query": "seld*"}),
            "search, one or the other": ("search_messages", {"query": "seldom OR onepercent"}),
            "search, no match": ("search_messages", {"query": "nothinglikethis"}),
        }
        for name, (tool, arguments) in reads.items():
            yield _figure(name, talk.times(rounds, tool, **arguments))
        yield _figure("catch_up, 100,000 unread: page of 50", _first_pages(talk, rounds))
        talk.call("mark_read", seq=0)
        yield _figure("post, 100,000 crossed", talk.times(rounds, "post_message", content="x"))
        new = at.path()
        with RoomServer(new, seat=False):
            pass  # its end folds everything into the file
        empty = new.stat().st_size
        yield _figure("database, empty", [empty])
        yield _figure("database, each message of 200 letters", [(_on_disk(path) - empty) / count])


def rooms_waiting(*, quick: bool) -> Iterator[Figure]:
    """How soon a wait notices a post, in a call and in the background, and what waiting costs."""
    rounds = 2 if quick else 11
    settle, window = (QUICK_SECONDS, QUICK_SECONDS) if quick else (1.0, 20.0)  # seconds
    with stage() as at:
        path = at.path()
        talk, author = at.server(path), at.server(path)
        yield _figure("wait in a call → woken", [_woken(talk, author) for _ in range(rounds)])
        waiter = threading.Thread(target=talk.call, args=("catch_up",), kwargs={"wait_seconds": 25})
        waiter.start()
        time.sleep(settle)
        spent = cpu_ms(talk.process)
        time.sleep(window)
        costs = (cpu_ms(talk.process) - spent) * 60 / window
        author.call("post_message", content="the end")
        waiter.join()
        yield _figure("processor time of a server in a wait", [costs])
        command = "exec " + talk.call("wait_for_messages", timeout=600)["command"]
        yield _figure("watcher: start → end with news", [_at_once(talk, author, command) for _ in range(rounds)])
        yield _figure("watcher: post → end", [_ended(talk, author, command) for _ in range(rounds)])
        with _watcher(talk, command) as watcher:
            time.sleep(settle)
            spent = cpu_ms(watcher)
            time.sleep(window)
            yield _figure("processor time of a watcher", [(cpu_ms(watcher) - spent) * 60 / window])
            yield _figure("memory of a watcher", [rss_mb(watcher)])
            watcher.terminate()


def rooms_memory(*, quick: bool) -> Iterator[Figure]:
    """What a server holds, and a message of 9.9 MB."""
    big = "a sentence of some words, over and over. " * ((99_000 if quick else 9_900_000) // 41)
    with stage() as at:
        path = at.path()
        talk, reader = at.server(path), at.server(path)
        talk.request("tools/list", {})
        yield _figure("memory of a server after tools/list", [rss_mb(talk.process)])
        for _ in range(50 if quick else 1000):
            talk.call("post_message", content="x" * 200)
        yield _figure("memory of a server after 1,000 posts", [rss_mb(talk.process)])
        reader.call("mark_read")
        yield _figure("post of 9.9 MB", [talk.timed("post_message", content=big)])
        yield _figure("memory of a server after a post of 9.9 MB", [rss_mb(talk.process)])
        yield _figure("catch_up of 9.9 MB, cut", [reader.timed("catch_up")])
        began = time.perf_counter()
        seq, offset = reader.call("mark_read")["latest"], 0
        while True:
            piece = reader.call("get_message", seq=seq, offset=offset, max_chars=400_000)
            if not piece.get("truncated"):
                break
            offset = piece["next_offset"]
        yield _figure("9.9 MB in pieces", [(time.perf_counter() - began) * 1000])


def _figure(name: str, values: list[float] | list[int]) -> Figure:
    """The figure of this name; its bar is the ratio to the reference's newest version."""
    reference = _REFERENCE[name]
    unit, theirs = reference["unit"], reference["0.17.0"]
    median = statistics.median(values)
    note = ", ".join(
        f"{version}: {reference[version]:g} {unit}" for version in ("0.14.0", "0.17.0") if version in reference
    )
    bar = Bar(median / theirs, 1.0, unit == "/s", "ours : reference 0.17.0")
    return Figure(name, unit, median, percentile(values, 0.99), bar, f"reference {note}")


def _posts_at_once(at: Stage, servers: int, seconds: float) -> tuple[float, list[float]]:
    """Posts a second by so many servers on one database, and how long each took (ms)."""
    path = at.path()
    talks = [at.server(path) for _ in range(servers)]
    latencies: list[float] = []
    began = time.perf_counter()

    def post(talk: RoomServer) -> None:
        while time.perf_counter() - began < seconds:
            latencies.append(talk.timed("post_message", content="x" * 200))

    threads = [threading.Thread(target=post, args=(talk,)) for talk in talks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(latencies) / (time.perf_counter() - began), latencies


def _first_pages(talk: RoomServer, rounds: int, **arguments: Any) -> list[float]:
    times: list[float] = []
    for _ in range(rounds):
        talk.call("mark_read", seq=0)
        times.append(talk.timed("catch_up", **arguments))
    return times


def _drain(talk: RoomServer) -> float:
    """How long it takes to read all, in ms."""
    talk.call("mark_read", seq=0)
    began = time.perf_counter()
    while talk.call("catch_up", limit=500, max_bytes=400_000)["remaining"]:
        pass
    return (time.perf_counter() - began) * 1000


def _woken(talk: RoomServer, author: RoomServer) -> float:
    """From the answer to a post to that of the wait, in ms; 0 when the wait was answered first."""
    woken: list[float] = []

    def wait() -> None:
        talk.ask("tools/call", {"name": "catch_up", "arguments": {"wait_seconds": 20}})
        woken.append(time.perf_counter())

    waiter = threading.Thread(target=wait)
    waiter.start()
    while not author.call("list_agents")["agents"][0]["watching"]:
        time.sleep(0.001)
    began = time.perf_counter()
    author.call("post_message", content="wake up")
    waiter.join()
    return (woken[0] - began) * 1000


def _watcher(talk: RoomServer, command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", command], stdout=subprocess.DEVNULL, env=talk.env)


def _at_once(talk: RoomServer, author: RoomServer, command: str) -> float:
    """How long a watcher takes that finds news at its start, in ms."""
    author.call("post_message", content="already here")
    began = time.perf_counter()
    with _watcher(talk, command) as watcher:
        watcher.wait()
        took = (time.perf_counter() - began) * 1000
    talk.call("mark_read")
    return took


def _ended(talk: RoomServer, author: RoomServer, command: str) -> float:
    """From a post to the end of a watcher that waits for it, in ms."""
    with _watcher(talk, command) as watcher:
        time.sleep(random.uniform(0.3, 0.6))
        began = time.perf_counter()
        author.call("post_message", content="wake up")
        watcher.wait()
        took = (time.perf_counter() - began) * 1000
    talk.call("mark_read")
    return took


def _on_disk(path: Path) -> int:
    """The size of the database, once everything is in the file itself."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size
