"""What all SSH connections of one process share: keys, known hosts, and the pace of connecting.

Reading known_hosts for every connection costs 2 to 11 ms of CPU each time (measured with 150
and 600 lines), four times the handshake itself; so files are parsed once, and again only when
they change.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from farm.drivers.transports.ssh_errors import changed_host_key, revoked_host_key, unknown_host_key
from farm.errors import AuthError, HostKeyError
from farm.model.board import Board, ConnectionLimits

DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
"""Tried for boards without identity_file, as OpenSSH does. Encrypted ones are passed over."""

DEFAULT_KNOWN_HOSTS = "~/.ssh/known_hosts"

HOST_KEY_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
"""In order of cost. ssh-rsa (SHA-1) is left out, as in OpenSSH since 8.8; a board may add it."""

_Stamp = tuple[int, int]  # mtime in ns, size


@dataclass(frozen=True, slots=True)
class TrustedKeys:
    """The known_hosts lines that fit one board."""

    file: str
    keys: tuple[asyncssh.SSHKey, ...]
    authorities: tuple[asyncssh.SSHKey, ...]
    revoked: tuple[asyncssh.SSHKey, ...]

    def algorithms(self, board: Board) -> list[str]:
        """Host key algorithms to propose: those of the enrolled keys first."""
        allowed = (*HOST_KEY_ALGORITHMS, *board.host_key_algorithms)
        enrolled = [name.decode() for key in self.keys for name in key.sig_algorithms]
        certificates = [f"{name}-cert-v01@openssh.com" for name in HOST_KEY_ALGORITHMS]
        first = certificates if self.authorities else []
        known = [name for name in enrolled if name in allowed]
        return list(dict.fromkeys([*first, *known, *allowed]))

    def judge(self, board: Board, shown: asyncssh.SSHKey) -> HostKeyError:
        """Why `shown`, which is not among `keys`, was not accepted."""
        seen = describe_key(shown)
        if shown in self.revoked:
            return revoked_host_key(board, seen, self.file)
        if self.keys or self.authorities:
            enrolled = [describe_key(key) for key in self.keys or self.authorities]
            return changed_host_key(board, seen, enrolled, self.file)
        return unknown_host_key(board, seen, self.file)


def describe_key(key: asyncssh.SSHKey) -> str:
    """A public key's algorithm and SHA-256 fingerprint, as ``ssh-keygen -l`` writes it."""
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


class StartRate:
    """A token bucket: `per_s` starts a second on the average, `burst` of them at once."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._interval_s, self._burst = 1 / per_s, burst
        self._full_s = float("-inf")  # when the bucket will be full again

    def delay_s(self, now_s: float) -> float:
        """Seconds to wait before the next start, which this call takes."""
        self._full_s = max(self._full_s, now_s) + self._interval_s
        return max(0.0, self._full_s - self._burst * self._interval_s - now_s)


class SshContext:
    """One per process and event loop.

    Args:
        limits: bounds on what the host does at once.
        clock: monotonic seconds.

    Attributes:
        options: asyncssh's, by all that they were made of: for each connection a copy will do.
    """

    def __init__(
        self, limits: ConnectionLimits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._turns = asyncio.Semaphore(limits.connecting)
        self._rate = StartRate(limits.starts_per_s, limits.connecting)
        self.options: dict[object, asyncssh.SSHClientConnectionOptions] = {}
        self._keys: dict[Path, tuple[_Stamp, asyncssh.SSHKey]] = {}
        self._hosts: dict[Path, tuple[_Stamp, asyncssh.SSHKnownHosts]] = {}
        self._trusted: dict[tuple[Path, str, int], tuple[_Stamp, TrustedKeys]] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until one more connection may be opened, and hold its place."""
        async with self._turns:
            delay_s = self._rate.delay_s(self._clock())
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            yield

    def login_keys(self, board: Board) -> tuple[asyncssh.SSHKey, ...]:
        """The private keys to log in with.

        Raises AuthError when the board's identity_file cannot be used, or when it names none
        and none of the usual files can.
        """
        if board.identity_file is not None:
            try:
                return (self._read_key(board.identity_file.expanduser()),)
            except (OSError, ValueError) as exc:
                raise _unusable_key(board, board.identity_file, exc) from exc
        found = []
        for name in DEFAULT_KEYS:
            try:
                found.append(self._read_key(Path(name).expanduser()))
            except (OSError, ValueError):
                continue  # absent or encrypted: the next one may do
        if not found:
            raise AuthError(
                "connect",
                f"there is no private key to log in with: none of {', '.join(DEFAULT_KEYS)} "
                "can be used",
                board=board.name,
                remedy="Name one in the inventory: identity_file: ~/.ssh/farm_ed25519 "
                "(made by `ssh-keygen -t ed25519 -N '' -f ~/.ssh/farm_ed25519`)",
            )
        return tuple(found)

    def _read_key(self, path: Path) -> asyncssh.SSHKey:
        stamp = _stamp(path)
        cached = self._keys.get(path)
        if cached is None or cached[0] != stamp:
            cached = stamp, asyncssh.read_private_key(path)
            self._keys[path] = cached
        return cached[1]

    def trusted_keys(self, board: Board) -> TrustedKeys:
        """The known_hosts lines of the board; none if there is no such file.

        Raises HostKeyError for a file that does not parse.
        """
        path = (board.known_hosts or Path(DEFAULT_KNOWN_HOSTS)).expanduser()
        try:
            stamp = _stamp(path)
        except OSError:
            return TrustedKeys(str(path), (), (), ())
        key = path, board.host, board.port
        cached = self._trusted.get(key)
        if cached is None or cached[0] != stamp:
            cached = stamp, self._match(board, path, stamp)
            self._trusted[key] = cached
        return cached[1]

    def _match(self, board: Board, path: Path, stamp: _Stamp) -> TrustedKeys:
        hosts = self._hosts.get(path)
        if hosts is None or hosts[0] != stamp:
            try:
                hosts = stamp, asyncssh.read_known_hosts(str(path))
            except (OSError, ValueError) as exc:
                raise HostKeyError(
                    "connect",
                    f"{path} cannot be used: {exc}",
                    board=board.name,
                    remedy="Correct or remove that line",
                ) from exc
            self._hosts[path] = hosts
        port = None if board.port == 22 else board.port  # noqa: PLR2004 - SSH, RFC 4253
        keys, authorities, revoked, *_ = hosts[1].match(board.host, "", port)
        return TrustedKeys(
            str(path),
            tuple(key for key in keys if key not in revoked),
            tuple(authorities),
            tuple(revoked),
        )


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _unusable_key(board: Board, path: Path, exc: OSError | ValueError) -> AuthError:
    if isinstance(exc, FileNotFoundError):
        seen = f"the private key {path} does not exist"
        remedy = "Correct identity_file in the inventory, or make the key with ssh-keygen"
    elif isinstance(exc, asyncssh.KeyEncryptionError) or "assphrase" in str(exc):
        seen = f"the private key {path} is encrypted"
        remedy = "Boards run unattended: name a key without a passphrase that only serves them"
    else:
        seen = f"the private key {path} cannot be read: {getattr(exc, 'strerror', None) or exc}"
        remedy = "identity_file must be a private key that this user can read"
    return AuthError("connect", seen, board=board.name, remedy=remedy)
