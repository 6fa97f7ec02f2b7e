"""Device profiles: one YAML file a board type, named like the profile; no Python needed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        for path in _files(folder):
            profiles[path.stem] = load_profile(path)
    return dict(sorted(profiles.items()))


class Profiles(Mapping[str, BoardProfile]):
    """Profiles by name. Those that come with farm are read when they are asked for.

    Reading two dozen of them takes a third of a second, and a lab has boards of a few types.
    """

    def __init__(self, shipped: Path, own: Sequence[Path]) -> None:
        """Built-in profiles of one folder, overridden by those of others. Raises ConfigError."""
        self._known = load_profiles(own)
        paths = {path.stem: path for path in _files(shipped)}
        self._paths = {name: path for name, path in paths.items() if name not in self._known}

    def __getitem__(self, name: str) -> BoardProfile:
        """One profile. Raises ConfigError if it is broken, KeyError if there is none."""
        if name not in self._known:
            self._known[name] = load_profile(self._paths[name])
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        """The names, in order."""
        return iter(sorted({*self._paths, *self._known}))

    def __len__(self) -> int:
        """How many."""
        return len({*self._paths, *self._known})

    def __contains__(self, name: object) -> bool:
        """Whether there is one; reads none."""
        return name in self._paths or name in self._known


def _files(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.yaml"))
    return [path for path in found if not path.name.startswith(".")]


def load_profile(path: Path) -> BoardProfile:
    """One profile. Raises ConfigError with every problem at its line and column."""
    document = load_document(path)
    profile = document.validate((), BoardProfile)
    problems = [
        *_name_problems(document, profile, path.stem),
        *_mode_problems(document, profile),
        *_peak_problems(document, profile),
        *_gpu_problems(document, profile),
        *_rail_problems(document, profile),
    ]
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
    asked += [(("reboot_modes", index), name) for index, name in enumerate(profile.reboot_modes)]
    idle = profile.simulation.idle_w if profile.simulation else {}
    asked += [(("simulation", "idle_w", name), name or None) for name in idle]
    for place, name in asked:
        if name is not None and name not in names:
            at_key = place[-1] == name
            yield document.problem(place, unknown("power mode", name, names), at_key=at_key)


def _peak_problems(document: Document, profile: BoardProfile) -> Iterable[Problem]:
    """Two peaks for one precision, mode and engine: which of them would count?"""
    seen = set()
    for index, peak in enumerate(profile.peaks):
        key = (peak.precision, peak.power_mode, peak.engine, peak.sparse)
        if key in seen:
            message = f"a peak of {peak.precision} for this power mode stands above already"
            yield document.problem(("peaks", index, "precision"), message)
        seen.add(key)


def _gpu_problems(document: Document, profile: BoardProfile) -> Iterable[Problem]:
    """Modes with more cores than the board has, or a mask that does not fit its GPU."""
    gpu = profile.gpu
    for index, mode in enumerate(profile.power_modes):
        if (mode.online_cores or 0) > profile.cores:
            message = f"the board has {profile.cores} cores"
            yield document.problem(("power_modes", index, "online_cores"), message)
        if gpu is None or gpu.mask_bits is None or mode.tpc_mask is None:
            continue
        if not 0 <= mode.tpc_mask < 1 << gpu.mask_bits:
            message = f"the mask has more than the GPU's {gpu.mask_bits} bits"
            yield document.problem(("power_modes", index, "tpc_mask"), message)
        elif (gpu.tpcs_on(mode.tpc_mask) or 0) > (gpu.tpcs or gpu.mask_bits):
            message = f"the mask leaves more TPCs on than the GPU's {gpu.tpcs}"
            yield document.problem(("power_modes", index, "tpc_mask"), message)


def _rail_problems(document: Document, profile: BoardProfile) -> Iterable[Problem]:
    """Totals and aliases of rails that no chip has."""
    if profile.rails is None:
        return
    names = [name for chip in profile.rails.chips for name in chip.rails]
    asked: list[tuple[Location, str]] = [
        (("rails", "totals", index, "rails", at), name)
        for index, total in enumerate(profile.rails.totals)
        for at, name in enumerate(total.rails)
    ]
    asked += [(("rails", "aliases", key), name) for key, name in profile.rails.aliases.items()]
    for place, name in asked:
        if name not in names:
            yield document.problem(place, unknown("rail", name, names))
