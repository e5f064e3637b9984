"""Pictures and films: previews within the apps' limits, nothing of a picture's metadata, hostile files bounded
(cases S34, S35)."""

from __future__ import annotations

import base64
import io
import os
import shutil
import struct
import subprocess
import sys
import time
import zlib
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from PIL import Image, ImageCms, PngImagePlugin

from simplexmcp.files import media, worker
from tests.files.movies import movie

SECRET = b"taken at home, 52.5N 13.4E"


@contextmanager
def as_file(tmp_path: Path, data: bytes):
    path = tmp_path / "given"
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def saved(image: Image.Image, kind: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    return Image.effect_noise((width, height), 90).convert(mode)


def shown(uri: str) -> Image.Image:
    head, _, data = uri.partition(",")
    assert head in ("data:image/jpg;base64", "data:image/png;base64")
    return Image.open(io.BytesIO(base64.b64decode(data, validate=True)))


def tagged(kind: str) -> bytes:
    """A picture with all the metadata that its format takes."""
    exif = Image.Exif()
    exif[0x010E] = SECRET.decode()
    exif.get_ifd(0x8825)[1] = "N"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    image = Image.new("RGB", (300, 200), (200, 100, 50))
    if kind == "JPEG":
        return saved(image, kind, exif=exif, comment=SECRET, icc_profile=profile, xmp=SECRET)
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", SECRET.decode())
    info.add_itxt("XML:com.adobe.xmp", SECRET.decode())
    image.putpixel((0, 0), (1, 2, 3))
    return saved(image.convert("RGBA"), kind, exif=exif, icc_profile=profile, pnginfo=info, dpi=(72, 72))


async def test_a_photo_gets_a_preview_that_the_apps_decode(tmp_path: Path):
    with as_file(tmp_path, saved(noise(1500, 1000), "JPEG")) as fd:
        picture = await media.picture(fd)
    assert len(picture.preview) <= media.PREVIEW_CHARS
    assert not picture.alpha
    assert picture.preview.startswith("data:image/jpg;base64,")
    width, height = shown(picture.preview).size
    assert width / height == pytest.approx(1.5, rel=0.05)


async def test_a_picture_with_alpha_stays_a_png(tmp_path: Path):
    image = noise(600, 400, "RGBA")
    image.putalpha(noise(600, 400, "L"))
    with as_file(tmp_path, saved(image, "PNG")) as fd:
        picture = await media.picture(fd)
        sent = Image.open(io.BytesIO(await media.rewritten(fd)))
    assert picture.alpha
    assert picture.preview.startswith("data:image/png;base64,")
    assert len(picture.preview) <= media.PREVIEW_CHARS
    assert shown(picture.preview).mode == sent.mode == "RGBA"


async def test_a_large_picture_is_sent_within_the_limit_of_the_apps(tmp_path: Path):
    with as_file(tmp_path, saved(noise(4500, 1500), "JPEG", quality=95)) as fd:
        data = await media.rewritten(fd)
    image = Image.open(io.BytesIO(data))
    assert len(data) <= media.PICTURE_BYTES
    assert max(image.size) <= worker.LARGEST_SIDE
    assert image.format == "JPEG"


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
async def test_no_side_is_longer_than_the_apps_decode(tmp_path: Path, kind: str):
    with as_file(tmp_path, saved(Image.new("RGB", (9000, 100)), kind)) as fd:
        assert Image.open(io.BytesIO(await media.rewritten(fd))).width <= worker.LARGEST_SIDE


async def test_a_small_picture_keeps_its_size_in_points(tmp_path: Path):
    with as_file(tmp_path, saved(Image.new("RGB", (640, 480), (9, 8, 7)), "PNG")) as fd:
        assert Image.open(io.BytesIO(await media.rewritten(fd))).size == (640, 480)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
async def test_nothing_of_a_pictures_metadata_is_left(tmp_path: Path, kind: str):
    data = tagged(kind)
    assert SECRET in data or b"eXIf" in data
    with as_file(tmp_path, data) as fd:
        sent, preview = await media.rewritten(fd), (await media.picture(fd)).preview
    for left in (sent, base64.b64decode(preview.partition(",")[2])):
        image = Image.open(io.BytesIO(left))
        assert SECRET not in left
        assert not image.getexif()
        assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


async def test_a_photo_that_lies_on_its_side_is_turned_upright(tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = 6
    with as_file(tmp_path, saved(noise(400, 200), "JPEG", exif=exif)) as fd:
        assert Image.open(io.BytesIO(await media.rewritten(fd))).size == (200, 400)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "CMYK", "I;16"])
