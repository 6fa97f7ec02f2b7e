"""NVIDIA Jetson: ``nvpmodel`` sets the power mode, ``jetson_clocks`` pins the clocks to its top.

In a device profile::

    power_controller: nvpmodel

Tried on captures of L4T R28 to R39 and on simulated boards, not on a real Jetson yet. The
table comes from the board's own /etc/nvpmodel.conf. Exit codes of nvpmodel prove nothing: what
was set is read back. It may ask to reboot; stdin is closed, so it then changes nothing, and
RebootNeededError tells. `request_reboot_into` answers yes. Setting needs password-less sudo;
reading the mode does not.
"""

from collections.abc import Mapping, Sequence

from farm.drivers.power_modes import nvpmodel_refusals as refusals
from farm.drivers.power_modes.cpu_list import parse_cpu_list
from farm.drivers.power_modes.fan import JetsonFan
from farm.drivers.power_modes.jetson_clocks import ClocksShown, parse_clocks
from farm.drivers.power_modes.nvpmodel_conf import (
    gpu_masks,
    mode_table,
    parse_conf,
    parse_printed_conf,
)
from farm.drivers.power_modes.nvpmodel_output import (
    Meaning,
    ParamValue,
    parse_query,
    parse_set_output,
    parse_values,
)
from farm.drivers.power_modes.nvpmodel_proof import difference, stuck_mask, unexplained_caps
from farm.drivers.power_modes.nvpmodel_refusals import CONF
from farm.drivers.power_modes.nvpmodel_steps import restore_steps
from farm.drivers.power_modes.root import is_refused_root, require_root, run_as_root
from farm.errors import CommandTimeoutError, PowerModeError, UnsupportedPowerModeError
from farm.interfaces.agent import BoardCommands
from farm.interfaces.power_controller import (
    FanController,
    PowerController,
    RebootingController,
    UnattendedController,
)
from farm.interfaces.transport import CommandResult
from farm.model.mode_words import resolve_mode
from farm.model.power_mode import (
    AppliedPowerMode,
    ClockPolicy,
    FanPolicy,
    PowerMode,
    PowerModeState,
    PowerModeTable,
    RestoreStep,
)
from farm.model.profile import BoardProfile

ONLINE = "/sys/devices/system/cpu/online"
STORE = "/run/farm-jetson-clocks.conf"
"""What the clocks were before we locked them. /run is root's and empty after a boot, when the
lock is gone too. It is not removed: that would take more sudo rights than the two tools."""

QUERY_TIMEOUT_S = 20.0
"""A query can hang for seconds while the GPU is full (rbonghi/jetson_stats#721)."""

SET_TIMEOUT_S = 60.0
SUDO_REMEDY = "`farm boards sudoers` prints the file that lets the board's user do this, no more."
REBOOT_SUDO_REMEDY = (
    "`farm boards sudoers --with-reboot` prints the file that lets the board's user do this."
)


