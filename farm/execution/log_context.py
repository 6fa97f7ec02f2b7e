"""Which board a line of the host's log is about: set by its lane, inherited by all it starts."""

from contextvars import ContextVar

BOARD: ContextVar[str] = ContextVar("farm_board", default="")
