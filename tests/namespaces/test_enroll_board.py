"""`farm boards enroll NAME USER@HOST`, on boards that are machines with an sshd and a sudo."""

import asyncio
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from farm.errors import AuthError, ConfigError, HostKeyError, TransferError
from farm.model.board import Board
from farm.pipeline.boards.enroll import PASSWORD_TRIES, enroll_board
from farm.pipeline.boards.enroll_entry import Wanted
from farm.pipeline.lab import open_lab
from tests.servers.namespace_board import USER
from tests.servers.namespaces import BoardOptions, NamespaceBoard

pytest.importorskip("fabric")

PASSWORD = "correct horse"
OPTIONS = BoardOptions(
    sshd_extra=("PasswordAuthentication yes", "MaxAuthTries 20"),
    sudoers=f"{USER} ALL=(ALL) ALL\n",
)
INVENTORY = """\
# the lab of floor 3
defaults: {user: nobody, simulation: {}}   # for the demo
boards:
    old-01: {profile: generic-linux, host: 127.0.9.1}   # in the cellar

# no limits
limits: {login_timeout_s: 20, starts_per_s: 1000}
"""
MakeBoard = Callable[[BoardOptions], NamespaceBoard]


@dataclass
class Answers:
    """Says yes, but to what begins with one of `noes`."""

    passwords: list[str] = field(default_factory=list)
    noes: tuple[str, ...] = ()
    told: list[str] = field(default_factory=list)
    asked: int = 0

    def tell(self, text: str) -> None:
        self.told.append(text)

    def confirm(self, question: str, *, by_default: bool) -> bool:
        del by_default
        return not question.startswith(self.noes or ("\0",))

    def password(self, what: str) -> str:
        self.asked += 1
        self.told.append(f"asked: {what}")
        return self.passwords.pop(0)

    @property
    def text(self) -> str:
        return "\n".join(self.told)


@pytest.fixture
def board(make_board: MakeBoard) -> NamespaceBoard:
    """A board that knows a password and no key of ours; its sudo wants the password."""
    made = make_board(OPTIONS)
    hashed = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"],
        input=PASSWORD.encode(),
        capture_output=True,
        check=True,
    ).stdout.decode()
    script = f'usermod -p "$1" {USER} && rm /home/{USER}/.ssh/authorized_keys'
    script += " && mv /etc/sudoers.d/jet /etc/sudoers.d/10-jet"  # the last rule wins

    made.console(["sh", "-c", script, "sh", hashed.strip()])
    return made


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; the user has no keys."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "inventory.yaml").write_text(INVENTORY)
    return folder


def take_in(root: Path, board: NamespaceBoard, dialog: Answers, **more: object) -> Board:
    wanted = Wanted(name="tx2-01", user=USER, host=board.address, **more)  # type: ignore[arg-type]
    return asyncio.run(enroll_board(open_lab(root), wanted, dialog))


@pytest.mark.timeout(240)
def test_a_board_with_a_password_gets_all_and_again_nothing(
    root: Path, board: NamespaceBoard
) -> None:
    fingerprint = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(board.folder / "host_key.pub")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[1]
    dialog = Answers(["wrong", PASSWORD])
    take_in(root, board, dialog, fingerprint=fingerprint)
    assert dialog.asked == 2, dialog.text  # and not again for sudo
    assert f"host key: ssh-ed25519 {fingerprint}" in dialog.text
    entry = next(one for one in open_lab(root).inventory.boards if one.name == "tx2-01")
    assert (entry.profile, entry.user, entry.simulation) == ("jetson-tx2", USER, None)
    assert entry.identity_file is not None
    assert entry.known_hosts is not None
    for path in (entry.identity_file, entry.known_hosts):
        assert path.is_relative_to(root)
        assert path.stat().st_mode & 0o777 == 0o600
    text = (root / "inventory.yaml").read_text()
    first, entry_lines, last = text.partition("    tx2-01:\n")
    assert entry_lines
    assert INVENTORY.startswith(first)
    assert text.endswith(INVENTORY.removeprefix(first))
    assert last.startswith("      profile: jetson-tx2\n")
    assert board.console(["stat", "-c", "%a %u:%g", "/etc/sudoers.d/farm"]) == b"440 0:0\n"
    note = json.loads((root / "results/boards/tx2-01.json").read_text())
    assert note["sudo"]["state"] == "free"
    for path in root.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()

    again = Answers()
    take_in(root, board, again)
    assert again.asked == 0
    assert (root / "inventory.yaml").read_text() == text
    keys = board.read(f"/home/{USER}/.ssh/authorized_keys")
    assert keys.count(b"\n") == 1

    board.new_host_key()
    with pytest.raises(HostKeyError, match="another host key"):
        take_in(root, board, Answers())


