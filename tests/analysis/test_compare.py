from collections.abc import Mapping
from math import hypot

import pytest

from farm.analysis.compare import Difference, compare_published, compare_runs
from farm.analysis.statistics import summarise
from farm.model.measurement import Measurement, VerdictStatus
from farm.model.published import PublishedCell
from farm.model.record import Scalar, Source
from tests.analysis.results import pending, result


def printed(
    power_mode: str | None = "MaxN",
    parameters: Mapping[str, Scalar] | None = None,
    profile: str = "tx2",
) -> PublishedCell:
    return PublishedCell(
        publication="p",
        table="14",
        profile=profile,
        payload="cnn",
        power_mode=power_mode,
        parameters={"batch": 1} if parameters is None else parameters,
        images_per_s=50.0,
        throughput_gops=386.0,
        latency_ms=20.0,
        power_w=10.0,
    )


def test_a_cell_beside_its_printed_row() -> None:
    (pair,) = compare_published(
        [
            result(60.0, watts=9.0, energy_j=0.15, repeat=1),
            result(50.0, watts=9.0, energy_j=0.17, repeat=2),
            result(999.0, watts=999.0, repeat=3, status=VerdictStatus.SUSPECT),
        ],
        [printed()],
    )
    assert pair.images_per_s == summarise([60.0, 50.0])
    assert pair.images_per_s_ratio == pytest.approx(1.1)
    assert pair.watts_ratio == pytest.approx(0.9)
    assert pair.printed_energy_per_image_j == pytest.approx(0.2)
    assert pair.energy_per_image_ratio == pytest.approx(0.8)
    assert (pair.source, pair.cell.n_valid) == (Source.MEASURED, 2)


@pytest.mark.parametrize(
    ("printed_mode", "mode", "fits"),
    [
        ("MaxN", "MAXN", True),
        ("MaxN", "MAXN_SUPER", True),
        ("MaxP", "MAXP_CORE_ARM", True),
        ("MaxQ", "MAXQ", True),
        ("MaxQ", "MAXN", False),
        ("10W", "10w", True),
        ("10W", "10W_2CORE", False),
        (None, "whatever", True),
    ],
)
def test_power_modes_fit_by_rule(printed_mode: str | None, mode: str, fits: bool) -> None:
    pairs = compare_published([result(1.0, mode=mode)], [printed(printed_mode)])
    assert len(pairs) == fits


def test_a_mode_that_was_only_asked_for_fits_no_printed_mode() -> None:
    assert compare_published([result(1.0, mode=None)], [printed()]) == []


def test_a_row_without_a_mode_fits_only_boards_that_ran_in_one() -> None:
    results = [result(1.0), result(1.0, mode="MAXQ"), result(1.0, board="t2")]
    pairs = compare_published(results, [printed(None)])
    assert [pair.cell.board for pair in pairs] == ["t2"]


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({"batch": 8}, True),
        ({}, True),
        ({"batch": 8, "precision": "FP16"}, True),
        ({"batch": 1}, False),
        ({"batch": "8"}, False),
        ({"batch": 8, "threads": 1}, False),
    ],
)
def test_the_printed_parameters_must_be_among_the_cells(
    wanted: dict[str, Scalar], fits: bool
) -> None:
    cell = result(1.0, parameters={"batch": 8, "precision": "FP16", "variant": "plain"})
    assert len(compare_published([cell], [printed(parameters=wanted)])) == fits


def test_sources_and_boards_are_compared_apart_and_other_profiles_not() -> None:
    results = [
        result(1.0),
        result(2.0, source=Source.SIMULATED),
        result(3.0, board="t2"),
        result(4.0, board="n1", profile="nano"),
        result(5.0, payload="other"),
        pending(board="t3"),
    ]
    pairs = compare_published(results, [printed()])
    assert [(p.cell.board, p.source, p.images_per_s) for p in pairs] == [
        ("t1", Source.MEASURED, summarise([1.0])),
        ("t1", Source.SIMULATED, summarise([2.0])),
        ("t2", Source.MEASURED, summarise([3.0])),
    ]


@pytest.mark.parametrize(
    ("unit", "scope", "counts"),
    [("inferences/s", "window", True), ("GOP/s", "window", False), ("images/s", "compute", False)],
)
def test_only_images_per_second_of_the_system_are_compared(
    unit: str, scope: str, counts: bool
) -> None:
    measured = {"throughput": Measurement(value=100.0, unit=unit, scope=scope)}
    (pair,) = compare_published([result(metrics=measured)], [printed()])
    assert pair.images_per_s_ratio == (2.0 if counts else None)
    assert (pair.watts, pair.watts_ratio, pair.energy_per_image_ratio) == (None, None, None)


