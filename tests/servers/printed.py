"""Reads what a process prints while it runs."""

import subprocess


def lines_until(process: "subprocess.Popen[str]", words: str) -> str:
    """What it prints, up to the first line with these words. AssertionError if none has."""
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if words in line:
            return read
    raise AssertionError(f"it ended without {words!r}:\n{read}")
