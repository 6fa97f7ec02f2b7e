"""What may stand between a board and a good night, in words, each with its fix. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from farm.analysis.clock import MAX_BOUND_S
from farm.analysis.profile_match import ProfileMatch
from farm.drivers.agent_refusals import STEP as AGENT_STEP
from farm.drivers.board_facts.busy import BusyLook
from farm.errors import (
    AuthError,
    CommandTimeoutError,
    ConfigError,
    ConnectError,
    DriverError,
    FarmError,
    HostKeyError,
    LeaseHeldError,
    LinkLostError,
    PowerModeError,
    TransferError,
)
from farm.interfaces.agent import KeptRestore, Lease
from farm.model.board import Board, MeterSpec
from farm.model.profile import BoardProfile
from farm.model.trace import MissKind
from farm.pipeline.boards.meter_look import MeterLook
from farm.pipeline.boards.rights import NO_ANSWER, SudoRights

LEAST_FREE_MB, LOW_FREE_MB = 200, 1000
"""Assumed: logs, artifacts and the system's own growth of a night; below the first it fails."""
WARM_C, NEAR_LIMIT_C = 60.0, 15.0
"""Assumed: at rest a board with a working fan is cooler, and further from its limit."""
USUAL_LIMIT_C = 95.0
"""Jetsons slow down from 95 C (TX2) to 99 C (Orin) on: for profiles that tell no limit."""
FOREIGN_CORES = 0.1
WIDE_CLOCK_S = 300.0
SHOWN_DIFFERENCES = 4
SHOWN_SHARERS = 4

Level = Literal["fail", "warn", "note"]
LEVELS: tuple[Level, ...] = ("fail", "warn", "note")
"""`fail`: tonight's run would fail there; `warn`: it would measure something else than meant."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one board, in words; `fix` is what to do, "" where nothing is."""

    level: Level
    about: str
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """All findings of one board, the worst first; `summary` is what was seen."""

    board: str
    findings: tuple[Finding, ...]
    summary: str = ""
    would_fail: bool = field(init=False)

    def __post_init__(self) -> None:
        ranked = sorted(self.findings, key=lambda one: LEVELS.index(one.level))
        object.__setattr__(self, "findings", tuple(ranked))
        object.__setattr__(self, "would_fail", any(f.level == "fail" for f in ranked))


_ABOUT: tuple[tuple[type[FarmError], str], ...] = (
    (ConnectError, "reach"),
    (HostKeyError, "host key"),
    (AuthError, "login"),
    (LeaseHeldError, "lease"),
    (LinkLostError, "link"),
    (CommandTimeoutError, "time"),
    (TransferError, "disk"),
    (PowerModeError, "power mode"),
    (ConfigError, "inventory"),
    (DriverError, "driver"),
)
_PLAIN_STEPS = ("connect", AGENT_STEP)
"""Steps that the finding's word tells already."""


def of_error(error: FarmError, *, about: str = "", level: Level = "fail") -> Finding:
    """An error as a finding: what was seen, and its remedy as the fix."""
    word = next((word for kind, word in _ABOUT if isinstance(error, kind)), "agent")
    step, seen = getattr(error, "step", ""), getattr(error, "seen", "")
    text = str(error) if not step else seen if step in _PLAIN_STEPS else f"{step}: {seen}"
    return Finding(level, about or word, text, str(getattr(error, "remedy", "")))


def of_disk(free_mb: int, payload_mb: float) -> list[Finding]:
    """Room for the largest payload (twice: as it comes, and unpacked) and the night's logs."""
    fix = "`farm boards clean` removes cached payloads; move large files off the board"
    needed = LEAST_FREE_MB + 2 * payload_mb
    if free_mb < needed:
        return [Finding("fail", "disk", f"{free_mb} MB free, {needed:.0f} MB needed", fix)]
    if free_mb < LOW_FREE_MB:
        return [Finding("warn", "disk", f"{free_mb} MB free", fix)]
    return []


def of_clock(bound_s: float, goal_s: float, *, is_metered: bool = True) -> list[Finding]:
    """How well the board's clock can be placed on the host's axis: what a meter needs."""
    text = f"the clock exchange is known to {bound_s * 1e3:.0f} ms only"
    fix = "look at the link: Wi-Fi, a busy switch, a board that swaps"
    if bound_s > MAX_BOUND_S and is_metered:
        return [Finding("fail", "clock", f"{text}; {MAX_BOUND_S * 1e3:.0f} are allowed", fix)]
    if bound_s > goal_s:
        return [Finding("warn", "clock", f"{text}; {goal_s * 1e3:.0f} suit a meter", fix)]
    return []


