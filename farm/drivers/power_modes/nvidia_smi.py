"""A computer with one NVIDIA card: ``nvidia-smi`` sets its power limit and pins its clock.

In a device profile::

    power_controller: nvidia-smi

Modes are power limits: the card's least (``maxq``), its default (``maxp``) and its most
(``maxn``), named by their watts, e.g. ``200W``; any other whole number of watts between is a
mode too. Locked clocks are the top graphics clock as least and most. Exit codes prove nothing:
what was set is read back. Tried on answers of real cards, not on a card yet.
"""

import re
from collections.abc import Mapping, Sequence

from farm.drivers.board_facts.nvidia_smi_query import parse_query, smi_number
from farm.drivers.power_modes.root import require_root, run_as_root, sudoers_remedy
from farm.errors import PowerModeError, UnsupportedPowerModeError
from farm.interfaces.agent import BoardCommands
from farm.interfaces.power_controller import PowerController, UnattendedController
from farm.interfaces.transport import CommandResult
from farm.model.mode_words import resolve_mode
from farm.model.parameters import short_id
from farm.model.power_mode import (
    AppliedPowerMode,
    ClockPolicy,
    PowerMode,
    PowerModeState,
    PowerModeTable,
    RestoreStep,
)
from farm.model.profile import BoardProfile

