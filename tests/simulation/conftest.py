"""Entries of an inventory on a loopback address of the test's own."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.model.board import Board, BoardSimulation, MeterSimulation, MeterSpec
from tests.simulation.lab_client import REFRESH_S, free_port


@pytest.fixture
def host() -> str:
    """A loopback address that no other test is likely to use at the same time."""
    source = random.Random(os.urandom(8))
    return f"127.{source.randint(64, 200)}.{source.randint(1, 250)}.{source.randint(1, 250)}"


@pytest.fixture
def make_board(host: str, tmp_path: Path) -> Callable[..., Board]:
    """Make an inventory entry: name, profile, and what differs."""

    def make(name: str, profile: str = "jetson-tx2", **other: object) -> Board:
        fields: dict[str, object] = {
            "host": host,
            "port": free_port(host),
            "user": "farm",
            "identity_file": tmp_path / "keys" / "client",
            "known_hosts": tmp_path / "keys" / "known_hosts",
            "simulation": BoardSimulation(),
        }
        return Board.model_validate({"name": name, "profile": profile, **fields, **other})

    return make


@pytest.fixture
def make_meter(host: str) -> Callable[..., MeterSpec]:
    """Make a meter's entry: name and what differs."""

    def make(name: str, **other: object) -> MeterSpec:
        fields: dict[str, object] = {
            "kind": "shelly",
            "host": host,
            "port": free_port(host),
            "simulation": MeterSimulation(refresh_s=REFRESH_S, noise_w=0.0),
        }
        return MeterSpec.model_validate({"name": name, **fields, **other})

    return make
