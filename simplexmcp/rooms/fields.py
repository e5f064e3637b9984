"""What a tool's argument may be: one declaration gives the JSON schema and the check.

Nothing is converted: a text is no number and a number no text, but 3.0 is the integer 3. What does not fit becomes an
issue: `{"code", "path", "message", …}`, in the words that clients of such servers know.
"""

from __future__ import annotations

from typing import Any, Protocol, final

from simplexmcp.rooms.jsontext import units

__all__ = [
    "AnyContent",
    "Boolean",
    "Choice",
    "Field",
    "Integer",
    "Nullable",
    "Number",
    "Record",
    "Text",
    "Texts",
    "check",
    "schema",
]

Issue = dict[str, Any]
_SAFE = 2**53 - 1


class Field(Protocol):
    """One argument. `required` False: it may be missing, and `default` (None: nothing) stands for it."""

    required: bool
    default: Any

    def schema(self) -> dict[str, Any]:
        """The JSON schema."""
        ...

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        """The value as the tool gets it; adds what is wrong to `issues`."""
        ...


class _Base:
    def __init__(self, description: str, *, required: bool = False, default: Any = None) -> None:
        self.description = description
        self.required = required
        self.default = default

    def _described(self, schema: dict[str, Any]) -> dict[str, Any]:
        if self.default is not None:
            schema["default"] = self.default
        if self.description:
            schema["description"] = self.description
        return schema


@final
class Text(_Base):
    """A text of `shortest` to `longest` UTF-16 units; `blank` False refuses one of blanks alone."""

    def __init__(
        self,
        description: str,
        longest: int,
        *,
        shortest: int = 0,
        blank: bool = True,
        required: bool = False,
    ) -> None:
        super().__init__(description, required=required)
        self._longest = longest
        self._shortest = shortest
        self._blank = blank

    def schema(self) -> dict[str, Any]:
        bounds: dict[str, Any] = {"minLength": self._shortest} if self._shortest else {}
        return self._described({"type": "string", **bounds, "maxLength": self._longest})

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        if not isinstance(value, str):
            return _wrong_type("string", value, path, issues)
        length = units(value)
        if length < self._shortest:
            issues.append(
                _bound("too_small", "string", self._shortest, path, f"at least {self._shortest} character(s)")
            )
        if length > self._longest:
            issues.append(_bound("too_big", "string", self._longest, path, f"at most {self._longest} character(s)"))
        if not self._blank and length >= self._shortest and not value.strip():
            issues.append({"code": "custom", "path": path, "message": f"{_named(path)} must be non-blank"})
        return value


class Number(_Base):
    """A number between bounds; `above` excludes the lower one."""

    kind = "number"

    def __init__(
        self,
        description: str,
        lowest: float | None = None,
        highest: float | None = None,
        *,
        above: bool = False,
        required: bool = False,
        default: Any = None,
    ) -> None:
        super().__init__(description, required=required, default=default)
        self._lowest = lowest
        self._highest = highest
        self._above = above

    def schema(self) -> dict[str, Any]:
        bounds: dict[str, Any] = {}
        if self._lowest is not None:
            bounds["exclusiveMinimum" if self._above else "minimum"] = self._lowest
        if self._highest is not None:
            bounds["maximum"] = self._highest
        return self._described({"type": self.kind, **bounds})

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return _wrong_type(self.kind, value, path, issues)
        return self._in_bounds(value, path, issues)

    def _in_bounds(self, value: float, path: list[Any], issues: list[Issue]) -> Any:
        if self._lowest is not None and (value <= self._lowest if self._above else value < self._lowest):
            word = "greater than" if self._above else "greater than or equal to"
            issues.append(_bound("too_small", "number", self._lowest, path, f"{word} {self._lowest}"))
        if self._highest is not None and value > self._highest:
            text = f"less than or equal to {self._highest} (at most {self._highest})"
            issues.append(_bound("too_big", "number", self._highest, path, text))
        return value


@final
class Integer(Number):
    """A whole number between bounds, at most 2^53-1; 3.0 is 3."""

    kind = "integer"

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return _wrong_type("integer", value, path, issues)
        if abs(value) > _SAFE:
            issues.append(_bound("too_big", "number", _SAFE, path, f"less than or equal to {_SAFE}"))
            return value
        return self._in_bounds(value, path, issues)


@final
class Boolean(_Base):
    """True or false."""

    def schema(self) -> dict[str, Any]:
        return self._described({"type": "boolean"})

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        return value if isinstance(value, bool) else _wrong_type("boolean", value, path, issues)


