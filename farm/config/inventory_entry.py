"""Adds a board to ``inventory.yaml`` and leaves all the rest as it is, to the last comment.

The entry's text is written by ruamel.yaml, and put in behind the last board: loading and dumping
the whole file would move comments, which belong to the line before them there.
"""

import io
import os
import secrets
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from farm.config.inventory import load_inventory
from farm.errors import ConfigError
from farm.model.board import Board
from farm.model.profile import BoardProfile

INDENT = 2


def entry_text(name: str, fields: Mapping[str, JsonValue], indent: int = INDENT) -> str:
    """The lines of a board as they would stand below ``boards:``."""
    writer = YAML()
    writer.width = 4096
    stream = io.StringIO()
    writer.dump({name: dict(fields)}, stream)
    return textwrap.indent(stream.getvalue(), " " * indent)


def add_board(
    path: Path,
    name: str,
    fields: Mapping[str, JsonValue],
    profiles: Mapping[str, BoardProfile],
) -> Board:
    """Write the board into the inventory, whole or not at all; the board as it is read back.

    Raises ConfigError when there is such a board, when the file's ``boards:`` is written in
    braces, or when the file would not be valid with it.
    """
    path = path.resolve()  # a link stays a link
    if name in {board.name for board in load_inventory(path, profiles).boards}:
        raise ConfigError(
            f"there is a board {name!r} already; choose another name", file=str(path)
        )
    before = path.read_text("utf-8")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.yaml")
    try:
        _write(temporary, _with_entry(before, path, name, fields), path.stat().st_mode & 0o777)
        board = _read_back(temporary, path, profiles, name)
        if path.read_text("utf-8") != before:
            raise ConfigError("somebody else changed it meanwhile; try again", file=str(path))
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"cannot be written: {reason}", file=str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return board


def _read_back(
    temporary: Path, path: Path, profiles: Mapping[str, BoardProfile], name: str
) -> Board:
    try:
        return load_inventory(temporary, profiles).board(name)
    except ConfigError as error:
        raise ConfigError(str(error).replace(str(temporary), str(path))) from None


def _write(path: Path, text: str, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _with_entry(text: str, path: Path, name: str, fields: Mapping[str, JsonValue]) -> str:
    try:
        key, boards = _boards_node(YAML(typ="rt", pure=True).compose(text))
    except (YAMLError, KeyError) as error:
        raise ConfigError("has no boards: to add to", file=str(path)) from error
    lines = text.splitlines(keepends=True)
    if isinstance(boards, MappingNode) and boards.value and not boards.flow_style:
        indent, last = boards.start_mark.column, _last_line(boards)
    elif isinstance(boards, MappingNode) and boards.value:
        raise ConfigError(
            "its boards stand in braces; add this yourself:\n" + entry_text(name, fields),
            file=str(path),
            line=boards.start_mark.line + 1,
        )
    else:  # nothing, or {}
        indent, last = key.start_mark.column + INDENT, boards.end_mark.line
        last = max(key.start_mark.line, min(last, len(lines) - 1))
        last = key.start_mark.line if isinstance(boards, ScalarNode) else last
        lines[last] = lines[last].replace("{}", "", 1)
    if not lines[last].endswith("\n"):
        lines[last] += "\n"
    lines.insert(last + 1, entry_text(name, fields, indent))
    return "".join(lines)


def _boards_node(root: Node) -> tuple[Node, Node]:
    """The key ``boards`` and its value. Raises KeyError."""
    for key, value in root.value:
        if key.value == "boards":
            return key, value
    raise KeyError("boards")


def _last_line(node: Node) -> int:
    """The line, from 0, on which the last thing of a block ends; comments do not count."""
    while isinstance(node, MappingNode | SequenceNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(node, MappingNode) else last
    line: int = node.end_mark.line
    is_block_scalar = isinstance(node, ScalarNode) and node.style in ("|", ">")
    return line - 1 if is_block_scalar else line
