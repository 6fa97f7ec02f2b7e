"""The workspace: the folder with ``inventory.yaml``, and what lies where in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.config.builtin import builtin_folder
from farm.config.model_errors import unknown
from farm.errors import ConfigError

INVENTORY = "inventory.yaml"
VARIABLE = "FARM_WORKSPACE"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder in which one lab is described and its results are kept."""

    root: Path

    @property
    def inventory_path(self) -> Path:
        """The inventory."""
        return self.root / INVENTORY

    @property
    def results_dir(self) -> Path:
        """Where runs are kept; made by the store."""
        return self.root / "results"

    @property
    def profile_folders(self) -> tuple[Path, ...]:
        """Built-in device profiles first; the workspace's own override them."""
        return (builtin_folder("device_profiles"), self.root / "device_profiles")

    @property
    def payload_folders(self) -> tuple[Path, ...]:
        """Built-in payloads first; the workspace's own override them."""
        return (builtin_folder("payloads"), self.root / "payloads")

    @property
    def sweep_folders(self) -> tuple[Path, ...]:
        """Where a sweep is looked up by name: the workspace's own first."""
        return (self.root / "sweeps", builtin_folder("sweeps"))

    def sweep_path(self, name: str) -> Path:
        """The file of a sweep.

        Args:
            name: a path to a file, or a name: NAME.yaml among the workspace's sweeps, then
                among the built-in ones.

        Raises:
            ConfigError: there is none; the known names are listed.
        """
        path = Path(name)
        if path.is_file():
            return path
        is_path = path.suffix in (".yaml", ".yml") or len(path.parts) != 1
        if not is_path:
            for folder in self.sweep_folders:
                candidate = folder / f"{name}.yaml"
                if candidate.is_file():
                    return candidate
        elif not path.is_absolute() and (self.root / path).is_file():
            return self.root / path
        known = sorted(
            {file.stem for folder in self.sweep_folders for file in folder.glob("*.yaml")}
        )
        if is_path:
            raise ConfigError(f"no such sweep file; known: {', '.join(known)}", file=name)
        raise ConfigError(unknown("sweep", name, known))


def find_workspace(explicit: Path | None, environ: Mapping[str, str]) -> Workspace:
    """The workspace to work in.

    Args:
        explicit: the folder given by ``--workspace``, or None.
        environ: the environment; FARM_WORKSPACE names the folder.

    Without either it is the present folder or the nearest one above it with an inventory.
    Raises ConfigError telling how to make one.
    """
    for source, folder in (
        ("--workspace", explicit),
        (VARIABLE, Path(environ[VARIABLE]) if environ.get(VARIABLE) else None),
    ):
        if folder is not None:
            return _checked(folder.expanduser(), source)
    present = Path.cwd()
    for folder in (present, *present.parents):
        if (folder / INVENTORY).is_file():
            return Workspace(folder)
    raise ConfigError(
        f"no {INVENTORY} in {present} or above it; make a workspace with: farm init, "
        f"or name one with --workspace DIR or {VARIABLE}"
    )


def _checked(folder: Path, source: str) -> Workspace:
    if not (folder / INVENTORY).is_file():
        raise ConfigError(
            f"{source} names {folder}, which has no {INVENTORY}; make it one with: "
            f"farm init {folder}"
        )
    return Workspace(folder.absolute())
