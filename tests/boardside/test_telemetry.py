"""What a board tells of itself: its files, a tool's lines, and nothing that holds up a trial."""

import os
from collections.abc import Callable
from pathlib import Path

from farm.drivers.telemetry.tegrastats import TegrastatsTelemetry
from farm.interfaces.telemetry import TelemetryBatch, TelemetryLine, TelemetryReading
from tests.boardside.local_board import Bench, bench, is_process, until

LINE = "RAM 1404/7860MB (lfb 236x4MB) CPU [12%@345,off] GR3D_FREQ 99%@1300 VDD_IN 9000/8000"
TOOL = f"""#!/bin/sh
echo $$ >>"$HOME/tool.pids"
echo "$@" >"$HOME/tool.args"
while :; do echo '{LINE}'; sleep 0.05; done
"""
NOT_ROOT = "#!/bin/sh\necho 1000\n"
NO_SUDO = "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n"
CPU = "sys/devices/system/cpu"
HWMON = "sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon4"
INA238 = "sys/bus/i2c/drivers/ina238/2-0044/hwmon/hwmon5"
IIO = "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
FILES = {
    "sys/class/thermal/thermal_zone0/type": "CPU-therm",
    "sys/class/thermal/thermal_zone0/temp": "41500",
    "sys/class/thermal/thermal_zone1/type": "gpu-thermal",
    "sys/class/thermal/thermal_zone1/temp": "-256000",
    "sys/class/thermal/thermal_zone2/type": "PMIC-Die",
    "sys/class/thermal/thermal_zone2/temp": "100000",
    "sys/class/thermal/cooling_device0/type": "pwm-fan",
    "sys/class/thermal/cooling_device0/cur_state": "2",
    "sys/class/thermal/cooling_device1/type": "thermal-cpufreq-0",
    "sys/class/thermal/cooling_device1/cur_state": "3",
    f"{CPU}/cpufreq/policy0/related_cpus": "0 3",
    f"{CPU}/cpufreq/policy0/scaling_cur_freq": "345600",
    f"{CPU}/cpufreq/policy0/scaling_max_freq": "2035200",
    "sys/devices/gpu.0/load": "423",
    "sys/class/devfreq/17000000.gp10b/cur_freq": "114750000",
    "sys/class/devfreq/17000000.gp10b/max_freq": "1300500000",
    "sys/class/hwmon/hwmon2/oc1_event_cnt": "5",
    f"{HWMON}/name": "ina3221",
    f"{HWMON}/in1_label": "VDD_IN",
    f"{HWMON}/in1_input": "5000",
    f"{HWMON}/curr1_input": "1200",
    f"{HWMON}/in2_label": "NC",
    f"{HWMON}/curr2_input": "1",
    f"{HWMON}/in7_label": "sum of shunt voltages",
    f"{INA238}/name": "ina238",
    f"{INA238}/power1_input": "43713000",
    f"{IIO}/rail_name_0": "POM_5V_IN",
    f"{IIO}/in_power0_input": "2890",
    "sys/devices/platform/soc/soc:firmware/get_throttled": "50005",
    "proc/stat": "cpu 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0\n",
}
TOLD = {
    "temperature_c:CPU": 41.5,
    "cooling_state:thermal-cpufreq-0-1": 3,
    "clock_mhz:cpu0": 345.6,
    "clock_mhz:cpu3": 345.6,
    "cap_mhz:cpu0": 2035.2,
    "cap_mhz:cpu3": 2035.2,
    "load_pct:GPU": 42.3,
    "clock_mhz:GPU": 114.75,
    "cap_mhz:GPU": 1300.5,
    "over_current_count:oc1": 5,
    "rail_mw:VDD_IN": 6000,
    "rail_mw:VIN": 43713,
    "rail_mw:POM_5V_IN": 2890,
    "throttled_bits": 0x50005,
    "attempts": 0,
}


