"""The commands that reach boards, over simulated ones, good and bad."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.board_rig import BoardRig, board_rig

REFUSING = "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardRig]:
    yield from board_rig(tmp_path_factory.mktemp("boards") / "lab")


def document(text: str) -> Any:
    """The JSON in a command's output, whose messages follow it."""
    return json.JSONDecoder().raw_decode(text)[0]


def by_board(text: str) -> dict[str, Any]:
    return {one["board"]: one for one in document(text)}


def test_probe_tells_and_keeps_what_boards_are(rig: BoardRig) -> None:
    text = rig.farm("boards", "probe", "tx2-01", "pc-01", "off-01", "--json", status=1)
    found = by_board(text)
    assert set(found) == {"tx2-01", "pc-01"}
    tx2 = found["tx2-01"]
    assert tx2["facts"]["modules"] == ["p3310-1000"]
    assert tx2["facts"]["l4t"] == tx2["fingerprint"]["l4t"] == "R32.6.1"
    assert [one["profile"] for one in tx2["suggestions"]] == ["jetson-tx2"]
    assert tx2["fingerprint"]["mode_table"] == tx2["table"]["digest"] != ""
    assert tx2["mode"]["name"] in {mode["name"] for mode in tx2["table"]["modes"]}
    assert tx2["sudo"]["state"] == "free"
    assert tx2["temperature_c"] > 0
    assert rig.note("tx2-01.json") == tx2
    assert "off-01: connect" in text
    table = rig.farm("boards", "probe", "tx2-01")
    assert "R32.6.1" in table
    assert "p3310-1000" in table


def test_probe_of_none_that_answers_ends_with_3(rig: BoardRig) -> None:
    assert "off-01" in rig.farm("boards", "probe", "off-01", status=3)


def test_the_doctor_finds_nothing_wrong_with_good_boards(rig: BoardRig) -> None:
    text = rig.farm("boards", "doctor", "tx2-01", "pc-01")
    assert "2 boards looked at, 0 would fail tonight" in text
    assert "R32.6.1" in text or "note tx2-01" in text


def test_the_doctor_names_each_fault_with_its_fix(rig: BoardRig) -> None:
    before = rig.put_sudo("tx2-01", REFUSING)
    try:
        text = rig.farm("boards", "doctor", "--json", status=1)
    finally:
        rig.put_sudo("tx2-01", before)
    found = {
        name: {one["about"]: one for one in checkup["findings"] if one["level"] == "fail"}
        for name, checkup in by_board(text).items()
    }
    assert set(found["off-01"]) == {"reach"}
    assert set(found["bare-01"]) == {"agent"}
    assert "no Python 3" in found["bare-01"]["agent"]["text"]
    assert "python:" in found["bare-01"]["agent"]["fix"]
    assert set(found["nano-01"]) == {"meter"}
    assert "mute-01" in found["nano-01"]["meter"]["text"]
    assert set(found["tx2-01"]) == {"sudo"}
    assert "a password is required" in found["tx2-01"]["sudo"]["text"]
    assert "farm boards sudoers tx2-01" in found["tx2-01"]["sudo"]["fix"]
    assert found["pc-01"] == {}
    failing = [checkup["would_fail"] for checkup in document(text)]
    assert failing == sorted(failing, reverse=True)


def test_the_doctor_leaves_a_board_alone_that_a_run_holds(rig: BoardRig) -> None:
    rig.farm("boards", "probe", "pc-01")  # so that its work folder is there
    boot_id = rig.file("pc-01", "/proc/sys/kernel/random/boot_id").read_text().strip()
    lease = rig.file("pc-01", "/home/.farm/lease.json")
    held = {"run_id": "r-night", "holder": "host9 pid 7", "boot_id": boot_id, "expires_s": 1e12}
    lease.write_text(json.dumps(held))
    try:
        text = rig.farm("boards", "doctor", "pc-01", status=1)
        assert "run r-night of host9 pid 7 holds the board" in text
        for words in (("boards", "reboot", "pc-01", "--yes"), ("modes", "set", "maxn", "pc-01")):
            assert "r-night" in rig.farm(*words, status=1)
        assert rig.file("pc-01", "/proc/sys/kernel/random/boot_id").read_text().strip() == boot_id
    finally:
        lease.unlink()
    rig.farm("modes", "set", "maxn", "pc-01")


