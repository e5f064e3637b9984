from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.bridge.events import EventReader, TooLongError


def read(*parts: bytes, limit: int = 1000) -> list[bytes]:
    reader = EventReader(limit)
    return [data for part in parts for data in reader.feed(part)]


def test_the_data_of_each_whole_event_is_given():
    assert read(b"event: message\ndata: one\n\ndata:two\n\ndata: thr") == [b"one", b"two"]


def test_comments_names_and_empty_events_are_skipped():
    assert read(b": ping\n\nid: 7\nretry: 3\n\n\n\ndata\n\nevent: x\ndata: y\n\n") == [b"y"]


def test_several_lines_of_data_are_one_message():
    assert read(b"data: a\ndata:  b\n\n") == [b"a\n b"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_end_of_a_line_is_known(end: bytes):
    assert read(end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""]) + b": x") == [b"a\nb", b"c"]


@given(st.data(), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_it_does_not_matter_how_the_bytes_are_parted(data: st.DataObject, end: bytes):
    events = data.draw(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1), max_size=4)
    )
    stream = b"".join(b"data: " + event.encode() + end + end for event in events) + b": end"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*parts, limit=100_000) == [event.encode() for event in events]


@pytest.mark.parametrize("stream", [[b"data: " + b"x" * 2000], [b"data: 0123456789\n"] * 200, [b":" * 2000]])
def test_an_event_that_grows_without_end_is_refused(stream: list[bytes]):
    with pytest.raises(TooLongError):
        read(*stream)