def lay_out(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")


def readings(batches: list[TelemetryBatch]) -> list[TelemetryReading]:
    return [item for one in batches for item in one.items if isinstance(item, TelemetryReading)]


def lines(batches: list[TelemetryBatch]) -> list[TelemetryLine]:
    return [item for one in batches for item in one.items if isinstance(item, TelemetryLine)]


def loads(batches: list[TelemetryBatch]) -> list[float]:
    values = [one.values.get("load_pct:cpu0") for one in readings(batches)]
    return [value for value in values if value is not None]


async def test_files_of_every_release_become_channels(tmp_path: Path) -> None:
    lay_out(tmp_path / "root", FILES)
    async with bench(tmp_path, root_prefix=str(tmp_path / "root")) as board:
        told: list[TelemetryBatch] = []
        board.agent.start_telemetry((), 10.0, told.append)
        await until(lambda: readings(told), "a reading")
        assert dict(readings(told)[0].values) == TOLD
        assert {one.source for one in told} == {"files"}
        (tmp_path / "root/proc/stat").write_text("cpu0 160 0 120 820 0 0\n")
        (tmp_path / f"root/{CPU}/cpufreq/policy0/scaling_max_freq").unlink()
        await until(lambda: loads(told), "a load")
        assert loads(told) == [80.0]
        await until(lambda: "cap_mhz:cpu0" not in readings(told)[-1].values, "a file that is gone")
        times = [one.t_s for one in readings(told)]
        assert times == sorted(times)


def with_tool(folder: Path, **programs: str) -> dict[str, str]:
    """PATH with our programs first."""
    (folder / "tools").mkdir()
    for name, text in programs.items():
        (folder / "tools" / name).write_text(text)
        (folder / "tools" / name).chmod(0o755)
    return {"PATH": f"{folder}/tools:{os.environ['PATH']}"}


def tool_pids(board: Bench) -> list[int]:
    path = board.transport.home / "tool.pids"
    return [int(word) for word in path.read_text().split()] if path.exists() else []


async def test_a_tool_runs_without_root_where_sudo_refuses_and_ends_with_the_stream(
    tmp_path: Path,
) -> None:
    path = with_tool(tmp_path, tegrastats=TOOL, id=NOT_ROOT, sudo=NO_SUDO)
    async with bench(tmp_path, path) as board:
        told: list[TelemetryBatch] = []
        command = TegrastatsTelemetry().command(0.1)
        board.agent.start_telemetry(command, 10.0, told.append)
        await until(lambda: len(lines(told)) > 2, "lines of the tool")
        assert (board.transport.home / "tool.args").read_text() == "--interval 100\n"
        assert TegrastatsTelemetry().parse(lines(told)[0].text)["load_pct:GPU"] == 99
        assert told[-1].source == "tool"
        (pid,) = tool_pids(board)
        board.agent.stop_telemetry()
        await until(lambda: not is_process(pid), "the tool's end")
        board.agent.start_telemetry(command, 10.0, told.append)
        await until(lambda: len(tool_pids(board)) == 2, "another start")
        again = tool_pids(board)[1]
    await until(lambda: not is_process(again), "the tool's end with the agent")


async def test_a_tool_that_ends_is_started_a_few_times_and_files_go_on(tmp_path: Path) -> None:
    mortal = f"#!/bin/sh\necho $$ >>\"$HOME/tool.pids\"\necho '{LINE}'\n"
    async with bench(tmp_path, with_tool(tmp_path, tegrastats=mortal)) as board:
        told: list[TelemetryBatch] = []
        board.agent.start_telemetry(("tegrastats",), 10.0, told.append)
        await until(lambda: len(tool_pids(board)) == 4, "four starts")
        count = len(readings(told))
        await until(lambda: len(readings(told)) > count + 3, "more readings")
        assert len(tool_pids(board)) == 4


async def test_a_board_without_the_tool_tells_its_files(board: Bench) -> None:
    told: list[TelemetryBatch] = []
    board.agent.start_telemetry(("no-such-tool-here", "x"), 10.0, told.append)
    await until(lambda: readings(told), "a reading")
    assert readings(told)[0].values["attempts"] == 0


async def test_an_attempts_end_is_read_before_the_clock_answers(board: Bench) -> None:
    told: list[TelemetryBatch] = []
    board.agent.start_telemetry((), 0.1, told.append)
    exited = await board.run_script("a1", "sleep 0.3")
    await board.agent.exchange_clock()
    during = [one.values["attempts"] for one in readings(told) if one.t_s < exited.end_s]
    after = [one.values["attempts"] for one in readings(told) if one.t_s >= exited.end_s]
    assert during[0] == 0
    assert set(after) == {0}
    board.agent.stop_telemetry()
    await board.agent.exchange_clock()
    count = len(told)
    await board.run_script("a2", "sleep 0.2")
    await board.agent.exchange_clock()
    assert len(told) == count


async def test_wrong_requests_are_refused_and_the_agent_lives(board: Bench) -> None:
    told: list[TelemetryBatch] = []
    for argv, rate in (((), 11.0), ((), 0.0), (("a\0b",), 1.0)):
        board.agent.start_telemetry(argv, rate, told.append)
    await board.agent.exchange_clock()
    assert told == []


Look = Callable[[float], list[tuple[float, str, float]]]


def other_load(root: Path, roots: list[int]) -> Look:
    """`OtherLoad` of the board side, in this process."""
    import importlib
    import sys

    folder = str(Path(__file__).parents[2] / "farm/boardside")
    sys.path.insert(0, folder)
    before = set(sys.modules)
    try:
        module = importlib.import_module("telemetry_load")
    finally:
        sys.path.remove(folder)
        for name in set(sys.modules) - before:
            del sys.modules[name]

    class Place:
        @staticmethod
        def rooted(path: str) -> str:
            return str(root) + path

    look: Look = module.OtherLoad(Place, lambda: roots).look
    return look


def process(root: Path, pid: int, parent: int, ticks: int, name: str, *, flags: int = 0) -> None:
    fields = ["R", str(parent), *["0"] * 4, str(flags), *["0"] * 4, str(ticks), "0", *["0"] * 6]
    lay_out(root, {f"proc/{pid}/stat": f"{pid} ({name}) {' '.join([*fields, '7'])}"})


def test_processes_outside_our_trees_are_told_with_their_share(tmp_path: Path) -> None:
    look = other_load(tmp_path, [50])

    def now(ticks: int) -> None:
        lay_out(tmp_path, {"proc/stat": f"cpu  {5 * ticks} 0 0 0 0\ncpu0 0 0 0 0 0"})
        process(tmp_path, 50, 1, 0, "agent")
        process(tmp_path, 51, 50, ticks, "payload (x)")
        process(tmp_path, 60, 1, ticks // 2, "apt get")
        process(tmp_path, 61, 1, ticks // 20, "calm")
        process(tmp_path, 62, 2, ticks, "kworker", flags=0x00200000)

    hertz = os.sysconf("SC_CLK_TCK")
    now(0)
    assert look(100.0) == []
    now(4 * hertz)
    assert look(104.0) == []  # too early for another pass
    now(10 * hertz)
    assert look(110.0) == [(100.0, "apt get", 50.0)]
    assert look(116.0) == []  # no ticks since: the cores were idle
    now(30 * hertz)
    assert look(300.0) == []  # the earlier pass is of another time
    now(40 * hertz)
    assert look(310.0) == [(300.0, "apt get", 50.0)]
