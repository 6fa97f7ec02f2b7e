"""The report: one HTML file that opens without network or script."""

from collections import Counter
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from farm.model.attempt import TrialState
from farm.model.record import Source
from farm.reporting.data import ReportData
from farm.reporting.plots import Plot, pareto_plots, trace_plot
from farm.reporting.summary import summarise_run
from farm.reporting.tables import DECIDED, cell_rows, fixed_lines, open_rows, published_rows

SHOWN_EVENTS = (
    "retry",
    "recovery",
    "quarantined",
    "board_back",
    "board_lost",
    "lab_fault",
    "lab_fault_over",
    "outlet_left_off",
    "trial_moved",
    "restore_failed",
    "idle_drift",
    "not_settled",
    "notify_failed",
    "store_waits",
)
EVENT_LIMIT = 200
DOUBT_LIMIT = 300


def render_report(data: ReportData) -> str:
    """The report as HTML text. Everything from boards and files is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(
        files("farm.reporting").joinpath("report.html.j2").read_text("utf-8")
    )
    plots = pareto_plots(data.cells)
    if data.trace is not None:
        plots.append(trace_plot(data.trace))
    cell_columns, cells = cell_rows(data.results)
    published_columns, published = published_rows(data.comparisons)
    open_columns, open_trials = open_rows(data.results)
    states = Counter(result.state for result in data.results)
    sources = sorted({result.source for result in data.results if result.source is not None})
    events = [event for event in data.events if event.kind in SHOWN_EVENTS]
    doubtful = [one for one in data.results if one.verdict and one.verdict.reasons]
    return template.render(
        data=data,
        summary=summarise_run(data.run_id, data.results, data.events),
        sources=sources,
        is_simulated=Source.SIMULATED in sources,
        states={state.value: states[state] for state in TrialState if states[state]},
        cell_columns=cell_columns,
        cells=cells,
        fixed=fixed_lines(data.results),
        published_columns=published_columns,
        published=published,
        plots=[(plot, _markup(plot)) for plot in plots],
        open_count=sum(one.state not in DECIDED for one in data.results),
        open_columns=open_columns,
        open_trials=open_trials,
        doubtful=doubtful[:DOUBT_LIMIT],
        more_doubtful=max(0, len(doubtful) - DOUBT_LIMIT),
        events=events[:EVENT_LIMIT],
        more_events=max(0, len(events) - EVENT_LIMIT),
    )


def _markup(plot: Plot) -> Markup:
    """Matplotlib wrote this SVG and escaped the text in it."""
    return Markup(plot.svg)  # noqa: S704 - not user text, see above
