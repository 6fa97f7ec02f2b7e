"""The views of a run, told of events by hand: rows, counts, time left, what is drawn."""

import io
import re
from datetime import UTC, datetime

import pytest
from rich.console import Console

from farm.cli.live import LiveView, PlainView, RunView, open_view
from farm.interfaces.sinks import RunEvent, TrialProgress
from farm.model.attempt import TrialState
from farm.model.plan import Cell, Lane, Plan, Trial
from farm.model.sweep import PayloadAxes, Sweep

NOW = datetime(2026, 11, 30, 22, 15, 3, tzinfo=UTC)
HOSTILE = "\x1b[2J\x9b31m\u202e[bold]x[/nothing]\r\nfarm: all done"


class HandClock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def make_plan(lanes: dict[str, int], each_s: float = 60.0, model: str = "ResNet50") -> Plan:
    made = []
    for board, count in lanes.items():
        cell = Cell(
            cell_id=f"c-{board}",
            target=board,
            is_any=False,
            profile="jetson-tx2",
            payload="cnn",
            payload_digest="ab" * 32,
            level=3,
            power_mode="maxn",
            clocks="default",
            parameters={"model": model},
        )
        trials = tuple(Trial(f"{board}-r{n:02}", cell, n, board) for n in range(1, count + 1))
        made.append(Lane(board, "jetson-tx2", None, trials, 1, 0, each_s * count))
    sweep = Sweep(name="night", payloads=(PayloadAxes(payload="cnn"),))
    return Plan(sweep, "cd" * 32, tuple(made), max(lane.estimate_s for lane in made))


def event(
    kind: str, board: str = "a", trial: str = "", text: str = "", **data: object
) -> RunEvent:
    return RunEvent(NOW, kind, board, trial, "", text, data)


def ended(board: str, number: int, state: str = "done", **data: str) -> RunEvent:
    return event("trial_end", board, f"{board}-r{number:02}", state=state, **data)


def drawn(view: LiveView, width: int = 100) -> str:
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(view.render())
    return console.export_text()


def live(plan: Plan, height: int = 30, known: dict[str, TrialProgress] | None = None) -> LiveView:
    console = Console(width=100, height=height, file=io.StringIO())
    return LiveView(plan, known or {}, console)


def test_a_row_follows_its_board() -> None:
    view = RunView(make_plan({"a": 2}), {})
    row = view.rows["a"]
    assert (row.state, row.ended, row.total) == ("waiting", 0, 2)
    view.event(event("board_ready"))
    assert row.state == "ready"
    view.event(event("trial_prepare", trial="a-r01"))
    assert (row.state, row.mode, row.trial) == ("preparing", "maxn", "cnn model=ResNet50")
    view.event(event("reboot"))
    assert row.state == "rebooting"
    view.event(event("power_mode", name="MAXN_SUPER"))
    assert row.mode == "MAXN_SUPER"
    view.event(event("trial_start", trial="a-r01"))
    assert (row.state, row.mode) == ("running", "MAXN_SUPER")
    view.watts("a", 9.25)
    view.watts("unknown", 1.0)
    view.event(event("temperature", celsius=47.5))
    assert (row.power_w, row.temperature_c) == (9.25, 47.5)
    view.event(ended("a", 1))
    assert (row.state, row.ended, row.trial) == ("ready", 1, "")
    view.event(event("retry"))
    assert row.state == "retrying"
    view.event(ended("a", 2, "failed"))
    assert (row.state, row.ended, row.bad) == ("finished", 2, 1)
    view.event(event("restore_failed"))
    assert row.state == "not restored"


def test_a_trial_that_is_tried_again_is_not_counted() -> None:
    view = RunView(make_plan({"a": 2}), {})
    view.event(ended("a", 1, "pending"))
    assert view.ended == 0
    view.event(ended("a", 1, "unsupported"))
    assert (view.ended, view.rows["a"].bad) == (1, 0)


def test_a_resumed_run_begins_with_what_was_done() -> None:
    known = {
        "a-r01": TrialProgress("a-r01", TrialState.DONE, 1),
        "a-r02": TrialProgress("a-r02", TrialState.RUNNING, 1),
        "gone": TrialProgress("gone", TrialState.DONE, 1),
    }
    clock = HandClock()
    view = RunView(make_plan({"a": 4}), known, clock)
    assert (view.ended, view.total) == (1, 4)
    # What an earlier process did says nothing of this one's pace.
    assert view.eta_s() == pytest.approx(180.0)


