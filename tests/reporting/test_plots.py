"""Plots: no formulas out of names, nothing hidden, nothing mixed."""

import re
import xml.etree.ElementTree as ET

import pytest

from farm.analysis.cells import summarise_cells
from farm.model.record import Source
from farm.model.result import TrialResult
from farm.reporting.plots import PLOT_LIMIT, SERIES_LIMIT, Plot, pareto_plots, trace_plot
from tests.reporting.results import a_result, a_trace

STRANGE = [
    "$x$",
    "$$",
    r"\$x\$",
    r"$\frac{1}{0$",
    "_hidden",
    "__",
    "a_b^c",
    "%s %(x)s {x}",
    "<script>alert(1)</script>",
    "a\x00b\x07\x1b[31m",
    "日本語 ümlaut 🔋",
    "x" * 5000,
    "line\nbreak",
    "\u202eevil",
]


def plots_of(results: list[TrialResult]) -> list[Plot]:
    return pareto_plots(summarise_cells(results))


def texts_of(plot: Plot) -> str:
    return "\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", plot.svg))


@pytest.mark.parametrize("name", STRANGE)
def test_strange_names_are_drawn_as_text(name: str) -> None:
    results = [
        a_result(profile=name, board=name, mode=name, unit=name, metric=name),
        a_result(50.0, 7.0, profile=name, board="other", mode="m", unit=name, metric=name),
    ]
    (plot,) = plots_of(results)
    root = ET.fromstring(plot.svg)  # whole, and nothing broke out of a text
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    for node in root.iter():
        for key, value in node.attrib.items():
            if key.endswith("href"):
                assert value.startswith("#")
    assert len(plot.svg) < 100_000


def test_dollars_are_no_formulas() -> None:
    (plot,) = plots_of([a_result(profile="cost$5$", mode="a_b^c")])
    assert "cost$5$ a_b^c" in texts_of(plot)


def test_a_name_that_begins_with_an_underscore_is_in_the_legend() -> None:
    (plot,) = plots_of([a_result(profile="_lab_board")])
    assert "_lab_board MAXN" in texts_of(plot)


def test_plots_do_not_mix_payloads_models_units_or_sources() -> None:
    results = [
        a_result(1.0, board="a"),
        a_result(2.0, board="b"),
        a_result(3.0, source=Source.SIMULATED),
        a_result(4.0, payload="other"),
        a_result(5.0, parameters={"model": "GoogleNetV1"}),
        a_result(6.0, unit="frames/s", board="c"),
    ]
    plots = plots_of(results)
    assert [(plot.source, len(plot.notes)) for plot in plots] == [
        (Source.MEASURED, 1),
        (Source.SIMULATED, 1),
        (Source.MEASURED, 1),
        (Source.MEASURED, 1),
        (Source.MEASURED, 1),
    ]
    assert len({plot.caption for plot in plots}) == 3


def test_the_front_is_the_fast_and_the_frugal() -> None:
    results = [
        a_result(100.0, 10.0, mode="MAXN"),
        a_result(50.0, 5.0, mode="MAXQ"),
        a_result(40.0, 8.0, mode="BAD"),
    ]
    (plot,) = plots_of(results)
    assert [note.split(" model")[0] for note in plot.notes] == ["tx2-01 MAXQ", "tx2-01 MAXN"]


def test_many_series_and_many_plots_stay_bounded() -> None:
    many = [a_result(float(n), float(n), mode=f"mode-{n:03}") for n in range(1, 60)]
    (plot,) = plots_of(many)
    text = texts_of(plot)
    assert "others" in text
    assert text.count("mode-") == SERIES_LIMIT - 1
    assert plot.notes[-1] == "and 47 more"
    assert len(plots_of([a_result(payload=f"p{n}") for n in range(40)])) == PLOT_LIMIT


def test_cells_without_watts_or_speed_are_left_out() -> None:
    assert plots_of([a_result(None), a_result(watts=None, board="b")]) == []


def test_the_trace_shows_window_mean_and_idle() -> None:
    plot = trace_plot(a_trace(board="$b$", meter="_<m>_"))
    text = texts_of(plot)
    for label in ("measured window", "mean 9.00 W", "idle 5.00 W"):
        assert label in text
    assert "$b$" in plot.caption
    assert "50 samples" in plot.caption


def test_a_long_trace_is_drawn_as_pixels_and_stays_small() -> None:
    plot = trace_plot(a_trace(samples=50_000))
    assert "data:image/png" in plot.svg
    assert len(plot.svg) < 300_000
