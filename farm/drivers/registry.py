"""The name in a file -> the driver's class. Nothing is imported before it is asked for.

A driver of ours is one line in a table below; one of yours is an entry point of the group
``farm.transports``, ``farm.power_controllers``, ``farm.meters``, ``farm.outlets`` or
``farm.telemetry``, e.g. in pyproject.toml::

    [project.entry-points."farm.meters"]
    my-plug = "my_package.my_plug:MyPlugMeter"

docs/writing-a-driver.md tells what a class owes. All functions raise DriverError.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from farm.errors import DriverError
from farm.interfaces.agent import BoardCommands
from farm.interfaces.meter import Meter
from farm.interfaces.notifier import Notifier
from farm.interfaces.outlet import Outlet
from farm.interfaces.power_controller import PowerController
from farm.interfaces.telemetry import Telemetry
from farm.interfaces.transport import Transport
from farm.model.board import MeterSpec
from farm.model.notify import NotifySpec
from farm.model.profile import BoardProfile
from farm.model.record import Record

TRANSPORTS = {
    "asyncssh": "farm.drivers.transports.asyncssh:AsyncsshTransport",
    "fabric": "farm.drivers.transports.fabric:FabricTransport",
}
POWER_CONTROLLERS = {
    "cpufreq": "farm.drivers.power_modes.cpufreq:CpufreqPowerController",
    "fixed": "farm.drivers.power_modes.fixed:FixedPowerController",
    "nvidia-smi": "farm.drivers.power_modes.nvidia_smi:NvidiaSmiPowerController",
    "nvpmodel": "farm.drivers.power_modes.nvpmodel:NvpmodelPowerController",
}
TELEMETRY = {
    "files": "farm.drivers.telemetry.files:FilesTelemetry",
    "tegrastats": "farm.drivers.telemetry.tegrastats:TegrastatsTelemetry",
}
METERS = {
    "command": "farm.drivers.meters.command:CommandMeter",
    "csv": "farm.drivers.meters.csv:CsvMeter",
    "homeassistant": "farm.drivers.meters.homeassistant:HomeassistantMeter",
    "kasa": "farm.drivers.meters.kasa:KasaMeter",
    "modbus": "farm.drivers.meters.modbus:ModbusMeter",
    "mqtt-json": "farm.drivers.meters.mqtt_json:MqttJsonMeter",
    "prometheus": "farm.drivers.meters.prometheus:PrometheusMeter",
    "ptdaemon": "farm.drivers.meters.ptdaemon:PtdaemonMeter",
    "scpi": "farm.drivers.meters.scpi:ScpiMeter",
    "shelly": "farm.drivers.meters.shelly:ShellyMeter",
    "snmp": "farm.drivers.meters.snmp:SnmpMeter",
    "tapo": "farm.drivers.meters.tapo:TapoMeter",
    "tasmota": "farm.drivers.meters.tasmota:TasmotaMeter",
}
OUTLETS = {
    "command": "farm.drivers.outlets.command:CommandOutlet",
    "homeassistant": "farm.drivers.outlets.homeassistant:HomeassistantOutlet",
    "kasa": "farm.drivers.outlets.kasa:KasaOutlet",
    "mqtt-json": "farm.drivers.outlets.mqtt_json:MqttJsonOutlet",
    "shelly": "farm.drivers.outlets.shelly:ShellyOutlet",
    "snmp": "farm.drivers.outlets.snmp:SnmpOutlet",
    "tapo": "farm.drivers.outlets.tapo:TapoOutlet",
    "tasmota": "farm.drivers.outlets.tasmota:TasmotaOutlet",
}
NOTIFIERS = {
    "apprise": "farm.drivers.notifiers.apprise:AppriseNotifier",
    "command": "farm.drivers.notifiers.command:CommandNotifier",
    "webhook": "farm.drivers.notifiers.webhook:WebhookNotifier",
}

INSTALL = {
    "aiomqtt": "pip install 'jetfarm[mqtt]'",
    "kasa": "pip install 'jetfarm[kasa]'",
    "pymodbus": "pip install 'jetfarm[modbus]'",
    "pysnmp": "pip install 'jetfarm[snmp]'",
    "apprise": "pip install 'jetfarm[notify]'",
    "aiohttp": "pip install aiohttp",
    "asyncssh": "pip install asyncssh",
    "fabric": "pip install 'fabric>=3.2' 'paramiko>=3.5'",
    "invoke": "pip install 'fabric>=3.2' 'paramiko>=3.5'",
    "paramiko": "pip install 'fabric>=3.2' 'paramiko>=3.5'",
}
"""Libraries that a driver of ours may miss, and the command that brings them."""


class MeterClass(Protocol):
    """A meter's class: `Options` are the keys under ``options:`` in the inventory."""

    Options: type[Record]

    def __call__(self, spec: MeterSpec, options: Record, secret: str | None) -> Meter:
        """Make the meter; nothing is connected before `open`."""


