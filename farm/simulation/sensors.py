"""A simulated Jetson's own sensors in sysfs, fed by the physics: power rails and temperatures.

Up to L4T R32 the monitors are iio devices whose channels count from 0 and tell milliwatts;
from R34 on they are hwmon devices, channels count from 1, and power is volts times amperes. The
hwmon's number changes from boot to boot.
"""

from collections.abc import Iterator
from zlib import crc32

from farm.simulation.board_commands.board_files import BoardFacts, LiveState
from farm.simulation.board_commands.tegrastats_forms import FORMS, Rail, Sensor

THERMAL_FILE = "/sys/class/thermal/thermal_zone0/temp"

_FIRST_HWMON = 34
_FIRST_LOWER_CASE = 36
_INA238 = "2-0044"  # Thor's input, the one chip that tells power itself
_SHUNT_SUM = 7  # the channel that is no rail
_ODD_ZONES = {
    "PMIC": "PMIC-Die",
    "Tboard": "Tboard_tegra",
    "Tdiode": "Tdiode_tegra",
    "thermal": "thermal-fan-est",
}


def sensor_labels(facts: BoardFacts, boot_id: str) -> dict[str, str]:
    """What a boot makes: names of rails, of chips and of thermal zones."""
    labels = {}
    for folder, channel, rail in _channels(facts, boot_id):
        if facts.l4t < _FIRST_HWMON:
            labels[f"{folder}/rail_name_{channel}"] = rail.name
            continue
        chip = "ina238" if rail.chip == _INA238 else "ina3221"
        labels[f"{folder}/name"] = chip
        if chip == "ina3221":
            labels[f"{folder}/in{channel + 1}_label"] = rail.name
            labels[f"{folder}/in{_SHUNT_SUM}_label"] = "sum of shunt voltages"
            labels[f"{folder}/in{_SHUNT_SUM}_input"] = "0"
    for number, sensor in enumerate(_zones(facts)):
        labels[f"/sys/class/thermal/thermal_zone{number}/type"] = _zone_type(facts, sensor)
    return labels


def sensor_values(facts: BoardFacts, boot_id: str, state: LiveState) -> dict[str, str]:
    """What the sensors read now: mV, mA, mW (microwatts from an INA238), milli-degrees."""
    values = {}
    for folder, channel, rail in _channels(facts, boot_id):
        power_mw, voltage_mv = rail.milliwatts(state), round(rail.volts * 1000)
        current_ma = str(round(power_mw * 1000 / voltage_mv))
        if facts.l4t < _FIRST_HWMON:
            values[f"{folder}/in_voltage{channel}_input"] = str(voltage_mv)
            values[f"{folder}/in_current{channel}_input"] = current_ma
            values[f"{folder}/in_power{channel}_input"] = str(power_mw)
        elif rail.chip == _INA238:
            values[f"{folder}/power1_input"] = str(power_mw * 1000)
        else:
            values[f"{folder}/in{channel + 1}_input"] = str(voltage_mv)
            values[f"{folder}/curr{channel + 1}_input"] = current_ma
    zones = _zones(facts)
    for number, sensor in enumerate(zones):
        path = f"/sys/class/thermal/thermal_zone{number}/temp"
        values[path] = str(round(sensor.degrees(state) * 1000))
    return values


def _channels(facts: BoardFacts, boot_id: str) -> Iterator[tuple[str, int, Rail]]:
    """Each rail with its device's folder and its channel, counted from 0."""
    counts: dict[str, int] = {}
    for rail in FORMS[facts.kind].rails:
        channel = counts.get(rail.chip, 0)
        counts[rail.chip] = channel + 1
        number = len(counts) - 1
        if facts.l4t < _FIRST_HWMON:
            folder = f"/sys/bus/i2c/drivers/ina3221x/{rail.chip}/iio:device{number}"
        else:
            driver = "ina238" if rail.chip == _INA238 else "ina3221"
            hwmon = f"hwmon{3 + crc32(boot_id.encode()) % 3 + number}"
            folder = f"/sys/bus/i2c/drivers/{driver}/{rail.chip}/hwmon/{hwmon}"
        yield folder, channel, rail


def _zones(facts: BoardFacts) -> tuple[Sensor, ...]:
    """The sensors that are zones too; a zone of a block without power cannot be read at all."""
    if facts.kind in {"tx2", "nano"}:
        return (Sensor("CPU", step=0.5),)
    # A real gated zone answers EAGAIN, which a plain file cannot: it reads as if awake.
    return tuple(s for s in FORMS[facts.kind].sensors if s.step or s.above > 0)


def _zone_type(facts: BoardFacts, sensor: Sensor) -> str:
    if facts.l4t >= _FIRST_LOWER_CASE:
        return f"{sensor.name}-thermal"
    return _ODD_ZONES.get(sensor.name, f"{sensor.name}-therm")
