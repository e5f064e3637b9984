from __future__ import annotations

import ast
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplexmcp import auditlines
from simplexmcp.auditlines import line_of, parse_entry, sentence_of

AT = "2026-12-01T22:18:05Z"
ALICE = {"by": "Alice", "member": 3}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"event": "created", "action": 9, "tool": "send", "chat": "#15", "state": "pending"},
         "Action 9: the agent asks to send to #15."),
        ({"event": "created", "action": 9, "tool": "send", "chat": "#15", "state": "performing"},
         "Action 9: the agent asks to send to #15. No approval was needed."),
        ({"event": "created", "action": 1, "tool": "connect", "state": "pending"},
         "Action 1: the agent asks to connect."),
        ({"event": "decided", "action": 9, "decision": "approved", **ALICE},
         'Action 9: approved by "Alice" (member 3).'),
        ({"event": "performed", "action": 9, "tool": "download", "chat": "#15"},
         "Action 9: done (download from #15)."),
        ({"event": "failed", "action": 9, "tool": "leave", "chat": "@4", "error": "It is gone."},
         "Action 9: failed (leave @4): It is gone."),
        ({"event": "cancelled", "action": 9, "crashed": True}, "Action 9: cancelled (the server crashed)."),
        ({"event": "standing-approval", "chat": "#15", "messages": 20, **ALICE},
         'Messages to #15 need no approval any more, by "Alice" (member 3). It ends after 20 messages.'),
        ({"event": "standing-approval", "chat": "#15", "files": True, **ALICE},
         'Files from #15 need no approval any more, by "Alice" (member 3).'),
        ({"event": "revoked", "chat": "#15", **ALICE}, 'Messages to #15 need approval again, by "Alice" (member 3).'),
        ({"event": "owners", "owners": [{"member": 3, "name": "Alice"}, {"member": 7, "name": "Bob"}]},
         'Owners: "Alice" (member 3), "Bob" (member 7).'),
        ({"event": "owners", "owners": []}, "Owners: none."),
        ({"event": "owner-added", "member": 7, "name": "Bob"}, '"Bob" (member 7) is now an owner.'),
        ({"event": "refused-command", "member": 7, "name": "Bob", "reason": "not an approver"},
         'A command of "Bob" (member 7) was not obeyed: not an approver.'),
        ({"event": "link-lost"}, "The link to the SimpleX core was lost."),
    ],
)  # fmt: skip
def test_an_entry_is_a_sentence(entry: dict, says: str):
    assert sentence_of({"at": AT, **entry}) == says


def test_the_line_begins_with_the_local_day_and_time():
    zone = timezone(timedelta(hours=5, minutes=30))
    assert line_of({"at": AT, "event": "link-back"}, zone) == (
        "2026-12-02 03:48:05  The link to the SimpleX core is back."
    )
    assert line_of({"at": AT, "event": "link-back"}, UTC).startswith("2026-12-01 22:18:05  ")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"event": "invented", "chat": "#1", "n": 3, "who": {"a": [1]}}, 'invented: chat #1, n 3, who {"a": [1]}'),
        ({"event": "decided", "action": 9}, "decided: action 9"),
        ({"event": ["x"]}, '["x"]'),
        ({}, "null"),
    ],
)
def test_an_entry_that_no_sentence_fits_shows_all_its_fields(entry: dict, says: str):
    assert sentence_of(entry) == says
    assert line_of({"at": "soon", **entry}) == f"soon  {says}"


def test_names_and_errors_of_others_steer_no_terminal():
    line = line_of(
        {"at": AT, "event": "failed", "action": 1, "tool": "send", "chat": "#1", "error": "\x1b[2J\n\u202e"}, UTC
    )
    assert line.endswith("<U+001B>[2J<U+000A><U+202E>")
    assert line.isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["at", "action", "tool", "chat", "by", "member", "owners", "name"]), JSON),
    st.data(),
)
def test_whatever_is_in_an_entry_it_is_one_printable_line(entry: dict, data: st.DataObject):
    event = data.draw(st.sampled_from(sorted(auditlines._SENTENCES)) | st.text())
    line = line_of({**entry, "event": event}, UTC)
    assert "\n" not in line
    assert all(c.isprintable() or c.isspace() for c in line)


@pytest.mark.parametrize("line", [b"", b"{", b'{"at":', b"[1]", b"null", b"\xff", b"[" * 100_000])
def test_a_torn_line_is_no_entry(line: bytes):
    assert parse_entry(line) is None


def test_every_event_that_the_program_writes_has_a_sentence():
    written = set()
    for file in Path(auditlines.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            of_audit = ast.unparse(node.func) in ("audit.write", "self._audit.write", "self.audit.write")
            if of_audit and isinstance(node.args[0], ast.Constant):
                written.add(node.args[0].value)
    assert {"created", "decided", "link-lost"} < written
    assert written <= set(auditlines._SENTENCES)