def of_date(error_s: float | None) -> list[Finding]:
    """The wall clock: only a note, because nothing rests on it."""
    if error_s is None or error_s <= WIDE_CLOCK_S:
        return []
    text = f"its wall clock is {error_s / 3600:.1f} h off; farm does not use it"
    return [Finding("note", "date", text, "set it, if downloads there fail: TLS minds")]


def of_temperature(celsius: float | None, profile: BoardProfile) -> list[Finding]:
    """Hot at rest: the fan, the room, or somebody's load."""
    if celsius is None:
        return [Finding("note", "temperature", "the board tells none")]
    told = profile.max_temperature_c
    limit, whose = (told.value, "its limit is") if told else (USUAL_LIMIT_C, "boards slow down at")
    fix = "look at its fan and its air; wait until it cooled down"
    if celsius >= limit - NEAR_LIMIT_C:
        text = f"{celsius:.0f} C at rest, {whose} {limit:.0f} C"
        return [Finding("fail", "temperature", text, fix)]
    if celsius >= WARM_C:
        return [Finding("warn", "temperature", f"{celsius:.0f} C at rest", fix)]
    return []


def of_load(look: BusyLook | None) -> list[Finding]:
    """What else works on the board: it shares cores, heat and watts with the payload."""
    if look is None or look.total_cores <= FOREIGN_CORES:
        return []
    names = ", ".join(f"{p.name} (pid {p.pid}) {p.cores:.0%}" for p in look.busiest[:3])
    text = f"{look.total_cores:.0%} of a core is busy: {names}"
    return [Finding("warn", "load", text, "end or disable it on the board before the night")]


def of_lease(lease: Lease | None, running: Sequence[str]) -> list[Finding]:
    """Who has the board, and payloads that run on without anybody."""
    if lease is not None:
        text = f"run {lease.run_id} of {lease.holder} holds the board; the rest was not looked at"
        fix = "wait for it, or `farm stop` there; of a host that died it ends in 15 minutes, and "
        fix += "the board puts itself back"
        return [Finding("fail", "lease", text, fix)]
    if running:
        text = f"{len(running)} payloads run without a host, e.g. {running[0]}"
        return [Finding("warn", "attempts", text, "`farm resume RUN` collects them")]
    return []


def of_kept_restore(kept: KeptRestore | None, board: str) -> list[Finding]:
    """Whether a run whose host vanished left the board changed. Nobody holds the board."""
    if kept is None:
        return []
    whose = f"run {kept.run_id} of {kept.holder}"
    if kept.is_watched:
        text = f"the host of {whose} is gone; the board puts itself back when its payload ends"
        return [Finding("note", "restore", text)]
    if not kept.is_pending:
        text = f"the host of {whose} did not come back; the board's own watchdog put it back"
        return [Finding("note", "restore", text, f"`farm modes restore {board}` forgets this")]
    text = f"{whose} left mode, clocks or fan changed, and its host did not come back"
    bad = () if kept.done is None else (one for one in kept.done.results if not one.is_good)
    failed = ", ".join(f"`{' '.join(one.argv)}` (it said: {one.said[:100]})" for one in bad)
    text += f"; the board's own watchdog failed: {failed}" if failed else "; the board rebooted"
    return [Finding("warn", "restore", text, f"`farm modes restore {board}`")]


def of_profile(
    board: Board,
    matches: Sequence[ProfileMatch],
    profile: BoardProfile,
    differences: Sequence[str],
) -> list[Finding]:
    """Whether the profile is the board's, and where its mode table is not as expected."""
    found: list[Finding] = []
    names = [match.profile.name for match in matches]
    is_known = bool(profile.identify.compatible or profile.identify.model)
    if matches and board.profile not in names:
        best = matches[0]
        same_tools = best.profile.power_controller == profile.power_controller
        text = f"by its device tree it is a {best.profile.name} ({best.why})"
        fix = f"`profile: {best.profile.name}` for {board.name} in the inventory"
        level: Level = "warn" if same_tools else "fail"
        found.append(Finding(level, "profile", f"{text}, not a {board.profile}", fix))
    elif not matches and is_known:
        text = f"its device tree does not say that it is a {board.profile}"
        found.append(Finding("note", "profile", text, "`farm boards probe` shows what it says"))
    found += [
        Finding("note", "modes", line, "the board's own table counts")
        for line in differences[:SHOWN_DIFFERENCES]
    ]
    if len(differences) > SHOWN_DIFFERENCES:
        text = f"{len(differences) - SHOWN_DIFFERENCES} more differences"
        found.append(Finding("note", "modes", text, "`farm boards probe` lists all"))
    return found


