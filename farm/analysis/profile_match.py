"""Which profile a board has, and where the board's own mode table differs from it. Pure.

The table that a board prints always wins; the profile only told what to expect. A difference
is shown, so that figures that rest on the profile (peaks, budgets) are not trusted blindly.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from farm.model.power_mode import PowerMode, PowerModeTable
from farm.model.profile import BoardProfile

CAP_TOLERANCE_MHZ = 0.1
"""Caps nearer than this are the same: tables hold kHz and Hz, profiles rounded MHz."""

_CAPS = (("cpu_mhz", "CPU"), ("gpu_mhz", "GPU"), ("emc_mhz", "EMC"))

Basis = Literal["part number", "model"]


class ProfileMatch(NamedTuple):
    """A profile that fits a board, why in one line, and by what it was recognised."""

    profile: BoardProfile
    why: str
    basis: Basis


class _Found(NamedTuple):
    by_part: bool
    length: int
    place: int
    match: ProfileMatch


def identify(
    compatible: Sequence[str], model: str, profiles: Iterable[BoardProfile]
) -> list[ProfileMatch]:
    """The profiles that fit a board, best first; empty when none does.

    A part number in `compatible` goes before the model string, whose wording changes with
    the release. The longer part number goes first (``p3767-0005-super`` before
    ``p3767-0005``), then the one that the board names earlier. A model string counts when it
    is the same, or the same up to `` Rev``.

    Args:
        compatible: entries of the device tree's ``compatible``, most specific first.
        model: the device tree's ``model``, or "".
        profiles: those to choose from.
    """
    found: list[_Found] = []
    for profile in profiles:
        best = _by_part(compatible, profile) or _by_model(model, profile)
        if best is not None:
            found.append(best)
    found.sort(key=lambda one: (not one.by_part, -one.length, one.place, one.match.profile.name))
    return [one.match for one in found]


def differences(profile: BoardProfile, table: PowerModeTable) -> list[str]:
    """Where a board's own table differs from what its profile expects, a line each.

    Modes are compared by name. A cap is compared where both have one, or the profile has one
    and the board none; what the profile does not know is told in one line a mode.
    """
    theirs = {mode.name.lower(): mode for mode in table.modes}
    expected = {mode.name.lower() for mode in profile.power_modes}
    lines: list[str] = []
    for mode in profile.power_modes:
        seen = theirs.get(mode.name.lower())
        if seen is None:
            lines.append(f"{mode.name}: the profile expects this mode, the board has none such")
        else:
            lines += _mode_differences(mode, seen)
    lines += [
        f"{mode.name}: the board has this mode{_number(mode)}, the profile does not know it"
        for mode in table.modes
        if mode.name.lower() not in expected
    ]
    default, ours = table.default, profile.default_power_mode
    if default and ours and default.lower() != ours.lower():
        lines.append(f"default mode: {default} on the board, {ours} in the profile")
    return lines


def _by_part(compatible: Sequence[str], profile: BoardProfile) -> _Found | None:
    hits = [
        (len(part), place, part, entry)
        for part in profile.identify.compatible
        for place, entry in enumerate(compatible)
        if _names(entry, part)
    ]
    if not hits:
        return None
    length, place, part, entry = min(hits, key=lambda hit: (-hit[0], hit[1]))
    why = f"part number {part} in {entry}"
    if f"{part}-super".lower() in entry.lower():
        why += "; its super modes are not in this profile"
    return _Found(True, length, place, ProfileMatch(profile, why, "part number"))


def _names(entry: str, part: str) -> bool:
    """Whether a compatible entry holds the part number as a word of its own."""
    pattern = rf"(?<![a-z0-9]){re.escape(part.lower())}(?![a-z0-9])"
    return re.search(pattern, entry.lower()) is not None


def _by_model(model: str, profile: BoardProfile) -> _Found | None:
    told = model.strip().lower()
    for wanted in profile.identify.model:
        if told == wanted.lower() or told.startswith(f"{wanted.lower()} rev"):
            match = ProfileMatch(profile, f"model {model.strip()}", "model")
            return _Found(False, len(wanted), 0, match)
    return None


def _mode_differences(expected: PowerMode, seen: PowerMode) -> list[str]:
    name = expected.name
    lines: list[str] = []
    for key, what in (("id", "id"), ("online_cores", "cores on"), ("tpc_mask", "TPC mask")):
        ours, theirs = getattr(expected, key), getattr(seen, key)
        if None not in (ours, theirs) and ours != theirs:
            lines.append(f"{name}: {what} {theirs} on the board, {ours} in the profile")
    unknown: list[str] = []
    for key, what in _CAPS:
        cap, actual = getattr(expected, key), getattr(seen, key)
        if cap is None and actual is not None:
            unknown.append(f"{what} {actual:g} MHz")
        elif cap is not None and actual is None:
            lines.append(f"{name}: {what} without a cap on the board, {cap:g} MHz in the profile")
        elif cap is not None and abs(cap - actual) > CAP_TOLERANCE_MHZ:
            lines.append(f"{name}: {what} {actual:g} MHz on the board, {cap:g} in the profile")
    if unknown:
        lines.append(f"{name}: the board caps {', '.join(unknown)}; the profile has no figure")
    return lines


def _number(mode: PowerMode) -> str:
    return "" if mode.id is None else f" (id {mode.id})"
