"""One simulated board: its files, its SSH server, its processes and its physics, as one thing."""

import asyncio
import contextlib
import json
import logging
import os
import uuid
from pathlib import Path
from typing import Literal

import asyncssh

from farm.errors import FarmError
from farm.model.board import Board, Quirk
from farm.model.profile import BoardProfile, SimulationModel
from farm.simulation.board_commands.board_files import (
    COOLING,
    GPU_USED_FILE,
    REQUEST_FILE,
    STATE_FILE,
    BoardFiles,
    LiveState,
)
from farm.simulation.board_commands.nvpmodel_conf import (
    CONF_FILE,
    STATUS_FILE,
    load_mode_table,
    stored_mode_id,
)
from farm.simulation.board_link import BoardLink
from farm.simulation.board_processes import BoardProcesses, board_marks
from farm.simulation.board_root import LOAD_FILE, boot_files, build_board_root, jetson_of, put_sudo
from farm.simulation.board_server import BoardServer
from farm.simulation.lab_keys import load_or_make_key
from farm.simulation.physics import Load, Plant, wanted_w
from farm.simulation.replay import ReplayFile
from farm.simulation.sensors import THERMAL_FILE, sensor_values

_HOST_KEY_FILE = "/etc/ssh/ssh_host_ed25519_key"
_HOT_CORES = 0.9  # so busy, a board with the quirk throttles
_SHOWN_S = 0.5  # how often the board's own files tell temperature and power

Request = Literal["reboot", "power_cut"]

_log = logging.getLogger(__name__)


