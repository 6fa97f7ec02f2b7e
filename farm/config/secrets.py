"""Secrets are references in files: ``env:NAME``, ``file:PATH``, ``keyring:NAME``.

No message, log or exception of this module holds a secret itself.
"""

import importlib
import os
import re
from pathlib import Path

from farm.errors import ConfigError

KEYRING_SERVICE = "farm"
"""The service under which ``keyring:NAME`` looks: ``keyring set farm NAME`` stores it."""

MAX_SECRET_BYTES = 64 * 1024

ALLOWED = "env:NAME, file:PATH or keyring:NAME"

_REFERENCE = re.compile(r"(?:env:[A-Za-z_][A-Za-z0-9_]*|file:.+|keyring:.+)", re.DOTALL)


def is_reference(text: str) -> bool:
    """Whether the text refers to a secret rather than being one."""
    return _REFERENCE.fullmatch(text) is not None and "\n" not in text


def anchored(reference: str, folder: Path) -> str:
    """The reference with a relative ``file:`` path taken from `folder`."""
    if reference.startswith("file:") and not reference.startswith("file:~"):
        return f"file:{folder / reference.removeprefix('file:')}"
    return reference


def resolve_secret(reference: str) -> str:
    """The secret itself. Raises ConfigError when it is not there or not kept safely."""
    if not is_reference(reference):
        raise ConfigError(f"a secret should be a reference: {ALLOWED}")
    kind, _, name = reference.partition(":")
    if kind == "env":
        secret = _from_environment(name)
    elif kind == "file":
        secret = _from_file(name)
    else:
        secret = _from_keyring(name)
    if not secret:
        raise ConfigError(f"the secret {reference} is empty")
    return secret


def _from_environment(name: str) -> str:
    secret = os.environ.get(name)
    if secret is None:
        raise ConfigError(f"the secret env:{name}: the environment has no variable {name}")
    return secret


def _from_file(name: str) -> str:
    """One line; a file that others can read is refused, as ssh refuses such a key."""
    try:
        path = Path(name).expanduser()
        with path.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode & 0o777
            raw = stream.read(MAX_SECRET_BYTES + 1)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "no such home folder"
        raise ConfigError(f"the secret file:{name}: {reason}") from None
    if mode & 0o077:
        raise ConfigError(
            f"the secret file:{name} can be read by others (mode {mode:03o}); "
            f"run: chmod 600 {path}"
        )
    if len(raw) > MAX_SECRET_BYTES:
        raise ConfigError(f"the secret file:{name} is larger than {MAX_SECRET_BYTES} bytes")
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(f"the secret file:{name} is not UTF-8 text") from None


def _from_keyring(name: str) -> str:
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        raise ConfigError(
            f"the secret keyring:{name} needs the library keyring; run: pip install keyring"
        ) from None
    errors = importlib.import_module("keyring.errors")
    try:
        secret = keyring.get_password(KEYRING_SERVICE, name)
    except errors.KeyringError as error:
        kind = type(error).__name__
        raise ConfigError(f"the secret keyring:{name}: the keyring refused ({kind})") from None
    if secret is None:
        raise ConfigError(
            f"the secret keyring:{name} is not stored; run: keyring set {KEYRING_SERVICE} {name}"
        )
    return str(secret)
