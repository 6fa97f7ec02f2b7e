"""Small files of the kernel's that tell load, clocks, temperatures, rails and throttling.

Where they lie is found once; a reading opens what is there. Up to L4T R32 rails are iio devices
that count from 0 and tell milliwatts; from R34 on hwmon devices count from 1 and tell volts and
amperes, and an INA238 or INA226 microwatts. A sensor of a block without power answers EAGAIN.
"""

import glob
import re
import subprocess

from commands import command_environment
from facts import LOWEST_C, UNREAL_ZONES
from place import boot_time

MOST_FILES = 200
CPU = "/sys/devices/system/cpu"
GPU_NAME = re.compile(r"gp10b|gv11b|ga10b|(?:\A|[.-])gpu(?:\Z|-gpc)")
COOLING = re.compile(r"cpu|gpu|devfreq|thrott|balanced", re.IGNORECASE)
ZONE_END = re.compile(r"[-_](?:therm|thermal|tegra)\Z")
FIRMWARE = "/sys/devices/platform/soc/soc:firmware/get_throttled"  # Raspberry Pi's own kernel
VCGENCMD_S = 5.0
NUMBER = re.compile(r"-?\d{1,18}\Z")


class Source:
    """One or two files (their product) that give a figure for some channels."""

    def __init__(self, names, paths, scale, is_event=False):
        self.names, self.paths, self.scale = names, paths, scale
        self.is_event = is_event  # throttling and caps: no tool tells them

    def value(self, place):
        """The figure, or None when a file tells none."""
        value = self.scale
        for path in self.paths:
            text = (place.read(path, 32) or b"").strip().decode("ascii", "replace")
            if not NUMBER.match(text):
                return None
            value *= int(text)
        return round(value, 4)


class Readings:
    """All that this board has."""

    def __init__(self, place):
        self._place = place
        finders = (_zones, _cooling, _cpu_clocks, _gpu, _counters, _iio_rails, _hwmon_rails)
        found = [source for find in finders for source in find(place)]
        self._sources = _unique(found)[:MOST_FILES]
        self._ticks = {}  # name of a core -> (busy, all) ticks when last read
        self._firmware = Firmware(place)

    def names(self):
        """The channels that files may tell."""
        return [name for source in self._sources for name in source.names]

    def read(self, is_short):
        """Channel -> figure now. `is_short`: only what no tool tells."""
        values = {}
        for source in self._sources:
            if is_short and not source.is_event:
                continue
            value = source.value(self._place)
            is_asleep = source.names[0].startswith("temperature_c:") and (
                value is not None and value <= LOWEST_C
            )
            if value is not None and not is_asleep:
                for name in source.names:
                    values[name] = value
        bits = self._firmware.bits()
        if bits is not None:
            values["throttled_bits"] = bits
        if not is_short:
            self._read_loads(values)
        return values

    def _read_loads(self, values):
        """Load of each core since the last reading, percent."""
        data = self._place.read("/proc/stat", 32768) or b""
        for text in data.split(b"\n"):
            fields = text.split()
            if len(fields) < 6 or not fields[0].startswith(b"cpu") or fields[0] == b"cpu":
                continue
            numbers = [int(field) for field in fields[1:9]]
            total, name = sum(numbers), fields[0].decode("ascii")
            busy = total - numbers[3] - numbers[4]  # idle, iowait
            before = self._ticks.get(name)
            self._ticks[name] = (busy, total)
            if before is not None and total > before[1]:
                share = (busy - before[0]) / float(total - before[1])
                values["load_pct:" + name] = round(100 * min(max(share, 0.0), 1.0), 1)


