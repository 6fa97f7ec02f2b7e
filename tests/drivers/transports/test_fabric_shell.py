"""A board's shell in a terminal: a pty here, another one on a real sshd."""

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

import pytest

from farm.drivers.transports.fabric_shell import open_shell
from farm.drivers.transports.ssh_context import SshContext
from farm.errors import LinkLostError
from farm.testing.transport_rig import demand_error, eventually, soon
from tests.drivers.transports.fabric_rigs import fabric_sshd_rig, no_thread_is_left
from tests.drivers.transports.rigs import QUICK, SshdRig

pytestmark = pytest.mark.sshd


class Window:
    """The user's window: what stands in it, and its keyboard."""

    def __init__(self, rows: int = 30, columns: int = 101) -> None:
        self.master, self.slave = pty.openpty()
        self.seen = bytearray()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        asyncio.get_running_loop().add_reader(self.master, self._read)

    def _read(self) -> None:
        self.seen += os.read(self.master, 65536)

    def type(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self.master, data) :]

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def shows(self, text: str) -> None:
        async def is_there() -> bool:
            return text.encode() in self.seen

        await eventually(is_there, f"{text!r} in the window")

    @property
    def is_as_before(self) -> bool:
        return termios.tcgetattr(self.slave) == self.before

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.master)
        os.close(self.master)
        os.close(self.slave)


@contextmanager
def window() -> Iterator[Window]:
    made = Window()
    try:
        yield made
    finally:
        made.close()


def shell(rig: SshdRig, at: Window) -> "asyncio.Task[int]":
    return asyncio.create_task(
        open_shell(rig.board, SshContext(QUICK), stdin=at.slave, stdout=at.slave)
    )


async def test_shell_has_a_terminal_of_the_windows_size_and_follows_it() -> None:
    async with fabric_sshd_rig() as rig:
        with window() as user:
            talking = shell(rig, user)
            user.type("echo size: $(stty size); tty | sed s,^,tty:,\n")
            await user.shows("size: 30 101")
            await user.shows("tty:/dev/")
            assert not user.is_as_before
            user.resize(40, 77)

            async def has_followed() -> bool:
                user.type("echo now: $(stty size)\n")
                await asyncio.sleep(0.1)
                return b"now: 40 77" in user.seen

            await eventually(has_followed, "the new size on the board")
            user.type("exit 7\n")
            assert await soon(talking) == 7
            assert user.is_as_before
        await no_thread_is_left()


async def test_control_c_goes_to_the_board() -> None:
    """Raw mode: the keys are the board's, not this process's."""
    async with fabric_sshd_rig() as rig:
        with window() as user:
            talking = shell(rig, user)
            user.type("echo begin; sleep 600 || echo cut $?\n")
            await user.shows("begin\r\n")

            async def sleeps() -> bool:
                return any("sleep" in _command(pid) for pid in rig.server.left_behind())

            await eventually(sleeps, "a running sleep")
            user.type("\x03")
            user.type("echo went on; exit 3\n")
            assert await soon(talking) == 3
            assert b"went on\r\n" in user.seen


async def test_much_output_and_much_input() -> None:
    """More than what buffers on the way hold."""
    async with fabric_sshd_rig() as rig:
        with window() as user:
            talking = shell(rig, user)
            user.type("head -c 3000000 /dev/zero | tr '\\0' '\\170'; echo en''d\n")  # x
            await user.shows("xend\r\n")
            assert user.seen.count(b"x") >= 3_000_000
            user.type("stty raw -echo; echo rea''dy; head -c 300000 | wc -c; stty sane\n")
            await user.shows("ready")
            await soon(asyncio.to_thread(user.type, "y" * 300_000))
            await user.shows("300000")
            user.type("exit\n")
            assert await soon(talking) == 0


async def test_link_cut_under_a_shell_gives_the_terminal_back() -> None:
    async with fabric_sshd_rig() as rig:
        with window() as user:
            talking = shell(rig, user)
            user.type("echo rea''dy\n")
            await user.shows("ready\r\n")
            rig.server.signal_sessions(SIGKILL)
            await demand_error(LinkLostError, talking)
            assert user.is_as_before
        await no_thread_is_left()


async def test_frozen_board_under_a_shell() -> None:
    async with fabric_sshd_rig() as rig:
        with window() as user:
            talking = shell(rig, user)
            user.type("echo rea''dy\n")
            await user.shows("ready\r\n")
            rig.server.signal_sessions(SIGSTOP)
            try:
                error = await demand_error(LinkLostError, talking)
                assert "silent" in error.seen
                assert user.is_as_before
            finally:
                rig.server.signal_sessions(SIGCONT)


async def test_cancelled_shell_gives_the_terminal_back() -> None:
    async with fabric_sshd_rig() as rig:
        with window() as user:
            talking = shell(rig, user)
            user.type("echo rea''dy\n")
            await user.shows("ready\r\n")
            talking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await talking
            assert user.is_as_before
        await no_thread_is_left()


async def test_without_a_terminal_a_script_is_run(tmp_path: Path) -> None:
    """No pty; both outputs of the board go to stdout, the end of the script ends the shell."""
    script, output = tmp_path / "script", tmp_path / "output"
    script.write_text("tty; echo to-err >&2\nexit 4\n")
    async with fabric_sshd_rig() as rig:
        with script.open("rb") as stdin, output.open("wb") as stdout:
            status = await soon(
                open_shell(
                    rig.board, SshContext(QUICK), stdin=stdin.fileno(), stdout=stdout.fileno()
                )
            )
    assert status == 4
    assert "not a tty" in output.read_text()
    assert "to-err" in output.read_text()


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
