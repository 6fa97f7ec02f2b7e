"""How boards are put back: clocks and fan too, after failures, by the board itself, for others."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from farm.errors import ConnectError, PowerModeError, UnsupportedPowerModeError
from farm.execution.fleet import run_fleet
from farm.execution.session import BoardSession
from farm.interfaces.agent import KeptRestore, SelfRestore, StepResult
from farm.interfaces.power_controller import FanController, UnattendedController
from farm.interfaces.transport import CommandResult
from farm.model.attempt import TrialState
from farm.model.power_mode import (
    AppliedPowerMode,
    ClockPolicy,
    FanPolicy,
    PowerModeState,
    RestoreStep,
)
from farm.testing.fakes import FakeClock, FakePowerController, FakeRun
from tests.execution.lab import Lab, LabBoard

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
STEP = RestoreStep(argv=("nvpmodel", "-m", "0"), needs_root=True, expects="well")


class FanBoard(FakePowerController, UnattendedController, FanController):
    """A board with a fan; what it changes while the agent keeps no restore list is `unsafe`."""

    def __init__(self, board: LabBoard) -> None:
        super().__init__()
        self._board = board
        self.fan = "auto"
        self.unsafe: list[str] = []

    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        if self._board.agent.restore is None:
            self.unsafe.append(asked)
        return await super().apply(asked, clocks)

    async def restore_steps(self, original: PowerModeState) -> Sequence[RestoreStep]:
        return [STEP.model_copy(update={"stdin": original.detail.get("fan", "")})]

    async def fan_state(self) -> str:
        return self.fan

    async def set_fan(self, policy: FanPolicy) -> None:
        self.fan = f"held {policy}"

    async def restore(self, original: PowerModeState) -> None:
        await super().restore(original)
        self.fan = original.detail.get("fan", self.fan)


class SleepyClock(FakeClock):
    """The clocks of a host that slept: only the one on the wall went on."""

    slept = timedelta()

    def now(self) -> datetime:
        return super().now() + self.slept


def fan_lab(
    folder: Path, fan: FanPolicy = "max", clock: FakeClock | None = None
) -> tuple[Lab, LabBoard, FanBoard]:
    lab = Lab(folder, clock or FakeClock(), fan=fan)
    board = lab.add("a", lambda _: GOOD)
    controller = FanBoard(board)
    board.controller = controller
    return lab, board, controller


async def run(lab: Lab) -> None:
    await run_fleet(lab.plan(modes=["MAXQ"]), lab.equipment(), lab.services(), lab.progress(), [])


async def test_the_fan_is_held_told_with_the_mode_and_given_back(tmp_path: Path) -> None:
    lab, board, controller = fan_lab(tmp_path)
    await run(lab)
    modes = [record.power_mode for record in lab.journal.records]
    assert [mode and mode.read_back.detail for mode in modes] == [{"fan": "held max"}] * 2
    assert (controller.fan, controller.state.name) == ("auto", "MAXN")
    assert controller.unsafe == []
    assert (board.agent.restore, board.agent.lease) == (None, None)


async def test_a_board_whose_fan_cannot_be_set_says_so(tmp_path: Path) -> None:
    lab = Lab(tmp_path, fan="max")
    lab.add("a", lambda _: GOOD)
    await run(lab)
    assert set(lab.journal.states.values()) == {TrialState.UNSUPPORTED}


async def _until_cancelled(session: BoardSession) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await session.close()


async def test_a_stopped_run_gives_clocks_and_fan_back(tmp_path: Path) -> None:
    lab, board, controller = fan_lab(tmp_path)
    session = BoardSession(board.equipment(), lab.services())
    await session.open()
    await session.set_mode("MAXQ", "locked")
    assert (controller.state.is_locked, controller.fan) == (True, "held max")
    lane = asyncio.create_task(_until_cancelled(session))
    await asyncio.sleep(0)
    lane.cancel()
    await asyncio.gather(lane, return_exceptions=True)
    assert (controller.state.name, controller.state.is_locked) == ("MAXN", False)
    assert controller.fan == "auto"
    assert board.agent.restore is None


async def test_what_could_not_be_put_back_is_left_to_the_board(tmp_path: Path) -> None:
    lab, board, controller = fan_lab(tmp_path)
    session = BoardSession(board.equipment(), lab.services())
    await session.open()
    await session.set_mode("MAXQ", "locked")

    async def refuse(_: PowerModeState) -> None:
        raise PowerModeError("restore", "busy")

    controller.restore = refuse  # type: ignore[method-assign, assignment]
    await session.close()
    assert "restore_failed" in lab.journal.kinds("a")
    assert board.agent.lease is None
    assert board.agent.restore is not None
    assert board.agent.restore.steps == (STEP.model_copy(update={"stdin": "auto"}),)


async def test_a_run_that_comes_back_after_the_board_restored_itself(tmp_path: Path) -> None:
    clock = SleepyClock()
    lab, board, controller = fan_lab(tmp_path, clock=clock)
    session = BoardSession(board.equipment(), lab.services())
    await session.open()
    await session.set_mode("MAXQ", "locked")
    set_state, board_agent = controller.state, board.agent
    result = StepResult(STEP.argv, 0, "well", is_good=True)
    board_agent.restore = KeptRestore(
        "run-1", "test", "boot-1", (STEP,), False, SelfRestore(1.8e9, True, (result,))
    )
    controller.state = PowerModeState(name="MAXN", id=0)
    await session.set_mode("MAXQ", "locked")  # its lease still holds: nothing was asked
    assert controller.state.name == "MAXN"
    clock.slept = timedelta(hours=1)
    board_agent.lease = None
    applied = await session.set_mode("MAXQ", "locked")
    assert (controller.state, applied.name) == (set_state, "MAXQ")
    (told,) = lab.journal.texts("restored_by_board")
    assert "by the board's own watchdog, by its clock at 2027-01-15" in told
    kept = board_agent.restore
    assert kept is not None
    assert kept.done is None
    await session.close()
    assert (controller.state.name, controller.fan) == ("MAXN", "auto")


@pytest.mark.parametrize(
    ("answer", "kinds"), [(b"well", ["left_changed"]), (b"busy", ["restore_failed"])]
)
async def test_what_another_run_left_is_undone_before_the_original_is_read(
    tmp_path: Path, answer: bytes, kinds: list[str]
) -> None:
    lab, board, controller = fan_lab(tmp_path, "default")
    board.agent.restore = KeptRestore("run-0", "gone", "boot-0", (STEP,), False)
    controller.state = PowerModeState(name="MAXQ", id=1)

    async def nvpmodel(argv: Sequence[str], **_: object) -> CommandResult:
        if answer == b"well":
            controller.state = PowerModeState(name="MAXN", id=0)
        return CommandResult(tuple(argv), 0, answer, b"", 0.0)

    board.agent.run = nvpmodel  # type: ignore[method-assign]
    session = BoardSession(board.equipment(), lab.services())
    await session.open()
    told = [kind for kind in lab.journal.kinds() if kind != "original_state"]
    assert told == kinds
    (text,) = lab.journal.texts(kinds[0])
    assert "run run-0 of gone left a changed" in text
    name = "MAXN" if answer == b"well" else "MAXQ"
    assert lab.journal.texts("original_state") == [name]
    assert board.agent.restore is not None
    assert board.agent.restore.run_id == "run-1"
    await session.close()


async def test_a_lost_link_leaves_the_list_to_the_board(tmp_path: Path) -> None:
    lab, board, _ = fan_lab(tmp_path)
    session = BoardSession(board.equipment(), lab.services())
    await session.open()
    await session.set_mode("MAXQ", "locked")
    board.transport.is_up = False
    board.transport.faults.append(ConnectError("connect", "no route"))
    await session.close()
    assert "restore_failed" in lab.journal.kinds("a")
    assert board.agent.restore is not None


async def test_a_controller_without_a_fan_is_refused_by_the_session(tmp_path: Path) -> None:
    lab = Lab(tmp_path, fan=128)
    board = lab.add("a", lambda _: GOOD)
    session = BoardSession(board.equipment(), lab.services())
    await session.open()
    with pytest.raises(UnsupportedPowerModeError, match="cannot set a fan"):
        await session.set_mode("MAXQ", "default")
    await session.close()
