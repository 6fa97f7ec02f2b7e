"""The keys of a simulated lab: its client's, its boards', and the file that knows the boards."""

import os
from collections.abc import Sequence
from pathlib import Path

import asyncssh

from farm.errors import ConfigError
from farm.model.board import Board


def load_or_make_key(path: Path) -> asyncssh.SSHKey:
    """The private key in `path`, made there (ed25519, for the owner only) if there is none."""
    if path.exists():
        return asyncssh.read_private_key(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    key = asyncssh.generate_private_key("ssh-ed25519")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(key.export_private_key())
    key.write_public_key(path.with_name(path.name + ".pub"))
    return key


def client_key(file: Path) -> asyncssh.SSHKey:
    """The public half of the key in `file`, which is made when missing. Raises ConfigError."""
    try:
        return load_or_make_key(file).convert_to_public()
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        msg = f"{file}: not a key that a simulated lab can use: {error}"
        raise ConfigError(msg) from error


def write_known_hosts(keys_of: Sequence[tuple[Board, str]]) -> None:
    """Put the boards' host keys where their entries say; other lines there are kept.

    Args:
        keys_of: entries, and the text of their ``.pub`` files.
    """
    by_file: dict[Path, dict[str, str]] = {}
    for entry, host_key in keys_of:
        if entry.known_hosts is not None:
            host = entry.host if entry.port == 22 else f"[{entry.host}]:{entry.port}"  # noqa: PLR2004
            by_file.setdefault(entry.known_hosts, {})[host] = " ".join(host_key.split()[:2])
    for file, keys in by_file.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        kept = [line for line in lines if line.split(" ", 1)[0] not in keys]
        text = "\n".join([*kept, *(f"{host} {key}" for host, key in keys.items())])
        unfinished = file.with_name(file.name + ".new")
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(file)