async def test_a_picture_of_each_mode_is_taken(tmp_path: Path, mode: str):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    image = Image.new("I;16", (50, 40), 0x8000) if mode == "I;16" else Image.new("L", (50, 40), 128).convert(mode)
    with as_file(tmp_path, saved(image, kind)) as fd:
        sent = Image.open(io.BytesIO(await media.rewritten(fd))).convert("L")
    assert sent.size == (50, 40)
    if mode != "1":
        assert sent.getpixel((25, 20)) == pytest.approx(128, abs=3)


def png(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def resized_header(data: bytes, width: int, height: int) -> bytes:
    """A JPEG that says it is larger than it is."""
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


TINY = saved(Image.new("RGB", (20, 20)), "JPEG")
HOSTILE = {
    "png bomb": (png(60_000, 60_000, zlib.compress(bytes(1 << 20))), "pixels"),
    "jpeg bomb": (resized_header(TINY, 60_000, 60_000), "pixels"),
    "long and narrow": (png(1, 20_000, zlib.compress(bytes(80_000))), "narrow"),
    "broad and low": (png(20_000, 1, zlib.compress(bytes(60_001))), "narrow"),
    "no data": (png(500, 500, b""), "damaged"),
    "cut": (saved(noise(300, 300), "PNG")[:20_000], "damaged"),
    "only a beginning": (b"\x89PNG\r\n\x1a\n", "damaged"),
    "gif in disguise": (saved(Image.new("P", (20, 20)), "GIF"), "damaged"),
    "playlist": (b"#EXTM3U\nfile:///etc/passwd\n", "damaged"),
    "postscript": (b"%!PS-Adobe-3.0 EPSF-3.0\n(/etc/passwd) run\n", "damaged"),
    "empty": (b"", "damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_picture_is_refused_with_a_reason(tmp_path: Path, name: str):
    data, why = HOSTILE[name]
    with as_file(tmp_path, data) as fd:
        for job in (media.picture, media.rewritten):
            with pytest.raises(media.Unfit, match=why):
                await job(fd)


async def test_a_picture_file_that_is_too_large_is_not_decoded(tmp_path: Path):
    path = tmp_path / "large.jpg"
    path.write_bytes(TINY)
    os.truncate(path, worker.LARGEST_FILE + 1)
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(media.Unfit, match="100 MB"):
            await media.picture(fd)
    finally:
        os.close(fd)


def limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **limits: float) -> None:
    """A worker with other limits than usual."""
    script = tmp_path / "worker.py"
    changed = "".join(f"worker.{name} = {value!r}\n" for name, value in limits.items())
    script.write_text(
        f"import sys\nfrom simplexmcp.files import worker\n{changed}sys.exit(worker.main(sys.argv[1:]))\n"
    )
    monkeypatch.setattr(media, "_WORKER", str(script))
    monkeypatch.setenv("PYTHONPATH", str(Path(media.__file__).parents[2]))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel does not bound memory elsewhere")
async def test_a_picture_that_takes_too_much_memory_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    limited(monkeypatch, tmp_path, MEMORY=120 << 20)
    data = png(7000, 7000, zlib.compress(bytes(7000 * 21_001)))
    with as_file(tmp_path, data) as fd, pytest.raises(media.Unfit, match="memory"):
        await media.picture(fd)


async def test_a_decoder_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    limited(monkeypatch, tmp_path, SECONDS=0.3)
    with pytest.raises(media.Unfit, match="too long"):
        await media._ask(["run", shutil.which("sleep"), "60"], None)


async def test_a_decoder_that_says_too_much_is_ended():
    begun = time.monotonic()
    with pytest.raises(media.Unfit, match="can't be shown"):
        await media._ask(["run", shutil.which("yes")], None)
    assert time.monotonic() - begun < 10


async def test_a_decoder_writes_no_file(tmp_path: Path):
    target = tmp_path / "written"
    with pytest.raises(media.Unfit):
        await media._ask(["run", shutil.which("sh"), "-c", f"echo x > {target}; echo done"], None)
    assert not target.exists() or target.read_bytes() == b""


async def test_a_decoder_ends_when_the_call_is_cancelled(tmp_path: Path):
    target = tmp_path / "pipe"
    os.mkfifo(target)
    # The pipe has a reader as long as the process lives; it does not go when it is asked to.
    command = ["run", shutil.which("sh"), "-c", f"trap '' TERM; exec sleep 60 < {target}"]
    begun = time.monotonic()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(media._ask, command, None)
        writer = await trio.to_thread.run_sync(os.open, target, os.O_WRONLY)
        nursery.cancel_scope.cancel()
    assert time.monotonic() - begun < 4
    os.set_blocking(writer, False)
    with pytest.raises(BrokenPipeError):
        os.write(writer, b"x")
    os.close(writer)


async def test_only_a_few_decoders_run_at_once():
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(media._ask, ["run", shutil.which("sleep"), "60"], None)
        await trio.testing.wait_all_tasks_blocked()
        found = media._workers().statistics()
        nursery.cancel_scope.cancel()
    assert (found.borrowed_tokens, found.tasks_waiting) == (2, 3)


async def test_a_worker_that_can_not_be_run_is_told_by_a_sentence(monkeypatch: pytest.MonkeyPatch, caplog):
    monkeypatch.setattr(media.sys, "executable", "/nonexistent/python")
    with pytest.raises(media.Unfit, match="can't be shown"):
        await media._ask(["preview", "100"], b"")
    assert "can't be run" in caplog.text


async def test_a_decoder_sees_no_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("API_TOKEN", "secret")
    assert b"secret" not in await media._ask(["run", shutil.which("env")], None)


def answering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: str, frame: bytes) -> None:
    """Programs in the place of ffmpeg and ffprobe, that work only when they are told to be careful."""
    (tmp_path / "frame.jpg").write_bytes(frame)
    careful = 'case "$*" in *"-protocol_whitelist file -f mov "*"-i file:/dev/fd/"*) ;; *) exit 1;; esac\n'
    for name, answer in (("ffprobe", f"echo '{seconds}'"), ("ffmpeg", f"cat '{tmp_path}/frame.jpg'")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{careful}{answer}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


async def test_a_film_is_shown_by_its_first_frame_and_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch, tmp_path, "12.6", saved(noise(640, 360), "JPEG"))
    with as_file(tmp_path, movie()) as fd:
        film = await media.film(fd)
    assert film is not None
    assert film.seconds == 13
    assert shown(film.preview).width > 100
    assert len(film.preview) <= media.PREVIEW_CHARS


@pytest.mark.parametrize("seconds", ["N/A", "nan", "inf", "-1", "0", "1e9", "12\n13", "", "$(id)"])
async def test_a_film_of_no_plain_length_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str):
    answering(monkeypatch, tmp_path, seconds, saved(noise(64, 36), "JPEG"))
    with as_file(tmp_path, movie()) as fd:
        assert await media.film(fd) is None


