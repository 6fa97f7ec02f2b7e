"""Tables of hand-made results: every column, and what is never put into one row."""

import pytest

from farm.analysis.cells import summarise_cells
from farm.analysis.compare import compare_published, compare_runs
from farm.config.published import load_published
from farm.model.attempt import TrialState
from farm.model.record import Scalar, Source
from farm.model.result import PowerModeAnswer, TrialResult
from farm.reporting.tables import (
    Table,
    cell_rows,
    fixed_lines,
    open_rows,
    published_rows,
    run_rows,
    trial_rows,
)
from tests.reporting.results import a_failure, a_result


def dicts(table: Table) -> list[dict[str, object]]:
    columns, rows = table
    assert len(set(columns)) == len(columns)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def test_a_cell_has_mean_and_spread_of_its_valid_trials_only() -> None:
    results = [
        a_result(94.31, 13.8, repeat=1),
        a_result(94.33, 14.0, repeat=2),
        a_failure(repeat=3),
    ]
    (row,) = dicts(cell_rows(results))
    assert row == {
        "board": "tx2-01",
        "payload": "replay-cnn",
        "parameters": "model=ResNet50",
        "mode": "MAXN",
        "source": "measured",
        "valid": "2/3",
        "speed": "94.32 ± 0.01 images/s",
        "W": "13.90 ± 0.14",
        "mJ/inference": "147.0 ± 0.0",
        "net mJ": "94.00 ± 0.00",
        "verdicts": "2 valid, 1 invalid",
    }


@pytest.mark.parametrize("other", [Source.SIMULATED, Source.RECORDED])
def test_sources_never_share_a_row(other: Source) -> None:
    results = [a_result(10.0, repeat=1), a_result(1000.0, repeat=2, source=other)]
    rows = dicts(cell_rows(results))
    assert [(row["source"], row["speed"]) for row in rows] == [
        ("measured", "10 images/s"),
        (other.value, "1000 images/s"),
    ]


def test_what_did_not_run_has_no_figures_and_says_its_state() -> None:
    waiting = a_result(
        None, None, mode=None, state=TrialState.PENDING, status=None, source=None, attempts=0
    )
    (row,) = dicts(cell_rows([waiting]))
    assert (row["source"], row["speed"], row["W"], row["valid"]) == ("-", "-", "-", "0/1")
    assert row["verdicts"] == "1 pending"


def test_parameters_that_never_vary_in_a_profile_are_said_once() -> None:
    results = [
        a_result(parameters={"model": "A", "batch": 8}),
        a_result(parameters={"model": "B", "batch": 8}, repeat=2),
        a_result(board="z", profile="zcu104", parameters={"batch": 0, "model": "A"}),
    ]
    assert [row["parameters"] for row in dicts(cell_rows(results))] == [
        "model=A",
        "model=B",
        "batch=0 model=A",  # the profile's only cell: all of it
    ]
    assert fixed_lines(results) == ["jetson-tx2, replay-cnn: batch=8"]


def test_a_parameter_that_only_some_cells_have_is_shown() -> None:
    results = [a_result(parameters={"a": 1}), a_result(parameters={"a": 1, "b": 2}, repeat=2)]
    assert [row["parameters"] for row in dicts(cell_rows(results))] == ["", "b=2"]


def test_one_and_true_are_two_values() -> None:
    results = [a_result(parameters={"x": 1}), a_result(parameters={"x": True}, repeat=2)]
    assert [row["parameters"] for row in dicts(cell_rows(results))] == ["x=1", "x=True"]


def test_a_trial_has_a_row_in_the_order_of_the_plan() -> None:
    rows = dicts(trial_rows([a_result(repeat=2), a_failure("exit status 3", repeat=1)]))
    assert [row["trial"] for row in rows] == ["tx2-01-r02", "tx2-01-r01"]
    assert rows[0]["metrics"] == "throughput=94.3 images/s"
    assert (rows[1]["state"], rows[1]["W"], rows[1]["metrics"]) == ("failed", "-", "-")
    assert rows[1]["why"] == "exit status 3"


def test_published_figures_stand_beside_the_runs_with_its_source() -> None:
    cell: dict[str, Scalar] = {"model": "ResNet50", "precision": "FP16", "batch": 8, "x": 0}
    (printed,) = [
        row
        for row in load_published()
        if row.profile == "jetson-tx2"
        and row.power_mode == "MaxN"
        and row.parameters == {"model": "ResNet50", "precision": "FP16", "batch": 8}
    ]
    results = [
        a_result(printed.images_per_s * 1.1, printed.power_w, parameters=cell, source=source)
        for source in (Source.SIMULATED, Source.MEASURED)
    ]
    rows = dicts(published_rows(compare_published(results, load_published())))
    assert [row["source"] for row in rows] == ["simulated", "measured"]
    assert {(row["off"], row["off W"], row["n"]) for row in rows} == {("+10.00 %", "+0.00 %", 1)}


def test_two_runs_side_by_side_never_mix_sources() -> None:
    first = [a_result(10.0, repeat=n) for n in (1, 2)]
    second = [a_result(20.0, repeat=n, source=Source.SIMULATED) for n in (1, 2)]
    rows = dicts(run_rows(compare_runs(first, second)))
    assert [(row["source"], row["quantity"]) for row in rows] == [
        ("measured", "only in the first"),
        ("simulated", "only in the second"),
    ]


def test_two_runs_show_difference_and_significance() -> None:
    first = [a_result(10.0 + n / 100, repeat=n) for n in (1, 2, 3)]
    second = [a_result(11.0 + n / 100, repeat=n) for n in (1, 2, 3)]
    rows = {row["quantity"]: row for row in dicts(run_rows(compare_runs(first, second)))}
    assert rows["throughput"]["difference"] == "+9.98 %"
    assert rows["throughput"]["significant"] == "yes"
    assert rows["watts"]["significant"] == "no"
    single = run_rows(compare_runs(first[:1], second[:1]))
    assert {row["significant"] for row in dicts(single) if row["unit"] == "images/s"} == {
        "unknown"
    }


def test_open_trials_with_one_reason_share_a_row() -> None:
    results = [
        a_failure("boom", repeat=1),
        a_failure("boom", repeat=2, attempts=3),
        a_failure("other", repeat=3),
        a_result(repeat=4),
        a_result(None, None, state=TrialState.UNSUPPORTED, repeat=5),
    ]
    rows = dicts(open_rows(results))
    assert [(row["trials"], row["attempts"], row["why"]) for row in rows] == [
        ("2: tx2-01-r01 ...", 3, "boom"),
        ("tx2-01-r03", 1, "other"),
    ]


def test_nothing_gives_empty_tables() -> None:
    for table in (cell_rows([]), trial_rows([]), published_rows([]), run_rows([]), open_rows([])):
        assert dicts(table) == []
    assert fixed_lines([]) == []
    assert summarise_cells([]) == []


def test_a_mode_tells_the_words_that_were_taken_for_it() -> None:
    def taken(asked: str, name: str, repeat: int) -> TrialResult:
        mode = PowerModeAnswer(asked=asked, name=name, id=5)
        return a_result(repeat=repeat).model_copy(update={"power_mode": mode})

    results = [taken("maxq", "5W", 1), taken("maxp", "5W", 2), taken("maxn", "MAXN", 3)]
    assert [row["mode"] for row in dicts(cell_rows(results))] == ["5W (maxq, maxp)", "MAXN"]
    assert [row["mode"] for row in dicts(trial_rows(results))] == [
        "5W (maxq)",
        "5W (maxp)",
        "MAXN",
    ]
