"""The arguments of the tools: what fits, and one sentence for what does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from simplexmcp.errors import Refused

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = [
    "Connect",
    "Download",
    "History",
    "Leave",
    "ListChats",
    "Receive",
    "Send",
    "checked",
    "schema",
]

TARGET_LIMIT = 8192
"""Characters of a link; the longest, with post-quantum keys, have about 4,000."""

PATH_LIMIT = 4096
"""Characters of a file's path."""

_SENTENCE = "sentence"  # the type of an error whose message is what the agent reads

_Chat = Annotated[str, Field(min_length=1, max_length=200, description="Chat ID from `list`, such as @4 or #15.")]
_Item = Annotated[int, Field(ge=1, le=2**63 - 1)]
_Limit = Annotated[int, Field(ge=1, le=100, description="Most messages in the result.")]
_Idle = Annotated[float, Field(ge=1, le=3600, description="Seconds without a new message that end the wait.")]
_Wait = Annotated[float, Field(ge=0, le=86400, description="Seconds to wait.")]


class _Arguments(BaseModel):
    tool: ClassVar[str]
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


_T = TypeVar("_T", bound=_Arguments)


class Connect(_Arguments):
    """Arguments of `connect`."""

    tool: ClassVar[str] = "connect"

    target: Annotated[
        str,
        Field(
            min_length=1,
            max_length=TARGET_LIMIT,
            description="SimpleX link, or a name: @name.simplex or #name.simplex.",
        ),
    ]
    message: Annotated[str, Field(min_length=1, description="Text sent along with the request.")] | None = None
    incognito: Annotated[bool, Field(description="Show a random name instead of the agent's.")] = False
    wait: _Wait = 60
    idle: _Idle = 5
    limit: _Limit = 50


class Send(_Arguments):
    """Arguments of `send`."""

    tool: ClassVar[str] = "send"

    chat: _Chat
    text: Annotated[str, Field(description="The message, or the caption of the file.")] = ""
    file: (
        Annotated[str, Field(min_length=1, max_length=PATH_LIMIT, description="Absolute path of a file to send along.")]
        | None
    ) = None
    as_: Annotated[
        Literal["auto", "image", "video", "voice", "file"],
        Field(
            alias="as",
            description="How the file is shown; `auto` goes by its content. Images are re-encoded without metadata; "
            "`file` sends the bytes as they are.",
        ),
    ] = "auto"
    reply_to: Annotated[_Item, Field(description="Item of this chat that the message replies to.")] | None = None
    mention: Annotated[
        tuple[_Item, ...], Field(max_length=3, description="Member numbers (`from.member`) to mention; groups only.")
    ] = ()
    wait: Annotated[_Wait, Field(description="Seconds to wait for replies after it was sent.")] = 0
    idle: _Idle = 5
    limit: _Limit = 50

    @model_validator(mode="after")
    def _has_content(self) -> Send:
        if self.file is None and "as_" in self.model_fields_set:
            raise PydanticCustomError(_SENTENCE, "`as` says how a file is shown; give its path in `file` too.")
        if self.file is None and not self.text:
            missing = "must not be empty" if "text" in self.model_fields_set else "is missing"
            raise PydanticCustomError(_SENTENCE, "`text` {what}.", {"what": missing})
        return self


class Receive(_Arguments):
    """Arguments of `receive`."""

    tool: ClassVar[str] = "receive"

    chat: Annotated[_Chat, Field(description="Chat ID; without it, the first chat that has something new.")] | None = (
        None
    )
    wait: Annotated[_Wait, Field(description="Seconds to wait for a message when nothing is unread.")] = 0
    limit: _Limit = 50


class History(_Arguments):
    """Arguments of `history`."""

    tool: ClassVar[str] = "history"

    chat: _Chat
    before: (
        Annotated[_Item, Field(description="Item that the page ends before; without it, the newest page.")] | None
    ) = None
    search: Annotated[str, Field(min_length=1, max_length=200, description="Text that the messages hold.")] | None = (
        None
    )
    limit: _Limit = 50


class Download(_Arguments):
    """Arguments of `download`."""

    tool: ClassVar[str] = "download"

    chat: _Chat
    item: Annotated[_Item, Field(description="Number of the message whose file is wanted.")]
    wait: Annotated[
        _Wait, Field(description="Seconds to wait for the sender's upload, and for the download once it is approved.")
    ] = 60


class Leave(_Arguments):
    """Arguments of `leave`."""

    tool: ClassVar[str] = "leave"

    chat: _Chat


class ListChats(_Arguments):
    """Arguments of `list`."""

    tool: ClassVar[str] = "list"


def checked(model: type[_T], arguments: dict[str, Any]) -> _T:
    """The arguments as `model`. Raises Refused with one sentence on the first that does not fit."""
    for key, value in arguments.items():
        _refuse_surrogates(key, value)
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True, include_input=False)
        raise Refused(_sentence(model.tool, details[0])) from None


def schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without the titles that pydantic makes of names."""
    made: dict[str, Any] = _plain(model.model_json_schema())
    made.pop("description", None)
    made.setdefault("properties", {})
    return made


def _plain(node: Any) -> Any:
    """Without titles, and with `X | None` as X: an optional argument is left out, not null."""
    if isinstance(node, list):
        return [_plain(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _plain(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))}
    options = kept.get("anyOf")
    if isinstance(options, list) and len(options) == 2 and {"type": "null"} in options:
        one = next(option for option in options if option != {"type": "null"})
        kept = {**one, **{key: value for key, value in kept.items() if key not in ("anyOf", "default")}}
    return kept


def _refuse_surrogates(key: str, value: Any) -> None:
    texts = [key, *(value if isinstance(value, list | tuple) else [value])]
    for text in texts:
        if isinstance(text, str) and re.search("[\ud800-\udfff]", text):
            name = key.encode("ascii", "backslashreplace").decode()
            raise Refused(
                f"`{name}` holds half of a character (a lone surrogate), which no message can carry; remove it."
            )


def _sentence(tool: str, detail: ErrorDetails) -> str:
    where = ".".join(ascii(part).strip("'") for part in detail["loc"]) or "arguments"
    context = detail.get("ctx", {})
    match detail["type"]:
        case "sentence":
            return detail["msg"]
        case "literal_error":
            return f"`{where}` must be one of {context['expected']}."
        case "missing":
            return f"`{where}` is missing."
        case "extra_forbidden":
            return f"`{where[:60]}` is not an argument of {tool}."
        case "greater_than_equal":
            return f"`{where}` must be at least {_number(context['ge'])}."
        case "less_than_equal":
            return f"`{where}` must be at most {_number(context['le'])}."
        case "string_too_short":
            return f"`{where}` must not be empty."
        case "string_too_long":
            return f"`{where}` must have at most {context['max_length']} characters."
        case "too_long":
            return f"`{where}` must have at most {context['max_length']} entries."
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            return f"`{where}` must be a whole number."
        case "float_type" | "float_parsing" | "finite_number":
            return f"`{where}` must be a number."
        case "string_type":
            return f"`{where}` must be a text."
        case "bool_type" | "bool_parsing":
            return f"`{where}` must be true or false."
        case "tuple_type":
            return f"`{where}` must be a list."
        case _:
            return f"`{where}` does not fit: {detail['msg']}."


def _number(value: float) -> str:
    return str(int(value))  # every bound here is whole
