"""Finding the workspace and what lies in it."""

from pathlib import Path

import pytest

from farm.config.builtin import builtin_folder
from farm.config.workspace import Workspace, find_workspace
from farm.errors import ConfigError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "inventory.yaml").write_text("boards:\n")
    return folder


def test_the_option_comes_first(root: Path, tmp_path: Path) -> None:
    assert find_workspace(root, {"FARM_WORKSPACE": str(tmp_path)}) == Workspace(root)


def test_then_the_environment(root: Path) -> None:
    assert find_workspace(None, {"FARM_WORKSPACE": str(root)}) == Workspace(root)


def test_then_the_nearest_folder_above(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = root / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert find_workspace(None, {"FARM_WORKSPACE": ""}) == Workspace(root)
    (root / "a" / "inventory.yaml").write_text("boards:\n")
    assert find_workspace(None, {}) == Workspace(root / "a")


def test_none_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        find_workspace(None, {})
    assert str(caught.value) == (
        f"no inventory.yaml in {tmp_path} or above it; make a workspace with: farm init, "
        "or name one with --workspace DIR or FARM_WORKSPACE"
    )


@pytest.mark.parametrize(
    ("explicit", "environ", "source"),
    [(True, False, "--workspace"), (False, True, "FARM_WORKSPACE")],
)
def test_a_named_folder_without_inventory(
    tmp_path: Path, *, explicit: bool, environ: bool, source: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        find_workspace(
            tmp_path if explicit else None, {"FARM_WORKSPACE": str(tmp_path)} if environ else {}
        )
    assert str(caught.value) == (
        f"{source} names {tmp_path}, which has no inventory.yaml; "
        f"make it one with: farm init {tmp_path}"
    )


def test_what_lies_where(root: Path) -> None:
    workspace = Workspace(root)
    assert workspace.inventory_path == root / "inventory.yaml"
    assert workspace.results_dir == root / "results"
    assert workspace.profile_folders == (
        builtin_folder("device_profiles"),
        root / "device_profiles",
    )
    assert workspace.payload_folders == (builtin_folder("payloads"), root / "payloads")


def test_sweeps_by_name_and_by_path(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(root)
    assert workspace.sweep_path("demo") == builtin_folder("sweeps") / "demo.yaml"
    (root / "sweeps").mkdir()
    own = root / "sweeps" / "demo.yaml"
    own.write_text("name: demo\n")
    assert workspace.sweep_path("demo") == own
    assert workspace.sweep_path(str(own)) == own
    monkeypatch.chdir(tmp_path)
    assert workspace.sweep_path("sweeps/demo.yaml") == own
    monkeypatch.chdir(root)
    assert workspace.sweep_path("sweeps/demo.yaml") == Path("sweeps/demo.yaml")


def test_unknown_sweeps(root: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Workspace(root).sweep_path("demmo")
    assert str(caught.value).startswith('unknown sweep "demmo"; did you mean "demo"? known: demo,')
    with pytest.raises(ConfigError) as caught:
        Workspace(root).sweep_path("none/demo.yaml")
    assert str(caught.value).startswith("none/demo.yaml: no such sweep file; known: demo,")
