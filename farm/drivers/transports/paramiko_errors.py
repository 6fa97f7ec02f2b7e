"""What paramiko and the sockets raise, as farm's errors with what to do about them.

What both SSH drivers can meet has its words in `ssh_errors`.
"""

from collections.abc import Sequence

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from farm.drivers.transports import ssh_errors
from farm.drivers.transports.ssh_errors import Stage, address_of
from farm.errors import ConnectError, LinkLostError, TransportError
from farm.model.board import Board

PARAMIKO_FAULTS = (
    paramiko.SSHException,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    AssertionError,
    AttributeError,
)
"""What paramiko's calls may raise: besides its own errors, whatever a peer's bytes provoke in its
parsers (`Transport.run` hands any exception on), and AttributeError where it loses a race with
the end of the connection."""

_OLD_BOARD_REMEDY = (
    "If it is an old board that only has ssh-rsa: paramiko dropped it. Write transport: asyncssh "
    "and host_key_algorithms: [ssh-rsa] in the inventory"
)
_DROPS = (EOFError, ConnectionResetError, BrokenPipeError)


def explain_login(
    exc: BaseException, board: Board, stage: Stage, methods: Sequence[str] = ()
) -> TransportError:
    """The error of a connection that did not come up. Host keys are judged elsewhere.

    Args:
        exc: what paramiko or the socket raised.
        board: the board that was called.
        stage: how far the connection came.
        methods: the login methods the board offered, as far as known.
    """
    if isinstance(exc, paramiko.AuthenticationException):
        return ssh_errors.refused_login(board, str(exc), methods)
    if isinstance(exc, IncompatiblePeer) and "version" not in str(exc):
        is_host_key = "host key" in str(exc)
        remedy = _OLD_BOARD_REMEDY if is_host_key else "Try transport: asyncssh, which knows more"
        return ssh_errors.no_common_algorithm(board, str(exc), remedy)
    if is_drop(exc):
        return ssh_errors.explain_login(ConnectionResetError(), board, stage)
    if isinstance(exc, OSError):
        return ssh_errors.explain_login(exc, board, stage)
    return ConnectError(
        "connect",
        f"{address_of(board)} does not speak SSH as it should: {str(exc) or type(exc).__name__}",
        board=board.name,
        remedy="Is it an SSH server that listens on this port?",
    )


def is_drop(exc: BaseException) -> bool:
    """Did the board close the connection? paramiko has no class for that."""
    if isinstance(exc, _DROPS):
        return True
    # the end of the connection while it waits for the banner, and a disconnect message
    return type(exc) is paramiko.SSHException and str(exc).startswith(
        ("Error reading SSH protocol banner", "Negotiation failed", "No existing session")
    )


def explain_timeout(
    board: Board, login_timeout_s: float, stage: Stage, *, has_tcp: bool
) -> TransportError:
    """The error of a login that did not end within its time limit."""
    if not has_tcp:
        return ssh_errors.explain_login(TimeoutError(), board, stage)
    if stage is Stage.NOTHING:
        seen = f"{address_of(board)} accepts connections, but sends no SSH banner"
        remedy = "The board hangs, or another service listens there. A power cycle may help"
    else:
        seen = f"{address_of(board)} did not finish the login"
        remedy = "The board may be overloaded; login_timeout_s in the inventory allows more time"
    return ConnectError(
        "connect", f"{seen} within {login_timeout_s:g} s", board=board.name, remedy=remedy
    )


def explain_loss(
    exc: BaseException | None, board: str, step: str, *, is_alive: bool = False
) -> TransportError:
    """The error of an operation whose channel did not open, or ended without an answer.

    Args:
        exc: what paramiko raised, if anything.
        board: the board's name.
        step: what was done.
        is_alive: the connection itself still stands.
    """
    if is_alive and isinstance(exc, paramiko.SSHException):
        words = exc.text if isinstance(exc, paramiko.ChannelException) else str(exc)
        return TransportError(
            step,
            f"the board opens no further session: {words}",
            board=board,
            remedy="Raise MaxSessions in the board's sshd_config to 10 (the default) or more",
        )
    reason = f": {exc}" if exc and str(exc) else ""
    return LinkLostError(
        step,
        f"the connection died{reason}",
        board=board,
        remedy="Whether the command took effect is unknown",
    )