class Firmware:
    """A Raspberry Pi's word on under-voltage and throttling: a file, else its own tool."""

    def __init__(self, place):
        self._place = place
        self._has_tool = False
        self._asked_at, self._known = 0.0, None
        is_pi = "raspberry" in place.read_text("/proc/device-tree/model").lower()
        self._has_file = place.read(FIRMWARE, 32) is not None
        self._has_tool = is_pi and not self._has_file

    def bits(self):
        """The bits of get_throttled, or None."""
        if self._has_file:
            return _hexadecimal(self._place.read_text(FIRMWARE))
        now = boot_time()
        if self._has_tool and (self._known is None or now - self._asked_at >= VCGENCMD_S):
            self._asked_at = now
            self._known = self._ask()
            self._has_tool = self._known is not None
        return self._known

    @staticmethod
    def _ask():
        try:
            text = subprocess.check_output(
                ["vcgencmd", "get_throttled"],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=command_environment(),
                timeout=2,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return _hexadecimal(text.decode("ascii", "replace").strip().partition("=")[2])


def _hexadecimal(text):
    try:
        return int(text, 16) & 0xFFFFFFFF
    except ValueError:
        return None


def _found(place, pattern):
    """Paths on the board that fit, in the order of the numbers in their names."""
    cut = len(place.root)
    paths = [path[cut:] for path in glob.glob(glob.escape(place.root) + pattern)]
    return sorted(paths, key=lambda path: [int(part) for part in re.findall(r"\d+", path)])


def _unique(sources):
    """The first of several sources for one channel."""
    known, kept = set(), []
    for source in sources:
        if known.isdisjoint(source.names):
            known.update(source.names)
            kept.append(source)
    return kept


def _zones(place):
    for path in _found(place, "/sys/class/thermal/thermal_zone*/temp"):
        kind = place.read_text(path[:-4] + "type")
        name = ZONE_END.sub("", kind).upper() or path.split("/")[-2].upper()
        if kind not in UNREAL_ZONES:
            yield Source(["temperature_c:" + name], [path], 0.001)


def _cooling(place):
    """Devices that make the board slower; a fan does not."""
    for path in _found(place, "/sys/class/thermal/cooling_device*/cur_state"):
        kind = place.read_text(path[: -len("cur_state")] + "type")
        if COOLING.search(kind) and "fan" not in kind.lower():
            number = re.findall(r"\d+", path)[-1]
            yield Source(["cooling_state:{}-{}".format(kind, number)], [path], 1, is_event=True)


def _cpu_clocks(place):
    for path in _found(place, CPU + "/cpufreq/policy*/scaling_max_freq"):
        folder = path[: -len("scaling_max_freq")]
        cores = place.read_text(folder + "related_cpus").split()
        yield from _clocks(["cpu" + core for core in cores if core.isdigit()], folder)
    for path in _found(place, CPU + "/cpu[0-9]*/cpufreq/scaling_max_freq"):
        yield from _clocks([path.split("/")[-3]], path[: -len("scaling_max_freq")])


def _clocks(cores, folder):
    if cores:
        names = ["clock_mhz:" + core for core in cores]
        yield Source(names, [folder + "scaling_cur_freq"], 0.001)
        names = ["cap_mhz:" + core for core in cores]
        yield Source(names, [folder + "scaling_max_freq"], 0.001, is_event=True)


def _gpu(place):
    for pattern in ("/sys/devices/gpu.0/load", "/sys/devices/platform/gpu.0/load"):
        for path in _found(place, pattern):
            yield Source(["load_pct:GPU"], [path], 0.1)
    paths = _found(place, "/sys/class/devfreq/*/max_freq")
    paths += _found(place, "/sys/devices/*/devfreq/*/max_freq")
    for path in paths:
        folder = path[: -len("max_freq")]
        if GPU_NAME.search(folder.split("/")[-2]):
            yield Source(["clock_mhz:GPU"], [folder + "cur_freq"], 1e-6)
            yield Source(["cap_mhz:GPU"], [path], 1e-6, is_event=True)


def _counters(place):
    for path in _found(place, "/sys/class/hwmon/hwmon*/oc*_event_cnt"):
        name = path.split("/")[-1].partition("_")[0]
        yield Source(["over_current_count:" + name], [path], 1, is_event=True)
    path = CPU + "/cpu0/thermal_throttle/package_throttle_count"
    if place.read(path, 32) is not None:
        yield Source(["throttle_count:package"], [path], 1, is_event=True)


def _iio_rails(place):
    for path in _found(place, "/sys/bus/i2c/drivers/ina3221x/*/iio*device*/rail_name_*"):
        folder, _, number = path.rpartition("/rail_name_")
        name = place.read_text(path)
        if name and name != "NC":
            power = "{}/in_power{}_input".format(folder, number)
            yield Source(["rail_mw:" + name], [power], 1)


def _hwmon_rails(place):
    for folder in _found(place, "/sys/bus/i2c/drivers/ina*/*/hwmon/hwmon*"):
        chip = place.read_text(folder + "/name")
        for path in _found(place, folder + "/power*_input"):
            yield Source(["rail_mw:" + ("VIN" if chip == "ina238" else chip)], [path], 0.001)
        for path in _found(place, folder + "/in*_label"):
            number = path.split("/in")[-1].partition("_")[0]
            name = place.read_text(path)
            current = "{}/curr{}_input".format(folder, number)
            if name and name != "NC" and place.read(current, 32) is not None:
                voltage = "{}/in{}_input".format(folder, number)
                yield Source(["rail_mw:" + name], [voltage, current], 0.001)
