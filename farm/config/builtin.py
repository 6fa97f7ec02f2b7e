"""Where the profiles, payloads, sweeps and the simulated lab's inventory that come along lie."""

from pathlib import Path

from farm.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent.parent


def builtin_folder(name: str) -> Path:
    """The folder ``device_profiles``, ``payloads`` or ``sweeps`` that came with farm.

    A wheel carries it inside the package (pyproject.toml, force-include); in a checkout of
    the repository it lies at the top. Raises ConfigError when the installation lacks it.
    """
    folder = _find(name)
    if not folder.is_dir():
        raise ConfigError(f"this installation of farm lacks its folder {name}", file=str(folder))
    return folder


def builtin_file(name: str) -> Path:
    """A file that came with farm, e.g. ``inventory.yaml``. Raises ConfigError if it lacks."""
    file = _find(name)
    if not file.is_file():
        raise ConfigError(f"this installation of farm lacks its file {name}", file=str(file))
    return file


def _find(name: str) -> Path:
    packaged = _PACKAGE / "builtin" / name
    return packaged if packaged.exists() else _PACKAGE.parent / name
