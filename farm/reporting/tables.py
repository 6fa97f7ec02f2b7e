"""Results as columns and rows of text: for the terminal, and for the report."""

from collections.abc import Iterable, Mapping, Sequence

from farm.analysis.cells import CellSummary, summarise_cells
from farm.analysis.compare import Comparison, RunComparison
from farm.analysis.statistics import Summary
from farm.model.attempt import TrialState
from farm.model.parameters import canonical_json, parameters_text
from farm.model.record import Scalar
from farm.model.result import TrialResult
from farm.reporting.figures import UNKNOWN, main_metric, mean_and_spread, number, percent

Table = tuple[list[str], list[list[object]]]
Kind = tuple[str, str]
MILLI = 1000.0
DECIDED = (TrialState.DONE, TrialState.UNSUPPORTED)


def cell_rows(results: Sequence[TrialResult]) -> Table:
    """A row a cell: mean and sample standard deviation over its valid trials."""
    columns = ["board", "payload", "parameters", "mode", "source", "valid", "speed", "W"]
    columns += ["mJ/inference", "net mJ", "verdicts"]
    rows: list[list[object]] = []
    cells = summarise_cells(results)
    varied, words = _varied(cells), _mode_words(results)
    for cell in cells:
        metric = main_metric(cell)
        asked = words.get((cell.profile, cell.power_mode))
        rows.append(
            [
                cell.board or cell.profile,
                cell.payload,
                _parameters(cell, varied),
                cell.power_mode + (f" ({', '.join(asked)})" if asked else ""),
                cell.source.value if cell.source else UNKNOWN,
                f"{cell.n_valid}/{cell.n_total}",
                f"{mean_and_spread(metric.summary)} {metric.unit}" if metric else UNKNOWN,
                mean_and_spread(cell.watts),
                mean_and_spread(cell.energy_per_inference_j, MILLI),
                mean_and_spread(cell.net_energy_per_inference_j, MILLI),
                ", ".join(f"{count} {status}" for status, count in cell.verdicts.items())
                or ", ".join(f"{count} {state}" for state, count in cell.states.items()),
            ]
        )
    return columns, rows


def trial_rows(results: Sequence[TrialResult]) -> Table:
    """A row a trial, in the order of the plan."""
    columns = ["trial", "board", "payload", "parameters", "mode", "state", "source", "verdict"]
    columns += ["W", "metrics", "why"]
    rows: list[list[object]] = []
    for one in results:
        metrics = " ".join(
            f"{name}={number(value.value)} {value.unit}" for name, value in one.metrics.items()
        )
        rows.append(
            [
                one.trial,
                one.board,
                one.payload,
                parameters_text(one.parameters),
                _pick(one),
                one.state.value,
                one.source.value if one.source else UNKNOWN,
                one.verdict.status.value if one.verdict else UNKNOWN,
                number(one.power.mean_w if one.power else None),
                metrics or UNKNOWN,
                one.reason,
            ]
        )
    return columns, rows


def published_rows(comparisons: Sequence[Comparison]) -> Table:
    """A row a cell that a publication has, too: the run's mean, the printed one, how far off."""
    columns = ["board", "parameters", "mode", "source", "n", "images/s", "printed", "off"]
    columns += ["W", "printed W", "off W", "mJ/image", "printed mJ", "off mJ"]
    rows: list[list[object]] = []
    varied = _varied_values(
        ((pair.published.profile, pair.published.payload), pair.published.parameters)
        for pair in comparisons
    )
    for pair in comparisons:
        cell, printed = pair.cell, pair.published
        names = varied[printed.profile, printed.payload] or set(printed.parameters)
        rows.append(
            [
                cell.board or cell.profile,
                _chosen_text(printed.parameters, names),
                cell.power_mode,
                cell.source.value if cell.source else UNKNOWN,
                cell.n_valid,
                number(_mean(pair.images_per_s)),
                number(printed.images_per_s),
                percent(pair.images_per_s_ratio),
                number(_mean(pair.watts)),
                number(printed.power_w),
                percent(pair.watts_ratio),
                number(_milli(_mean(pair.energy_per_image_j))),
                number(_milli(pair.printed_energy_per_image_j)),
                percent(pair.energy_per_image_ratio),
            ]
        )
    return columns, rows


