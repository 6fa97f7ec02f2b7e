"""Findings, on what was seen: no board and no meter needed."""

from pathlib import Path

import pytest

from farm.analysis.profile_match import identify
from farm.config.builtin import builtin_folder
from farm.config.profiles import load_profiles
from farm.drivers.board_facts.busy import BusyLook, BusyProcess
from farm.errors import (
    AuthError,
    BoardError,
    ConfigError,
    ConnectError,
    FarmError,
    HostKeyError,
    MeterError,
    PowerModeError,
)
from farm.interfaces.agent import KeptRestore, Lease, SelfRestore, StepResult
from farm.model.board import Board, MeterSpec
from farm.model.profile import BoardProfile
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.pipeline.boards import findings as said
from farm.pipeline.boards.findings import Checkup, Finding
from farm.pipeline.boards.meter_look import MeterLook
from farm.pipeline.boards.rights import CommandRight, SudoRights

TX2 = Board(name="tx2-01", profile="jetson-tx2", host="192.0.2.1", user="nvidia")
METER = MeterSpec(name="plug-01", kind="shelly", host="192.0.2.101")


@pytest.fixture(scope="module")
def profiles() -> dict[str, BoardProfile]:
    return dict(load_profiles([builtin_folder("device_profiles")]))


def levels(found: list[Finding]) -> list[tuple[str, str]]:
    return [(one.level, one.about) for one in found]


@pytest.mark.parametrize(
    ("error", "about"),
    [
        (ConnectError("connect", "refused", remedy="power?"), "reach"),
        (HostKeyError("connect", "another key"), "host key"),
        (AuthError("connect", "denied"), "login"),
        (PowerModeError("read power modes", "none"), "power mode"),
        (BoardError("x", "y"), "agent"),
        (ConfigError("no such variable"), "inventory"),
    ],
)
def test_an_error_becomes_a_finding_with_its_remedy(error: FarmError, about: str) -> None:
    finding = said.of_error(error)
    assert (finding.level, finding.about) == ("fail", about)
    assert finding.text
    assert finding.fix == getattr(error, "remedy", "")


def test_a_disk_must_hold_the_largest_payload_twice() -> None:
    assert levels(said.of_disk(150, 0)) == [("fail", "disk")]
    assert levels(said.of_disk(900, 400)) == [("fail", "disk")]
    assert levels(said.of_disk(900, 10)) == [("warn", "disk")]
    assert said.of_disk(20_000, 400) == []


def test_a_clock_that_cannot_be_placed_fails_and_a_coarse_one_is_told() -> None:
    assert levels(said.of_clock(0.4, 0.01)) == [("fail", "clock")]
    assert levels(said.of_clock(0.1, 0.01)) == [("warn", "clock")]
    assert said.of_clock(0.001, 0.01) == []
    assert levels(said.of_clock(0.4, 0.01, is_metered=False)) == [("warn", "clock")]


def test_a_wrong_date_is_a_note_only() -> None:
    assert levels(said.of_date(86400.0)) == [("note", "date")]
    assert said.of_date(10.0) == []
    assert said.of_date(None) == []


def test_heat_is_judged_by_the_profiles_limit(profiles: dict[str, BoardProfile]) -> None:
    plain = profiles["generic-linux"]
    assert levels(said.of_temperature(70.0, plain)) == [("warn", "temperature")]
    assert levels(said.of_temperature(None, plain)) == [("note", "temperature")]
    assert said.of_temperature(40.0, plain) == []
    limit = plain.model_validate(
        {**plain.model_dump(), "max_temperature_c": {"value": 80.0, "source": "assumed"}}
    )
    assert levels(said.of_temperature(70.0, limit)) == [("fail", "temperature")]


