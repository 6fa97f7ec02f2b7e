"""Payloads: a folder with ``payload.yaml`` and what it runs. docs/writing-a-payload.md."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from farm.config.document import Document, Problem, config_error
from farm.config.manifest_checks import advice, manifest_problems
from farm.config.payload_files import find_files, matches, pattern_fault
from farm.config.yaml_file import load_document
from farm.errors import ConfigError
from farm.model.parameters import canonical_json
from farm.model.payload import Payload, PayloadFile, PayloadManifest

MANIFEST = "payload.yaml"


def load_payload(folder: Path) -> Payload:
    """Read a manifest, find and hash the payload's files.

    Raises ConfigError with every problem: a payload that cannot work is found before the
    night, not in it.
    """
    document = load_document(folder / MANIFEST)
    manifest = document.validate((), PayloadManifest)
    problems = [
        document.problem(("files", index), f'"{pattern}" {fault}')
        for index, pattern in enumerate(manifest.files)
        if (fault := pattern_fault(pattern)) is not None
    ]
    if problems:
        raise config_error(document.file, problems)
    try:
        files, faults = find_files(folder, manifest.files, MANIFEST)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(folder)) from error
    problems += [document.problem(("files",), fault) for fault in faults]
    problems += _unmatched(document, manifest, files)
    problems += manifest_problems(document, manifest, files, folder.absolute().name)
    if problems:
        raise config_error(document.file, problems)
    return Payload(
        manifest=manifest,
        folder=folder.absolute(),
        files=tuple(files),
        digest=payload_digest(manifest, files),
    )


def load_payloads(folders: Sequence[Path]) -> dict[str, Payload]:
    """All payloads that lie in the folders, by name; later folders override earlier ones.

    A folder that does not exist holds none. Raises ConfigError.
    """
    payloads: dict[str, Payload] = {}
    for folder in folders:
        for manifest in sorted(folder.glob(f"*/{MANIFEST}")):
            payloads[manifest.parent.name] = load_payload(manifest.parent)
    return dict(sorted(payloads.items()))


def check_payload(folder: Path) -> list[str]:
    """What is wrong with a payload, or could be better, one line each; empty when all is well."""
    try:
        payload = load_payload(folder)
    except ConfigError as error:
        return str(error).splitlines()
    document = load_document(folder / MANIFEST)
    return [
        f"{document.file}:{line}:{column}: {message}"
        for line, column, message in advice(document, payload.manifest)
    ]


def payload_digest(manifest: PayloadManifest, files: Sequence[PayloadFile]) -> str:
    """SHA-256 over manifest and files. Defaults are left out: a newer farm agrees."""
    content = {
        "manifest": manifest.model_dump(mode="json", exclude_defaults=True),
        "files": [file.model_dump(mode="json") for file in files],
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _unmatched(
    document: Document, manifest: PayloadManifest, files: Sequence[PayloadFile]
) -> list[Problem]:
    return [
        document.problem(("files", index), f'no file matches "{pattern}"')
        for index, pattern in enumerate(manifest.files)
        if not any(matches(file.path, pattern) for file in files)
    ]
