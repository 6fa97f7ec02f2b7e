"""Power limits and clock locks on a card in memory that answers as nvidia-smi does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from farm.drivers.power_modes.nvidia_smi import FIELDS, STORE, NvidiaSmiPowerController
from farm.errors import PowerModeError, UnsupportedPowerModeError
from farm.model.power_mode import ClockPolicy, PowerModeState
from farm.model.profile import BoardProfile
from tests.servers.memory_board import NO_SUDO, MemoryBoard, Told

PROFILE = BoardProfile(name="nvidia-gpu", summary="", power_controller="nvidia-smi", cores=4)


@dataclass
class FakeCard(MemoryBoard):
    """An RTX 2080 (limits of a recording). `unknown` fields read ``[N/A]``."""

    limit_w: float = 200.0
    persistence: str = "Disabled"
    unknown: tuple[str, ...] = ()
    says: str | None = None
    ignores_limit: bool = False
    has_no_lock: bool = False
    has_root: bool = True
    cards: int = 1
    lock: str = ""
    files: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def answer(self, argv: Sequence[str], stdin: bytes, *, needs_root: bool) -> Told:
        if argv[1].startswith("--query-gpu"):
            text = (self._row() + "\n") * self.cards if self.says is None else self.says
            return Told(stdout=text.encode())
        assert needs_root
        if not self.has_root:
            return Told(1, stderr=NO_SUDO)
        self.log.append(" ".join(argv[1:]))
        if argv[0] == "tee":
            self.files[argv[1]] = stdin.decode()
            return Told(stdout=stdin)
        options: dict[str, Callable[[str], str]] = {
            "-pm": self._persist,
            "-pl": self._limit,
            "-lgc": self._lock,
            "-rgc": self._free,
        }
        text = options[argv[1]](argv[-1])
        return Told(stdout=text.encode())

    def _row(self) -> str:
        now = ("NVIDIA GeForce RTX 2080", self.persistence, f"{self.limit_w:.2f}")
        told = (*now, "105.00", "225.00", "292.00", "2100")
        pairs = zip(FIELDS, told, strict=True)
        return ", ".join("[N/A]" if name in self.unknown else text for name, text in pairs)

    def _persist(self, switch: str) -> str:
        self.persistence = "Enabled" if switch == "1" else "Disabled"
        return "Enabled persistence mode for GPU 00000000:01:00.0.\nAll done.\n"

    def _limit(self, watts: str) -> str:
        before = self.limit_w
        if not self.ignores_limit:
            self.limit_w = float(watts)
        return f"Power limit for GPU 00000000:01:00.0 was set to {watts} W from {before} W.\n"

    def _lock(self, clocks: str) -> str:
        if self.has_no_lock:
            return "Setting locked GPU clocks is not supported for GPU 00000000:01:00.0.\n"
        self.lock = clocks
        return 'GPU clocks set to "(gpuClkMin 2100, gpuClkMax 2100)" for GPU 00000000:01:00.0\n'

    def _free(self, _: str) -> str:
        self.lock = ""
        return "All done.\n"


def controller(card: FakeCard) -> NvidiaSmiPowerController:
    return NvidiaSmiPowerController(card, PROFILE)


async def test_the_table_is_the_cards_limits() -> None:
    table = await controller(FakeCard()).modes()
    assert [mode.name for mode in table.modes] == ["292W", "225W", "105W", "200W"]
    assert table.default == "225W"


@pytest.mark.parametrize(
    ("asked", "name", "limit_w"),
    [
        ("maxn", "292W", 292.0),
        ("maxp", "225W", 225.0),
        ("maxq", "105W", 105.0),
        ("150W", "150W", 150.0),
        ("150 w", "150W", 150.0),
        ("105w", "105W", 105.0),
        ("current", "200W", 200.0),
    ],
)
async def test_a_limit_is_set_and_read_back(asked: str, name: str, limit_w: float) -> None:
    card = FakeCard()
    applied = await controller(card).apply(asked, "default")
    assert (applied.name, applied.read_back.name, card.limit_w) == (name, name, limit_w)
    assert applied.has_changed == (asked != "current") == (card.persistence == "Enabled")
    assert ("-pm 1" in card.log) == applied.has_changed  # the driver would forget the limit


async def test_clocks_are_locked_noted_and_freed() -> None:
    card = FakeCard()
    applied = await controller(card).apply("maxn", "locked")
    assert applied.read_back.is_locked
    assert card.lock == "2100,2100"
    # Another controller, as after a host that died: the note on the board tells it.
    applied = await controller(card).apply("maxn", "default")
    assert applied.has_changed
    assert (card.lock, card.files[STORE]) == ("", "")


async def test_locked_again_is_not_locked_again() -> None:
    card = FakeCard()
    await controller(card).apply("maxn", "locked")
    card.log.clear()
    assert not (await controller(card).apply("maxn", "locked")).has_changed
    assert card.log == []


@pytest.mark.parametrize("clocks", ["default", "locked"])
async def test_restore_puts_everything_back(clocks: ClockPolicy) -> None:
    card = FakeCard(limit_w=187.5)
    original = await controller(card).current()
    await controller(card).apply("maxn", clocks)
    await controller(card).restore(original)
    assert (card.limit_w, card.persistence, card.lock) == (187.5, "Disabled", "")
    assert await controller(card).current() == original


async def test_a_lock_that_was_found_is_put_back() -> None:
    card = FakeCard(persistence="Enabled", lock="1500,1500", files={STORE: "1500\n"})
    original = await controller(card).current()
    await controller(card).apply("maxq", "default")
    assert card.lock == ""
    await controller(card).restore(original)
    assert (card.lock, card.limit_w, card.persistence) == ("1500,1500", 200.0, "Enabled")


@pytest.mark.parametrize("field_name", ["power.limit", "power.min_limit", "power.max_limit"])
async def test_a_limit_that_is_not_told_is_no_mode(field_name: str) -> None:
    with pytest.raises(
        UnsupportedPowerModeError, match=f"does not tell its {field_name}; it tells name NVIDIA"
    ):
        await controller(FakeCard(unknown=(field_name,))).apply("maxn", "default")


async def test_a_limit_out_of_range_tells_the_range() -> None:
    with pytest.raises(
        UnsupportedPowerModeError, match="300 W is not between the card's 105 W and 292 W"
    ):
        await controller(FakeCard()).apply("300W", "default")
    with pytest.raises(UnsupportedPowerModeError, match="it has 292W, 225W, 105W"):
        await controller(FakeCard()).apply("MAXP_CORE_ALL", "default")


async def test_said_done_and_another_limit_read_back() -> None:
    with pytest.raises(PowerModeError, match=r"set power mode 292W: the limit reads 200.00 W"):
        await controller(FakeCard(ignores_limit=True)).apply("maxn", "default")


async def test_a_card_without_clock_locks() -> None:
    with pytest.raises(UnsupportedPowerModeError, match="not supported"):
        await controller(FakeCard(has_no_lock=True)).apply("current", "locked")
    with pytest.raises(UnsupportedPowerModeError, match="top graphics clock"):
        await controller(FakeCard(unknown=("clocks.max.graphics",))).apply("current", "locked")


async def test_without_sudo_reading_works_and_a_change_names_the_remedy() -> None:
    card = FakeCard(has_root=False)
    assert (await controller(card).apply("current", "default")).name == "200W"
    with pytest.raises(PowerModeError, match="password is required") as caught:
        await controller(card).apply("maxn", "default")
    assert "/usr/bin/nvidia-smi -pl [0-9][0-9][0-9]" in caught.value.remedy
    assert "*" not in caught.value.remedy


@pytest.mark.parametrize(
    ("says", "match"),
    [
        ("", "it lists no card"),
        (
            "Unable to determine the device handle for GPU0: GPU has fallen off the bus.",
            "off the bus",
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "has failed",
        ),
    ],
)
async def test_a_card_that_is_gone(says: str, match: str) -> None:
    with pytest.raises(PowerModeError, match=match):
        await controller(FakeCard(says=says)).current()


async def test_two_cards_are_not_taken_for_one() -> None:
    with pytest.raises(PowerModeError, match="lists 2 cards"):
        await controller(FakeCard(cards=2)).current()


async def test_a_state_without_its_watts_cannot_be_restored() -> None:
    with pytest.raises(PowerModeError, match="without its watts"):
        await controller(FakeCard()).restore(PowerModeState(name="200W"))


@pytest.mark.parametrize("lock", ["", "1500"])
async def test_the_board_can_put_itself_back_by_the_steps(lock: str) -> None:
    card = FakeCard(lock=lock, files={STORE: f"{lock}\n"} if lock else {})
    control = controller(card)
    found = await control.current()
    steps = await control.restore_steps(found)
    await control.apply("maxq", "locked")
    for step in steps:
        result = await card.run(step.argv, needs_root=step.needs_root, stdin=step.stdin.encode())
        assert result.exit_status == 0
    assert await control.current() == found
    assert steps[-1].expects == "200.00"
