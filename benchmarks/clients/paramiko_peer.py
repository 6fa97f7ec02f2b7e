"""paramiko in threads, in its quickest form: key and host key parsed once."""

import base64
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import paramiko

from benchmarks.cpu import own_cpu_s, own_rss_mb
from benchmarks.lab import Fleet
from benchmarks.turns import Client


class Dialer:
    """Opens verified connections."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.key = paramiko.Ed25519Key.from_private_key_file(str(fleet.client_key))
        data = base64.b64decode(fleet.host_key.split()[1])
        self.host_key = paramiko.Ed25519Key(data=data)

    def open(self, host: str) -> paramiko.Transport:
        transport = paramiko.Transport(socket.create_connection((host, self.fleet.port), 120))
        transport.banner_timeout = transport.auth_timeout = 120
        transport.connect(self.host_key, self.fleet.user, pkey=self.key)
        return transport

    def run_true(self, transport: paramiko.Transport) -> None:
        channel = transport.open_session()
        channel.exec_command("true")
        if channel.recv_exit_status() != 0:
            raise RuntimeError("a board failed")


class FanOut(Client):
    """`true` over a fresh connection to each board, 32 threads."""

    def setup(self) -> None:
        self.dialer = Dialer(self.fleet)
        self.pool = ThreadPoolExecutor(min(32, len(self.fleet.hosts)))

    def run(self) -> None:
        list(self.pool.map(self._one, self.fleet.hosts))

    def _one(self, host: str) -> None:
        transport = self.dialer.open(host)
        self.dialer.run_true(transport)
        transport.close()

    def close(self) -> None:
        self.pool.shutdown()


class Idle(Client):
    """Kept connections that do nothing."""

    def run(self) -> Mapping[str, float]:
        dialer = Dialer(self.fleet)
        first = [dialer.open(host) for host in self.fleet.hosts[:2]]
        before = own_rss_mb()
        with ThreadPoolExecutor(16) as pool:
            kept = list(pool.map(dialer.open, self.fleet.hosts))
        grown = own_rss_mb() - before
        cpu, begin = own_cpu_s(), time.perf_counter()
        threading.Event().wait(3.0)
        idle = (own_cpu_s() - cpu) / (time.perf_counter() - begin)
        for transport in (*first, *kept):
            transport.close()
        return {"kb_each": grown * 1024 / len(kept), "idle_cpu_pct": idle * 100}
