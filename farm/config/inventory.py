"""``inventory.yaml`` becomes an `Inventory`.

.. code-block:: yaml

    defaults: {user: nvidia, identity_file: keys/id_ed25519}
    groups:
      tx2: {profile: jetson-tx2, tags: [gpu]}
    boards:
      tx2-[01..40]: {group: tx2, host: "10.0.0.{n:d+100}", meter: "plug-{n}"}
    meter_defaults: {kind: shelly}
    meters:
      plug-[01..40]: {host: "10.0.1.{n:d+100}"}
    notify:
      - {kind: webhook, on: [end, first_failure], url: "env:FARM_WEBHOOK"}

A board's own fields win over its groups' (later groups over earlier ones, a group over its own
``groups``), those over the defaults; tags are united. `farm.config.ranges` tells the rules of
ranges and placeholders. Relative paths begin at the inventory's folder.
"""

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from farm.config.document import Document, ModelT, Problem, config_error
from farm.config.expansion import expand_inventory
from farm.config.inventory_checks import board_problems, meter_problems, notify_problems
from farm.config.secrets import anchored
from farm.config.yaml_file import load_document
from farm.model.board import Board, ConnectionLimits, Inventory, MeterSpec
from farm.model.notify import NotifySpec
from farm.model.profile import BoardProfile
from farm.model.record import Record

_Section = dict[str, dict[str, JsonValue] | None]


class InventoryFile(Record):
    """The file's top. What stands in the sections is validated board by board, once merged."""

    defaults: dict[str, JsonValue] | None = None
    groups: _Section | None = None
    boards: _Section | None
    meter_defaults: dict[str, JsonValue] | None = None
    meters: _Section | None = None
    limits: dict[str, JsonValue] | None = None
    notify: list[dict[str, JsonValue]] | None = None


def load_inventory(path: Path, profiles: Mapping[str, BoardProfile]) -> Inventory:
    """Read an inventory. Raises ConfigError with every problem at its line and column."""
    return load_inventory_document(path, profiles)[0]


def load_inventory_document(
    path: Path, profiles: Mapping[str, BoardProfile]
) -> tuple[Inventory, Document]:
    """Read an inventory, and keep where everything stands.

    In the document returned ranges are expanded and layers merged:
    ``document.validate(("meters", "plug-01", "options"), Options)`` finds the options of each
    meter, and a fault in them points at the line that they came from. Raises ConfigError.
    """
    source = load_document(path)
    source.validate((), InventoryFile)
    document, problems = expand_inventory(source)
    boards, board_faults = _parse_all(document, "boards", Board, also_valid=("group",))
    meters, meter_faults = _parse_all(document, "meters", MeterSpec)
    limits, limit_faults = document.parse(("limits",), ConnectionLimits)
    notify, notify_faults = _parse_notify(document)
    problems += board_faults + meter_faults + limit_faults + _unused_group_faults(document)
    problems += notify_faults + notify_problems(document, notify)
    problems += board_problems(document, boards, profiles)
    problems += meter_problems(document, meters)
    if problems or limits is None:
        raise config_error(document.file, problems)
    folder = path.absolute().parent
    inventory = Inventory(
        boards=tuple(_anchor_board(board, folder) for board in boards),
        meters=tuple(_anchor_meter(meter, folder) for meter in meters),
        limits=limits,
        notify=tuple(_anchor_notify(one, folder) for one in notify.values()),
    )
    return inventory, document


def _parse_all(
    document: Document, section: str, model: type[ModelT], also_valid: tuple[str, ...] = ()
) -> tuple[list[ModelT], list[Problem]]:
    """Every entry of a section that holds, and the problems of the others."""
    entries: list[ModelT] = []
    problems: list[Problem] = []
    for name in document.mapping((section,)):
        entry, faults = document.parse(
            (section, name), model, given={"name": name}, also_valid=also_valid
        )
        problems += faults
        if entry is not None:
            entries.append(entry)
    return entries, problems


def _parse_notify(document: Document) -> tuple[dict[int, NotifySpec], list[Problem]]:
    """The entries of ``notify:`` that hold, by their place: they have no names."""
    entries: dict[int, NotifySpec] = {}
    problems: list[Problem] = []
    given = document.get(("notify",))
    for index in range(len(given) if isinstance(given, list) else 0):
        entry, faults = document.parse(("notify", index), NotifySpec)
        problems += faults
        if entry is not None:
            entries[index] = entry
    return entries, problems


def _unused_group_faults(document: Document) -> list[Problem]:
    """A group that no board uses is checked as if a board did, so that it works when one does."""
    problems: list[Problem] = []
    for name, fields in document.mapping(("groups",)).items():
        needed = ("name", "profile", "host", "user")
        present = fields if isinstance(fields, dict) else {}
        given: dict[str, JsonValue] = {
            key: "x" for key in needed if key not in present or key == "name"
        }
        _, faults = document.parse(("groups", name), Board, given=given, also_valid=("groups",))
        problems += faults
    return problems


def _anchor_board(board: Board, folder: Path) -> Board:
    """Paths made absolute; known hosts lie beside the inventory unless told otherwise."""
    identity = board.identity_file
    return board.model_copy(
        update={
            "identity_file": None if identity is None else _anchored_path(identity, folder),
            "known_hosts": _anchored_path(board.known_hosts or Path("known_hosts"), folder),
            "password": None if board.password is None else anchored(board.password, folder),
        }
    )


def _anchor_meter(meter: MeterSpec, folder: Path) -> MeterSpec:
    if meter.secret is None:
        return meter
    return meter.model_copy(update={"secret": anchored(meter.secret, folder)})


def _anchor_notify(spec: NotifySpec, folder: Path) -> NotifySpec:
    if spec.url is None:
        return spec
    return spec.model_copy(update={"url": anchored(spec.url, folder)})


def _anchored_path(path: Path, folder: Path) -> Path:
    try:
        return folder / path.expanduser()
    except RuntimeError:  # "~nobody": no such user; opening it will say so
        return folder / path
