"""libsimplex in this process: loading it through the `simplex-chat` package, and its C functions as Python ones.

Everything here blocks, and is called in worker threads. Texts that the library returns are copied and freed here.
"""

from __future__ import annotations

import ctypes
import http.client
import os
import sys
import urllib.error
import zipfile
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, final

from simplexmcp.core.decode import UnreadableError, json_object
from simplexmcp.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Library", "Store", "load_library"]

_OTHER_WAYS = (
    "put libsimplex into a folder and name it in SIMPLEX_LIBS_DIR, "
    "or run simplex-chat and give its address with --core ws://127.0.0.1:PORT"
)


@final
class Library:
    """The loaded library. One in a process, and never unloaded: its runtime cannot be started twice."""

    def __init__(self, functions: Any, free: Any) -> None:
        self._functions = functions
        self._free = free

    def open_store(self, prefix: Path, key: str) -> Store:
        """Opens, or makes, the databases PREFIX_chat.db and PREFIX_agent.db. UserError when they do not open."""
        controller = ctypes.c_void_p()
        answer = self.text(
            self._functions.chat_migrate_init(os.fsencode(prefix), key.encode(), b"yesUp", ctypes.byref(controller))
        )
        result = json_object(answer)
        if result.get("type") != "ok" or not controller.value:
            raise UserError(_migration_failure(result, prefix))
        return Store(self, self._functions, controller.value)

    def text(self, pointer: int | None) -> bytes:
        """A copy of a text that the library allocated, which is freed. UnreadableError for a null pointer."""
        if not pointer:
            raise UnreadableError("a null pointer")
        try:
            return ctypes.string_at(pointer)
        finally:
            self._free(pointer)


@final
class Store:
    """An open pair of databases. Not to be used after `close`."""

    def __init__(self, library: Library, functions: Any, controller: int) -> None:
        self._library = library
        self._functions = functions
        self._controller = controller

    def command(self, command: bytes) -> bytes:
        """The core's answer, as JSON. May run in several threads at once."""
        return self._library.text(self._functions.chat_send_cmd(self._controller, command))

    def receive(self, microseconds: int) -> bytes:
        """The next event as JSON, or nothing in that time. In one thread at a time."""
        return self._library.text(self._functions.chat_recv_msg_wait(self._controller, microseconds))

    def close(self) -> str:
        """Closes both databases; the text of an error, or none."""
        return self._library.text(self._functions.chat_close_store(self._controller)).decode(errors="replace")


def load_library(say: Callable[[str], None]) -> Library:
    """Loads libsimplex, downloading it at first use (one line to `say`). UserError when there is none to load."""
    try:
        from simplex_chat import _native
    except ImportError:
        raise UserError("The package simplex-chat is missing: pip install 'simplex-chat>=7.0.2,<8'") from None
    line = f"Downloading libsimplex {version('simplex-chat')} from github.com, once ..."

    def report(*parts: object, **_: object) -> None:
        # The loader also prints its progress many times a second.
        if parts and str(parts[0]).startswith("Downloading"):
            say(line)

    _native.__dict__["print"] = report
    try:
        functions = _native.lib_for("sqlite")
        return Library(functions, _free_of(_native.libc()))
    except (urllib.error.URLError, http.client.HTTPException, zipfile.BadZipFile, TimeoutError) as error:
        raise UserError(
            f"libsimplex could not be downloaded ({_reason(error)}): check the internet connection, or {_OTHER_WAYS}."
        ) from None
    except (OSError, AttributeError) as error:
        place = os.environ.get("SIMPLEX_LIBS_DIR")
        where = f"from SIMPLEX_LIBS_DIR ({place}) " if place else ""
        raise UserError(f"libsimplex could not be loaded {where}({_reason(error)}): {_OTHER_WAYS}.") from None
    except (RuntimeError, KeyError) as error:
        machine = f"{sys.platform}, {os.uname().machine}"
        raise UserError(
            f"There is no libsimplex for this machine ({machine}: {_reason(error)}): {_OTHER_WAYS}."
        ) from None
    finally:
        _native.__dict__.pop("print", None)


def _free_of(libc: Any) -> Any:
    free = libc.free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    return free


def _reason(error: BaseException) -> str:
    """What an error of the loader says, on one short line."""
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, BaseException):
        error = error.reason
    text = " ".join((str(error) or type(error).__name__).split())
    return "".join(c if c.isprintable() else "?" for c in text)[:200]


def _migration_failure(result: dict[str, Any], prefix: Path) -> str:
    """Why the databases did not open, and what to do."""
    file = result.get("dbFile") if isinstance(result.get("dbFile"), str) else str(prefix)
    match result.get("type"):
        case "errorNotADatabase":
            return f"{file} does not open: its key is another one (--database-key-file), or it is no SimpleX database."
        case "errorMigration":
            cause = result.get("migrationError")
            kind = cause.get("type") if isinstance(cause, dict) else None
            if kind == "downgrade":
                return f"{file} was used by a newer SimpleX: install a newer simplex-chat package."
            return f"{file} cannot be brought to this version of SimpleX ({kind}): restore it from a copy."
        case "errorSQL":
            reason = " ".join(str(result.get("migrationSQLError")).split())[:200]
            return f"{file} does not open: {reason}. Check that the disk has room and the folder is yours."
        case kind:
            return f"The databases {prefix}_chat.db and {prefix}_agent.db do not open ({kind})."
