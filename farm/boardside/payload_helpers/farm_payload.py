"""What a payload tells farm, in one call each. Python 3.5 and later, standard library only.

    import farm_payload as farm

    batch = farm.params()["batch"]
    with farm.window():
        ...                         # the measured part
    farm.metric("throughput", 57.9, "images/s")
"""

import json
import os
import sys
import time
from contextlib import contextmanager

UNSUPPORTED = 77
_CLOCK_BOOTTIME = 7  # linux/time.h; the name came with Python 3.7


def params():
    """The trial's parameters, a dict."""
    with open(os.environ["FARM_PARAMS"], "rb") as file:
        return json.loads(file.read().decode("utf-8"))


def boot_time():
    """Seconds since boot, the clock that window events are told in."""
    try:
        return time.clock_gettime(_CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        with open("/proc/uptime") as file:
            return float(file.read().split()[0])


def _event(kind, **fields):
    """Append one line in one write: lines of several processes do not mix."""
    path = os.environ.get("FARM_EVENTS")
    if not path:  # run by hand: show it
        path = "/dev/stderr"
    fields["event"] = kind
    data = json.dumps(fields, sort_keys=True).encode("ascii") + b"\n"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


@contextmanager
def window(name="measured"):
    """The span within is measured. A window whose body raises has no end, so it does not count."""
    _event("window_begin", name=name, t=boot_time())
    yield
    _event("window_end", name=name, t=boot_time())


def metric(name, value, unit):
    """One number of the manifest's `metrics`."""
    _event("metric", name=name, value=float(value), unit=unit)


def progress(done, of):
    """How far it is."""
    _event("progress", done=done, of=of)


def note(text):
    """A remark that is kept with the attempt."""
    _event("note", text=str(text))


def unsupported(reason):
    """End: this board, engine or version cannot do it. A result, not a failure."""
    _event("unsupported", reason=str(reason))
    sys.exit(UNSUPPORTED)


def out_path(name):
    """Where to write an artifact; its folder is made."""
    path = os.path.join(os.environ.get("FARM_OUT", "."), name)
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    return path
