"""Relays that are switched over MQTT, by the presets of the ``mqtt-json`` meter.

The inventory's entry is the meter's (`farm/drivers/meters/mqtt_json.py`). A relay's state counts
when the device tells it after it was asked, never when the broker had kept it.
"""

import asyncio
import json

from farm.drivers.device_outlet import DeviceOutlet
from farm.drivers.meter_dialogue import NoReading, brief
from farm.drivers.meter_http import at_path
from farm.drivers.mqtt_json_options import MqttJsonOptions
from farm.drivers.mqtt_session import Message, MqttSession
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

_STATES: dict[object, bool] = {True: True, False: False, "ON": True, "OFF": False}


class MqttJsonOutlet(DeviceOutlet):
    """One relay."""

    Options = MqttJsonOptions

    def __init__(self, spec: MeterSpec, options: MqttJsonOptions, secret: str | None) -> None:
        super().__init__(spec)
        self._options, self._secret = options, secret
        self._topics = options.topics()
        self._session: MqttSession | None = None
        self._told: asyncio.Queue[Message | NoReading] = asyncio.Queue()
        self._seen: bool | None = None

    async def _set(self, *, to_on: bool) -> None:
        if not self._topics.set_topic:
            raise NoReading(MissKind.NO_DATA, "only a preset can be switched")
        session = await self._connected()
        await session.publish(
            self._topics.set_topic, self._topics.on if to_on else self._topics.off
        )
        if not self._topics.state_request_topic:
            self._seen = await self._next(may_be_retained=False)

    async def _state(self) -> bool:
        session = await self._connected()
        if not self._topics.state_request_topic:  # such devices have the broker keep their state
            return await self._next(may_be_retained=True) if self._seen is None else self._seen
        while not self._told.empty():
            self._told.get_nowait()
        await session.publish(self._topics.state_request_topic, self._topics.state_request)
        return await self._next(may_be_retained=False)

    async def _next(self, *, may_be_retained: bool) -> bool:
        while True:
            message = await self._told.get()
            if isinstance(message, NoReading):
                raise message
            if message.is_retained and not may_be_retained:
                continue
            path, text = self._topics.state_path, message.text
            state: object = at_path(json.loads(text), path) if path else text.strip()
            if not isinstance(state, bool | str) or state not in _STATES:
                raise NoReading(MissKind.PROTOCOL, f"it tells no relay state: {brief(text)!r}")
            return _STATES[state]

    async def _connected(self) -> MqttSession:
        if self._session is None:
            self._session = MqttSession(
                self._spec,
                user=self._options.user,
                secret=self._secret,
                is_tls=self._options.tls,
                tell=self._told.put_nowait,
            )
            await self._session.open((self._topics.state_topic,))
        return self._session

    async def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        self._seen, self._told = None, asyncio.Queue()
