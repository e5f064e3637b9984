"""Previews of pictures and films, and pictures written again without metadata, by the rules of the apps.

Decoding is done by `worker` in processes of their own; ffmpeg and ffprobe are used when they are installed, read local
files only, and only as MP4 or QuickTime.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast, final

import trio

from simplexmcp.files import worker
from simplexmcp.terminal import printable

__all__ = [
    "FIXED_PREVIEW",
    "PICTURE_BYTES",
    "PREVIEW_CHARS",
    "Film",
    "Picture",
    "Unfit",
    "film",
    "picture",
    "rewritten",
]

_log = logging.getLogger(__name__)

PREVIEW_CHARS = 14_000
"""Characters of the longest preview that is shown, as a whole data URI."""

PICTURE_BYTES = 261_120
"""Bytes of the largest picture that is sent as a picture."""

FIXED_PREVIEW = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mN89OjRfwAJJAPLrzHQnwAAAABJRU5ErkJggg=="
)
"""One grey point: the preview of a GIF or WebP, which is sent as it is."""

_LONGEST_FILM = 10_000_000  # seconds; what says more is damaged
_ANSWER = 1 << 20  # bytes that a worker may say
_INPUT = ("-protocol_whitelist", "file", "-f", "mov")  # as nothing else: a playlist would name other files
_AT_ONCE = 2
_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("simplexmcp picture workers")
_UNFIT = 3  # exit code of the worker that says why
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_WORKER = str(Path(worker.__file__))


@final
class Unfit(Exception):  # noqa: N818 - a picture's fault
    """Why a picture or film can't be shown, as the end of a sentence about it."""


@dataclass(frozen=True)
class Picture:
    """A preview as a data URI, and whether the picture has alpha (then it is sent as PNG, else as JPEG)."""

    preview: str
    alpha: bool


@dataclass(frozen=True)
class Film:
    """A preview as a data URI, and the duration in whole seconds, at least 1."""

    preview: str
    seconds: int


async def picture(fd: int) -> Picture:
    """The preview of the JPEG or PNG that is open as `fd`. Raises Unfit."""
    return _picture(await _ask(["preview", str(PREVIEW_CHARS)], fd))


async def rewritten(fd: int) -> bytes:
    """The JPEG or PNG that is open as `fd`, without metadata, in at most `PICTURE_BYTES`. Raises Unfit."""
    return await _ask(["encode", str(PICTURE_BYTES)], fd)


async def film(fd: int) -> Film | None:
    """First frame and duration of the MP4 or QuickTime file that is open as `fd`. None without ffmpeg and ffprobe, or
    when they can't read it; then why is logged."""
    ffmpeg, ffprobe = shutil.which("ffmpeg"), shutil.which("ffprobe")
    if ffmpeg is None or ffprobe is None:
        return None
    source = f"file:/dev/fd/{fd}"
    frame = ["-nostdin", "-v", "error", "-threads", "1", *_INPUT, "-i", source, "-map", "0:v:0", "-an", "-sn", "-dn"]
    frame += ["-frames:v", "1", "-vf", "scale=w='min(1280,iw)':h=-2", "-c:v", "mjpeg", "-f", "mjpeg", "pipe:1"]
    length = ["-v", "error", *_INPUT, "-show_entries", "format=duration", "-of", "default=nw=1:nk=1", "-i", source]
    try:
        seconds = float(await _ask(["run", ffprobe, *length], None, keep=fd))
        first = await _ask(["run", ffmpeg, *frame], None, keep=fd)
        shown = _picture(await _ask(["preview", str(PREVIEW_CHARS)], first))
    except (Unfit, ValueError) as error:
        _log.warning("A video is sent without a preview, as a file: %s.", printable(str(error)))
        return None
    return Film(shown.preview, max(1, round(seconds))) if 0 < seconds < _LONGEST_FILM else None


def _picture(answer: bytes) -> Picture:
    try:
        given: Any = json.loads(answer)
        preview, alpha = given["image"], given["alpha"]
    except (ValueError, KeyError, TypeError):
        raise Unfit("can't be shown") from None
    if not isinstance(preview, str) or not preview.startswith("data:image/") or len(preview) > PREVIEW_CHARS:
        raise Unfit("can't be shown")
    return Picture(preview, alpha is True)


async def _ask(arguments: list[str], given: int | bytes | None, keep: int | None = None) -> bytes:
    """What the worker answers. It is ended by its own limits of time and memory, and when this is cancelled.

    `given` is its stdin: a file that is open, or bytes; `keep` is a file that it inherits. Raises Unfit.
    """
    command = [sys.executable, "-P", _WORKER, *arguments]
    start = partial(
        trio.run_process,
        command,
        stdin=subprocess.DEVNULL if given is None else given,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
        pass_fds=() if keep is None else (keep,),
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        deliver_cancel=_kill,
    )
    answer = bytearray()
    process: trio.Process | None = None
    try:
        async with _workers(), trio.open_nursery() as nursery:
            process = cast("trio.Process", await nursery.start(start))
            assert process.stdout is not None
            async with process.stdout:  # nobody else closes it
                async for part in process.stdout:
                    answer += part
                    if len(answer) > _ANSWER:
                        nursery.cancel_scope.cancel()
    except* OSError as error:
        _log.warning("The worker for pictures can't be run: %s.", printable(str(error.exceptions[0])))
    code = process.returncode if process is not None else None
    if code == 0 and 0 < len(answer) <= _ANSWER:
        return bytes(answer)
    if code == _UNFIT and arguments[0] != "run":
        raise Unfit(answer.decode(errors="replace")[:200])
    if code is not None and code < 0 and len(answer) <= _ANSWER:
        raise Unfit("takes too long or too much memory to be shown")
    raise Unfit("can't be shown")


def _workers() -> trio.CapacityLimiter:
    """How many workers may run at once: each may take much memory."""
    try:
        return _limiter.get()
    except LookupError:
        _limiter.set(limiter := trio.CapacityLimiter(_AT_ONCE))
        return limiter


async def _kill(process: trio.Process) -> None:
    process.kill()
