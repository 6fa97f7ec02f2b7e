"""MQTT through a real mosquitto: the contract, then presets, retained values and relays."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from math import isnan
from pathlib import Path

import aiomqtt
import pytest
from pydantic import ValidationError

from farm.drivers.meters.mqtt_json import MqttJsonMeter
from farm.drivers.mqtt_json_options import MqttJsonOptions
from farm.drivers.outlets.mqtt_json import MqttJsonOutlet
from farm.errors import MeterError
from farm.interfaces.meter import Meter
from farm.model.board import MeterSpec
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_rig import rig_of, spec_of
from tests.servers.mosquitto import (
    MOSQUITTO,
    PASSWORD,
    USER,
    Broker,
    TasmotaDevice,
    device_client,
    until,
)

pytestmark = pytest.mark.skipif(MOSQUITTO is None, reason="needs Debian's mosquitto")
PATIENCE_S = 30.0
Z2M: Mapping[str, object] = {"preset": "zigbee2mqtt", "device": "plug"}


def options(**values: object) -> MqttJsonOptions:
    return MqttJsonOptions.model_validate({"user": USER, **values})


def tasmota(spec: MeterSpec) -> Meter:
    return MqttJsonMeter(spec, options(preset="tasmota", device="plug1"), PASSWORD)


class TestTasmota(MeterContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig_of(TasmotaDevice(Broker(self.folder)), tasmota)


class Talker:
    """A device's side of a broker: tells a message until somebody took it."""

    def __init__(self, client: aiomqtt.Client, port: int) -> None:
        self.client, self.port = client, port

    async def opened(
        self, topic: str, text: str, deadline_s: float, values: Mapping[str, object] = Z2M
    ) -> MqttJsonMeter:
        """A meter that was open when one of the messages came; the next deadline is shorter."""
        meter = MqttJsonMeter(
            spec_of(self.port, deadline_s=PATIENCE_S), options(**values), PASSWORD
        )
        opening = asyncio.create_task(meter.open())
        while not opening.done():
            await self.client.publish(topic, text)
            await asyncio.sleep(0.01)
        await opening
        meter._spec = meter._dialogue._spec = spec_of(self.port, deadline_s=deadline_s)
        return meter

    async def told(
        self, topic: str, text: str, values: Mapping[str, object]
    ) -> MeterReading | MeterMiss:
        meter = await self.opened(topic, text, PATIENCE_S, values)
        reading = asyncio.create_task(meter.read())
        while not reading.done():
            await self.client.publish(topic, text)
            await asyncio.sleep(0.01)
        await meter.close()
        return await reading


@pytest.mark.parametrize(
    ("topic", "text", "values", "wanted"),
    [
        (
            "zigbee2mqtt/plug",
            '{"power": 12.5, "voltage": 231, "current": 0.06, "energy": 1.5, "state": "ON"}',
            Z2M,
            (12.5, 1500.0, 231.0, 0.06, True),
        ),
        (
            "shellyplus-a1/status/switch:0",
            '{"id":0,"output":false,"apower":0.0,"voltage":230.1,"current":0,"aenergy":{"total":7}}',
            {"preset": "shelly", "device": "shellyplus-a1"},
            (0.0, 7.0, 230.1, 0.0, False),
        ),
        (
            "plug/sensor/watts/state",
            "12.5",
            {"preset": "esphome", "device": "plug", "sensor": "watts"},
            (12.5, None, None, None, None),
        ),
        (
            "lab/m",
            '{"a": [{"mw": "12500"}], "e": 3600}',
            {
                "topic": "lab/m",
                "path": "a.0.mw",
                "unit": "mW",
                "energy_path": "e",
                "energy_unit": "J",
            },
            (12.5, 1.0, None, None, None),
        ),
    ],
)
async def test_what_the_presets_devices_tell(
    tmp_path: Path,
    topic: str,
    text: str,
    values: Mapping[str, object],
    wanted: tuple[float | None, ...],
) -> None:
    async with Broker(tmp_path) as broker, device_client(broker) as client:
        got = await Talker(client, broker.port).told(topic, text, values)
    assert isinstance(got, MeterReading)
    told = (got.power_w, got.energy_wh, got.voltage_v, got.current_a, got.is_output_on)
    assert [None if value is not None and isnan(value) else value for value in told] == list(
        wanted
    )


