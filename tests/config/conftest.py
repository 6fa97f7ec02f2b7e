"""Small payloads and profiles for the tests of what reads files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from farm.model.profile import BoardProfile

MakePayload = Callable[..., Path]


@pytest.fixture
def profiles() -> dict[str, BoardProfile]:
    return {
        name: BoardProfile(name=name, summary="a board", cores=4)
        for name in ("jetson-tx2", "zcu104")
    }


@pytest.fixture
def make_payload(tmp_path: Path) -> MakePayload:
    """Makes ``tmp_path/payloads/NAME`` with a manifest and files."""

    def make(manifest: str, name: str = "demo", files: tuple[str, ...] = ("run.py",)) -> Path:
        folder = tmp_path / "payloads" / name
        folder.mkdir(parents=True)
        (folder / "payload.yaml").write_text(manifest)
        for path in files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(f"# {path}\n")
        return folder

    return make
