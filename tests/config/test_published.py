"""The published rows, against the figures of the paper."""

from collections import Counter

import pytest

from farm.config.published import load_published


def test_every_cell_of_the_tables() -> None:
    cells = load_published()
    assert Counter((cell.table, cell.profile) for cell in cells) == {
        ("14", "jetson-tx2"): 48,
        ("14", "zcu104"): 8,
        ("15", "jetson-tx2"): 48,
        ("15", "zcu104"): 8,
    }
    assert {cell.power_mode for cell in cells} == {None, "MaxN", "MaxP", "MaxQ"}
    names = {(cell.profile, tuple(cell.parameters)) for cell in cells}
    assert names == {
        ("jetson-tx2", ("model", "precision", "batch")),
        ("zcu104", ("model", "precision", "threads")),
    }
    keys = [(c.profile, c.power_mode, tuple(c.parameters.items())) for c in cells]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("wanted", "mode", "images_per_s", "latency_ms", "power_w"),
    [
        (("ResNet50", "FP16", 1), "MaxN", 547.84 / 7.72, 13.99, 12.57),
        (("ResNet50", "FP32", 128), "MaxQ", 315.38 / 7.72, 3118.09, 7.93),
        (("GoogleNetV1", "FP16", 8), "MaxP", 428.38 / 3.13, 60.46, 8.61),
        (("GoogleNetV1", "INT8", 8), None, 846.70 / 3.13, 28.91, 25.90),
    ],
)
def test_rows(
    wanted: tuple[str, str, int],
    mode: str | None,
    images_per_s: float,
    latency_ms: float,
    power_w: float,
) -> None:
    (cell,) = [
        cell
        for cell in load_published()
        if cell.power_mode == mode and tuple(cell.parameters.values()) == wanted
    ]
    assert cell.images_per_s == pytest.approx(images_per_s)
    assert (cell.latency_ms, cell.power_w) == (latency_ms, power_w)
    assert (cell.publication, cell.payload) == ("QuTiBench", "replay-cnn")