@final
class Choice(_Base):
    """One of a few words."""

    def __init__(self, description: str, words: tuple[str, ...], *, required: bool = False) -> None:
        super().__init__(description, required=required)
        self._words = words

    def schema(self) -> dict[str, Any]:
        return self._described({"type": "string", "enum": list(self._words)})

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        if value not in self._words:
            choices = " | ".join(f"'{word}'" for word in self._words)
            issue = {"code": "invalid_enum_value", "options": list(self._words), "path": path}
            issues.append({**issue, "message": f"Invalid enum value. Expected {choices}"})
        return value


@final
class Texts(_Base):
    """A list of at most `most` texts."""

    def __init__(self, description: str, each: Text, most: int, *, required: bool = False) -> None:
        super().__init__(description, required=required)
        self._each = each
        self._most = most

    def schema(self) -> dict[str, Any]:
        return self._described({"type": "array", "items": self._each.schema(), "maxItems": self._most})

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        if not isinstance(value, list):
            return _wrong_type("array", value, path, issues)
        if len(value) > self._most:
            issues.append(_bound("too_big", "array", self._most, path, f"at most {self._most} element(s)"))
            return value
        return [self._each.check(inner, [*path, place], issues) for place, inner in enumerate(value)]


@final
class Record(_Base):
    """An object with exactly these fields."""

    def __init__(self, description: str, fields: dict[str, Field], *, required: bool = False) -> None:
        super().__init__(description, required=required)
        self._fields = fields

    def schema(self) -> dict[str, Any]:
        return self._described(schema(self._fields))

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        return check(self._fields, value, path, issues)


@final
class Nullable(_Base):
    """A field that may also be null."""

    def __init__(self, inner: Text) -> None:
        super().__init__(inner.description, required=inner.required)
        self._inner = inner

    def schema(self) -> dict[str, Any]:
        inner = self._inner.schema()
        description = {"description": inner.pop("description")} if "description" in inner else {}
        return {"anyOf": [inner, {"type": "null"}], **description}

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        return None if value is None else self._inner.check(value, path, issues)


@final
class AnyContent(_Base):
    """A text, an object or a list; the schema says nothing, since some clients take a list of types for an error."""

    def schema(self) -> dict[str, Any]:
        return self._described({})

    def check(self, value: Any, path: list[Any], issues: list[Issue]) -> Any:
        if isinstance(value, str | dict | list):
            return value
        return _wrong_type("string, object or array", value, path, issues)


def schema(fields: dict[str, Field]) -> dict[str, Any]:
    """The JSON schema of an object with these fields and no others."""
    required = [name for name, field in fields.items() if field.required]
    return {
        "type": "object",
        "properties": {name: field.schema() for name, field in fields.items()},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def check(fields: dict[str, Field], given: Any, path: list[Any], issues: list[Issue]) -> dict[str, Any]:
    """The arguments as the tool gets them: every field is there, with its default or None when it was not given."""
    if not isinstance(given, dict):
        _wrong_type("object", given, path, issues)
        return {}
    if unknown := [key for key in given if key not in fields]:
        keys = ", ".join(f"'{key}'" for key in unknown)
        issue = {"code": "unrecognized_keys", "keys": unknown, "path": path}
        issues.append({**issue, "message": f"Unrecognized key(s) in object: {keys}"})
    checked: dict[str, Any] = {}
    for name, field in fields.items():
        if name in given:
            checked[name] = field.check(given[name], [*path, name], issues)
            continue
        checked[name] = field.default
        if field.required:
            issue = {"code": "invalid_type", "expected": "a value", "received": "undefined", "path": [*path, name]}
            issues.append({**issue, "message": f"{name}: Required"})
    return checked


def _wrong_type(expected: str, value: Any, path: list[Any], issues: list[Issue]) -> Any:
    received = _type_name(value)
    issue = {"code": "invalid_type", "expected": expected, "received": received, "path": path}
    issues.append({**issue, "message": f"{_named(path)}: Expected {expected}, received {received}"})
    return value


def _bound(code: str, kind: str, bound: float, path: list[Any], text: str) -> Issue:
    edge = "minimum" if code == "too_small" else "maximum"
    verb = {"string": "String must contain", "array": "Array must contain", "number": "Number must be"}[kind]
    return {"code": code, edge: bound, "type": kind, "path": path, "message": f"{_named(path)}: {verb} {text}"}


def _named(path: list[Any]) -> str:
    return ".".join(str(step) for step in path) or "the arguments"


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
