"""The file servers of the network: what was uploaded to them, and the real bytes of it in a folder.

Bytes are moved by a chunk of at most 4 MiB at a time, so that a file of any size takes no more memory than that, and no
step of the model takes long. A step that cannot be done now (a server is down, somebody is stalled) is kept until it
can.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.network import Delivery, Network

__all__ = ["DEFAULT_SERVER", "OTHER_SERVER", "FileRelay", "Upload", "copy_range"]

JsonObject = dict[str, Any]

DEFAULT_SERVER = "xftp://c2FuZGJveC1yZWxheS1vZi1hLXRlc3QtbmV0d29yayE=@smp.simplex.test"
"""The file server that every core uses and knows."""
OTHER_SERVER = "xftp://YW5vdGhlci1maWxlLXNlcnZlci1vZi1hLXRlc3QtbmU=@files.elsewhere.test"
"""A file server that a core knows only after `/xftp` with it."""

RETENTION = 48 * 3600.0
"""Seconds after which the servers delete a file."""
BACK_AGAIN = 4.0
"""Seconds after a server's return until waiting transfers go on."""

_BLOCK = 1 << 20


@dataclass(slots=True)
class Upload:
    """A file on the servers: `sizes` of its encrypted chunks, `shared` what all its descriptions have in common,
    `made` in seconds since the epoch."""

    name: str
    servers: list[str]
    sizes: list[int]
    shared: list[str]
    size: int
    made: float

    def span(self, chunk: int) -> tuple[int, int]:
        """Offset and count of the bytes of the file that are in a chunk."""
        offset = min(sum(self.sizes[:chunk]), self.size)
        return offset, min(self.sizes[chunk], self.size - offset)

    def server(self, chunk: int) -> str:
        """Where a chunk lies."""
        return self.servers[chunk % len(self.servers)]


class FileRelay:
    """All file servers together. `folder` is where the bytes are: by default one that ends with the process."""

    def __init__(self, network: Network, folder: Path | None = None) -> None:
        self._network = network
        self._folder = folder
        self.uploads: dict[str, Upload] = {}
        self.held: list[Delivery] = []
        self.down_servers: set[str] = set()
        self.stalled: set[str] = set()

    # Where the bytes are

    def keep_in(self, folder: Path) -> None:
        """Use a folder that stays (it is made when needed), beside the state file of a network."""
        self._folder = folder

    def place(self, name: str) -> Path:
        """A file or folder of the servers' own, such as that of an upload."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="simplexmcp-relay-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder / name

    def add(self, upload: Upload) -> None:
        """Begin an upload; what is too old leaves its place."""
        for name in list(self.uploads):
            self.find(name)
        self.uploads[upload.name] = upload

    def find(self, name: str) -> Upload | None:
        """An upload that is still on its servers."""
        upload = self.uploads.get(name)
        if upload is not None and self._network.clock() - upload.made > RETENTION:
            self.remove(name)
            return None
        return upload

    def remove(self, name: str) -> None:
        """The sender or the server deleted a file."""
        self.uploads.pop(name, None)
        self.place(name).unlink(missing_ok=True)

    def remove_all(self) -> None:
        """The servers lost everything: downloads fail with AUTH."""
        for name in list(self.uploads):
            self.remove(name)

    def store(self, upload: Upload, chunk: int, source: Path) -> None:
        """Take one chunk. OSError: the source is gone, shorter than it was, or the disk is full."""
        offset, count = upload.span(chunk)
        copy_range(source, self.place(upload.name), offset, count)

    def fetch(self, upload: Upload, chunk: int, target: Path) -> None:
        """Give one chunk. OSError: the disk is full, or the folder is gone."""
        offset, count = upload.span(chunk)
        copy_range(self.place(upload.name), target, offset, count)

    # What does not work

    def down(self, server: str = DEFAULT_SERVER) -> None:
        """A server does not answer: transfers wait, without any event."""
        self.down_servers.add(server)

    def up(self, server: str = DEFAULT_SERVER) -> None:
        """It answers again; what waited goes on a few seconds later."""
        self.down_servers.discard(server)
        self._retry(BACK_AGAIN)

    def stall(self, core: str) -> None:
        """The uploads and downloads of a core make no progress."""
        self.stalled.add(core)

    def resume(self, core: str) -> None:
        """They go on."""
        self.stalled.discard(core)
        self._retry(0.0)

    def holds(self, core: SimulatedCore, server: str, delivery: Delivery) -> bool:
        """Whether a step of a transfer cannot be done now; then it is kept."""
        waits = server in self.down_servers or core.name in self.stalled
        if waits:
            self.held.append(delivery)
        return waits

    def _retry(self, after: float) -> None:
        held, self.held = self.held, []
        for one in held:
            self._network.schedule(one.core, one.do, one.data, after=after)

    # The state file

    def to_json(self) -> list[JsonObject]:
        """What survives a restart of the network; the steps that wait are deliveries."""
        return [asdict(upload) for upload in self.uploads.values()]

    def restore(self, rows: list[JsonObject]) -> None:
        """Take over what `to_json` gave."""
        self.uploads = {row["name"]: Upload(**row) for row in rows}


def copy_range(source: Path, target: Path, offset: int, count: int) -> None:
    """Copy `count` bytes to the same offset of the target, which is made when missing. OSError also when the source has
    fewer bytes."""
    with source.open("rb") as read, open(target, "ab") as write:  # noqa: PTH123 - beside its twin above
        read.seek(offset)
        write.truncate(offset)
        while count > 0:
            block = read.read(min(_BLOCK, count))
            if not block:
                raise OSError(5, "the file is shorter than it was", str(source))
            write.write(block)
            count -= len(block)
