"""A workspace with stored results, made by hand: no lab is needed to look at one."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner, Result

from farm.cli.main import app
from farm.errors import FarmError
from farm.model.attempt import Outcome, TrialState
from farm.model.measurement import Measurement, PowerResult, Reason, Verdict, VerdictStatus
from farm.model.record import Source
from farm.pipeline.lab import open_lab
from farm.pipeline.runs import create_run, open_lab_store, plan_sweep
from farm.store.database import Store
from tests.store.builders import NOW, make_record

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e[red]no[/nothing]"

INVENTORY = """\
boards:
  tx2-[01..02]:
    profile: jetson-tx2
    host: "127.0.2.{n}"
    user: nvidia
    meter: plug-{n}
    tags: [gpu]
    simulation: {}
meters:
  plug-[01..02]: {kind: shelly, host: "127.0.3.{n}"}
"""
SWEEP = """\
name: small
boards: all
power_modes: [maxn]
repeats: 2
payloads:
  - payload: matmul
    axes: {size: 64, threads: [1, 2]}
"""


@dataclass(frozen=True)
class Answer:
    """What a command did; a FarmError is in `error`, as `main` would print it."""

    result: Result

    @property
    def out(self) -> str:
        return self.result.stdout

    @property
    def err(self) -> str:
        error = self.result.exception
        return str(error) if isinstance(error, FarmError) else self.result.stderr

    @property
    def code(self) -> int:
        error = self.result.exception
        return error.exit_code if isinstance(error, FarmError) else self.result.exit_code


def farm(*arguments: str | Path) -> Answer:
    """Run a command in this process; what is no FarmError is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    error = result.exception
    if error is not None and not isinstance(error, FarmError | SystemExit):
        raise error
    return Answer(result)


def make_workspace(folder: Path) -> Path:
    (folder / "sweeps").mkdir(parents=True)
    (folder / "inventory.yaml").write_text(INVENTORY)
    (folder / "sweeps" / "small.yaml").write_text(SWEEP)
    return folder


def store_run(folder: Path, speed: float = 6.0, text: str = "") -> str:
    """A run with valid, suspect, failed and pending trials; its id."""
    lab = open_lab(folder)
    with open_lab_store(lab) as store:
        run_id = create_run(lab, store, plan_sweep(lab, "small"))
        asyncio.run(_store_attempts(store, run_id, speed, text))
        store.set_run_state(run_id, "finished")
    return run_id


async def _store_attempts(store: Store, run_id: str, speed: float, text: str) -> None:
    journal = store.journal(run_id)
    try:
        trials = store.load_plan(run_id).trials
        for index, trial in enumerate(trials[:-1]):
            is_bad = index == len(trials) - 2
            record = make_record(
                run_id,
                trial.trial_id,
                board=trial.board,
                outcome=Outcome.FAILED if is_bad else Outcome.OK,
                verdict=_verdict(index, is_bad=is_bad, text=text),
                metrics={}
                if is_bad
                else {"gflops": Measurement(value=speed + index / 10, unit="GFLOP/s")},
                power=None if is_bad else _power(8.0 + index / 10),
                reason=f"exit status 3 {text}" if is_bad else "",
            ).model_copy(
                update={
                    "parameters": trial.cell.parameters,
                    "payload": trial.cell.payload,
                    "payload_digest": trial.cell.payload_digest,
                    "source": Source.SIMULATED,
                    "started": NOW,
                }
            )
            folder = await journal.begin_attempt(
                record.attempt_id, trial.trial_id, trial.board, 1, NOW
            )
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "stdout.log").write_text(f"hello from {trial.board} {text}\nsecond line\n")
            state = TrialState.FAILED if is_bad else TrialState.DONE
            await journal.finish_attempt(record, state, None)
    finally:
        await journal.close()


def _verdict(index: int, *, is_bad: bool, text: str) -> Verdict:
    if is_bad:
        reason = Reason(code="attempt_failed", text=f"exit status 3 {text}")
        return Verdict(status=VerdictStatus.INVALID, reasons=(reason,))
    if index == 0:
        reason = Reason(code="spikes", text=f"2 readings {text}")
        return Verdict(status=VerdictStatus.SUSPECT, reasons=(reason,))
    return Verdict(status=VerdictStatus.VALID)


def _power(watts: float) -> PowerResult:
    return PowerResult(
        meter="plug-01",
        mean_w=watts,
        idle_w=3.0,
        window_s=20.0,
        energy_j=watts * 20,
        energy_per_inference_j=0.001,
        net_energy_per_inference_j=0.0005,
        uncertainty_w=0.1,
        fresh_updates=20,
        coverage=1.0,
    )
