"""The transport suite on a board that is a machine of its own."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

import pytest

from farm.testing.transport_contract import TransportContract, TransportRig
from tests.namespaces.board_rig import add_file_systems, board_rig
from tests.servers.namespaces import BoardLab, BoardOptions, NamespaceBoard

NOISE = "echo noise; echo more noise >&2; printf half\n"


class TestOnBoard(TransportContract):
    """An ordinary board without SFTP: bash reads a .bashrc that prints, for every command.

    All tests share the board; each has its own folders there.
    """

    options: ClassVar[BoardOptions] = BoardOptions(
        disk="256m", has_sftp=False, files={"/home/jet/.bashrc": NOISE}
    )
    board: ClassVar[NamespaceBoard]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _board(cls, lab: BoardLab) -> Iterator[None]:
        (cls.board,) = lab.up(1, cls.options)
        add_file_systems(cls.board)
        yield
        lab.down([cls.board])

    @pytest.fixture(autouse=True)
    def _host_network(self, lab: BoardLab) -> Iterator[None]:
        with lab.host_network():
            yield

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return board_rig(self.board)