def differences(
    a: list[float], b: list[float], meter: str = "m1", uncertainty_w: float | None = 0.1
) -> dict[str, Difference]:
    """Of watts (and 10 mJ a watt) of two runs; meter and uncertainty are those of run b."""
    run_a = [result(1.0, watts=w, energy_j=w / 100) for w in a]
    run_b = [
        result(1.0, watts=w, energy_j=w / 100, meter=meter, uncertainty_w=uncertainty_w) for w in b
    ]
    (pair,) = compare_runs(run_a, run_b)
    return {difference.name: difference for difference in pair.differences}


def test_a_difference_beyond_the_interval_is_significant() -> None:
    found = differences([9.0, 10.0, 11.0], [19.0, 20.0, 21.0])
    watts = found["watts"]
    assert (watts.unit, watts.difference, watts.relative) == ("W", 10.0, 1.0)
    assert watts.ci95_half == pytest.approx(2.776 * (2 / 3) ** 0.5)
    assert watts.is_significant is True
    assert found["energy_per_inference_j"].difference == pytest.approx(0.1)
    assert found["net_energy_per_inference_j"].difference == pytest.approx(0.05)
    assert (found["throughput"].difference, found["throughput"].is_significant) == (0.0, False)


def test_a_difference_within_the_interval_is_none() -> None:
    watts = differences([9.0, 10.0, 11.0], [10.0, 11.0, 12.0])["watts"]
    assert watts.difference == 1.0
    assert watts.is_significant is False


def test_single_trials_say_nothing_of_significance() -> None:
    watts = differences([9.0], [99.0])["watts"]
    assert (watts.ci95_half, watts.is_significant) == (None, None)


def test_with_other_meters_their_error_counts_too() -> None:
    found = differences([10.0, 10.0], [10.5, 10.5], meter="m2", uncertainty_w=0.4)
    assert found["watts"].ci95_half == pytest.approx(2 * hypot(0.1, 0.4))
    assert found["watts"].is_significant is False
    energy = found["energy_per_inference_j"]
    assert energy.ci95_half == pytest.approx(2 * hypot(0.1, 0.4) / 100)
    assert energy.is_significant is False


def test_with_one_meter_its_error_cancels() -> None:
    found = differences([10.0, 10.0], [10.5, 10.5], uncertainty_w=0.4)
    assert (found["watts"].ci95_half, found["watts"].is_significant) == (0.0, True)
    assert found["energy_per_inference_j"].ci95_half == 0.0
    assert found["energy_per_inference_j"].is_significant is True


def test_with_other_meters_of_unknown_accuracy_nothing_can_be_told() -> None:
    found = differences([10.0, 10.0], [20.0, 20.0], meter="m2", uncertainty_w=None)
    assert (found["watts"].ci95_half, found["watts"].is_significant) == (None, None)
    assert found["energy_per_inference_j"].is_significant is None
    assert found["throughput"].is_significant is False


def test_cells_of_one_run_only_are_listed_without_differences() -> None:
    pairs = compare_runs(
        [result(1.0), result(2.0, mode="MAXQ")], [result(1.5), result(3.0, board="t2")]
    )
    assert [
        (pair.a and pair.a.power_mode, pair.b and pair.b.board, len(pair.differences))
        for pair in pairs
    ] == [("MAXN", "t1", 1), ("MAXQ", None, 0), (None, "t2", 0)]


def test_a_simulated_run_is_not_compared_with_a_measured_one() -> None:
    pairs = compare_runs([result(1.0)], [result(1.0, source=Source.SIMULATED)])
    assert [(pair.a is None, pair.b is None) for pair in pairs] == [(False, True), (True, False)]


def test_locked_clocks_are_not_compared_with_free_ones() -> None:
    pairs = compare_runs([result(1.0)], [result(2.0, clocks="locked")])
    assert [(pair.a is None, pair.b is None) for pair in pairs] == [(False, True), (True, False)]


def test_boards_of_one_type_can_be_compared_by_profile() -> None:
    (pair,) = compare_runs([result(1.0)], [result(2.0, board="t2")], by="profile")
    assert pair.differences[0].difference == 1.0


def test_metrics_of_other_units_are_not_compared() -> None:
    ms = {"latency": Measurement(value=4.0, unit="ms")}
    s = {"latency": Measurement(value=0.004, unit="s")}
    (pair,) = compare_runs([result(metrics=ms)], [result(metrics=s)])
    assert pair.differences == ()


def test_a_relative_difference_over_nothing_is_unknown() -> None:
    (pair,) = compare_runs([result(0.0)], [result(2.0)])
    assert pair.differences[0].relative is None
