"""A login shell of a board in the user's terminal, by fabric: for hands-on work, never for runs.

Written here rather than with fabric's own `Connection.shell`, which takes typed characters one in
10 ms and leaves some keys to the host's terminal.
"""

import asyncio
import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import paramiko

from farm.drivers.transports.fabric_connection import FabricConnection
from farm.drivers.transports.fabric_dial import dial
from farm.drivers.transports.orderly_packetizer import speak_for
from farm.drivers.transports.paramiko_errors import PARAMIKO_FAULTS, explain_loss
from farm.drivers.transports.ssh_context import SshContext
from farm.model.board import Board

LOOK_S = 0.25
"""How often the size of the terminal's window is looked at."""

FULL_S = 0.02
"""How often the board is asked whether it takes more of what was typed."""

CLOSE_TIMEOUT_S = 5.0
_CHUNK = 64 * 1024
_KILLED = 255  # what ssh says, too, when the board tells no exit status


async def open_shell(
    board: Board,
    context: SshContext,
    *,
    password: str | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
) -> int:
    """Connect the terminal with a login shell on the board until that ends.

    Where stdin is no terminal, the shell gets no pty and what stdin has. The terminal is as it
    was afterwards, whatever happened.

    Args:
        board: how to reach it.
        context: what the process's connections share.
        password: the login password itself, where the board has no key.
        stdin: file descriptor; by default the process's own.
        stdout: the same.

    Returns:
        The shell's exit status; 255 if it was killed by a signal.

    Raises:
        ConnectError, AuthError, HostKeyError, LinkLostError, TransportError.
    """
    connection = await dial(board, context, password)
    terminal = Terminal(
        sys.stdin.fileno() if stdin is None else stdin,
        sys.stdout.fileno() if stdout is None else stdout,
    )
    talking = connection.threads.start("shell", partial(terminal.talk, connection))
    try:
        return await asyncio.shield(talking)
    except PARAMIKO_FAULTS as exc:
        is_alive = not connection.is_lost
        raise explain_loss(exc, board.name, "shell", is_alive=is_alive) from exc
    finally:
        connection.close()  # also ends `talk`, which gives the terminal back
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await connection.wait_closed()


class Terminal:
    """The user's side of a shell. Methods block.

    Args:
        stdin: file descriptor of a terminal, or of anything that can be polled.
        stdout: file descriptor.
    """

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._is_terminal = os.isatty(stdin)
        self._size = (0, 0)

    def talk(self, connection: FabricConnection) -> int:
        """Open a shell and pass on both ways until it ends; its status.

        Raises PARAMIKO_FAULTS, also when the link dies.
        """
        channel = connection.open_channel()
        speak_for(channel)
        try:
            if self._is_terminal:
                self._size = self._look()
                columns, lines = self._size
                channel.get_pty(os.environ.get("TERM", "vt100"), columns, lines)
            channel.invoke_shell()
            with self._raw():
                self._pass_on(channel)
            if channel.exit_status >= 0:
                return channel.exit_status
            if connection.is_lost or not channel.eof_received:
                raise EOFError(str(connection.reason or ""))
            return _KILLED
        finally:
            with suppress(*PARAMIKO_FAULTS):
                channel.close()

    def _look(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._stdin)
        except OSError:  # the window was closed
            return shutil.get_terminal_size()
        return size.columns or 80, size.lines or 24

    @contextmanager
    def _raw(self) -> Iterator[None]:
        if not self._is_terminal:
            yield
            return
        before = termios.tcgetattr(self._stdin)
        try:
            tty.setraw(self._stdin, termios.TCSADRAIN)  # keeps what was typed already
            yield
        finally:
            with suppress(termios.error):  # the window was closed
                termios.tcsetattr(self._stdin, termios.TCSADRAIN, before)

    def _pass_on(self, channel: paramiko.Channel) -> None:
        typed, is_open = b"", True
        while True:
            # nothing more is read while the board takes no more: its output must go on
            listens = is_open and not typed
            watched = [channel.fileno(), *([self._stdin] if listens else [])]
            ready, _, _ = select.select(watched, [], [], FULL_S if typed else LOOK_S)
            is_over = channel.closed or bool(channel.eof_received)
            while channel.recv_ready() or channel.recv_stderr_ready():
                self._show(channel)
            # the status comes behind the end of the output, or before it
            if is_over and (channel.closed or channel.status_event.wait(LOOK_S)):
                return
            if self._stdin in ready:
                typed = self._read()
                is_open = bool(typed)
                if not is_open:
                    channel.shutdown_write()
            if typed and channel.send_ready():
                typed = typed[channel.send(typed) :]
            self._follow_size(channel)

    def _read(self) -> bytes:
        try:
            return os.read(self._stdin, _CHUNK)
        except OSError:  # the window was closed
            return b""

    def _show(self, channel: paramiko.Channel) -> None:
        for is_ready, receive in (
            (channel.recv_ready, channel.recv),
            (channel.recv_stderr_ready, channel.recv_stderr),
        ):
            data = receive(_CHUNK) if is_ready() else b""
            with suppress(OSError):  # the window was closed
                while data:
                    data = data[os.write(self._stdout, data) :]

    def _follow_size(self, channel: paramiko.Channel) -> None:
        if not self._is_terminal or channel.closed:
            return
        size = self._look()
        if size != self._size:
            self._size = size
            channel.resize_pty(*size)
