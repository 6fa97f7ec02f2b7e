from pathlib import Path

import pytest

from farm.drivers.board_facts.sudo import (
    SudoComplaint,
    complaint_line,
    parse_sudo_listing,
    sudo_complaint,
)
from tests.recording_cases import cases, meant, printed


@pytest.mark.parametrize("path", cases("sudo", "list_"))
def test_what_real_sudos_list_is_understood(path: Path) -> None:
    listing, expected = parse_sudo_listing(printed(path)), meant(path)
    assert listing.defaults == set(expected["defaults"])
    told = {text: listing.permission(text.split()) for text in expected["permissions"]}
    assert told == expected["permissions"]


@pytest.mark.parametrize("path", cases("sudo", "refused_"))
def test_complaints_are_told_by_their_words(path: Path) -> None:
    text, expected = printed(path), meant(path)
    complaint = sudo_complaint(expected["exit_status"], text)
    assert complaint == expected["complaint"]
    if "line" in expected:
        assert complaint_line(text) == expected["line"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sudo: Ein Passwort ist notwendig", SudoComplaint.OTHER),
        ("sh: 1: sudo: not found", SudoComplaint.NO_SUDO),
        ("nvidia is not in the sudoers file.", SudoComplaint.NOT_ALLOWED),
        (
            "Sorry, user jet is not allowed to execute '/x' as root on b.",
            SudoComplaint.NOT_ALLOWED,
        ),
        ("sudo: effective uid is not 0, is sudo installed setuid root?", SudoComplaint.CANNOT),
        ("sudo: invalid option -- 'l'", SudoComplaint.UNKNOWN_OPTION),
        ("make: cc: command not found", None),
        ("", None),
    ],
)
def test_other_words(text: str, complaint: SudoComplaint | None) -> None:
    assert sudo_complaint(1, text) is complaint
    assert sudo_complaint(0, text) is None


def test_the_last_rule_that_fits_decides_and_other_users_rules_do_not_count() -> None:
    listing = parse_sudo_listing(
        "User a may run the following commands on b:\n"
        "    (ALL) NOPASSWD: ALL, !/sbin/reboot\n"
        "    (www) NOPASSWD: /usr/sbin/nvpmodel\n"
        "    (root) PASSWD: SETENV: /opt/tools/\n"
        "    (root) NOPASSWD: sha256:abc /usr/bin/say a\\, b\n"
    )
    assert listing.permission(["/usr/sbin/nvpmodel", "-m", "0"]) == "free"
    assert listing.permission(["/sbin/reboot"]) == "no"
    assert listing.permission(["/usr/sbin/reboot"]) == "no"
    assert listing.permission(["/opt/tools/x"]) == "password"
    assert parse_sudo_listing("nonsense").permission(["/bin/sh"]) == "no"
