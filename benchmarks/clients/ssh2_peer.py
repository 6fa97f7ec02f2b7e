"""libssh2 (ssh2-python) in a pool of threads, in its quickest form; host keys are verified."""

import base64
import socket
from concurrent.futures import ThreadPoolExecutor

from ssh2.session import Session

from benchmarks.lab import Fleet
from benchmarks.turns import Client

THREADS = 32


def run_true(fleet: Fleet, host: str, host_key: bytes) -> None:
    """`true` over a fresh connection, its output read to the end, its exit status checked."""
    with socket.create_connection((host, fleet.port), 120) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = Session()
        session.handshake(sock)
        if session.hostkey()[0] != host_key:
            raise RuntimeError("not the host key that is trusted")
        key = str(fleet.client_key)
        session.userauth_publickey_fromfile(fleet.user, key, publickey=f"{key}.pub")
        channel = session.open_session()
        channel.execute("true")
        for read in (channel.read, channel.read_stderr):
            while read()[0] > 0:
                pass
        channel.close()
        channel.wait_closed()
        if channel.get_exit_status() != 0:
            raise RuntimeError("a board failed")
        session.disconnect()


class Pool(Client):
    """`true` over a fresh connection to each board, 32 threads."""

    def setup(self) -> None:
        self.host_key = base64.b64decode(self.fleet.host_key.split()[1])
        self.pool = ThreadPoolExecutor(min(THREADS, len(self.fleet.hosts)))

    def run(self) -> None:
        list(
            self.pool.map(lambda host: run_true(self.fleet, host, self.host_key), self.fleet.hosts)
        )

    def close(self) -> None:
        self.pool.shutdown()
