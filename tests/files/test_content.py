"""What a file is, told by its content and by nothing else."""

from __future__ import annotations

import os
import struct
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.files.content import HEAD, Movie, carries_metadata, read_movie, sniff
from tests.files.movies import box, movie


def read(data: bytes) -> Movie | None:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return read_movie(file.fileno(), len(data))


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/x-riff"),
        (b"\0\0\0\x18ftypheic", "image/heic"),
        (b"\0\0\0\x18ftypavif", "image/heic"),
        (b"\0\0\0\x18ftypisom", "video/mp4"),
        (b"\0\0\0\x18ftypmp42", "video/mp4"),
        (b"\0\0\0\x18ftypM4V ", "video/mp4"),
        (b"\0\0\0\x18ftypqt  ", "video/quicktime"),
        (b"\0\0\0\x08wide\0\0\0\0mdat", "video/quicktime"),
        (b"\0\0\0\x18ftypM4A ", "audio/mp4"),
        (b"\0\0\0\x18ftypzzzz", "application/octet-stream"),
        (b"%PDF-1.7", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"#EXTM3U\nhttp://example.com/a.ts\n", "text/plain"),
        ("Grüße".encode(), "text/plain"),
        (b"\0\1\2", "application/octet-stream"),
        (b"\xff\xfe\xfd", "application/octet-stream"),
    ],
)
def test_a_type_is_told_by_the_first_bytes(head: bytes, kind: str):
    assert sniff(head) == kind


def test_a_character_that_the_head_cuts_does_not_make_a_text_binary():
    assert sniff(("x" + "ü" * HEAD).encode()[:HEAD]) == "text/plain"


def test_only_texts_carry_no_metadata():
    assert not carries_metadata("text/plain")
    assert carries_metadata("application/octet-stream")
    assert carries_metadata("image/jpeg")
    assert carries_metadata("application/pdf")


def test_a_film_says_how_long_it_is_and_what_is_in_it():
    assert read(movie(2.5)) == Movie(2.5, True, "mp4a")
    assert read(movie(4, video=False)) == Movie(4.0, False, "mp4a")
    assert read(movie(4, audio=b"", long=True)) == Movie(4.0, True, "")


def test_a_film_with_a_large_first_box_is_read_without_reading_it():
    header = struct.pack(">I4sQ", 1, b"mdat", 16 + 5)
    assert read(header + b"12345" + movie()) == Movie(2.0, True, "mp4a")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\x07moov",
        box(b"ftyp", b"isom"),
        box(b"free") * 5000 + movie(),
        struct.pack(">I4sQ", 1, b"mdat", 3) + movie(),
        struct.pack(">I4s", 0xFFFFFFFF, b"moov"),
        movie()[:-4],
    ],
)
def test_what_is_damaged_or_endless_is_no_film(data: bytes):
    assert read(data) is None


def test_a_film_that_says_nothing_of_itself_has_nothing_in_it():
    assert read(b"\0\0\0\0moov") == Movie(0.0, False, "")


def test_a_duration_that_is_not_known_is_none():
    assert read(box(b"moov", box(b"mvhd", struct.pack(">IIIII", 0, 0, 0, 1000, 0xFFFFFFFF), bytes(80)))) == Movie(
        0.0, False, ""
    )
    assert read(box(b"moov", box(b"mvhd", struct.pack(">IIIII", 0, 0, 0, 0, 5), bytes(80)))) == Movie(0.0, False, "")


@given(st.integers(0, 700), st.binary(min_size=1, max_size=8))
def test_a_film_with_any_bytes_in_it_is_read_or_not(at: int, noise: bytes):
    data = movie()
    read(data[:at] + noise + data[at + len(noise) :])
    assert os.getpid()  # nothing was raised


@given(st.binary(max_size=200))
def test_any_bytes_have_a_type(head: bytes):
    assert "/" in sniff(head)
