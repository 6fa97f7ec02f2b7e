"""The older TP-Link plugs and strips, for meter and outlet: system and emeter questions."""

from collections.abc import Mapping

from farm.drivers.kasa_session import KasaSession
from farm.drivers.meter_dialogue import NoReading, brief
from farm.drivers.meter_http import Json, at_path, fields
from farm.drivers.tapo_options import KasaOptions
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class KasaPlug:
    """One outlet of one device."""

    def __init__(self, spec: MeterSpec, options: KasaOptions, secret: str | None) -> None:
        self._session = KasaSession(spec, options.language, user=options.user, secret=secret)
        self._child, self._child_id = options.child, ""

    async def sysinfo(self) -> Json:
        """Who it is, and its state. Raises NoReading."""
        told = await self._session.ask({"system": {"get_sysinfo": {}}})
        return fields(at_path(told, "system.get_sysinfo"))

    async def outlet(self) -> Json:
        """The part of `sysinfo` that is this outlet's. Raises NoReading."""
        told = await self.sysinfo()
        if self._child is None:
            return told
        child = fields(at_path(told, f"children.{self._child}"))
        found = child.get("id")
        if not isinstance(found, str):
            raise NoReading(MissKind.NO_DATA, f"the device has no outlet {self._child}")
        device = told.get("deviceId")
        is_short = len(found) <= 2 and isinstance(device, str)  # noqa: PLR2004 - a mere number
        self._child_id = f"{device}{found}" if is_short else found
        return child

    async def ask(self, part: str, question: str, arguments: Mapping[str, object]) -> Json:
        """The answer to one question to this outlet. Raises NoReading."""
        if self._child is not None and not self._child_id:
            await self.outlet()
        context = {"context": {"child_ids": [self._child_id]}} if self._child_id else {}
        told = await self._session.ask({**context, part: {question: dict(arguments)}})
        answer = fields(at_path(told, f"{part}.{question}"))
        code = answer.get("err_code", 0 if answer else at_path(told, f"{part}.err_code"))
        if code != 0:
            raise NoReading(MissKind.NO_DATA, f"{part}.{question}: error {brief(code)}")
        return answer

    async def close(self) -> None:
        """Drop the connection."""
        await self._session.close()
