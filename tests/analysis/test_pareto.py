import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import farm
from farm.analysis.pareto import pareto_front
from farm.errors import AnalysisError

PUBLISHED = Path(farm.__file__).parent / "data" / "published"
GOP = {"ResNet50": 7.72, "GoogleNetV1": 3.13}


def rows() -> list[dict[str, str]]:
    found = []
    for name in ("level3_resnet50.csv", "level3_googlenet.csv"):
        with (PUBLISHED / name).open(encoding="utf-8", newline="") as file:
            found += list(csv.DictReader(file))
    return found


def label(row: dict[str, str]) -> str:
    return " ".join(
        row[key]
        for key in ("model", "platform", "power_mode", "precision", "batch", "threads")
        if row[key]
    )


def front(rows: list[dict[str, str]], *criteria: str) -> list[str]:
    """Labels of the rows on the front; a criterion with a minus is the better the smaller."""
    columns = [criterion.removeprefix("-") for criterion in criteria]
    points = [
        tuple(
            float(row["throughput_system_gops"]) / GOP[row["model"]]
            if column == "images_per_s"
            else float(row[column])
            for column in columns
        )
        for row in rows
    ]
    signs = [not criterion.startswith("-") for criterion in criteria]
    return [label(rows[at]) for at in pareto_front(points, signs)]


def test_the_published_set_on_accuracy_rate_and_power() -> None:
    found = front(rows(), "top5_accuracy_pct", "images_per_s", "-power_w")
    resnet = "ResNet50 TX2 {} FP16 {}".format
    expected = {resnet("MaxN", 2**n) for n in range(4, 8)}
    expected |= {resnet("MaxP", batch) for batch in (2, 4, 32, 64, 128)}
    expected |= {resnet("MaxQ", batch) for batch in (1, 2, 4, 8, 32, 64, 128)}
    expected |= {f"ResNet50 ZCU104 INT8 {threads}" for threads in (3, 4, 5, 6, 8)}
    expected |= {f"GoogleNetV1 ZCU104 INT8 {threads}" for threads in (2, 3, 7, 8)}
    google = {text for text in found if text.startswith("GoogleNetV1 TX2")}
    assert len(rows()) == 112
    assert len(found) == 38
    assert set(found) - google == expected
    assert len(google) == 13
    assert all("FP16" in text for text in google)


def test_the_published_set_by_top_1_is_larger() -> None:
    assert len(front(rows(), "top1_accuracy_pct", "images_per_s", "-power_w")) == 54


def test_the_published_set_on_accuracy_and_rate() -> None:
    assert set(front(rows(), "top5_accuracy_pct", "images_per_s")) == {
        "GoogleNetV1 ZCU104 INT8 7",
        "ResNet50 ZCU104 INT8 8",
        "ResNet50 TX2 MaxN FP16 128",
    }


def test_the_published_set_on_accuracy_and_latency() -> None:
    assert set(front(rows(), "top5_accuracy_pct", "-latency_system_ms")) == {
        "GoogleNetV1 TX2 MaxN FP16 1",
        "GoogleNetV1 ZCU104 INT8 1",
        "ResNet50 TX2 MaxN FP16 1",
    }


@pytest.mark.parametrize(
    ("points", "maximise", "expected"),
    [
        ([], (True,), []),
        ([(1.0,), (3.0,), (3.0,), (2.0,)], (True,), [1, 2]),
        ([(1.0,), (3.0,)], (False,), [0]),
        ([(1.0, 1.0), (2.0, 2.0), (1.0, 1.0)], (True, False), [0, 1, 2]),
        ([(1.0, 1.0), (1.0, 2.0)], (True, True), [1]),
        ([(float("inf"), 0.0), (0.0, 0.0)], (True, True), [0]),
    ],
)
def test_small_sets(
    points: list[tuple[float, ...]], maximise: tuple[bool, ...], expected: list[int]
) -> None:
    assert pareto_front(points, maximise) == expected


@pytest.mark.parametrize(
    "points", [[(1.0,)], [(1.0, 2.0), (1.0, 2.0, 3.0)], [(float("nan"), 1.0)]]
)
def test_points_that_cannot_be_compared_are_refused(points: list[tuple[float, ...]]) -> None:
    with pytest.raises(AnalysisError, match="point"):
        pareto_front(points, (True, True))


POINT = st.tuples(*[st.integers(0, 5).map(float)] * 3)


@given(st.lists(POINT, max_size=25), st.tuples(*[st.booleans()] * 3))
def test_the_front_is_what_nothing_dominates(
    points: list[tuple[float, ...]], maximise: tuple[bool, ...]
) -> None:
    def beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        pairs = [
            (a, b) if more else (b, a) for a, b, more in zip(one, other, maximise, strict=True)
        ]
        return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)

    plain = [
        at for at, point in enumerate(points) if not any(beats(other, point) for other in points)
    ]
    assert pareto_front(points, maximise) == plain
