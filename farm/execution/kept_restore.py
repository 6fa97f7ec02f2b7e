"""What an earlier run, or this one before its host died, left to undo on a board."""

from collections.abc import Sequence
from datetime import UTC, datetime

from farm.errors import BoardError, LinkLostError
from farm.execution.equipment import RunServices
from farm.interfaces.agent import BoardAgent, KeptRestore
from farm.interfaces.power_controller import PowerController, UnattendedController
from farm.model.power_mode import PowerModeState, RestoreStep


async def meet_kept_restore(agent: BoardAgent, services: RunServices, board: str) -> bool:
    """Tell what the board did by itself, and undo what another run left; the lease is ours.

    True when the board changed meanwhile: what was applied before holds no more. What this run
    itself keeps there stays.
    """
    kept = await agent.kept_restore()
    if kept is None or (kept.run_id == services.run_id and kept.done is None):
        return False
    if not kept.is_pending:
        services.tell("restored_by_board", board=board, text=_by_itself(kept), run=kept.run_id)
    elif kept.run_id == services.run_id:
        services.tell("restore_failed", board=board, text=_by_itself(kept))
    else:
        await _undo(agent, services, board, kept)
    await services.journal.flush()
    await agent.drop_restore(kept.run_id)
    return True


async def keep_restore(
    agent: BoardAgent, controller: PowerController, original: PowerModeState, run_id: str
) -> None:
    """Have the board know how to put itself back; nothing where nothing can be changed."""
    if isinstance(controller, UnattendedController):
        steps = await controller.restore_steps(original)
        if steps:
            await agent.keep_restore(run_id, steps)


async def run_steps(agent: BoardAgent, steps: Sequence[RestoreStep]) -> str:
    """Do what the board would have done; what failed, for people, "" when nothing did."""
    failed = []
    for step in steps:
        try:
            result = await agent.run(
                step.argv,
                timeout_s=step.timeout_s,
                needs_root=step.needs_root,
                stdin=step.stdin.encode(),
            )
        except LinkLostError:
            raise
        except BoardError as error:
            is_good, said = False, error.seen
        else:
            said = f"{result.text}\n{result.error_text}".strip()
            is_good = step.expects in said if step.expects else result.exit_status == 0
        if not is_good and not step.may_fail:
            failed.append(f"`{' '.join(step.argv)}`: {said[-200:]}")
    return "; ".join(failed)


async def _undo(agent: BoardAgent, services: RunServices, board: str, kept: KeptRestore) -> None:
    failed = await run_steps(agent, kept.steps)
    left = f"run {kept.run_id} of {kept.holder} left {board} changed"
    if failed:
        text = f"{left}, and it could not be put back: {failed}"
        services.tell("restore_failed", board=board, text=text)
    else:
        services.tell("left_changed", board=board, text=f"{left}; it was put back first")


def _by_itself(kept: KeptRestore) -> str:
    """What the board's watchdog did, in words."""
    done = kept.done
    if done is None:
        return ""
    when = f"{datetime.fromtimestamp(max(0.0, min(done.time, 4e9)), UTC):%Y-%m-%d %H:%M:%S} UTC"
    who = f"the board's own watchdog, by its clock at {when}, after run {kept.run_id}"
    if done.is_complete:
        return f"restored by {who}"
    bad = "; ".join(f"`{' '.join(r.argv)}`: {r.said}" for r in done.results if not r.is_good)
    return f"not restored by {who}: {bad}"
