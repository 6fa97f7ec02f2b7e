r"""A command's output between two markers.

Start-up files of login shells may print anything, and fish exits with 0 after a syntax error.
So each command runs as::

    printf '\036TOKENb%s\n' $$; ...the same to stderr...; (exec ARGV); e=$?
    printf '\036TOKENe%s\n' $e; exit $e

What comes before the first marker is noise; an exit status counts only with the second one.
TOKEN is random for each command.
"""

import secrets
from collections.abc import Sequence

from farm.drivers.transports.quoting import wrap_in_sh, write_words

NOISE_LIMIT = 1024 * 1024
"""Bytes of start-up noise after which a board is taken to print without end. Assumed."""

_FATAL_SIGNALS = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 24, 25, 31})
"""Signals that end a process by default and are met in practice (signal(7), Linux)."""


def new_token() -> str:
    """A word that no output contains by chance."""
    return secrets.token_hex(8)


def frame_command(argv: Sequence[str], token: str) -> str:
    """The command line for the login shell. Raises ValueError for what cannot be sent."""
    assignments, words = write_words(argv)
    # the subshell makes `exec` possible, which takes no word for a shell builtin
    return wrap_in_sh(
        f"printf '\\036{token}b%s\\n' $$;printf '\\036{token}b%s\\n' $$ >&2;"
        f"{assignments}(exec {words});e=$?;printf '\\036{token}e%s\\n' $e;exit $e"
    )


def status_from_shell(status: int) -> int:
    """Minus the signal's number if the shell says 128 + a fatal signal, else the status.

    A shell cannot tell a program killed by SIGTERM from one that exits with 143; programs
    that do the latter mean the former.
    """
    return 128 - status if status - 128 in _FATAL_SIGNALS else status


class MarkedOutput:
    """Takes chunks of one output stream; gives back what lies between the markers.

    Attributes:
        pid: of the sh that runs the command on the board, once the first marker came.
        status: the command's exit status by the second marker, or None.
        noise: what came before the first marker.
    """

    __slots__ = ("_begin", "_end", "_held", "noise", "pid", "status")

    def __init__(self, token: str) -> None:
        self._begin = b"\x1e" + token.encode() + b"b"
        self._end = b"\x1e" + token.encode() + b"e"
        self._held = b""
        self.noise = b""
        self.pid: int | None = None
        self.status: int | None = None

    @property
    def is_endless_noise(self) -> bool:
        """True when more came before the first marker than start-up files may print."""
        return self.pid is None and len(self.noise) > NOISE_LIMIT

    def feed(self, data: bytes) -> bytes:
        """The part of the output that is now known to be the command's."""
        if self.status is not None:
            return b""  # of a process that the command left behind
        if self.pid is None:
            data = self._find_begin(data)
        return self._find_end(data) if data else b""

    def _find_begin(self, data: bytes) -> bytes:
        self.noise += data
        at = self.noise.find(self._begin)
        if at < 0:
            return b""
        number, newline, rest = self.noise[at + len(self._begin) :].partition(b"\n")
        if not newline:
            return b""
        self.pid = int(number) if number.isdigit() else 0
        self.noise = self.noise[:at]
        return rest

    def _find_end(self, data: bytes) -> bytes:
        if self._held:
            data, self._held = self._held + data, b""
        at = data.find(self._end)
        if at < 0:
            # hold back only what may be the beginning of the marker, so that lines are not late
            at = data.rfind(b"\x1e", max(0, len(data) - len(self._end)))
            if at < 0 or not self._end.startswith(data[at:]):
                return data
        else:
            number, newline, _ = data[at + len(self._end) :].partition(b"\n")
            if newline:
                self.status = int(number) if number.isdigit() else 255
                return data[:at]
        self._held = data[at:]
        return data[:at]
