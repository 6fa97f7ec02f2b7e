"""The lab of the faulty boards, and the doctor run at the host's place in their network."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.namespaces.faulty_boards import FAULTY, HEALTHY, NEIGHBOUR, Faulty, move_tools
from tests.servers.namespace_board import USER
from tests.servers.namespaces import BoardLab, NamespaceBoard
from tests.servers.shelly import ShellyServer

COMMAND_LIMIT_S = 100.0
BOOTING_AT_ONCE = 4
"""Each boot is mostly waiting for the kernel; more at once only take each other's cores."""


@dataclass
class DoctorLab:
    """A workspace with these boards; `farm` runs at the host's place in their network."""

    root: Path
    namespace: str
    machines: dict[str, NamespaceBoard]

    def command(self, *words: str) -> list[str]:
        """The command line of a `farm` command."""
        inside = ["ip", "netns", "exec", self.namespace]
        return [*inside, sys.executable, "-m", "farm", *words, "-w", str(self.root)]

    async def doctor(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it on all boards, or on those named, with the meters there."""
        argv = self.command("boards", "doctor", *words)
        async with AsyncExitStack() as stack:
            ports = {name: await stack.enter_async_context(server) for name, server in _meters()}
            self._write_inventory({name: server.port for name, server in ports.items()})
            moving = asyncio.create_task(_move(ports["moving"], ports["shared"]))
            try:
                return await asyncio.to_thread(_run, argv)
            finally:
                moving.cancel()

    def _write_inventory(self, ports: dict[str, int]) -> None:
        ports = {**ports, "off": 9}
        boards = {one.name: self._entry(one) for one in (*HEALTHY, *FAULTY)}
        boards[NEIGHBOUR] = {
            **boards["meter-shared"],
            "host": "198.18.255.1",
            "is_maintenance": True,
        }
        meters = {
            name: {
                "kind": "shelly",
                "host": "127.0.0.1",
                "port": port,
                "poll_hz": 5,
                "update_s": 0.5,
                "averaging_s": 0.5,
                "lag_s": 0.25,
            }
            for name, port in ports.items()
        }
        text = json.dumps({"boards": boards, "meters": meters})
        (self.root / "inventory.yaml").write_text(text)

    def _entry(self, one: Faulty) -> dict[str, object]:
        machine = self.machines[one.name]
        entry: dict[str, object] = {
            "profile": "jetson-tx2",
            "host": machine.address,
            "user": USER,
            "identity_file": str(machine.identity_file),
            "known_hosts": str(machine.known_hosts),
        }
        return entry | ({"meter": one.meter} if one.meter else {}) | one.entry


def _meters() -> Iterator[tuple[str, ShellyServer]]:
    yield "moving", ShellyServer()
    yield "shared", ShellyServer()
    yield "zero", ShellyServer(power_w=0.0)
    yield "stuck", ShellyServer()


async def _move(*meters: ShellyServer) -> None:
    while True:
        await asyncio.sleep(0.05)
        for meter in meters:
            meter.set_power(10.0 if meter.power_w > 10.0 else 10.4)


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(argv),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
    )


@contextmanager
def doctor_lab(lab: BoardLab, root: Path) -> Iterator[DoctorLab]:
    """All boards, each with its fault, in a workspace at `root`; off again afterwards."""

    def make(one: Faulty) -> NamespaceBoard:
        (board,) = lab.up(1, one.options)
        move_tools(board)
        one.put_in(board)
        return board

    everyone = (*HEALTHY, *FAULTY)
    with ThreadPoolExecutor(BOOTING_AT_ONCE) as pool:
        boards = list(pool.map(make, everyone))
    names = [one.name for one in everyone]
    yield DoctorLab(root, lab.network.host, dict(zip(names, boards, strict=True)))
    lab.down(boards)


def findings_of(text: str) -> dict[str, list[dict[str, Any]]]:
    """Findings by board of the doctor's JSON."""
    return {one["board"]: one["findings"] for one in json.loads(text)}
