"""What asyncssh and the sockets raise, as farm's errors with what to do about them."""

import socket
from collections.abc import Sequence
from enum import IntEnum

import asyncssh

from farm.errors import (
    AuthError,
    ConnectError,
    HostKeyError,
    LinkLostError,
    TransportError,
)
from farm.model.board import Board

PEER_FAULTS = (
    asyncssh.Error,
    asyncssh.ChannelListenError,
    asyncssh.PasswordChangeRequired,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    AssertionError,
)
"""What asyncssh.connect may raise: besides its own errors, whatever a peer's bytes provoke in
its parsers (`SSHConnection.internal_error` hands any exception on)."""

_SHA1_REMEDY = (
    "If it is an old board, widen its algorithms in the inventory: host_key_algorithms: [ssh-rsa]"
)


class DroppedBeforeLoginError(ConnectError):
    """The board closed the connection before any login was tried: safe to try again at once."""


class Stage(IntEnum):
    """How far a connection came."""

    NOTHING = 0  # no TCP connection, or no SSH banner on it
    BANNER = 1  # the peer's version line
    HOST_KEY = 2  # the key exchange is done and the host key accepted: the login begins


def address_of(board: Board) -> str:
    """The board's address as users write it."""
    return f"{board.host}:{board.port}"


def explain_login(
    exc: BaseException, board: Board, stage: Stage, methods: Sequence[str] = ()
) -> TransportError:
    """The error of a connection that did not come up. Host keys are judged elsewhere.

    Args:
        exc: what asyncssh or the socket raised.
        board: the board that was called.
        stage: how far the connection came.
        methods: the login methods the board offered, as far as known.
    """
    if _is_refusal(exc):
        return refused_login(board, str(exc), methods)
    if isinstance(exc, asyncssh.KeyExchangeFailed):
        remedy = _SHA1_REMEDY if "host key" in str(exc) else "Update the board's SSH server"
        return no_common_algorithm(board, str(exc), remedy)
    if isinstance(exc, OSError) and not isinstance(exc, ConnectionResetError | BrokenPipeError):
        return _explain_socket(exc, board)
    return _explain_drop(exc, board, stage)


def refused_login(board: Board, seen: str, methods: Sequence[str]) -> AuthError:
    """The board refused the login; `methods` are those it offers, as far as known."""
    offered = f"; it offers {', '.join(methods)}" if methods else ""
    return AuthError(
        "connect",
        f"{address_of(board)} refused the login of {board.user!r}: {seen}{offered}",
        board=board.name,
        remedy="Check user and identity_file in the inventory, and that the public key is in "
        "the board's ~/.ssh/authorized_keys",
    )


def no_common_algorithm(board: Board, seen: str, remedy: str) -> TransportError:
    """Host and board know no algorithm in common. Never tried again."""
    return TransportError(
        "connect",
        f"no algorithm in common with {address_of(board)}: {seen}",
        board=board.name,
        remedy=remedy,
    )


def _is_refusal(exc: BaseException) -> bool:
    refusals = (
        asyncssh.PermissionDenied,
        asyncssh.IllegalUserName,
        asyncssh.PasswordChangeRequired,
    )
    if isinstance(exc, refusals):
        return True
    return isinstance(exc, asyncssh.DisconnectError) and "authentication" in exc.reason.lower()


def _explain_socket(exc: OSError, board: Board) -> TransportError:
    address = address_of(board)
    if isinstance(exc, ConnectionRefusedError):
        seen = f"{address} refused the connection"
        remedy = "Is the SSH server running on the board, and is the port right?"
    elif isinstance(exc, socket.gaierror):
        seen = f"the name {board.host!r} does not resolve: {exc.strerror or exc}"
        remedy = "Check the board's host in the inventory, or write its IP address there"
    elif isinstance(exc, TimeoutError):
        seen = f"{address} did not answer"
        remedy = "Is the board switched on and on the network?"
    else:
        seen = f"{address} cannot be reached: {exc.strerror or exc}"
        remedy = "Is the board switched on, and is this host on its network?"
    return ConnectError("connect", seen, board=board.name, remedy=remedy)


def _explain_drop(exc: BaseException, board: Board, stage: Stage) -> TransportError:
    address = address_of(board)
    if isinstance(exc, asyncssh.ConnectionLost | ConnectionResetError | BrokenPipeError):
        if stage is Stage.NOTHING:
            return DroppedBeforeLoginError(
                "connect",
                f"{address} closed the connection at once",
                board=board.name,
                remedy="Its SSH server may be at its MaxStartups, or ban this host for a while "
                "after failed logins (PerSourcePenalties)",
            )
        if stage is Stage.BANNER:  # sshd says nothing when no host key algorithm is in common
            return DroppedBeforeLoginError(
                "connect",
                f"{address} closed the connection in the key exchange",
                board=board.name,
                remedy=_SHA1_REMEDY,
            )
        return ConnectError(
            "connect", f"{address} closed the connection during the login", board=board.name
        )
    return ConnectError(
        "connect",
        f"{address} does not speak SSH as it should: {str(exc) or type(exc).__name__}",
        board=board.name,
        remedy="Is it an SSH server that listens on this port?",
    )


def unknown_host_key(board: Board, seen: str, file: str) -> HostKeyError:
    """The board is in no known_hosts line. `seen` is the algorithm and fingerprint it showed."""
    return HostKeyError(
        "connect",
        f"the host key of {address_of(board)} is not known ({file}); it showed {seen}",
        board=board.name,
        remedy=f"Compare that with `ssh-keygen -lf` of the key on the board, then run "
        f"`farm boards enroll {board.name}`",
    )


def changed_host_key(board: Board, seen: str, enrolled: Sequence[str], file: str) -> HostKeyError:
    """The board showed another key than the enrolled ones."""
    return HostKeyError(
        "connect",
        f"the host key of {address_of(board)} is not the enrolled one: it showed {seen}, "
        f"enrolled is {' or '.join(enrolled)} ({file})",
        board=board.name,
        remedy=f"If the board was reinstalled, remove its line from {file} and run "
        f"`farm boards enroll {board.name}`; if not, something else answers at its address",
    )


def revoked_host_key(board: Board, seen: str, file: str) -> HostKeyError:
    """The board showed a key that known_hosts marks @revoked."""
    return HostKeyError(
        "connect",
        f"the host key of {address_of(board)} is revoked in {file}: {seen}",
        board=board.name,
        remedy="Give the board a new host key and enrol it",
    )


def explain_loss(exc: BaseException | None, board: str, step: str) -> TransportError:
    """The error of an operation whose channel or connection ended without an answer."""
    if isinstance(exc, asyncssh.ChannelOpenError) and "closed" not in exc.reason:
        return TransportError(
            step,
            f"the board opens no further session: {exc.reason}",
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