class NvpmodelPowerController(
    PowerController, RebootingController, UnattendedController, FanController
):
    """Power modes, clocks and fan of one Jetson."""

    def __init__(self, commands: BoardCommands, profile: BoardProfile) -> None:
        self._commands, self._profile = commands, profile
        self._fan = JetsonFan(commands)
        self._table: PowerModeTable | None = None
        self._paths: Mapping[tuple[str, str], str] = {}
        self._masks: Mapping[int, Mapping[str, int]] = {}

    async def modes(self) -> PowerModeTable:
        """Read the board's table. Raises PowerModeError when there is none."""
        text = await self._commands.read_text(CONF)
        conf, source = parse_conf(text or ""), CONF
        if not conf.modes:
            printed = await self._run(["nvpmodel", "-p", "--verbose"])
            conf, source = parse_printed_conf(_text(printed)), "nvpmodel -p"
            if not conf.modes:
                raise refusals.no_table(text, printed, self._profile.name)
        table = mode_table(conf, source)
        self._table, self._paths = table, conf.paths
        self._masks = {mode.id: gpu_masks(mode) for mode in conf.modes}
        return table

    async def current(self) -> PowerModeState:
        """The mode by ``nvpmodel -q``; locked or not by ``jetson_clocks --show`` (root)."""
        state = await self._observe()
        if not state.name:
            await self._known()  # a conf that cannot be read is the better word
            raise PowerModeError(
                "read power mode",
                "`nvpmodel -q` names no mode",
                remedy="Set one once on the board: `sudo nvpmodel -m ID`.",
            )
        return state

    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        """Resolve, set if needed, prove by mask, cores and caps; lock the clocks last."""
        before = await self._observe()
        mode = resolve_mode(asked, await self._known(), before)
        is_there = (before.name, before.id) == (mode.name, mode.id)
        is_there = is_there and not any(await self._differences(mode))
        if before.is_locked and (clocks == "default" or not is_there):
            await self._unlock()  # minima pinned in one mode would stay in the next
            # A store file also holds which cores were online when it was made.
            is_there = is_there and not any(await self._differences(mode))
        if not is_there:
            await self._set(mode)
        if clocks == "locked":
            await self._lock()
        after = await self.current()
        self._prove(mode, clocks, after)
        return AppliedPowerMode(
            asked=asked,
            name=mode.name,
            id=mode.id,
            budget_w=self._profile.budget_w(mode),
            clocks=clocks,
            has_changed=not is_there or before.is_locked != after.is_locked,
            read_back=after,
        )

    async def restore(self, original: PowerModeState) -> None:
        """Put back the mode by its name (else by its id), the lock, and a fan that was told."""
        table = await self._known()
        mode = table.by_name(original.name) or next(
            (mode for mode in table.modes if mode.id == original.id), None
        )
        if mode is None:
            raise UnsupportedPowerModeError(
                "restore power mode", f"the board's table no longer has {original.name}"
            )
        await self.apply(mode.name, "locked" if original.is_locked else "default")
        await self._fan.restore(original.detail.get("fan", ""))  # last: the clocks' tool sets it

    async def restore_steps(self, original: PowerModeState) -> Sequence[RestoreStep]:
        """Clocks, mode, clocks, then the fan where it was told."""
        fan = await self._fan.steps(original.detail.get("fan", ""))
        return (*restore_steps(original, STORE), *fan)

    async def fan_state(self) -> str:
        """``auto``, ``held N`` (255ths), or ""."""
        return await self._fan.state()

    async def set_fan(self, policy: FanPolicy) -> None:
        """Hold the fan, read back. Raises UnsupportedPowerModeError, PowerModeError."""
        await self._fan.hold(policy)

    async def request_reboot_into(self, asked: str) -> bool:
        """Answer the tool's question with YES; reboot where it asks none and a mask is stuck."""
        mode = resolve_mode(asked, await self._known(), await self._observe())
        step = f"reboot into {mode.name}"
        result = await self._run(["nvpmodel", "-m", str(mode.id)], stdin=b"YES\n")
        require_root(result, step, SUDO_REMEDY)
        report = parse_set_output(_text(result))
        if report.meaning is Meaning.REBOOTING:
            return True
        if report.outcome == "needs_reboot":
            raise PowerModeError(step, "nvpmodel asked for a reboot and did not take our YES")
        stuck, _ = await self._differences(mode)
        if not stuck:
            return False
        result = await self._run(["reboot"], needs_root=True)
        require_root(result, step, REBOOT_SUDO_REMEDY)
        if result.exit_status != 0:
            told = _text(result).strip()[:200]
            raise PowerModeError(step, f"{stuck}, and `reboot` failed: {told}")
        return True

    async def _observe(self) -> PowerModeState:
        """The present state; the name is "" where no mode was ever set (jetson_stats#567)."""
        answer = parse_query(_text(await self._run(["nvpmodel", "-q"])))
        name, number = (answer.name, answer.id) if answer is not None else ("", None)
        if name and number is None and (known := (await self._known()).by_name(name)) is not None:
            number = known.id
        clocks = await self._clocks()
        told = "unknown" if clocks is None else "locked" if clocks.is_locked else "free"
        online = ((await self._commands.read_text(ONLINE)) or "").strip()[:100]
        return PowerModeState(
            name=name,
            id=number,
            is_locked=clocks is not None and clocks.is_locked,
            detail={"online": online, "clocks": told},
        )

    async def _known(self) -> PowerModeTable:
        return self._table if self._table is not None else await self.modes()

    async def _set(self, mode: PowerMode) -> None:
        step = f"set power mode {mode.name}"
        result = await self._run(["nvpmodel", "-m", str(mode.id)], needs_root=True)
        require_root(result, step, SUDO_REMEDY)
        report = parse_set_output(_text(result))
        asked = refusals.question(mode, report)
        if asked is not None:
            raise asked
        if report.outcome == "bad_mode":
            self._table = None  # the conf was changed under us
            raise refusals.bad_mode(mode)
        answer = parse_query(_text(await self._run(["nvpmodel", "-q"])))
        if answer is None or answer.name != mode.name or answer.id not in (mode.id, None):
            raise refusals.not_set(mode, answer, report)
        stuck, wrong = await self._differences(mode)
        if stuck:
            raise refusals.stuck_mask(mode, stuck)
        if wrong:
            told = refusals.said(report)
            raise PowerModeError(step, f"the mode is set, but {wrong}{told}")

    async def _differences(self, mode: PowerMode) -> tuple[str, str]:
        """What of the mode is not in force: its masks, and anything; "" where all is well."""
        argv = ["nvpmodel", "-q", "--verbose"]
        result = await self._run(argv, needs_root=True)
        if is_refused_root(result):
            result = await self._run(argv)
        values: Sequence[ParamValue] = parse_values(_text(result))
        online = await self._commands.read_text(ONLINE)
        tables = {
            value.param: await self._frequencies(value.param) for value in unexplained_caps(values)
        }
        masks = self._masks.get(mode.id, {}) if mode.id is not None else {}
        return (
            stuck_mask(masks, values),
            difference(mode, values, parse_cpu_list(online or ""), tables),
        )

    async def _frequencies(self, param: str) -> tuple[int, ...]:
        """The frequencies that the kernel offers for a clock of the conf; () if unknown."""
        for arg in ("FREQ_TABLE_KNEXT", "FREQ_TABLE"):
            path = self._paths.get((param, arg))
            text = await self._commands.read_text(path) if path else None
            if text:
                return tuple(int(word) for word in text.split() if word.isdecimal())
        return ()

    async def _clocks(self) -> ClocksShown | None:
        """None where they cannot be read: no root, or no such tool."""
        result = await self._run(["jetson_clocks", "--show"], needs_root=True)
        shown = parse_clocks(result.text)
        return shown if shown.cpus else None

    async def _lock(self) -> None:
        clocks = await self._clocks()
        if clocks is not None and clocks.is_locked:
            return  # a store file made now would keep the lock for ever
        stored = await self._run(["jetson_clocks", "--store", STORE], needs_root=True)
        require_root(stored, "lock clocks", SUDO_REMEDY)
        await self._run(["jetson_clocks"], needs_root=True)

    async def _unlock(self) -> None:
        """Restore from our store file of this boot, else from the tool's own default file."""
        has_store = await self._commands.read_text(STORE) is not None
        argv = ["jetson_clocks", "--restore", *([STORE] if has_store else [])]
        require_root(await self._run(argv, needs_root=True), "unlock clocks", SUDO_REMEDY)

    def _prove(self, mode: PowerMode, clocks: ClockPolicy, after: PowerModeState) -> None:
        if (after.name, after.id) != (mode.name, mode.id):
            raise PowerModeError(
                f"set power mode {mode.name}", f"at the end the board is in {after.name}"
            )
        if clocks == "locked" and not after.is_locked:
            raise PowerModeError(
                "lock clocks",
                f"jetson_clocks ran, and the clocks are {after.detail['clocks']}",
                remedy="In the first minute after a boot other services reset them; try again.",
            )
        if clocks == "default" and after.is_locked:
            raise PowerModeError(
                "unlock clocks",
                "the clocks stay locked",
                remedy="Somebody locked them without a store file: reboot the board.",
            )

    async def _run(
        self, argv: Sequence[str], *, needs_root: bool = False, stdin: bytes = b""
    ) -> CommandResult:
        """Run a tool, as root if it needs it or is given an answer; bounded."""
        is_change = argv[0] == "jetson_clocks" or "-m" in argv
        timeout_s = SET_TIMEOUT_S if is_change else QUERY_TIMEOUT_S
        try:
            if needs_root or stdin:
                return await run_as_root(self._commands, argv, timeout_s=timeout_s, stdin=stdin)
            return await self._commands.run(argv, timeout_s=timeout_s)
        except CommandTimeoutError as error:
            if "-m" not in argv or stdin:
                raise
            raise PowerModeError(
                " ".join(argv),
                f"no end after {SET_TIMEOUT_S:.0f} s; it may be asking something",
                remedy="Run it by hand on the board and see.",
            ) from error


def _text(result: CommandResult) -> str:
    return f"{result.text}\n{result.error_text}"