def test_foreign_load_is_named() -> None:
    look = BusyLook(0.9, (BusyProcess("chrome", 42, 0.8), BusyProcess("Xorg", 7, 0.1)))
    (finding,) = said.of_load(look)
    assert finding.level == "warn"
    assert "chrome (pid 42) 80%" in finding.text
    assert said.of_load(BusyLook(0.05, ())) == []
    assert said.of_load(None) == []


def test_a_lease_tells_who_holds_it_and_orphans_are_told() -> None:
    (finding,) = said.of_lease(Lease("r7", "host9 pid 3", "boot", 900.0), ["a"])
    assert finding.level == "fail"
    assert "r7 of host9 pid 3" in finding.text
    assert levels(said.of_lease(None, ["r1.a"])) == [("warn", "attempts")]
    assert said.of_lease(None, []) == []


def kept(done: SelfRestore | None, *, is_watched: bool = False) -> KeptRestore:
    return KeptRestore("r7", "host9", "boot", (), is_watched, done)


@pytest.mark.parametrize(
    ("one", "level", "words"),
    [
        (kept(None, is_watched=True), "note", "puts itself back when its payload ends"),
        (kept(SelfRestore(0.0, True, ())), "note", "own watchdog put it back"),
        (kept(None), "warn", "the board rebooted"),
        (
            kept(SelfRestore(0.0, False, (StepResult(("nvpmodel", "-q"), 0, "MAXQ", False),))),
            "warn",
            "failed: `nvpmodel -q` (it said: MAXQ)",
        ),
    ],
)
def test_what_a_vanished_host_left_is_told(one: KeptRestore, level: str, words: str) -> None:
    (finding,) = said.of_kept_restore(one, "tx2")
    assert (finding.level, finding.about) == (level, "restore")
    assert "run r7 of host9" in finding.text
    assert words in finding.text
    assert finding.fix.startswith("`farm modes restore tx2`") != one.is_watched
    assert said.of_kept_restore(None, "tx2") == []


def test_the_device_tree_decides_which_profile_a_board_has(
    profiles: dict[str, BoardProfile],
) -> None:
    def of(profile: str, compatible: str, lines: list[str]) -> list[Finding]:
        board = TX2.model_copy(update={"profile": profile})
        matches = identify([compatible], "", profiles.values())
        return said.of_profile(board, matches, profiles[profile], lines)

    tx2 = "nvidia,p2597-0000+p3310-1000"
    assert of("jetson-tx2", tx2, []) == []
    (finding,) = of("jetson-nano", tx2, [])
    assert finding.level == "warn"
    assert "jetson-tx2" in finding.fix
    (finding,) = of("generic-linux", tx2, [])
    assert finding.level == "fail"
    assert levels(of("jetson-tx2", "acme,unknown", [])) == [("note", "profile")]
    assert of("generic-linux", "acme,unknown", []) == []
    many = of("jetson-tx2", tx2, [f"line {number}" for number in range(9)])
    assert len(many) == said.SHOWN_DIFFERENCES + 1
    assert many[-1].text == "5 more differences"


def rights(**states: str) -> SudoRights:
    commands = [CommandRight.model_validate({"command": c, "state": s}) for c, s in states.items()]
    return SudoRights(state="no", commands=tuple(commands))


def test_what_sudo_does_not_let_fails_with_the_command_that_writes_the_rule() -> None:
    assert said.of_rights(TX2, SudoRights(state="root")) == []
    assert said.of_rights(TX2, rights(a="free")) == []
    for state in ("no", "password"):
        (finding,) = said.of_rights(TX2, rights(a="free", b=state, c=state))
        assert finding.level == "fail"
        assert "b and 1 more" in finding.text
        assert "farm boards sudoers tx2-01" in finding.fix
    (finding,) = said.of_rights(TX2, rights(nvpmodel="missing"))
    assert "the board has no nvpmodel" in finding.text
    assert levels(said.of_rights(TX2, rights(a="unknown"))) == [("note", "sudo")]
    tty = SudoRights(state="free", defaults=("requiretty", "use_pty"))
    assert levels(said.of_rights(TX2, tty)) == [("warn", "sudo")]


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        ("needs_tty", "requiretty"),
        ("needs_password", "password"),
        ("not_allowed", "nothing as root"),
        ("no_sudo", "no sudo"),
        ("other", "words that farm does not know"),
        ("no_answer", "hangs"),
    ],
)
def test_a_sudo_that_does_not_list_is_told_in_our_words_and_its_own(
    complaint: str, words: str
) -> None:
    told = SudoRights(state="no", complaint=complaint, said="sudo: its own")
    (finding,) = said.of_rights(TX2, told)
    assert finding.level == "fail"
    assert words in finding.text
    assert "`its own`" in finding.text
    assert finding.fix


