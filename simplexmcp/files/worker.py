"""Pictures and films are decoded here: a process of its own for each, with limits of time and memory.

What decodes them is large and was written for speed; a file that breaks it breaks this process only, and one that is
made to take for ever or to fill the memory ends it. Run by `media` as a script; it knows nothing of the program.

    worker.py preview LIMIT      reads a picture from stdin; writes {"alpha", "image": data URI within LIMIT characters}
    worker.py encode LIMIT       reads a picture from stdin; writes it again, without metadata, within LIMIT bytes
    worker.py run PROGRAM …      becomes PROGRAM, which keeps the limits

The exit code is 0, or 3 with one line on stdout that says why not.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

SECONDS = 30.0  # of the clock and of the processor
MEMORY = 1 << 30
LARGEST_FILE = 100 << 20
LARGEST_PICTURE = 64_000_000  # pixels; 256 MB with alpha
LARGEST_SIDE = 4320  # pixels that the apps still decode
THINNEST = 256  # height by width
QUALITY = 85


class Unfit(Exception):  # noqa: N818 - it says what is wrong with the picture
    """Why the picture is not taken, as the end of a sentence about it."""


def limit() -> None:
    """Bounds this process and what it becomes: the kernel ends it when a limit is passed."""
    for number in (signal.SIGALRM, signal.SIGXFSZ, signal.SIGPIPE):  # Python ignores two of them, and so would PROGRAM
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    for what, most in (
        (resource.RLIMIT_CPU, math.ceil(SECONDS)),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        with suppress(OSError, ValueError):  # macOS knows the limit of memory, but does not set it
            resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def opened(data: BinaryIO) -> Picture:
    """The picture, upright, RGB or RGBA, with a side of at most `LARGEST_SIDE`. Raises Unfit."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None  # the limits are ours, and no warning
    image: Picture = Image.open(data, formats=("JPEG", "PNG"))
    width, height = image.size
    if width * height > LARGEST_PICTURE:
        raise Unfit(f"has {width} × {height} pixels, more than {LARGEST_PICTURE // 1_000_000} million")
    if height > THINNEST * width or width > THINNEST * height:
        raise Unfit("is too long and narrow for a picture")
    image.draft("RGB", (LARGEST_SIDE, LARGEST_SIDE))  # a large JPEG is decoded at a fraction
    image.load()
    if image.mode in ("I;16", "I;16B", "I;16L", "I"):
        image = image.point(lambda value: value / 256).convert("L")
    if "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        if image.getchannel("A").getextrema() == (255, 255):
            image = image.convert("RGB")
    else:
        image = image.convert("RGB")
    image.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
    image = ImageOps.exif_transpose(image)
    clean = Image.new(image.mode, image.size)  # takes the pixels only: no comment, profile, place or thumbnail
    clean.paste(image)
    return clean


def encoded(image: Picture) -> bytes:
    """The picture as a PNG when it has alpha, else as a JPEG."""
    out = io.BytesIO()
    if image.mode == "RGBA":
        image.save(out, "PNG", optimize=True)
    else:
        image.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def within(image: Picture, most: int) -> bytes:
    """The picture encoded in at most `most` bytes: made smaller until it fits."""
    from PIL.Image import Resampling

    while len(data := encoded(image)) > most:
        shrink = min(math.sqrt(len(data) / most), 2.0)
        size = (max(1, int(image.width / shrink)), max(1, int(image.height / shrink)))
        if size == image.size:
            raise Unfit("can't be made small enough")
        image = image.resize(size, Resampling.BILINEAR)
    return data


def preview(image: Picture, most: int) -> str:
    """A data URI with at most `most` characters; the apps know `image/jpg` and `image/png` only."""
    prefix = f"data:image/{'png' if image.mode == 'RGBA' else 'jpg'};base64,"
    image.thumbnail((1024, 1024))
    return prefix + base64.b64encode(within(image, (most - len(prefix)) // 4 * 3)).decode()


def source() -> BinaryIO:
    """What is on stdin, as something that can be read at any place."""
    if sys.stdin.buffer.seekable():
        if os.fstat(0).st_size > LARGEST_FILE:
            raise Unfit(f"has over {LARGEST_FILE >> 20} MB")
        os.lseek(0, 0, os.SEEK_SET)
        return sys.stdin.buffer
    return io.BytesIO(sys.stdin.buffer.read(LARGEST_FILE))


def work(what: str, most: int) -> bytes:
    """The answer for `preview` or `encode`. Raises Unfit, and whatever a damaged picture makes a decoder raise."""
    image = opened(source())
    if what == "preview":
        return json.dumps({"alpha": image.mode == "RGBA", "image": preview(image, most)}).encode()
    return within(image, most)


def main(arguments: list[str]) -> int:
    """One job. Exit codes as above."""
    limit()
    if arguments[0] == "run":
        os.execv(arguments[1], arguments[1:])  # noqa: S606 - the caller has found the program
    try:
        answer = work(arguments[0], int(arguments[1]))
        code = 0
    except Unfit as error:
        answer, code = str(error).encode(), 3
    except MemoryError:
        answer, code = b"needs too much memory to be shown", 3
    except Exception:  # noqa: BLE001 - decoders raise anything; the picture is what is wrong
        answer, code = b"is damaged, or no picture that can be shown", 3
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
