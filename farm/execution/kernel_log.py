"""After a spoilt attempt: what the board's kernel said meanwhile, kept beside the attempt.

``dmesg`` tells of the boot that runs; of the boot before, which a reboot ended under the
attempt, only a journal that is kept on disk or the memory of pstore tells. A board that refuses
(``kernel.dmesg_restrict``, no sudo) leaves the causes unknown, which is no error.
"""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from farm.analysis.kernel_causes import PayloadEnd, kernel_causes, lines_within, plain_line
from farm.errors import BoardError
from farm.execution.equipment import RunServices
from farm.execution.judgement import Evidence, Judged
from farm.interfaces.agent import BoardCommands
from farm.model.attempt import AttemptRecord, FileRecord, Outcome
from farm.model.kernel import KernelCause, KernelReport
from farm.model.measurement import Reason, VerdictStatus

KERNEL_LOG = "kernel.log"
"""The file in the attempt's folder: the lines of its time, as the board printed them."""
COMMAND_LIMIT_S = 10.0
WHOLE_LIMIT_S = 30.0
KEPT_BYTES = 256 * 1024
CUT_BYTES = 1024 * 1024
"""The agent keeps so much of a command's output, from its beginning: what is longer lacks the
newest lines, which are those that are asked for."""
JOURNAL_LINES = "4000"
MOST_REASONS = 5
LONGEST_REFUSAL = 200
_JOURNAL = ("journalctl", "--dmesg", "-o", "short-monotonic", "--no-pager", "-q", "-n")
_PSTORE = ("/sys/fs/pstore/console-ramoops-0", "/sys/fs/pstore/console-ramoops")
_Window = tuple[float | None, float | None]
_QUIET = (Outcome.UNSUPPORTED, Outcome.CANCELLED)


@dataclass(frozen=True, slots=True)
class _Question:
    """One command that may tell."""

    argv: tuple[str, ...]
    needs_root: bool = False


def is_wanted(judged: Judged) -> bool:
    """Whether the attempt went so that its kernel messages may say why."""
    if judged.outcome is Outcome.OK:
        return judged.verdict.status is not VerdictStatus.VALID
    return judged.outcome not in _QUIET


async def ask_kernel(
    agent: BoardCommands, boot_id: str, evidence: Evidence, judged: Judged, services: RunServices
) -> KernelReport | None:
    """Read the kernel log of an attempt's time, keep it as a file, name causes. Bounded.

    Args:
        agent: the board.
        boot_id: the boot in which the board is now.
        evidence: the attempt; its `files` get the log.
        judged: how it went; None is returned where nothing is to be explained.
        services: the run's.

    Never raises but for cancellation: what cannot be had is in `because`.
    """
    if not is_wanted(judged):
        return None
    questions, window = _questions(boot_id, evidence, services)
    try:
        async with asyncio.timeout(WHOLE_LIMIT_S):
            source, text = await _ask(agent, questions)
    except BoardError as error:
        return KernelReport(because=_bounded(str(error)))
    except TimeoutError:
        return KernelReport(because=f"no answer within {WHOLE_LIMIT_S:.0f} s")
    if not source:
        return KernelReport(because=text)
    payload = _payload_end(evidence, services)
    # In a thread: a megabyte of a talkative board's lines takes a second or two.
    causes = await asyncio.to_thread(kernel_causes, text, *window, payload)
    try:
        record = await asyncio.to_thread(_keep, evidence.folder, text, window)
    except OSError as error:
        because = f"{KERNEL_LOG} was not kept: {error.strerror}"
        return KernelReport(source=source, causes=causes, because=because)
    evidence.files = (*_others(evidence.files), record)
    return KernelReport(source=source, causes=causes)


def explained(record: AttemptRecord, report: KernelReport | None) -> AttemptRecord:
    """The record with what the kernel told: in its reason, its verdict's reasons, its notes.

    The reason names the likeliest cause without numbers that differ from attempt to attempt.
    """
    if report is None:
        return record
    changes: dict[str, object] = {"kernel": report}
    if report.because:
        unknown = "" if report.source else "unknown, because "
        note = f"kernel messages: {unknown}{report.because}"
        changes["notes"] = (*record.notes, note)
    if report.causes:
        reasons = tuple(
            Reason(code=f"kernel_{cause.code}", text=cause_text(cause))
            for cause in report.causes[:MOST_REASONS]
        )
        verdict = record.verdict
        changes["verdict"] = verdict.model_copy(update={"reasons": verdict.reasons + reasons})
        if record.reason:
            changes["reason"] = f"{record.reason} ({headline(report.causes[0])})"
    return record.model_copy(update=changes)


