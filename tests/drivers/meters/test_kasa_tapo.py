"""TP-Link's plugs, older and newer: the contract for both, then values, strips and logins."""

from contextlib import AbstractAsyncContextManager
from math import isnan

import pytest

from farm.drivers.meters.kasa import KasaMeter
from farm.drivers.meters.tapo import TapoMeter
from farm.drivers.outlets.kasa import KasaOutlet
from farm.drivers.outlets.tapo import TapoOutlet
from farm.drivers.tapo_options import KasaOptions, TapoOptions
from farm.errors import MeterError
from farm.model.trace import MeterReading
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_rig import rig_of, spec_of
from tests.servers.tplink import MAC, PASSWORD, USER, KasaServer, TapoServer

LOGIN = TapoOptions(user=USER)


class TestKasa(MeterContract):
    has_login = False

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig_of(KasaServer(), lambda spec: KasaMeter(spec, KasaOptions(), None))


class TestTapo(MeterContract):
    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig_of(TapoServer(), lambda spec: TapoMeter(spec, LOGIN, PASSWORD))


@pytest.mark.parametrize("is_old", [False, True])
async def test_kasa_values_of_both_forms(is_old: bool) -> None:
    async with KasaServer(is_old=is_old) as server:
        meter = KasaMeter(spec_of(server.port), KasaOptions(), None)
        facts = await meter.open()
        got = await meter.read()
        await meter.close()
    assert (facts.model, facts.identity, facts.firmware) == ("KP115(EU)", MAC.lower(), "1.0.16")
    assert isinstance(got, MeterReading)
    assert (got.power_w, got.energy_wh, got.voltage_v) == (10.0, 1500.0, 230.5)
    assert got.current_a == pytest.approx(0.05)


async def test_an_outlet_of_a_strip() -> None:
    async with KasaServer(children=2) as server:
        meter = KasaMeter(spec_of(server.port), KasaOptions(child=1), None)
        await meter.open()
        assert isinstance(await meter.read(), MeterReading)
        await meter.close()
        third = KasaMeter(spec_of(server.port), KasaOptions(child=2), None)
        with pytest.raises(MeterError, match="no outlet 2"):
            await third.open()


async def test_a_plug_without_a_meter_is_told() -> None:
    async with KasaServer() as server:
        server.has_emeter = False
        meter = KasaMeter(spec_of(server.port), KasaOptions(), None)
        with pytest.raises(MeterError, match="get_realtime: error"):
            await meter.open()


@pytest.mark.parametrize("has_emeter", [True, False])
async def test_tapo_values_also_of_plugs_with_the_older_question_alone(has_emeter: bool) -> None:
    async with TapoServer(has_emeter=has_emeter) as server:
        meter = TapoMeter(spec_of(server.port), LOGIN, PASSWORD)
        facts = await meter.open()
        got = await meter.read()
        await meter.close()
    assert (facts.model, facts.identity, facts.firmware) == ("P110", MAC.lower(), "1.3.0")
    assert isinstance(got, MeterReading)
    assert got.power_w == 10.0
    assert isnan(got.voltage_v) != has_emeter


@pytest.mark.parametrize("secret", [None, "wrong-word"])
async def test_a_wrong_password_is_named_and_not_told(secret: str | None) -> None:
    async with TapoServer() as server:
        meter = TapoMeter(spec_of(server.port), LOGIN, secret)
        with pytest.raises(MeterError, match="third-party compatibility") as caught:
            await meter.open()
    assert "wrong-word" not in f"{caught.value} {caught.value.__cause__}"


async def test_the_outlets_switch_and_read_back() -> None:
    async with KasaServer() as kasa, TapoServer() as tapo:
        for server, outlet in (
            (kasa, KasaOutlet(spec_of(kasa.port), KasaOptions(), None)),
            (tapo, TapoOutlet(spec_of(tapo.port), LOGIN, PASSWORD)),
        ):
            assert await outlet.is_on() is True
            assert await outlet.switch(to_on=False) is False
            assert server.is_on is False
            assert await outlet.switch(to_on=True) is True
