"""What a description names, as real cores and hostile ones write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.files.descriptions import read_description
from simplexmcp.files.relays import Relay, Relays, known_relays, parse_relay, sorted_out
from tests.recorded import frames

KEY = "46bvEAjdu0LynN-8XPup1Ss82kpB-EqDVMyh81AVIak="
SERVER = f"xftp://{KEY}@127.0.0.1:7002"
PLAIN = f"""chunkSize: 64kb
digest: EnbfQmbqgEDwLCqENtCFJj94==
key: KY6xBHHbU9A7_Zk7GC8=
nonce: JCh8NICfsWKRSh4jomnFt1QunYnHUZ-Y
party: recipient
replicas:
- chunks:
  - 1:bgQA9xNl26qzg35VloeMSA==:MC4CAQAwBQYDK2Vw:oCTYOVaBBHjG59QqDYI6vhCONJhfATQ=
  - 2:bgQA9xNl26qzg35VloeMSA==:MC4CAQAwBQYDK2Vw:oCTYOVaBBHjG59QqDYI6vhCONJhfATQ=:64kb
  server: {SERVER}
size: 128kb
"""
EVIL = "xftp://ZXZpbA==@evil.example"


def test_a_description_names_its_servers_once_and_in_order() -> None:
    two = PLAIN.replace(
        "size: 128kb", f"- chunks:\n  - 3:a:b\n  server: {EVIL}\n- chunks: []\n  server: {SERVER}\nsize: 1"
    )
    found = read_description(two)
    assert found.servers == (SERVER, EVIL)
    assert (found.readable, found.redirects) == (True, False)


def test_every_recorded_description_is_readable() -> None:
    seen: set[str] = set()
    for name in ("09a-files", "09b-files", "09d-files", "09e-xftp-down"):
        for frame in frames(name):
            response: dict[str, Any] = frame.get("resp") or {}
            if isinstance(response, dict) and response.get("type") == "rcvFileDescrReady":
                found = read_description(response["rcvFileDescr"]["fileDescrText"])
                assert (found.readable, found.redirects) == (True, False)
                seen.update(found.servers)
    assert {server.rpartition(":")[2] for server in seen} == {"7002", "7003"}


def test_a_redirect_is_seen() -> None:
    found = read_description(f"{PLAIN}redirect:\n  digest: abc=\n  size: 12345\n")
    assert (found.redirects, found.readable) == (True, True)


@pytest.mark.parametrize(
    "hidden",
    [
        f'  server: "{EVIL}"',
        f"  'server': {EVIL}",
        f"  server:  {EVIL}",
        f"  ? server\n  : {EVIL}",
        f"- {{chunks: [], server: {EVIL}}}",
        f"- chunks: []\n  server: &x {EVIL}",
        '  server: "xftp:\\u002f\\u002fevil.example"',
        "  server: !!str xftp://evil",
        "  server: >-\n    xftp://evil",
        "  <<: *x",
        "redirect: {digest: a, size: 1}",
        '"redirect":',
        "\tserver: x",
        "---",
        "# a comment",
        "digest: 'it''s'",
        'digest: "abc',
        "key:",
        "  digest: a",
    ],
)
def test_a_spelling_that_could_hide_a_server_is_not_readable(hidden: str) -> None:
    assert not read_description(f"{PLAIN}{hidden}\n").readable


@pytest.mark.parametrize("text", ["", "replicas:\n", "size: 1", "x" * 100])
def test_a_description_without_servers_is_not_readable(text: str) -> None:
    assert not read_description(text).readable


def test_a_description_that_is_too_long_is_read_only_to_its_limit() -> None:
    assert not read_description(PLAIN + "  - 1:a\n" * (1 << 20)).readable


def test_a_description_with_very_many_or_long_servers_is_not_kept_as_a_whole() -> None:
    many = PLAIN + "".join(f"- chunks: []\n  server: xftp://k@h{n}\n" for n in range(100))
    assert len(read_description(many).servers) == 32
    assert not read_description(many).readable
    long = PLAIN + f"- chunks: []\n  server: xftp://k@{'h' * 1000}\n"
    assert read_description(long).servers == (SERVER,)
    assert not read_description(long).readable


@given(st.text() | st.lists(st.sampled_from(PLAIN.split("\n"))).map("\n".join))
def test_reading_never_fails_and_says_nothing_but_servers(text: str) -> None:
    found = read_description(text)
    assert all(server in text for server in found.servers)
    assert "MC4CAQAwBQYDK2Vw" not in repr(found)
    assert "KY6xBHHbU9A7_Zk7GC8" not in repr(found)


# --- relays


def servers(*uris: str, enabled: bool | None = None, **more: Any) -> dict[str, Any]:
    """One group of servers as the core lists them."""
    operator = {} if enabled is None else {"operator": {"tradeName": "SimpleX Chat", "enabled": enabled}}
    return {**operator, "xftpServers": [{"server": uri, "enabled": False, "deleted": False, **more} for uri in uris]}


def test_a_relay_is_its_key_hosts_and_port_without_a_password() -> None:
    assert parse_relay(SERVER) == Relay(KEY, "127.0.0.1", "7002")
    assert parse_relay("xftp://key:pass word@h") is None
    assert parse_relay("xftp://key:secret@a.example,b.onion") == Relay("key", "a.example,b.onion")
    assert parse_relay("xftp://key@[::1]:7002") == Relay("key", "[::1]", "7002")
    assert parse_relay("smp://key@a") is None


def test_all_hosts_of_a_relay_are_shown() -> None:
    assert Relays((Relay("k", "good.example,evil.onion", "7"),)).hosts == ("good.example,evil.onion:7",)


def test_the_relays_of_the_user_are_known_switched_on_or_not() -> None:
    known = known_relays([servers(SERVER), servers("xftp://k:pw@b", enabled=True)])
    assert known == {Relay(KEY, "127.0.0.1", "7002"), Relay("k", "b")}


def test_relays_of_a_switched_off_operator_and_deleted_ones_are_unknown() -> None:
    assert known_relays([servers(SERVER, enabled=False), servers("xftp://k@b", deleted=True)]) == frozenset()


def test_a_known_host_with_another_key_or_port_is_unknown() -> None:
    known = known_relays([servers(SERVER)])
    others = [SERVER.replace("7002", "7003"), SERVER.replace(KEY, "b3RoZXI=")]
    assert len(sorted_out([SERVER, *others, *others], known).unknown) == 2


def test_a_server_that_cannot_be_read_is_unknown_as_it_stands() -> None:
    assert sorted_out(["https://evil.example"], frozenset()).hosts == ("https://evil.example",)


@pytest.mark.parametrize("broken", [{}, {"xftpServers": 7}, {"xftpServers": [7, {}, {"server": 7}]}, {"operator": {}}])
def test_damaged_lists_of_servers_know_nothing(broken: dict[str, Any]) -> None:
    assert known_relays([broken]) == frozenset()


def test_the_recorded_servers_are_known() -> None:
    response = next(f["resp"] for f in frames("09a-files") if (f.get("resp") or {}).get("type") == "userServers")
    assert sorted_out([SERVER], known_relays(response["userServers"])).unknown == ()
