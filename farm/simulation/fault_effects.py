"""What each fault does to a simulated lab, and how it is undone.

An effect is an async context manager: inside it the fault is there. It gives an event that is
set when the fault has ended by itself.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Protocol

import asyncssh

from farm.simulation.board_commands.board_files import DATE_OFFSET_FILE, KERNEL_LOG_FILE
from farm.simulation.board_processes import BoardProcesses, Process
from farm.simulation.disk_faults import FullDisk, lose_writes
from farm.simulation.fault_kinds import FaultKind
from farm.simulation.faults import Fault
from farm.simulation.shelly import SimulatedShelly
from farm.simulation.simulated_board import SimulatedBoard

_DUTY_S = 0.4
"""A slow board stands still and runs once in this time."""

_LOOK_S = 0.05
_PAYLOAD_MARK = b"FARM_EVENTS="
"""In the environment of a payload and of nothing else on a board."""

Over = asyncio.Event
_Deed = Callable[[Fault], Coroutine[None, None, None]]
_Effect = AbstractAsyncContextManager[Over]


class FaultyLab(Protocol):
    """What the effects need of the lab."""

    boards: dict[str, SimulatedBoard]
    meters: dict[str, SimulatedShelly]
    processes: BoardProcesses

    def boot_time(self) -> float:
        """The boards' boot-time clock, seconds."""

    async def reboot(self, name: str) -> None:
        """Restart a board."""

    async def power_cut(self, name: str) -> None:
        """Take its power away."""

    async def power_on(self, name: str) -> None:
        """Give it power."""


