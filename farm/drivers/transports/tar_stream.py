"""Local files as one tar stream with their hashes, made while it is sent."""

import hashlib
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

PIECE = 256 * 1024
"""Bytes of one write; larger ones bring nothing (measured)."""


def tar_stream(files: Mapping[str, Path | bytes]) -> Iterator[bytes]:
    """A tar of the files in pieces of PIECE bytes or more, as PUT_TAR expects it."""
    folders: dict[str, int] = {}
    sums: list[str] = []
    buffer = bytearray()
    for name, source in files.items():
        folder, _, base = name.rpartition("/")
        number = folders.setdefault(folder or ".", len(folders))
        member = f"{number}/{base}"
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        mode = 0o755 if is_executable(source) else 0o644
        digest = hashlib.sha256()
        buffer += _header(member, size, mode)
        for piece in pieces_of(source, exactly=size):
            digest.update(piece)
            buffer += piece
            if len(buffer) >= PIECE:
                yield bytes(buffer)
                buffer.clear()
        buffer += b"\0" * (-size % tarfile.BLOCKSIZE)
        sums.append(f"{digest.hexdigest()}  {member}\n")
    for name, lines in (("folders", (f"{key}\n" for key in folders)), ("sums", sums)):
        text = "".join(lines).encode("utf-8", "surrogateescape")
        buffer += _header(name, len(text), 0o600) + text + b"\0" * (-len(text) % 512)
    buffer += b"\0" * tarfile.RECORDSIZE
    yield bytes(buffer)


def _header(name: str, size: int, mode: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, mode
    return member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def pieces_of(source: Path | bytes, exactly: int | None = None) -> Iterator[bytes]:
    """The source in pieces. Raises OSError if it has not `exactly` that many bytes."""
    if isinstance(source, bytes):
        for at in range(0, len(source), PIECE):
            yield source[at : at + PIECE]
        return
    left = exactly
    with source.open("rb") as file:
        while piece := file.read(PIECE if left is None else min(PIECE, left)):
            left = None if left is None else left - len(piece)
            yield piece
    if left:
        raise OSError(f"{source} became shorter while it was read")


def digest_of(source: Path | bytes) -> str:
    """SHA-256 in hex. Raises OSError."""
    digest = hashlib.sha256()
    for piece in pieces_of(source):
        digest.update(piece)
    return digest.hexdigest()


def is_executable(source: Path | bytes) -> bool:
    """A local file that somebody may execute. Raises OSError."""
    return isinstance(source, Path) and bool(source.stat().st_mode & 0o111)
