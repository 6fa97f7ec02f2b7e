"""A cell's parameters: the axes' values checked against the manifest, defaults filled in."""

from collections.abc import Mapping
from math import isfinite

from farm.errors import ConfigError
from farm.model.payload import Parameter, PayloadManifest
from farm.model.record import Scalar
from farm.planning.selection import nearest


def fill_parameters(manifest: PayloadManifest, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """All parameters of the payload, by name: the values given, else the manifest's defaults.

    A whole number given for a `float` parameter becomes a float, so that 1 and 1.0 are one
    cell.

    Raises:
        ConfigError: an unknown parameter, one without value and default, a value that the
            manifest does not allow.
    """
    for name in given:
        if name not in manifest.parameters:
            raise ConfigError(
                f"payload {manifest.name}: no parameter {name!r}"
                f"{nearest(name, list(manifest.parameters))}"
            )
    filled: dict[str, Scalar] = {}
    for name in sorted(manifest.parameters):
        parameter = manifest.parameters[name]
        value = given.get(name, parameter.default)
        if value is None:
            raise ConfigError(
                f"payload {manifest.name}: parameter {name!r} has no default;"
                " give it a value in the sweep's axes"
            )
        filled[name] = _checked(manifest.name, name, parameter, value)
    return filled


def _checked(payload: str, name: str, parameter: Parameter, value: Scalar) -> Scalar:
    where = f"payload {payload}: parameter {name}={value!r}"
    if parameter.type == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value).__name__ != parameter.type:
        raise ConfigError(f"{where} is not of type {parameter.type}")
    if parameter.choices and value not in parameter.choices:
        allowed = ", ".join(str(choice) for choice in parameter.choices)
        raise ConfigError(f"{where} is none of {allowed}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_range(where, parameter, value)
    return value


def _check_range(where: str, parameter: Parameter, value: float) -> None:
    if not isfinite(value):
        raise ConfigError(f"{where} is not a finite number")
    if parameter.minimum is not None and value < parameter.minimum:
        raise ConfigError(f"{where} is below the minimum {parameter.minimum:g}")
    if parameter.maximum is not None and value > parameter.maximum:
        raise ConfigError(f"{where} is above the maximum {parameter.maximum:g}")
