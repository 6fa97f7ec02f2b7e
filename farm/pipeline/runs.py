"""Plans, creates and executes runs."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from farm import __version__
from farm.config.sweeps import check_sweep, load_sweep_document
from farm.errors import (
    ConfigError,
    FarmError,
    InterruptedRunError,
    NoBoardReachedError,
    RunHeldError,
)
from farm.execution.equipment import RunServices
from farm.execution.fleet import FleetEnd, run_fleet
from farm.execution.notices import Notices, RunFacts
from farm.execution.system_clock import SystemClock
from farm.interfaces.clock import Clock
from farm.interfaces.sinks import Progress
from farm.model.attempt import TrialState
from farm.model.parameters import short_id
from farm.model.payload import Payload
from farm.model.plan import Plan
from farm.model.power_mode import PowerModeState
from farm.model.trace import PowerTrace
from farm.pipeline.equipment import equip
from farm.pipeline.lab import Lab
from farm.pipeline.notify import hook_faults, open_hooks, trial_counts
from farm.planning.plan import make_plan
from farm.store.database import Store, open_store
from farm.store.traces import TraceLog, read_trace_log


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: counts by trial state, and what stopped a lane."""

    run_id: str
    counts: dict[TrialState, int]
    faults: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Every trial done or unsupported: nothing is left to do or to explain."""
        good = self.counts.get(TrialState.DONE, 0) + self.counts.get(TrialState.UNSUPPORTED, 0)
        return good == sum(self.counts.values())


def plan_sweep(lab: Lab, sweep: str) -> Plan:
    """The plan of a sweep: a file, or the name of one in the workspace or built in.

    Raises ConfigError.
    """
    path = lab.workspace.sweep_path(sweep)
    loaded, document = load_sweep_document(path)
    boards = lab.inventory.boards
    check_sweep(document, loaded, lab.payloads, lab.profiles, boards)
    return make_plan(loaded, boards, lab.profiles, lab.payloads)


def open_lab_store(lab: Lab, *, create: bool = True) -> Store:
    """The workspace's store. FARM_DATABASE_URL names another database. Raises StoreError."""
    return open_store(
        lab.workspace.results_dir, create=create, database_url=os.environ.get("FARM_DATABASE_URL")
    )


def create_run(lab: Lab, store: Store, plan: Plan, clock: Clock | None = None) -> str:
    """Write a plan into the store as a new run; returns its id."""
    inventory = lab.inventory.model_dump(mode="json", exclude={"notify"})  # no part of a result
    return store.create_run(
        plan,
        inventory_digest=short_id(inventory, 16),
        tool_version=__version__,
        created=(clock or SystemClock()).now(),
    )


async def execute(lab: Lab, store: Store, run_id: str, progress: Progress) -> RunEnd:
    """Run what is unfinished of a run, to its end.

    The first SIGINT or SIGTERM stops payloads and restores boards; a second ends the process
    at once, as a kill would: `farm resume` then adopts what the boards go on with.

    Raises:
        RunHeldError: another process works on it.
        InterruptedRunError: stopped by the user.
        NoBoardReachedError: not one board could be reached.
        StoreError, ConfigError.
    """
    with store.lock_run(run_id), _host_log(store.run_folder(run_id)):
        work = asyncio.create_task(_execute(lab, store, run_id, progress))
        with _stopping_on_signals(work):
            try:
                end = await work
            except asyncio.CancelledError:
                store.set_run_state(run_id, "interrupted")
                raise InterruptedRunError(
                    f"stopped; `farm resume {run_id}` goes on where it stood"
                ) from None
    if not end.has_reached_any:
        faults = "\n".join(lane.fault for lane in end.lanes if lane.fault)
        raise NoBoardReachedError(f"no board could be reached:\n{faults}")
    return run_end(store, run_id, end)


def stop_run(store: Store, run_id: str) -> int:
    """Ask the process that works on a run to stop, as Ctrl-C would; returns its pid.

    Raises RunHeldError when nobody works on it, or when it is a process of another host.
    """
    holder = store.run_holder(run_id)
    if holder is None:
        raise RunHeldError(f"nobody works on run {run_id}")
    if holder.host != socket.gethostname() or not holder.pid:
        raise RunHeldError(f"run {run_id} is worked on by process {holder.pid} on {holder.host}")
    os.kill(holder.pid, signal.SIGTERM)
    return holder.pid


def run_end(store: Store, run_id: str, end: FleetEnd) -> RunEnd:
    """Counts by trial state, from the store."""
    counts: dict[TrialState, int] = {}
    for trial in store.progress(run_id).values():
        counts[trial.state] = counts.get(trial.state, 0) + 1
    return RunEnd(run_id, counts, tuple(lane.fault for lane in end.lanes if lane.fault))


