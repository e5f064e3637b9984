"""Names of files, made safe for any disk (case S36)."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.files.names import NAME_BYTES, extension, safe_name, shown_size, stored_name

if TYPE_CHECKING:
    from pathlib import Path

FOREIGN = st.one_of(
    st.text(st.characters(codec=None), max_size=300),
    st.text(st.sampled_from("./\\-~ \0\n\u202e\u200b\u3000CONcomLPT1:?*|é\u0301\ud800"), max_size=40),
)


@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("Bericht März.pdf", "Bericht März.pdf"),
        ("../../.bashrc", "bashrc"),
        ("/etc/passwd", "passwd"),
        ("..\\x", "x"),
        ("C:\\Windows\\evil.exe", "evil.exe"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("--option=x.txt", "option=x.txt"),
        ("~root", "root"),
        ("a\0b.txt", "ab.txt"),
        ("a\nb\r\t.txt", "ab.txt"),
        ("\u202egpj.exe", "gpj.exe"),
        ("a\u200b\u2066\U000e0041b.txt", "ab.txt"),
        ("lone\ud800.txt", "lone.txt"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("com1", "_com1"),
        ("LPT9.tar.gz", "_LPT9.tar.gz"),
        ("COM¹.txt", "_COM¹.txt"),
        ("CONSOLE.txt", "CONSOLE.txt"),
        ("a.pdf" + " " * 200 + ".exe", "a.pdf .exe"),
        ("dots...", "dots"),
        ("blank. .", "blank"),
        ("a:b|c?.txt", "a_b_c_.txt"),
        ("wide\u3000blank.txt", "wide blank.txt"),
        ("e\u0301.txt", "é.txt"),
        ("", "file"),
        (".", "file"),
        ("..", "file"),
        ("folder/", "file"),
        ("\u3164", "file"),
    ],
)
def test_a_name_from_outside_becomes_a_plain_one(given_name: str, safe: str):
    assert safe_name(given_name) == safe


def test_a_long_name_is_cut_between_characters_and_keeps_its_extension():
    name = safe_name("ü" * 300 + ".pdf")
    assert len(name.encode()) <= NAME_BYTES
    assert name.endswith("ü.pdf")


def test_a_long_extension_does_not_save_a_long_name():
    assert len(safe_name("a." + "b" * 300).encode()) == NAME_BYTES


@given(FOREIGN)
def test_every_name_becomes_one_that_can_be_made_in_any_folder(name: str):
    safe = safe_name(name)
    assert safe
    assert len(safe.encode()) <= NAME_BYTES
    assert not re.search(r'[/\\\0<>:"|?*]', safe)
    assert safe[0] not in ".-~ "
    assert safe[-1] not in ". "
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in safe)
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", safe)
    assert safe_name(safe) == safe


@given(FOREIGN)
def test_a_file_with_any_name_lies_in_the_folder_it_is_made_in(name: str):
    from pathlib import PurePosixPath

    folder = PurePosixPath("/data/files/group-1")
    for made in (folder / safe_name(name), folder / stored_name(7, name)):
        assert made.parent == folder
        assert ".." not in made.parts


def test_any_safe_name_can_be_made_on_this_disk(tmp_path: Path):
    for name in ("CON", "ü" * 300 + ".pdf", "../x", "a\0b", "😀" * 100):
        (tmp_path / safe_name(name)).write_bytes(b"x")
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("report.pdf", "7.pdf"),
        ("ARCHIVE.TAR.GZ", "7.gz"),
        ("noextension", "7"),
        (".bashrc", "7"),
        ("x.ex\u202ee", "7.exe"),
        ("x.a/b", "7"),
        ("x.ü", "7"),
        ("x." + "a" * 17, "7"),
        ("x.", "7"),
        ("", "7"),
    ],
)
def test_a_received_file_is_kept_by_its_number_and_a_plain_extension(name: str, stored: str):
    assert stored_name(7, name) == stored


def test_an_extension_is_in_small_letters():
    assert extension("A.JPG") == "jpg"
    assert extension("jpg") == ""


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1 KB"),
        (1536, "1.5 KB"),
        (2_516_582, "2.4 MB"),
        (150 * 1024, "150 KB"),
        (1023 * 1024, "1 MB"),
        (1 << 30, "1 GB"),
        (1 << 40, "1 TB"),
        (5000 << 40, "5000 TB"),
    ],
)
def test_a_size_is_shown_in_the_unit_that_fits(size: int, shown: str):
    assert shown_size(size) == shown
