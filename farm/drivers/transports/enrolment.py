"""Learning a board's host key for the first time, to be strict about it ever after."""

import asyncio
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from farm.drivers.transports.ssh_context import (
    DEFAULT_KNOWN_HOSTS,
    HOST_KEY_ALGORITHMS,
    describe_key,
)
from farm.drivers.transports.ssh_errors import PEER_FAULTS, Stage, explain_login
from farm.errors import AuthError, HostKeyError
from farm.model.board import Board

FETCH_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class ShownHostKey:
    """What a board shows: `description` to compare by eye, `line` for known_hosts."""

    description: str
    line: str

    @property
    def fingerprint(self) -> str:
        """``SHA256:`` and its digest."""
        return self.description.split()[1]


async def fetch_host_key(board: Board, *, timeout_s: float = FETCH_TIMEOUT_S) -> ShownHostKey:
    """Ask the board for its host key, without a login. Nothing is trusted by that.

    Raises ConnectError, TransportError.
    """
    try:
        async with asyncio.timeout(timeout_s):
            key = await asyncssh.get_server_host_key(
                board.host,
                board.port,
                config=None,
                server_host_key_algs=[*HOST_KEY_ALGORITHMS, *board.host_key_algorithms],
            )
    except PEER_FAULTS as exc:
        raise explain_login(exc, board, Stage.NOTHING) from exc
    if key is None:  # only GSS key exchange has none
        raise HostKeyError("enrol", "the board showed no host key", board=board.name)
    host = board.host if board.port == 22 else f"[{board.host}]:{board.port}"  # noqa: PLR2004
    public = key.export_public_key().decode().split()[:2]
    return ShownHostKey(describe_key(key), " ".join([host, *public]))


def enrol(board: Board, shown: ShownHostKey) -> Path:
    """Add the key to the board's known_hosts file, whole or not at all; the file's path.

    Raises HostKeyError when the file cannot be written.
    """
    path = (board.known_hosts or Path(DEFAULT_KNOWN_HOSTS)).expanduser()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        if shown.line in text.splitlines():
            return path
        if text and not text.endswith("\n"):
            text += "\n"
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as to:
            to.write(f"{text}{shown.line}\n")
            to.flush()
            os.fsync(to.fileno())
        temporary.replace(path)
    except OSError as exc:
        with suppress(OSError):
            temporary.unlink()
        raise HostKeyError("enrol", f"{path}: {exc}", board=board.name) from exc
    return path


def login_key(path: Path, board: str) -> tuple[str, bool]:
    """The public half of a private key, which is made if there is none; whether it was made.

    Raises AuthError for a key that cannot be used or kept.
    """
    try:
        if path.exists():
            return _public_line(asyncssh.read_private_key(path)), False
        key = asyncssh.generate_private_key("ssh-ed25519", comment=f"farm@{socket.gethostname()}")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as to:
            to.write(key.export_private_key("openssh"))
            to.flush()
            os.fsync(to.fileno())
    except (OSError, ValueError) as exc:  # asyncssh's own are ValueErrors
        seen = f"the login key {path}: {getattr(exc, 'strerror', None) or exc}"
        remedy = "Name one without a passphrase: --key FILE"
        raise AuthError("enroll", seen, board=board, remedy=remedy) from exc
    return _public_line(key), True


def _public_line(key: asyncssh.SSHKey) -> str:
    return key.export_public_key("openssh").decode().strip()
