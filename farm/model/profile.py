"""A device profile: what all boards of one type share. Data only, every figure with its source."""

from collections.abc import Collection
from typing import Literal

from pydantic import Field

from farm.model.power_mode import PowerMode
from farm.model.record import Record


class Figure(Record):
    """A number with where it comes from. `basis`: documented, measured on …, derived, assumed."""

    value: float
    source: str


Engine = Literal["main", "dla", "all"]


class Peak(Record):
    """Peak arithmetic rate in 10^12 operations/s for one precision and power mode.

    `engine`: ``main`` is what payloads run on unless they say otherwise (a Jetson's GPU, a
    ZCU104's DPU), ``dla`` the deep-learning accelerators of some Jetsons, ``all`` their sum as
    vendors advertise it. `sparse`: reached only where half of the weights are zeros.
    """

    precision: str
    power_mode: str | None = None
    tops: float
    engine: Engine = "main"
    sparse: bool = False
    source: str


class Gpu(Record):
    """The board's GPU.

    `cores` are the CUDA cores that the module can have on at most, in `tpcs` groups (TPCs) that
    a power mode switches off by mask: the mask has `mask_bits` bits, and a set bit is a TPC
    that is off or missing. `top_mhz` is the clock of a mode without a cap. Absent is unknown.
    """

    cores: int | None = Field(default=None, ge=1)
    tpcs: int | None = Field(default=None, ge=1)
    mask_bits: int | None = Field(default=None, ge=1, le=64)
    top_mhz: float | None = None
    source: str

    def tpcs_on(self, mask: int) -> int | None:
        """How many TPCs a mask leaves on; None where the mask's width is unknown.

        A mask of 0 switches nothing off, however wide it is.
        """
        if self.mask_bits is not None:
            return self.mask_bits - (mask & ((1 << self.mask_bits) - 1)).bit_count()
        return self.tpcs if mask == 0 else None


class RailChip(Record):
    """One power monitor of the board, e.g. ``1-0040``, and the rails it reads, as named."""

    name: str
    rails: tuple[str, ...]


class RailTotal(Record):
    """What stands for the whole board or module: one rail, or the sum of several."""

    rails: tuple[str, ...] = Field(min_length=1)
    source: str

    @property
    def is_sum(self) -> bool:
        """Whether it is a stand-in: added up, because no rail reads the total."""
        return len(self.rails) > 1


class Rails(Record):
    """The power rails that the board reads itself.

    `totals`: best first; the first whose rails are all there counts. A total is the module's
    or the board's input, never the socket. `aliases`: names of other releases -> ours.
    """

    chips: tuple[RailChip, ...] = ()
    totals: tuple[RailTotal, ...] = ()
    aliases: dict[str, str] = Field(default_factory=dict)
    source: str

    def total_of(self, present: Collection[str]) -> RailTotal | None:
        """The best total that can be told from the rails that are `present`, or None."""
        names = {self.aliases.get(name, name) for name in present}
        return next((total for total in self.totals if names.issuperset(total.rails)), None)


class ThermalZones(Record):
    """Temperature sensors, as tegrastats prints them (lower case from L4T R36 on).

    `not_readings` are among `names` but show a fixed figure.
    """

    names: tuple[str, ...]
    not_readings: tuple[str, ...] = ()
    source: str


class Identification(Record):
    """How to recognise the board. Part numbers as in the device tree's `compatible`."""

    compatible: tuple[str, ...] = ()
    model: tuple[str, ...] = ()


class PlainSources(Record):
    """Where the figures without a place for it come from."""

    cores: str = ""
    memory_gb: str = ""


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
    """What all boards of a type share.

    `reboot_modes`: modes that are entered and left by a reboot although their TPC mask is not
    known.
    """

    name: str
    summary: str
    identify: Identification = Identification()
    power_controller: Literal["nvpmodel", "fixed", "cpufreq", "nvidia-smi"] = "fixed"
    cores: int = Field(ge=1)
    memory_gb: float | None = None
    gpu: Gpu | None = None
    power_modes: tuple[PowerMode, ...] = ()
    default_power_mode: str | None = None
    reboot_modes: tuple[str, ...] = ()
    peaks: tuple[Peak, ...] = ()
    memory_bandwidth_gbs: Figure | None = None
    price_usd: Figure | None = None
    max_temperature_c: Figure | None = None
    rails: Rails | None = None
    thermal_zones: ThermalZones | None = None
    simulation: SimulationModel | None = None
    sources: PlainSources = PlainSources()

    def mode(self, name: str) -> PowerMode | None:
        """The expected mode of exactly that name, upper or lower case, or None."""
        return next((m for m in self.power_modes if m.name.lower() == name.lower()), None)

    def budget_w(self, mode: PowerMode) -> float | None:
        """The watts that a mode of the board's own table promises, else those known here."""
        known = self.mode(mode.name)
        return known.budget_w if mode.budget_w is None and known is not None else mode.budget_w

    def tpcs(self, mode: PowerMode) -> int | None:
        """How many TPCs of the GPU are on in a mode, or None where that is unknown."""
        if self.gpu is None or mode.tpc_mask is None:
            return None
        return self.gpu.tpcs_on(mode.tpc_mask)

    def needs_reboot(self, before: str, after: str) -> bool | None:
        """Whether going from one mode to the other may need a reboot; None if unknown.

        It does where the TPC mask changes after the GPU has been used. The board's own table
        and its answer decide; this is for plans.
        """
        first, second = self.mode(before), self.mode(after)
        if first is None or second is None:
            return None
        if first == second:
            return False
        if {first.name, second.name} & set(self.reboot_modes):
            return True
        if first.tpc_mask is not None and second.tpc_mask is not None:
            return first.tpc_mask != second.tpc_mask
        has_masks = any(mode.tpc_mask is not None for mode in self.power_modes)
        return None if has_masks and first.tpc_mask != second.tpc_mask else False

    def peak(
        self, precision: str, power_mode: str, *, engine: Engine = "main", sparse: bool = False
    ) -> Peak | None:
        """The peak of that precision in that mode; a peak without a mode holds in each."""
        return next(
            (
                peak
                for peak in self.peaks
                if peak.precision.lower() == precision.lower()
                and (peak.power_mode or power_mode).lower() == power_mode.lower()
                and (peak.engine, peak.sparse) == (engine, sparse)
            ),
            None,
        )
