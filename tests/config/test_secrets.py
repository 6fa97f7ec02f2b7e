"""References to secrets, and how the secret itself never shows."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from farm.config.secrets import MAX_SECRET_BYTES, anchored, is_reference, resolve_secret
from farm.errors import ConfigError


def error_of(reference: str) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve_secret(reference)
    assert "hunter2" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("hunter2\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("text", ["env:A_1", "file:a b", "file:~/x", "keyring:plug"])
def test_references(text: str) -> None:
    assert is_reference(text)


@pytest.mark.parametrize("text", ["", "hunter2", "env:", "env:1", "env:a b", "file:", "file:a\nb"])
def test_no_references(text: str) -> None:
    assert not is_reference(text)


def test_a_secret_itself_is_refused_without_being_told() -> None:
    assert error_of("hunter2") == (
        "a secret should be a reference: env:NAME, file:PATH or keyring:NAME"
    )


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_TEST_SECRET", "hunter2")
    assert resolve_secret("env:FARM_TEST_SECRET") == "hunter2"
    monkeypatch.setenv("FARM_TEST_SECRET", "")
    assert error_of("env:FARM_TEST_SECRET") == "the secret env:FARM_TEST_SECRET is empty"
    monkeypatch.delenv("FARM_TEST_SECRET")
    assert error_of("env:FARM_TEST_SECRET") == (
        "the secret env:FARM_TEST_SECRET: the environment has no variable FARM_TEST_SECRET"
    )


def test_file_without_its_line_end(secret_file: Path) -> None:
    assert resolve_secret(f"file:{secret_file}") == "hunter2"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_can_read_is_refused(secret_file: Path, mode: int) -> None:
    secret_file.chmod(mode)
    assert error_of(f"file:{secret_file}") == (
        f"the secret file:{secret_file} can be read by others (mode {mode:o}); "
        f"run: chmod 600 {secret_file}"
    )


def test_files_that_hold_no_secret(tmp_path: Path, secret_file: Path) -> None:
    missing = tmp_path / "none"
    assert error_of(f"file:{missing}") == f"the secret file:{missing}: No such file or directory"
    secret_file.write_text("\n")
    assert error_of(f"file:{secret_file}") == f"the secret file:{secret_file} is empty"
    secret_file.write_bytes(b"hunter2\xff")
    assert error_of(f"file:{secret_file}") == f"the secret file:{secret_file} is not UTF-8 text"
    secret_file.write_bytes(b"x" * (MAX_SECRET_BYTES + 1))
    assert "is larger than 65536 bytes" in error_of(f"file:{secret_file}")
    assert error_of("file:~no-such-user/x") == (
        "the secret file:~no-such-user/x: no such home folder"
    )


def test_keyring_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert error_of("keyring:plug") == (
        "the secret keyring:plug needs the library keyring; run: pip install keyring"
    )


def test_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring, errors = ModuleType("keyring"), ModuleType("keyring.errors")

    class KeyringError(Exception):
        pass

    def get_password(service: str, name: str) -> str | None:
        if name == "locked":
            raise KeyringError("hunter2")
        return "hunter2" if (service, name) == ("farm", "plug") else None

    keyring.get_password = get_password  # type: ignore[attr-defined]
    errors.KeyringError = KeyringError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    assert resolve_secret("keyring:plug") == "hunter2"
    assert error_of("keyring:other") == (
        "the secret keyring:other is not stored; run: keyring set farm other"
    )
    assert error_of("keyring:locked") == (
        "the secret keyring:locked: the keyring refused (KeyringError)"
    )


def test_relative_files_begin_at_a_folder() -> None:
    assert anchored("file:a/b", Path("/lab")) == "file:/lab/a/b"
    assert anchored("file:/a/b", Path("/lab")) == "file:/a/b"
    assert anchored("file:~/b", Path("/lab")) == "file:~/b"
    assert anchored("env:A", Path("/lab")) == "env:A"
