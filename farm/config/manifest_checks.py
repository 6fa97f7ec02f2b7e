"""What must hold within a payload's manifest, and between it and its files. Pure."""

import re
from collections.abc import Iterator, Sequence

from farm.config.document import Document, Location, Problem
from farm.config.model_errors import unknown
from farm.config.payload_files import pattern_fault
from farm.errors import ConfigError
from farm.model.payload import Parameter, PayloadFile, PayloadManifest
from farm.model.record import Scalar
from farm.planning.rules import RESERVED
from farm.planning.values import fill_parameters

_PAYLOAD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = "FARM_"
_SCRIPT = re.compile(r"(?:\./)?[^/\-{][^{}]*\.(?:py|sh)")


def manifest_problems(
    document: Document, manifest: PayloadManifest, files: Sequence[PayloadFile], folder: str
) -> list[Problem]:
    """Everything that would make the payload fail on a board; each problem has its place."""
    problems: list[Problem] = []
    if not _PAYLOAD_NAME.fullmatch(manifest.name) or manifest.name != folder:
        message = f'"name" should be that of the folder, "{folder}", not "{manifest.name}"'
        problems.append(document.problem(("name",), message))
    problems += _command_problems(document, manifest, files)
    for name, parameter in manifest.parameters.items():
        problems += _parameter_problems(document, manifest, name, parameter)
    problems += _metric_problems(document, manifest)
    for index, pattern in enumerate(manifest.artifacts):
        fault = pattern_fault(pattern)
        if fault is not None:
            place: Location = ("artifacts", index)
            problems.append(document.problem(place, f'"{pattern}" {fault}'))
    for name in manifest.environment:
        if not _VARIABLE.fullmatch(name) or name.startswith(_OURS):
            message = f'"{name}" is no name for a variable of a payload ({_OURS}* is ours)'
            problems.append(document.problem(("environment", name), message, at_key=True))
    return problems


def advice(document: Document, manifest: PayloadManifest) -> Iterator[Problem]:
    """What works, but not well."""
    if not manifest.metrics:
        yield document.problem(("metrics",), "no metric is promised: nothing can be compared")
    elif manifest.inferences is None:
        message = '"inferences" names no metric: no energy per inference can be told'
        yield document.problem(("inferences",), message)
    for name, parameter in manifest.parameters.items():
        if not parameter.summary:
            message = f'the parameter "{name}" has no summary'
            yield document.problem(("parameters", name), message, at_key=True)


def value_fault(manifest: PayloadManifest, name: str, value: Scalar) -> str | None:
    """Why a parameter may not have this value, or None. The rules are those of planning."""
    alone = manifest.model_copy(update={"parameters": {name: manifest.parameters[name]}})
    try:
        fill_parameters(alone, {name: value})
    except ConfigError as error:
        return error.message
    return None


def _command_problems(
    document: Document, manifest: PayloadManifest, files: Sequence[PayloadFile]
) -> Iterator[Problem]:
    """Scripts that the command names and the payload has not, or not executable."""
    known = {file.path: file for file in files}
    for index, word in enumerate(manifest.command):
        place: Location = ("command", index)
        path = word.removeprefix("./")
        is_program = index == 0 and "/" in word and not word.startswith("/")
        if not (is_program or _SCRIPT.fullmatch(word)):
            continue
        if path not in known:
            yield document.problem(place, unknown("file", path, known))
        elif is_program and not known[path].is_executable:
            yield document.problem(place, f'"{path}" is not executable; run: chmod +x {path}')


def _parameter_problems(
    document: Document, manifest: PayloadManifest, name: str, parameter: Parameter
) -> Iterator[Problem]:
    here: Location = ("parameters", name)
    if not _WORD.fullmatch(name) or name in RESERVED:
        message = (
            f'"{name}" is no name for a parameter: use letters, digits and "_"; '
            f"{', '.join(RESERVED)} have a meaning of their own"
        )
        yield document.problem(here, message, at_key=True)
    bounds = [key for key in ("minimum", "maximum") if getattr(parameter, key) is not None]
    if bounds and parameter.type not in ("int", "float"):
        message = f'"{bounds[0]}" is for numbers, and "{name}" is a {parameter.type}'
        yield document.problem((*here, bounds[0]), message)
        return
    if len(bounds) == 2 and (parameter.minimum or 0) > (parameter.maximum or 0):  # noqa: PLR2004
        message = f'"minimum" of "{name}" is above its "maximum"'
        yield document.problem((*here, "minimum"), message)
        return
    for index, choice in enumerate(parameter.choices):
        fault = value_fault(manifest, name, choice)
        if fault is not None:
            yield document.problem((*here, "choices", index), fault)
        elif choice in parameter.choices[:index]:
            message = f"the choice {choice!r} is given twice"
            yield document.problem((*here, "choices", index), message)
    if parameter.default is not None:
        fault = value_fault(manifest, name, parameter.default)
        if fault is not None:
            yield document.problem((*here, "default"), fault)


def _metric_problems(document: Document, manifest: PayloadManifest) -> Iterator[Problem]:
    for name in manifest.metrics:
        if not _WORD.fullmatch(name):
            message = f'"{name}" is no name for a metric: use letters, digits and "_"'
            yield document.problem(("metrics", name), message, at_key=True)
    if manifest.inferences is not None and manifest.inferences not in manifest.metrics:
        message = unknown("metric", manifest.inferences, manifest.metrics)
        yield document.problem(("inferences",), message)
