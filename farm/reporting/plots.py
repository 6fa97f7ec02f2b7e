"""Plots as inline SVG: no script, no network, text stays text; by `Figure`, without pyplot."""

import contextlib
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from farm.analysis.cells import CellSummary
from farm.analysis.pareto import pareto_front
from farm.model.parameters import parameters_text
from farm.model.record import Source
from farm.reporting.data import TraceExample
from farm.reporting.figures import main_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN, HEIGHT_IN = 6.6, 3.9
LEGEND_ROW_IN, LEGEND_COLUMNS = 0.2, 2
COLOURS = ("#2563eb", "#d97706", "#059669", "#be185d", "#7c3aed", "#475569", "#0891b2", "#b91c1c")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
DENSE_POINTS = 4000
"""Above this many points a line is drawn as pixels: the SVG stays small."""
SERIES_LIMIT = 16
LABEL_LIMIT = 44
BEST_LIMIT = 12
PLOT_LIMIT = 12
WORK = "model"
"""The parameter that says what is computed: speeds of two models do not compare."""
_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: caption, what it says to those who cannot see it, the SVG, where it comes from."""

    caption: str
    notes: tuple[str, ...]
    svg: str
    source: Source | None


@dataclass(frozen=True, slots=True)
class _Point:
    cell: CellSummary
    watts: float
    speed: float


def pareto_plots(cells: Sequence[CellSummary]) -> list[Plot]:
    """Speed over socket watts, one plot for what compares; a line joins the front.

    What compares has one payload, `WORK`, metric, unit and source. At most `PLOT_LIMIT`.
    """
    groups: dict[tuple[str, str, str, Source | None], list[_Point]] = {}
    for cell in cells:
        metric = main_metric(cell)
        if metric is None or metric.summary is None or cell.watts is None:
            continue
        work = f"{cell.payload} {cell.parameters.get(WORK, '')}".strip()
        point = _Point(cell, cell.watts.mean, metric.summary.mean)
        groups.setdefault((work, metric.name, metric.unit, cell.source), []).append(point)
    return [_pareto(*key, points) for key, points in groups.items()][:PLOT_LIMIT]


def _pareto(
    work: str, metric: str, unit: str, source: Source | None, points: Sequence[_Point]
) -> Plot:
    best = [points[i] for i in pareto_front([(p.watts, p.speed) for p in points], (False, True))]
    best.sort(key=lambda point: (point.watts, point.speed))
    series = _series(points)
    figure, axes = _figure(len(series))
    if len(best) > 1:
        x, y = [p.watts for p in best], [p.speed for p in best]
        axes.step(x, y, where="post", color="#94a3b8", linewidth=1.2, zorder=1)
    for number, (name, chosen) in enumerate(series.items()):
        axes.scatter(
            [point.watts for point in chosen],
            [point.speed for point in chosen],
            label=_literal(name),
            color=COLOURS[number % len(COLOURS)],
            marker=MARKS[(number + number // len(COLOURS)) % len(MARKS)],
            s=34,
            zorder=2,
        )
    axes.set_xlabel("socket power [W], mean of valid trials")
    axes.set_ylabel(_literal(f"{metric} [{unit}]"))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    _legend(figure)
    notes = tuple(
        f"{point.cell.board or point.cell.profile} {point.cell.power_mode} "
        f"{parameters_text(point.cell.parameters)}: {point.speed:.4g} {unit} at "
        f"{point.watts:.4g} W"
        for point in best[:BEST_LIMIT]
    )
    if len(best) > BEST_LIMIT:
        notes += (f"and {len(best) - BEST_LIMIT} more",)
    caption = f"{work}: {metric} over socket power; the line joins the Pareto-best cells"
    return Plot(caption, notes, _svg(figure, f"{work} {metric} {unit} {source}"), source)


def _series(points: Sequence[_Point]) -> dict[str, list[_Point]]:
    """Points by profile, mode and those text parameters that differ; the last take the rest."""
    texts: dict[str, set[object]] = {}
    for point in points:
        for name, value in point.cell.parameters.items():
            if isinstance(value, str):
                texts.setdefault(name, set()).add(value)
    varied = sorted(name for name, values in texts.items() if len(values) > 1)
    series: dict[str, list[_Point]] = {}
    for point in sorted(points, key=lambda one: (one.cell.profile, one.cell.power_mode)):
        cell = point.cell
        more = [str(cell.parameters[name]) for name in varied if name in cell.parameters]
        name = " ".join([cell.profile, cell.power_mode, *more])
        if name not in series and len(series) >= SERIES_LIMIT - 1:
            name = "others"
        series.setdefault(name, []).append(point)
    return series


def trace_plot(example: TraceExample) -> Plot:
    """One attempt's socket power over time, with the measured window and the idle baseline."""
    figure, axes = _figure(3)
    record, trace = example.record, example.trace
    seconds = [t - example.begin_s for t in trace.t_s]
    line = axes.step(seconds, trace.power_w, where="post", color=COLOURS[0], linewidth=1.0)
    if len(seconds) > DENSE_POINTS:
        line[0].set_rasterized(True)
    axes.axvspan(
        0, example.end_s - example.begin_s, color="#fde68a", alpha=0.45, label="measured window"
    )
    power = record.power
    if power is not None and power.mean_w is not None:
        axes.axhline(
            power.mean_w, color=COLOURS[1], linewidth=1.0, label=f"mean {power.mean_w:.2f} W"
        )
    if power is not None and power.idle_w is not None:
        axes.axhline(
            power.idle_w,
            color=COLOURS[5],
            linewidth=1.0,
            linestyle="--",
            label=f"idle {power.idle_w:.2f} W",
        )
    axes.set_xlabel("time since the window began [s]")
    axes.set_ylabel("socket power [W]")
    axes.set_ylim(bottom=0)
    _legend(figure)
    caption = f"Power trace of {record.attempt_id} on {record.board}, meter {trace.meter}: "
    caption += f"{len(trace)} samples, {len(trace.misses)} missed polls"
    return Plot(caption, (), _svg(figure, "trace"), record.source)


def _figure(labels: int) -> "tuple[Figure, Axes]":
    rows = -(-labels // LEGEND_COLUMNS)
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN + rows * LEGEND_ROW_IN), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(visible=True, color="#e2e8f0", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(0.07)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _legend(figure: Figure) -> None:
    """Below the plot: names are as long as they like without taking its room."""
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=LEGEND_COLUMNS)


def _literal(text: str) -> str:
    """Text that matplotlib must not take for formulas, or hide: names come from files."""
    shown = _UNSHOWABLE.sub("?", text)
    if len(shown) > LABEL_LIMIT:
        shown = shown[: LABEL_LIMIT - 3] + "..."
    # A backslash before a dollar would undo its escape; a label with "_" first is left out.
    shown = shown.replace("\\", "/").replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _svg(figure: Figure, salt: str) -> str:
    out = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}), _quiet_glyphs():
        figure.savefig(out, format="svg", metadata=nothing)
    text = out.getvalue()
    return text[text.index("<svg") :]


@contextlib.contextmanager
def _quiet_glyphs() -> Iterator[None]:
    """The reader's browser has glyphs for what the font that measures text lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
