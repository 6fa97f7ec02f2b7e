"""An attempt's folder: what a board sent and the host measured, with a manifest of hashes."""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from farm.errors import StoreError
from farm.model.attempt import FileRecord
from farm.store.documents import to_text
from farm.store.failures import file_errors
from farm.store.runs import safe_name

MANIFEST = "attempt.json"
MANIFEST_SCHEMA = 1
TRACE_LOG = "power.jsonl"
EARLIER_LOG = "power-earlier-boot.jsonl"
TRACE = "power.parquet"


def run_folder(results: Path, run_id: str) -> Path:
    """``runs/<run>`` below the results folder. Raises StoreError for a hostile id."""
    return results / "runs" / safe_name(run_id, "run")


def attempt_folder(results: Path, run_id: str, attempt_id: str) -> Path:
    """``runs/<run>/attempts/<attempt>``. Raises StoreError for a hostile id."""
    return run_folder(results, run_id) / "attempts" / safe_name(attempt_id, "attempt")


def write_manifest(folder: Path, told: Sequence[FileRecord], record_text: str) -> None:
    """Write ``attempt.json``: the record, and each file with the hash of what lies there.

    Nothing is flushed: the writer does that once for all that it commits together. Raises
    StoreError if a file that came from the board is missing or differs: the board's copy is
    removed once the attempt is committed, so this is the last moment to notice.
    """
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files = {file.path: file for file in _files(folder)}
        for file in told:
            found = files.get(file.path)
            if found is None or (found.size, found.sha256) != (file.size, file.sha256):
                what = "missing" if found is None else "not what the board sent"
                raise StoreError(f"{folder / file.path}: {what}; the attempt was not committed")
            files[file.path] = file
        listed = to_text([files[path].model_dump(mode="json") for path in sorted(files)])
        text = f'{{"schema": {MANIFEST_SCHEMA},\n"record": {record_text},\n"files": {listed}}}\n'
        unfinished = folder / f".{MANIFEST}.part"
        unfinished.write_text(text, "utf-8")
        unfinished.replace(folder / MANIFEST)


def _files(folder: Path) -> Iterator[FileRecord]:
    """All regular files except our own two; links are not followed, whatever made them."""
    prefix = len(str(folder)) + 1
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)  # noqa: PTH118 -- hot: all files of all attempts
            relative = path[prefix:]
            if relative in (MANIFEST, TRACE_LOG) or name.endswith(".part"):
                continue
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                yield FileRecord(path=relative, size=status.st_size, sha256=_sha256(path))


def _sha256(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 -- as above
        return hashlib.file_digest(file, "sha256").hexdigest()
