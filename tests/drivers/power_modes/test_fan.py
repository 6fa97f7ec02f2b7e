"""A fan is found, held, read back and given back: by the kernel's files, and by the service."""

from collections.abc import Sequence

import pytest

from farm.drivers.power_modes.fan import NEW, OLD, JetsonFan
from farm.errors import PowerModeError, UnsupportedPowerModeError
from farm.model.power_mode import FanPolicy
from tests.servers.memory_board import NO_SUDO, MemoryBoard, Told

PWM = f"{NEW}/hwmon3/pwm1"


class FanFiles(MemoryBoard):
    """A board's files; `service` is None where there is no nvfancontrol. `log`: what changed."""

    def __init__(self, files: dict[str, str], service: bool | None = None) -> None:
        self.files, self.service = files, service
        self.log: list[str] = []
        self.has_root, self.is_stubborn = True, False

    def answer(self, argv: Sequence[str], stdin: bytes, *, needs_root: bool) -> Told:
        if argv[1] == "is-active":
            text = b"active\n" if self.service else b"inactive\n"
            return Told(0 if self.service else 3, text)
        if not self.has_root:
            return Told(1, stderr=NO_SUDO)
        self.log.append(" ".join(argv))
        if argv[0] == "systemctl":
            self.service = argv[1] == "start"
        elif not self.is_stubborn:
            self.files[argv[1]] = stdin.decode()
        return Told()


def old_board() -> FanFiles:
    return FanFiles({f"{OLD}/target_pwm": "80\n", f"{OLD}/temp_control": "1\n"})


def new_board(*, service: bool = True) -> FanFiles:
    return FanFiles({PWM: "55\n"}, service)


@pytest.mark.parametrize(
    ("board", "changes"),
    [
        (old_board(), [f"tee {OLD}/temp_control", f"tee {OLD}/target_pwm"]),
        (new_board(), ["systemctl stop nvfancontrol", f"tee {PWM}"]),
    ],
    ids=["L4T R32", "L4T R36"],
)
async def test_it_is_held_and_given_back(board: FanFiles, changes: list[str]) -> None:
    fan = JetsonFan(board)
    found = await fan.state()
    steps = await fan.steps(found)
    await fan.hold("max")
    assert (found, await fan.state(), board.log) == ("auto", "held 255", changes)
    await fan.hold("max")
    assert board.log == changes  # it was so already
    await fan.hold(100)
    assert await fan.state() == "held 100"
    await fan.restore(found)
    assert await fan.state() == "auto"
    for step in steps:  # what the board itself would do
        await board.run(step.argv, stdin=step.stdin.encode())
    assert await fan.state() == "auto"


async def test_a_fan_that_somebody_held_is_held_so_again() -> None:
    fan = JetsonFan(new_board(service=False))
    found = await fan.state()
    await fan.hold(0)
    await fan.restore(found)
    assert (found, await fan.state()) == ("held 55", "held 55")


async def test_default_changes_nothing() -> None:
    board = new_board()
    await JetsonFan(board).hold("default")
    assert board.log == []


@pytest.mark.parametrize("policy", ["max", 128])
async def test_without_a_fan_it_is_unsupported(policy: FanPolicy) -> None:
    board = FanFiles({f"{NEW}/hwmon0/pwm1": "no number\n"})
    fan = JetsonFan(board)
    assert await fan.state() == ""
    with pytest.raises(UnsupportedPowerModeError, match="no fan that can be set"):
        await fan.hold(policy)
    await fan.restore("auto")
    assert (board.log, await fan.steps("auto")) == ([], ())


async def test_a_fan_that_does_not_take_the_value_is_told() -> None:
    board = old_board()
    board.is_stubborn = True
    with pytest.raises(PowerModeError, match="the fan is auto, not held 255"):
        await JetsonFan(board).hold("max")


async def test_without_rights_the_remedy_tells_how_to_get_them() -> None:
    board = new_board()
    board.has_root = False
    with pytest.raises(PowerModeError, match="needs root") as caught:
        await JetsonFan(board).hold("max")
    assert "farm boards sudoers --with-fan" in caught.value.remedy


async def test_a_state_that_makes_no_sense_is_not_put_back() -> None:
    board = new_board()
    assert await JetsonFan(board).steps("held 255; reboot") == ()
