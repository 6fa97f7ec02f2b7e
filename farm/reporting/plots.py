"""Plots as inline SVG: no script, no network, text stays text; by `Figure`, without pyplot."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from farm.analysis.cells import CellSummary
from farm.analysis.pareto import pareto_front
from farm.model.parameters import parameters_text
from farm.reporting.data import TraceExample
from farm.reporting.figures import main_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE_IN = (8.0, 4.2)
COLOURS = ("#2563eb", "#d97706", "#059669", "#be185d", "#7c3aed", "#475569", "#0891b2", "#b91c1c")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
DENSE_POINTS = 4000
"""Above this many points a line is drawn as pixels: the SVG stays small."""
TEXT_ROWS = 12


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: a caption, what it says to those who cannot see it, and the SVG."""

    caption: str
    description: str
    svg: str


def pareto_plots(cells: Sequence[CellSummary]) -> list[Plot]:
    """Speed over socket watts, a plot a unit of speed; the front is joined by a line."""
    groups: dict[str, list[tuple[CellSummary, float, float]]] = {}
    for cell in cells:
        metric = main_metric(cell)
        if metric is None or metric.summary is None or cell.watts is None:
            continue
        point = (cell, cell.watts.mean, metric.summary.mean)
        groups.setdefault(f"{metric.name} [{metric.unit}]", []).append(point)
    return [_pareto(name, points) for name, points in groups.items()]


def _pareto(name: str, points: Sequence[tuple[CellSummary, float, float]]) -> Plot:
    figure, axes = _figure()
    front = pareto_front([(watts, speed) for _, watts, speed in points], (False, True))
    edge = sorted((points[index][1], points[index][2]) for index in front)
    if len(edge) > 1:
        axes.step(*zip(*edge, strict=True), where="post", color="#94a3b8", linewidth=1.2, zorder=1)
    kinds = sorted({_kind(cell) for cell, _, _ in points})
    for number, kind in enumerate(kinds):
        chosen = [(watts, speed) for cell, watts, speed in points if _kind(cell) == kind]
        axes.scatter(
            [watts for watts, _ in chosen],
            [speed for _, speed in chosen],
            label=_literal(kind),
            color=COLOURS[number % len(COLOURS)],
            marker=MARKS[number % len(MARKS)],
            s=34,
            zorder=2,
        )
    axes.set_xlabel("socket power [W], mean of valid trials")
    axes.set_ylabel(_literal(name))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    best = [points[index] for index in front]
    text = "; ".join(
        f"{_kind(cell)} {parameters_text(cell.parameters)}: {speed:.4g} at {watts:.4g} W"
        for cell, watts, speed in best[:TEXT_ROWS]
    )
    caption = f"{name} over socket power; the line joins the {len(front)} Pareto-best cells"
    return Plot(caption, f"Pareto-best: {text}", _svg(figure, f"pareto {name}"))


def _kind(cell: CellSummary) -> str:
    return f"{cell.profile} {cell.payload} {cell.power_mode}"


def trace_plot(example: TraceExample) -> Plot:
    """One attempt's socket power over time, with the measured window and the idle baseline."""
    figure, axes = _figure()
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
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    caption = f"Power trace of {record.attempt_id} on {record.board}, meter {trace.meter}"
    text = f"{len(trace)} samples, {len(trace.misses)} missed polls"
    return Plot(caption, text, _svg(figure, "trace"))


def _figure() -> "tuple[Figure, Axes]":
    figure = Figure(figsize=SIZE_IN, layout="constrained")
    axes = figure.add_subplot()
    axes.grid(visible=True, color="#e2e8f0", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _literal(text: str) -> str:
    """Text that matplotlib must not take for formulas: names come from files and boards."""
    return text.replace("\\", "/").replace("$", r"\$").lstrip("_")


def _svg(figure: Figure, salt: str) -> str:
    out = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with mpl.rc_context(
        {"svg.hashsalt": salt, "svg.fonttype": "none", "font.family": "sans-serif"}
    ):
        figure.savefig(out, format="svg", metadata=nothing)
    text = out.getvalue()
    return text[text.index("<svg") :]