class OutletClass(Protocol):
    """An outlet's class, made like a meter's."""

    Options: type[Record]

    def __call__(self, spec: MeterSpec, options: Record, secret: str | None) -> Outlet:
        """Make the outlet; nothing is connected before it is used."""


class NotifierClass(Protocol):
    """A notifier's class, made for one message."""

    Options: type[Record]

    def __call__(self, spec: NotifySpec, options: Record, secret: str | None) -> Notifier:
        """Make it; `secret` is what `spec.url` refers to. Raises ConfigError for a wrong spec."""


def transport_class(name: str) -> Callable[..., Transport]:
    """The transport of that name; its arguments are its own (see its docstring)."""
    loaded: Callable[..., Transport] = _load("transport", "farm.transports", TRANSPORTS, name)
    return loaded


def power_controller_class(
    name: str,
) -> Callable[[BoardCommands, BoardProfile], PowerController]:
    """The power controller of that name."""
    loaded: Callable[[BoardCommands, BoardProfile], PowerController] = _load(
        "power controller", "farm.power_controllers", POWER_CONTROLLERS, name
    )
    return loaded


def telemetry_class(name: str) -> Callable[[], Telemetry]:
    """The telemetry driver of that name."""
    loaded: Callable[[], Telemetry] = _load("telemetry", "farm.telemetry", TELEMETRY, name)
    return loaded


def meter_class(kind: str) -> MeterClass:
    """The meter of that kind."""
    loaded: MeterClass = _load("meter", "farm.meters", METERS, kind)
    return loaded


def outlet_class(kind: str) -> OutletClass:
    """The outlet of that kind."""
    loaded: OutletClass = _load("outlet", "farm.outlets", OUTLETS, kind)
    return loaded


def notifier_class(kind: str) -> NotifierClass:
    """The notifier of that kind."""
    loaded: NotifierClass = _load("notifier", "farm.notifiers", NOTIFIERS, kind)
    return loaded


def known(group: str, table: Mapping[str, str]) -> dict[str, str]:
    """The table merged with the entry points of that group, name -> ``module:Class``."""
    return merged(group, table, _installed(group))


@cache
def _installed(group: str) -> tuple[EntryPoint, ...]:
    """Read once: it looks at each installed package, 5 ms for what is asked for each board."""
    return tuple(entry_points(group=group))


def merged(group: str, table: Mapping[str, str], points: Iterable[EntryPoint]) -> dict[str, str]:
    """`table` and `points` as one. A name that two of them claim is an error, not a choice."""
    names = dict(table)
    for point in points:
        if names.get(point.name, point.value) != point.value:
            raise DriverError(
                f"two drivers are called {point.name!r} in {group}: {names[point.name]} and "
                f"{point.value}. Rename one, or uninstall its package."
            )
        names[point.name] = point.value
    return names


def _load(  # type: ignore[no-untyped-def]  # noqa: ANN202 - each caller states the type it gets
    what: str, group: str, table: Mapping[str, str], name: str
):
    names = known(group, table)
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise DriverError(f"no {what} {name!r}; known: {', '.join(sorted(names))}.{hint}")
    module, _, attribute = names[name].partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise DriverError(_missing(what, name, module, error)) from error
    except (ImportError, AttributeError) as error:
        text = f"{what} {name!r} does not load from {names[name]}: {error}"
        raise DriverError(text) from error


def _missing(what: str, name: str, module: str, error: ModuleNotFoundError) -> str:
    library = (error.name or "").partition(".")[0]
    if library == module.partition(".")[0]:
        return f"{what} {name!r} does not load: there is no module {error.name}"
    command = INSTALL.get(library, f"pip install {library}")
    return f"{what} {name!r} needs the library {library}: run `{command}`"
