from __future__ import annotations

import re

import segno

from simplexmcp.qr import qr_code

LINK = "https://smp15.simplex.im/g#abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"


def expected() -> list[list[bool]]:
    code = segno.make_qr(LINK, error="l", boost_error=False)
    return [[bool(m) for m in row] for row in code.matrix_iter(border=4)]


def large(text: str) -> list[list[bool]]:
    """What a phone sees: the ground of every second cell."""
    rows = []
    for line in text.split("\n"):
        cells: list[bool] = []
        for ground, blanks in re.findall(r"\x1b\[48;5;(16|231)m( +)", line):
            cells += [ground == "16"] * len(blanks)
        assert line.endswith("\x1b[0m")
        rows.append(cells[::2])
    return rows


def small(lines: list[str], light: str) -> list[list[bool]]:
    rows = []
    for line in lines:
        upper = {"█": True, "▀": True, "▄": False, " ": False}
        lower = {"█": True, "▄": True, "▀": False, " ": False}
        flip = light == "█"
        rows.append([upper[c] != flip for c in line])
        rows.append([lower[c] != flip for c in line])
    return rows


def test_a_large_code_shows_the_modules_with_a_light_border_of_its_own():
    text = qr_code(LINK, "large")
    assert text is not None
    assert large(text) == expected()


def test_a_small_code_shows_the_same_modules_in_half_the_lines():
    text = qr_code(LINK, "small")
    assert text is not None
    lines = [line.removeprefix("\x1b[38;5;16;48;5;231m").removesuffix("\x1b[0m") for line in text.split("\n")]
    assert small(lines, light=" ")[: len(expected())] == expected()


def test_without_colours_the_light_modules_are_drawn():
    text = qr_code(LINK, "small", colour=False)
    assert text is not None
    assert "\x1b" not in text
    assert small(text.split("\n"), light="█")[: len(expected())] == expected()
    blocks = qr_code(LINK, "large", colour=False)
    assert blocks is not None
    assert [[cell == " " for cell in line[::2]] for line in blocks.split("\n")] == expected()


def test_a_code_that_is_too_wide_gets_smaller_and_then_gives_way_to_the_link():
    width = len(expected())
    assert qr_code(LINK, "large", columns=2 * width) == qr_code(LINK, "large")
    assert qr_code(LINK, "large", columns=2 * width - 1) == qr_code(LINK, "small")
    assert qr_code(LINK, "large", columns=width - 1) is None


def test_none_and_a_link_that_no_code_holds_give_no_code():
    assert qr_code(LINK, "none") is None
    assert qr_code("x" * 4000, "large") is None