async def _execute(lab: Lab, store: Store, run_id: str, progress: Progress) -> FleetEnd:
    clock = SystemClock()
    plan = store.load_plan(run_id)
    hooks = open_hooks(lab)
    journal = store.journal(run_id)
    facts = RunFacts(
        run_id, plan.sweep.name, str(store.run_folder(run_id)), host=socket.gethostname()
    )
    notices = Notices(progress, hooks, facts, journal, clock)
    for fault in await asyncio.to_thread(hook_faults, hooks):
        notices.fail(fault)
    try:
        store.set_run_state(run_id, "running")
        services = RunServices(
            run_id=run_id,
            holder=f"{socket.gethostname()} pid {os.getpid()}",
            tool_version=__version__,
            rules=plan.sweep.measure,
            limits=plan.sweep.limits,
            payloads=_payloads_of(lab, plan),
            journal=journal,
            progress=notices,
            clock=clock,
            originals=_originals(store, run_id),
            open_trace=_open_trace,
            read_trace=_read_trace,
            fan=plan.sweep.fan,
        )
        left_open = await journal.open_attempts()
        known = await asyncio.to_thread(store.progress, run_id)
        end = await run_fleet(plan, equip(lab, plan, clock), services, known, left_open)
        await _tell_end(store, notices, tuple(lane.fault for lane in end.lanes if lane.fault))
    except FarmError as error:
        await _tell_end(store, notices, (str(error),))
        raise
    except asyncio.CancelledError:
        notices.abandon()
        raise
    finally:
        await notices.close()
        await journal.close()
    state = "finished" if not any(lane.fault for lane in end.lanes) else "interrupted"
    store.set_run_state(run_id, state)
    return end


async def _tell_end(store: Store, notices: Notices, faults: tuple[str, ...]) -> None:
    """Let people know that the run ended, whatever came of it."""
    if not notices.hooks:
        return
    try:
        counts = await asyncio.to_thread(trial_counts, store, notices.facts.run_id)
    except FarmError as error:  # of a store that is gone the message is all the more needed
        counts, faults = {}, (*faults, str(error))
    notices.ended("stopped" if faults else "finished", counts, faults)


TRACE_LOG = "power.jsonl"
HOST_LOG = "farm.log"


def _open_trace(folder: Path, meter: str) -> TraceLog:
    folder.mkdir(parents=True, exist_ok=True)
    return TraceLog(folder / TRACE_LOG, meter=meter)


def _read_trace(folder: Path) -> PowerTrace | None:
    path = folder / TRACE_LOG
    return read_trace_log(path) if path.exists() else None


def _payloads_of(lab: Lab, plan: Plan) -> dict[str, Payload]:
    """The payloads of a plan, and proof that they are still what was planned."""
    payloads = {}
    for cell in {trial.cell.payload: trial.cell for trial in plan.trials}.values():
        payload = lab.payloads.get(cell.payload)
        if payload is None or payload.digest != cell.payload_digest:
            change = "is gone" if payload is None else "has changed"
            raise ConfigError(
                f"payload {cell.payload!r} {change} since this run was planned: its results "
                "would not compare. Put it back, or start a new run with `farm run`."
            )
        payloads[cell.payload] = payload
    return payloads


@contextlib.contextmanager
def _host_log(folder: Path) -> Iterator[None]:
    """Keep what farm's and its libraries' loggers say in the run's folder, off the terminal."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(folder / HOST_LOG, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root, noisy = logging.getLogger(), logging.getLogger("asyncssh")
    before = noisy.level
    root.addHandler(handler)
    noisy.setLevel(logging.WARNING)  # it tells of every channel at INFO
    try:
        yield
    finally:
        noisy.setLevel(before)
        root.removeHandler(handler)
        handler.close()


@contextlib.contextmanager
def _stopping_on_signals(work: "asyncio.Task[FleetEnd]") -> Iterator[None]:
    """Cancel `work` at the first SIGINT or SIGTERM; end the process at the second."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop() -> None:
        if work.cancelling():
            os._exit(InterruptedRunError.exit_code)
        work.cancel()

    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def _originals(store: Store, run_id: str) -> dict[str, PowerModeState]:
    """The state in which each board was found, unless it has been put back since."""
    originals: dict[str, PowerModeState] = {}
    for event in store.events(run_id, kinds=("original_state", "restored")):
        if event.kind == "original_state":
            originals[event.board] = PowerModeState.model_validate(event.data["state"])
        else:
            originals.pop(event.board, None)
    return originals
