"""What the kernel of a board is asked after an attempt, and what becomes of its answers."""

from collections.abc import Callable, Sequence
from pathlib import Path

from farm.errors import CommandTimeoutError
from farm.execution.equipment import RunServices
from farm.execution.fleet import run_fleet
from farm.execution.kernel_log import CUT_BYTES, KEPT_BYTES, KERNEL_LOG
from farm.interfaces.transport import CommandResult
from farm.model.attempt import AttemptRecord, TrialState
from farm.testing.fakes import FakeRun
from tests.execution.lab import Lab, LabBoard

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
KILLED = FakeRun(ended_by="signal", exit_status=None, signal=9, warmup_s=5, window_s=60)
EARLY = "[   10.000000] mmcblk0: error -110 sending stop command\n"
OOM = "[  {at:.6f}] Out of memory: Killed process 77 (run) total-vm:1kB\n"
REFUSED = "dmesg: read kernel buffer failed: Operation not permitted"

Answers = Callable[[tuple[str, ...]], CommandResult]


def said(text: str = "", *, status: int = 0, error: str = "") -> CommandResult:
    return CommandResult((), status, text.encode(), error.encode(), 0.0)


async def run(
    folder: Path, answers: Answers, *runs: FakeRun
) -> tuple[Lab, LabBoard, list[AttemptRecord]]:
    """One trial on one board; the runs in turn, the last of them for ever."""
    lab = Lab(folder)
    left = list(runs)

    def script(_: object) -> FakeRun:
        return left.pop(0) if len(left) > 1 else left[0]

    board = lab.add("a", script)
    board.agent._command = lambda argv: answers(tuple(argv))
    services: RunServices = lab.services()
    await run_fleet(lab.plan(repeats=1), lab.equipment(), services, {}, [])
    return lab, board, lab.journal.records


def dmesg_only(text: Callable[[], str]) -> Answers:
    return lambda argv: said(text()) if argv == ("dmesg",) else said(status=127, error="no")


def asked(board: LabBoard) -> list[str]:
    return [what for how, what in board.agent.log if how == "run" and "dmesg" in what]


async def test_memory_that_ran_out_is_named_kept_and_told(tmp_path: Path) -> None:
    # The board booted 100 s before; the attempt begins some seconds later and lasts 65 s.
    text = EARLY + OOM.format(at=165.5)
    lab, _, (first, *_) = await run(tmp_path, dmesg_only(lambda: text), KILLED)
    assert first.kernel is not None
    (cause,) = first.kernel.causes
    assert (cause.code, cause.process, cause.count) == ("out_of_memory", "run", 1)
    assert first.kernel.source == "dmesg"
    assert "memory ran out: the kernel killed run, the payload's)" in first.reason
    assert first.verdict.reasons[-1].code == "kernel_out_of_memory"
    (kept,) = [file for file in first.files if file.path == KERNEL_LOG]
    log = (lab.folder / first.attempt_id / KERNEL_LOG).read_text()
    assert log == OOM.format(at=165.5)
    assert (kept.size, kept.cut_bytes) == (len(log), 0)


async def test_a_good_attempt_is_not_asked_about(tmp_path: Path) -> None:
    lab, board, (record,) = await run(tmp_path, dmesg_only(lambda: EARLY), GOOD)
    assert record.kernel is None
    assert asked(board) == []
    assert set(lab.journal.states.values()) == {TrialState.DONE}


async def test_a_cause_does_not_make_two_failures_different(tmp_path: Path) -> None:
    """The same way twice is final, whatever numbers the kernel's lines hold."""
    pids = iter(range(77, 99))

    def text() -> str:
        return OOM.format(at=165.5).replace("77", str(next(pids)))

    lab, _, records = await run(tmp_path, dmesg_only(text), KILLED)
    assert set(lab.journal.states.values()) == {TrialState.FAILED}
    assert len(records) == 2


async def test_a_board_that_refuses_leaves_the_causes_unknown(tmp_path: Path) -> None:
    lab, board, (first, *_) = await run(
        tmp_path, lambda _: said(status=1, error=REFUSED), FakeRun(exit_status=3)
    )
    assert first.kernel is not None
    assert first.kernel.because == REFUSED
    assert f"kernel messages: unknown, because {REFUSED}" in first.notes
    assert asked(board)[:2] == ["dmesg", "dmesg"]
    assert first.reason == "exit status 3"
    assert not (lab.folder / first.attempt_id / KERNEL_LOG).exists()


async def test_the_journal_answers_where_dmesg_does_not(tmp_path: Path) -> None:
    def answers(argv: tuple[str, ...]) -> CommandResult:
        if argv[0] == "journalctl":
            return said("[  165.500000] a kernel: mmc0: Timeout waiting for hardware interrupt\n")
        return said(status=1, error=REFUSED)

    _, _, (first, *_) = await run(tmp_path, answers, FakeRun(exit_status=3))
    assert first.kernel is not None
    assert first.kernel.source.startswith("journalctl --dmesg")
    assert [one.code for one in first.kernel.causes] == ["storage_error"]


async def test_a_log_whose_end_is_cut_off_is_not_trusted(tmp_path: Path) -> None:
    text = EARLY + "x" * CUT_BYTES
    _, _, (first, *_) = await run(tmp_path, dmesg_only(lambda: text), FakeRun(exit_status=3))
    assert first.kernel is not None
    assert "more than 1024 KB" in first.kernel.because
    assert first.kernel.causes == ()


async def test_of_a_long_log_the_newest_lines_are_kept(tmp_path: Path) -> None:
    lines = [f"[  165.{n:06d}] {'y' * 200}\n" for n in range(3000)]
    text = "".join([*lines, OOM.format(at=166.0)])
    lab, _, (first, *_) = await run(tmp_path, dmesg_only(lambda: text), KILLED)
    (kept,) = [file for file in first.files if file.path == KERNEL_LOG]
    log = (lab.folder / first.attempt_id / KERNEL_LOG).read_bytes()
    assert kept.size == len(log) == KEPT_BYTES
    assert kept.cut_bytes == len(text) - KEPT_BYTES
    assert b"Out of memory" in log


async def test_after_a_reboot_the_boot_before_is_asked_for(tmp_path: Path) -> None:
    words: list[Sequence[str]] = []

    def answers(argv: tuple[str, ...]) -> CommandResult:
        words.append(argv)
        if argv == ("cat", "/sys/fs/pstore/console-ramoops-0"):
            return said("[  107.000000] Kernel panic - not syncing: Fatal exception\n")
        return said(status=1, error="Specifying boot ID has no effect")

    _, _, (first, *_) = await run(tmp_path, answers, FakeRun(is_lost=True), GOOD)
    assert ("dmesg",) not in words
    assert words[0][-1] == "--boot=boot1"
    assert first.kernel is not None
    assert [one.code for one in first.kernel.causes] == ["kernel_panic"]
    assert "kernel panicked: Fatal exception" in first.reason


async def test_a_board_that_does_not_answer_harms_nothing(tmp_path: Path) -> None:
    def answers(_: tuple[str, ...]) -> CommandResult:
        raise CommandTimeoutError("run", "no end within 10 s")

    lab, _, (first, *_) = await run(tmp_path, answers, FakeRun(exit_status=3), GOOD)
    assert first.kernel is not None
    assert "no end within 10 s" in first.kernel.because
    assert set(lab.journal.states.values()) == {TrialState.DONE}
