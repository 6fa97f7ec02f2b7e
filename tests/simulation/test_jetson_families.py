"""Every simulated Jetson is what its profile says, read by farm's own parsers."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.analysis.profile_match import differences, identify
from farm.drivers.board_facts.device_tree import parse_device_tree
from farm.drivers.board_facts.nv_tegra_release import parse_l4t_release
from farm.drivers.power_modes.cpu_list import parse_cpu_list
from farm.drivers.power_modes.jetson_clocks import parse_clocks
from farm.drivers.power_modes.nvpmodel_conf import mode_table, parse_conf, parse_printed_conf
from farm.drivers.power_modes.nvpmodel_output import parse_query, parse_values
from farm.drivers.power_modes.nvpmodel_proof import difference, unexplained_caps
from farm.drivers.telemetry.tegrastats import TegrastatsTelemetry
from farm.drivers.telemetry.tegrastats_line import parse_line
from farm.model.board import Board, BoardSimulation, Quirk
from farm.model.profile import BoardProfile
from farm.simulation.jetsons import JETSONS as SIMULATED
from tests.simulation.board_shell import JETSONS, SHIPPED, BoardShell, boot_board

RECORDINGS = Path(__file__).parents[1] / "recordings"
LOADED = '{"power_w": 20.0, "temperature_c": 51.26, "busy_cores": 2.0, "is_loaded": true}'


@pytest.fixture(params=JETSONS)
def profile(request: pytest.FixtureRequest) -> BoardProfile:
    name: str = request.param
    return SHIPPED[name]


@pytest.fixture
def shell(profile: BoardProfile, make_board: Callable[..., Board], tmp_path: Path) -> BoardShell:
    """A board on which nothing uses the GPU, so that every mode can be set live."""
    quirks = BoardSimulation(quirks=(Quirk.GPU_UNUSED,))
    board = make_board("board", profile.name, simulation=quirks)
    return boot_board(board, tmp_path / "board", profile)


def kind(profile: BoardProfile) -> str:
    assert profile.simulation is not None
    assert profile.simulation.nvpmodel_conf is not None
    return profile.simulation.nvpmodel_conf


def l4t(profile: BoardProfile) -> int:
    return SIMULATED[kind(profile)].facts.l4t


def test_all_families_are_there() -> None:
    assert len(JETSONS) == 13
    assert {kind(SHIPPED[name]) for name in JETSONS} == set(SIMULATED)
    assert {l4t(SHIPPED[name]) for name in JETSONS} == {32, 35, 36, 38, 39}


def test_mode_table_is_the_profiles(profile: BoardProfile, shell: BoardShell) -> None:
    conf = parse_conf(shell.file("etc/nvpmodel.conf"))
    table = mode_table(conf, "file")
    told = [line for line in differences(profile, table) if "has no figure" not in line]
    assert told == []
    assert [mode.name for mode in table.modes] == [mode.name for mode in profile.power_modes]
    assert table.default == profile.default_power_mode
    printed = mode_table(parse_printed_conf(shell("nvpmodel -p --verbose")), "printed")
    assert printed.digest == table.digest
    assert profile.simulation is not None
    assert set(profile.simulation.idle_w) == {mode.name for mode in table.modes}


def test_every_mode_comes_into_force(profile: BoardProfile, shell: BoardShell) -> None:
    conf = parse_conf(shell.file("etc/nvpmodel.conf"))
    table = mode_table(conf, "file")
    script = "; ".join(
        f"sudo -n nvpmodel -m {mode.id} && sudo -n nvpmodel -q --verbose && echo ONLINE "
        "$(cat $FARM_ROOT/sys/devices/system/cpu/online) && echo =="
        for mode in table.modes
    )
    texts = shell(script).split("==\n")
    assert len(texts) == len(table.modes) + 1
    for mode, text in zip(table.modes, texts[:-1], strict=True):
        answer, values = parse_query(text), parse_values(text)
        assert answer is not None
        assert (answer.name, answer.id) == (mode.name, mode.id)
        assert len(values) == len(next(m for m in conf.modes if m.id == mode.id).settings)
        tables = {}
        for value in unexplained_caps(values):
            paths = (conf.paths.get((value.param, f"FREQ_TABLE{end}")) for end in ("_KNEXT", ""))
            found = next(p for p in paths if p and (shell.root / p.lstrip("/")).exists())
            tables[value.param] = [int(word) for word in shell.file(found.lstrip("/")).split()]
        online = parse_cpu_list(text.rpartition("ONLINE ")[2].strip())
        assert len(online) == mode.online_cores
        assert difference(mode, values, online, tables) == ""


def test_identity(profile: BoardProfile, shell: BoardShell) -> None:
    tree = parse_device_tree(
        (shell.root / "proc/device-tree/model").read_text(),
        (shell.root / "proc/device-tree/compatible").read_text(),
    )
    fits = identify(tree.compatible, tree.model, SHIPPED.values())
    assert fits[0].profile.name == profile.name
    assert fits[0].basis == "part number"
    release = parse_l4t_release(shell.file("etc/nv_tegra_release"))
    assert release is not None
    assert release.major == l4t(profile)


def test_clocks_shown_free_and_locked(profile: BoardProfile, shell: BoardShell) -> None:
    top = max(profile.power_modes, key=lambda mode: mode.online_cores or 0)
    shell(f"sudo -n nvpmodel -m {top.id}")
    texts = shell(
        "sudo -n jetson_clocks --show; echo ==; sudo -n jetson_clocks --store s; "
        "sudo -n jetson_clocks; sudo -n jetson_clocks --show; echo ==; "
        "sudo -n jetson_clocks --restore s; sudo -n jetson_clocks --show"
    ).split("==\n")
    free, locked, restored = map(parse_clocks, texts)
    assert [shown.is_locked for shown in (free, locked, restored)] == [False, True, False]
    for shown in (free, locked):
        assert shown.mode == top.name
        assert shown.soc.startswith("tegra")
        assert (shown.machine + "\0").encode() == (
            shell.root / "proc/device-tree/model"
        ).read_bytes()
        assert len(shown.cpus) == profile.cores
        assert sum(cpu.is_online for cpu in shown.cpus.values()) == top.online_cores
        assert shown.engines["EMC"].max_hz > shown.engines["EMC"].min_hz or l4t(profile) == 39
        assert shown.fan_pwm == 0
    has_tpcs = l4t(profile) in {36, 39}
    assert free.active_tpcs == (profile.tpcs(top) if has_tpcs else None)
    assert set(free.gpus) == {"gpu-gpc-0" if l4t(profile) == 38 else "GPU"}
    assert free.engines["EMC"].is_overridden == (None if l4t(profile) == 39 else False)


def test_tegrastats_tells_what_the_profile_names(profile: BoardProfile, shell: BoardShell) -> None:
    (shell.root / "run/farm-sim/state.json").write_text(LOADED)
    text = shell.first_line("sudo -n tegrastats")
    line, channels = parse_line(text), TegrastatsTelemetry().parse(text)
    assert line.unknown == {}
    assert (line.at is not None) == (l4t(profile) >= 35)
    assert profile.rails is not None
    names = {rail for chip in profile.rails.chips for rail in chip.rails}
    rails = {key.partition(":")[2] for key in channels if key.startswith("rail_mw:")}
    on_r39 = {"VDDQ_VDD2_1V8AO"} if l4t(profile) == 39 else set()
    assert rails == names - on_r39
    for total in profile.rails.totals:
        assert 0.5 * 20_000 < sum(channels[f"rail_mw:{name}"] for name in total.rails) < 20_000
    assert profile.thermal_zones is not None
    known = {name.upper() for name in profile.thermal_zones.names}
    seen = {key.partition(":")[2] for key in channels if key.startswith("temperature_c:")}
    assert seen <= known
    assert abs(channels[f"temperature_c:{'BCPU' if 'BCPU' in seen else 'CPU'}"] - 51.26) < 0.5
    default = profile.mode(profile.default_power_mode or "")
    assert default is not None
    assert channels["cores_online"] == default.online_cores
    assert channels["clock_mhz:EMC"] > 200
    if l4t(profile) != 38:
        assert channels["load_pct:GPU"] == 99
    assert all((rail.max_mw is not None) == (l4t(profile) == 39) for rail in line.rails.values())


def test_tegrastats_without_root_tells_less(profile: BoardProfile, shell: BoardShell) -> None:
    channels = TegrastatsTelemetry().parse(shell.first_line("tegrastats"))
    assert channels["cores_online"] > 1
    assert "clock_mhz:EMC" not in channels
    has_rails = any(key.startswith("rail_mw:") for key in channels)
    without = {"jetson-tx2-nx", "jetson-agx-xavier", "jetson-orin-nx-16gb", "jetson-orin-nano-4gb"}
    assert has_rails == (profile.name not in without)


@pytest.mark.parametrize(
    ("name", "command", "recording"),
    [
        ("jetson-orin-nano-8gb", "tegrastats", "jetson-orin-nano/tegrastats/r36_nonroot"),
        ("jetson-orin-nano-8gb", "sudo -n tegrastats", "jetson-orin-nano/tegrastats/r36_root"),
        ("jetson-xavier-nx", "sudo -n tegrastats", "jetson-xavier-nx/tegrastats/r32_root"),
        ("jetson-agx-orin-32gb", "sudo -n tegrastats", "jetson-agx-orin/tegrastats/r35.1_32gb"),
        (
            "jetson-agx-orin-64gb",
            "sudo -n tegrastats",
            "jetson-agx-orin/tegrastats/r39.2_off_cores",
        ),
    ],
)
def test_tegrastats_has_the_fields_of_the_recording(
    make_board: Callable[..., Board], tmp_path: Path, name: str, command: str, recording: str
) -> None:
    """The same fields in the same order; how many cores there are is the board's matter."""

    def shape(line: str) -> str:
        line = re.sub(r"CPU \[.*?\]", "CPU []", line.strip())
        line = re.sub(r"(tj|soc1|gpu)@\S+ ", "", line) if "/" in line.split("@")[-1] else line
        return re.sub(r"-?\d+(\.\d+)?", "N", line)

    shell = boot_board(make_board("b", name), tmp_path / "b", SHIPPED[name])
    if "root" in recording and "sudo" in command:
        (shell.root / "run/farm-sim/state.json").write_text(LOADED)
    printed = shell.first_line(command)
    wanted = (RECORDINGS / f"{recording}.txt").read_text().splitlines()[0]
    assert shape(printed) == shape(wanted)


