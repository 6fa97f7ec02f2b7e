"""A login shell of one board in the user's terminal."""

from farm.config.secrets import resolve_secret
from farm.drivers.registry import INSTALL
from farm.errors import DriverError
from farm.model.board import Board
from farm.pipeline.boards.reach import context_of
from farm.pipeline.lab import Lab


async def open_shell_on(lab: Lab, board: Board) -> int:
    """Connect the terminal with the board until the shell ends; its exit status.

    Raises DriverError where fabric is not installed, and what connecting raises.
    """
    try:
        from farm.drivers.transports.fabric_shell import (  # noqa: PLC0415 - an extra may be missing
            open_shell,
        )
    except ModuleNotFoundError as error:
        library = (error.name or "fabric").partition(".")[0]
        command = INSTALL.get(library, f"pip install {library}")
        raise DriverError(f"a shell needs the library {library}: run `{command}`") from error
    password = resolve_secret(board.password) if board.password else None
    return await open_shell(board, context_of(lab), password=password)
