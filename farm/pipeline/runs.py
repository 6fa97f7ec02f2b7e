"""Plans, creates and executes runs."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from farm import __version__
from farm.config.sweeps import check_sweep, load_sweep_document
from farm.errors import (
    ConfigError,
    FarmError,
    InterruptedRunError,
    NoBoardReachedError,
    RunHeldError,
    StoreAwayError,
)
from farm.execution.equipment import RunServices
from farm.execution.fleet import FleetEnd, run_fleet
from farm.execution.notices import Notices, RunFacts
from farm.execution.system_clock import SystemClock
from farm.interfaces.clock import Clock
from farm.interfaces.sinks import Journal, Progress
from farm.model.attempt import TrialState
from farm.model.history import History
from farm.model.parameters import short_id
from farm.model.payload import Payload
from farm.model.plan import Plan
from farm.model.power_mode import PowerModeState
from farm.model.trace import PowerTrace
from farm.pipeline.equipment import equip
from farm.pipeline.host_log import host_log
from farm.pipeline.lab import Lab
from farm.pipeline.life_signs import SystemClocks, show_life
from farm.pipeline.night import hold_to, read_night, wait_for_start
from farm.pipeline.notify import hook_faults, open_hooks, trial_counts
from farm.pipeline.stopping import Stop, stopping_on_signals
from farm.planning.pace import NO_HISTORY
from farm.planning.plan import make_plan
from farm.store.database import Store, open_store
from farm.store.failures import NoResultsYetError, file_errors
from farm.store.journal import StoreJournal
from farm.store.locks import Holder
from farm.store.traces import TraceLog, read_trace_log


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: counts by trial state, and what stopped a lane."""

    run_id: str
    counts: dict[TrialState, int]
    faults: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Every trial done or unsupported, but for those that the user let be left out."""
        good = (TrialState.DONE, TrialState.UNSUPPORTED, TrialState.SKIPPED)
        return all(state in good or not count for state, count in self.counts.items())


def plan_sweep(lab: Lab, sweep: str, history: History = NO_HISTORY) -> Plan:
    """The plan of a sweep: a file, or the name of one in the workspace or built in.

    `history` serves the estimates. Raises ConfigError.
    """
    path = lab.workspace.sweep_path(sweep)
    loaded, document = load_sweep_document(path)
    boards = lab.inventory.boards
    check_sweep(document, loaded, lab.payloads, lab.profiles, boards)
    return make_plan(loaded, boards, lab.profiles, lab.payloads, history)


def open_lab_store(lab: Lab, *, create: bool = True) -> Store:
    """The workspace's store. FARM_DATABASE_URL names another database. Raises StoreError."""
    return open_store(
        lab.workspace.results_dir, create=create, database_url=os.environ.get("FARM_DATABASE_URL")
    )


def lab_history(lab: Lab) -> History:
    """What the lab's store knows of earlier runs; nothing without one. Raises StoreError."""
    try:
        with open_lab_store(lab, create=False) as store:
            return store.history()
    except NoResultsYetError:
        return NO_HISTORY


