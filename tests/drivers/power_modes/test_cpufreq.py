"""Setting, proving and restoring governors on a /sys that refuses what a kernel refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.power_modes.cpufreq import CPU, STORE, CpufreqPowerController
from farm.errors import PowerModeError, UnsupportedPowerModeError
from farm.model.power_mode import ClockPolicy, PowerModeState
from farm.model.profile import BoardProfile
from tests.drivers.power_modes.fake_cpus import FakeCpus

PROFILE = BoardProfile(name="raspberry-pi-4", summary="", power_controller="cpufreq", cores=4)
LOW, HIGH = "600000", "1500000"


def controller(board: FakeCpus) -> CpufreqPowerController:
    return CpufreqPowerController(board, PROFILE)


def big_little() -> FakeCpus:
    return FakeCpus({0: (0, 1, 2, 3), 4: (4, 5)})


async def test_the_table_is_what_the_kernel_offers() -> None:
    table = await controller(FakeCpus()).modes()
    names = [mode.name for mode in table.modes]
    assert names == ["performance", "conservative", "ondemand", "schedutil", "powersave"]
    assert table.default == "ondemand"
    assert [mode.cpu_mhz for mode in table.modes] == [1500, 1500, 1500, 1500, 600]


@pytest.mark.parametrize(
    ("asked", "clocks", "name", "setting"),
    [
        ("maxn", "default", "performance", ("performance", LOW, HIGH)),
        ("maxn", "locked", "performance", ("performance", HIGH, HIGH)),
        ("maxq", "default", "powersave", ("powersave", LOW, HIGH)),
        ("maxq", "locked", "powersave", ("powersave", LOW, LOW)),
        ("maxp", "default", "ondemand", ("ondemand", LOW, HIGH)),
        ("Schedutil", "locked", "schedutil", ("schedutil", HIGH, HIGH)),
        ("default", "default", "ondemand", ("ondemand", LOW, HIGH)),
        ("current", "default", "ondemand", ("ondemand", LOW, HIGH)),
    ],
)
async def test_a_mode_is_set_and_read_back_on_all_policies(
    asked: str, clocks: ClockPolicy, name: str, setting: tuple[str, str, str]
) -> None:
    board = big_little()
    applied = await controller(board).apply(asked, clocks)
    assert (board.setting(0), board.setting(4)) == (setting, setting)
    assert (applied.name, applied.read_back.name) == (name, name)
    assert applied.read_back.is_locked == (clocks == "locked")
    assert applied.has_changed == (board.log != [])


async def test_the_mode_it_is_in_is_not_set_again() -> None:
    board = FakeCpus()
    control = controller(board)
    await control.apply("maxn", "default")
    board.log.clear()
    assert not (await control.apply("maxn", "default")).has_changed
    assert board.log == []


async def test_maxn_brings_all_cores_online_and_restore_takes_them_off_again() -> None:
    board = big_little()
    for core in (4, 5):  # a whole policy: it cannot be read until a core of it is online
        board.files[f"{CPU}/cpu{core}/online"] = "0\n"
    original = await controller(board).current()
    applied = await controller(board).apply("maxn", "default")
    assert applied.read_back.detail["online"] == "0,1,2,3,4,5"
    assert board.setting(4)[0] == "performance"
    await controller(board).restore(original)
    assert board.online() == [0, 1, 2, 3]
    assert board.setting(0) == ("ondemand", LOW, HIGH)


async def test_a_setting_of_ones_own_is_the_default_and_comes_back() -> None:
    board = FakeCpus()
    board.files[f"{CPU}/cpufreq/policy0/scaling_max_freq"] = "1000000\n"
    found = board.setting()
    original = await controller(board).current()
    assert original.name == "default"
    await controller(board).apply("maxn", "locked")
    # Each time by a controller that knows nothing, as after a link that was lost.
    applied = await controller(board).apply("default", "default")
    assert (applied.name, board.setting()) == ("default", found)
    await controller(board).apply("maxq", "default")
    await controller(board).restore(original)
    assert board.setting() == found
    assert board.files[STORE] == ""


async def test_what_somebody_else_set_meanwhile_has_a_name_too() -> None:
    board = FakeCpus()
    await controller(board).apply("maxn", "default")
    board.files[f"{CPU}/cpufreq/policy0/scaling_max_freq"] = "1000000\n"
    assert (await controller(board).current()).name == "custom"


async def test_a_powersave_that_is_not_the_lowest_is_not_taken_for_it() -> None:
    board = FakeCpus(driver="intel_pstate", governors="performance powersave")
    board.files[f"{CPU}/cpufreq/policy0/scaling_governor"] = "powersave\n"
    applied = await controller(board).apply("maxq", "default")
    assert applied.name == "lowest"
    assert board.setting() == ("powersave", LOW, LOW)
    applied = await controller(board).apply("powersave", "default")
    assert board.setting() == ("powersave", LOW, HIGH)


@pytest.mark.parametrize("file", ["scaling_governor", "scaling_min_freq"])
async def test_a_write_without_effect_names_the_file(file: str) -> None:
    path = f"{CPU}/cpufreq/policy0/{file}"
    with pytest.raises(PowerModeError, match=f"write {path}: it reads"):
        await controller(FakeCpus(ignores=(path,))).apply("maxn", "locked")


async def test_a_core_that_stays_offline_names_the_file() -> None:
    path = f"{CPU}/cpu3/online"
    board = FakeCpus(ignores=(path,))
    board.files[path] = "0\n"
    with pytest.raises(PowerModeError, match=f"write {path}: it reads '0', not '1'"):
        await controller(board).apply("maxn", "default")


async def test_unknown_modes_list_what_exists() -> None:
    with pytest.raises(UnsupportedPowerModeError, match="performance, conservative, ondemand"):
        await controller(FakeCpus()).apply("15W", "default")
    with pytest.raises(UnsupportedPowerModeError):  # nothing would choose frequencies
        await controller(FakeCpus()).apply("userspace", "default")


async def test_without_sudo_reading_works_and_a_change_names_the_remedy() -> None:
    board = FakeCpus(has_root=False)
    assert (await controller(board).apply("current", "default")).name == "ondemand"
    with pytest.raises(PowerModeError, match="password is required") as caught:
        await controller(board).apply("maxn", "default")
    assert f"/usr/bin/tee {CPU}/cpufreq/policy[0-9]/scaling_governor" in caught.value.remedy
    assert "*" not in caught.value.remedy


async def test_a_kernel_without_cpufreq_is_an_error_with_the_profile() -> None:
    board = FakeCpus()
    board.files = {f"{CPU}/present": "0-3\n"}
    with pytest.raises(PowerModeError, match="no policy") as caught:
        await controller(board).modes()
    assert "raspberry-pi-4" in caught.value.remedy


async def test_a_state_without_its_settings_cannot_be_restored() -> None:
    with pytest.raises(PowerModeError, match="without its settings"):
        await controller(FakeCpus()).restore(PowerModeState(name="default"))


STEPS = st.tuples(
    st.sampled_from(["maxn", "maxq", "schedutil", "ondemand", "default", "current"]),
    st.sampled_from(["default", "locked"]),
)


@given(
    st.lists(STEPS, max_size=6),
    st.sampled_from(["ondemand", "performance", "powersave"]),
    st.sampled_from([(600000, 1500000), (600000, 600000), (900000, 1200000)]),
    st.sets(st.sampled_from([1, 2, 3, 4, 5]), max_size=5),
)
@settings(deadline=None, max_examples=60)
async def test_whatever_was_done_the_board_comes_back_as_it_was_found(
    steps: list[tuple[str, ClockPolicy]],
    governor: str,
    span: tuple[int, int],
    offline: set[int],
) -> None:
    board = big_little()
    for number in (0, 4):
        folder = f"{CPU}/cpufreq/policy{number}"
        board.files[f"{folder}/scaling_governor"] = f"{governor}\n"
        board.files[f"{folder}/scaling_min_freq"] = f"{span[0]}\n"
        board.files[f"{folder}/scaling_max_freq"] = f"{span[1]}\n"
    for core in offline:
        board.files[f"{CPU}/cpu{core}/online"] = "0\n"
    original, online = await controller(board).current(), board.online()
    found = board.setting(0)
    for asked, clocks in steps:
        applied = await controller(board).apply(asked, clocks)
        assert applied.read_back.name == applied.name
    await controller(board).restore(original)
    assert (board.setting(0), board.online()) == (found, online)
    assert await controller(board).current() == original


@pytest.mark.parametrize("asked", ["maxn", "maxq"])
async def test_the_board_can_put_itself_back_by_the_steps(asked: str) -> None:
    board = big_little()
    board.files[f"{CPU}/cpu5/online"] = "0\n"
    control = controller(board)
    found = await control.current()
    steps = await control.restore_steps(found)
    await control.apply(asked, "locked")
    for step in steps:
        await board.run(step.argv, needs_root=step.needs_root, stdin=step.stdin.encode())
    assert await control.current() == found
    assert board.files.get(STORE, "").strip() == ""
