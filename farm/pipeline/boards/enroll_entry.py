"""The entry of a board to be enrolled: what the inventory says, or shall say."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from farm.config.yaml_file import load_document
from farm.errors import ConfigError
from farm.model.board import Board
from farm.pipeline.lab import Lab

KNOWN_HOSTS, KEY = ".farm/known_hosts", ".farm/keys/id_ed25519"
"""Below the workspace, where the inventory's defaults and the user name no other."""

UNKNOWN_PROFILE = "generic-linux"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked for. `profile` and `fingerprint`: "" where they are to be found out."""

    name: str
    user: str
    host: str
    port: int = 22
    key: Path | None = None
    profile: str = ""
    fingerprint: str = ""
    has_sudoers: bool = True
    is_dry: bool = False


def known_board(lab: Lab, wanted: Wanted) -> Board | None:
    """The board, if the inventory has it so. Raises ConfigError if it has it otherwise."""
    address = (wanted.host, wanted.port)
    for board in lab.inventory.boards:
        is_same = (board.host, board.port) == address
        if board.name == wanted.name:
            if is_same and board.user == wanted.user:
                return board
            where = f"{board.user}@{board.host}:{board.port}"
            raise ConfigError(f"there is a board {board.name!r} already, at {where}")
        if is_same:
            raise ConfigError(f"{wanted.host}:{wanted.port} is {board.name!r} already")
    return None


def new_board(lab: Lab, wanted: Wanted) -> Board:
    """A board that the inventory does not have yet."""
    return Board(
        name=wanted.name,
        profile=wanted.profile or UNKNOWN_PROFILE,
        host=wanted.host,
        port=wanted.port,
        user=wanted.user,
        identity_file=key_of(lab, wanted),
        known_hosts=lab.workspace.root / KNOWN_HOSTS,
    )


def key_of(lab: Lab, wanted: Wanted) -> Path:
    """The private key to log in with: the one that was named, or the workspace's own."""
    return (wanted.key or lab.workspace.root / KEY).expanduser().absolute()


def fields_of(lab: Lab, board: Board) -> dict[str, JsonValue]:
    """What the inventory must say, whatever its defaults are."""
    root = lab.workspace.root.absolute()
    fields: dict[str, JsonValue] = {
        "profile": board.profile,
        "host": board.host,
        "port": board.port,
        "user": board.user,
        "identity_file": _below(board.identity_file, root),
        "known_hosts": _below(board.known_hosts, root),
    }
    defaults = load_document(lab.workspace.inventory_path).mapping(("defaults",))
    return fields | {name: None for name in ("simulation", "password") if name in defaults}


def _below(path: Path | None, root: Path) -> JsonValue:
    if path is None:
        return None
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
