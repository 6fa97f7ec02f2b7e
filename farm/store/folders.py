"""An attempt's folder: what a board sent and the host measured, with a manifest of hashes."""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from farm.errors import StoreError
from farm.model.attempt import AttemptRecord, FileRecord
from farm.store.failures import file_errors
from farm.store.runs import safe_name

MANIFEST = "attempt.json"
MANIFEST_SCHEMA = 1
TRACE_LOG = "power.jsonl"
EARLIER_LOG = "power-earlier-boot.jsonl"
TRACE = "power.parquet"

_CHUNK = 1024 * 1024


def run_folder(results: Path, run_id: str) -> Path:
    """``runs/<run>`` below the results folder. Raises StoreError for a hostile id."""
    return results / "runs" / safe_name(run_id, "run")


def attempt_folder(results: Path, run_id: str, attempt_id: str) -> Path:
    """``runs/<run>/attempts/<attempt>``. Raises StoreError for a hostile id."""
    return run_folder(results, run_id) / "attempts" / safe_name(attempt_id, "attempt")


def write_manifest(folder: Path, record: AttemptRecord) -> None:
    """Write ``attempt.json``: the record, and each file with the hash of what lies there.

    Nothing is flushed: the writer does that once for all that it commits together. Raises
    StoreError if a file that came from the board is missing or differs: the board's copy is
    removed once the attempt is committed, so this is the last moment to notice.
    """
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files = {file.path: file for file in _files(folder)}
        for told in record.files:
            found = files.get(told.path)
            if found is None or (found.size, found.sha256) != (told.size, told.sha256):
                what = "missing" if found is None else "not what the board sent"
                raise StoreError(f"{folder / told.path}: {what}; the attempt was not committed")
            files[told.path] = told
        manifest = {
            "schema": MANIFEST_SCHEMA,
            "record": record.model_dump(mode="json"),
            "files": [files[path].model_dump(mode="json") for path in sorted(files)],
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1)
        unfinished = folder / f".{MANIFEST}.part"
        unfinished.write_bytes(text.encode("utf-8", "replace"))
        unfinished.replace(folder / MANIFEST)


def _files(folder: Path) -> Iterator[FileRecord]:
    """All regular files except our own two; links are not followed, whatever made them."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            relative = path.relative_to(folder).as_posix()
            if relative in (MANIFEST, TRACE_LOG) or name.endswith(".part"):
                continue
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                yield FileRecord(path=relative, size=status.st_size, sha256=_sha256(path))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