def headline(cause: KernelCause) -> str:
    """The cause in a few words, the same for each attempt that it hits."""
    text = cause.text if cause.pid is None else cause.text.replace(f" (pid {cause.pid})", "")
    return f"kernel: {text}{_whose(cause)}"


def cause_text(cause: KernelCause) -> str:
    """The cause with its numbers."""
    at = "" if cause.at_s is None else f" at {cause.at_s:.1f} s after boot"
    times = "" if cause.count == 1 else f", {cause.count} lines"
    return f"kernel: {cause.text}{_whose(cause)}{at}{times}"


def _whose(cause: KernelCause) -> str:
    return {None: "", True: ", the payload's", False: ", not the payload's"}[cause.is_payload]


def _questions(
    boot_id: str, evidence: Evidence, services: RunServices
) -> tuple[tuple[_Question, ...], _Window]:
    """What to ask, and the window in the board's boot time to look at."""
    ended = evidence.status.exit if evidence.status is not None else None
    was_in = ended.boot_id if ended else evidence.boot_id
    if not was_in and evidence.status is not None:
        was_in = evidence.status.boot_id
    begin_s = ended.begin_s if ended else _begin_s(evidence, services)
    if was_in in ("", boot_id):
        journal = _Question((*_JOURNAL, JOURNAL_LINES, "-b"))
        return (_Question(("dmesg",)), _Question(("dmesg",), needs_root=True), journal), (
            begin_s,
            None,
        )
    if evidence.is_adopted and ended is None:
        begin_s = None  # the clock that we know is of the boot after
    before = f"--boot={was_in.replace('-', '')}"
    journal = _Question((*_JOURNAL, JOURNAL_LINES, before), needs_root=True)
    pstore = tuple(_Question(("cat", path), needs_root=True) for path in _PSTORE)
    return (journal, *pstore), (begin_s, None)


def _begin_s(evidence: Evidence, services: RunServices) -> float | None:
    """The board's boot time when the attempt began, as far as the host knows it."""
    if evidence.clock_before and not evidence.is_adopted:
        return min(one.board_s for one in evidence.clock_before)
    known = evidence.clock_after or evidence.clock_before
    if not known:
        return None
    age_s = (services.clock.now() - evidence.started).total_seconds()
    return known[-1].board_s - max(0.0, age_s)


async def _ask(agent: BoardCommands, questions: tuple[_Question, ...]) -> tuple[str, str]:
    """The first answer that tells: its command and text; else "" and why there is none."""
    refusals: list[str] = []
    for question in questions:
        answer = await agent.run(
            question.argv, timeout_s=COMMAND_LIMIT_S, needs_root=question.needs_root
        )
        name = " ".join(question.argv)
        if answer.exit_status == 0 and len(answer.stdout) >= CUT_BYTES:
            refusals.append(f"{name}: more than {CUT_BYTES // 1024} KB")
        elif answer.exit_status == 0 and answer.stdout.strip():
            return name, answer.text
        else:
            said = answer.error_text.strip() or f"nothing (exit status {answer.exit_status})"
            refusals.append(said.splitlines()[0])
    return "", _bounded("; ".join(dict.fromkeys(refusals)))


def _payload_end(evidence: Evidence, services: RunServices) -> PayloadEnd:
    manifest = services.payloads[evidence.trial.cell.payload].manifest
    ended = evidence.status.exit if evidence.status is not None else None
    names = frozenset(Path(word).name for word in manifest.command[:1])
    if ended is None:
        return PayloadEnd(names)
    was_killed = ended.ended_by == "signal" and ended.signal is not None
    return PayloadEnd(names, ended.end_s, was_killed)


def _keep(folder: Path, text: str, window: _Window) -> FileRecord:
    """Write the log beside the attempt's files: of too many lines the newest."""
    data = "".join(f"{one.line}\n" for one in lines_within(text, *window)).encode()
    cut = max(0, len(data) - KEPT_BYTES)
    kept = data[cut:]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / KERNEL_LOG).write_bytes(kept)
    digest = hashlib.sha256(kept).hexdigest()
    return FileRecord(path=KERNEL_LOG, size=len(kept), sha256=digest, cut_bytes=cut)


def _others(files: tuple[FileRecord, ...]) -> Iterator[FileRecord]:
    """Without a log that an earlier look at the same attempt left."""
    return (file for file in files if file.path != KERNEL_LOG)


def _bounded(text: str) -> str:
    return plain_line(text[:LONGEST_REFUSAL])
