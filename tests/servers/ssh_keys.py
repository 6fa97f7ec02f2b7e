"""Keys for SSH servers and clients of tests, made once per process."""

from functools import cache
from pathlib import Path

import asyncssh


def make_key(name: str, algorithm: str = "ssh-ed25519") -> asyncssh.SSHKey:
    """The key of that name; the same for the whole process."""
    return _make_key(name, algorithm)


@cache
def _make_key(name: str, algorithm: str) -> asyncssh.SSHKey:
    del name
    return asyncssh.generate_private_key(algorithm)


def write_key(folder: Path, name: str, algorithm: str = "ssh-ed25519") -> Path:
    """That key as a private key file in `folder`."""
    path = folder / name
    if not path.exists():
        make_key(name, algorithm).write_private_key(path)
        path.chmod(0o600)
    return path


def public_line(key: asyncssh.SSHKey) -> str:
    """Algorithm and key, as in authorized_keys and known_hosts."""
    return key.export_public_key().decode().strip()


def write_known_hosts(path: Path, port: int, *keys: asyncssh.SSHKey) -> Path:
    """A known_hosts file for 127.0.0.1."""
    path.write_text("".join(f"[127.0.0.1]:{port} {public_line(key)}\n" for key in keys))
    return path
