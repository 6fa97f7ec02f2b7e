"""Reboots into power modes, in virtual time: allowed, bounded, seen to happen, proven."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from farm.errors import (
    AuthError,
    BoardError,
    ConnectError,
    HostKeyError,
    LinkLostError,
    PowerModeError,
    RebootNeededError,
)
from farm.execution.fleet import FleetEnd, run_fleet
from farm.execution.reboot import BACK_LIMIT_S, LOCK_AFTER_S
from farm.interfaces.power_controller import RebootingController
from farm.interfaces.transport import CommandResult
from farm.model.attempt import Outcome, TrialState
from farm.model.power_mode import AppliedPowerMode, ClockPolicy, PowerModeState
from farm.testing.fakes import FakeBoardAgent, FakePowerController, FakeRun
from tests.execution.lab import LIMITS, Lab, LabBoard

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
REFUSED = ConnectError("connect", "refused")


class AskingController(FakePowerController, RebootingController):
    """Modes that differ in their mask: the board goes from one to another only by a reboot.

    `connects` are the faults of the connects after the reboot, `keeps_mode` whether it comes
    back in the mode, `stays_up` that it says yes and does nothing, `drops_link` that the link
    falls before the answer, `is_live` that it changes without a reboot when asked twice.
    """

    def __init__(self, board: LabBoard) -> None:
        super().__init__(("MAXN", "MAXQ", "MAXP"))
        self.board = board
        self.connects: list[BoardError] = []
        self.keeps_mode, self.stays_up, self.drops_link, self.is_live = True, False, False, False
        self.refuses: PowerModeError | None = None
        self.requests: list[str] = []
        self.unset: list[bool] = []  # per reading: no mode yet, as early in a boot

    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        if asked not in ("current", self.state.name):
            raise self._needed(asked)
        return await super().apply(asked, clocks)

    async def restore(self, original: PowerModeState) -> None:
        if original.name != self.state.name:
            raise self._needed(original.name)
        await super().restore(original)

    async def current(self) -> PowerModeState:
        if self.unset and self.unset.pop(0):
            raise PowerModeError("read power mode", "none yet")
        return self.state

    async def request_reboot_into(self, asked: str) -> bool:
        self.requests.append(asked)
        if self.refuses is not None:
            raise self.refuses
        if self.is_live or self.keeps_mode:
            self.state = PowerModeState(name=asked, id=9)
            self.state = PowerModeState(name=asked, id=self._id(asked))
        if self.is_live:
            return False
        if not self.stays_up:
            self.board.agent.reboot()
            self.board.transport.is_up = False
            self.board.transport.faults.extend(self.connects)
        if self.drops_link:
            raise LinkLostError("run", "the link fell")
        return True

    def _id(self, name: str) -> int | None:
        mode = self._table.by_name(name)
        return mode.id if mode else None

    def _needed(self, mode: str) -> RebootNeededError:
        return RebootNeededError(f"set power mode {mode}", "the board asks", mode=mode)


def asking_lab(folder: Path, **limits: object) -> tuple[Lab, AskingController]:
    lab = Lab(folder, limits=LIMITS.model_copy(update={"reboot": True, **limits}))
    board = lab.add("a", lambda _: GOOD)
    controller = AskingController(board)
    board.controller = controller
    return lab, controller


async def run(lab: Lab, *modes: str, repeats: int = 1) -> FleetEnd:
    plan = lab.plan(modes=modes or ("MAXQ",), repeats=repeats)
    return await run_fleet(plan, lab.equipment(), lab.services(), lab.progress(), [])


async def test_a_mode_is_entered_by_a_reboot_proven_and_left_by_another(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.connects = [REFUSED] * 20
    end = await run(lab, "MAXN", "MAXQ", repeats=2)
    assert not any(lane.fault for lane in end.lanes)
    assert set(lab.journal.states.values()) == {TrialState.DONE}
    assert controller.requests == ["MAXQ", "MAXN"]  # the second is the way back
    assert controller.state.name == "MAXN"
    told = [kind for kind in lab.journal.kinds() if kind in ("reboot", "rebooted", "restored")]
    assert told == ["reboot", "rebooted", "reboot", "rebooted", "restored"]
    assert "retry" not in lab.journal.kinds()  # a board that boots is no fault
    modes = [
        (r.power_mode.name, r.power_mode.has_rebooted) for r in lab.journal.records if r.power_mode
    ]
    assert modes == [("MAXN", False)] * 2 + [("MAXQ", True)] * 2
    assert lab.boards["a"].agent.lease is None
    boots = [r.fingerprint.boot_id for r in lab.journal.records if r.fingerprint]
    assert boots == ["boot-1", "boot-1", "boot-2", "boot-2"]


async def test_the_lease_is_taken_again_after_the_reboot(tmp_path: Path) -> None:
    lab, _ = asking_lab(tmp_path)
    await run(lab)
    calls = [what for what, _ in lab.boards["a"].agent.log]
    assert "take_lease" in calls[calls.index("take_lease") + 1 : calls.index("start")]


async def test_without_leave_the_trial_fails_with_what_to_write(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path, reboot=False)
    await run(lab, "MAXQ", "MAXN")
    assert controller.requests == []
    assert lab.journal.states == {"camaxq-r01": TrialState.FAILED, "camaxn-r01": TrialState.DONE}
    reason = lab.journal.reasons["camaxq-r01"]
    assert "needs a reboot, which the sweep does not allow" in reason
    assert "limits: {reboot: true}" in reason


async def test_reboots_are_bounded_but_the_way_back_is_not_taken_away(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path, max_reboots=1)
    await run(lab, "MAXQ", "MAXP")
    assert controller.requests == ["MAXQ", "MAXN"]
    assert lab.journal.states == {"camaxq-r01": TrialState.DONE, "camaxp-r01": TrialState.FAILED}
    assert "rebooted 1 times in this run" in lab.journal.reasons["camaxp-r01"]
    assert controller.state.name == "MAXN"


async def test_the_link_may_fall_before_the_answer(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.drops_link = True
    await run(lab)
    assert lab.journal.states == {"camaxq-r01": TrialState.DONE}
    assert controller.requests == ["MAXQ", "MAXN"]


async def test_a_board_that_changes_live_after_all_is_not_waited_for(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.is_live = True
    begin_s = lab.clock.monotonic()
    await run(lab)
    assert lab.journal.states == {"camaxq-r01": TrialState.DONE}
    assert "rebooted" not in lab.journal.kinds()
    assert lab.clock.monotonic() - begin_s < BACK_LIMIT_S
    (record,) = lab.journal.records
    assert record.power_mode is not None
    assert not record.power_mode.has_rebooted


async def test_a_board_that_stays_away_leaves_its_trials_pending(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    lab.add("b", lambda _: GOOD)
    controller.connects = [REFUSED] * 10_000
    end = await run(lab, "MAXQ", "MAXN")
    assert lab.journal.states["camaxq-r01"] is TrialState.PENDING
    assert lab.journal.states["camaxn-r01"] is TrialState.PENDING
    reason = lab.journal.reasons["camaxq-r01"]
    assert reason.startswith("a: reboot: not back after 300 s: connect: refused.")
    assert "farm resume" in reason
    assert controller.requests == ["MAXQ"]
    assert "board_lost" in lab.journal.kinds("a")
    assert "restore_failed" in lab.journal.kinds("a")
    assert lab.journal.states["cbmaxn-r01"] is TrialState.DONE
    assert {lane.board: bool(lane.fault) for lane in end.lanes} == {"a": True, "b": False}


async def test_a_board_that_is_late_is_met_by_the_lanes_patience(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.connects = [REFUSED] * (int(BACK_LIMIT_S / 2) + 1)  # one more than the reboot waits
    await run(lab)
    retries = lab.journal.texts("retry")
    assert retries[0].startswith("a: reboot: not back after 300 s: connect: refused")
    assert lab.journal.states == {"camaxq-r01": TrialState.DONE}
    assert controller.requests[0] == "MAXQ"
    assert controller.requests.count("MAXQ") == 1


async def test_a_board_that_says_yes_and_stays_up(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.stays_up, controller.keeps_mode = True, False
    await run(lab)
    assert lab.journal.states == {"camaxq-r01": TrialState.FAILED}
    assert "was told to reboot and did not" in lab.journal.reasons["camaxq-r01"]


async def test_a_board_that_refuses_to_reboot(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.refuses = PowerModeError("reboot into MAXQ", "`nvpmodel` needs root")
    await run(lab, repeats=2)
    assert set(lab.journal.states.values()) == {TrialState.FAILED}
    assert "needs root" in lab.journal.reasons["camaxq-r01"]


async def test_a_mode_that_is_not_kept_is_not_rebooted_for_again(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.keeps_mode = False
    await run(lab, "MAXQ", "MAXN", repeats=3)
    assert controller.requests == ["MAXQ"]
    failed = [lab.journal.reasons[f"camaxq-r{number:02d}"] for number in (1, 2, 3)]
    assert all("after the reboot the board is in MAXN, not in MAXQ" in text for text in failed)
    assert "read-only" in failed[0]
    assert [lab.journal.states[f"camaxn-r{number:02d}"] for number in (1, 2, 3)] == [
        TrialState.DONE
    ] * 3


class StuckController(AskingController):
    """It comes back in the mode, and its mask is still another's."""

    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        if asked == "MAXQ":
            raise RebootNeededError("set power mode MAXQ", "the mask is 0, not 240", mode="MAXQ")
        return await super().apply(asked, clocks)


