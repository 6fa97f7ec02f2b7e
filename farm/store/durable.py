"""Files that are there whole or not at all, also after the power went."""

import os
from collections.abc import Callable
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, durably. Raises OSError."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync(path.parent)


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` make a file under another name, then put it in place. Raises OSError."""
    unfinished = path.with_name(f".{path.name}.part")
    try:
        write(unfinished)
        sync(unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file or a folder to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