def test_exec_prefixes_lines_cleans_them_and_sums_up(rig: BoardRig) -> None:
    script = r"printf 'one\n\033[31mred\ttab\nno end'; echo oops >&2; "
    script += "test -e $FARM_ROOT/etc/nv_tegra_release"
    text = rig.farm("boards", "exec", "tx2-01", "pc-01", "--", "sh", "-c", script, status=1)
    lines = text.splitlines()
    for board in ("tx2-01", "pc-01"):
        for line in ("one", "?[31mred tab", "no end", "oops"):
            assert f"{board}: {line}" in lines
    assert "exit 0: 1 of 2: tx2-01" in lines
    assert "exit 1: 1 of 2: pc-01" in lines
    assert "\x1b" not in text
    assert "all good" in rig.farm("boards", "exec", "pc-01", "--", "echo", "all good", "-x")


def test_exec_needs_no_python_on_the_board(rig: BoardRig) -> None:
    assert "bare-01: up" in rig.farm("boards", "exec", "bare-01", "--", "echo", "up")


def test_exec_ends_what_takes_too_long_and_tells_who_was_not_reached(rig: BoardRig) -> None:
    command = ("sh", "-c", "echo pid $$; exec sleep 300")
    words = ("boards", "exec", "pc-01", "off-01", "--timeout", "2", "--", *command)
    text = rig.farm(*words, status=1)
    assert "no end: 1 of 2: pc-01" in text
    assert "--timeout" in text
    assert "not reached: 1 of 2: off-01" in text
    (pid,) = re.findall(r"^pc-01: pid (\d+)$", text, re.MULTILINE)
    give_up_s = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < give_up_s, "the board still runs it"
    rig.farm("boards", "exec", "off-01", "--", "true", status=3)


def test_exec_wants_boards_and_a_command(rig: BoardRig) -> None:
    assert "after --" in rig.farm("boards", "exec", "pc-01", status=2)
    assert "after --" in rig.farm("boards", "exec", "pc-01", "--", status=2)
    assert "before --" in rig.farm("boards", "exec", "--", "true", status=2)


def test_a_shell_is_for_one_board(rig: BoardRig) -> None:
    assert "is 6 boards" in rig.farm("boards", "shell", "*-01", status=2)
    assert "no board matches" in rig.farm("boards", "shell", "pc-1", status=2)


