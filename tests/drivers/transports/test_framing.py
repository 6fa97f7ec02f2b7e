"""Markers in a command's output, however it is cut into chunks."""

import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.drivers.transports.framing import (
    NOISE_LIMIT,
    MarkedOutput,
    frame_command,
    new_token,
    status_from_shell,
)

TOKEN = "0123456789abcdef"
BEGIN = b"\x1e" + TOKEN.encode() + b"b77\n"
END = b"\x1e" + TOKEN.encode() + b"e3\n"


def feed(chunks: list[bytes]) -> tuple[MarkedOutput, bytes]:
    output = MarkedOutput(TOKEN)
    return output, b"".join([output.feed(chunk) for chunk in chunks])


@given(
    noise=st.binary(max_size=40),
    body=st.one_of(st.binary(max_size=60), st.sampled_from([END[:-4] + b"x", b"\x1e", END[:9]])),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
def test_body_is_found_whatever_the_chunks(noise: bytes, body: bytes, cuts: list[int]) -> None:
    whole = noise + BEGIN + body + END + b"of a job left behind"
    at = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    output, got = feed([whole[a:b] for a, b in pairwise(at)])
    assert (got, output.noise, output.pid, output.status) == (body, noise, 77, 3)


def test_each_byte_alone() -> None:
    whole = b"noise" + BEGIN + b"line\n" + END
    output, got = feed([bytes([byte]) for byte in whole])
    assert (got, output.pid, output.status) == (b"line\n", 77, 3)


def test_line_is_not_held_back() -> None:
    """Only what may be the beginning of the end marker waits."""
    output, _ = feed([BEGIN])
    assert output.feed(b'{"id": 7}\n') == b'{"id": 7}\n'
    assert output.feed(b"text" + END[:5]) == b"text"
    assert output.feed(b"no marker") == END[:5] + b"no marker"


def test_without_the_first_marker_all_is_noise() -> None:
    output, got = feed([b"This account is not available.\n"])
    assert (got, output.pid, output.status) == (b"", None, None)
    assert output.noise == b"This account is not available.\n"


def test_end_marker_of_another_command_is_output() -> None:
    other = END.replace(b"0123", b"9999")
    output, got = feed([BEGIN + other])
    assert (got, output.status) == (other, None)


def test_noise_without_end_is_noticed() -> None:
    output, _ = feed([bytes(NOISE_LIMIT)])
    assert not output.is_endless_noise
    output.feed(b"x")
    assert output.is_endless_noise


@pytest.mark.parametrize(
    ("shell", "status"), [(0, 0), (1, 1), (127, 127), (137, -9), (143, -15), (255, 255)]
)
def test_signals_by_the_shells_word(shell: int, status: int) -> None:
    assert status_from_shell(shell) == status


def test_frame_runs_in_a_shell() -> None:
    token = new_token()
    line = frame_command(["sh", "-c", "echo out; exit 4"], token)
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=False, timeout=60)
    output = MarkedOutput(token)
    assert output.feed(b"noise" + done.stdout) == b"out\n"
    assert (output.status, done.returncode) == (4, 4)
    assert done.stderr == f"\x1e{token}b{output.pid}\n".encode()


def test_tokens_differ() -> None:
    assert new_token() != new_token()