def test_the_time_left_begins_at_the_plan_and_counts_down() -> None:
    clock = HandClock()
    view = RunView(make_plan({"a": 10, "b": 2}), {}, clock)
    assert view.eta_s() == pytest.approx(600.0)
    clock.now_s += 50
    assert view.eta_s() == pytest.approx(550.0)
    clock.now_s += 10_000
    assert view.eta_s() == 0.0


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_the_time_left_falls_from_trial_to_trial_and_ends_at_nothing(factor: float) -> None:
    clock = HandClock()
    view = RunView(make_plan({"a": 20}), {}, clock)
    left = []
    for number in range(1, 21):
        clock.now_s += 60 * factor
        view.event(ended("a", number))
        left.append(view.eta_s())
    # Slow trials are learned from at first; from then on it falls all the time.
    assert left[4:] == sorted(left[4:], reverse=True)
    assert left[14] == pytest.approx(5 * 60 * factor, rel=0.15)
    assert left[-1] == 0.0
    assert min(left) >= 0.0


def test_the_slowest_lane_decides_not_the_mean() -> None:
    clock = HandClock()
    view = RunView(make_plan({"quick": 4, "slow": 40}), {}, clock)
    for number in range(1, 5):
        clock.now_s += 60
        view.event(ended("quick", number))
        view.event(ended("slow", number))
    assert view.rows["quick"].state == "finished"
    assert view.eta_s() == pytest.approx(36 * 60)


def test_the_view_shows_board_state_mode_counts_watts_temperature_and_totals() -> None:
    view = live(make_plan({"a": 2, "b": 2}))
    for board in ("a", "b"):
        view.event(event("trial_start", board, f"{board}-r01"))
        view.watts(board, 9.25)
    view.event(event("temperature", "a", celsius=47.4))
    view.event(ended("b", 1, "failed", verdict="invalid"))
    text = drawn(view)
    head, *rest = text.splitlines()
    assert head.startswith("night   1/4 trials   1 failed   18.5 W   about ")
    (row,) = [line for line in rest if re.search(r"\ba\b.*running", line)]
    assert re.findall(r"[^│┃\s]+", row) == [
        *["a", "running", "maxn", "0/2", "9.2", "47", "cnn", "model=ResNet50"]
    ]
    assert "1/2 (1 failed)" in text
    assert "22:15:03 b failed (invalid)" in text
    assert "°C" in text


def test_a_temperature_is_no_event_to_list() -> None:
    view = live(make_plan({"a": 2}))
    view.event(event("temperature", celsius=47.0))
    assert not view.events


def test_many_boards_do_not_push_the_events_off_the_screen() -> None:
    view = live(make_plan({f"board-{n:02}": 1 for n in range(60)}), height=30)
    view.event(event("trial_start", "board-59", "board-59-r01"))
    view.event(event("retry", "board-58", text="unplugged"))
    text = drawn(view)
    assert len(text.splitlines()) <= 30
    assert "board-59" in text
    assert "... 44 more" in text
    assert "unplugged" in text


def test_text_from_boards_neither_drives_the_terminal_nor_breaks_the_view() -> None:
    view = live(make_plan({"a": 1}, model=HOSTILE))
    view.event(event("trial_start", trial="a-r01"))
    view.event(event("retry", text=HOSTILE))
    out = io.StringIO()
    Console(file=out, force_terminal=True, width=200, height=40).print(view.render())
    for code in ("\x1b[2J", "\x9b", "\u202e", "\r"):
        assert code not in out.getvalue()
    assert "[bold]x[/nothing]" in out.getvalue()  # not taken for markup
    assert not any(line.startswith("farm:") for line in out.getvalue().splitlines())


def test_plain_lines_count_trials_and_stay_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView(make_plan({"a": 2}), {})
    view.event(event("board_ready"))
    view.event(event("trial_prepare", trial="a-r01"))
    view.event(event("retry", text=HOSTILE))
    view.event(ended("a", 1, verdict="valid"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "board ready" in lines[0]
    assert "\x1b" not in lines[1]
    assert "[1/2]" in lines[2]
    assert "done (valid)" in lines[2]


def test_without_a_terminal_the_view_is_plain() -> None:
    with open_view(make_plan({"a": 1}), {}, plain_lines=False) as view:
        assert isinstance(view, PlainView)


def test_a_terminal_gets_the_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with open_view(make_plan({"a": 1}), {}, plain_lines=False) as view:
        assert isinstance(view, LiveView)
        view.event(ended("a", 1))
    with open_view(make_plan({"a": 1}), {}, plain_lines=True) as view:
        assert isinstance(view, PlainView)