class FaultEffects:
    """Makes the effect of a fault.

    Args:
        lab: on which they act.
    """

    def __init__(self, lab: FaultyLab) -> None:
        self._lab = lab
        self._effects: Mapping[FaultKind, Callable[[Fault], _Effect]] = {
            FaultKind.LINK_DROP: self._link_drop,
            FaultKind.HALF_OPEN: self._half_open,
            FaultKind.LATENCY: self._latency,
            FaultKind.PACKET_LOSS: self._packet_loss,
            FaultKind.SLOW_BOARD: lambda fault: _beside(fault, self._slow, self._go_on),
            FaultKind.HANG: self._hang,
            FaultKind.REBOOT: lambda fault: _beside(fault, self._reboot, self._power_on),
            FaultKind.REBOOT_LOOP: lambda fault: _beside(
                fault, self._reboot_for_ever, self._power_on
            ),
            FaultKind.POWER_LOSS: self._power_loss,
            FaultKind.WRONG_HOST_KEY: self._wrong_host_key,
            FaultKind.FULL_DISK: self._full_disk,
            FaultKind.CLOCK_JUMP: self._clock_jump,
            FaultKind.THROTTLE: self._throttle,
            FaultKind.SUDO_GONE: self._sudo_gone,
            FaultKind.PAYLOAD_OOM: lambda fault: _beside(fault, self._kill_payload),
            FaultKind.METER_FROZEN: self._meter_frozen,
            FaultKind.METER_ZERO: self._meter_zero,
            FaultKind.METER_GONE: self._meter_gone,
            FaultKind.METER_SLOW: self._meter_slow,
        }

    def of(self, fault: Fault) -> _Effect:
        """The fault's effect. Entering raises FarmError or OSError where it cannot be had."""
        return self._effects[fault.kind](fault)

    async def payload_of(self, fault: Fault) -> Process:
        """The payload that runs on the board, or the next one: its largest process."""
        processes = self._lab.processes
        payload = processes.largest(fault.board, _PAYLOAD_MARK)
        while payload is None:
            await asyncio.sleep(_LOOK_S)  # it may begin at any time, and nobody tells
            payload = processes.largest(fault.board, _PAYLOAD_MARK)
        return payload

    @asynccontextmanager
    async def _link_drop(self, fault: Fault) -> AsyncIterator[Over]:
        link = self._lab.boards[fault.board].link
        link.drop()
        try:
            yield Over()
        finally:
            link.mend()

    @asynccontextmanager
    async def _half_open(self, fault: Fault) -> AsyncIterator[Over]:
        link = self._lab.boards[fault.board].link
        link.hold()
        try:
            yield Over()
        finally:
            link.release()

    @asynccontextmanager
    async def _latency(self, fault: Fault) -> AsyncIterator[Over]:
        link = self._lab.boards[fault.board].link
        delay_s, jitter_s = (fault.number(name) / 1000 for name in ("delay_ms", "jitter_ms"))
        link.delay_s, link.jitter_s = link.delay_s + delay_s, link.jitter_s + jitter_s
        try:
            yield Over()
        finally:
            link.delay_s = max(0.0, link.delay_s - delay_s)
            link.jitter_s = max(0.0, link.jitter_s - jitter_s)

    @asynccontextmanager
    async def _packet_loss(self, fault: Fault) -> AsyncIterator[Over]:
        link = self._lab.boards[fault.board].link
        before, link.loss = link.loss, fault.number("loss_pct") / 100
        try:
            yield Over()
        finally:
            link.loss = before

    @asynccontextmanager
    async def _hang(self, fault: Fault) -> AsyncIterator[Over]:
        """A board that hangs is well again after a boot; only the power brings one about."""
        link = self._lab.boards[fault.board].link
        link.hold()
        try:
            async with _beside(fault, self._stand_still, self._go_on) as over:
                yield over
        finally:
            link.release()

    async def _stand_still(self, fault: Fault) -> None:
        board = self._lab.boards[fault.board]
        boot_id = board.boot_id
        while board.boot_id == boot_id:
            self._lab.processes.signal(fault.board, signal.SIGSTOP)
            await asyncio.sleep(_LOOK_S)

    async def _slow(self, fault: Fault) -> None:
        share = fault.number("share")
        while True:
            self._lab.processes.signal(fault.board, signal.SIGSTOP)
            await asyncio.sleep(_DUTY_S * (1 - share))
            self._lab.processes.signal(fault.board, signal.SIGCONT)
            await asyncio.sleep(_DUTY_S * share)

    async def _go_on(self, fault: Fault) -> None:
        self._lab.processes.signal(fault.board, signal.SIGCONT, look_again=True)

    async def _reboot(self, fault: Fault) -> None:
        await self._lab.reboot(fault.board)

    async def _power_on(self, fault: Fault) -> None:
        await self._lab.power_on(fault.board)

    async def _reboot_for_ever(self, fault: Fault) -> None:
        while True:
            await self._lab.reboot(fault.board)
            await asyncio.sleep(fault.number("every_s"))

    @asynccontextmanager
    async def _power_loss(self, fault: Fault) -> AsyncIterator[Over]:
        board = self._lab.boards[fault.board]
        seed = board.board.simulation.seed if board.board.simulation else 1
        try:
            await self._lab.power_cut(fault.board)
            source = Random(seed)  # noqa: S311 -- chance, no secret
            lost = await asyncio.to_thread(lose_writes, board.root, fault.number("lost_s"), source)
            board.say(f"{len(lost)} files lost what was written last: {' '.join(lost[:20])}")
            yield Over()
        finally:
            await self._lab.power_on(fault.board)

    @asynccontextmanager
    async def _wrong_host_key(self, fault: Fault) -> AsyncIterator[Over]:
        board = self._lab.boards[fault.board]
        await board.show_host_key(asyncssh.generate_private_key("ssh-ed25519"))
        try:
            yield Over()
        finally:
            await board.show_host_key(None)

    @asynccontextmanager
    async def _full_disk(self, fault: Fault) -> AsyncIterator[Over]:
        disk = FullDisk(self._lab.boards[fault.board].root)
        await asyncio.to_thread(disk.fill)
        try:
            yield Over()
        finally:
            await asyncio.to_thread(disk.empty)

    @asynccontextmanager
    async def _clock_jump(self, fault: Fault) -> AsyncIterator[Over]:
        files = self._lab.boards[fault.board].files
        files.write(DATE_OFFSET_FILE, f"{fault.number('jump_s'):.0f}")
        try:
            yield Over()
        finally:
            files.path(DATE_OFFSET_FILE).unlink(missing_ok=True)

    @asynccontextmanager
    async def _throttle(self, fault: Fault) -> AsyncIterator[Over]:
        board = self._lab.boards[fault.board]
        board.throttle(is_on=True)
        try:
            yield Over()
        finally:
            board.throttle(is_on=False)

    @asynccontextmanager
    async def _sudo_gone(self, fault: Fault) -> AsyncIterator[Over]:
        board = self._lab.boards[fault.board]
        board.let_sudo(works=False)
        try:
            yield Over()
        finally:
            board.let_sudo(works=True)

    async def _kill_payload(self, fault: Fault) -> None:
        """Wait for a payload, end it as the kernel would, and say so in the kernel's log."""
        board = self._lab.boards[fault.board]
        victim = await self.payload_of(fault)
        now_s = self._lab.boot_time()
        path = board.files.path(KERNEL_LOG_FILE)
        with path.open("a", encoding="utf-8") as log:
            log.write(_oom_lines(now_s, victim.pid, victim.name, victim.resident_kb))
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)
        board.say(f"out of memory: killed {victim.name} ({victim.pid})")

    @asynccontextmanager
    async def _meter_frozen(self, fault: Fault) -> AsyncIterator[Over]:
        faults = self._meter(fault).faults
        faults.frozen += 1
        try:
            yield Over()
        finally:
            faults.frozen -= 1

    @asynccontextmanager
    async def _meter_zero(self, fault: Fault) -> AsyncIterator[Over]:
        faults = self._meter(fault).faults
        faults.zero += 1
        try:
            yield Over()
        finally:
            faults.zero -= 1

    @asynccontextmanager
    async def _meter_slow(self, fault: Fault) -> AsyncIterator[Over]:
        faults, delay_s = self._meter(fault).faults, fault.number("delay_s")
        faults.delay_s += delay_s
        try:
            yield Over()
        finally:
            faults.delay_s = max(0.0, faults.delay_s - delay_s)

    @asynccontextmanager
    async def _meter_gone(self, fault: Fault) -> AsyncIterator[Over]:
        meter = self._meter(fault)
        await meter.stop()
        try:
            yield Over()
        finally:
            await meter.start()

    def _meter(self, fault: Fault) -> SimulatedShelly:
        return self._lab.meters[self._lab.boards[fault.board].board.meter or ""]


@asynccontextmanager
async def _beside(fault: Fault, work: _Deed, undo: _Deed | None = None) -> AsyncIterator[Over]:
    """While `work` runs, or after it; `undo` comes last. Raises what ended the work early."""
    over = Over()
    task = asyncio.create_task(work(fault))
    task.add_done_callback(lambda _: over.set())
    try:
        yield over
    finally:
        task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        if undo is not None:
            await undo(fault)
        if isinstance(result, Exception):
            raise result


def _oom_lines(now_s: float, pid: int, name: str, resident_kb: int) -> str:
    """What a kernel says when it ends a process for want of memory."""
    stamp = f"[{now_s:12.6f}]"
    return (
        f"{stamp} {name} invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, "
        f"oom_score_adj=500\n"
        f"{stamp} oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
        f"global_oom,task_memcg=/,task={name},pid={pid},uid=1000\n"
        f"{stamp} Out of memory: Killed process {pid} ({name}) total-vm:{2 * resident_kb}kB, "
        f"anon-rss:{resident_kb}kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:100kB "
        f"oom_score_adj:500\n"
    )