def create_run(
    lab: Lab,
    store: Store,
    plan: Plan,
    clock: Clock | None = None,
    *,
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Write a plan into the store as a new run; returns its id.

    `left_out`: trials that are not to be run, and why.
    """
    inventory = lab.inventory.model_dump(mode="json", exclude={"notify"})  # no part of a result
    return store.create_run(
        plan,
        inventory_digest=short_id(inventory, 16),
        tool_version=__version__,
        created=(clock or SystemClock()).now(),
        left_out=left_out,
    )


async def execute(lab: Lab, store: Store, run_id: str, progress: Progress) -> RunEnd:
    """Run what is unfinished of a run, to its end.

    The first SIGINT, SIGTERM or SIGHUP stops payloads and restores boards; a second ends the
    process at once, as a kill would: `farm resume` then adopts what the boards go on with.

    Raises:
        RunHeldError: another process works on it.
        InterruptedRunError: stopped by the user.
        NoBoardReachedError: not one board could be reached.
        StoreError, ConfigError.
    """
    folder = store.run_folder(run_id)
    with store.lock_run(run_id) as owner, host_log(folder, run_id, progress) as view:
        stop = Stop()
        work = asyncio.create_task(_execute(lab, store, run_id, view, owner))
        with stopping_on_signals(work, stop):
            try:
                end = await work
            except asyncio.CancelledError:
                with contextlib.suppress(StoreAwayError):  # `farm resume` goes on all the same
                    store.set_run_state(run_id, "interrupted")
                    store.add_event(run_id, stop.event())
                raise InterruptedRunError(
                    f"stopped; `farm resume {run_id}` goes on where it stood"
                ) from None
    if not end.has_reached_any:
        faults = "\n".join(lane.fault for lane in end.lanes if lane.fault)
        raise NoBoardReachedError(f"no board could be reached:\n{faults}")
    return run_end(store, run_id, end)


def run_end(store: Store, run_id: str, end: FleetEnd) -> RunEnd:
    """Counts by trial state, from the store."""
    counts = dict(store.run(run_id).counts)
    return RunEnd(run_id, counts, tuple(lane.fault for lane in end.lanes if lane.fault))


async def _execute(
    lab: Lab, store: Store, run_id: str, progress: Progress, owner: Holder
) -> FleetEnd:
    clock = SystemClock()
    plan = store.load_rest(run_id, is_counted=False).plan
    hooks = open_hooks(lab)
    journal = store.journal(run_id)
    facts = RunFacts(run_id, plan.sweep.name, str(store.run_folder(run_id)), host=owner.host)
    notices = Notices(progress, hooks, facts, journal, clock)
    for fault in await asyncio.to_thread(hook_faults, hooks):
        notices.fail(fault)
    limit_s = plan.sweep.limits.store_wait_s
    with store.patience.granted(limit_s, notices.tell, _stop_watch()):
        return await _work(lab, store, plan, journal, notices, owner=owner)


async def _work(
    lab: Lab,
    store: Store,
    plan: Plan,
    journal: StoreJournal,
    notices: Notices,
    *,
    owner: Holder,
) -> FleetEnd:
    is_stopping = _stop_watch()
    clock, run_id = notices.clock, notices.facts.run_id
    try:
        await asyncio.to_thread(store.set_run_state, run_id, "running")
        notices.tell("host_began", str(owner))
        services = _services(
            lab, store, plan, run_id, journal=journal, notices=notices, owner=owner
        )
        night = read_night(store, run_id)
        services = await hold_to(night, services, lab, store, plan)
        left_open = await journal.open_attempts()
        known = store.load_rest(run_id, is_counted=False).known
        async with _alive(store, run_id, owner, notices):
            await wait_for_start(night, clock, lambda e: notices.tell(e.kind, e.text, e.data))
            end = await run_fleet(plan, equip(lab, plan, clock), services, known, left_open)
        notices.tell("host_ended", "")
        await _tell_end(store, notices, tuple(lane.fault for lane in end.lanes if lane.fault))
    except FarmError as error:
        await _tell_end(store, notices, (str(error),))
        raise
    except asyncio.CancelledError:
        notices.abandon()
        raise
    finally:
        await notices.close()
        with contextlib.suppress(*((StoreAwayError,) if is_stopping() else ())):
            await journal.close()
    state = "finished" if not any(lane.fault for lane in end.lanes) else "interrupted"
    await asyncio.to_thread(store.set_run_state, run_id, state)
    return end


def _stop_watch() -> Callable[[], bool]:
    """Tells, in any thread, whether the task that is current now was asked to stop."""
    task = asyncio.current_task()
    return lambda: task is not None and task.cancelling() > 0


def _services(
    lab: Lab,
    store: Store,
    plan: Plan,
    run_id: str,
    *,
    journal: Journal,
    notices: Notices,
    owner: Holder,
) -> RunServices:
    return RunServices(
        run_id=run_id,
        holder=f"{owner.host} pid {owner.pid}",
        tool_version=__version__,
        rules=plan.sweep.measure,
        limits=plan.sweep.limits,
        payloads=planned_payloads(lab, plan),
        journal=journal,
        progress=notices,
        clock=notices.clock,
        originals=_originals(store, run_id),
        open_trace=_open_trace,
        read_trace=_read_trace,
        fan=plan.sweep.fan,
    )


@contextlib.asynccontextmanager
async def _alive(
    store: Store, run_id: str, owner: Holder, notices: Notices
) -> AsyncIterator[None]:
    """Show that this host lives, meanwhile; end at once if another took the run over."""

    def on_end(task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, RunHeldError):
            # As a kill would: to stop payloads and put boards back would hit the other's work.
            sys.stderr.write(f"farm: {error}\n")
            sys.stderr.flush()
            os._exit(RunHeldError.exit_code)

    task = asyncio.create_task(
        show_life(lambda: store.beat(run_id, owner), notices.tell, SystemClocks(), asyncio.sleep),
        name="life signs",
    )
    task.add_done_callback(on_end)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


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


def _open_trace(folder: Path, meter: str) -> TraceLog:
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return TraceLog(folder / TRACE_LOG, meter=meter)


def _read_trace(folder: Path) -> PowerTrace | None:
    path = folder / TRACE_LOG
    return read_trace_log(path) if path.exists() else None


def planned_payloads(lab: Lab, plan: Plan) -> dict[str, Payload]:
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


def _originals(store: Store, run_id: str) -> dict[str, PowerModeState]:
    """The state in which each board was found, unless it has been put back since."""
    originals: dict[str, PowerModeState] = {}
    for event in store.events(run_id, kinds=("original_state", "restored")):
        if event.kind == "original_state":
            originals[event.board] = PowerModeState.model_validate(event.data["state"])
        else:
            originals.pop(event.board, None)
    return originals
