"""Shelly plugs and relays with metering, Gen1 and Gen2 and later, over their local HTTP API.

In the inventory::

    meters:
      plug-1:
        kind: shelly
        host: 192.0.2.10
        secret: env:PLUG_1_PASSWORD     # only if the plug has a password
        options: {component: switch, id: 0}

Manuals: shelly-api-docs.shelly.cloud. Gen2+: ``Switch.GetStatus``, ``PM1.GetStatus``,
``EM1.GetStatus``; Gen1: ``/status``, whose counter is in watt-minutes and whose time stamps are
local time dressed as UTC, so they are not used. Tried on protocol servers, not on a real plug yet.
"""

import time
from collections.abc import Callable
from math import inf, nan

from farm.drivers.shelly_http import (
    Json,
    ShellyConnection,
    ShellyMiss,
    ShellyOptions,
    number,
    part,
)
from farm.errors import MeterError
from farm.interfaces.meter import Meter, MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MeterMiss, MeterReading, MissKind

WATT_MINUTES_PER_WH = 60.0
_RPC = {"switch": "Switch", "pm1": "PM1", "em1": "EM1"}
_COMPONENTS = ("switch", "pm1", "em1")


class ShellyMeter(Meter):
    """One component of one Shelly device."""

    Options = ShellyOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: ShellyOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec, self._options, self._monotonic = spec, options, monotonic
        self._connection = ShellyConnection(spec, options, secret, monotonic=monotonic)

    async def open(self) -> MeterFacts:
        """Identify the device and see that the component measures.

        Raises MeterError: refused, no answer, wrong password, no such component.
        """
        facts = await self._connection.open()
        try:
            power, *_ = _values(self._options, await self._status())
            if power is None:
                raise ShellyMiss(MissKind.NO_DATA, "it has no power reading")
        except ShellyMiss as miss:
            error = await self._refusal(miss)
            await self._connection.close()
            raise error from miss
        return facts

    async def read(self) -> MeterReading | MeterMiss:
        """One reading, or why there is none."""
        sent_s = self._monotonic()
        try:
            status = await self._status()
            received_s = self._monotonic()
            power, energy, voltage, current, is_on = _values(self._options, status)
        except ShellyMiss as miss:
            return MeterMiss(sent_s, miss.kind, miss.text)
        if power is None:
            return MeterMiss(sent_s, MissKind.NO_DATA, "the answer holds no power")
        # A switched-off outlet may be under the meter's floor; what it says of itself counts.
        low = 0.0 if is_on is False else self._spec.min_w
        if not max(low, 0.0) <= power <= self._spec.max_w:
            return MeterMiss(sent_s, MissKind.OUT_OF_RANGE, f"{power:g} W")
        return MeterReading(
            sent_s=sent_s,
            received_s=received_s,
            power_w=power,
            energy_wh=nan if energy is None else energy,
            voltage_v=nan if voltage is None else voltage,
            current_a=nan if current is None else current,
            is_output_on=is_on,
        )

    async def close(self) -> None:
        """Close; never raises."""
        await self._connection.close()

    async def _status(self) -> Json:
        """The component's status. A component that is not there is a NO_DATA miss."""
        component, number_ = self._options.component, self._options.id
        if self._connection.generation == 1:
            status = await self._connection.ask("/status")
            key = "emeters" if component == "em1" else "meters"
            if not part(status, key, number_):
                raise ShellyMiss(MissKind.NO_DATA, f"there is no {key}[{number_}]")
            return status
        try:
            method = f"/rpc/{_RPC[component]}.GetStatus"
            return await self._connection.ask(method, {"id": str(number_)})
        except ShellyMiss as miss:
            if miss.status in (404, 500):  # no such method, no such id
                text = f"there is no {component}:{number_}"
                raise ShellyMiss(MissKind.NO_DATA, text, miss.status) from miss
            raise

    async def _refusal(self, miss: ShellyMiss) -> MeterError:
        if miss.kind is not MissKind.NO_DATA:
            return self._connection.error("open meter", miss)
        present = await self._present()
        return MeterError(
            "open meter",
            f"{self._spec.name}: {miss.text}; the device has {present}",
            remedy="Set the meter's options: {component: ..., id: ...} to one that measures.",
        )

    async def _present(self) -> str:
        is_old = self._connection.generation == 1
        try:
            status = await self._connection.ask("/status" if is_old else "/rpc/Shelly.GetStatus")
        except ShellyMiss:
            return "components that it does not list"
        if is_old:
            lists = ((key, status.get(key)) for key in ("meters", "emeters"))
            names = [f"{k}[{i}]" for k, v in lists if isinstance(v, list) for i in range(len(v))]
        else:
            names = [key for key in status if key.partition(":")[0] in _COMPONENTS]
        return ", ".join(sorted(names)[:20]) or "nothing that measures"


_Values = tuple[float | None, float | None, float | None, float | None, bool | None]


def _values(options: ShellyOptions, status: Json) -> _Values:
    """Power W, energy Wh, volts, amperes, output on."""
    if "meters" in status or "emeters" in status:
        return _old_values(options, status)
    power_key = "act_power" if options.component == "em1" else "apower"
    output = status.get("output")
    return (
        _power(status, power_key),
        number(part(status, "aenergy"), "total"),
        number(status, "voltage"),
        number(status, "current"),
        output if isinstance(output, bool) else None,
    )


def _old_values(options: ShellyOptions, status: Json) -> _Values:
    is_em = options.component == "em1"
    meter = part(status, "emeters" if is_em else "meters", options.id)
    if meter.get("is_valid") is False:
        raise ShellyMiss(MissKind.NO_DATA, "the plug says its reading is not valid yet")
    energy = number(meter, "total")
    if energy is not None and not is_em:
        energy /= WATT_MINUTES_PER_WH  # emeters count in Wh, meters in watt-minutes
    output = part(status, "relays", options.id).get("ison")
    return (
        _power(meter, "power"),
        energy,
        number(meter, "voltage"),
        number(meter, "current"),
        output if isinstance(output, bool) else None,
    )


def _power(answer: Json, key: str) -> float | None:
    """Like `number`, but NaN and infinity (Python's JSON takes them) count as out of range."""
    value = answer.get(key)
    found = number(answer, key)
    is_numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return inf if found is None and is_numeric else found