class SimulatedBoard:
    """A board that can be switched on and off and restarted.

    Args:
        board: the inventory's entry.
        profile: its type, with a simulation section.
        root: the board's root folder.
        client_key: the public key that may log in.
        processes: watches the processes of all boards of the lab.
        now_s: boot-time clock now, in seconds.
    """

    def __init__(
        self,
        board: Board,
        profile: BoardProfile,
        root: Path,
        *,
        client_key: asyncssh.SSHKey,
        processes: BoardProcesses,
        now_s: float,
    ) -> None:
        self.board, self._profile, self._root = board, profile, root
        self._model = profile.simulation or SimulationModel()
        self._processes = processes
        self._files = BoardFiles(root)
        build_board_root(root, board, profile)
        self._jetson = jetson_of(profile)
        self._boot_id = ""
        processes.watch(board.name, root)
        host_key_file = self._files.path(_HOST_KEY_FILE)
        settings = board.simulation
        self.link = BoardLink(settings.seed if settings else 1)
        self._host_key = load_or_make_key(host_key_file)
        self._server = BoardServer(
            board.host,
            board.port,
            user=board.user,
            host_key=self._host_key,
            client_key=client_key,
            environment=self._environment(),
            link=self.link,
        )
        self.host_key_line = host_key_file.with_name(host_key_file.name + ".pub").read_text()
        self._plant = Plant(
            self._model,
            ambient_c=settings.ambient_c if settings else 25.0,
            seed=settings.seed if settings else 1,
            now_s=now_s,
        )
        quirks = settings.quirks if settings else ()
        self._throttles_busy = Quirk.THROTTLES in quirks
        self._throttled = 0
        self._has_sudo, self._sudo_gone = Quirk.NO_SUDO not in quirks, 0
        self._lay_out_cooling()
        self.is_on = False
        self._shown_s = 0.0
        self._sensors_seen: dict[str, str] = {}
        self._mode_seen: tuple[int, str] = (0, "")
        self._replays = ReplayFile(self._files.path(LOAD_FILE))

    @property
    def root(self) -> Path:
        """Its root folder."""
        return self._root

    @property
    def files(self) -> BoardFiles:
        """Its files by their paths on the board."""
        return self._files

    @property
    def boot_id(self) -> str:
        """Of the boot that runs, or of the last one."""
        return self._boot_id

    @property
    def energy_j(self) -> float:
        """Energy drawn from the socket since the lab began, in joules."""
        return self._plant.energy_j

    @property
    def power_w(self) -> float:
        """Watts at the socket at the last step."""
        return self._plant.power_w

    @property
    def temperature_c(self) -> float:
        """Of the board, degrees Celsius."""
        return self._plant.temperature_c

    async def power_on(self) -> None:
        """Boot: a new boot id, the stored power mode, then SSH. Raises FarmError, OSError."""
        if self.is_on:
            return
        self._boot_id = str(uuid.uuid4())
        self._sensors_seen.clear()
        await asyncio.to_thread(boot_files, self._root, self._profile, self._boot_id)
        try:
            await self._server.listen()
        except OSError as error:
            address = f"{self.board.host}:{self.board.port}"
            msg = (
                f"{self.board.name}: cannot listen on {address}: {os.strerror(error.errno or 0)}. "
                "Is another simulated lab up, or is the port taken?"
            )
            raise FarmError(msg) from error
        self.is_on = True
        _log.info("%s: on, boot id %s", self.board.name, self._boot_id)

    async def power_cut(self) -> None:
        """Cut the power: connections drop, every process of the board ends."""
        await self.go_dark()
        await self._processes.end(self.board.name)
        await self.reap()
        _log.info("%s: off", self.board.name)

    async def go_dark(self) -> None:
        """The first half of a power cut: no power, no link. Its processes are the caller's."""
        self.is_on = False
        self._plant.cut()
        await self._server.drop()

    async def reap(self) -> None:
        """The last half: wait for the sessions' processes, which have been ended."""
        await self._server.reap()

    async def show_host_key(self, key: asyncssh.SSHKey | None) -> None:
        """Cut all connections and answer with another host key, or its own. Raises OSError."""
        self._server.host_key = key or self._host_key
        if self.is_on:
            await self._server.drop()
            await self._server.listen()

    def throttle(self, *, is_on: bool) -> None:
        """Begin or end to be too hot, whatever it does; calls are counted. Raises OSError."""
        self._throttled += 1 if is_on else -1
        self._files.write(COOLING + "cur_state", "3" if self._throttled else "0")

    def let_sudo(self, *, works: bool) -> None:
        """Take its sudo's rights away, or give them back; calls are counted. Raises OSError."""
        self._sudo_gone += -1 if works else 1
        put_sudo(self._root, works=self._has_sudo and not self._sudo_gone)

    def say(self, what: str) -> None:
        """A line in the lab's log."""
        _log.info("%s: %s", self.board.name, what)

    def take_request(self) -> Request | None:
        """What the board's own ``reboot`` or ``poweroff`` has asked for, once."""
        path = self._files.path(REQUEST_FILE)
        if not self.is_on or not path.exists():
            return None
        request = path.read_text(encoding="utf-8", errors="replace").strip()
        path.unlink(missing_ok=True)
        return "power_cut" if request == "power_cut" else "reboot"

    def step(self, now_s: float) -> None:
        """Let the physics follow what the board has done until `now_s`. Raises OSError."""
        if not self.is_on:
            self._plant.advance(now_s, 0.0)
            return
        mode = self._power_mode()
        busy = min(self._processes.busy_cores(self.board.name), float(self._profile.cores))
        rest_w = wanted_w(self._model, mode, Load(busy_cores=busy))
        replay = self._replays.running()
        if replay is None:
            self._plant.advance(now_s, rest_w)
        else:
            self._plant.advance(min(replay.since_s, now_s), rest_w)
            self._plant.advance(now_s, wanted_w(self._model, mode, Load(replay.watts)))
        if now_s - self._shown_s >= _SHOWN_S:
            self._shown_s = now_s
            self._show(busy, is_loaded=replay is not None)

    def _show(self, busy_cores: float, *, is_loaded: bool) -> None:
        """Write what the board's own sensors tell."""
        state = LiveState(
            round(self.power_w, 2), round(self.temperature_c, 2), round(busy_cores, 2), is_loaded
        )
        self._files.write(STATE_FILE, json.dumps(state._asdict()))
        if self._throttles_busy and not self._throttled:
            self._files.write(COOLING + "cur_state", "3" if self._is_hot(state) else "0")
        if self._jetson is None:
            self._files.write(THERMAL_FILE, str(round(self.temperature_c * 2) * 500))
            return
        facts = self._jetson.facts
        if is_loaded and facts.question:
            self._files.write(GPU_USED_FILE, "1")
        for path, value in sensor_values(facts, self._boot_id, state).items():
            if self._sensors_seen.get(path) != value:
                self._files.write(path, value)
                self._sensors_seen[path] = value

    def _lay_out_cooling(self) -> None:
        self._files.path(COOLING).mkdir(parents=True, exist_ok=True)
        self._files.write(COOLING + "type", "thermal-cpufreq-0")
        self._files.write(COOLING + "cur_state", "0")

    @staticmethod
    def _is_hot(state: LiveState) -> bool:
        return state.is_loaded or state.busy_cores >= _HOT_CORES

    def _power_mode(self) -> str:
        """The present power mode's name; read again only when the status file has changed."""
        try:
            changed = self._files.path(STATUS_FILE).stat().st_mtime_ns
        except OSError:
            return ""
        if changed != self._mode_seen[0] and self._files.path(CONF_FILE).exists():
            with contextlib.suppress(ValueError, KeyError):
                table = load_mode_table(self._files)
                mode = table.mode(stored_mode_id(self._files, table))
                self._mode_seen = (changed, mode.name if mode else "")
        return self._mode_seen[1]

    def _environment(self) -> dict[str, str]:
        """All that a process on the board gets: nothing of the lab's own environment."""
        root = str(self._root)
        return {
            "HOME": f"{root}/home",
            "PATH": f"{root}/bin:/usr/bin:/bin",
            "TMPDIR": f"{root}/tmp",  # noqa: S108 -- the board's own
            "USER": self.board.user,
            "LOGNAME": self.board.user,
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            **board_marks(self.board.name, self._root),
        }
