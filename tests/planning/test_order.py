from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.model.plan import Plan
from farm.model.profile import BoardProfile
from farm.planning.order import count_changes, mask_of, order_modes
from tests.planning.builders import board, plan, profile, sweep, texts


def modes_in_order(made: Plan) -> list[str]:
    return [mode for mode, _ in groupby(trial.cell.power_mode for trial in made.trials)]


def reboots_of(modes: Sequence[str], masks: Mapping[str, int | None]) -> int:
    """Counted in another way than the code under test: changes in the row of known masks."""
    known = [masks[mode] for mode in modes if masks[mode] is not None]
    return sum(one != two for one, two in pairwise(known))


def test_repeats_take_turns_inside_a_mode() -> None:
    made = plan(
        sweep(
            [{"payload": "w", "axes": {"batch": (1, 8)}}],
            repeats=3,
            power_modes=("MAXN", "MAXQ"),
        ),
        [board("a")],
    )
    assert texts(made) == [
        f"a {mode} {batch} r{repeat}"
        for mode in ("MAXN", "MAXQ")
        for repeat in (1, 2, 3)
        for batch in (1, 8)
    ]
    first = made.trials[0]
    assert first.trial_id == f"{first.cell.cell_id}-r01"
    assert made.trials[2].cell is first.cell


def test_higher_priority_runs_first_and_repeats_may_differ() -> None:
    made = plan(
        sweep(
            [
                {"payload": "w", "axes": {"batch": (1, 2)}, "repeats": 2},
                {"payload": "w", "axes": {"batch": (4,)}, "repeats": 1},
                {"payload": "w", "axes": {"batch": (8,)}, "priority": 1},
            ],
            repeats=3,
        ),
        [board("a")],
    )
    assert [text.removeprefix("a current ") for text in texts(made)] == [
        *("8 r1", "8 r2", "8 r3"),
        *("1 r1", "2 r1", "4 r1", "1 r2", "2 r2"),
    ]


@pytest.mark.parametrize(
    ("masks", "default", "asked", "expected", "reboots"),
    [
        # Modes of one mask stand together, whatever the order asked for.
        ({"A": 0, "B": 5, "C": 0, "D": 5}, None, "ABCD", ["A", "C", "B", "D"], 1),
        # The default's mask first: the board is most likely in it; back to it at the end.
        ({"A": 0, "B": 5, "C": 0, "D": 5}, "D", "ABCD", ["B", "D", "A", "C"], 2),
        # Into the one mode, and back.
        ({"A": 0, "B": 5}, "B", "A", ["A"], 2),
        # A mode without a mask needs no reboot and stands where it was asked.
        ({"A": None, "B": None}, None, "BA", ["B", "A"], 0),
    ],
)
def test_modes_are_ordered_to_avoid_reboots(
    masks: Mapping[str, int | None],
    default: str | None,
    asked: str,
    expected: list[str],
    reboots: int,
) -> None:
    made = plan(
        sweep(power_modes=tuple(asked)), [board("a")], [profile(masks=masks, default=default)]
    )
    assert modes_in_order(made) == expected
    assert (made.lanes[0].mode_changes, made.lanes[0].reboots) == (len(asked) - 1, reboots)


def test_current_comes_first_with_the_modes_of_the_default_mask() -> None:
    masks = {"A": 5, "B": 0, "C": 0}
    made = plan(
        sweep(power_modes=("A", "B", "current")),
        [board("a")],
        [profile(masks=masks, default="C")],
    )
    assert modes_in_order(made) == ["current", "B", "A"]
    assert made.lanes[0].reboots == 2


def test_of_modes_that_cost_the_same_the_higher_priority_runs_first() -> None:
    made = plan(
        sweep(
            [
                {"payload": "w", "power_modes": ("MAXN",)},
                {"payload": "w", "power_modes": ("MAXQ",), "priority": 3},
            ]
        ),
        [board("a")],
    )
    assert modes_in_order(made) == ["MAXQ", "MAXN"]


@pytest.mark.parametrize(
    ("asked", "mask"),
    [
        ("maxn", 1),
        ("MAXP", 3),
        ("maxp_core_arm", 3),
        ("current", 3),
        ("maxq", None),
        ("5W", None),
        ("15w", 4),
    ],
)
def test_the_mask_of_what_was_asked(asked: str, mask: int | None) -> None:
    masks = {"MAXN_SUPER": 1, "MAXP_CORE_ALL": 2, "MAXP_CORE_ARM": 3, "MODE_15W": 4}
    assert mask_of(asked, profile(masks=masks, default="MAXP_CORE_ARM")) == mask


def test_the_mask_of_current_is_unknown_without_a_default() -> None:
    assert mask_of("current", profile(masks={"A": 1})) is None


MASKS = st.lists(st.sampled_from([None, 0, 5, 240]), min_size=1, max_size=5)


