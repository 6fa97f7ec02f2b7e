"""Power strips on a real snmpd: presets, silence, logins, what is not measured, and switching."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import ValidationError

from farm.drivers.meters.snmp import SnmpMeter
from farm.drivers.outlets.snmp import SnmpOutlet
from farm.drivers.snmp_session import PRESETS, SnmpOptions, SnmpSession
from farm.errors import MeterError
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_rig import rig_of, spec_of
from tests.servers.snmpd import COMMUNITY, PASSPHRASE, SNMPD, USER, SnmpStrip

pytestmark = [
    pytest.mark.skipif(SNMPD is None, reason="needs Debian's snmpd"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(loop_scope="module", scope="module", autouse=True)
async def _engine() -> AsyncIterator[None]:
    """An engine takes a quarter of a second to make; this one is the tests' to share."""
    session = SnmpSession(spec_of(1), apc(), COMMUNITY)
    session._engine()
    yield
    session.close()


def apc() -> SnmpOptions:
    return SnmpOptions(preset="apc", outlet=7)


def v3() -> SnmpOptions:
    return SnmpOptions(preset="apc", outlet=7, user=USER, auth="sha256")


class TestSnmp(MeterContract):
    has_login = False
    refused = MissKind.TIMEOUT

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        strip = SnmpStrip(self.folder, apc().tree().power)
        return rig_of(strip, lambda spec: SnmpMeter(spec, apc(), COMMUNITY))


async def one_reading(
    strip: SnmpStrip, options: SnmpOptions, secret: str | None, deadline_s: float = 20.0
) -> MeterReading | MeterMiss:
    meter = SnmpMeter(spec_of(strip.port, deadline_s=deadline_s), options, secret)
    try:
        await meter.open()
        return await meter.read()
    finally:
        await meter.close()


async def test_apc_watts_and_tenths_of_kwh(tmp_path: Path) -> None:
    tree = apc().tree()
    async with SnmpStrip(tmp_path, tree.power) as strip:
        strip.values[tree.energy] = 15
        strip.tell()
        meter = SnmpMeter(spec_of(strip.port, deadline_s=20.0), apc(), COMMUNITY)
        facts = await meter.open()
        got = await meter.read()
        await meter.close()
    assert (facts.model, facts.identity) == ("Strip of a test", f"strip-1/{tree.power}")
    assert tree.power == "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.7"
    assert isinstance(got, MeterReading)
    assert (got.power_w, got.energy_wh) == (10.0, 1500.0)


async def test_presets_and_their_scales(tmp_path: Path) -> None:
    shown = {
        SnmpOptions(preset="apc-unit"): 12,
        SnmpOptions(preset="raritan", unit=2, outlet=3): 1200,
        SnmpOptions(preset="servertech", outlet=3): 120,
        SnmpOptions(oid="1.3.6.1.4.1.9999.1.0", scale=0.01): 12000,
    }
    async with SnmpStrip(tmp_path, apc().tree().power) as strip:
        strip.values |= {options.tree().power: value for options, value in shown.items()}
        strip.values[SnmpOptions(preset="raritan", unit=2, outlet=3).tree().digits] = 1
        strip.tell()
        for options in shown:
            got = await one_reading(strip, options, COMMUNITY)
            assert isinstance(got, MeterReading)
            assert got.power_w == pytest.approx(120.0)


async def test_v3_and_a_wrong_passphrase(tmp_path: Path) -> None:
    async with SnmpStrip(tmp_path, apc().tree().power) as strip:
        got = await one_reading(strip, v3(), PASSPHRASE)
        with pytest.raises(MeterError, match="auth: ") as caught:
            await one_reading(strip, v3(), "a-wrong-phrase")
    assert isinstance(got, MeterReading)
    assert "a-wrong-phrase" not in f"{caught.value} {caught.value.__cause__}"


async def test_a_wrong_community_is_silence_and_told_as_such(tmp_path: Path) -> None:
    async with SnmpStrip(tmp_path, apc().tree().power) as strip:
        with pytest.raises(MeterError, match="timeout") as caught:
            await one_reading(strip, apc(), "wrong-word", deadline_s=0.3)
    assert "community" in caught.value.remedy
    assert "wrong-word" not in f"{caught.value} {caught.value.__cause__}"


async def test_an_outlet_that_is_not_metered_is_told(tmp_path: Path) -> None:
    other = SnmpOptions(preset="apc", outlet=8)
    async with SnmpStrip(tmp_path, apc().tree().power) as strip:
        with pytest.raises(MeterError, match="not metered"):
            await one_reading(strip, other, COMMUNITY)
        strip.values[other.tree().power] = -1
        strip.tell()
        with pytest.raises(MeterError, match="does not measure"):
            await one_reading(strip, other, COMMUNITY)


async def test_the_outlet_writes_and_believes_the_status(tmp_path: Path) -> None:
    tree = apc().tree()
    async with SnmpStrip(tmp_path, tree.power) as strip:
        strip.values |= {tree.status: 2, tree.switch: 1}
        strip.tell()
        outlet = SnmpOutlet(spec_of(strip.port, deadline_s=20.0), apc(), COMMUNITY)
        assert await outlet.is_on() is True
        assert await outlet.switch(to_on=False) is True  # it says that it is still on
        assert strip.was_set == [f".{tree.switch}", PRESETS["apc"].off]
        strip.values[tree.status] = 1
        strip.tell()
        assert await outlet.is_on() is False
        strip.values[tree.status] = 9
        strip.tell()
        with pytest.raises(MeterError, match="neither on nor off"):
            await outlet.is_on()


async def test_a_preset_without_a_switch_is_no_outlet() -> None:
    outlet = SnmpOutlet(spec_of(1), SnmpOptions(preset="raritan"), COMMUNITY)
    with pytest.raises(MeterError, match="knows no switch"):
        await outlet.is_on()


@pytest.mark.parametrize(
    "values", [{}, {"preset": "apc", "oid": "1.3"}, {"oid": "1.3.x"}, {"preset": "other"}]
)
async def test_options_that_cannot_work_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SnmpOptions.model_validate(values)
