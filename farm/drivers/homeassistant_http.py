"""Home Assistant's REST API, for the meter and the outlet: one entity's state, one service.

Manual: developers.home-assistant.io/docs/api/rest. Tried on protocol servers, not on a real
Home Assistant yet.
"""

from pydantic import Field

from farm.drivers.meter_dialogue import NoReading, brief
from farm.drivers.meter_http import HttpSource, Json, fields
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind

_ENTITY = r"^[a-z0-9_]+\.[a-z0-9_]+$"


class HomeassistantOptions(Record):
    """`entity` is the power sensor, `energy_entity` its counter, `switch_entity` its switch.

    `stale_s`: a value that was not reported for so long is no reading. Home Assistant reports
    as often as the device behind it does.
    """

    entity: str = Field(pattern=_ENTITY)
    energy_entity: str | None = Field(default=None, pattern=_ENTITY)
    switch_entity: str | None = Field(default=None, pattern=_ENTITY)
    stale_s: float = Field(default=60.0, gt=0)
    tls: bool = False


class HomeassistantConnection:
    """One server with a long-lived access token."""

    def __init__(self, spec: MeterSpec, *, is_tls: bool, secret: str | None) -> None:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        self.http = HttpSource(spec, port=8123, is_tls=is_tls, headers=headers)

    async def state(self, entity: str) -> Json:
        """The state object. Raises NoReading, ValueError."""
        told = await self.http.json(f"/api/states/{entity}")
        if not isinstance(told, dict) or not isinstance(told.get("state"), str):
            raise NoReading(MissKind.PROTOCOL, f"no state of {entity}: {brief(told)}")
        if told["state"] in ("unavailable", "unknown", ""):
            raise NoReading(MissKind.NO_DATA, f"{entity} is {told['state'] or 'empty'}")
        return told

    async def config(self) -> Json:
        """Who the server is."""
        return fields(await self.http.json("/api/config"))

    async def turn(self, entity: str, *, to_on: bool) -> None:
        """Call ``turn_on`` or ``turn_off`` of the entity's domain."""
        domain = entity.partition(".")[0]
        path = f"/api/services/{domain}/turn_{'on' if to_on else 'off'}"
        await self.http.text(path, post={"entity_id": entity})