FIELDS = (
    "name",
    "persistence_mode",
    "power.limit",
    "power.min_limit",
    "power.default_limit",
    "power.max_limit",
    "clocks.max.graphics",
)
QUERY = ("nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
LIMIT_S = 30.0
SAME_W = 0.5
"""The tool prints hundredths of a watt; cards round what they are given to less than this."""
STORE = "/run/farm-nvidia-smi.conf"
"""The clock that we locked, in MHz: no query of the tool tells of a lock. Empty after a boot."""
SMI, TEE = "/usr/bin/nvidia-smi", "/usr/bin/tee"
ALLOW = (
    *(f"{SMI} -pm {switch}" for switch in "01"),
    *(f"{SMI} -pl {digits}" for digits in ("[0-9]" * count for count in (2, 3, 4))),
    *(f"{SMI} -pl {'[0-9]' * count}.[0-9][0-9]" for count in (2, 3, 4)),
    *(f"{SMI} -lgc {'[0-9]' * count}\\,{'[0-9]' * count}" for count in (3, 4)),
    f"{SMI} -rgc",
    f"{TEE} {STORE}",
)
"""What sudo must allow, spelled without ``*``; a comma in arguments is escaped there."""

_WATTS = re.compile(r"(\d{1,4})\s*w", re.IGNORECASE)


class NvidiaSmiPowerController(PowerController, UnattendedController):
    """Power limits and the clock lock of the only NVIDIA card of a computer."""

    def __init__(self, commands: BoardCommands, profile: BoardProfile) -> None:
        self._commands, self._profile = commands, profile

    async def modes(self) -> PowerModeTable:
        """Its limits. Raises UnsupportedPowerModeError for a card that tells none."""
        return _table(await self._query())

    async def current(self) -> PowerModeState:
        """The mode of the present limit; `detail` has limit, persistence and lock to restore."""
        card = await self._query()
        locked = (await self._commands.read_text(STORE) or "").strip()
        return PowerModeState(
            name=_mode_name(_limit(card, "power.limit")),
            is_locked=locked.isdecimal(),
            detail={
                "limit_w": card["power.limit"] or "",
                "persistence": card["persistence_mode"] or "unknown",
                "locked_mhz": locked[:8] if locked.isdecimal() else "",
            },
        )

    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        """Resolve, keep the driver loaded, set the limit, lock or free the clock, read back."""
        card, before = await self._query(), await self.current()
        mode = _resolve(asked, _table(card), before, card)
        step, watts = f"set power mode {mode.name}", mode.budget_w
        is_there = before.name == mode.name
        if (not is_there or clocks == "locked") and card["persistence_mode"] == "Disabled":
            # Without it the driver forgets the settings as soon as nobody uses the card.
            await self._set(["-pm", "1"], step)
        if not is_there and watts is not None:
            await self._set(["-pl", _as_option(watts)], step)
        if clocks == "locked":
            await self._lock(card, before)
        elif before.is_locked:
            await self._free()
        after = await self.current()
        _prove(mode, clocks, after)
        return AppliedPowerMode(
            asked=asked,
            name=mode.name,
            clocks=clocks,
            has_changed=not is_there or before.is_locked != after.is_locked,
            read_back=after,
        )

    async def restore(self, original: PowerModeState) -> None:
        """Put back lock, limit and persistence as `current` told them."""
        step, now = f"restore power mode {original.name}", await self.current()
        if now.is_locked and not original.is_locked:
            await self._free()
        limit = smi_number(original.detail.get("limit_w"))
        if limit is None:
            raise PowerModeError(step, "it was recorded without its watts")
        if original.detail.get("limit_w") != now.detail["limit_w"]:
            await self._set(["-pl", _as_option(limit)], step)
        mhz = original.detail.get("locked_mhz", "")
        if mhz.isdecimal() and mhz != now.detail["locked_mhz"]:
            await self._lock_to(mhz, step)
        was_off = original.detail.get("persistence") == "Disabled"
        if was_off and now.detail["persistence"] != "Disabled":
            await self._set(["-pm", "0"], step)
        after = await self.current()
        if abs((smi_number(after.detail["limit_w"]) or 0.0) - limit) > SAME_W:
            raise PowerModeError(
                step, f"the limit is {after.detail['limit_w']} W, not {limit:g} W"
            )

    async def restore_steps(self, original: PowerModeState) -> Sequence[RestoreStep]:
        """Lock, limit and persistence as `current` told them; the limit is read back."""
        limit = smi_number(original.detail.get("limit_w"))
        if limit is None:
            return ()
        mhz = original.detail.get("locked_mhz", "")
        commands = [["-rgc"], ["-pl", _as_option(limit)]]
        if mhz.isdecimal():
            commands[0] = ["-lgc", f"{mhz},{mhz}"]
        if original.detail.get("persistence") == "Disabled":
            commands.append(["-pm", "0"])
        steps = [
            RestoreStep(argv=("nvidia-smi", *each), needs_root=True, timeout_s=LIMIT_S)
            for each in commands
        ]
        note = f"{mhz}\n" if mhz.isdecimal() else ""
        keep = RestoreStep(argv=("tee", STORE), needs_root=True, stdin=note, timeout_s=LIMIT_S)
        query = ("nvidia-smi", "--query-gpu=power.limit", "--format=csv,noheader,nounits")
        proof = RestoreStep(argv=query, timeout_s=LIMIT_S, expects=f"{limit:.2f}")
        return (*steps, keep, proof)

    async def _lock(self, card: Mapping[str, str | None], before: PowerModeState) -> None:
        top = smi_number(card["clocks.max.graphics"])
        if top is None:
            raise UnsupportedPowerModeError(
                "lock clocks", f"{card['name']} does not tell its top graphics clock"
            )
        if before.detail["locked_mhz"] != f"{top:.0f}":
            await self._lock_to(f"{top:.0f}", "lock clocks")

    async def _lock_to(self, mhz: str, step: str) -> None:
        result = await self._set(["-lgc", f"{mhz},{mhz}"], step)
        if "locked" not in result.text.lower() and "set to" not in result.text.lower():
            raise PowerModeError(step, f"nvidia-smi says nothing of a lock: {_said(result)}")
        await self._keep(mhz, step)

    async def _free(self) -> None:
        await self._set(["-rgc"], "unlock clocks")
        await self._keep("", "unlock clocks")

    async def _keep(self, mhz: str, step: str) -> None:
        """Note the lock on the board: the next host must know of it."""
        data = f"{mhz}\n".encode() if mhz else b""
        result = await run_as_root(self._commands, ["tee", STORE], timeout_s=LIMIT_S, stdin=data)
        require_root(result, step, sudoers_remedy(ALLOW))
        if (await self._commands.read_text(STORE) or "").strip() != mhz:
            raise PowerModeError(step, f"{STORE} cannot be written: {_said(result)}")

    async def _set(self, options: list[str], step: str) -> CommandResult:
        argv = ["nvidia-smi", *options]
        result = await run_as_root(self._commands, argv, timeout_s=LIMIT_S)
        require_root(result, step, sudoers_remedy(ALLOW))
        said = _said(result)
        if "not supported" in said.lower():
            raise UnsupportedPowerModeError(step, f"`{' '.join(argv)}`: {said}")
        if "insufficient permission" in said.lower():
            raise PowerModeError(step, f"`{' '.join(argv)}` needs root: {said}")
        if result.exit_status != 0:
            raise PowerModeError(step, f"`{' '.join(argv)}` failed: {said}")
        return result

    async def _query(self) -> Mapping[str, str | None]:
        result = await self._commands.run(QUERY, timeout_s=LIMIT_S)
        answer = parse_query(result.text, FIELDS)
        if len(answer.rows) == 1 and not answer.problem:
            return answer.rows[0]
        seen = answer.problem or f"it lists {len(answer.rows)} cards; one is expected"
        if not answer.rows:
            seen = answer.problem or _said(result) or "it lists no card"
        raise PowerModeError(
            "read power modes",
            f"nvidia-smi: {seen}",
            remedy=f"{self._profile.name} is for computers with one NVIDIA card and its driver.",
        )


def _table(card: Mapping[str, str | None]) -> PowerModeTable:
    limits = [_limit(card, f"power.{which}_limit") for which in ("max", "default", "min")]
    present = _limit(card, "power.limit")
    modes = {
        _mode_name(watts): PowerMode(name=_mode_name(watts), budget_w=watts, source="nvidia-smi")
        for watts in (*limits, present)
    }
    return PowerModeTable(
        modes=tuple(modes.values()),
        default=_mode_name(limits[1]),
        digest=short_id([card["name"], *limits]),
    )


def _limit(card: Mapping[str, str | None], field: str) -> float:
    """Watts. Raises UnsupportedPowerModeError: an unknown limit is no limit to set."""
    watts = smi_number(card[field])
    if watts is None:
        told = [f"{name} {card[name]}" for name in FIELDS if card[name] is not None]
        raise UnsupportedPowerModeError(
            "power mode",
            f"the card does not tell its {field}; it tells {', '.join(told) or 'nothing'}",
            remedy="Give its profile the power controller `fixed`.",
        )
    return watts


def _as_option(watts: float) -> str:
    return f"{watts:.0f}" if watts == round(watts) else f"{watts:.2f}"


def _mode_name(watts: float) -> str:
    return f"{watts:.0f}W"


def _resolve(
    asked: str, table: PowerModeTable, before: PowerModeState, card: Mapping[str, str | None]
) -> PowerMode:
    word = asked.strip().lower()
    low, high = _limit(card, "power.min_limit"), _limit(card, "power.max_limit")
    names = {"maxn": _mode_name(high), "maxq": _mode_name(low), "maxp": table.default or ""}
    found = _WATTS.fullmatch(word)
    if found is not None and table.by_name(_mode_name(float(found[1]))) is None:
        watts = float(found[1])
        if low <= watts <= high:
            return PowerMode(name=_mode_name(watts), budget_w=watts, source="nvidia-smi")
        raise UnsupportedPowerModeError(
            "power mode", f"{watts:g} W is not between the card's {low:g} W and {high:g} W"
        )
    return resolve_mode(names.get(word, word.replace(" ", "")), table, before)


def _prove(mode: PowerMode, clocks: ClockPolicy, after: PowerModeState) -> None:
    if after.name != mode.name:
        raise PowerModeError(
            f"set power mode {mode.name}", f"the limit reads {after.detail['limit_w']} W"
        )
    if after.is_locked != (clocks == "locked"):
        seen = "locked" if after.is_locked else "free"
        raise PowerModeError("lock clocks", f"the clocks are {seen}, by {STORE}")


def _said(result: CommandResult) -> str:
    return " ".join(f"{result.text} {result.error_text}".split())[:300]
