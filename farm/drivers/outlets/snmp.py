"""Switched outlets of power strips over SNMP, by the presets of the ``snmp`` meter.

Sources disagree on what a strip's command numbers mean, so the status is always read back, from
the table that tells it truly; see `farm/drivers/snmp_session.py`. The community must be allowed
to write.
"""

from farm.drivers.device_outlet import DeviceOutlet
from farm.drivers.meter_dialogue import NoReading, brief
from farm.drivers.snmp_session import SnmpOptions, SnmpSession
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class SnmpOutlet(DeviceOutlet):
    """One outlet of one strip."""

    Options = SnmpOptions

    def __init__(self, spec: MeterSpec, options: SnmpOptions, secret: str | None) -> None:
        super().__init__(spec)
        self._tree = options.tree()
        self._session = SnmpSession(spec, options, secret)

    async def _set(self, *, to_on: bool) -> None:
        tree = self._tree
        await self._session.set(self._given(tree.switch), tree.on if to_on else tree.off)

    async def _state(self) -> bool:
        tree = self._tree
        [status] = await self._session.get(self._given(tree.status))
        for number, state in ((tree.status_on, True), (tree.status_off, False)):
            if str(status) == str(number):
                return state
        raise NoReading(
            MissKind.PROTOCOL, f"a status that is neither on nor off: {brief(str(status))}"
        )

    def _given(self, oid: str) -> str:
        if not oid:
            raise NoReading(MissKind.NO_DATA, "farm knows no switch for this preset")
        return oid

    async def _disconnect(self) -> None:
        self._session.close()
