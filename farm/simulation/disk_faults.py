"""What goes wrong with a simulated board's disk: no room left, and writes that were lost."""

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from farm.errors import FarmError

DISK = "home"
"""The folder of the board's root that can be full: the user's, in which farm's folder lies."""

_FREE_BYTES = 16 * 1024
"""What a full disk still has: too little for a payload, and less than farm calls full."""

_MOUNT_LIMIT_S = 20
_KEPT = frozenset({"farm-sim-boots"})  # of the simulation, not of the board
_LOSING = ("home", "root", "var")


class FullDisk:
    """The home of one board under an overlay whose upper layer has no room.

    What is there stays readable and nothing can be added, with the kernel's own ENOSPC. What
    already runs keeps its open files, which lie beneath. Needs root, for the two mounts.

    Args:
        root: the board's root folder.
    """

    def __init__(self, root: Path) -> None:
        self._home = root / DISK
        self._layer = root.with_name(root.name + ".full")

    def fill(self) -> None:
        """Begin. Raises FarmError where this machine does not let us mount."""
        if os.geteuid() != 0:
            msg = "a full disk is a small file system of its own, and only root can mount one"
            raise FarmError(msg)
        self.empty()
        self._layer.mkdir(exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "farm-full", str(self._layer))
        try:
            for name in ("upper", "work"):
                (self._layer / name).mkdir()
            layers = f"upperdir={self._layer}/upper,workdir={self._layer}/work"
            options = f"lowerdir={self._home},{layers}"
            _run("mount", "-t", "overlay", "-o", options, "farm-full", str(self._home))
            self._use_up()
        except BaseException:
            self.empty()
            raise

    def empty(self) -> None:
        """End: what was written meanwhile stays. Does nothing to a disk that is not full."""
        if os.path.ismount(self._home):
            _run("umount", "--lazy", str(self._home))
        if os.path.ismount(self._layer):
            with contextlib.suppress(OSError):
                _merge(self._layer / "upper", self._home)
            _run("umount", "--lazy", str(self._layer))
        if self._layer.is_dir():
            self._layer.rmdir()

    def _use_up(self) -> None:
        """Take all room but a little: a disk is seldom full to the last byte."""
        disk = os.statvfs(self._layer)
        size = disk.f_bavail * disk.f_frsize - _FREE_BYTES
        with (self._layer / "filler").open("wb") as filler:
            filler.write(b"\0" * max(size, 0))


def _merge(upper: Path, lower: Path) -> None:
    """Bring an overlay's changes to what lay beneath it."""
    for entry in sorted(upper.iterdir()):
        target, mode = lower / entry.name, entry.lstat().st_mode
        if stat.S_ISCHR(mode):  # a whiteout: removed meanwhile
            _remove(target)
        elif stat.S_ISDIR(mode):
            target.mkdir(exist_ok=True)
            _merge(entry, target)
        else:
            _remove(target)
            shutil.copy2(entry, target, follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _run(*words: str) -> None:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_MOUNT_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{words[0]}: {error}"
        raise FarmError(msg) from error
    if done.returncode:
        msg = f"{words[0]} is refused on this machine: {done.stderr.strip()}"
        raise FarmError(msg)


def lose_writes(root: Path, lost_s: float, source: Random) -> list[str]:
    """Spoil the files that were written in the last seconds before the power went.

    As on a card that acknowledges what it has not written: a young file is empty, cut short,
    or gone, by chance. Its board must be off.

    Args:
        root: the board's root folder.
        lost_s: how young; seconds.
        source: the chance.

    Returns:
        The board's paths of what was spoilt.
    """
    young_since_s = datetime.now(UTC).timestamp() - lost_s  # as files count
    spoilt = []
    for path in sorted(_files(root)):
        with contextlib.suppress(OSError):
            found = path.lstat()
            if found.st_mtime < young_since_s or path.name in _KEPT:
                continue
            how = source.choice(("empty", "cut", "gone"))
            if how == "gone":
                path.unlink()
            else:
                os.truncate(path, 0 if how == "empty" else found.st_size // 2)
            spoilt.append("/" + str(path.relative_to(root)))
    return spoilt


def _files(root: Path) -> Iterator[Path]:
    for top in _LOSING:
        for folder, _, names in os.walk(root / top):
            for name in names:
                path = Path(folder) / name
                if path.is_file() and not path.is_symlink():
                    yield path
