"""A real mosquitto on loopback with one password, and devices that talk over it."""

import asyncio
import json
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import aiomqtt

from farm.testing.meter_contract import Fault
from tests.servers.meter_device import SPIKES
from tests.servers.program import PATIENCE_S, Program
from tests.servers.served import Served

MOSQUITTO = shutil.which("mosquitto", path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
USER, PASSWORD = "farm", "not-a-secret"


class Broker(Program):
    """An async context manager; `port` is known inside."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.port = 0
        self._log = folder / "mosquitto.log"

    async def come_up(self) -> None:
        self.port = free_port()
        self.allow(PASSWORD)
        await self.start()

    def allow(self, password: str) -> None:
        """Its one password; for the next start."""
        file = self._folder / "passwords"
        file.write_text(f"{USER}:{password}\ndevice:{PASSWORD}\n")
        file.chmod(0o600)
        subprocess.run(["mosquitto_passwd", "-U", str(file)], check=True)
        (self._folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous false\npassword_file {file}\n"
            f"log_dest file {self._log}\nlog_type all\nuser root\n"
        )

    def argv(self) -> list[str]:
        assert MOSQUITTO is not None
        return [MOSQUITTO, "-c", str(self._folder / "mosquitto.conf")]

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def log(self) -> str:
        return self._log.read_text()

    @property
    def logins(self) -> int:
        """Connections that were tried by the meter."""
        text = self.log()
        return text.count(f"u'{USER}'") + text.count("not authorised")


class TasmotaDevice(Served):
    """A plug that answers ``Status 8`` and switches; it reconnects to the broker by itself."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.fault = broker, "none"
        self.power_w = 10.0
        self.most_at_once = self.commands = 0
        self.is_on = True
        self.is_ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def come_up(self) -> None:
        await self.broker.come_up()
        self._task = asyncio.create_task(self._live())
        await asyncio.wait_for(self.is_ready.wait(), PATIENCE_S)

    async def go_down(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.broker.go_down()

    @property
    def port(self) -> int:
        return self.broker.port

    @property
    def requests(self) -> int:
        return self.broker.logins

    def set_power(self, power_w: float) -> None:
        self.power_w = power_w

    async def set_fault(self, fault: Fault) -> None:
        before, self.fault = self.fault, fault
        restarts = {"refuse", "unauthorized"} & {before, fault}
        if restarts:
            await self.broker.stop()
            self.is_ready.clear()
            if fault != "refuse":
                self.broker.allow("another" if fault == "unauthorized" else PASSWORD)
                await self.broker.start()
                await asyncio.wait_for(self.is_ready.wait(), PATIENCE_S)

    async def _live(self) -> None:
        while True:
            try:
                async with device_client(self.broker) as client:
                    await client.publish("tele/plug1/LWT", "Online", retain=True)
                    await client.subscribe("cmnd/plug1/#")
                    self.is_ready.set()
                    await self._serve(client)
            except aiomqtt.MqttError:
                await asyncio.sleep(0.01)

    async def _serve(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            self.commands += 1
            self.most_at_once = 1 + len(client.messages)
            text = bytes(message.payload).decode()
            if message.topic.matches("cmnd/plug1/POWER"):
                self.is_on = {"ON": True, "OFF": False}.get(text, self.is_on)
                await client.publish("stat/plug1/POWER", "ON" if self.is_on else "OFF")
            elif self.fault != "hang":
                await client.publish("stat/plug1/STATUS8", self._status())

    def _status(self) -> str:
        if self.fault == "garbage":
            return "%&/ not this"
        shown = SPIKES.get(self.fault, self.power_w)
        energy = {"Total": 1.5, "Power": shown, "Voltage": 231, "Current": 0.1}
        return json.dumps({"StatusSNS": {"Time": "2026-11-30T03:00:00", "ENERGY": energy}})


def device_client(broker: Broker) -> aiomqtt.Client:
    return aiomqtt.Client("127.0.0.1", broker.port, username="device", password=PASSWORD)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - another process brings it about
            await asyncio.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