def test_a_shell_runs_what_is_typed_and_ends_with_its_status(rig: BoardRig) -> None:
    pytest.importorskip("fabric")
    command = rig.workspace.command("boards", "shell", "pc-01")
    done = subprocess.run(
        command,
        input=b"echo in $FARM_ROOT; exit 7\n",
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert str(rig.workspace.board_root("pc-01")).encode() in done.stdout


def test_reboot_asks_and_waits_for_another_boot(rig: BoardRig) -> None:
    boot_id = rig.file("nano-01", "/proc/sys/kernel/random/boot_id")
    before = boot_id.read_text()
    assert "Reboot 1: nano-01?" in rig.farm("boards", "reboot", "nano-01", status=1)
    assert boot_id.read_text() == before
    text = rig.farm("boards", "reboot", "nano-01", "--yes")
    assert boot_id.read_text() != before
    assert f"boot id {boot_id.read_text().strip()}" in text


def test_a_board_that_refuses_to_reboot_says_why(rig: BoardRig) -> None:
    before = rig.put_sudo("pc-01", REFUSING)
    try:
        text = rig.farm("boards", "reboot", "pc-01", "--yes", status=1)
    finally:
        rig.put_sudo("pc-01", before)
    assert "a password is required" in text
    assert "farm boards sudoers pc-01 --with-reboot" in text


def test_modes_are_listed_set_proven_and_put_back(rig: BoardRig) -> None:
    listed = by_board(rig.farm("modes", "list", "tx2-01", "pc-01", "--json"))
    before = listed["tx2-01"]["current"]["name"]
    assert listed["tx2-01"]["aliases"] == {"maxn": "MAXN", "maxq": "MAXQ", "maxp": before}
    assert listed["pc-01"]["aliases"] == dict.fromkeys(("maxn", "maxp", "maxq"), "default")
    table = rig.farm("modes", "list", "tx2-01")
    assert "current, maxp, default" in table

    text = rig.farm("modes", "set", "maxq", "tx2-01", "--clocks", "locked")
    assert "tx2-01: MAXQ, clocks locked: set and read back" in text
    assert rig.note("tx2-01.mode.json")["before"]["name"] == before  # type: ignore[index]
    (line,) = [line for line in rig.farm("modes", "show", "tx2-01").splitlines() if "MAXQ" in line]
    assert "locked" in line

    rig.farm("modes", "set", "45W", "tx2-01", status=1)  # changes nothing, so forgets nothing
    assert f"{before} again, clocks free" in rig.farm("modes", "restore")
    (shown,) = document(rig.farm("modes", "show", "tx2-01", "--json"))
    assert shown["current"]["name"] == before
    assert not shown["current"]["is_locked"]
    assert "nothing is remembered" in rig.farm("modes", "restore", "tx2-01", status=1)
    assert "nothing is remembered" in rig.farm("modes", "restore")


def test_a_mode_that_needs_a_reboot_is_reported_with_what_to_do(rig: BoardRig) -> None:
    (before,) = document(rig.farm("modes", "show", "orin-01", "--json"))
    text = rig.farm("modes", "set", "maxn", "orin-01", status=1)
    assert "reboot" in text
    assert "nvpmodel -m 0" in text
    (after,) = document(rig.farm("modes", "show", "orin-01", "--json"))
    assert after["current"] == before["current"]


def test_a_mode_that_a_board_has_not_or_may_not_set_is_refused(rig: BoardRig) -> None:
    text = rig.farm("modes", "set", "45W", "tx2-01", status=1)
    assert "MAXP_CORE_ALL" in text
    before = rig.put_sudo("tx2-01", REFUSING)
    try:
        assert "password" in rig.farm("modes", "set", "maxn", "tx2-01", status=1)
    finally:
        rig.put_sudo("tx2-01", before)
    rig.farm("modes", "set", "maxn", "off-01", status=3)


def test_clean_frees_and_tells(rig: BoardRig) -> None:
    text = rig.farm("boards", "clean", "pc-01", "off-01", status=1)
    assert "pc-01: 0.0 MB freed" in text
    assert "off-01: connect" in text


def test_enroll_shows_asks_and_writes(rig: BoardRig) -> None:
    known = rig.workspace.root / ".farm" / "sim" / "known_hosts"
    before = known.read_text()
    host = json.loads(rig.farm("boards", "list", "pc-01", "--json"))[0]["host"]
    known.write_text("".join(line for line in before.splitlines(True) if host not in line))
    try:
        assert "fail pc-01: host key" in rig.farm("boards", "doctor", "pc-01", status=1)
        text = rig.farm("boards", "enroll", "pc-01", "off-01", status=1)
        assert "SHA256:" in text
        assert "Are these the boards' own keys?" in text
        assert host not in known.read_text()
        assert "SHA256:" in rig.farm("boards", "enroll", "pc-01", "--yes")
        assert host in known.read_text()
        rig.farm("boards", "exec", "pc-01", "--", "true")
    finally:
        known.write_text(before)
