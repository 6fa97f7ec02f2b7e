"""A simulated lab: boards behind real SSH servers, meters behind real HTTP servers.

    async with SimulatedLab(inventory, profiles, root):
        ...

serves every board and meter of the inventory that has a `simulation` section, on the address
that the inventory gives; all of it must be loopback. Everything lies below `root`, except the
client key and the known hosts, which go where the inventory's boards say.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from farm.errors import ConfigError, FarmError, RunHeldError
from farm.model.board import Board, Inventory
from farm.model.profile import BoardProfile
from farm.simulation.board_processes import BoardProcesses
from farm.simulation.board_root import jetson_of
from farm.simulation.disk_faults import FullDisk
from farm.simulation.fault_effects import FaultEffects
from farm.simulation.fault_schedule import FaultSchedule
from farm.simulation.faults import why_not
from farm.simulation.lab_keys import client_key, write_known_hosts
from farm.simulation.loopback import check_loopback
from farm.simulation.shelly import SimulatedShelly
from farm.simulation.simulated_board import SimulatedBoard

BOOT_S = 2.0
"""How long a simulated board is away when it reboots, in seconds."""

_CONTROLLERS = ("nvpmodel", "fixed")
_STEP_S = 0.1
_FEW_PROCESSES = 50  # up to so many, each step looks at them; else every fifth

_log = logging.getLogger(__name__)


class SimulatedLab:
    """All simulated boards and meters of an inventory, in this process.

    Args:
        inventory: entries without a `simulation` section are left alone.
        profiles: by name; a simulated board's profile needs a `simulation` section.
        root: the lab's own folder, made if missing; one lab at a time uses it.
        boot_s: how long a board is away when it reboots, in seconds.

    Raises:
        ConfigError: a simulated board or meter cannot be served as it is described.
    """

    def __init__(
        self,
        inventory: Inventory,
        profiles: Mapping[str, BoardProfile],
        root: Path,
        *,
        boot_s: float = BOOT_S,
    ) -> None:
        self._entries = tuple(board for board in inventory.boards if board.simulation)
        self._specs = tuple(meter for meter in inventory.meters if meter.simulation)
        self._profiles, self._boot_s = profiles, boot_s
        for board in self._entries:
            _check_board(board, profiles)
        for spec in self._specs:
            SimulatedShelly.check(spec)
        self.root = root.resolve()
        self.boards: dict[str, SimulatedBoard] = {}
        self.meters: dict[str, SimulatedShelly] = {}
        self.processes = BoardProcesses()
        self._lock_file: int | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._switching: dict[str, asyncio.Lock] = {}
        self._is_stopping = False
        self.faults = FaultSchedule(
            FaultEffects(self), partial(why_not, inventory=inventory), self.root / "faults.jsonl"
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Bring everything up.

        Raises:
            RunHeldError: another lab uses this root.
            FarmError: an address is in use.
            OSError: the root cannot be written.
        """
        try:
            await asyncio.to_thread(self._prepare)
            await self.processes.end(*self.boards)  # what a lab that was killed left behind
            await self._power_on_all()
            for meter in self.meters.values():
                await meter.start()
            # Last, so that a lab that cannot have its addresses does not spoil another's keys.
            await asyncio.to_thread(
                write_known_hosts, [(b.board, b.host_key_line) for b in self.boards.values()]
            )
        except BaseException:
            await self.stop()
            raise
        self._ticking = asyncio.create_task(self._tick())
        self._ticking.add_done_callback(_log_end)
        _log.info("lab up: %d boards, %d meters", len(self.boards), len(self.meters))

    async def stop(self) -> None:
        """Take everything down and end every process of the boards. Can be called again."""
        self._is_stopping = True
        await self.faults.stop()
        tasks = [*self._background, *([self._ticking] if self._ticking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._ticking = None
        for meter in self.meters.values():
            await meter.stop()
        await asyncio.gather(*(board.go_dark() for board in self.boards.values()))
        await self.processes.end(*self.boards)
        await asyncio.gather(*(board.reap() for board in self.boards.values()))
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    async def serve(self) -> None:
        """Wait until cancelled; raises what stops the lab's clock."""
        if self._ticking is not None:
            await asyncio.shield(self._ticking)

    async def reboot(self, name: str) -> None:
        """Restart a board; returns when it answers again. Raises KeyError, FarmError."""
        board = self.boards[name]
        async with self._switching[name]:
            await board.power_cut()
            await self._boot(board)

    async def power_cut(self, name: str) -> None:
        """Take a board's power away. Raises KeyError."""
        board = self.boards[name]
        async with self._switching[name]:
            await board.power_cut()

    async def power_on(self, name: str) -> None:
        """Give a board power; returns when it answers. Raises KeyError, FarmError."""
        board = self.boards[name]
        async with self._switching[name]:
            if not board.is_on:
                await self._boot(board)

    def boot_time(self) -> float:
        """The boot-time clock of all boards, seconds."""
        return boot_time()

    async def _power_on_all(self) -> None:
        """All at once; every one has ended its try before the first fault is raised."""
        tries = (board.power_on() for board in self.boards.values())
        for result in await asyncio.gather(*tries, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _boot(self, board: SimulatedBoard) -> None:
        if self._is_stopping:
            return
        await asyncio.sleep(self._boot_s)
        if self._has_power(board):
            await board.power_on()

    def _prepare(self) -> None:
        """Folders and keys; no socket yet."""
        self.root.mkdir(parents=True, exist_ok=True)
        self._lock()
        for entry in self._entries:
            key_file = entry.identity_file or self.root / "client_key"
            self.boards[entry.name] = SimulatedBoard(
                entry,
                self._profiles[entry.profile],
                self.root / "boards" / entry.name,
                client_key=client_key(key_file),
                processes=self.processes,
                now_s=boot_time(),
            )
            self._switching[entry.name] = asyncio.Lock()
            FullDisk(self.boards[entry.name].root).empty()  # left by a lab that was killed
        for spec in self._specs:
            fed = [board for board in self.boards.values() if spec.name in _plugs(board.board)]
            self.meters[spec.name] = SimulatedShelly(
                spec, fed, boot_time, partial(self._follow_plugs, fed)
            )

    def _lock(self) -> None:
        path = self.root / "lab.lock"
        self._lock_file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            msg = f"another simulated lab is up in {self.root}; end it with `farm sim down`"
            raise RunHeldError(msg) from error
        os.ftruncate(self._lock_file, 0)
        os.write(self._lock_file, f"{os.getpid()}\n".encode())

    def _has_power(self, board: SimulatedBoard) -> bool:
        """Whether every simulated plug that feeds the board is on."""
        plugs = _plugs(board.board) & self.meters.keys()
        return all(self.meters[plug].is_on for plug in plugs)

    def _follow_plugs(self, boards: Sequence[SimulatedBoard]) -> None:
        """A plug that feeds these boards was switched."""
        for board in boards:
            action = self.power_on if self._has_power(board) else self.power_cut
            self._spawn(action, board.board.name)

    def _spawn(self, action: Callable[[str], Awaitable[None]], name: str) -> None:
        async def act() -> None:
            try:
                await action(name)
            except (OSError, FarmError) as error:
                _log.error("%s: %s", name, error)

        task = asyncio.create_task(act())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _tick(self) -> None:
        """The lab's clock: processes, physics, and what boards ask of their lab."""
        count = 0
        while True:
            if count % 5 == 0 or self.processes.count <= _FEW_PROCESSES:
                self.processes.refresh(boot_time())
            count += 1
            for name, board in self.boards.items():
                with contextlib.suppress(OSError):  # a board's own commands may harm its files
                    board.step(boot_time())
                    request = board.take_request()
                    if request is not None:
                        self._spawn(self.reboot if request == "reboot" else self.power_cut, name)
            await asyncio.sleep(_STEP_S)


def boot_time() -> float:
    """This machine's boot-time clock, which is also that of its simulated boards. Seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _log_end(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("the lab's clock stopped", exc_info=task.exception())


def _check_board(board: Board, profiles: Mapping[str, BoardProfile]) -> None:
    profile = profiles.get(board.profile)
    if profile is None or profile.simulation is None:
        msg = f"board {board.name}: profile {board.profile!r} has no simulation section"
        raise ConfigError(msg)
    if profile.power_controller not in _CONTROLLERS:
        msg = (
            f"board {board.name}: profile {board.profile!r} sets power modes by "
            f"{profile.power_controller}, of which there is no simulation: its commands would "
            f"be this machine's own. Simulated boards have {' or '.join(_CONTROLLERS)}"
        )
        raise ConfigError(msg)
    check_loopback(board.host, f"board {board.name}")
    jetson_of(profile)


def _plugs(board: Board) -> set[str]:
    """The names of what the board's power comes through."""
    return {name for name in (board.meter, board.outlet) if name is not None}
