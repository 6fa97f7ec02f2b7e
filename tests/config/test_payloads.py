"""Payload folders: what is loaded, its digest, and each fault at its place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from farm.config.payloads import check_payload, load_payload, load_payloads
from farm.errors import ConfigError

MakePayload = Callable[..., Path]

GOOD = """\
name: demo
level: 1
summary: a payload
command: [python3, run.py]
parameters:
  size: {type: int, summary: side, default: 8, minimum: 1, maximum: 64}
  mode: {type: str, summary: how, choices: [fast, slow]}
metrics:
  images: {unit: images}
inferences: images
"""


def errors_of(folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_payload(folder)
    return str(caught.value).replace(f"{folder}/payload.yaml:", "").splitlines()


def test_a_payload(make_payload: MakePayload) -> None:
    folder = make_payload(GOOD, files=("run.py", "data/weights.bin"))
    payload = load_payload(folder)
    assert payload.manifest.name == "demo"
    assert payload.folder == folder
    assert [file.path for file in payload.files] == ["data/weights.bin", "payload.yaml", "run.py"]
    assert len(payload.digest) == 64
    assert check_payload(folder) == []


def test_the_digest_is_that_of_the_content(make_payload: MakePayload, tmp_path: Path) -> None:
    folder = make_payload(GOOD)
    first = load_payload(folder).digest
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "run.cpython-311.pyc").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    moved = folder.rename(tmp_path / "elsewhere" / "demo")
    assert load_payload(moved).digest == first
    (moved / "run.py").chmod(0o755)
    executable = load_payload(moved).digest
    (moved / "run.py").write_text("# changed\n")
    changed = load_payload(moved).digest
    assert len({first, executable, changed}) == 3


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        (
            "name: demo",
            "name: dem",
            ['1:7: "name" should be that of the folder, "demo", not "dem"'],
        ),
        (
            "[python3, run.py]",
            "[python3, rum.py]",
            ['4:20: unknown file "rum.py"; did you mean "run.py"? known: payload.yaml, run.py'],
        ),
        (
            "[python3, run.py]",
            "[./run.py]",
            ['4:11: "run.py" is not executable; run: chmod +x run.py'],
        ),
        (
            "[python3, run.py]",
            "[]",
            ['4:10: "command" should be a list of at least 1, not an empty list'],
        ),
        (
            "level: 1",
            'level: 1\nfiles: [run.py, "*.txt"]',
            ['3:17: no file matches "*.txt"'],
        ),
        (
            "level: 1",
            "level: 1\nfiles: [../x, /etc/passwd, run.py]",
            [
                '3:9: "../x" should be without "..", "." and "//"',
                '3:15: "/etc/passwd" should be a path inside the payload\'s folder',
            ],
        ),
        (
            "inferences: images",
            "inferences: image",
            ['10:13: unknown metric "image"; did you mean "images"? known: images'],
        ),
        (
            "default: 8",
            "default: eight",
            ["6:45: payload demo: parameter size='eight' is not of type int"],
        ),
        (
            "default: 8",
            "default: 80",
            ["6:45: payload demo: parameter size=80 is above the maximum 64"],
        ),
        (
            "choices: [fast, slow]",
            "choices: [fast, 2, fast]",
            [
                "7:51: payload demo: parameter mode=2 is not of type str",
                "7:54: the choice 'fast' is given twice",
            ],
        ),
        (
            "choices: [fast, slow]",
            "choices: [fast], default: slow",
            ["7:61: payload demo: parameter mode='slow' is none of fast"],
        ),
        (
            "choices: [fast, slow]",
            "minimum: 1",
            ['7:44: "minimum" is for numbers, and "mode" is a str'],
        ),
        ("maximum: 64", "maximum: 0", ['6:57: "minimum" of "size" is above its "maximum"']),
        (
            "  mode:",
            "  board:",
            [
                '7:3: "board" is no name for a parameter: use letters, digits and "_"; '
                "board, profile, power_mode, payload have a meaning of their own"
            ],
        ),
        (
            "inferences: images",
            "artifacts: [../out]",
            ['10:13: "../out" should be without "..", "." and "//"'],
        ),
        (
            "inferences: images",
            "environment: {FARM_OUT: x, A-B: y, OMP: '1'}",
            [
                '10:15: "FARM_OUT" is no name for a variable of a payload (FARM_* is ours)',
                '10:28: "A-B" is no name for a variable of a payload (FARM_* is ours)',
            ],
        ),
        (
            "  images: {unit: images}\ninferences: images",
            "  a b: {unit: x}",
            ['9:3: "a b" is no name for a metric: use letters, digits and "_"'],
        ),
        (
            "summary: a payload",
            "sumary: a payload",
            [
                '1:1: "summary" is missing here',
                '3:1: unknown key "sumary"; did you mean "summary"? known: name, level, summary, '
                "command, files, requirements, parameters, metrics, inferences, artifacts, "
                "memory_limit_mb, environment, notes",
            ],
        ),
    ],
)
def test_faults(make_payload: MakePayload, old: str, new: str, errors: list[str]) -> None:
    assert old in GOOD
    folder = make_payload(GOOD.replace(old, new))
    assert errors_of(folder) == errors
    assert check_payload(folder) == [f"{folder}/payload.yaml:{error}" for error in errors]


def test_files_that_lead_outside(make_payload: MakePayload) -> None:
    folder = make_payload(GOOD)
    (folder / "key").symlink_to("/etc/passwd")
    assert errors_of(folder) == ["1:1: key: a link that leads out of the payload's folder"]


def test_no_manifest(tmp_path: Path) -> None:
    assert check_payload(tmp_path) == [f"{tmp_path}/payload.yaml: no such file"]


def test_advice(make_payload: MakePayload) -> None:
    text = GOOD.replace("summary: how, ", "").replace("inferences: images\n", "")
    folder = make_payload(text)
    assert check_payload(folder) == [
        f'{folder}/payload.yaml:1:1: "inferences" names no metric: '
        "no energy per inference can be told",
        f'{folder}/payload.yaml:7:3: the parameter "mode" has no summary',
    ]
    load_payload(folder)


def test_later_folders_override(make_payload: MakePayload, tmp_path: Path) -> None:
    first = make_payload(GOOD)
    make_payload(GOOD.replace("demo", "other"), name="other")
    (first.parent / "no-payload").mkdir()
    second = tmp_path / "second" / "demo"
    second.mkdir(parents=True)
    (second / "payload.yaml").write_text(GOOD.replace("a payload", "another"))
    (second / "run.py").write_text("")
    payloads = load_payloads([first.parent, second.parent, tmp_path / "missing"])
    assert list(payloads) == ["demo", "other"]
    assert payloads["demo"].manifest.summary == "another"
