"""Sweep files, and how they are held against payloads and boards."""

from collections.abc import Callable
from pathlib import Path

import pytest

from farm.config.payloads import load_payload
from farm.config.sweeps import check_sweep, load_sweep, load_sweep_document
from farm.errors import ConfigError
from farm.model.board import Board
from farm.model.payload import Payload
from farm.model.profile import BoardProfile

MakePayload = Callable[..., Path]

MANIFEST = """\
name: demo
level: 1
summary: a payload
command: [python3, run.py]
parameters:
  size: {type: int, minimum: 1, maximum: 64}
  mode: {type: str, choices: [fast, slow], default: fast}
  rate: {type: float, default: 1.5}
  warm: {type: bool, default: true}
"""

GOOD = """\
name: mine
boards: [all]
power_modes: maxn
payloads:
  - payload: demo
    boards: tag:gpu
    power_modes: [maxn, maxq]
    axes:
      size: [1, 2]
      mode: fast
    include:
      - {size: 64, power_mode: maxp, board: tx2-01}
    exclude:
      - {size: [1, 2], profile: zcu104}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sweep.yaml"


@pytest.fixture
def payloads(make_payload: MakePayload) -> dict[str, Payload]:
    return {"demo": load_payload(make_payload(MANIFEST))}


@pytest.fixture
def boards() -> list[Board]:
    return [
        Board(name="tx2-01", profile="jetson-tx2", host="a", user="u", tags=("gpu",)),
        Board(name="fpga-01", profile="zcu104", host="b", user="u"),
    ]


def test_single_values_stand_for_lists(path: Path) -> None:
    path.write_text(GOOD)
    sweep = load_sweep(path)
    assert sweep.power_modes == ("maxn",)
    entry = sweep.payloads[0]
    assert entry.boards == ("tag:gpu",)
    assert entry.power_modes == ("maxn", "maxq")
    assert entry.axes == {"size": (1, 2), "mode": ("fast",)}
    assert entry.exclude == ({"size": (1, 2), "profile": "zcu104"},)


def test_types_of_axes_are_kept(path: Path) -> None:
    path.write_text(
        "name: x\npayloads:\n  - payload: p\n"
        "    axes: {a: [1, 1.0, true, '1'], b: false, c: 0.5}\n"
    )
    axes = load_sweep(path).payloads[0].axes
    assert [type(value) for value in axes["a"]] == [int, float, bool, str]
    assert axes["b"] == (False,)
    assert axes["c"] == (0.5,)


def test_a_good_sweep_has_no_problem(
    path: Path,
    payloads: dict[str, Payload],
    profiles: dict[str, BoardProfile],
    boards: list[Board],
) -> None:
    path.write_text(GOOD)
    sweep, document = load_sweep_document(path)
    check_sweep(document, sweep, payloads, profiles, boards)


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        (
            "payload: demo",
            "payload: dmo",
            ['5:14: unknown payload "dmo"; did you mean "demo"? known: demo'],
        ),
        (
            "mode: fast",
            "mod: fast",
            [
                '10:7: unknown parameter of demo "mod"; did you mean "mode"? '
                "known: size, mode, rate, warm"
            ],
        ),
        (
            "mode: fast",
            "mode: [fast, quick]",
            ["10:20: payload demo: parameter mode='quick' is none of fast, slow"],
        ),
        ("mode: fast", "mode: 3", ["10:13: payload demo: parameter mode=3 is not of type str"]),
        (
            "size: [1, 2]\n",
            "size: [0, 2.5, 65, true]\n",
            [
                "9:14: payload demo: parameter size=0 is below the minimum 1",
                "9:17: payload demo: parameter size=2.5 is not of type int",
                "9:22: payload demo: parameter size=65 is above the maximum 64",
                "9:26: payload demo: parameter size=True is not of type int",
            ],
        ),
        ("size: [1, 2]\n", "size: []\n", ['9:13: the axis "size" has no values']),
        ("size: [1, 2]\n", "size: [2, 1, 2]\n", ['9:20: "2" is given twice']),
        ("[maxn, maxq]", "[maxn, maxn]", ['7:25: "maxn" is given twice']),
        (
            "      size: [1, 2]\n",
            "",
            ['8:5: the parameter "size" of demo has no default: give it a value'],
        ),
        (
            "{size: 64, ",
            "{mode: slow, ",
            ['12:9: the parameter "size" of demo has no default: give it a value'],
        ),
        (
            "size: 64, power_mode",
            "size: 64, power_mod",
            [
                '12:20: unknown parameter of demo "power_mod"; did you mean "power_mode"? '
                "known: size, mode, rate, warm, board, profile, power_mode, payload"
            ],
        ),
        (
            "board: tx2-01",
            "board: tx2-1",
            ['12:45: unknown board "tx2-1"; did you mean "tx2-01"? known: tx2-01, fpga-01'],
        ),
        (
            "profile: zcu104",
            "profile: [zcu104, zcu102]",
            ['14:42: unknown profile "zcu102"; did you mean "zcu104"? known: jetson-tx2, zcu104'],
        ),
        (
            "{size: [1, 2], p",
            "{size: [1, x], p",
            ["14:20: payload demo: parameter size='x' is not of type int"],
        ),
        ("- {size: [1, 2], profile: zcu104}", "- {}", ["14:9: an empty rule means nothing"]),
        (
            "boards: tag:gpu",
            "boards: tag:gpus",
            [
                "6:13: no board matches 'tag:gpus'; did you mean tag:gpu? (allowed: a board's "
                "name, a glob, tag:T, profile:P, all, each with ! to exclude)"
            ],
        ),
        (
            "boards: [all]",
            "boards: [all, tx3-01]",
            [
                "2:15: no board matches 'tx3-01'; did you mean tx2-01? (allowed: a "
                "board's name, a glob, tag:T, profile:P, all, each with ! to exclude)"
            ],
        ),
    ],
)
def test_faults(  # noqa: PLR0917
    path: Path,
    payloads: dict[str, Payload],
    profiles: dict[str, BoardProfile],
    boards: list[Board],
    old: str,
    new: str,
    errors: list[str],
) -> None:
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    sweep, document = load_sweep_document(path)
    with pytest.raises(ConfigError) as caught:
        check_sweep(document, sweep, payloads, profiles, boards)
    assert str(caught.value).replace(f"{path}:", "").splitlines() == errors


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("name: x\n", '1:1: "payloads" is missing here'),
        (
            "name: x\npayloads: []\n",
            '2:11: "payloads" should be a list of at least 1, not an empty list',
        ),
        ("name: x\npayloads: demo\n", '2:11: "payloads" should be a list, not "demo"'),
        (
            "name: x\npayloads:\n  - payload: p\n    power_modes: []\n",
            '4:18: "power_modes" should be a list of at least 1, not an empty list',
        ),
    ],
)
def test_files_that_are_no_sweeps(path: Path, text: str, error: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_sweep(path)
    assert str(caught.value) == f"{path}:{error}"