def reading(watts: float, *, is_on: bool | None = True) -> MeterReading:
    return MeterReading(0.0, 0.1, watts, is_output_on=is_on)


def look(*watts: float, misses: int = 0, is_on: bool | None = True) -> MeterLook:
    missed = tuple(MeterMiss(0.0, MissKind.TIMEOUT, "late") for _ in range(misses))
    return MeterLook("plug-01", 3.0, tuple(reading(w, is_on=is_on) for w in watts), missed)


def test_meters_must_answer_measure_and_move() -> None:
    assert said.of_meter(METER, look(3.0, 3.1)) == []
    assert levels(said.of_meter(METER, look(3.0, 3.0))) == [("note", "meter")]
    assert levels(said.of_meter(METER, look(3.0, 3.1, misses=2))) == [("warn", "meter")]
    for bad in (look(misses=3), look(0.0, 0.0), look(0.0, is_on=False)):
        assert levels(said.of_meter(METER, bad)) == [("fail", "meter")]
    (finding,) = said.of_meter(METER, look(misses=3))
    assert "no reading in 3 s: timeout late" in finding.text
    broken = MeterLook("plug-01", error=MeterError("open", "no route", remedy="look"))
    (finding,) = said.of_meter(METER, broken)
    assert finding.fix == "look"
    auth = MeterLook("plug-01", 3.0, misses=(MeterMiss(0.0, MissKind.AUTH),))
    (finding,) = said.of_meter(METER, auth)
    assert "secret" in finding.fix


def test_the_worst_finding_comes_first() -> None:
    notes = (Finding("note", "a", "x"), Finding("fail", "b", "x"), Finding("warn", "c", "x"))
    checkup = Checkup("tx2-01", notes)
    assert [one.about for one in checkup.findings] == ["b", "c", "a"]
    assert checkup.would_fail
    assert not Checkup("tx2-02", (notes[0], notes[2])).would_fail


def test_the_docs_name_every_finding() -> None:
    text = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")
    words = {
        *(word for _, word in said._ABOUT),
        *("agent", "disk", "clock", "date", "temperature", "load", "lease", "attempts"),
        *("profile", "modes", "sudo", "meter", "L4T"),
    }
    missing = {word for word in words if f"`{word}`" not in text}
    assert not missing


def test_boards_at_one_meter_are_told_and_not_all_named() -> None:
    assert said.of_sharing("plug-01", []) == []
    (finding,) = said.of_sharing("plug-01", [f"tx2-{n}" for n in range(2, 9)])
    assert finding.level == "warn"
    assert "plug-01 feeds tx2-2, tx2-3, tx2-4, tx2-5, ... too" in finding.text


@pytest.mark.parametrize(
    ("celsius", "level"), [(50.0, None), (61.0, "warn"), (79.0, "warn"), (80.0, "fail")]
)
def test_a_profile_without_a_limit_has_the_usual_one(
    profiles: dict[str, BoardProfile], celsius: float, level: str | None
) -> None:
    profile = profiles["jetson-tx2"].model_copy(update={"max_temperature_c": None})
    found = said.of_temperature(celsius, profile)
    assert [one.level for one in found] == ([level] if level else [])
