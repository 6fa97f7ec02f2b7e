"""A device profile: what all boards of one type share. Data only, every figure with its source."""

from typing import Literal

from pydantic import Field

from farm.model.power_mode import PowerMode
from farm.model.record import Record


class Figure(Record):
    """A number with where it comes from. `basis`: documented, measured on …, derived, assumed."""

    value: float
    source: str


class Peak(Record):
    """Peak arithmetic rate in 10^12 operations/s for one precision and power mode."""

    precision: str
    power_mode: str | None = None
    tops: float
    source: str


class Identification(Record):
    """How to recognise the board. Part numbers as in the device tree's `compatible`."""

    compatible: tuple[str, ...] = ()
    model: tuple[str, ...] = ()


class SimulationModel(Record):
    """The physics of a simulated board of this type. All watts are at the socket.

    `idle_w` is by power mode ("" for boards with one mode); `cpu_w` is what one busy core
    adds; `thermal_resistance_c_per_w` and `thermal_time_s` heat the board.
    """

    nvpmodel_conf: str | None = None
    idle_w: dict[str, float] = Field(default_factory=dict)
    cpu_w: float = 1.0
    thermal_resistance_c_per_w: float = 2.0
    thermal_time_s: float = 60.0


class BoardProfile(Record):
    """What all boards of a type share."""

    name: str
    summary: str
    identify: Identification = Identification()
    power_controller: Literal["nvpmodel", "fixed"] = "fixed"
    cores: int = Field(ge=1)
    memory_gb: float | None = None
    power_modes: tuple[PowerMode, ...] = ()
    default_power_mode: str | None = None
    peaks: tuple[Peak, ...] = ()
    memory_bandwidth_gbs: Figure | None = None
    price_usd: Figure | None = None
    max_temperature_c: Figure | None = None
    simulation: SimulationModel | None = None
