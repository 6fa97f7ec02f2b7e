"""Which outlet a board may be power-cycled at, and who else would lose their power with it."""

from collections.abc import Mapping

from pydantic import JsonValue

from farm.config.secrets import resolve_secret
from farm.drivers.registry import outlet_class
from farm.interfaces.outlet import Outlet
from farm.model.board import Board, Inventory, MeterSpec
from farm.pipeline.lab import Lab

CHANNEL_OPTIONS = ("id", "channel", "outlet", "unit", "cord", "child", "device", "entity", "topic")
"""By these drivers tell the outlets of one device apart."""

PlugKey = tuple[str, str, int | None, tuple[str, ...]]


def plug_of(spec: MeterSpec) -> PlugKey:
    """Equal for two entries that may mean one plug: kind, address and channel."""
    options: Mapping[str, JsonValue] = spec.options
    channel = tuple(str(options.get(name, 0)) for name in CHANNEL_OPTIONS)
    return spec.kind, (spec.host or spec.name).lower().rstrip("."), spec.port, channel


def sharers(inventory: Inventory, board: Board) -> tuple[str, ...]:
    """The other boards behind the board's outlet, whatever they call it.

    A board that is metered by a plug is fed through it, whether or not it names it as its outlet.
    """
    if board.outlet is None:
        return ()
    plug = plug_of(inventory.meter(board.outlet))
    return tuple(
        other.name
        for other in inventory.boards
        if other.name != board.name
        and any(
            name is not None and plug_of(inventory.meter(name)) == plug
            for name in (other.outlet, other.meter)
        )
    )


def open_outlet(lab: Lab, board: Board) -> Outlet | None:
    """The board's outlet, not yet opened; None where the inventory names none.

    Raises ConfigError for options that are wrong, DriverError for a kind without outlets.
    """
    if board.outlet is None:
        return None
    spec = lab.inventory.meter(board.outlet)
    outlet_type = outlet_class(spec.kind)
    options = lab.document.validate(("meters", spec.name, "options"), outlet_type.Options)
    secret = resolve_secret(spec.secret) if spec.secret else None
    return outlet_type(spec, options, secret)
