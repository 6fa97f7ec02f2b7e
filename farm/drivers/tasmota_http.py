"""Tasmota's web command interface, ``/cm?cmnd=...``, for the meter and the outlet.

Manual: tasmota.github.io/docs/Commands. Without the right password Tasmota answers 200 with a
``WARNING``, so the status proves nothing. Tried on protocol servers, not on a real plug yet.
"""

from pydantic import Field

from farm.drivers.meter_dialogue import NoReading
from farm.drivers.meter_http import HttpSource, Json, fields
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind


class TasmotaOptions(Record):
    """`channel`: which relay and, where a device meters several, which reading; from 1.

    `user` is the web user, ``admin`` unless it was changed.
    """

    channel: int = Field(default=1, ge=1, le=8)
    user: str = "admin"


class TasmotaConnection:
    """Commands to one device."""

    def __init__(self, spec: MeterSpec, options: TasmotaOptions, secret: str | None) -> None:
        self._login = {} if secret is None else {"user": options.user, "password": secret}
        self._http = HttpSource(spec, port=80, is_tls=False)

    async def command(self, words: str) -> Json:
        """One command's answer. Raises NoReading, ValueError."""
        answer = await self._http.json("/cm", {"cmnd": words} | self._login)
        if not isinstance(answer, dict):
            raise NoReading(MissKind.PROTOCOL, "no JSON object")
        if "WARNING" in answer:
            text = "refused the password" if self._login else "needs a password"
            raise NoReading(MissKind.AUTH, text)
        if fields(answer).get("Command") in ("Unknown", "Error"):
            raise NoReading(MissKind.NO_DATA, f"the device does not know {words!r}")
        return answer

    async def close(self) -> None:
        """Drop the connection."""
        await self._http.close()
