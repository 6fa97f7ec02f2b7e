"""Power, energy and temperature follow closed forms."""

import math

import pytest

from farm.model.profile import SimulationModel
from farm.simulation.physics import SMOOTHING_S, Load, Plant, follow, wanted_w

MODEL = SimulationModel(
    idle_w={"MAXN": 5.0, "MAXQ": 3.4},
    cpu_w=1.5,
    thermal_resistance_c_per_w=2.0,
    thermal_time_s=60.0,
)


def plant(noise: float = 0.0, seed: int = 1) -> Plant:
    return Plant(MODEL, ambient_c=25.0, seed=seed, now_s=100.0, noise=noise)


def test_wanted_power() -> None:
    assert wanted_w(MODEL, "MAXQ", Load()) == 3.4
    assert wanted_w(MODEL, "MAXQ", Load(busy_cores=2.0)) == pytest.approx(6.4)
    assert wanted_w(MODEL, "MAXN", Load(replay_w=12.57, busy_cores=2.0)) == 12.57
    assert wanted_w(MODEL, "unknown", Load()) == 5.0
    assert wanted_w(SimulationModel(idle_w={"": 19.9}), "", Load()) == 19.9
    assert wanted_w(SimulationModel(), "MAXN", Load()) == 0.0


def test_first_order_step() -> None:
    assert follow(10.0, 20.0, 0.0, 60.0) == 10.0
    assert follow(10.0, 20.0, 60.0, 60.0) == pytest.approx(20 - 10 / math.e)


def test_energy_of_a_step_is_exact_in_any_number_of_parts() -> None:
    whole, parts = plant(), plant()
    whole.advance(102.0, 10.0)
    for step in range(1, 201):
        parts.advance(100.0 + step / 100, 10.0)
    # The integral of 10 (1 - exp(-t / tau)) from 0 to 2 s.
    exact = 10 * (2 - SMOOTHING_S * (1 - math.exp(-2 / SMOOTHING_S)))
    assert whole.energy_j == pytest.approx(exact, rel=1e-9)
    assert parts.energy_j == pytest.approx(exact, rel=1e-9)
    assert parts.power_w == pytest.approx(10.0)


def test_temperature_follows_the_closed_form() -> None:
    board = plant()
    board.advance(101.0, 10.0)
    start_c = board.temperature_c
    board.advance(161.0, 10.0)
    settled_c = 25.0 + 2.0 * 10.0
    assert board.temperature_c == pytest.approx(settled_c + (start_c - settled_c) / math.e)
    board.advance(10_000.0, 0.0)
    assert board.temperature_c == pytest.approx(25.0, abs=0.01)


def test_noise_has_no_bias_and_comes_from_the_seed() -> None:
    boards = [plant(noise=0.002, seed=seed) for seed in (7, 7, 8)]
    powers: list[list[float]] = [[], [], []]
    for step in range(1, 401):
        for board, seen in zip(boards, powers, strict=True):
            board.advance(100.0 + step / 10, 10.0)
            seen.append(board.power_w)
    assert powers[0] == powers[1] != powers[2]
    assert boards[0].energy_j / 40.0 == pytest.approx(10.0, rel=0.003)
    assert len(set(powers[0])) > 300


def test_energy_never_falls_and_time_does_not_go_back() -> None:
    board = plant(noise=0.002)
    energies = []
    for now_s, target_w in [(101, 9.0), (100.5, 50.0), (102, 0.0), (102, 8.0), (102.01, 0.0)]:
        board.advance(now_s, target_w)
        energies.append(board.energy_j)
    assert energies == sorted(energies)
    assert energies[0] == energies[1]
    assert board.now_s == 102.01


def test_cut_power_is_zero_at_once() -> None:
    board = plant()
    board.advance(101.0, 10.0)
    before_j = board.energy_j
    board.cut()
    board.advance(102.0, 0.0)
    assert board.power_w == 0.0
    assert board.energy_j == before_j
