"""What a run's host logged and its payloads printed, also while they still do."""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from farm.errors import ConfigError
from farm.interfaces.sinks import OpenAttempt
from farm.model.board import Board
from farm.pipeline.boards.reach import agent_on, context_of
from farm.pipeline.host_log import HOST_LOG, OLDER_FILES
from farm.pipeline.lab import Lab
from farm.pipeline.show import LOG_FILES
from farm.store.database import Store
from farm.store.failures import file_errors

POLL_S = 0.3
SO_FAR_S = 4.0
"""What a running attempt has printed comes within this, unless the board is very slow."""
FOLLOW_LIMIT_S = 24 * 3600.0
MOST_BYTES = 64 * 1024 * 1024


def host_log_lines(
    store: Store, run_id: str, board: str | None = None, *, follow: bool = False
) -> Iterator[str]:
    """The host's log, oldest line first; of one board, if given.

    `follow`: go on until nobody works on the run. Raises StoreError.
    """
    path = store.run_folder(run_id) / HOST_LOG
    with file_errors(path):
        for number in range(OLDER_FILES, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                yield from _of_board(_lines(path.with_name(f"{HOST_LOG}.{number}")), board)
        if follow:
            yield from _of_board(_followed(path, lambda: store.run_holder(run_id) is None), board)
        elif path.exists():
            yield from _of_board(_lines(path), board)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def _followed(path: Path, is_over: Callable[[], bool]) -> Iterator[str]:
    """Lines as they are written, also across a change to a new file, until `is_over`."""
    while not path.exists():
        if is_over():
            return
        time.sleep(POLL_S)
    while True:
        with path.open("rb") as file:
            part = b""
            while True:
                was_over = is_over()  # asked first: what was written before it is still read
                has_moved = _has_moved(path, file.fileno())
                while chunk := file.readline():
                    part += chunk
                    if part.endswith(b"\n"):
                        yield part.decode("utf-8", "replace")
                        part = b""
                if has_moved:
                    break
                if was_over:
                    return
                time.sleep(POLL_S)


def _has_moved(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino != os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False  # between two files: the next look finds the new one


def _of_board(lines: Iterator[str], board: str | None) -> Iterator[str]:
    for line in lines:
        if board is None or _board_of(line) == board:
            yield line


def _board_of(line: str) -> str:
    try:
        return str(json.loads(line).get("board", ""))
    except (ValueError, AttributeError):
        return ""


def running_attempts(store: Store, run_id: str, ref: str) -> list[OpenAttempt]:
    """Open attempts whose own or trial's id begins with `ref`."""
    return [one for one in store.open_attempts(run_id) if one.attempt_id.startswith(ref)]


async def fetch_output(
    lab: Lab,
    run_id: str,
    attempt: OpenAttempt,
    on_data: Callable[[bytes], None],
    *,
    is_stderr: bool,
    follow: bool,
) -> str:
    """What a running attempt has printed, read from its board; "" or why not all of it came.

    Logs in on the board meanwhile, which costs it some CPU: an attempt that measures may show it.
    Raises BoardError, ConfigError.
    """
    board = _board(lab, attempt.board)
    limit_s = FOLLOW_LIMIT_S if follow else SO_FAR_S
    room = MOST_BYTES
    is_full = asyncio.Event()

    def take(data: bytes) -> None:
        nonlocal room
        on_data(data[:room])
        room -= len(data)
        if room <= 0:
            is_full.set()

    async with agent_on(board, context_of(lab), limit_s=FOLLOW_LIMIT_S) as agent:
        name = f"{run_id}.{attempt.attempt_id}"
        following = asyncio.create_task(agent.follow(name, LOG_FILES[is_stderr], take))
        full = asyncio.create_task(is_full.wait())
        try:
            done, _ = await asyncio.wait(
                {following, full}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED
            )
            if following in done:
                following.result()
        finally:
            for task in (following, full):
                task.cancel()
            await asyncio.gather(following, full, return_exceptions=True)
    if is_full.is_set():
        return f"cut after {MOST_BYTES // 2**20} MB"
    return ""


def _board(lab: Lab, name: str) -> Board:
    for board in lab.inventory.boards:
        if board.name == name:
            return board
    raise ConfigError(f"board {name!r} is not in the inventory any more")
