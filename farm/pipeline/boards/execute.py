"""Any command on many boards at once, its lines as they come."""

from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farm.errors import CommandTimeoutError
from farm.model.board import Board
from farm.pipeline.boards.reach import Answer, context_of, link_to, on_each
from farm.pipeline.lab import Lab

LONGEST_LINE = 8192
"""Characters; what a board prints without a line end is shown in pieces of this."""

Show = Callable[[str, str, bool], None]
"""Told of each line: the board's name, the line without its end, whether it is of stderr."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command ended on one board: below 0 is minus a signal."""

    exit_status: int


class Lines:
    """Cuts chunks of bytes into lines, however long they are and wherever they are split."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._rest = show, ""
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def take(self, data: bytes) -> None:
        """More bytes."""
        self._add(self._decoder.decode(data))

    def end(self) -> None:
        """Show what has no line end."""
        self._add(self._decoder.decode(b"", final=True))
        if self._rest:
            self._show(self._rest)
            self._rest = ""

    def _add(self, text: str) -> None:
        *lines, rest = (self._rest + text).split("\n")
        for line in lines:
            self._show(line.removesuffix("\r"))
        while len(rest) > LONGEST_LINE:
            self._show(rest[:LONGEST_LINE])
            rest = rest[LONGEST_LINE:]
        self._rest = rest


async def execute(
    lab: Lab, boards: Sequence[Board], argv: Sequence[str], show: Show, *, timeout_s: float
) -> list[Answer[Ended]]:
    """Run argv on each board, without a shell of ours, stdin closed; nothing is tried twice.

    It needs no Python on the board. `timeout_s` is for the command; it is ended then.
    """
    context = context_of(lab)

    async def run(board: Board) -> Ended:
        out = Lines(lambda line: show(board.name, line, False))
        err = Lines(lambda line: show(board.name, line, True))
        async with link_to(board, context) as link:
            stream = await link.stream(argv, out.take, err.take)
            try:
                stream.end_input()
                return Ended(await stream.wait(timeout_s))
            except CommandTimeoutError as error:
                error.remedy = "Give it more with --timeout, or look at what loads the board"
                raise
            finally:
                await stream.close()
                out.end()
                err.end()

    return await on_each(boards, run)