@pytest.mark.timeout(240)
def test_nothing_is_trusted_or_written_that_was_not_confirmed(
    root: Path, board: NamespaceBoard
) -> None:
    with pytest.raises(HostKeyError, match="not accepted"):
        take_in(root, board, Answers(noes=("Is this the board's own key",)))
    with pytest.raises(HostKeyError, match="not SHA256:other"):
        take_in(root, board, Answers(), fingerprint="SHA256:other")
    dry = Answers()
    take_in(root, board, dry, profile="jetson-tx2", is_dry=True)
    assert "Cmnd_Alias" in dry.text
    assert "tx2-01:" in dry.text
    assert [path.name for path in root.rglob("*")] == ["inventory.yaml"]
    dialog = Answers(["wrong"] * 9)
    with pytest.raises(AuthError):
        take_in(root, board, dialog)
    assert dialog.asked == PASSWORD_TRIES


@pytest.mark.timeout(240)
def test_a_failure_in_the_middle_can_be_gone_on_from(root: Path, board: NamespaceBoard) -> None:
    board.console(["sh", "-c", f"mkdir -p /home/{USER}/.ssh/authorized_keys"])
    with pytest.raises(TransferError, match="authorized_keys"):
        take_in(root, board, Answers([PASSWORD]))
    board.console(["rmdir", f"/home/{USER}/.ssh/authorized_keys"])
    board.console(["chmod", "777", f"/home/{USER}"])  # sshd's StrictModes refuses the key then
    refused = Answers([PASSWORD])
    with pytest.raises(AuthError, match="is refused"):
        take_in(root, board, refused)
    assert "it is the one that" in refused.text
    board.console(["chmod", "755", f"/home/{USER}"])
    board.console(["rm", "/etc/sudoers.d/10-jet"])  # no sudo at all
    with pytest.raises(AuthError, match="sudoers file was not installed"):
        take_in(root, board, Answers([PASSWORD]))
    assert not board.exists("/etc/sudoers.d/farm")
    taken = take_in(root, board, Answers(), has_sudoers=False)
    assert taken.profile == "jetson-tx2"
    wanted = Wanted(name="other", user=USER, host=board.address)
    with pytest.raises(ConfigError, match="is 'tx2-01' already"):
        asyncio.run(enroll_board(open_lab(root), wanted, Answers()))


@pytest.mark.timeout(240)
def test_the_command_asks_on_the_terminal(root: Path, board: NamespaceBoard) -> None:
    controller, terminal = pty.openpty()
    farm = [sys.executable, "-m", "farm", "boards", "enroll", "-w", str(root)]
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *farm, "tx2-01", f"{USER}@{board.address}"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    seen = ""
    answers = [
        ("own key", "y\n"),
        ("'s password on", f"{PASSWORD}\n"),
        ("the profile jetson-tx2", "\n"),
        ("Install it", "n\n"),
    ]
    give_up_s = time.monotonic() + 150
    try:
        while time.monotonic() < give_up_s:
            if not select.select([controller], [], [], 1.0)[0]:
                continue
            try:
                seen += os.read(controller, 4096).decode()
            except OSError:  # the other end is closed
                break
            if answers and answers[0][0] in seen and seen.endswith(": "):
                os.write(controller, answers.pop(0)[1].encode())
        assert not answers, seen
    finally:
        process.kill()
        process.wait(30)
        os.close(controller)
    assert not answers, seen
    assert PASSWORD not in seen
    assert "left out" in seen
    assert "tx2-01" in (root / "inventory.yaml").read_text()