@given(MASKS, st.data())
@settings(deadline=None)
def test_no_order_of_the_modes_needs_fewer_reboots(
    masks: list[int | None], data: st.DataObject
) -> None:
    names = [f"M{number}" for number in range(len(masks))]
    by_name = dict(zip(names, masks, strict=True))
    default = data.draw(st.sampled_from([None, *names]))
    asked = data.draw(st.permutations(names))
    made = plan(
        sweep(power_modes=tuple(asked), repeats=2),
        [board("a")],
        [profile(masks=by_name, default=default)],
    )
    ends = [default] if default else []  # told where the board starts: in, and back again
    best = min(reboots_of([*ends, *order, *ends], by_name) for order in permutations(names))
    order = modes_in_order(made)
    assert sorted(order) == names  # each mode once: the fewest changes there can be
    assert reboots_of([*ends, *order, *ends], by_name) == best
    assert (made.lanes[0].mode_changes, made.lanes[0].reboots) == (len(names) - 1, best)


@given(st.lists(st.sampled_from([0, 5, "reboots"]), min_size=1, max_size=5), st.data())
@settings(deadline=None)
def test_modes_that_always_reboot_are_counted_and_cost_no_more_than_they_must(
    kinds: list[int | str], data: st.DataObject
) -> None:
    """A mode of `reboot_modes` is entered and left by a reboot, whatever its mask."""
    by_name = {f"M{number}": kind for number, kind in enumerate(kinds)}
    rebooting = tuple(name for name, kind in by_name.items() if kind == "reboots")
    masks = {name: None if kind == "reboots" else int(kind) for name, kind in by_name.items()}
    made = plan(
        sweep(power_modes=tuple(data.draw(st.permutations(list(by_name)))), repeats=2),
        [board("a")],
        [profile(masks=masks).model_copy(update={"reboot_modes": rebooting})],
    )
    groups = len({name if kind == "reboots" else kind for name, kind in by_name.items()})
    assert made.lanes[0].reboots == groups - 1


def test_modes_without_masks_reboot_only_where_the_profile_says_so() -> None:
    bare = profile(masks={"A": None, "B": None, "C": None})
    made = plan(
        sweep(power_modes=("A", "B", "C")),
        [board("a")],
        [bare.model_copy(update={"reboot_modes": ("B",)})],
    )
    assert modes_in_order(made) == ["A", "C", "B"]
    assert made.lanes[0].reboots == 1


def shuffled(seed: int = 1, name: str = "a") -> Plan:
    return plan(
        sweep(
            [{"payload": "w", "axes": {"batch": tuple(range(1, 7))}}],
            repeats=4,
            power_modes=("MAXN", "MAXQ"),
            order="shuffled",
            seed=seed,
        ),
        [board(name)],
    )


def test_a_shuffled_block_holds_one_repeat_of_all_cells_modes_together() -> None:
    trials = shuffled().trials
    blocks = [trials[begin : begin + 12] for begin in range(0, 48, 12)]
    for number, block in enumerate(blocks, start=1):
        assert {trial.repeat for trial in block} == {number}
        assert len({trial.cell.cell_id for trial in block}) == 12
        assert len(list(groupby(trial.cell.power_mode for trial in block))) == 2
    orders = {tuple(trial.cell.cell_id for trial in block) for block in blocks}
    assert len(orders) == 4


def test_shuffling_depends_on_the_seed_and_the_board_only() -> None:
    def batches(made: Plan) -> list[object]:
        return [trial.cell.parameters["batch"] for trial in made.trials]

    assert shuffled(1).trials == shuffled(1).trials
    assert batches(shuffled(1)) != batches(shuffled(2))
    assert batches(shuffled(1)) != batches(shuffled(1, "b"))


def test_shuffling_is_the_same_in_every_process() -> None:
    # Written down once: a change here changes the plan of everybody's resumed night.
    batches = [trial.cell.parameters["batch"] for trial in shuffled().trials[:6]]
    assert batches == [5, 2, 3, 6, 4, 1]


def test_changes_and_reboots_of_a_shuffled_lane_are_counted() -> None:
    made = plan(
        sweep(power_modes=("A", "B"), order="shuffled", repeats=20),
        [board("a")],
        [profile(masks={"A": 0, "B": 5})],
    )
    (lane,) = made.lanes
    order = modes_in_order(made)
    assert lane.mode_changes == len(order) - 1
    assert lane.reboots == reboots_of(order, {"A": 0, "B": 5}) > 1


def test_asking_in_capitals_is_no_change_of_mode() -> None:
    made = plan(
        sweep(
            [
                {"payload": "w", "axes": {"batch": (1,)}, "power_modes": ("MAXN",)},
                {"payload": "w", "axes": {"batch": (2,)}, "power_modes": ("maxn",)},
            ]
        ),
        [board("a")],
    )
    assert made.lanes[0].mode_changes == 0


def test_order_modes_of_nothing_is_nothing() -> None:
    bare: BoardProfile = profile()
    assert order_modes([], bare) == []
    assert count_changes([], bare) == (0, 0)
