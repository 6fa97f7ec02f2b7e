"""Boards with one mode."""

import pytest

from farm.drivers.power_modes.fixed import FixedPowerController
from farm.errors import PowerModeError, UnsupportedPowerModeError
from farm.model.power_mode import PowerMode, PowerModeState
from farm.model.profile import BoardProfile
from farm.testing.fakes import FakeBoardAgent, FakeClock


def controller(*names: str) -> FixedPowerController:
    modes = tuple(PowerMode(name=name) for name in names)
    profile = BoardProfile(name="zcu104", summary="FPGA", cores=4, power_modes=modes)
    return FixedPowerController(FakeBoardAgent(FakeClock()), profile)


@pytest.mark.parametrize("asked", ["maxn", "MAXQ", "maxp", "current", "dpu-2x4096", "DPU-2x4096"])
async def test_every_word_means_the_one_mode(asked: str) -> None:
    applied = await controller("dpu-2x4096").apply(asked, "default")
    assert (applied.asked, applied.name, applied.has_changed) == (asked, "dpu-2x4096", False)
    assert applied.read_back == PowerModeState(name="dpu-2x4096")


async def test_without_a_name_it_is_default() -> None:
    table = await controller().modes()
    assert [mode.name for mode in table.modes] == ["default"]
    assert table.default == "default"


async def test_other_modes_and_locked_clocks_are_unsupported() -> None:
    with pytest.raises(UnsupportedPowerModeError, match="default only"):
        await controller().apply("10W", "default")
    with pytest.raises(UnsupportedPowerModeError, match="lock"):
        await controller().apply("current", "locked")


async def test_restore_takes_its_own_state_only() -> None:
    control = controller("a")
    await control.restore(await control.current())
    with pytest.raises(PowerModeError):
        await control.restore(PowerModeState(name="MAXN", id=0))
