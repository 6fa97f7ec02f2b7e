import pytest

from farm.analysis.cells import is_valid, summarise_cells
from farm.analysis.statistics import summarise
from farm.model.attempt import TrialState
from farm.model.measurement import Measurement, VerdictStatus
from farm.model.record import Source
from tests.analysis.results import pending, result


def test_a_cell_is_summed_up_over_its_valid_trials() -> None:
    (cell,) = summarise_cells(
        [
            result(70.0, watts=9.0, energy_j=0.13, repeat=1),
            result(72.0, watts=9.2, energy_j=0.13, repeat=2, uncertainty_w=0.3),
            result(74.0, watts=9.4, repeat=3, uncertainty_w=None),
            result(1.0, watts=99.0, repeat=4, status=VerdictStatus.SUSPECT),
            result(2.0, watts=99.0, repeat=5, status=VerdictStatus.INVALID),
            result(3.0, watts=99.0, repeat=6, state=TrialState.FAILED),
        ]
    )
    assert (cell.board, cell.profile, cell.level, cell.payload) == ("t1", "tx2", 3, "cnn")
    assert (cell.n_valid, cell.n_total) == (3, 6)
    assert cell.metrics["throughput"].summary == summarise([70.0, 72.0, 74.0])
    assert cell.metrics["throughput"].unit == "images/s"
    assert cell.watts == summarise([9.0, 9.2, 9.4])
    assert cell.energy_per_inference_j == summarise([0.13, 0.13])
    assert cell.net_energy_per_inference_j == summarise([0.065, 0.065])
    assert (cell.uncertainty_w, cell.meters) == (0.3, ("m1",))
    assert cell.verdicts == {
        VerdictStatus.VALID: 4,
        VerdictStatus.SUSPECT: 1,
        VerdictStatus.INVALID: 1,
    }
    assert cell.states == {TrialState.DONE: 5, TrialState.FAILED: 1}


def test_what_differs_is_another_cell() -> None:
    results = [
        result(1.0),
        result(1.0, board="t2"),
        result(1.0, payload="other"),
        result(1.0, parameters={"batch": 2}),
        result(1.0, parameters={"batch": True}),
        result(1.0, mode="MAXQ"),
        result(1.0, clocks="locked"),
        result(1.0, source=Source.SIMULATED),
    ]
    cells = summarise_cells(results)
    assert [cell.n_total for cell in cells] == [1] * 8
    assert cells[7].source is Source.SIMULATED
    by_profile = summarise_cells(results, by="profile")
    assert [cell.board for cell in by_profile] == [None] * 7
    assert [cell.n_total for cell in by_profile] == [2, 1, 1, 1, 1, 1, 1]


def test_the_mode_read_back_makes_the_cell_not_the_word_asked() -> None:
    (cell,) = summarise_cells([result(1.0), result(2.0, asked="current", mode="maxn")])
    assert (cell.power_mode, cell.is_mode_proven, cell.n_valid) == ("MAXN", True, 2)


def test_trials_that_have_not_run_count_with_what_was_asked() -> None:
    (cell,) = summarise_cells([pending(), result(1.0), pending(source=Source.MEASURED)])
    assert (cell.n_total, cell.n_valid, cell.power_mode) == (3, 1, "MAXN")
    assert cell.states == {TrialState.PENDING: 2, TrialState.DONE: 1}


def test_trials_that_have_not_run_stay_apart_where_their_cell_is_not_certain() -> None:
    cells = summarise_cells([result(1.0), result(1.0, source=Source.SIMULATED), pending()])
    assert [(cell.source, cell.is_mode_proven, cell.n_total) for cell in cells] == [
        (Source.MEASURED, True, 1),
        (Source.SIMULATED, True, 1),
        (None, False, 1),
    ]


def test_a_run_that_has_not_begun_has_cells_without_figures() -> None:
    (cell,) = summarise_cells([pending(repeat=1), pending(repeat=2)])
    assert (cell.n_total, cell.n_valid, cell.power_mode) == (2, 0, "maxn")
    assert (cell.source, cell.watts, cell.metrics, cell.uncertainty_w) == (None, None, {}, None)


def test_values_that_are_no_numbers_are_counted_and_left_out() -> None:
    (cell,) = summarise_cells(
        [result(float("nan"), watts=float("inf")), result(5.0, watts=9.0), result(1e300)]
    )
    assert cell.metrics["throughput"].summary == summarise([5.0])
    assert cell.metrics["throughput"].unusable == 2
    assert cell.watts == summarise([9.0])
    assert cell.n_valid == 3


def test_units_of_one_name_are_never_mixed() -> None:
    (cell,) = summarise_cells(
        [
            result(metrics={"latency": Measurement(value=4.0, unit="ms")}),
            result(metrics={"latency": Measurement(value=0.004, unit="s")}),
        ]
    )
    assert {name: metric.summary for name, metric in cell.metrics.items()} == {
        "latency [ms, window]": summarise([4.0]),
        "latency [s, window]": summarise([0.004]),
    }


@pytest.mark.parametrize(
    ("state", "status", "expected"),
    [
        (TrialState.DONE, VerdictStatus.VALID, True),
        (TrialState.DONE, VerdictStatus.SUSPECT, False),
        (TrialState.DONE, None, False),
        (TrialState.RUNNING, VerdictStatus.VALID, False),
    ],
)
def test_only_done_and_valid_counts(
    state: TrialState, status: VerdictStatus | None, expected: bool
) -> None:
    assert is_valid(result(1.0, state=state, status=status)) is expected
