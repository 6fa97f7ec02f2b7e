"""Words through the login shells that boards have, without SSH between."""

import re
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.drivers.transports.quoting import (
    COMMAND_LIMIT,
    PIECE_LIMIT,
    quote_for_login_shell,
    wrap_in_sh,
    write_words,
)
from farm.testing.transport_commands import NASTY
from tests.drivers.transports.rigs import need

SHELLS = ("sh", "bash", "dash", "busybox sh", "csh", "fish")


def through(shell: str, argv: list[str]) -> bytes:
    """What argv prints when `shell` is the login shell."""
    program, *rest = shell.split()
    assignments, words = write_words(argv)
    line = wrap_in_sh(assignments + words)
    done = subprocess.run(
        [need(program), *rest, "-c", line], capture_output=True, check=True, timeout=60
    )
    assert done.stderr == b""
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_nasty_words_survive(shell: str) -> None:
    words = [*NASTY, "\udcff\udc80 not utf-8"]
    expected = "".join(f"[{word}]" for word in words).encode("utf-8", "surrogateescape")
    assert through(shell, ["printf", "[%s]", *words]) == expected


@pytest.mark.parametrize("shell", SHELLS)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_any_words_survive(shell: str, words: list[str]) -> None:
    expected = "".join(f"[{word}]" for word in ["", *words]).encode()
    assert through(shell, ["printf", "[%s]", "", *words]) == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_long_words_survive(shell: str) -> None:
    """Much longer than the 8191 characters that bsd-csh takes for one word."""
    word = "it's \\ !" * 3000
    assert through(shell, ["printf", "%s", word]) == word.encode()


def test_lines_are_printable_and_leave_no_danger_in_quotes() -> None:
    assignments, words = write_words(["printf", *NASTY])
    line = wrap_in_sh(assignments + words)
    assert re.fullmatch(r"[ -~]*", line)
    parts = re.findall(r"'([^']*)'|\\(.)", line)
    assert {escaped for _, escaped in parts} == {"", "'", "\\", "!"}
    quoted = [part for part, _ in parts]
    assert not any("!" in part or "\\" in part for part in quoted)


def test_short_scripts_are_one_word() -> None:
    assert wrap_in_sh("exit 3") == "sh -c 'exit 3'"
    assert len(wrap_in_sh("x" * (PIECE_LIMIT + 1)).split()) > 4


def test_what_no_shell_changes_is_quoted_once() -> None:
    assert quote_for_login_shell("a b") == "'a b'"
    assert quote_for_login_shell("it's") == r"'it'\''s'"


@pytest.mark.parametrize("argv", [[], [""], ["-x"], ["echo", "a\0b"]])
def test_what_is_no_command_is_refused(argv: list[str]) -> None:
    with pytest.raises(ValueError, match=r"command"):
        write_words(argv)


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match=str(COMMAND_LIMIT)):
        wrap_in_sh("x" * COMMAND_LIMIT)
