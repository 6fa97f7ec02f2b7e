"""A peer that accepts and never answers, again and again: nothing piles up."""

import asyncio
import os
from collections.abc import Mapping

import pytest

from farm.drivers.registry import METERS, meter_class
from farm.errors import MeterError
from farm.model.board import MeterSpec
from farm.model.trace import MeterMiss, MissKind

OPTIONS: Mapping[str, Mapping[str, object]] = {
    "homeassistant": {"entity": "sensor.plug"},
    "kasa": {},
    "modbus": {"preset": "sdm120"},
    "mqtt-json": {"preset": "tasmota", "device": "plug"},
    "prometheus": {"query": "x"},
    "ptdaemon": {},
    "scpi": {"preset": "yokogawa-wt3xx"},
    "shelly": {},
    "tapo": {},
    "tasmota": {},
}
WITHOUT_TCP = {"command", "csv", "snmp"}


def test_none_is_forgotten() -> None:
    assert set(OPTIONS) | WITHOUT_TCP == set(METERS)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while await reader.read(1000):
            pass
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("kind", OPTIONS)
async def test_nothing_piles_up(kind: str) -> None:
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    spec = MeterSpec(
        name="plug",
        kind=kind,
        host="127.0.0.1",
        port=server.sockets[0].getsockname()[1],
        deadline_s=0.05,
    )
    meter_type = meter_class(kind)
    meter = meter_type(spec, meter_type.Options.model_validate(OPTIONS[kind]), None)
    counts = []
    for _ in range(5):
        with pytest.raises(MeterError, match="timeout"):
            await meter.open()
        counts.append(await settled())
    got = await meter.read()
    await meter.close()
    server.close()
    await settled()
    assert counts[-1] <= counts[0]
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.REFUSED  # a meter that did not open is closed


async def settled() -> int:
    """Open files, when the server's side of what was closed is gone as well."""
    async with asyncio.timeout(30):
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - tasks of the server and libraries
            await asyncio.sleep(0.005)
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
