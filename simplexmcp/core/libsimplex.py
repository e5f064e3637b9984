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
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from simplexmcp.core.decode import UnreadableError, json_object
from simplexmcp.errors import UserError
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Library", "Store", "check_library", "find_library", "load_library"]

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


@final
class _Report:
    """What the loader prints: one line of ours, and on a terminal how far it is, which the loader writes over and over
    into one line."""

    def __init__(self, say: Callable[[str], None], line: str) -> None:
        self._say, self._line, self._begun = say, line, False

    def __call__(self, *parts: object, **_: object) -> None:
        text = str(parts[0]) if parts else ""
        if text.startswith("Downloading"):
            self._say(self._line)
        elif text.startswith("\r") and sys.stderr.isatty():
            self._begun = True
            sys.stderr.write(f"\r{printable(text[1:])}")
            sys.stderr.flush()

    def end(self) -> None:
        """What follows on the terminal begins a line of its own."""
        if self._begun:
            sys.stderr.write("\n")


def load_library(say: Callable[[str], None]) -> Library:
    """Loads libsimplex, downloading it at first use (one line to `say`). UserError when there is none to load."""
    try:
        from simplex_chat import _native
    except ImportError:
        raise UserError("The package simplex-chat is missing: pip install 'simplex-chat>=7.0.2,<8'") from None
    report = _Report(say, f"Downloading libsimplex {version('simplex-chat')} from github.com, once ...")
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
        report.end()


def find_library() -> Path:
    """Where libsimplex is, or will be after its download. UserError when this machine has none."""
    try:
        from simplex_chat import _native

        # What the loader does before it downloads; it has no name for that alone.
        loader: Mapping[str, Any] = vars(_native)
        place = os.environ.get("SIMPLEX_LIBS_DIR")
        loader["_platform_tag"]()
        folder = Path(place) if place else loader["_cache_root"]() / f"v{loader['LIBS_VERSION']}" / "sqlite"
        return folder / str(loader["_libname"]())
    except ImportError:
        raise UserError("The package simplex-chat is missing: pip install 'simplex-chat>=7.0.2,<8'") from None
    except (RuntimeError, KeyError) as error:
        raise UserError(f"There is no libsimplex for this machine ({_reason(error)}): {_OTHER_WAYS}.") from None


def check_library(file: Path) -> None:
    """Whether this file loads; it is not started. UserError when it does not."""
    try:
        ctypes.CDLL(str(file))
    except OSError as error:
        raise UserError(f"libsimplex does not load ({_reason(error)}): {_OTHER_WAYS}.") from None


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