@pytest.mark.parametrize(
    ("name", "mode_id", "recording"),
    [
        ("jetson-agx-orin-64gb", 0, "jetson-agx-orin/jetson_clocks/show_r39_maxn_locked"),
        ("jetson-thor-t5000", 0, "jetson-agx-thor/jetson_clocks/show_r38_maxn_locked_retold"),
    ],
)
def test_locked_clocks_are_shown_as_recorded(
    make_board: Callable[..., Board], tmp_path: Path, name: str, mode_id: int, recording: str
) -> None:
    def known(text: str) -> list[str]:
        lines = (re.sub(r"(pwm1)=\d+", r"\1=N", line.rstrip()) for line in text.splitlines())
        # That board's vision engine had other clocks.
        return [re.sub(r"=\d+", "=N", line) if "PVA" in line else line for line in lines]

    quirks = BoardSimulation(quirks=(Quirk.GPU_UNUSED,))
    board = make_board("b", name, simulation=quirks)
    shell = boot_board(board, tmp_path / "b", SHIPPED[name])
    shell(f"sudo -n nvpmodel -m {mode_id}; sudo -n jetson_clocks")
    wanted = (RECORDINGS / f"{recording}.txt").read_text()
    assert known(shell("sudo -n jetson_clocks --show")) == known(wanted)


@pytest.mark.parametrize(
    ("name", "mode_id", "recording"),
    [
        ("jetson-orin-nano-super", 1, "jetson-orin-nano/nvpmodel/query_verbose_super_25w"),
        ("jetson-orin-nx-super", 4, "jetson-orin-nx/nvpmodel/query_verbose_super_40w"),
    ],
)
def test_verbose_query_is_as_recorded(
    make_board: Callable[..., Board], tmp_path: Path, name: str, mode_id: int, recording: str
) -> None:
    shell = boot_board(make_board("b", name), tmp_path / "b", SHIPPED[name])
    assert shell("nvpmodel -q").splitlines()[1] == str(mode_id)
    wanted = (RECORDINGS / f"{recording}.txt").read_text().splitlines()
    assert shell("sudo -n nvpmodel -q --verbose").splitlines() == wanted
