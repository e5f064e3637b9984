"""The owner's commands: strict, one a message, never half done."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.commands import (
    USAGE,
    Approve,
    ApproveAll,
    Bound,
    DeleteFiles,
    Forward,
    Leave,
    Receive,
    ReceiveOff,
    Reject,
    Revoke,
    Show,
    Simple,
    parse,
)
from simplexmcp.sandbox import markdown


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/approve 7", Approve(7)),
        ("/'approve 7'", Approve(7)),
        ("/approve #15 7", Approve(7, "#15")),
        ("/'approve @4 7'", Approve(7, "@4")),
        ("/approve #9 all", ApproveAll("#9")),
        ("/approve #9 all 2h", ApproveAll("#9", Bound(time=timedelta(hours=2)))),
        ("/approve #9 all 30m", ApproveAll("#9", Bound(time=timedelta(minutes=30)))),
        ("/approve #9 all 20", ApproveAll("#9", Bound(messages=20))),
        ("/reject 7", Reject(7)),
        ("/reject #15 7", Reject(7, "#15")),
        ("/revoke #9", Revoke("#9")),
        ("/show 3", Show(3)),
        ("/leave @4", Leave("@4")),
        ("/receive #15 7", Receive("#15", 7)),
        ("/'receive #15 7 all'", Receive("#15", 7, every=True)),
        ("/receive #15(_support:4) 7", Receive("#15(_support:4)", 7)),
        ("/receive #15 off", ReceiveOff("#15")),
        ("/'forward @4 7'", Forward("@4", 7)),
        ("/delete #15 files", DeleteFiles("#15")),
        ("/pending", Simple("pending")),
        ("/list", Simple("list")),
        ("/help", Simple("help")),
        (" /approve 7 ", Approve(7)),
        ("/approve 7\n", Approve(7)),
    ],
)
def test_a_command_is_read(text: str, command: object) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "/approve 7; /approve 8",
        "/approve 7 8",
        "/approve ７",
        "/approve 07",
        "/approve -1",
        "/approve 0",
        "/approve 1" + "0" * 30,
        "/approve 7\n/approve 8",
        "/approve  7",
        "/approve\t7",
        "/approve\u00a07",
        "/Approve 7",
        "/approve",
        "/approve all",
        "/approve #9 all 0h",
        "/approve #9 all 2w",
        "/approve 9 all",
        "/approve #09 7",
        "/''approve 7''",
        "/'approve 7' or /'reject 7'",
        "/",
        "//",
        "/'",
        "/leave",
        "/receive 7",
        "/receive #15 all",
        "/receive #15 7 all 2h",
        "/receive #15",
        "/receive off",
        "/forward 7",
        "/forward #15 7 all",
        "/delete #15",
        "/delete #15 file",
        "/delete files",
        "/pending 7",
        "/approve 7.",
    ],
)
def test_what_starts_like_a_command_and_is_none_gets_the_usage(text: str) -> None:
    assert parse(text) == "usage"


@pytest.mark.parametrize(
    "text", ["approve 7", "", "hello /approve 7", "\u200b/approve 7", "／approve 7", "yes\n/approve 7"]
)
def test_other_text_is_no_command(text: str) -> None:
    assert parse(text) is None


@given(st.text(max_size=40))
def test_any_text_is_read_without_an_error(text: str) -> None:
    parse("/" + text)


@given(st.text(st.sampled_from("/approve rjct#@0123456789'allhm \n"), max_size=20))
def test_a_command_is_read_only_from_its_exact_words(text: str) -> None:
    command = parse("/" + text)
    if isinstance(command, Approve):
        words = f"approve {command.chat} {command.number}" if command.chat else f"approve {command.number}"
        assert ("/" + text).strip(" \n") in (f"/{words}", f"/'{words}'")


numbers = st.integers(1, 999_999_999)
refs = st.builds("{}{}".format, st.sampled_from("@#"), numbers)
talks = refs | st.builds("#{}(_support)".format, numbers) | st.builds("#{}(_support:{})".format, numbers, numbers)
bounds = (
    st.just(Bound())
    | st.builds(Bound, messages=st.integers(1, 9_999))
    | st.builds(
        lambda count, unit: Bound(time=timedelta(**{unit: count})),
        st.integers(1, 9_999), st.sampled_from(("minutes", "hours", "days")),
    )
)  # fmt: skip
any_command = st.one_of(
    st.builds(Approve, numbers, st.none() | talks), st.builds(Reject, numbers, st.none() | talks),
    st.builds(ApproveAll, refs, bounds), st.builds(Revoke, refs), st.builds(Show, numbers), st.builds(Leave, refs),
    st.builds(Receive, talks, numbers, st.booleans()), st.builds(ReceiveOff, refs), st.builds(Forward, talks, numbers),
    st.builds(DeleteFiles, refs), st.builds(Simple, st.sampled_from(("pending", "list", "help"))),
)  # fmt: skip


def spellings(command: object) -> set[str]:
    """How a command is written, without the slash: one way, but for a time that is whole hours or days."""
    match command:
        case Approve(number, chat) | Reject(number, chat):
            return {f"{type(command).__name__.lower()} {f'{chat} ' if chat else ''}{number}"}
        case ApproveAll(chat, Bound(time=None, messages=messages)):
            return {f"approve {chat} all {messages}" if messages else f"approve {chat} all"}
        case ApproveAll(chat, Bound(time=timedelta() as time)):
            counts = {unit: time / timedelta(**{name: 1}) for unit, name in _UNITS.items()}
            return {f"approve {chat} all {int(n)}{unit}" for unit, n in counts.items() if n.is_integer() and n < 10_000}
        case Receive(chat, number, every):
            return {f"receive {chat} {number}{' all' if every else ''}"}
        case ReceiveOff(chat):
            return {f"receive {chat} off"}
        case Forward(chat, number):
            return {f"forward {chat} {number}"}
        case DeleteFiles(chat):
            return {f"delete {chat} files"}
        case Revoke(ref) | Leave(ref):
            return {f"{type(command).__name__.lower()} {ref}"}
        case Show(number):
            return {f"show {number}"}
        case Simple(word):
            return {word}
        case _:
            raise AssertionError(command)


_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@given(any_command)
def test_every_command_is_read_as_it_is_written_and_as_it_is_tapped(command: object) -> None:
    for words in spellings(command):
        assert parse(f"/{words}") == parse(f"/'{words}'") == command


@given(any_command, st.data())
def test_a_command_with_a_change_anywhere_is_another_one_that_is_written_so_or_none(
    command: object, data: st.DataObject
) -> None:
    words = data.draw(st.sampled_from(sorted(spellings(command))))
    at = data.draw(st.integers(0, len(words)))
    until = at + data.draw(st.integers(0, 2))
    piece = data.draw(st.sampled_from((*"0123456789 @#()'/\n\t;,:_-+allmhd", "７", "\u200b", "\u00a0", "a", "", "  ")))
    spoilt = words[:at] + piece + words[until:]
    read = parse(f"/{spoilt}")
    assert read is not None
    if read != "usage":
        written = {form for said in spellings(read) for form in (f"/{said}", f"/'{said}'")}
        assert f"/{spoilt}".strip(" \n") in written


@given(any_command, any_command, st.sampled_from((" ", "; ", "\n", " /", "\n/", " and /", "")))
def test_two_commands_in_a_message_are_none(one: object, other: object, between: str) -> None:
    first, second = min(spellings(one)), min(spellings(other))
    for text in (f"/{first}{between}{second}", f"/'{first}'{between}/'{second}'"):
        read = parse(text)
        if read != "usage":
            assert text in {f"/{said}" for said in spellings(read)}


def test_the_usage_shows_the_commands_and_makes_none_of_them_tappable() -> None:
    kinds = {part.get("format", {}).get("type") for part in markdown.parse(USAGE) or []}
    assert kinds == {None, "snippet"}
