"""YAML text becomes a `Document`: plain data and the place of every value.

YAML 1.2 by ruamel.yaml: ``22:30`` and ``on`` stay text, a key given twice is refused. Every
fault is a `ConfigError` with file, line and column. No message repeats a value, for it may be
a password.
"""

import re
import warnings
from datetime import date
from math import isfinite
from pathlib import Path

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedBase, CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLWarning
from ruamel.yaml.reader import ReaderError

from farm.config.document import Document, Location, ModelT, Problem, Spot, config_error
from farm.errors import ConfigError

MAX_BYTES = 4 * 1024 * 1024
"""An inventory of 2,000 boards is 0.2 MB; more than this is not one of our files."""

MAX_VALUES = 100_000
"""Aliases can make a small file unfold without end."""

_BROKEN = (ValueError, TypeError, AttributeError, AssertionError, LookupError, RecursionError)
"""What ruamel.yaml also raises on broken text (a huge number, a wrong tag, deep nesting)."""


def load_document(path: Path) -> Document:
    """Read a YAML file whose top is a mapping. Raises ConfigError."""
    return parse_document(_read(path), str(path))


def load_model(path: Path, model: type[ModelT]) -> ModelT:
    """Read a YAML file as one model. Raises ConfigError with every problem."""
    return load_document(path).validate((), model)


def parse_document(text: str, file: str) -> Document:
    """The document that a text describes; `file` is its name in messages. Raises ConfigError."""
    loader = YAML(typ="rt", pure=True)
    loader.allow_duplicate_keys = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", YAMLWarning)
            root = loader.load(text)
        if root is None:
            raise ConfigError("the file is empty; it should be a mapping", file=file)
        if not isinstance(root, CommentedMap):
            message = f'the file should be a mapping (lines of "key: value"), not {_kind(root)}'
            raise ConfigError(message, file=file, line=1, column=1)
        plain = _Plain(file)
        data = plain.mapping(root, ())
    except YAMLError as error:
        raise _syntax_error(error, text, file) from None
    except _BROKEN as error:
        # The text of these may hold a value of the file: only their kind is told.
        what = "it is nested too deeply" if isinstance(error, RecursionError) else "a broken value"
        raise ConfigError(f"not readable as YAML: {what}", file=file) from None
    if plain.problems:
        raise config_error(file, plain.problems)
    return Document(file, data, plain.spots)


def _read(path: Path) -> str:
    file = str(path)
    try:
        if path.is_dir():
            raise ConfigError("this is a folder, a YAML file is needed", file=file)
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError("no such file", file=file) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=file) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024**2} MB; is this the file?", file=file)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        begin = raw.rfind(b"\n", 0, error.start) + 1
        column = len(raw[begin : error.start].decode("utf-8", "replace")) + 1
        message = f"not UTF-8 text: byte 0x{raw[error.start]:02x}; save the file as UTF-8"
        raise ConfigError(message, file=file, line=line, column=column) from None


def _syntax_error(error: YAMLError, text: str, file: str) -> ConfigError:
    """Ruamel's complaint with its place, without what it repeats of the file."""
    if isinstance(error, ReaderError):
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        message = f"a character that YAML does not allow: U+{error.character:04X}"
        return ConfigError(message, file=file, line=line, column=column)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
    problem = str(getattr(error, "problem", None) or "broken text")
    context = str(getattr(error, "context", None) or "")
    if isinstance(error, DuplicateKeyError):
        found = re.search(r'duplicate key "(.*?)" with value', problem)
        name = f' "{found[1]}"' if found else ""
        return ConfigError(
            f"the key{name} is given twice here", file=file, line=line, column=column
        )
    if "alias" in problem:
        problem = 'an alias that no anchor defines; quote text that begins with "*"'
    elif "tab" in problem or "'\\t'" in problem:
        problem = "a tab character where YAML wants blanks; indent with blanks"
    elif isinstance(error, MarkedYAMLError) and context.startswith("while "):
        problem = f"{problem} ({context})"
    return ConfigError(f"not valid YAML: {problem}", file=file, line=line, column=column)


def _kind(value: object) -> str:
    return "a list" if isinstance(value, CommentedSeq) else "a single value"


class _Plain:
    """Turns ruamel's tree into plain data and remembers where each value stood."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.spots: dict[Location, Spot] = {}
        self.problems: list[Problem] = []

    def mapping(self, node: CommentedMap, location: Location) -> dict[str, JsonValue]:
        result: dict[str, JsonValue] = {}
        for key, value in node.items():
            spot = self._spot(node, key, location)
            if isinstance(key, str):
                place = (*location, key)
                self._keep(place, spot)
                result[key] = self._value(value, place, spot)
            else:
                message = "a key should be text; put it in quotes"
                self.problems.append(Problem(*spot.key, message))
        return result

    def _sequence(self, node: CommentedSeq, location: Location) -> list[JsonValue]:
        result: list[JsonValue] = []
        for index, value in enumerate(node):
            line, column = node.lc.item(index)
            spot = Spot((line + 1, column + 1), (line + 1, column + 1))
            place = (*location, index)
            self._keep(place, spot)
            result.append(self._value(value, place, spot))
        return result

    def _keep(self, place: Location, spot: Spot) -> None:
        self.spots[place] = spot
        if len(self.spots) > MAX_VALUES:
            raise ConfigError(f"more than {MAX_VALUES} values", file=self.file)

    def _spot(self, node: CommentedMap, key: object, location: Location) -> Spot:
        if key in (node.lc.data or {}):
            key_line, key_column, line, column = node.lc.data[key]
            return Spot((key_line + 1, key_column + 1), (line + 1, column + 1))
        # A merged key (<<) stands elsewhere; the mapping that merges it is the next best.
        return self.spots.get(location, Spot((1, 1), (1, 1)))

    def _value(self, value: object, place: Location, spot: Spot) -> JsonValue:
        if isinstance(value, TaggedScalar) or (
            isinstance(value, CommentedBase) and value.tag.value is not None
        ):
            return self._refuse(spot, 'tags are not used here; quote text that begins with "!"')
        if isinstance(value, CommentedMap):
            return self.mapping(value, place)
        if isinstance(value, CommentedSeq):
            return self._sequence(value, place)
        return self._scalar(value, spot)

    def _scalar(self, value: object, spot: Spot) -> JsonValue:
        if isinstance(value, float) and not isfinite(value):
            return self._refuse(spot, "not a finite number")
        if isinstance(value, str) and _has_surrogate(value):
            return self._refuse(spot, "half of a character (a lone surrogate)")
        if isinstance(value, date):
            return self._refuse(spot, "a date or time; put it in quotes to make it text")
        if value is None or isinstance(value, bool):
            return value
        for plain in (int, float, str):
            if isinstance(value, plain):
                return plain(value)  # ruamel's own subclasses end here
        return self._refuse(spot, "a kind of value that is not used here")

    def _refuse(self, spot: Spot, message: str) -> JsonValue:
        self.problems.append(Problem(*spot.value, message))
        return None


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)
