"""What must hold between the entries of an inventory. Pure; problems carry their place."""

import re
from collections.abc import Mapping, Sequence

from farm.config.document import Document, Location, Problem
from farm.config.model_errors import unknown
from farm.config.ranges import has_placeholder
from farm.config.secrets import ALLOWED, is_reference
from farm.model.board import Board, MeterSpec
from farm.model.notify import NotifySpec
from farm.model.profile import BoardProfile

_HOST = re.compile(r"[A-Za-z0-9_\[:][A-Za-z0-9_.:%\]-]*")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def board_problems(
    document: Document, boards: Sequence[Board], profiles: Mapping[str, BoardProfile]
) -> list[Problem]:
    """Unknown profiles, meters and outlets; addresses given twice; passwords in the open."""
    meters = list(document.mapping(("meters",)))
    problems: list[Problem] = []
    owners: dict[tuple[str, int], str] = {}
    for board in boards:
        here: Location = ("boards", board.name)
        if board.profile not in profiles:
            message = unknown("profile", board.profile, profiles)
            problems.append(document.problem((*here, "profile"), message))
        for key, name in (("meter", board.meter), ("outlet", board.outlet)):
            if name is not None and name not in meters:
                message = unknown("meter" if key == "meter" else "outlet", name, meters)
                problems.append(document.problem((*here, key), message))
        problems += _secret_problem(document, (*here, "password"), board.password)
        problems += _word_problems(document, here, board)
        address = (board.host.lower(), board.port)
        owner = owners.setdefault(address, board.name)
        if owner != board.name:
            message = (
                f'boards "{owner}" and "{board.name}" have the same address '
                f"{board.host}:{board.port}"
            )
            problems.append(document.problem((*here, "host"), message))
    return problems


def meter_problems(document: Document, meters: Sequence[MeterSpec]) -> list[Problem]:
    """Secrets in the open; bounds that no reading can meet."""
    problems: list[Problem] = []
    for meter in meters:
        here: Location = ("meters", meter.name)
        problems += _secret_problem(document, (*here, "secret"), meter.secret)
        if meter.min_w >= meter.max_w:
            key = "max_w" if (*here, "max_w") in document.spots else "min_w"
            message = f'"min_w" ({meter.min_w:g}) should be below "max_w" ({meter.max_w:g})'
            problems.append(document.problem((*here, key), message))
    return problems


def notify_problems(document: Document, notify: Mapping[int, NotifySpec]) -> list[Problem]:
    """Addresses in the open: whoever knows one may write there."""
    problems: list[Problem] = []
    for index, spec in notify.items():
        problems += _secret_problem(document, ("notify", index, "url"), spec.url)
    return problems


def _word_problems(document: Document, here: Location, board: Board) -> list[Problem]:
    """Hosts, users and tags that would mean something else on a command line."""
    problems: list[Problem] = []
    if not _HOST.fullmatch(board.host) and not has_placeholder(board.host):
        message = '"host" should be a host name or an address alone, without user, port or blanks'
        problems.append(document.problem((*here, "host"), message))
    if board.user.startswith("-") or not board.user or re.search(r"[\s@/:]", board.user):
        problems.append(document.problem((*here, "user"), '"user" should be a login name'))
    for index, tag in enumerate(board.tags):
        if not _TAG.fullmatch(tag):
            message = f'the tag "{tag}" should be of letters, digits, ".", "_", "-"'
            problems.append(document.problem((*here, "tags", index), message))
    return problems


def _secret_problem(document: Document, location: Location, value: str | None) -> list[Problem]:
    """A secret that stands in the file itself; the message does not repeat it."""
    if value is None or is_reference(value):
        return []
    message = (
        f'"{location[-1]}" should be a reference: {ALLOWED}; '
        "the secret itself does not belong in this file"
    )
    return [document.problem(location, message)]