def of_rights(board: Board, rights: SudoRights) -> list[Finding]:
    """What sudo refuses, and how to let it."""
    fix = f"`farm boards sudoers {board.name}` prints the file for /etc/sudoers.d/farm there"
    if rights.complaint:
        words, other_fix = _REFUSALS.get(rights.complaint, _UNKNOWN_REFUSAL)
        text = f"{words}: it said `{rights.said.removeprefix('sudo: ')}`"
        return [Finding("fail", "sudo", text, other_fix or fix)]
    found: list[Finding] = []
    missing = rights.of("missing")
    if missing:
        text = f"the board has no {' and no '.join(sorted({m.split()[0] for m in missing}))}"
        found.append(Finding("fail", "sudo", text, "install the board's own tools (L4T)"))
    for words, refused in (
        ("not allowed", rights.of("no")),
        ("allowed with a password only", rights.of("password")),
    ):
        if refused:
            more = f" and {len(refused) - 1} more" if refused[1:] else ""
            found.append(Finding("fail", "sudo", f"{words}: {refused[0]}{more}", fix))
    if "requiretty" in rights.defaults:
        text = "requiretty is on: sudo will want a terminal, which farm has not"
        found.append(Finding("warn", "sudo", text, fix))
    if rights.of("unknown"):
        text = "its sudo lists no rights: not everything could be looked at"
        found.append(Finding("note", "sudo", text))
    return found


_REFUSALS = {
    "needs_tty": ("sudo wants a terminal (Defaults requiretty)", ""),
    "needs_password": ("sudo asks for a password, or lets this user do nothing", ""),
    "not_allowed": ("sudo lets this user do nothing as root", ""),
    "no_sudo": (
        "there is no sudo on the board",
        "`apt install sudo` there, or `user: root` in the inventory",
    ),
    "cannot": (
        "sudo cannot become root there",
        "look there: `sudo -v`, the setuid bit, a nosuid mount, `visudo -c`",
    ),
    NO_ANSWER: ("sudo hangs", "log in and try `sudo -n -l`: a name server, a directory, a disk"),
}
_UNKNOWN_REFUSAL = ("sudo refuses, in words that farm does not know", "")


def of_meter(spec: MeterSpec, look: MeterLook) -> list[Finding]:
    """Whether the meter answers, measures, and moves."""
    where = f"{spec.name} ({spec.host or spec.kind})"
    if look.error is not None:
        seen = getattr(look.error, "seen", "") or str(look.error)
        text = seen if seen.startswith(spec.name) else f"{where}: {seen}"
        return [Finding("fail", "meter", text, of_error(look.error).fix)]
    if not look.readings:
        last = look.misses[-1] if look.misses else None
        why = f": {last.kind.value} {last.text}".rstrip() if last else ""
        fix = "is it powered and in this network?"
        if last is not None and last.kind is MissKind.AUTH:
            fix = "`secret:` of the meter in the inventory"
        text = f"{where} gave no reading in {look.seconds:.0f} s{why}"
        return [Finding("fail", "meter", text, fix)]
    return _of_readings(where, look)


def of_sharing(meter: str, others: Sequence[str]) -> list[Finding]:
    """Boards that the inventory has at the same meter."""
    if not others:
        return []
    names = ", ".join(others[:SHOWN_SHARERS]) + (", ..." if others[SHOWN_SHARERS:] else "")
    text = f"{meter} feeds {names} too: all results with power will be suspect"
    return [Finding("warn", "meter", text, "a meter of its own, or `meter:` at one board only")]


def _of_readings(where: str, look: MeterLook) -> list[Finding]:
    last = look.readings[-1]
    if last.is_output_on is False:
        text = f"{where}: its output is off"
        return [Finding("fail", "meter", text, "switch it on")]
    if all(reading.power_w <= 0 for reading in look.readings):
        text = f"{where} reads {last.power_w:g} W"
        fix = "is the board plugged into this meter, and on?"
        return [Finding("fail", "meter", text, fix)]
    if not look.has_moved:
        text = f"{where} told {last.power_w:g} W for {look.seconds:.0f} s without a change"
        fix = "normal for an idle board on a coarse meter; else look whether it hangs"
        return [Finding("note", "meter", text, fix)]
    if look.misses:
        polls = len(look.misses) + len(look.readings)
        text = f"{where} missed {len(look.misses)} of {polls} polls: {look.misses[-1].kind.value}"
        return [Finding("warn", "meter", text, "look at its network, and its poll_hz")]
    return []
