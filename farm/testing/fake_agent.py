"""A board-side agent in memory: scripted payload runs on a board that lives in virtual time."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from farm.errors import BoardError, LeaseHeldError
from farm.interfaces.agent import (
    AttemptExit,
    AttemptStatus,
    BoardAgent,
    Job,
    KeptRestore,
    Lease,
)
from farm.interfaces.clock import Clock
from farm.interfaces.telemetry import TelemetryBatch
from farm.interfaces.transport import CommandResult
from farm.model.attempt import BoardFingerprint, FileRecord
from farm.model.measurement import ClockExchange
from farm.model.payload import Payload
from farm.model.power_mode import RestoreStep


@dataclass(frozen=True, slots=True)
class FakeRun:
    """How a payload run goes. The window begins `warmup_s` after the start and lasts `window_s`.

    `events` replaces the event file made from window and metrics (name -> value, unit).
    `is_lost`: the board reboots under it after `warmup_s`.
    """

    warmup_s: float = 1.0
    window_s: float = 60.0
    metrics: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    events: bytes | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    ended_by: Literal["exit", "signal", "timeout", "memory", "stop", "start", "full"] = "exit"
    exit_status: int | None = 0
    signal: int | None = None
    message: str = ""
    is_lost: bool = False


@dataclass(slots=True)
class _Attempt:
    job: Job
    run: FakeRun
    boot_id: str
    begin_s: float
    is_stopped: bool = False
    stopped_s: float = 0.0
    is_finished: bool = False


class FakeBoardAgent(BoardAgent):
    """One board. `script` says how a job goes; `command` answers `run`; `files` are readable.

    ``fail["start"].append(error)`` makes the next call of that method raise. `log` lists the
    calls as (method, argument). Attempts outlive `close`, as on a board: hand the same object
    out again to play a reconnect.
    """

    def __init__(
        self,
        clock: Clock,
        script: Callable[[Job], FakeRun] | None = None,
        *,
        command: Callable[[Sequence[str]], CommandResult] | None = None,
        boot_id: str = "boot-1",
        is_simulated: bool = True,
    ) -> None:
        self._clock = clock
        self._script = script or (lambda _job: FakeRun())
        self._command = command or (lambda argv: CommandResult(tuple(argv), 127, b"", b"", 0.0))
        self._is_simulated = is_simulated
        self._offset_s = clock.monotonic() - 100.0  # the board booted 100 s before the test
        self._attempts: dict[str, _Attempt] = {}
        self._payloads: set[str] = set()
        self.boot_id = boot_id
        self.lease: Lease | None = None
        self.restore: KeptRestore | None = None
        self.files: dict[str, str] = {}
        self.temperature: float | None = 40.0
        self.on_telemetry: Callable[[TelemetryBatch], None] | None = None
        self.fail: dict[str, list[BoardError]] = defaultdict(list)
        self.log: list[tuple[str, str]] = []
        self.is_closed = False

    def reboot(self) -> None:
        """A new boot id and a boot-time clock from zero; running attempts are lost."""
        for attempt_id, attempt in self._attempts.items():
            attempt.is_finished = self._status(attempt_id).phase == "finished"
        self._offset_s = self._clock.monotonic()
        number = int(self.boot_id.rpartition("-")[2]) + 1
        self.boot_id = f"boot-{number}"
        self.lease = None

    @property
    def fingerprint(self) -> BoardFingerprint:
        """A made-up board."""
        return BoardFingerprint(
            boot_id=self.boot_id,
            machine="aarch64",
            kernel="4.9.140-tegra",
            model="fake board",
            python="3.6.9",
            cpu_count=6,
            memory_mb=7858,
            is_simulated=self._is_simulated,
        )

    @property
    def free_mb(self) -> int:
        """Plenty."""
        return 10_000

    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 30.0,
        needs_root: bool = False,
        needs_tty: bool = False,
        stdin: bytes = b"",
    ) -> CommandResult:
        """What `command` answers."""
        self._begin("run", " ".join(argv))
        return self._command(argv)

    async def read_text(self, path: str) -> str | None:
        """From `files`."""
        self._begin("read_text", path)
        return self.files.get(path)

    async def exchange_clock(self) -> ClockExchange:
        """An exchange with a round trip of two virtual milliseconds, without waiting."""
        self._begin("exchange_clock", "")
        now_s = self._clock.monotonic()
        return ClockExchange(
            host_sent_s=now_s - 0.001, board_s=self._board_s(), host_received_s=now_s + 0.001
        )

    async def ensure_payload(self, payload: Payload) -> bool:
        """True the first time."""
        self._begin("ensure_payload", payload.digest)
        is_new = payload.digest not in self._payloads
        self._payloads.add(payload.digest)
        return is_new

    async def start(self, job: Job) -> AttemptStatus:
        """Start, or tell the status of what was started before."""
        self._begin("start", job.attempt_id)
        if job.attempt_id not in self._attempts:
            self._attempts[job.attempt_id] = _Attempt(
                job, self._script(job), self.boot_id, self._board_s()
            )
        return self._status(job.attempt_id)

    async def status(self, attempt_id: str) -> AttemptStatus:
        """What the board knows."""
        self._begin("status", attempt_id)
        return self._status(attempt_id)

    async def wait(self, attempt_id: str) -> AttemptStatus:
        """Wait in virtual time until it is over."""
        self._begin("wait", attempt_id)
        while (status := self._status(attempt_id)).phase == "running":
            attempt = self._attempts[attempt_id]
            await self._clock.sleep(max(_end_s(attempt) - self._board_s(), 0.001))
            self._raise_scripted("wait")
            if attempt.run.is_lost and attempt.boot_id == self.boot_id:
                self.reboot()
        return status

    async def stop(self, attempt_id: str) -> None:
        """It becomes finished, ended by stop."""
        self._begin("stop", attempt_id)
        attempt = self._attempts.get(attempt_id)
        if attempt is not None and self._status(attempt_id).phase == "running":
            attempt.is_stopped, attempt.stopped_s = True, self._board_s()

    async def collect(self, exited: AttemptExit, folder: Path) -> tuple[FileRecord, ...]:
        """Write its files into `folder`."""
        self._begin("collect", exited.attempt_id)
        for path, data in _files(self._attempts[exited.attempt_id]).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return exited.files

    async def remove(self, attempt_ids: Sequence[str]) -> None:
        """Forget them."""
        for attempt_id in attempt_ids:
            self._begin("remove", attempt_id)
            self._attempts.pop(attempt_id, None)

    async def follow(self, attempt_id: str, file: str, on_data: Callable[[bytes], None]) -> None:
        """Deliver the whole file when the attempt is over."""
        self._begin("follow", attempt_id)
        await self.wait(attempt_id)
        attempt = self._attempts.get(attempt_id)
        data = _files(attempt).get(file, b"") if attempt else b""
        if data:
            on_data(data)

    async def list_attempts(self) -> tuple[AttemptStatus, ...]:
        """All of them."""
        self._begin("list_attempts", "")
        return tuple(self._status(attempt_id) for attempt_id in self._attempts)

    async def take_lease(self, run_id: str, holder: str, ttl_s: float) -> Lease:
        """Take or renew. Raises LeaseHeldError while another run holds it."""
        self._begin("take_lease", run_id)
        held = self.lease
        if held is not None and held.run_id != run_id and held.expires_s > self._board_s():
            raise LeaseHeldError("lease", f"held by {held.holder} for run {held.run_id}")
        self.lease = Lease(run_id, holder, self.boot_id, self._board_s() + ttl_s)
        return self.lease

    async def release_lease(self, run_id: str) -> None:
        """Give it back."""
        self._begin("release_lease", run_id)
        if self.lease is not None and self.lease.run_id == run_id:
            self.lease = None

    async def keep_restore(self, run_id: str, steps: Sequence[RestoreStep]) -> None:
        """Keep the list; nothing is done with it here."""
        self._begin("keep_restore", run_id)
        self.restore = KeptRestore(run_id, "", self.boot_id, tuple(steps), is_watched=True)

    async def kept_restore(self) -> KeptRestore | None:
        """`restore`; after a reboot nobody watches over it."""
        self._begin("kept_restore", "")
        return self.restore

    async def drop_restore(self, run_id: str) -> None:
        """Forget the run's list."""
        self._begin("drop_restore", run_id)
        if self.restore is not None and self.restore.run_id == run_id:
            self.restore = None

    async def temperature_c(self) -> float | None:
        """`temperature`."""
        self._begin("temperature_c", "")
        return self.temperature

    def start_telemetry(
        self, argv: Sequence[str], rate_hz: float, on_batch: Callable[[TelemetryBatch], None]
    ) -> None:
        """A test tells telemetry through `on_telemetry`; nothing comes by itself."""
        self.on_telemetry = on_batch

    def stop_telemetry(self) -> None:
        """Nobody listens any more."""
        self.on_telemetry = None

    async def close(self) -> None:
        """Attempts go on."""
        self.is_closed = True

    def _begin(self, method: str, argument: str) -> None:
        self.log.append((method, argument))
        if method != "wait":
            self._raise_scripted(method)

    def _raise_scripted(self, method: str) -> None:
        if self.fail[method]:
            raise self.fail[method].pop(0)

    def _board_s(self) -> float:
        return self._clock.monotonic() - self._offset_s

    def _status(self, attempt_id: str) -> AttemptStatus:
        attempt = self._attempts.get(attempt_id)
        if attempt is None:
            return AttemptStatus(attempt_id, "absent", self.boot_id)
        if attempt.is_stopped or attempt.is_finished:
            return AttemptStatus(attempt_id, "finished", attempt.boot_id, _exit(attempt))
        if (
            not attempt.run.is_lost
            and attempt.boot_id == self.boot_id
            and self._board_s() >= _end_s(attempt)
        ):
            attempt.is_finished = True
            return AttemptStatus(attempt_id, "finished", attempt.boot_id, _exit(attempt))
        phase: Literal["running", "lost"] = (
            "running" if attempt.boot_id == self.boot_id else "lost"
        )
        return AttemptStatus(attempt_id, phase, attempt.boot_id)


