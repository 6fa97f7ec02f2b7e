"""What farm understands of a text that a board printed, for `farm parse`."""

import sys
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path

from farm.analysis.kernel_causes import kernel_causes
from farm.drivers.board_facts.cpuinfo import parse_cpuinfo
from farm.drivers.board_facts.lscpu import parse_lscpu
from farm.drivers.board_facts.nv_tegra_release import parse_l4t_release
from farm.drivers.board_facts.vcgencmd import (
    parse_clock,
    parse_pmic_adc,
    parse_temperature,
    parse_throttled,
    parse_volts,
    pmic_watts,
)
from farm.drivers.power_modes.jetson_clocks import parse_clocks, parse_complaints
from farm.drivers.power_modes.nvpmodel_conf import (
    gpu_masks,
    mode_table,
    parse_conf,
    parse_printed_conf,
)
from farm.drivers.power_modes.nvpmodel_output import parse_query, parse_set_output, parse_values
from farm.drivers.telemetry.tegrastats import TegrastatsTelemetry
from farm.drivers.telemetry.tegrastats_line import parse_line
from farm.errors import ConfigError

LARGEST_BYTES = 32 * 1024 * 1024
"""Assumed: a night of tegrastats lines, one a second, has about 30 MB."""

OTHER_LINES_SHOWN = 20


def parse_file(kind: str, path: Path | None) -> object:
    """What farm understands of a file, or of stdin, as JSON values.

    Raises ConfigError for an unknown kind and for a file that cannot be read.
    """
    if kind not in PARSERS:
        near = get_close_matches(kind, PARSERS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"nothing parses {kind!r}; kinds: {', '.join(sorted(PARSERS))}.{hint}")
    return PARSERS[kind](_read(path))


def _read(path: Path | None) -> str:
    name = str(path) if path is not None else "stdin"
    try:
        if path is None:
            content = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=name) from error
    if len(content) > LARGEST_BYTES:
        raise ConfigError(f"larger than {LARGEST_BYTES} bytes", file=name)
    return content.decode("utf-8", "replace")


def _tegrastats(text: str) -> object:
    telemetry = TegrastatsTelemetry()
    samples: list[object] = []
    others: list[str] = []
    for line in text.splitlines():
        sample = parse_line(line)
        if sample.is_sample:
            samples.append({**_members(sample), "channels": dict(telemetry.parse(line))})
        elif line.strip():
            others.append(line.strip())
    return {"samples": samples, "other_lines": others[:OTHER_LINES_SHOWN]}


def _nvpmodel_query(text: str) -> object:
    answer = parse_query(text)
    return {
        "mode": None if answer is None else _json(answer),
        "values": _json(parse_values(text)),
        "complaints": _json(parse_set_output(text)),
    }


def _nvpmodel_conf(text: str) -> object:
    is_printed = "NVPM VERB:" in text
    conf = parse_printed_conf(text) if is_printed else parse_conf(text)
    table = mode_table(conf, "nvpmodel -p" if is_printed else "nvpmodel.conf")
    paths: dict[str, dict[str, str]] = {}
    for (param, arg), path in conf.paths.items():
        paths.setdefault(param, {})[arg] = path
    modes = zip(table.modes, conf.modes, strict=True)
    return {
        "default": table.default,
        "default_id": conf.default_id,
        "digest": table.digest,
        "modes": [{**one.model_dump(), "gpu_masks": gpu_masks(mode)} for one, mode in modes],
        "params": {
            name: {"type": kind, "paths": paths.get(name, {})} for name, kind in conf.kinds.items()
        },
    }


def _nvpmodel_output(text: str) -> object:
    report = parse_set_output(text)
    return {"meaning": report.meaning.value, "outcome": report.outcome, **_members(report)}


def _jetson_clocks(text: str) -> object:
    shown = parse_clocks(text)
    complaints = _json(parse_complaints(text))
    return {"is_locked": shown.is_locked, **_members(shown), "complaints": complaints}


def _l4t_release(text: str) -> object:
    release = parse_l4t_release(text)
    return None if release is None else {"name": release.name, **_members(release)}


def _vcgencmd(text: str) -> object:
    rails = parse_pmic_adc(text)
    return {
        "throttled": _json(parse_throttled(text)),
        "temperature_c": parse_temperature(text),
        "clock_hz": parse_clock(text),
        "volts": parse_volts(text),
        "rails": _json(rails),
        "rails_w": pmic_watts(rails),
    }


def _kernel(text: str) -> object:
    return {"causes": [cause.model_dump() for cause in kernel_causes(text)]}


PARSERS: Mapping[str, Callable[[str], object]] = {
    "cpuinfo": lambda text: _json(parse_cpuinfo(text)),
    "jetson-clocks": _jetson_clocks,
    "kernel": _kernel,
    "l4t-release": _l4t_release,
    "lscpu": lambda text: _json(parse_lscpu(text)),
    "nvpmodel-conf": _nvpmodel_conf,
    "nvpmodel-output": _nvpmodel_output,
    "nvpmodel-query": _nvpmodel_query,
    "tegrastats": _tegrastats,
    "vcgencmd": _vcgencmd,
}
"""Kind -> what makes JSON values of its text. None of them raises for a text's content."""


def _members(value: object) -> dict[str, object]:
    """The fields of one of the parsers' dataclasses."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is no dataclass")
    return {one.name: _json(getattr(value, one.name)) for one in fields(value)}


def _json(value: object) -> object:
    """`value` in JSON's own types."""
    if is_dataclass(value):
        return _members(value)
    if isinstance(value, Mapping):
        return {str(key): _json(one) for key, one in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(str(one) for one in value)
    if isinstance(value, list | tuple):
        return [_json(one) for one in value]
    return value
