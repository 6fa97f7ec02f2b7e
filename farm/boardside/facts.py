"""What the board is: the hello, its temperature, and what else can be read without root."""

import os
import re
import sys

from place import boot_time

VERSION = 1
THERMAL = "/sys/class/thermal"
UNREAL_ZONES = ("PMIC-Die", "PMIC")  # Jetson's PMIC zone is a constant 100 C, no measurement
LOWEST_C = -200.0  # -256 is what tegra thermal zones say for "off" (GPU rail down)


def hello(place):
    """The agent's first line."""
    system = os.uname()
    disk = os.statvfs(place.work)
    return {
        "farm": "hello",
        "version": VERSION,
        "boot_id": place.boot_id(),
        "t": boot_time(),
        "pid": os.getpid(),
        "uid": os.getuid(),
        "machine": system.machine,
        "kernel": system.release,
        "model": model(place),
        "l4t": l4t(place),
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "cpu_count": cpu_count(place),
        "memory_mb": memory_mb(place),
        "free_mb": disk.f_bavail * disk.f_frsize // (1024 * 1024),
        "is_simulated": os.path.exists(place.rooted("/etc/farm-simulated")),
        "work_dir": place.work,
        "path": place.pyz,
    }


def model(place):
    """The board's own name: the device tree's, else the DMI product name."""
    return (
        place.read_text("/proc/device-tree/model")
        or place.read_text("/sys/firmware/devicetree/base/model")
        or place.read_text("/sys/class/dmi/id/product_name")
    )


def l4t(place):
    """Jetson Linux release, e.g. ``R32.7.2``, from nv_tegra_release's first line; else ''."""
    text = place.read_text("/etc/nv_tegra_release")
    found = re.match(r"#\s*R(\d+)\s*\(release\),\s*REVISION:\s*([0-9.]+)", text)
    return "R{}.{}".format(found.group(1), found.group(2)) if found else ""


def cpu_count(place):
    """How many cores the board has, offline ones included."""
    count = 0
    for part in place.read_text("/sys/devices/system/cpu/present").split(","):
        found = re.match(r"(\d+)(?:-(\d+))?\Z", part)
        if found:
            count += int(found.group(2) or found.group(1)) - int(found.group(1)) + 1
    return count or os.cpu_count() or 0


def memory_mb(place):
    """MemTotal in MB, 0 if unknown."""
    found = re.search(r"MemTotal:\s+(\d+) kB", place.read_text("/proc/meminfo"))
    return int(found.group(1)) // 1024 if found else 0


def zones(place):
    """Thermal zones: name to degrees Celsius, unreal ones left out."""
    result = {}
    try:
        names = sorted(os.listdir(place.rooted(THERMAL)))
    except OSError:
        return result
    for name in names:
        if not name.startswith("thermal_zone"):
            continue
        kind = place.read_text("{}/{}/type".format(THERMAL, name)) or name
        text = place.read_text("{}/{}/temp".format(THERMAL, name))
        if kind in UNREAL_ZONES or not re.match(r"-?\d+\Z", text):
            continue
        celsius = int(text) / 1000.0
        if celsius > LOWEST_C:
            result[kind if kind not in result else name] = celsius
    return result


def temperature(place):
    """The hottest zone in degrees Celsius, or None."""
    return max(zones(place).values(), default=None)


def facts(place):
    """What can be read without root."""
    compatible = (place.read("/proc/device-tree/compatible") or b"").split(b"\0")
    load = place.read_text("/proc/loadavg").split()
    return {
        "compatible": [name.decode("ascii", "replace") for name in compatible if name],
        "l4t_release": place.read_text("/etc/nv_tegra_release").split("\n")[0],
        "os_release": place.read_text("/etc/os-release"),
        "cpu_online": place.read_text("/sys/devices/system/cpu/online"),
        "governor": place.read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "load_1m": float(load[0]) if load else None,
        "zones_c": zones(place),
    }
