"""What arguments a tool takes: nothing is converted, nothing is ignored, and the issues use well-known words."""

from __future__ import annotations

from typing import Any

import pytest

from simplexmcp.rooms.fields import (
    AnyContent,
    Boolean,
    Choice,
    Field,
    Integer,
    Nullable,
    Number,
    Record,
    Text,
    Texts,
    check,
    schema,
)

ASTRAL = "\U0001f600"  # two UTF-16 units


def checked(field: Field, value: Any) -> tuple[Any, list[dict[str, Any]]]:
    issues: list[dict[str, Any]] = []
    return check({"x": field}, {"x": value}, [], issues)["x"], issues


def codes(field: Field, value: Any) -> list[str]:
    return [issue["code"] for issue in checked(field, value)[1]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (Text("", 3), ""),
        (Text("", 3), "abc"),
        (Text("", 4), ASTRAL * 2),
        (Text("", 3, shortest=1, blank=False), " a "),
        (Integer("", 1, 3), 3),
        (Number("", 0, 10, above=True), 0.5),
        (Boolean(""), False),
        (Choice("", ("a", "b")), "b"),
        (Texts("", Text("", 2, shortest=1), 2), ["a", "bc"]),
        (Record("", {"n": Integer("", required=True)}), {"n": 1}),
        (Nullable(Text("", 3)), None),
        (Nullable(Text("", 3)), "abc"),
        (AnyContent(""), ""),
        (AnyContent(""), {"a": [1]}),
        (AnyContent(""), []),
    ],
)
def test_what_fits_is_passed_on_as_it_is(field: Field, value: Any):
    assert checked(field, value) == (value, [])


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        (Text("", 3), "abcd", "too_big"),
        (Text("", 3), ASTRAL * 2, "too_big"),
        (Text("", 3, shortest=1), "", "too_small"),
        (Text("", 3, shortest=1, blank=False), " \t", "custom"),
        (Text("", 3), 1, "invalid_type"),
        (Text("", 3), None, "invalid_type"),
        (Integer("", 1, 3), 0, "too_small"),
        (Integer("", 1, 3), 4, "too_big"),
        (Integer("", 1, 3), 1.5, "invalid_type"),
        (Integer("", 1, 3), "1", "invalid_type"),
        (Integer("", 1, 3), True, "invalid_type"),
        (Integer(""), 2**53, "too_big"),
        (Integer(""), 1e300, "too_big"),
        (Number("", 0, 10, above=True), 0, "too_small"),
        (Number("", 0, 10, above=True), 10.5, "too_big"),
        (Number("", 0, 10), False, "invalid_type"),
        (Boolean(""), 1, "invalid_type"),
        (Boolean(""), "true", "invalid_type"),
        (Choice("", ("a", "b")), "c", "invalid_enum_value"),
        (Choice("", ("a", "b")), ["a"], "invalid_enum_value"),
        (Texts("", Text("", 2), 2), ["a", "b", "c"], "too_big"),
        (Texts("", Text("", 2), 2), "ab", "invalid_type"),
        (Texts("", Text("", 2), 2), ["abc"], "too_big"),
        (Record("", {}), [], "invalid_type"),
        (Record("", {"n": Integer("", required=True)}), {}, "invalid_type"),
        (Record("", {}), {"extra": 1}, "unrecognized_keys"),
        (Nullable(Text("", 3)), 1, "invalid_type"),
        (AnyContent(""), 1, "invalid_type"),
        (AnyContent(""), None, "invalid_type"),
    ],
)
def test_what_does_not_fit_is_one_issue(field: Field, value: Any, code: str):
    assert codes(field, value) == [code]


def test_a_number_without_a_fraction_counts_as_the_integer():
    value, issues = checked(Integer("", 1, 5), 3.0)
    assert (value, type(value), issues) == (3, int, [])


def test_an_issue_names_its_place():
    _, issues = checked(Texts("", Text("", 1), 5), ["a", "bc"])
    assert issues == [
        {
            "code": "too_big",
            "maximum": 1,
            "type": "string",
            "path": ["x", 1],
            "message": "x.1: String must contain at most 1 character(s)",
        }
    ]


def test_unknown_arguments_are_named_all_at_once():
    issues: list[dict[str, Any]] = []
    check({"a": Boolean("")}, {"a": True, "b": 1, "c": 2}, [], issues)
    assert issues == [
        {
            "code": "unrecognized_keys",
            "keys": ["b", "c"],
            "path": [],
            "message": "Unrecognized key(s) in object: 'b', 'c'",
        }
    ]


def test_what_is_missing_has_its_default_or_is_an_issue():
    issues: list[dict[str, Any]] = []
    fields: dict[str, Field] = {"limit": Integer("", 1, 9, default=5), "note": Text("", 9)}
    assert check(fields, {}, [], issues) == {"limit": 5, "note": None}
    assert issues == []
    check({"seq": Integer("", 1, required=True)}, {}, [], issues)
    assert [(issue["code"], issue["path"], issue["received"]) for issue in issues] == [
        ("invalid_type", ["seq"], "undefined")
    ]


def test_null_is_no_way_to_leave_an_argument_out():
    assert codes(Integer("", 1, 9, default=5), None) == ["invalid_type"]


def test_a_schema_says_the_same_as_the_check():
    fields: dict[str, Field] = {
        "name": Text("The name.", 200, shortest=1, required=True),
        "limit": Integer("", 1, 500, default=50),
        "minutes": Number("", 0, 1440, above=True),
        "role": Nullable(Text("Or null.", 200)),
        "start": Choice("", ("beginning", "latest")),
        "to": Texts("", Text("", 200, shortest=1), 100),
        "content": AnyContent("Anything."),
        "after": Record("", {"room_id": Integer("", 1, required=True)}),
    }
    assert schema(fields) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The name."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50},
            "minutes": {"type": "number", "exclusiveMinimum": 0, "maximum": 1440},
            "role": {"anyOf": [{"type": "string", "maxLength": 200}, {"type": "null"}], "description": "Or null."},
            "start": {"type": "string", "enum": ["beginning", "latest"]},
            "to": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 200}, "maxItems": 100},
            "content": {"description": "Anything."},
            "after": {
                "type": "object",
                "properties": {"room_id": {"type": "integer", "minimum": 1}},
                "required": ["room_id"],
                "additionalProperties": False,
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }
