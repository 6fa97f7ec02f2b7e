"""Logging in with paramiko: keys that were named, then the password; no agent, no other files."""

import io
import threading
from collections.abc import Callable, Sequence
from functools import partial

import paramiko
from paramiko.auth_handler import AuthOnlyHandler

from farm.drivers.transports.ssh_context import SshContext
from farm.errors import AuthError
from farm.model.board import Board

_KEY_CLASSES: dict[str, type[paramiko.PKey]] = {
    "ssh-ed25519": paramiko.Ed25519Key,
    "ssh-rsa": paramiko.RSAKey,
    "ecdsa-sha2-nistp256": paramiko.ECDSAKey,
    "ecdsa-sha2-nistp384": paramiko.ECDSAKey,
    "ecdsa-sha2-nistp521": paramiko.ECDSAKey,
}


def login_keys(board: Board, context: SshContext) -> tuple[paramiko.PKey, ...]:
    """The private keys to log in with, as paramiko's. Raises AuthError if there is none."""
    found = []
    for key in context.login_keys(board):
        kind = _KEY_CLASSES.get(key.get_algorithm())
        if kind is not None:
            text = key.export_private_key("openssh").decode()
            found.append(kind.from_private_key(io.StringIO(text)))
    if not found:
        raise AuthError(
            "connect",
            "paramiko knows no private key of this kind",
            board=board.name,
            remedy="Use an ed25519 key, or transport: asyncssh",
        )
    return tuple(found)


class Login:
    """The attempts to log in on one connection.

    Args:
        user: the account.
        keys: tried in order, before the password.
        password: or None.

    Attributes:
        methods: login methods that the board offered when it refused ours.
    """

    def __init__(self, user: str, keys: Sequence[paramiko.PKey], password: str | None) -> None:
        self._user, self._keys, self._password = user, keys, password
        self.methods: tuple[str, ...] = ()

    def log_in(self, transport: paramiko.Transport) -> None:
        """Try what there is; blocks. Raises AuthenticationException, other PARAMIKO_FAULTS."""
        refusal: paramiko.AuthenticationException | None = None
        for method, attempt in self._attempts():
            try:
                attempt(transport)
            except paramiko.AuthenticationException as exc:
                if not transport.is_active():  # paramiko calls that, too, a failed login
                    raise refusal or ConnectionResetError() from exc
                refusal = exc
                if isinstance(exc, paramiko.BadAuthenticationType):
                    self.methods = tuple(exc.allowed_types)
                elif method not in self.methods:
                    self.methods = (*self.methods, method)
            if transport.is_authenticated():
                return
        raise refusal or paramiko.AuthenticationException("it asks for a further method")

    def _attempts(self) -> list[tuple[str, Callable[[paramiko.Transport], None]]]:
        attempts: list[tuple[str, Callable[[paramiko.Transport], None]]] = [
            ("publickey", partial(self._by_key, key)) for key in self._keys
        ]
        if self._password is not None:
            attempts.append(("password", partial(self._by_password, self._password)))
            attempts.append(("keyboard-interactive", partial(self._by_answers, self._password)))
        return attempts

    def _by_key(self, key: paramiko.PKey, transport: paramiko.Transport) -> None:
        if transport.auth_handler is None:
            transport.auth_publickey(self._user, key)
        else:
            _further(transport).auth_publickey(self._user, key)

    def _by_password(self, password: str, transport: paramiko.Transport) -> None:
        if transport.auth_handler is None:
            transport.auth_password(self._user, password, fallback=False)
        else:
            _further(transport).auth_password(self._user, password)

    def _by_answers(self, password: str, transport: paramiko.Transport) -> None:
        if self.methods and "keyboard-interactive" not in self.methods:
            return  # a second try of the same password may get us banned

        def answer(title: str, text: str, prompts: Sequence[tuple[str, bool]]) -> list[str]:
            del title, text
            return [password for _ in prompts]

        _further(transport).auth_interactive(self._user, answer)


class _FurtherAttempt(AuthOnlyHandler):
    """An attempt after the first, which does not ask for the service again, as some refuse that.

    paramiko makes the event for the board's answer after it sent the question, and may miss it;
    this one is there from the beginning.
    """

    def __init__(self, transport: paramiko.Transport) -> None:
        self._is_answered = threading.Event()
        super().__init__(transport)

    @property
    def auth_event(self) -> threading.Event:
        """Set when the board answered."""
        return self._is_answered

    @auth_event.setter
    def auth_event(self, event: threading.Event | None) -> None:
        del event


def _further(transport: paramiko.Transport) -> AuthOnlyHandler:
    handler = _FurtherAttempt(transport)
    transport.auth_handler = handler
    return handler
