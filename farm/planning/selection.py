"""Selectors -> boards: names, globs, ``tag:``, ``profile:``, ``all``; ``!`` excludes.

The same words select boards in a sweep and on the command line.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from farm.errors import ConfigError
from farm.model.board import Board


def select_boards(boards: Sequence[Board], selectors: Sequence[str]) -> tuple[Board, ...]:
    """The boards that `selectors` name, in the order of `boards`, each once.

    Boards in maintenance are left out, also when named; `boards_in_maintenance` tells which.
    Selectors that only exclude (and none at all) begin with all boards.

    Args:
        boards: the inventory's boards.
        selectors: a name, a glob on names (``tx2-*``), ``tag:T``, ``profile:P``, ``all``;
            with ``!`` before it what it matches is taken out, wherever it stands.

    Raises:
        ConfigError: a selector matches no board of the inventory; names the nearest words.
    """
    return tuple(b for b in _match_all(boards, selectors) if not b.is_maintenance)


def boards_in_maintenance(boards: Sequence[Board], selectors: Sequence[str]) -> tuple[Board, ...]:
    """The boards that `selectors` name and `select_boards` leaves out. Raises ConfigError."""
    return tuple(b for b in _match_all(boards, selectors) if b.is_maintenance)


def nearest(word: str, known: Sequence[str]) -> str:
    """``; did you mean a, b?`` with the words most like `word`, or "" when none is near."""
    near = get_close_matches(word, list(dict.fromkeys(known)), n=3, cutoff=0.5)
    return f"; did you mean {', '.join(near)}?" if near else ""


def _match_all(boards: Sequence[Board], selectors: Sequence[str]) -> tuple[Board, ...]:
    wanted: set[str] = set()
    unwanted: set[str] = set()
    for selector in selectors:
        matched = _match_one(boards, selector.removeprefix("!"))
        (unwanted if selector.startswith("!") else wanted).update(matched)
    if all(selector.startswith("!") for selector in selectors):
        wanted = {board.name for board in boards}
    return tuple(b for b in boards if b.name in wanted and b.name not in unwanted)


def _match_one(boards: Sequence[Board], selector: str) -> set[str]:
    kind, _, value = selector.partition(":")
    if selector == "all":
        return {board.name for board in boards}
    if kind == "tag" and value:
        matched = {board.name for board in boards if value in board.tags}
    elif kind == "profile" and value:
        matched = {board.name for board in boards if board.profile == value}
    else:
        matched = {board.name for board in boards if board.name == selector}
        matched = matched or {b.name for b in boards if fnmatchcase(b.name, selector)}
    if not matched:
        raise ConfigError(
            f"no board matches {selector!r}{nearest(selector, _words(boards))}"
            " (allowed: a board's name, a glob, tag:T, profile:P, all, each with ! to exclude)"
        )
    return matched


def _words(boards: Sequence[Board]) -> list[str]:
    names = [board.name for board in boards]
    profiles = [f"profile:{board.profile}" for board in boards]
    tags = [f"tag:{tag}" for board in boards for tag in board.tags]
    return [*names, *profiles, *tags, "all"]