async def test_a_mask_that_stays_stuck_is_told_as_such(tmp_path: Path) -> None:
    lab, _ = asking_lab(tmp_path)
    controller = lab.boards["a"].controller = StuckController(lab.boards["a"])
    await run(lab, repeats=2)
    assert controller.requests == ["MAXQ", "MAXN"]
    assert "is in MAXQ, and still: the mask is 0, not 240" in lab.journal.reasons["camaxq-r01"]


async def test_a_controller_that_cannot_reboot_says_so(tmp_path: Path) -> None:
    lab, _ = asking_lab(tmp_path)
    plain = lab.boards["a"].controller = FakePowerController()
    plain.errors.append(RebootNeededError("set power mode", "the board asks", mode="MAXQ"))
    await run(lab)
    assert "its power controller cannot reboot it" in lab.journal.reasons["camaxq-r01"]


@pytest.mark.parametrize(("refusals", "state"), [(3, TrialState.DONE), (4, TrialState.PENDING)])
async def test_logins_refused_while_it_boots_are_tried_a_few_times(
    tmp_path: Path, refusals: int, state: TrialState
) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.connects = [AuthError("connect", "booting")] * refusals
    await run(lab)
    assert lab.journal.states == {"camaxq-r01": state}


async def test_another_host_key_after_the_reboot_is_not_tried_again(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.connects = [HostKeyError("connect", "changed")] * 5
    await run(lab)
    assert "changed" in lab.journal.reasons["camaxq-r01"]
    assert len(lab.boards["a"].transport.faults) == 3  # the reboot's, and one to give it back


async def test_the_mode_is_not_read_before_systemd_is_done(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    words = ["initializing", "starting", "starting", "degraded"]
    asked: list[Sequence[str]] = []

    def command(argv: Sequence[str]) -> CommandResult:
        asked.append(argv)
        word = words.pop(0) if words else "running"
        return CommandResult(tuple(argv), 1, word.encode() + b"\n", b"", 0.0)

    board = lab.boards["a"]
    board.agent = FakeBoardAgent(lab.clock, lambda _: GOOD, command=command)
    await run(lab)
    assert lab.journal.states == {"camaxq-r01": TrialState.DONE}
    assert asked[:4] == [["systemctl", "is-system-running"]] * 4
    assert words == []
    assert controller.state.name == "MAXN"


async def test_a_boot_that_never_settles_is_bounded(tmp_path: Path) -> None:
    lab, _ = asking_lab(tmp_path)

    def command(argv: Sequence[str]) -> CommandResult:
        return CommandResult(tuple(argv), 1, b"starting\n", b"", 0.0)

    board = lab.boards["a"]
    board.agent = FakeBoardAgent(lab.clock, lambda _: GOOD, command=command)
    await asyncio.wait_for(run(lab), 60)
    assert lab.journal.states == {"camaxq-r01": TrialState.DONE}


async def test_without_systemd_the_mode_must_read_the_same_for_a_while(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    controller.unset = [False, True, True, True]
    await run(lab)
    assert lab.journal.states == {"camaxq-r01": TrialState.DONE}
    assert controller.unset == []


async def test_clocks_are_not_locked_in_the_first_minute_of_a_boot(tmp_path: Path) -> None:
    lab, controller = asking_lab(tmp_path)
    plan = lab.plan(modes=("MAXQ",), repeats=1)
    (lane,) = plan.lanes
    trial = replace(lane.trials[0], cell=replace(lane.trials[0].cell, clocks="locked"))
    plan = replace(plan, lanes=(replace(lane, trials=(trial,)),))
    uptimes: list[float] = []
    agent, apply = lab.boards["a"].agent, controller.apply

    async def timed(asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        uptimes.append((await agent.exchange_clock()).board_s)
        return await apply(asked, clocks)

    controller.apply = timed  # type: ignore[method-assign]  # to see when it is called
    await run_fleet(plan, lab.equipment(), lab.services(), lab.progress(), [])
    assert lab.journal.states == {"camaxq-r01": TrialState.DONE}
    assert uptimes[1] >= LOCK_AFTER_S
    assert lab.journal.records[0].outcome is Outcome.OK
