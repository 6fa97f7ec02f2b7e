"""The wheel holds all that farm needs, and works from where it is unpacked."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILT_IN = ("device_profiles", "payloads", "sweeps")

pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend of pyproject.toml without network or installation."""
    folder = tmp_path_factory.mktemp("wheel")
    script = "import sys; from hatchling.build import build_wheel as b; print(b(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def source_files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_package_is_whole(names: set[str]) -> None:
    missing = {f"farm/{name}" for name in source_files(ROOT / "farm")} - names
    assert not missing


@pytest.mark.parametrize(
    "name",
    [
        "farm/py.typed",
        "farm/boardside/agent.py",
        "farm/boardside/payload_helpers/farm_payload.py",
        "farm/reporting/report.html.j2",
        "farm/store/migrations/env.py",
        "farm/store/migrations/versions/0001_first.py",
        "farm/data/published/level3_resnet50.csv",
        "farm/simulation/confs/tx2.conf",
        "farm/builtin/inventory.yaml",
        "farm/builtin/payloads/matmul/payload.yaml",
        "farm/builtin/sweeps/first.yaml",
        "farm/builtin/device_profiles/jetson-tx2.yaml",
    ],
)
def test_what_is_no_code_is_there_too(names: set[str], name: str) -> None:
    assert name in names


@pytest.mark.parametrize("folder", BUILT_IN)
def test_built_in_folders_are_whole(names: set[str], folder: str) -> None:
    expected = {f"farm/builtin/{folder}/{name}" for name in source_files(ROOT / folder)}
    assert len(expected) > 1
    assert not expected - names


def test_nothing_else_is_in_it(names: set[str]) -> None:
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"farm"}
    assert not [name for name in names if name.endswith((".pyc", ".db", ".whl"))]


def test_the_wheel_names_its_command_and_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (points,) = [n for n in archive.namelist() if n.endswith("entry_points.txt")]
        (metadata,) = [n for n in archive.namelist() if n.endswith("METADATA")]
        assert "farm = farm.cli.main:main" in archive.read(points).decode()
        assert "Requires-Python: >=3.11" in archive.read(metadata).decode()


def test_unpacked_it_makes_a_workspace_and_knows_its_payloads(wheel: Path, tmp_path: Path) -> None:
    unpacked, workspace = tmp_path / "unpacked", tmp_path / "lab"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    workspace.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FARM_", "PYTHON"))}

    def run(*arguments: str) -> str:
        # Not ``-m farm``: the repository, installed for editing, must not be found first.
        script = (
            "import sys; sys.path.insert(0, sys.argv.pop(1)); import farm; "
            "from farm.cli.main import main; print(farm.__file__, file=sys.stderr); main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(unpacked), *arguments],
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.startswith(str(unpacked))
        return done.stdout

    run("init")
    assert "matmul" in run("payloads", "list")
    assert "first: 6 trials" in run("plan", "first")
