"""Device profiles: one YAML file a board type, named like the profile; no Python needed."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from farm.config.document import Document, Location, Problem, config_error
from farm.config.model_errors import unknown
from farm.config.yaml_file import load_document
from farm.model.profile import BoardProfile


def load_profiles(folders: Sequence[Path]) -> dict[str, BoardProfile]:
    """All profiles of the folders by name; later folders override earlier ones.

    A folder that does not exist holds none. Raises ConfigError.
    """
    profiles: dict[str, BoardProfile] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            if not path.name.startswith("."):
                profiles[path.stem] = load_profile(path)
    return dict(sorted(profiles.items()))


def load_profile(path: Path) -> BoardProfile:
    """One profile. Raises ConfigError with every problem at its line and column."""
    document = load_document(path)
    profile = document.validate((), BoardProfile)
    problems = [*_name_problems(document, profile, path.stem), *_mode_problems(document, profile)]
    if problems:
        raise config_error(document.file, problems)
    return profile


def _name_problems(document: Document, profile: BoardProfile, stem: str) -> Iterable[Problem]:
    if profile.name != stem:
        message = f'"name" should be that of the file, "{stem}", not "{profile.name}"'
        yield document.problem(("name",), message)


def _mode_problems(document: Document, profile: BoardProfile) -> Iterable[Problem]:
    """Modes given twice; peaks, idle power and the default of modes that do not exist."""
    names = [mode.name for mode in profile.power_modes]
    for key, values in (("name", names), ("id", [mode.id for mode in profile.power_modes])):
        for index, value in enumerate(values):
            if value is not None and value in values[:index]:
                place: Location = ("power_modes", index, key)
                yield document.problem(place, f'the power mode {key} "{value}" is given twice')
    asked: list[tuple[Location, str | None]] = [
        (("default_power_mode",), profile.default_power_mode)
    ]
    asked += [
        (("peaks", index, "power_mode"), peak.power_mode)
        for index, peak in enumerate(profile.peaks)
    ]
    idle = profile.simulation.idle_w if profile.simulation else {}
    asked += [(("simulation", "idle_w", name), name or None) for name in idle]
    for place, name in asked:
        if name is not None and name not in names:
            at_key = place[-1] == name
            yield document.problem(place, unknown("power mode", name, names), at_key=at_key)
