"""Every exception of asyncssh and the sockets becomes one of ours, with words."""

import errno
import inspect
import socket

import asyncssh
import pytest

from farm.drivers.transports.ssh_errors import (
    PEER_FAULTS,
    DroppedBeforeLoginError,
    Stage,
    explain_login,
    explain_loss,
)
from farm.errors import AuthError, ConnectError, LinkLostError, TransportError
from farm.model.board import Board

BOARD = Board(name="b1", profile="any", host="10.0.0.1", port=2222, user="farm")

NOT_FROM_A_CONNECTION = {
    # raised by asyncssh's calls for keys and files, and by its process and SFTP calls,
    # which the driver does not use
    *("ConfigParseError", "KeyEncryptionError", "KeyExportError", "KeyGenerationError"),
    *("KeyImportError", "ProcessError", "TimeoutError"),
    # given to a server's session
    *("BreakReceived", "SignalReceived", "TerminalSizeChanged"),
}


def classes() -> list[type[Exception]]:
    found = inspect.getmembers(
        asyncssh, lambda each: inspect.isclass(each) and issubclass(each, Exception)
    )
    return [kind for _, kind in found]


def make(kind: type[Exception]) -> Exception:
    """An instance, whatever its constructor wants."""
    for arguments in (("words",), (2, "words"), (2, b"words", "words")):
        try:
            return kind(*arguments)
        except TypeError:
            continue
    raise AssertionError(f"cannot make a {kind.__name__}")


CONNECTION_ERRORS = [kind for kind in classes() if kind.__name__ not in NOT_FROM_A_CONNECTION]


def test_the_walk_finds_the_classes() -> None:
    names = {kind.__name__ for kind in classes()}
    assert {"Error", "ConnectionLost", "PermissionDenied", "ChannelOpenError"} <= names
    assert names >= NOT_FROM_A_CONNECTION


@pytest.mark.parametrize("kind", CONNECTION_ERRORS)
def test_each_is_caught_and_explained(kind: type[Exception]) -> None:
    exc = make(kind)
    assert isinstance(exc, PEER_FAULTS)
    for stage in Stage:
        error = explain_login(exc, BOARD, stage)
        assert isinstance(error, TransportError)
        assert error.board == "b1"
        assert "10.0.0.1:2222" in error.seen
    assert isinstance(explain_loss(exc, "b1", "run"), TransportError)


@pytest.mark.parametrize(
    ("exc", "stage", "kind", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), Stage.NOTHING, ConnectError, "refused"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), Stage.NOTHING, ConnectError, "No route"),
        (OSError("Multiple exceptions: a, b"), Stage.NOTHING, ConnectError, "Multiple"),
        (socket.gaierror(-2, "Name unknown"), Stage.NOTHING, ConnectError, "does not resolve"),
        (TimeoutError(), Stage.NOTHING, ConnectError, "did not answer"),
        (asyncssh.PermissionDenied("no"), Stage.HOST_KEY, AuthError, "refused the login"),
        (asyncssh.IllegalUserName("no"), Stage.HOST_KEY, AuthError, "refused the login"),
        (
            asyncssh.ProtocolError("Too many authentication failures"),
            Stage.HOST_KEY,
            AuthError,
            "Too many",
        ),
        (asyncssh.ConnectionLost("x"), Stage.NOTHING, DroppedBeforeLoginError, "at once"),
        (ConnectionResetError(), Stage.BANNER, DroppedBeforeLoginError, "key exchange"),
        (asyncssh.ConnectionLost("x"), Stage.HOST_KEY, ConnectError, "during the login"),
        (asyncssh.ProtocolNotSupported("1.5"), Stage.NOTHING, ConnectError, "not speak SSH"),
        (UnicodeDecodeError("ascii", b"\xff", 0, 1, "x"), Stage.NOTHING, ConnectError, "SSH"),
    ],
)
def test_what_the_user_reads(
    exc: Exception, stage: Stage, kind: type[TransportError], words: str
) -> None:
    error = explain_login(exc, BOARD, stage)
    assert type(error) is kind
    assert words in error.seen


def test_refused_login_names_the_methods_on_offer() -> None:
    error = explain_login(
        asyncssh.PermissionDenied("no"), BOARD, Stage.HOST_KEY, ("password", "publickey")
    )
    assert "password, publickey" in error.seen
    assert not error.retryable


def test_no_common_algorithm_is_not_tried_again() -> None:
    error = explain_login(asyncssh.KeyExchangeFailed("No matching x"), BOARD, Stage.BANNER)
    assert type(error) is TransportError
    assert not error.retryable


@pytest.mark.parametrize(
    "exc",
    [None, asyncssh.ConnectionLost("x"), BrokenPipeError(), ConnectionResetError(), OSError("x")],
)
def test_a_dead_link_is_lost(exc: Exception | None) -> None:
    assert type(explain_loss(exc, "b1", "run")) is LinkLostError


def test_a_refused_session_is_not_a_lost_link() -> None:
    refused = explain_loss(asyncssh.ChannelOpenError(2, "open failed"), "b1", "run")
    assert type(refused) is TransportError
    closed = explain_loss(asyncssh.ChannelOpenError(2, "SSH connection closed"), "b1", "run")
    assert type(closed) is LinkLostError
