from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from farm.model.plan import Plan
from tests.planning.builders import board, plan, profile, sweep, texts


def placed(made: Plan) -> dict[str, list[str]]:
    return {
        lane.board: [
            f"{trial.cell.power_mode} {trial.cell.parameters['batch']}" for trial in lane.trials
        ]
        for lane in made.lanes
    }


def test_every_board_runs_every_cell_in_a_lane_of_its_own() -> None:
    boards = [board("b", meter="m"), board("n", "nano"), board("a")]
    made = plan(sweep(repeats=2), boards, [profile(), profile("nano")])
    assert texts(made) == [f"{b} current 1 r{r}" for b in ("b", "n", "a") for r in (1, 2)]
    assert [(lane.board, lane.profile, lane.meter) for lane in made.lanes] == [
        ("b", "tx2", "m"),
        ("n", "nano", None),
        ("a", "tx2", None),
    ]


def test_any_shares_the_cells_and_keeps_modes_together() -> None:
    made = plan(
        sweep(
            [{"payload": "w", "axes": {"batch": (1, 2, 4)}}],
            spread="any",
            power_modes=("A", "B"),
        ),
        [board("x"), board("y")],
        [profile(masks={"A": None, "B": None})],
    )
    assert placed(made) == {"x": ["A 1", "A 2", "A 4"], "y": ["B 1", "B 2", "B 4"]}
    assert sum(lane.mode_changes for lane in made.lanes) == 0


def test_a_mode_is_cut_where_one_board_would_have_more_than_its_share() -> None:
    made = plan(
        sweep(
            [{"payload": "w", "axes": {"batch": (1, 2)}}],
            spread="any",
            power_modes=("A", "B", "C"),
        ),
        [board("x"), board("y")],
        [profile(masks={"A": 0, "B": 5, "C": 0})],
    )
    assert placed(made) == {"x": ["A 1", "A 2", "C 1"], "y": ["C 2", "B 1", "B 2"]}
    assert [lane.reboots for lane in made.lanes] == [0, 1]


def test_boards_with_less_choice_are_served_first() -> None:
    made = plan(
        sweep(
            [
                {"payload": "w", "axes": {"batch": (1, 2)}},
                {"payload": "w", "axes": {"batch": (4, 8)}, "boards": ("x",)},
            ],
            spread="any",
        ),
        [board("x"), board("y")],
    )
    assert {name: len(cells) for name, cells in placed(made).items()} == {"x": 2, "y": 2}
    assert placed(made)["x"] == ["current 4", "current 8"]


def test_a_board_that_is_busy_beyond_its_share_gets_no_more() -> None:
    made = plan(
        sweep(
            [
                {"payload": "w", "axes": {"batch": (1, 2, 4, 8)}},
                {"payload": "w", "axes": {"batch": tuple(range(10, 19))}, "boards": ("x",)},
            ],
            spread="any",
        ),
        [board("x"), board("y"), board("z")],
    )
    assert {name: len(cells) for name, cells in placed(made).items()} == {"x": 9, "y": 2, "z": 2}


def test_a_board_left_without_cells_has_no_lane() -> None:
    made = plan(sweep(spread="any"), [board("x"), board("y")])
    assert [lane.board for lane in made.lanes] == ["x"]


@given(
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    boards=st.integers(1, 5),
    repeats=st.integers(1, 3),
)
@settings(deadline=None, max_examples=60)
def test_any_is_balanced_to_one_cell_and_cuts_few_modes(
    counts: list[int], boards: int, repeats: int
) -> None:
    entries = [
        {"payload": "w", "axes": {"batch": tuple(range(1, 1 + n))}, "power_modes": (f"M{at}",)}
        for at, n in enumerate(counts)
    ]
    made = plan(
        sweep(entries, spread="any", repeats=repeats), [board(f"b{n}") for n in range(boards)]
    )
    homes: dict[str, set[str]] = {}
    for trial in made.trials:
        homes.setdefault(trial.cell.cell_id, set()).add(trial.board)
    assert len(homes) == sum(counts)
    assert all(len(names) == 1 for names in homes.values())
    share = sum(counts) * repeats / boards
    sizes = Counter(trial.board for trial in made.trials)
    assert all(abs(sizes[f"b{n}"] - share) <= repeats for n in range(boards))
    visits = sum(lane.mode_changes + 1 for lane in made.lanes)
    assert visits <= len(counts) + boards - 1