async def test_why_a_film_has_no_preview_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog):
    answering(monkeypatch, tmp_path, "3", b"no picture")
    with as_file(tmp_path, movie()) as fd:
        assert await media.film(fd) is None
    assert "without a preview" in caplog.text


async def test_without_ffmpeg_a_film_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with as_file(tmp_path, movie()) as fd:
        assert await media.film(fd) is None


@pytest.fixture
def real_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's ffmpeg and ffprobe; where it has none, ffmpeg from PyPI and an ffprobe that asks it."""
    if shutil.which("ffmpeg") and shutil.which("ffprobe"):
        return
    import imageio_ffmpeg

    ffmpeg, folder = imageio_ffmpeg.get_ffmpeg_exe(), tmp_path / "bin"
    folder.mkdir()
    (folder / "ffmpeg").symlink_to(ffmpeg)
    (folder / "ffprobe").write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        f"'{ffmpeg}' -hide_banner -nostdin -protocol_whitelist file -f mov -i \"$last\" 2>&1 |"
        " sed -n 's/.*Duration: \\([0-9:.]*\\),.*/\\1/p' | awk -F: '{print $1 * 3600 + $2 * 60 + $3}'\n"
    )
    (folder / "ffprobe").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.usefixtures("real_ffmpeg")
async def test_ffmpeg_shows_a_film_that_it_made(tmp_path: Path):
    path = tmp_path / "film.mp4"
    made = ["-f", "lavfi", "-i", "testsrc=size=640x360:duration=2", "-pix_fmt", "yuv420p", str(path)]
    subprocess.run(["ffmpeg", "-v", "error", *made], check=True, stdin=subprocess.DEVNULL)
    with as_file(tmp_path, path.read_bytes()) as fd:
        film = await media.film(fd)
    assert film is not None
    assert film.seconds == 2


@pytest.mark.usefixtures("real_ffmpeg")
@pytest.mark.parametrize(
    "text", ["#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n", "ffconcat version 1.0\nfile /etc/hostname\n"]
)
async def test_ffmpeg_takes_no_playlist(tmp_path: Path, text: str):
    with as_file(tmp_path, text.encode()) as fd:
        assert await media.film(fd) is None


def test_the_fixed_preview_is_a_picture():
    assert shown(media.FIXED_PREVIEW).size == (1, 1)
