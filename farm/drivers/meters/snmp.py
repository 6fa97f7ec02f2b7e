"""Power strips that meter each outlet, over SNMP: APC, Raritan, Server Technology, any other.

In the inventory::

    meters:
      pdu-a-7:
        kind: snmp
        host: 192.0.2.80
        secret: env:PDU_COMMUNITY
        options: {preset: apc, outlet: 7}
      pdu-b-3:
        kind: snmp
        host: 192.0.2.81
        secret: env:PDU_PASSPHRASE
        options: {preset: raritan, outlet: 3, user: farm, auth: sha256}
      other:
        kind: snmp
        host: 192.0.2.82
        options: {oid: 1.3.6.1.4.1.9999.1.5.0, scale: 0.1}

Needs ``pip install 'jetfarm[snmp]'``. Strips tell whole watts, refreshed every few seconds. Tried
on net-snmp's agent with the presets' trees, not on a real strip yet.
"""

import time
from collections.abc import Callable
from math import nan

from farm.drivers.meter_dialogue import Measured, NoReading, PolledMeter, brief
from farm.drivers.snmp_session import SYS_DESCR, SYS_NAME, SnmpOptions, SnmpSession
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

MOST_DIGITS = 6


class SnmpMeter(PolledMeter):
    """One outlet, or one object."""

    Options = SnmpOptions
    hint = "An agent says nothing to a community that it does not know: is the secret right?"

    def __init__(
        self,
        spec: MeterSpec,
        options: SnmpOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        self._tree = options.tree()
        self._session = SnmpSession(spec, options, secret)

    async def _identify(self) -> MeterFacts:
        description, name = await self._session.get(SYS_DESCR, SYS_NAME)
        where = brief(str(name)) if name else self._spec.host
        model = brief(str(description)) if description else "SNMP agent"
        return MeterFacts(model, f"{where}/{self._tree.power}")

    async def _measure(self) -> Measured:
        tree = self._tree
        wanted = [oid for oid in (tree.power, tree.energy, tree.digits) if oid]
        told = dict(zip(wanted, await self._session.get(*wanted), strict=True))
        power = _number(told[tree.power])
        if power is None:
            raise NoReading(MissKind.NO_DATA, f"the agent has no {tree.power}: not metered?")
        if power == -1:  # the strips' word for: this model does not measure it
            raise NoReading(MissKind.NO_DATA, "the strip says that it does not measure this")
        energy = _number(told.get(tree.energy)) if tree.energy else None
        scale = tree.scale
        if tree.digits:
            digits = _number(told.get(tree.digits))
            if digits is None or not 0 <= digits <= MOST_DIGITS:
                raise NoReading(MissKind.PROTOCOL, f"{brief(digits)} decimal digits")
            scale /= 10**digits
        has_energy = energy is not None and energy >= 0
        return Measured(power * scale, (energy or 0.0) * tree.energy_scale if has_energy else nan)

    async def close(self) -> None:
        """Close; never raises."""
        await super().close()
        self._session.close()

    async def _disconnect(self) -> None:
        """UDP keeps no connection that a late answer could come by."""


def _number(value: object) -> float | None:
    """An SNMP integer, or a string that some agents put numbers into. Raises NoReading."""
    if value is None:
        return None
    try:
        return float(str(value))
    except ValueError as error:
        raise NoReading(MissKind.PROTOCOL, f"no number: {brief(str(value))!r}") from error
