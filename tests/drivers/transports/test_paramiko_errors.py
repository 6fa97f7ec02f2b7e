"""Every exception of paramiko and the sockets becomes one of ours, with words."""

import errno
import inspect
import socket

import paramiko
import paramiko.ssh_exception
import pytest

from farm.drivers.transports.paramiko_errors import (
    PARAMIKO_FAULTS,
    explain_login,
    explain_loss,
    explain_timeout,
)
from farm.drivers.transports.ssh_errors import DroppedBeforeLoginError, Stage
from farm.errors import AuthError, ConnectError, LinkLostError, TransportError
from farm.model.board import Board

BOARD = Board(name="b1", profile="any", host="10.0.0.1", port=2222, user="farm")
KEY = paramiko.ECDSAKey.generate()


def classes() -> list[type[Exception]]:
    found = inspect.getmembers(
        paramiko.ssh_exception, lambda each: inspect.isclass(each) and issubclass(each, Exception)
    )
    own = [kind for _, kind in found if kind.__module__ == "paramiko.ssh_exception"]
    return [*own, paramiko.buffered_pipe.PipeTimeout]


def make(kind: type[Exception]) -> Exception:
    """An instance, whatever its constructor wants."""
    several: tuple[tuple[object, ...], ...] = (
        ("words",),
        ("words", ["password"]),
        (2, "words"),
        ("host", KEY, KEY),
        ({("10.0.0.1", 22): OSError("refused")},),
    )
    for arguments in several:
        try:
            made = kind(*arguments)
            str(made)
        except (TypeError, AttributeError):
            continue
        return made
    raise AssertionError(f"cannot make a {kind.__name__}")


def test_the_walk_finds_the_classes() -> None:
    names = {kind.__name__ for kind in classes()}
    assert {"SSHException", "AuthenticationException", "ChannelException"} <= names
    assert {"IncompatiblePeer", "NoValidConnectionsError", "MessageOrderError"} <= names


@pytest.mark.parametrize("kind", classes())
def test_each_is_caught_and_explained(kind: type[Exception]) -> None:
    exc = make(kind)
    assert isinstance(exc, PARAMIKO_FAULTS)
    for stage in Stage:
        error = explain_login(exc, BOARD, stage)
        assert error.board == "b1"
        assert "10.0.0.1:2222" in error.seen
    assert type(explain_loss(exc, "b1", "run")) is LinkLostError


@pytest.mark.parametrize("kind", classes())
def test_only_a_refusal_ends_all_tries(kind: type[Exception]) -> None:
    """AuthError is for refusals, and a peer that speaks otherwise is not tried again either."""
    error = explain_login(make(kind), BOARD, Stage.HOST_KEY)
    is_refusal = issubclass(kind, paramiko.AuthenticationException)
    assert isinstance(error, AuthError) is is_refusal
    assert error.retryable is not (is_refusal or kind.__name__ == "IncompatiblePeer")


@pytest.mark.parametrize(
    ("exc", "stage", "kind", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), Stage.NOTHING, ConnectError, "refused"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), Stage.NOTHING, ConnectError, "No route"),
        (socket.gaierror(-2, "Name unknown"), Stage.NOTHING, ConnectError, "does not resolve"),
        (TimeoutError(), Stage.NOTHING, ConnectError, "did not answer"),
        (EOFError(), Stage.NOTHING, DroppedBeforeLoginError, "at once"),
        (
            paramiko.SSHException("Error reading SSH protocol banner"),
            Stage.NOTHING,
            DroppedBeforeLoginError,
            "at once",
        ),
        (
            paramiko.SSHException("Negotiation failed."),
            Stage.BANNER,
            DroppedBeforeLoginError,
            "key exchange",
        ),
        (ConnectionResetError(), Stage.HOST_KEY, ConnectError, "during the login"),
        (
            paramiko.ssh_exception.IncompatiblePeer(
                "Incompatible ssh peer (no acceptable host key)"
            ),
            Stage.BANNER,
            TransportError,
            "no algorithm",
        ),
        (
            paramiko.ssh_exception.IncompatiblePeer("Incompatible version (1.5 instead of 2.0)"),
            Stage.BANNER,
            ConnectError,
            "not speak SSH",
        ),
        (
            paramiko.SSHException('Indecipherable protocol version "HTTP"'),
            Stage.NOTHING,
            ConnectError,
            "not speak SSH",
        ),
        (
            paramiko.AuthenticationException("Authentication failed."),
            Stage.HOST_KEY,
            AuthError,
            "refused the login",
        ),
    ],
)
def test_what_the_user_reads(
    exc: Exception, stage: Stage, kind: type[TransportError], words: str
) -> None:
    error = explain_login(exc, BOARD, stage)
    assert type(error) is kind
    assert words in error.seen


def test_no_common_host_key_names_the_other_driver() -> None:
    exc = paramiko.ssh_exception.IncompatiblePeer("Incompatible ssh peer (no acceptable host key)")
    assert "transport: asyncssh" in explain_login(exc, BOARD, Stage.BANNER).remedy


@pytest.mark.parametrize(
    ("stage", "has_tcp", "words"),
    [
        (Stage.NOTHING, False, "did not answer"),
        (Stage.NOTHING, True, "no SSH banner within 3 s"),
        (Stage.BANNER, True, "did not finish the login within 3 s"),
        (Stage.HOST_KEY, True, "did not finish the login within 3 s"),
    ],
)
def test_a_login_out_of_time_says_how_far_it_came(stage: Stage, has_tcp: bool, words: str) -> None:
    error = explain_timeout(BOARD, 3.0, stage, has_tcp=has_tcp)
    assert type(error) is ConnectError
    assert words in error.seen


@pytest.mark.parametrize(
    "exc", [None, EOFError(), ConnectionResetError(), OSError("x"), paramiko.SSHException("x")]
)
def test_a_dead_link_is_lost(exc: Exception | None) -> None:
    assert type(explain_loss(exc, "b1", "run")) is LinkLostError


def test_a_refused_session_is_not_a_lost_link() -> None:
    refused = paramiko.ChannelException(4, "Resource shortage")
    error = explain_loss(refused, "b1", "run", is_alive=True)
    assert type(error) is TransportError
    assert "Resource shortage" in error.seen
    assert type(explain_loss(refused, "b1", "run")) is LinkLostError
