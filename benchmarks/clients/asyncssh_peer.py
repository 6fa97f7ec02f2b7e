"""asyncssh by itself, tuned as ours is: what our transport adds, and its own ways to do things."""

import asyncio
import os
import time
from collections.abc import Mapping

import asyncssh

from benchmarks.clients.payloads import Targets
from benchmarks.lab import Fleet
from benchmarks.turns import Client


async def connect_one(
    fleet: Fleet, host: str, key: asyncssh.SSHKey, trusted: asyncssh.SSHKey
) -> asyncssh.SSHClientConnection:
    """A verified connection."""
    return await asyncssh.connect(
        host,
        fleet.port,
        username=fleet.user,
        client_keys=[key],
        known_hosts=([trusted], [], []),
        config=None,
        agent_path=None,
        compression_algs=None,
        preferred_auth="publickey",
        kex_algs=["curve25519-sha256"],
        encryption_algs=["aes128-gcm@openssh.com"],
    )


def keys_of(fleet: Fleet) -> tuple[asyncssh.SSHKey, asyncssh.SSHKey]:
    """The login key and the boards' host key, parsed once."""
    return asyncssh.read_private_key(fleet.client_key), asyncssh.import_public_key(fleet.host_key)


async def connect_all(fleet: Fleet) -> dict[str, asyncssh.SSHClientConnection]:
    """Verified connections to all boards."""
    keys = keys_of(fleet)
    return {host: await connect_one(fleet, host, *keys) for host in fleet.hosts}


class FanOut(Client):
    """`true` over a fresh connection to each board, 32 at once."""

    def setup(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.keys = keys_of(self.fleet)

    def run(self) -> None:
        self.loop.run_until_complete(self._all())

    async def _all(self) -> None:
        turns = asyncio.Semaphore(32)

        async def one(host: str) -> None:
            async with turns, await connect_one(self.fleet, host, *self.keys) as connection:
                if (await connection.run("true")).exit_status != 0:
                    raise RuntimeError("a board failed")

        await asyncio.gather(*map(one, self.fleet.hosts))

    def close(self) -> None:
        self.loop.close()


class Connected(Client):
    """Kept connections on a loop that lives as long as the client."""

    def setup(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.connections = self.loop.run_until_complete(connect_all(self.fleet))

    def close(self) -> None:
        for connection in self.connections.values():
            connection.abort()
        self.loop.close()


class Kept(Connected):
    """`run("true")`, one at a time a board."""

    def run(self) -> None:
        self.loop.run_until_complete(self._all())

    async def _all(self) -> None:
        each = int(self.settings["operations"]) // len(self.connections)

        async def board(connection: asyncssh.SSHClientConnection) -> None:
            for _ in range(each):
                await connection.run("true", check=True)

        await asyncio.gather(*map(board, self.connections.values()))


class Sftp(Connected):
    """asyncssh's own SFTP put."""

    def setup(self) -> None:
        super().setup()
        self.targets = Targets(self.fleet, str(self.settings["shape"]))

    def run(self) -> None:
        self.loop.run_until_complete(self._all())

    async def _all(self) -> None:
        source = [str(path) for path in self.targets.source.iterdir()]

        async def board(host: str) -> None:
            async with self.connections[host].start_sftp_client() as sftp:
                await sftp.put(source, os.fspath(self.targets.folders[host]), recurse=True)

        await asyncio.gather(*map(board, self.connections))

    def check(self) -> None:
        self.targets.check()

    def close(self) -> None:
        super().close()
        self.targets.remove()


class StreamLines(Connected):
    """`async for line in stdout`."""

    def run(self) -> Mapping[str, float]:
        return self.loop.run_until_complete(self._read())

    async def _read(self) -> Mapping[str, float]:
        (connection,) = self.connections.values()
        command = f"python3 {self.fleet.folder}/sender.py {self.settings['lines']} 0"
        lines, begin = 0, time.perf_counter()
        async with connection.create_process(command, encoding=None) as process:
            async for line in process.stdout:
                lines += bool(line)  # now and then one empty item comes at the end
        if lines != self.settings["lines"]:
            raise RuntimeError(f"{lines} lines of {self.settings['lines']}")
        return {"million_lines_per_s": lines / (time.perf_counter() - begin) / 1e6}
