"""OpenSSH's own programs: a process for each command or copy."""

import asyncio
import os
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.clients.payloads import Targets
from benchmarks.lab import Fleet
from benchmarks.turns import Client

CURVE25519 = ("-o", "KexAlgorithms=curve25519-sha256")
"""The default key exchange of 9.2 (sntrup761) costs six times the CPU; peers do not offer it."""
AES = ("-c", "aes128-gcm@openssh.com")


async def run_quietly(argv: Sequence[str]) -> None:
    """Run a program; raise if it says no."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _, error = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{argv[0]}: exit {process.returncode}: {error.decode()}")


class Masters:
    """One kept `ssh -M -N` a board."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.processes = []
        for host in fleet.hosts:
            argv = ["ssh", *fleet.ssh_config, *CURVE25519, *AES, "-M", "-N"]
            self.processes.append(
                subprocess.Popen(
                    [*argv, "-S", str(self.socket(host)), host], stdin=subprocess.DEVNULL
                )
            )
        end = time.monotonic() + 60
        while missing := [host for host in fleet.hosts if not self.socket(host).exists()]:
            if time.monotonic() > end:
                raise RuntimeError(f"no master for {missing}")
            time.sleep(0.02)

    def socket(self, host: str) -> Path:
        return self.fleet.folder / f"m{os.getpid()}-{host}"

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait(10)


class FanOut(Client):
    """`true` over a fresh connection to each board, 32 at once."""

    options: tuple[str, ...] = CURVE25519

    def run(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        turns = asyncio.Semaphore(32)

        async def one(host: str) -> None:
            async with turns:
                await run_quietly(["ssh", *self.fleet.ssh_config, *self.options, host, "true"])

        await asyncio.gather(*map(one, self.fleet.hosts))


class FanOutByDefault(FanOut):
    """The same with OpenSSH's default algorithms."""

    options = ()


class Kept(Client):
    """Commands through kept masters, one at a time a board."""

    def setup(self) -> None:
        self.masters = Masters(self.fleet)
        self.helpers = self.masters.pids

    def run(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        each = int(self.settings["operations"]) // len(self.fleet.hosts)

        async def board(host: str) -> None:
            for _ in range(each):
                through = ["-S", str(self.masters.socket(host))]
                await run_quietly(["ssh", *self.fleet.ssh_config, *through, host, "true"])

        await asyncio.gather(*map(board, self.fleet.hosts))

    def close(self) -> None:
        self.masters.close()


class Scp(Client):
    """scp -r, a fresh connection a board."""

    def setup(self) -> None:
        self.targets = Targets(self.fleet, str(self.settings["shape"]))

    def options(self, host: str) -> list[str]:
        return [*CURVE25519]

    def run(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        source = [str(path) for path in self.targets.source.iterdir()]

        async def one(host: str) -> None:
            options = [*self.fleet.ssh_config, *self.options(host)]
            target = f"{host}:{self.targets.folders[host]}/"
            await run_quietly(["scp", "-q", "-r", *options, *source, target])

        await asyncio.gather(*map(one, self.fleet.hosts))

    def check(self) -> None:
        self.targets.check()

    def close(self) -> None:
        self.targets.remove()


class ScpKept(Scp):
    """scp -r through kept masters."""

    def setup(self) -> None:
        super().setup()
        self.masters = Masters(self.fleet)
        self.helpers = self.masters.pids

    def options(self, host: str) -> list[str]:
        return ["-o", f"ControlPath={self.masters.socket(host)}"]

    def close(self) -> None:
        self.masters.close()
        super().close()


class StreamChunks(Client):
    """An `ssh` process whose output is read in pieces and split into lines."""

    def run(self) -> Mapping[str, float]:
        return asyncio.run(self._read())

    async def _read(self) -> Mapping[str, float]:
        sender = shlex.join(["python3", str(self.fleet.folder / "sender.py")])
        process = await asyncio.create_subprocess_exec(
            *["ssh", *self.fleet.ssh_config, *CURVE25519, *AES, self.fleet.hosts[0]],
            f"{sender} {self.settings['lines']} 0",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            limit=1 << 20,
        )
        assert process.stdout is not None
        lines, rest, begin = 0, b"", time.perf_counter()
        while data := await process.stdout.read(1 << 18):
            parts = (rest + data).split(b"\n")
            rest = parts.pop()
            lines += len(parts)
        if await process.wait() != 0 or lines != self.settings["lines"]:
            raise RuntimeError(f"{lines} lines of {self.settings['lines']}")
        return {"million_lines_per_s": lines / (time.perf_counter() - begin) / 1e6}
