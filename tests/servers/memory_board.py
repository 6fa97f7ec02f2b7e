"""A board in memory for what asks it by short commands and files; its answers are a subclass's."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from farm.interfaces.agent import BoardCommands
from farm.interfaces.transport import CommandResult

NO_SUDO = b"sudo: a password is required\n"


@dataclass(frozen=True, slots=True)
class Told:
    """How a command ended and what it printed."""

    status: int = 0
    stdout: bytes = b""
    stderr: bytes = b""


class MemoryBoard(BoardCommands):
    """Commands that take no time. `files` are by path; what is not there is not readable."""

    files: dict[str, str]

    @abstractmethod
    def answer(self, argv: Sequence[str], stdin: bytes, *, needs_root: bool) -> Told:
        """What the board says to a command."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 30.0,
        needs_root: bool = False,
        needs_tty: bool = False,
        stdin: bytes = b"",
    ) -> CommandResult:
        told = self.answer(argv, stdin, needs_root=needs_root)
        return CommandResult(tuple(argv), told.status, told.stdout, told.stderr, 0.0)

    async def read_text(self, path: str) -> str | None:
        return self.files.get(path)
