"""The error tree. Each class says whether trying again can help, and its exit code.

FarmError                          exit 1
├ ConfigError                      exit 2   a file or an option is wrong: file, line, column
├ DriverError                      exit 2   no such driver, or it does not load
├ RunHeldError                     exit 2   another farm process works on this run or board
├ NoBoardReachedError              exit 3   no board of the selection could be reached
├ InterruptedRunError              exit 130 stopped by the user; the run can be resumed
├ BoardError(step, seen, board, remedy)
│ ├ TransportError
│ │ ├ ConnectError                 retryable   refused, unreachable, no answer in time
│ │ ├ LinkLostError                retryable   the connection died under an operation
│ │ ├ CommandTimeoutError          retryable   the board did not finish in time
│ │ ├ AuthError                    never       the board refused the login
│ │ └ HostKeyError                 never       not the key that was enrolled
│ ├ AgentError                     the agent cannot run, or said no
│ │ └ LeaseHeldError               never       another run holds the board
│ ├ TransferError                  retryable   what arrived is not what was sent; disk full
│ ├ PowerModeError                 set, but not what was read back
│ │ ├ UnsupportedPowerModeError    the board has no such mode: a result in itself
│ │ └ RebootNeededError            the board changes into the mode only by a reboot
│ ├ MeterError                     retryable   no samples, refused, not a meter
│ ├ PayloadError                   it ran and said no, or its output does not parse
│ └ UnfitBoardError                it fails everything, also what others of its type pass
├ NotifyError                      a message to people could not be sent; harms no run
├ StoreError                       a store that cannot be read or written
│ ├ StoreAwayError                 not now, but waiting may help: restarting, locked, cut off
│ │ └ StoreFullError               no room on the disk of this host
│ └ StoreVersionError              made by a newer farm, or damaged: never touched
└ AnalysisError                    data that does not support the question asked
"""

from typing import ClassVar, Literal

Culprit = Literal["link", "agent", "meter", "trial", "people"]
"""Who or what has to be helped, by which `farm.execution.recovery` picks its steps: the ``link``
to the board or the whole board, the ``agent`` on a board that answers, its ``meter``; the
``trial`` (its mode, its payload: no help for the board), or ``people`` (keys, a foreign lease)."""


class FarmError(Exception):
    """Anything that farm reports to its user rather than crashing on."""

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1


class ConfigError(FarmError):
    """A file or an option is wrong.

    Args:
        message: what is wrong and what is allowed.
        file: the file's path as the user gave it, or "".
        line: 1-based line, 0 if unknown.
        column: 1-based column, 0 if unknown.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, file: str = "", line: int = 0, column: int = 0) -> None:
        self.message, self.file, self.line, self.column = message, file, line, column
        where = file + (f":{line}:{column}" if line else "")
        super().__init__(f"{where}: {message}" if where else message)


class DriverError(FarmError):
    """No such driver, or it does not load (an optional library is missing)."""

    exit_code: ClassVar[int] = 2


class RunHeldError(FarmError):
    """Another farm process works on this run."""

    exit_code: ClassVar[int] = 2


class NoBoardReachedError(FarmError):
    """No board of the selection could be reached."""

    exit_code: ClassVar[int] = 3


class InterruptedRunError(FarmError):
    """The user stopped the run; ``farm resume`` continues it."""

    exit_code: ClassVar[int] = 130


class BoardError(FarmError):
    """Something went wrong on or on the way to one board.

    Args:
        step: what was being done, e.g. ``"connect"``.
        seen: what was observed, as text.
        board: the board's name; a driver that does not know it leaves "" and
            the session fills it in with `named`.
        remedy: what the user can do next.
    """

    culprit: ClassVar[Culprit] = "people"

    def __init__(self, step: str, seen: str, *, board: str = "", remedy: str = "") -> None:
        self.step, self.seen, self.board, self.remedy = step, seen, board, remedy
        super().__init__(step, seen)

    def __str__(self) -> str:
        head = f"{self.board}: {self.step}" if self.board else self.step
        tail = f". {self.remedy}" if self.remedy else ""
        return f"{head}: {self.seen}{tail}"

    def named(self, board: str) -> "BoardError":
        """The same error with the board's name filled in, if it had none."""
        self.board = self.board or board
        return self


class TransportError(BoardError):
    """The link to the board, not the board's answer, is at fault."""


class ConnectError(TransportError):
    """Refused, unreachable, or no SSH answer in time."""

    retryable: ClassVar[bool] = True
    culprit: ClassVar[Culprit] = "link"


class LinkLostError(TransportError):
    """The connection died under an operation; whether it took effect is unknown."""

    retryable: ClassVar[bool] = True
    culprit: ClassVar[Culprit] = "link"


class CommandTimeoutError(TransportError):
    """The operation did not finish in its time limit; the link may be alive."""

    retryable: ClassVar[bool] = True
    culprit: ClassVar[Culprit] = "link"


class AuthError(TransportError):
    """The board refused the login. Never retried: repeated tries get us banned."""


class HostKeyError(TransportError):
    """The board's host key is unknown or not the one that was enrolled."""


class AgentError(BoardError):
    """The board-side agent cannot be started, or it refused a request."""

    culprit: ClassVar[Culprit] = "agent"


class LeaseHeldError(AgentError):
    """Another run holds the board."""

    culprit: ClassVar[Culprit] = "people"


class BoardRestoringError(LeaseHeldError):
    """The board puts itself back right now, after its host vanished: free in a moment."""

    retryable: ClassVar[bool] = True
    culprit: ClassVar[Culprit] = "people"


class TransferError(BoardError):
    """What arrived is not what was sent, or there was no room for it."""

    retryable: ClassVar[bool] = True
    culprit: ClassVar[Culprit] = "agent"


class PowerModeError(BoardError):
    """A power mode was set, but something else was read back."""

    culprit: ClassVar[Culprit] = "trial"


class UnsupportedPowerModeError(PowerModeError):
    """The board has no such power mode: a result in itself, not a fault."""


class RebootNeededError(PowerModeError):
    """The board changes into the mode only by a reboot; nothing was changed yet.

    Args:
        mode: the mode's name on the board.
        step, seen, board, remedy: as for every BoardError.
    """

    def __init__(
        self, step: str, seen: str, *, mode: str = "", board: str = "", remedy: str = ""
    ) -> None:
        self.mode = mode
        super().__init__(step, seen, board=board, remedy=remedy)


class MeterError(BoardError):
    """The meter gives no usable readings."""

    retryable: ClassVar[bool] = True
    culprit: ClassVar[Culprit] = "meter"


class PayloadError(BoardError):
    """The payload ran and said no, or its output does not parse."""

    culprit: ClassVar[Culprit] = "trial"


class UnfitBoardError(BoardError):
    """The board is lost under everything, or fails what others of its type pass."""


class NotifyError(FarmError):
    """A message to people could not be sent. Its text tells no secret."""


class StoreError(FarmError):
    """The store cannot be read or written."""


class StoreAwayError(StoreError):
    """The store cannot be read or written for now; waiting may help."""


class StoreFullError(StoreAwayError):
    """The disk of the results has no room."""


class StoreVersionError(StoreError):
    """The store is damaged or was written by a newer farm; it is left untouched."""


class AnalysisError(FarmError):
    """The data does not support the question asked."""