def run_rows(comparisons: Sequence[RunComparison]) -> Table:
    """A row a quantity of a cell in two runs; what only one of them has is said."""
    columns = ["board", "payload", "parameters", "mode", "source", "quantity", "first"]
    columns += ["second", "unit", "difference", "95 %", "significant"]
    rows: list[list[object]] = []
    for pair in comparisons:
        cell = pair.a or pair.b
        if cell is None:
            continue
        head: list[object] = [cell.board or cell.profile, cell.payload]
        head += [parameters_text(cell.parameters), cell.power_mode]
        head.append(cell.source.value if cell.source else UNKNOWN)
        if pair.a is None or pair.b is None:
            only = "the second" if pair.a is None else "the first"
            rows.append([*head, f"only in {only}", *[UNKNOWN] * 6])
        for one in pair.differences:
            significant = {None: "unknown", True: "yes", False: "no"}[one.is_significant]
            relative = None if one.relative is None else one.relative + 1
            rows.append(
                [
                    *head,
                    one.name,
                    number(one.a.mean),
                    number(one.b.mean),
                    one.unit,
                    percent(relative),
                    number(one.ci95_half, 2),
                    significant,
                ]
            )
    return columns, rows


def open_rows(results: Sequence[TrialResult]) -> Table:
    """Trials without a result, those of a board with the same reason in one row."""
    columns = ["board", "payload", "state", "trials", "attempts", "why"]
    groups: dict[tuple[str, str, str, str], list[TrialResult]] = {}
    for one in results:
        if one.state not in DECIDED:
            key = (one.board, one.payload, one.state.value, one.reason)
            groups.setdefault(key, []).append(one)
    rows: list[list[object]] = []
    for (board, payload, state, reason), trials in groups.items():
        names = trials[0].trial if len(trials) == 1 else f"{len(trials)}: {trials[0].trial} ..."
        rows.append([board, payload, state, names, max(one.attempts for one in trials), reason])
    return columns, rows


def fixed_lines(results: Sequence[TrialResult]) -> list[str]:
    """What `cell_rows` leaves out: parameters that are the same in all of a profile's cells."""
    cells = summarise_cells(results)
    varied = _varied(cells)
    lines = {}
    for cell in cells:
        names = set(cell.parameters) - varied[cell.profile, cell.payload]
        if names and varied[cell.profile, cell.payload]:
            text = parameters_text({name: cell.parameters[name] for name in names})
            lines[cell.profile, cell.payload] = f"{cell.profile}, {cell.payload}: {text}"
    return list(lines.values())


def _mode_words(results: Sequence[TrialResult]) -> dict[tuple[str, str], list[str]]:
    """By profile and mode read back, the words of the sweep that were taken for it."""
    words: dict[tuple[str, str], list[str]] = {}
    for one in results:
        asked, name = one.power_mode.asked, one.power_mode.name
        if name is not None and asked.lower() != name.lower():
            known = words.setdefault((one.profile, name), [])
            known += [] if asked in known else [asked]
    return words


def _pick(one: TrialResult) -> str:
    asked, name = one.power_mode.asked, one.power_mode.name
    if name is None or asked.lower() == name.lower():
        return name or asked
    return f"{name} ({asked})"


def _varied(cells: Sequence[CellSummary]) -> dict[Kind, set[str]]:
    return _varied_values(((cell.profile, cell.payload), cell.parameters) for cell in cells)


def _varied_values(given: Iterable[tuple[Kind, Mapping[str, Scalar]]]) -> dict[Kind, set[str]]:
    """By profile and payload the parameters that differ, or that only some have."""
    groups: dict[Kind, list[Mapping[str, Scalar]]] = {}
    for kind, parameters in given:
        groups.setdefault(kind, []).append(parameters)
    return {kind: _differing(group) for kind, group in groups.items()}


def _differing(group: Sequence[Mapping[str, Scalar]]) -> set[str]:
    values: dict[str, list[str]] = {}
    for parameters in group:
        for name, value in parameters.items():
            values.setdefault(name, []).append(canonical_json(value))
    return {
        name for name, found in values.items() if len(set(found)) > 1 or len(found) < len(group)
    }


def _parameters(cell: CellSummary, varied: dict[Kind, set[str]]) -> str:
    names = varied[cell.profile, cell.payload] or set(cell.parameters)
    return _chosen_text(cell.parameters, names)


def _chosen_text(parameters: Mapping[str, Scalar], names: set[str]) -> str:
    return parameters_text({name: parameters[name] for name in names & set(parameters)})


def _mean(summary: Summary | None) -> float | None:
    return None if summary is None else summary.mean


def _milli(value: float | None) -> float | None:
    return None if value is None else value * MILLI