def _end_s(attempt: _Attempt) -> float:
    if attempt.is_stopped:
        return attempt.stopped_s
    run = attempt.run
    length_s = run.warmup_s if run.is_lost else run.warmup_s + run.window_s
    limit_s = attempt.job.time_limit_s
    if limit_s is not None and run.ended_by == "timeout":
        return attempt.begin_s + limit_s
    return attempt.begin_s + length_s


def _exit(attempt: _Attempt) -> AttemptExit:
    run = attempt.run
    return AttemptExit(
        attempt_id=attempt.job.attempt_id,
        ended_by="stop" if attempt.is_stopped else run.ended_by,
        exit_status=None if attempt.is_stopped else run.exit_status,
        signal=15 if attempt.is_stopped else run.signal,
        message=run.message,
        begin_s=attempt.begin_s,
        end_s=_end_s(attempt),
        boot_id=attempt.boot_id,
        files=tuple(
            FileRecord(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest())
            for path, data in sorted(_files(attempt).items())
        ),
    )


def _files(attempt: _Attempt) -> dict[str, bytes]:
    run = attempt.run
    events = run.events if run.events is not None else _events(attempt)
    artifacts = {f"artifacts/{name}": data for name, data in run.artifacts.items()}
    return {
        "stdout.log": run.stdout,
        "stderr.log": run.stderr,
        "events.jsonl": events,
        **artifacts,
    }


def _events(attempt: _Attempt) -> bytes:
    run = attempt.run
    begin_s = attempt.begin_s + run.warmup_s
    lines: list[Mapping[str, object]] = [
        {"event": "window_begin", "name": "measured", "t": begin_s},
        {"event": "window_end", "name": "measured", "t": begin_s + run.window_s},
    ]
    lines += [
        {"event": "metric", "name": name, "value": value, "unit": unit}
        for name, (value, unit) in run.metrics.items()
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
