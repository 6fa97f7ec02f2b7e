"""results/boards/: what was learned of boards, a file a board, each whole or not there."""

import json
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from farm.errors import StoreError
from farm.model.record import Record
from farm.pipeline.lab import Lab
from farm.store.durable import make_folder, write_whole

R = TypeVar("R", bound=Record)


def note_path(lab: Lab, board: str, kind: str = "") -> Path:
    """Where the note of a board lies: ``<board>.json``, or ``<board>.<kind>.json``."""
    name = f"{board}.{kind}.json" if kind else f"{board}.json"
    return lab.workspace.results_dir / "boards" / name


def write_note(path: Path, note: Record) -> None:
    """Write it durably, in place of the one before. Raises StoreError."""
    text = json.dumps(note.model_dump(mode="json"), indent=1) + "\n"

    def write(target: Path) -> None:
        target.write_text(text, "utf-8")

    try:
        make_folder(path.parent)
        write_whole(path, write)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def read_note(path: Path, kind: type[R]) -> R | None:
    """The note, or None where there is none. Raises StoreError for one that makes no sense."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise StoreError(f"{path} cannot be read: {first}") from error