async def test_a_retained_value_is_no_reading(tmp_path: Path) -> None:
    async with Broker(tmp_path) as broker, device_client(broker) as client:
        await client.publish("zigbee2mqtt/plug", '{"power": 99}', qos=1, retain=True)
        spec = spec_of(broker.port, deadline_s=0.5)
        meter = MqttJsonMeter(spec, options(**Z2M), PASSWORD)
        with pytest.raises(MeterError, match="timeout"):
            await meter.open()


async def test_a_message_is_read_once(tmp_path: Path) -> None:
    async with Broker(tmp_path) as broker, device_client(broker) as client:
        talker = Talker(client, broker.port)
        meter = await talker.opened("zigbee2mqtt/plug", '{"power": 5}', 0.5)
        got: list[MeterReading | MeterMiss] = []
        for _ in range(20):  # those that were on their way, then silence
            got.append(await meter.read())
            if isinstance(got[-1], MeterMiss):
                break
        await meter.close()
    assert isinstance(got[-1], MeterMiss)
    assert got[-1].kind is MissKind.TIMEOUT


@pytest.mark.parametrize("text", ["offline", '{"state": "offline"}'])
async def test_a_device_that_the_broker_lost_is_a_gap(tmp_path: Path, text: str) -> None:
    async with Broker(tmp_path) as broker, device_client(broker) as client:
        talker = Talker(client, broker.port)
        meter = await talker.opened("zigbee2mqtt/plug", '{"power": 5}', PATIENCE_S)
        await client.publish("zigbee2mqtt/plug/availability", text, qos=1, retain=True)
        await until(lambda: meter._is_offline)
        got = [await meter.read() for _ in range(2)]
        await client.publish("zigbee2mqtt/plug/availability", "online", qos=1, retain=True)
        await until(lambda: not meter._is_offline)
        await meter.close()
    kinds = {miss.kind for miss in got if isinstance(miss, MeterMiss)}
    assert len(got) == 2
    assert kinds == {MissKind.NO_DATA}


@pytest.mark.parametrize("secret", [None, "wrong-word"])
async def test_a_wrong_password_is_named_and_not_told(tmp_path: Path, secret: str | None) -> None:
    async with Broker(tmp_path) as broker:
        meter = MqttJsonMeter(spec_of(broker.port), options(**Z2M), secret)
        with pytest.raises(MeterError, match="auth") as caught:
            await meter.open()
    assert "wrong-word" not in f"{caught.value} {caught.value.__cause__}"


async def test_the_outlet_switches_and_reads_back(tmp_path: Path) -> None:
    async with TasmotaDevice(Broker(tmp_path)) as device:
        outlet = MqttJsonOutlet(
            spec_of(device.port), options(preset="tasmota", device="plug1"), PASSWORD
        )
        assert await outlet.is_on() is True
        assert await outlet.switch(to_on=False) is False
        assert device.is_on is False
        assert await outlet.switch(to_on=True) is True


async def test_a_relay_that_cannot_be_asked_tells_by_itself(tmp_path: Path) -> None:
    async with Broker(tmp_path) as broker, device_client(broker) as client:
        await client.publish("plug/switch/relay/state", "ON", qos=1, retain=True)
        await client.subscribe("plug/switch/relay/command")
        settings = options(preset="esphome", device="plug")
        outlet = MqttJsonOutlet(spec_of(broker.port), settings, PASSWORD)
        assert await outlet.is_on() is True
        switching = asyncio.create_task(outlet.switch(to_on=False))
        async for message in client.messages:
            assert message.payload == b"OFF"
            break
        await client.publish("plug/switch/relay/state", "OFF", qos=1, retain=True)
        assert await switching is False


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"preset": "tasmota"},
        {"preset": "tasmota", "device": "a", "topic": "b"},
        {"topic": "#"},
    ],
)
def test_options_that_cannot_work_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MqttJsonOptions.model_validate(values)


def test_the_channel_is_in_the_topics() -> None:
    two = options(preset="tasmota", device="p", channel=2).topics()
    assert (two.set_topic, two.state_topic) == ("cmnd/p/POWER2", "stat/p/POWER2")
    one = options(preset="shelly", device="s", channel=1).topics()
    assert one.topic == "s/status/switch:1"
