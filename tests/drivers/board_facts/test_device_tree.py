"""Models and part numbers of device trees."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.board_facts.device_tree import parse_device_tree, parse_model
from tests.recording_cases import cases, meant, printed


@pytest.mark.parametrize("path", cases("device_tree", "compatible"))
def test_compatible(path: Path) -> None:
    tree = parse_device_tree("", printed(path))
    assert {
        "compatible": list(tree.compatible),
        "modules": list(tree.modules),
        "chip": tree.chip,
    } == meant(path)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("NVIDIA Jetson Nano Developer Kit\x00", "NVIDIA Jetson Nano Developer Kit"),
        ("quill", "quill"),
        ("Raspberry Pi 5 Model B Rev 1.0\x00\n", "Raspberry Pi 5 Model B Rev 1.0"),
        ("", ""),
        ("\x00", ""),
    ],
)
def test_model(text: str, model: str) -> None:
    assert parse_model(text) == model
    assert parse_device_tree(text, "").model == model


def test_a_board_of_another_maker_has_no_module() -> None:
    tree = parse_device_tree("ZynqMP ZCU104 RevC", "xlnx,zynqmp-zcu104-revC\x00xlnx,zynqmp\x00")
    assert tree.compatible == ("xlnx,zynqmp-zcu104-revC", "xlnx,zynqmp")
    assert (tree.modules, tree.chip) == ((), "")


@settings(deadline=None)
@given(st.text(max_size=200), st.text("\x00nvidia,p3767-05+super\n tegra", max_size=200))
def test_nothing_raises_for_its_content(model: str, compatible: str) -> None:
    tree = parse_device_tree(model, compatible)
    assert all(part.startswith("p") for part in tree.modules)
