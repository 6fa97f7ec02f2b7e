"""What stands under ``options:`` of an ``mqtt-json`` meter or outlet, and the presets' topics."""

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from farm.model.record import Record


@dataclass(frozen=True, slots=True)
class Topics:
    """Where a device talks. ``{device}`` and ``{channel}`` are filled in; "" is none.

    `path` and the like lead into the JSON, "" is the whole of it. `request` asks for a message.
    """

    topic: str
    path: str = ""
    energy_path: str = ""
    energy_unit: str = "kWh"
    voltage_path: str = ""
    current_path: str = ""
    output_path: str = ""
    request_topic: str = ""
    request: str = ""
    alive_topic: str = ""
    offline: str = ""
    set_topic: str = ""
    on: str = "ON"
    off: str = "OFF"
    state_topic: str = ""
    state_request_topic: str = ""
    state_request: str = ""
    state_path: str = ""


PRESETS = {
    # tasmota.github.io/docs/MQTT and /Commands: Status 8 is the sensors, Power the relay.
    "tasmota": Topics(
        topic="stat/{device}/STATUS8",
        path="StatusSNS.ENERGY.Power",
        energy_path="StatusSNS.ENERGY.Total",
        voltage_path="StatusSNS.ENERGY.Voltage",
        current_path="StatusSNS.ENERGY.Current",
        request_topic="cmnd/{device}/STATUS",
        request="8",
        alive_topic="tele/{device}/LWT",
        offline="Offline",
        set_topic="cmnd/{device}/POWER{channel}",
        state_topic="stat/{device}/POWER",
        state_request_topic="cmnd/{device}/POWER{channel}",
    ),
    # zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages
    "zigbee2mqtt": Topics(
        topic="zigbee2mqtt/{device}",
        path="power",
        energy_path="energy",
        voltage_path="voltage",
        current_path="current",
        output_path="state",
        alive_topic="zigbee2mqtt/{device}/availability",
        offline="offline",
        set_topic="zigbee2mqtt/{device}/set",
        on='{"state": "ON"}',
        off='{"state": "OFF"}',
        state_topic="zigbee2mqtt/{device}",
        state_path="state",
        state_request_topic="zigbee2mqtt/{device}/get",
        state_request='{"state": ""}',
    ),
    # shelly-api-docs.shelly.cloud/gen2, MQTT control of Switch: the topic prefix is the device.
    "shelly": Topics(
        topic="{device}/status/switch:{channel}",
        path="apower",
        energy_path="aenergy.total",
        energy_unit="Wh",
        voltage_path="voltage",
        current_path="current",
        output_path="output",
        request_topic="{device}/command/switch:{channel}",
        request="status_update",
        alive_topic="{device}/online",
        offline="false",
        set_topic="{device}/command/switch:{channel}",
        on="on",
        off="off",
        state_topic="{device}/status/switch:{channel}",
        state_path="output",
        state_request_topic="{device}/command/switch:{channel}",
        state_request="status_update",
    ),
    # esphome.io/components/mqtt: one topic for each sensor, the bare number in it.
    "esphome": Topics(
        topic="{device}/sensor/{sensor}/state",
        alive_topic="{device}/status",
        offline="offline",
        set_topic="{device}/switch/{switch}/command",
        state_topic="{device}/switch/{switch}/state",
    ),
}

_TOPIC = r"^[^#+\x00-\x1f]{0,200}$"


class MqttJsonOptions(Record):
    """A preset with its device, or a topic of one's own. The broker is the meter's host.

    `channel` is a relay's number as the device counts (Tasmota "" or 1.., Shelly 0..);
    `sensor` and `switch` are ESPHome's names. `request_topic` is published to for each reading.
    """

    preset: Literal["tasmota", "zigbee2mqtt", "shelly", "esphome"] | None = None
    device: str = Field(default="", pattern=_TOPIC)
    channel: int | None = Field(default=None, ge=0, le=16)
    sensor: str = Field(default="power", pattern=_TOPIC)
    switch: str = Field(default="relay", pattern=_TOPIC)
    topic: str = Field(default="", pattern=_TOPIC)
    path: str = ""
    energy_path: str = ""
    request_topic: str = Field(default="", pattern=_TOPIC)
    request: str = ""
    unit: Literal["mW", "W", "kW"] = "W"
    energy_unit: Literal["mWh", "Wh", "kWh", "MWh", "J", "Wmin"] = "kWh"
    user: str | None = None
    tls: bool = False

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.preset is None) == (not self.topic):
            raise ValueError('either "preset" or "topic"')
        if self.preset is not None and not self.device:
            raise ValueError(f'the preset "{self.preset}" needs "device"')
        return self

    def topics(self) -> Topics:
        """The preset's with all filled in, or the user's own."""
        if self.preset is None:
            return Topics(
                topic=self.topic,
                path=self.path,
                energy_path=self.energy_path,
                energy_unit=self.energy_unit,
                request_topic=self.request_topic,
                request=self.request,
            )
        preset = PRESETS[self.preset]
        usual = 0 if self.preset == "shelly" else ""
        names = {
            "device": self.device,
            "channel": usual if self.channel is None else self.channel,
            "sensor": self.sensor,
            "switch": self.switch,
        }
        filled = {
            name: getattr(preset, name).format(**names)
            for name in preset.__slots__
            if name.endswith("topic")
        }
        if self.preset == "tasmota" and self.channel:
            filled["state_topic"] += str(self.channel)
        kept = {name: getattr(preset, name) for name in preset.__slots__ if name not in filled}
        return Topics(**filled, **kept)
