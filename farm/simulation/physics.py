"""The physics of one simulated board: watts at the socket, and its temperature.

Pure: time and load come in, nothing is read. Between two steps the wanted power is constant,
so power and temperature follow first-order closed forms and the energy is exact.
"""

from dataclasses import dataclass
from math import exp
from random import Random

from farm.model.profile import SimulationModel

SMOOTHING_S = 0.05
"""How fast a change of load shows at the socket; assumed, a supply's capacitors."""

NOISE = 0.002
"""Relative spread of the drawn power from step to step; assumed. Its mean is zero."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the board does: the watts that a replay asks for, or None; and busy cores."""

    replay_w: float | None = None
    busy_cores: float = 0.0


def wanted_w(model: SimulationModel, power_mode: str, load: Load) -> float:
    """The socket power that the board settles at, in watts.

    A replay's watts are the whole board's; otherwise it is the mode's idle power plus what
    the busy cores add. A mode that the profile does not name draws like the hungriest one.
    """
    if load.replay_w is not None:
        return load.replay_w
    idle_w = model.idle_w
    base_w = idle_w.get(power_mode, idle_w.get("", max(idle_w.values(), default=0.0)))
    return base_w + model.cpu_w * load.busy_cores


def follow(value: float, target: float, seconds: float, time_constant_s: float) -> float:
    """A first-order lag: where `value` is after `seconds` of constant `target`."""
    return target + (value - target) * exp(-seconds / time_constant_s)


class Plant:
    """Power, energy and temperature of one board, stepped by its lab.

    Args:
        model: the board type's figures.
        ambient_c: the room, degrees Celsius.
        seed: of the noise; the same seed and steps give the same watts.
        now_s: the time it starts at, in seconds of the caller's clock.
        noise: relative spread of the power from step to step.
    """

    def __init__(
        self,
        model: SimulationModel,
        *,
        ambient_c: float,
        seed: int,
        now_s: float,
        noise: float = NOISE,
    ) -> None:
        self._model = model
        self._ambient_c = ambient_c
        self._random = Random(seed)  # noqa: S311 -- noise, no secret
        self._noise = noise
        self._now_s = now_s
        self.power_w = 0.0
        self.energy_j = 0.0
        self.temperature_c = ambient_c

    @property
    def now_s(self) -> float:
        """The time of the last step."""
        return self._now_s

    def advance(self, now_s: float, target_w: float) -> None:
        """Step to `now_s`; since the last step the board wanted `target_w`.

        Time that does not go forward changes nothing.
        """
        seconds = now_s - self._now_s
        if seconds <= 0:
            return
        if self._noise:
            target_w *= 1 + self._random.gauss(0.0, self._noise)
        before_w = self.power_w
        self.power_w = follow(before_w, target_w, seconds, SMOOTHING_S)
        # Energy of the lag: target over the time, plus the area of the decaying difference.
        energy_j = target_w * seconds + (before_w - self.power_w) * SMOOTHING_S
        self.energy_j += max(energy_j, 0.0)
        settled_c = self._ambient_c + self._model.thermal_resistance_c_per_w * energy_j / seconds
        self.temperature_c = follow(
            self.temperature_c, settled_c, seconds, self._model.thermal_time_s
        )
        self._now_s = now_s

    def cut(self) -> None:
        """The socket is off: no power from this instant."""
        self.power_w = 0.0
