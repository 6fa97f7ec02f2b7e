"""What a user's word for a power mode means on one board. Pure.

IDs differ from board to board, and so do names: Xavier NX has no MAXN, Orin Nano Super calls it
MAXN_SUPER. So the words are resolved by rule on the board's own table, and what was picked is
shown.
"""

from math import inf

from farm.errors import UnsupportedPowerModeError
from farm.model.power_mode import PowerMode, PowerModeState, PowerModeTable

_PREFIX = "mode_"


def resolve_mode(asked: str, table: PowerModeTable, current: PowerModeState) -> PowerMode:
    """The mode that `asked` means.

    * an exact name, upper or lower case, also without ``MODE_``; or the one name that begins
      with it (``30W`` is MODE_30W on AGX Orin, and ambiguous on AGX Xavier);
    * ``current``: the mode the board is in;
    * ``maxn``: MAXN, else MAXN_SUPER, else most cores, then highest GPU cap, then CPU cap;
    * ``maxq``: MAXQ, else the lowest budget (then GPU cap, then cores);
    * ``maxp``: the table's default if it is a MAXP_*, else MAXP_CORE_ALL, else the first
      MAXP_*; without any MAXP_* the table's default.

    Raises UnsupportedPowerModeError with what exists.
    """
    word = asked.strip().lower()
    if word == "current":
        return _current(table, current)
    named = _by_name(word, table)
    if named is not None:
        return named
    if word in _RULES:
        ruled = _RULES[word](table)
        if ruled is not None:
            return ruled
    raise UnsupportedPowerModeError("power mode", _refusal(asked, table))


def _current(table: PowerModeTable, current: PowerModeState) -> PowerMode:
    if not current.name:
        raise UnsupportedPowerModeError("power mode", "the board is in no mode that it can name")
    return table.by_name(current.name) or PowerMode(name=current.name, id=current.id)


def _by_name(word: str, table: PowerModeTable) -> PowerMode | None:
    exact = table.by_name(word)
    if exact is not None:
        return exact
    bare = [mode for mode in table.modes if _bare(mode.name) == _bare(word)]
    if len(bare) == 1:
        return bare[0]
    begun = [mode for mode in table.modes if _bare(mode.name).startswith(_bare(word) + "_")]
    return begun[0] if len(begun) == 1 and word not in _RULES and not bare else None


def _bare(name: str) -> str:
    return name.lower().removeprefix(_PREFIX)


def _maxn(table: PowerModeTable) -> PowerMode | None:
    return table.by_name("MAXN_SUPER") or max(
        table.modes,
        key=lambda mode: (mode.online_cores or 0, mode.gpu_mhz or inf, mode.cpu_mhz or inf),
        default=None,
    )


def _maxq(table: PowerModeTable) -> PowerMode | None:
    with_budget = [mode for mode in table.modes if mode.budget_w is not None]
    return min(
        with_budget,
        key=lambda mode: (mode.budget_w or inf, mode.gpu_mhz or inf, mode.online_cores or 0),
        default=None,
    )


def _maxp(table: PowerModeTable) -> PowerMode | None:
    default = table.by_name(table.default) if table.default else None
    named = [mode for mode in table.modes if mode.name.upper().startswith("MAXP")]
    if not named or (default is not None and default in named):
        return default
    return table.by_name("MAXP_CORE_ALL") or named[0]


_RULES = {"maxn": _maxn, "maxq": _maxq, "maxp": _maxp}


def _refusal(asked: str, table: PowerModeTable) -> str:
    names = ", ".join(mode.name for mode in table.modes) or "none"
    begun = [m.name for m in table.modes if _bare(m.name).startswith(_bare(asked.strip().lower()))]
    if len(begun) > 1 and asked.strip():
        return f"{asked!r} could be {' or '.join(begun)}; the board has {names}"
    return f"the board has no {asked!r}; it has {names}"
