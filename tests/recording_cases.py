"""The recordings below tests/recordings/BOARD/TOOL/: a case is NAME.txt and NAME.json.

NAME.txt is what the board printed, byte for byte; NAME.json is what it means. Names that end in
``_retold`` were written after a description of what a board printed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

RECORDINGS = Path(__file__).parent / "recordings"


def cases(tool: str, begin: str = "") -> list[Any]:
    """All cases of a tool whose name begins like that, as parameters for pytest."""
    paths = sorted(RECORDINGS.glob(f"*/{tool}/{begin}*.txt"))
    return [pytest.param(path, id=f"{path.parts[-3]}-{path.stem}") for path in paths]


def printed(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def meant(path: Path) -> Any:
    return json.loads(path.with_suffix(".json").read_text("utf-8"))
