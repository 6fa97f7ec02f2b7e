"""The private network of test boards: a switch, the host's place at it, one cable a board.

All of it lies in network namespaces made here, so the addresses (198.18.0.0/16, set aside for
benchmarks by RFC 2544) exist nowhere else and no test runner outside reaches a board.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

NAMESPACES = Path("/run/netns")
HOST_ADDRESS = "198.18.255.254"
_CLONE_NEWNET = 0x40000000


def command(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout_s: float = 30.0,
    allowed: tuple[int, ...] = (0,),
) -> bytes:
    """Run a tool of the machine to its end; its stdout.

    Raises RuntimeError with its stderr when the exit status is not one of those `allowed`.
    """
    done = subprocess.run(
        list(argv), input=stdin, capture_output=True, timeout=timeout_s, check=False
    )
    if done.returncode not in allowed:
        text = done.stderr.decode("utf-8", "replace").strip()
        raise RuntimeError(f"{' '.join(argv)}: exit {done.returncode}: {text}")
    return done.stdout


def address_of(number: int) -> str:
    """The address of board `number` (from 1)."""
    return f"198.18.{number // 250}.{1 + number % 250}"


class BoardNetwork:
    """One switch with the host on it. `prefix` begins the names of all its namespaces."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.host, self.switch = f"{prefix}-host", f"{prefix}-switch"

    def open(self) -> None:
        """Make the switch and the host's end."""
        for name in (self.switch, self.host):
            command(["ip", "netns", "add", name])
            command(["ip", "-n", name, "link", "set", "lo", "up"])
        command(["ip", "-n", self.switch, "link", "add", "br0", "type", "bridge"])
        command(["ip", "-n", self.switch, "link", "set", "br0", "up"])
        self._plug("host", self.host, HOST_ADDRESS)

    def add(self, number: int) -> str:
        """A namespace for board `number`, plugged in; its name."""
        name = f"{self.prefix}-{number}"
        command(["ip", "netns", "add", name])
        command(["ip", "-n", name, "link", "set", "lo", "up"])
        self._plug(str(number), name, address_of(number))
        return name

    def set_link(self, number: int, *, is_up: bool) -> None:
        """Pull or plug the cable at the switch: neither end is told."""
        state = "up" if is_up else "down"
        command(["ip", "-n", self.switch, "link", "set", f"p{number}", state])

    def change_host_address(self, address: str) -> None:
        """As a lease that is not renewed, or a move to another network, does it: links die."""
        command(["ip", "-n", self.host, "addr", "flush", "dev", "eth0"])
        command(["ip", "-n", self.host, "addr", "add", f"{address}/16", "dev", "eth0"])

    def remove(self, number: int) -> None:
        """Unplug board `number` for good."""
        command(["ip", "netns", "delete", f"{self.prefix}-{number}"])

    def close(self) -> None:
        """Remove every namespace whose name begins with the prefix."""
        remove_namespaces(self.prefix)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread is in the host's namespace.

        Only sockets, threads and processes that this thread makes within are there; name
        look-ups run in other threads, so use numeric addresses.
        """
        with _open_namespace(Path("/proc/thread-self/ns/net")) as own:
            with _open_namespace(NAMESPACES / self.host) as host:
                _set_network(host)
            try:
                yield
            finally:
                _set_network(own)

    def _plug(self, port: str, name: str, address: str) -> None:
        cable = ["type", "veth", "peer", "name", "eth0", "netns", name]
        command(["ip", "-n", self.switch, "link", "add", f"p{port}", *cable])
        command(["ip", "-n", self.switch, "link", "set", f"p{port}", "master", "br0", "up"])
        command(["ip", "-n", name, "addr", "add", f"{address}/16", "dev", "eth0"])
        command(["ip", "-n", name, "link", "set", "eth0", "up"])


def remove_namespaces(prefix: str) -> None:
    """Remove the network namespaces whose names begin with ``prefix-``."""
    if NAMESPACES.is_dir():
        for path in NAMESPACES.glob(f"{prefix}-*"):
            command(["ip", "netns", "delete", path.name])


@contextmanager
def _open_namespace(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _set_network(descriptor: int) -> None:
    # os.setns came with Python 3.12
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")
