"""What is pushed: one file of 50 MB, or 500 of 20 kB; about half of it can be compressed."""

import os
import random
import shutil
from pathlib import Path

from benchmarks.lab import Fleet

_TEXT = b"".join(b"line %d of the log says %d\n" % (n, n * 7919 % 1000) for n in range(40_000))


def source_folder(fleet: Fleet, shape: str) -> Path:
    """The files to push, made once for all clients. `shape`: "big" or "small"."""
    folder = fleet.folder / f"source-{shape}"
    if folder.is_dir():
        return folder
    chance = random.Random(1)
    made = fleet.folder / f"source-{shape}-{os.getpid()}"
    made.mkdir()
    if shape == "big":
        with (made / "big.bin").open("wb") as file:
            for _ in range(50):
                file.write(_half(chance, 1 << 20))
    else:
        for number in range(500):
            path = made / f"d{number % 20:02d}" / f"f{number:03d}.bin"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(_half(chance, 20 * 1024))
    made.rename(folder)
    return folder


def files_of(folder: Path) -> dict[str, Path]:
    """Relative path -> file."""
    return {
        str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()
    }


class Targets:
    """A folder on each board for one client, emptied after each check."""

    def __init__(self, fleet: Fleet, shape: str) -> None:
        self.source = source_folder(fleet, shape)
        self.size = size_of(self.source)
        self.folders = {
            host: fleet.folder / f"target-{os.getpid()}-{host}" for host in fleet.hosts
        }
        self._empty()

    def check(self) -> None:
        """Raise unless every board got everything."""
        for folder in self.folders.values():
            if size_of(folder) != self.size:
                raise RuntimeError(f"{folder} has {size_of(folder)} bytes of {self.size}")
        self._empty()

    def remove(self) -> None:
        """Remove the folders."""
        for folder in self.folders.values():
            shutil.rmtree(folder, ignore_errors=True)

    def _empty(self) -> None:
        self.remove()
        for folder in self.folders.values():
            folder.mkdir()


def _half(chance: random.Random, size: int) -> bytes:
    return chance.randbytes(size // 2) + _TEXT[: size - size // 2]


def size_of(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
