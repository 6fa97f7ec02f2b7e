"""Which files of a payload's folder belong to it, and their hashes.

Payload folders come from anywhere: nothing outside the folder is ever read, and nothing that
is not a plain file is opened.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from farm.model.payload import PayloadFile

MAX_FILES = 20_000

SKIPPED_FOLDERS = frozenset({"__pycache__", ".git"})
_SKIPPED_SUFFIX = ".pyc"

_HASH_CHUNK = 1024 * 1024


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a glob of a manifest, or None."""
    if not pattern or pattern.startswith(("/", "~")):
        return "should be a path inside the payload's folder"
    if "\\" in pattern or "\0" in pattern:
        return 'should be written with "/"'
    if any(part in ("..", ".", "") for part in pattern.split("/")):
        return 'should be without "..", "." and "//"'
    return None


def matches(path: str, pattern: str) -> bool:
    """Whether a relative path matches a glob: ``**`` any folders, ``*`` and ``?`` in a name."""
    return re.fullmatch(_pattern_text(pattern), path, re.DOTALL) is not None


def find_files(
    folder: Path, patterns: Sequence[str], always: str
) -> tuple[list[PayloadFile], list[str]]:
    """The files that any of the patterns matches, by path, hashed.

    Args:
        folder: the payload's folder.
        patterns: globs without fault.
        always: a file that belongs to every payload (its manifest).

    Returns:
        The files, and what is wrong with others that the patterns match: links that lead
        outside, links to folders, pipes and devices, names with control characters.
    """
    compiled = [re.compile(_pattern_text(pattern), re.DOTALL) for pattern in patterns]
    root = folder.resolve()
    files: list[PayloadFile] = []
    faults: list[str] = []
    for path, entry in _walk(folder, ""):
        if path != always and not any(pattern.fullmatch(path) for pattern in compiled):
            continue
        fault = _entry_fault(path, entry, root)
        if fault is None and len(files) == MAX_FILES:
            fault = f"more than {MAX_FILES} files"
        if fault is not None:
            faults.append(fault)
            if len(files) == MAX_FILES:
                break
            continue
        files.append(_hashed(path, Path(entry.path)))
    return sorted(files, key=lambda file: file.path), faults


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Everything below a folder that is no folder itself, in a fixed order."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name in SKIPPED_FOLDERS or entry.name.endswith(_SKIPPED_SUFFIX):
            continue
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{path}/")
        else:
            yield path, entry


def _entry_fault(path: str, entry: "os.DirEntry[str]", root: Path) -> str | None:
    shown = path.encode("utf-8", "backslashreplace").decode()
    if not path.isprintable() or "\\" in path:
        return f"{shown!r}: a name with characters that boards may not take"
    try:
        if entry.is_symlink():
            target = Path(entry.path).resolve(strict=True)
            if not target.is_relative_to(root):
                return f"{shown}: a link that leads out of the payload's folder"
        mode = entry.stat().st_mode
    except (OSError, RuntimeError):
        return f"{shown}: a link that leads nowhere"
    if stat.S_ISDIR(mode):
        return f"{shown}: a link to a folder; put the files themselves there"
    return None if stat.S_ISREG(mode) else f"{shown}: not a plain file"


def _hashed(path: str, source: Path) -> PayloadFile:
    digest = hashlib.sha256()
    size = 0
    with source.open("rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        while chunk := stream.read(_HASH_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return PayloadFile(
        path=path, sha256=digest.hexdigest(), size=size, is_executable=bool(mode & stat.S_IXUSR)
    )


def _pattern_text(pattern: str) -> str:
    """A glob as a regular expression."""
    parts: list[str] = []
    names = pattern.split("/")
    for index, name in enumerate(names):
        is_last = index == len(names) - 1
        if name == "**":
            parts.append(".*" if is_last else "(?:[^/]+/)*")
        else:
            parts.append(_name_text(name) + ("" if is_last else "/"))
    return "".join(parts)


def _name_text(name: str) -> str:
    special = {"*": "[^/]*", "?": "[^/]"}
    return "".join(special.get(letter) or re.escape(letter) for letter in name)
