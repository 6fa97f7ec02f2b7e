"""Meters that publish over MQTT: Tasmota, Zigbee2MQTT, Shelly, ESPHome, and any JSON.

In the inventory::

    meters:
      plug-1:
        kind: mqtt-json
        host: 192.0.2.70                  # the broker
        secret: env:MQTT_PASSWORD
        options: {preset: tasmota, device: plug1, user: farm}
      plug-2:
        kind: mqtt-json
        host: 192.0.2.70
        options: {preset: zigbee2mqtt, device: "rack/plug 2"}
        update_s: 10
        deadline_s: 15                    # it tells when it likes: wait for longer than that
      other:
        kind: mqtt-json
        host: 192.0.2.70
        options: {topic: lab/meter/3, path: data.power_mw, unit: mW}

Needs ``pip install 'jetfarm[mqtt]'``. Only messages that arrive while farm listens are readings,
each once and stamped with its arrival: a retained one may be from yesterday. Presets with a
request topic are asked for each reading. Tried with mosquitto and made-up devices, not with real
ones yet.
"""

import json
import time
from collections.abc import Callable

from farm.drivers.meter_dialogue import (
    WATT_HOURS,
    WATTS,
    Measured,
    NoReading,
    PolledMeter,
    brief,
    optional,
    required,
)
from farm.drivers.meter_http import at_path
from farm.drivers.meter_mailbox import Mailbox
from farm.drivers.mqtt_json_options import MqttJsonOptions
from farm.drivers.mqtt_session import Message, MqttSession
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

_SWITCHED = {True: True, False: False, "ON": True, "OFF": False}


class MqttJsonMeter(PolledMeter):
    """One topic of one broker."""

    Options = MqttJsonOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: MqttJsonOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        self._options, self._secret = options, secret
        self._topics = options.topics()
        self._mailbox = Mailbox(monotonic)
        self._session: MqttSession | None = None
        self._is_offline = False

    async def _identify(self) -> MeterFacts:
        await self._connected()
        model = f"MQTT {self._options.preset or 'JSON'}"
        return MeterFacts(model, f"{self._spec.host}/{self._topics.topic}")

    async def _measure(self) -> Measured:
        if not self._topics.request_topic:
            await self._connected()
            return await self._mailbox.take()
        try:
            await self._request()
        except NoReading as miss:
            if miss.kind is not MissKind.REFUSED:
                raise
            await self._disconnect()  # the connection was cut since the last reading
            await self._request()
        return await self._mailbox.take()

    async def _request(self) -> None:
        session = await self._connected()
        self._mailbox.clear()
        await session.publish(self._topics.request_topic, self._topics.request)

    async def _connected(self) -> MqttSession:
        if self._session is None:
            self._is_offline = False
            self._session = MqttSession(
                self._spec,
                user=self._options.user,
                secret=self._secret,
                is_tls=self._options.tls,
                tell=self._hear,
            )
            await self._session.open((self._topics.topic, self._topics.alive_topic))
        if self._is_offline:
            raise NoReading(MissKind.NO_DATA, "the broker says that the device is offline")
        return self._session

    def _hear(self, message: Message | NoReading) -> None:
        if isinstance(message, NoReading):
            self._mailbox.put(message)
        elif message.topic == self._topics.alive_topic:
            told = message.text.strip()
            self._is_offline = told == self._topics.offline or _is_offline(told)
            if self._is_offline:
                self._mailbox.put(NoReading(MissKind.NO_DATA, "the device went offline"))
        elif not message.is_retained:
            try:
                self._mailbox.put(self._measured(message.text))
            except NoReading as miss:
                self._mailbox.put(miss)
            except (ValueError, RecursionError):
                text = f"no JSON: {brief(message.text)!r}"
                self._mailbox.put(NoReading(MissKind.PROTOCOL, text))

    def _measured(self, text: str) -> Measured:
        topics = self._topics
        told: object = json.loads(text) if topics.path else text.strip()
        power = at_path(told, topics.path) if topics.path else told
        output = at_path(told, topics.output_path) if topics.output_path else None
        is_on = _SWITCHED.get(output) if isinstance(output, bool | str) else None
        return Measured(
            required(power, "power", WATTS[self._options.unit]),
            energy_wh=self._extra(told, topics.energy_path) * WATT_HOURS[topics.energy_unit],
            voltage_v=self._extra(told, topics.voltage_path),
            current_a=self._extra(told, topics.current_path),
            is_output_on=is_on,
        )

    def _extra(self, told: object, path: str) -> float:
        return optional(at_path(told, path) if path else None)

    async def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        self._mailbox.clear()


def _is_offline(told: str) -> bool:
    """Zigbee2MQTT tells ``{"state": "offline"}``, older ones the bare word."""
    try:
        return at_path(json.loads(told), "state") == "offline"
    except (ValueError, RecursionError):
        return False
