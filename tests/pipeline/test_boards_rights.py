"""What a board lets farm do as root: the file that asks for it, and sudo's answers."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from farm.drivers.board_facts.sudo import parse_sudo_listing
from farm.errors import CommandTimeoutError, ConfigError, FarmError
from farm.pipeline.boards.needs import FAN, KERNEL_LOG, REBOOT, root_commands
from farm.pipeline.boards.rights import SudoRights, ask_rights
from farm.pipeline.boards.sudoers import check_sudoers, sudoers_text
from farm.pipeline.lab import Lab, open_lab
from tests.recording_cases import RECORDINGS
from tests.servers.memory_board import MemoryBoard, Told

INVENTORY = """\
boards:
  tx2-[01..02]: {profile: jetson-tx2, host: "192.0.2.{n:d}", user: nvidia}
  nano-01: {profile: jetson-nano, host: 192.0.2.9, user: root}
  pc-01: {profile: generic-linux, host: 192.0.2.8, user: farm}
  pi-01: {profile: raspberry-pi-4, host: 192.0.2.7, user: pi}
  gpu-01: {profile: nvidia-gpu, host: 192.0.2.6, user: farm}
"""
LISTS = RECORDINGS / "linux" / "sudo"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    return open_lab(tmp_path)


class Sudo(MemoryBoard):
    """Answers ``sudo -n ...``: argv after ``-n`` -> (exit status, stdout, stderr)."""

    def __init__(self, answer: Callable[[list[str]], tuple[int, str, str]]) -> None:
        self._answer = answer
        self.files = {}
        self.ran: list[list[str]] = []

    def answer(self, argv: Sequence[str], stdin: bytes, *, needs_root: bool) -> Told:
        if argv[0] == "id":
            return Told(stdout=b"1000\n")
        assert list(argv[:2]) == ["sudo", "-n"], "nothing may ask for a password"
        words = list(argv[2:])
        if words[0] != "-l":
            self.ran.append(words)
        status, out, err = self._answer(words)
        return Told(status, out.encode(), err.encode())


async def ask(lab: Lab, answer: Callable[[list[str]], tuple[int, str, str]]) -> SudoRights:
    return await ask_rights(Sudo(answer), root_commands(lab.profiles["jetson-tx2"]))


def listing(name: str) -> Callable[[list[str]], tuple[int, str, str]]:
    text = (LISTS / f"list_{name}.txt").read_text()

    def answer(words: list[str]) -> tuple[int, str, str]:
        folder = "/usr/sbin/" if words[-1:] != ["-l"] and "nvpmodel" in words else "/usr/bin/"
        return 0, text if words == ["-l"] else folder + " ".join(words[2:]), ""

    return answer


async def test_the_generated_file_gives_all_that_is_needed(lab: Lab) -> None:
    rights = await ask(lab, listing("generated"))
    assert rights.state == "free"
    assert len(rights.commands) == 8
    assert rights.defaults == ("use_pty",)


async def test_sudos_yes_to_one_command_is_not_believed_where_a_password_is_needed(
    lab: Lab,
) -> None:
    rights = await ask(lab, listing("mixed"))
    assert rights.state == "password"
    assert all("jetson_clocks" in command for command in rights.of("password"))
    assert all("nvpmodel" in command for command in rights.of("free"))


async def test_a_command_that_sudo_does_not_find_is_missing(lab: Lab) -> None:
    def answer(words: list[str]) -> tuple[int, str, str]:
        if words == ["-l"]:
            return listing("everything")(words)
        return 1, "", f"sudo: {words[2]}: command not found"

    assert (await ask(lab, answer)).state == "missing"


async def test_a_sudo_that_asks_for_a_terminal_is_told_and_nothing_is_run(lab: Lab) -> None:
    text = (LISTS / "refused_requiretty.txt").read_text()
    rights = await ask(lab, lambda _: (1, "", text))
    assert (rights.state, rights.complaint) == ("password", "needs_tty")
    assert rights.said == text.strip()
    assert rights.commands == ()


async def test_a_message_in_another_language_is_shown(lab: Lab) -> None:
    rights = await ask(lab, lambda _: (1, "", "sudo: Ein Passwort ist notwendig\n"))
    assert (rights.state, rights.complaint) == ("no", "other")
    assert rights.said == "sudo: Ein Passwort ist notwendig"


async def test_a_sudo_that_hangs_is_no_hang_of_ours(lab: Lab) -> None:
    def answer(_: list[str]) -> tuple[int, str, str]:
        raise CommandTimeoutError("sudo", "no end")

    rights = await ask(lab, answer)
    assert rights.state == "no"
    assert "no answer in" in rights.said


async def test_a_sudo_without_lists_is_tried_with_what_changes_nothing(lab: Lab) -> None:
    def answer(words: list[str]) -> tuple[int, str, str]:
        return (1, "", "sudo: invalid option -- 'l'") if words[0] == "-l" else (0, "", "")

    sudo = Sudo(answer)
    rights = await ask_rights(sudo, root_commands(lab.profiles["jetson-tx2"]))
    assert rights.state == "free"
    assert len(rights.of("unknown")) == 6
    assert sudo.ran == [
        ["--", "nvpmodel", "-q", "--verbose"],
        ["--", "jetson_clocks", "--show"],
    ]


def test_the_file_has_what_each_board_needs_and_no_star(lab: Lab) -> None:
    text = sudoers_text(lab, lab.inventory.boards)
    rules = [line for line in text.splitlines() if not line.startswith("#")]
    assert "# tx2-01, tx2-02\n" in text
    assert "nano-01: logged in as root" in text
    assert "pc-01: nothing runs as root there" in text
    assert "nvidia ALL = (root) NOPASSWD: FARM_1" in rules
    assert not any("*" in rule or "ALL, " in rule for rule in rules)
    assert not any(word in text for word in ("reboot", "pwm-fan", "dmesg"))
    assert "Defaults:nvidia !requiretty" in rules
    with_reboot = sudoers_text(lab, lab.inventory.boards, with_reboot=True)
    assert all(command.path in with_reboot for command in REBOOT)
    assert "farm ALL = (root) NOPASSWD: FARM_3" in with_reboot


@pytest.mark.parametrize("profile", ["jetson-tx2", "raspberry-pi-4", "nvidia-gpu"])
def test_every_controllers_commands_let_their_own_sample_through(lab: Lab, profile: str) -> None:
    commands = root_commands(
        lab.profiles[profile], with_reboot=True, with_fan=True, with_kernel_log=True
    )
    assert len(commands) > len(REBOOT) + len(KERNEL_LOG)
    assert set(FAN) <= set(commands) or profile != "jetson-tx2"
    rules = ", ".join(command.text for command in commands)
    listed = parse_sudo_listing(
        f"User a may run the following commands on b:\n    (root) NOPASSWD: {rules}\n"
    )
    for command in commands:
        argv = [command.path, *command.sample[1:]]
        assert listed.permission(argv) == "free", command
        assert listed.permission([*argv, "-f", "/tmp/own"]) == "no", command


def test_visudo_accepts_it_and_refuses_nonsense(lab: Lab) -> None:
    if shutil.which("visudo", path="/usr/sbin:/sbin:/usr/bin") is None:
        pytest.skip("no visudo on this machine")
    for extras in ({}, {"with_reboot": True, "with_fan": True, "with_kernel_log": True}):
        assert check_sudoers(sudoers_text(lab, lab.inventory.boards, **extras))
    with pytest.raises(FarmError, match="visudo does not accept"):
        check_sudoers("nvidia ALL = (root NOPASSWD: /x\n")


def test_a_login_name_that_sudoers_would_read_otherwise_is_refused(lab: Lab) -> None:
    board = lab.inventory.boards[0].model_copy(update={"user": "ALL ALL=(ALL) ALL #"})
    with pytest.raises(ConfigError, match="no login name"):
        sudoers_text(lab, [board])
