from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import ConfigError
from farm.model.board import Board
from farm.model.parameters import short_id
from farm.model.payload import Parameter
from farm.model.sweep import Sweep
from farm.planning import expand
from farm.planning.expand import Expansion, expand_sweep
from tests.planning.builders import board, payload, profile, sweep

BOARDS = (board("a"), board("b"), board("n", "nano"), board("off", is_maintenance=True))
PROFILES = {"tx2": profile("tx2"), "nano": profile("nano")}


def expanded(asked: Sweep, boards: Sequence[Board] = BOARDS) -> Expansion:
    payloads = {"w": payload("w"), "v": payload("v", digest="e" * 64)}
    return expand_sweep(asked, boards, PROFILES, payloads)


def facts(made: Expansion) -> list[tuple[str, str, object, object]]:
    return [
        (
            p.cell.target,
            p.cell.power_mode,
            p.cell.parameters["batch"],
            p.cell.parameters["precision"],
        )
        for p in made.cells
    ]


def entry(**rest: object) -> Mapping[str, object]:
    return {"payload": "w", **rest}


def test_cells_are_the_cross_product_with_defaults_filled_in() -> None:
    made = expanded(
        sweep([entry(axes={"batch": (1, 8)})], boards=("a", "n"), power_modes=("MAXN", "MAXQ"))
    )
    assert facts(made) == [
        ("a", "MAXN", 1, "FP16"),
        ("a", "MAXQ", 1, "FP16"),
        ("a", "MAXN", 8, "FP16"),
        ("a", "MAXQ", 8, "FP16"),
        ("n", "MAXN", 1, "FP16"),
        ("n", "MAXQ", 1, "FP16"),
        ("n", "MAXN", 8, "FP16"),
        ("n", "MAXQ", 8, "FP16"),
    ]
    assert made.notes == ()


def test_include_adds_and_exclude_takes_away() -> None:
    made = expanded(
        sweep(
            [
                entry(
                    axes={"batch": (1, 2, 4), "precision": ("FP16", "FP32")},
                    include=({"batch": 128}, {"batch": 64, "power_mode": "MAXQ", "board": "b"}),
                    exclude=({"precision": "FP32", "batch": (2, 4)}, {"board": "a", "batch": 1}),
                )
            ],
            boards=("a", "b"),
            power_modes=("MAXN",),
        )
    )
    assert facts(made) == [
        ("a", "MAXN", 2, "FP16"),
        ("a", "MAXN", 4, "FP16"),
        ("a", "MAXN", 128, "FP16"),
        ("b", "MAXN", 1, "FP16"),
        ("b", "MAXN", 1, "FP32"),
        ("b", "MAXN", 2, "FP16"),
        ("b", "MAXN", 4, "FP16"),
        ("b", "MAXN", 128, "FP16"),
        ("b", "MAXQ", 64, "FP16"),
    ]


def test_an_entry_may_name_its_own_power_modes_boards_and_repeats() -> None:
    made = expanded(
        sweep(
            [
                entry(power_modes=("current",), boards=("n",), repeats=7, priority=2),
                {"payload": "v", "boards": ("!n",)},
            ],
            power_modes=("MAXN",),
            repeats=3,
        )
    )
    assert [
        (p.cell.target, p.cell.power_mode, p.repeats, p.cell.priority) for p in made.cells
    ] == [
        ("n", "current", 7, 2),
        ("a", "MAXN", 3, 0),
        ("b", "MAXN", 3, 0),
    ]
    assert made.notes == ("board off: in maintenance",)


def test_spread_any_gives_each_profile_its_cells_once() -> None:
    made = expanded(sweep([entry(axes={"batch": (1, 2)})], spread="any"))
    assert [
        (p.cell.target, p.cell.is_any, p.cell.parameters["batch"], p.boards) for p in made.cells
    ] == [
        ("tx2", True, 1, ("a", "b")),
        ("tx2", True, 2, ("a", "b")),
        ("nano", True, 1, ("n",)),
        ("nano", True, 2, ("n",)),
    ]


def test_with_spread_any_a_rule_on_a_board_keeps_the_cell_off_that_board() -> None:
    rules = ({"board": "a", "batch": 2}, {"profile": "nano"}, {"board": ("a", "b"), "batch": 4})
    made = expanded(sweep([entry(axes={"batch": (1, 2, 4)}, exclude=rules)], spread="any"))
    assert [(p.cell.parameters["batch"], p.boards) for p in made.cells] == [
        (1, ("a", "b")),
        (2, ("b",)),
    ]
    assert "board n: no cell for it" in made.notes


def test_equal_cells_are_one_with_the_most_repeats_and_highest_priority() -> None:
    made = expanded(
        sweep(
            [
                entry(axes={"batch": (1, 1)}, boards=("b",), repeats=2, priority=5),
                entry(include=({"batch": 1},), boards=("a", "b"), repeats=9, priority=1),
            ],
            spread="any",
            power_modes=("MAXN", "maxn"),
        )
    )
    (planned,) = made.cells
    assert (planned.repeats, planned.cell.priority, planned.boards) == (9, 5, ("a", "b"))


def test_a_rule_on_an_unknown_parameter_matches_nothing_and_is_noted() -> None:
    made = expanded(sweep([entry(exclude=({"precison": "FP16"},))], boards=("a",)))
    assert len(made.cells) == 1
    assert "no parameter 'precison'; did you mean precision" in made.notes[0]


def test_an_entry_whose_boards_are_not_selected_is_noted() -> None:
    made = expanded(sweep([entry(boards=("n",)), {"payload": "v"}], boards=("a",)))
    assert [p.cell.payload for p in made.cells] == ["v"]
    assert made.notes == ("payload w: none of its boards is selected",)


@pytest.mark.parametrize(
    ("payloads", "message"),
    [
        ([{"payload": "x"}], "no payload 'x'"),
        ([entry(axes={"batch": ()})], "axis 'batch' has no values"),
        ([entry(axes={"bach": (1,)})], "no parameter 'bach'; did you mean batch"),
        ([entry(include=({"batch": "1"},))], "not of type int"),
        ([entry(boards=("z",))], "no board matches 'z'"),
    ],
)
def test_what_does_not_exist_is_an_error(
    payloads: list[Mapping[str, object]], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        expanded(sweep(payloads))


def test_a_board_of_an_unknown_profile_is_an_error_only_when_selected() -> None:
    boards = (*BOARDS, board("x", "nanoo"))
    assert len(expanded(sweep(boards=("a",)), boards).cells) == 1
    with pytest.raises(ConfigError, match="board x: no profile 'nanoo'; did you mean nano"):
        expanded(sweep(), boards)


def test_a_parameter_without_value_and_default_is_an_error() -> None:
    bare = {"w": payload("w", {"model": Parameter(type="str")})}
    with pytest.raises(ConfigError, match="'model' has no default"):
        expand_sweep(sweep(), BOARDS, PROFILES, bare)


def test_the_id_is_made_of_the_content() -> None:
    (planned,) = expanded(sweep(boards=("a",), power_modes=("MAXN",))).cells
    assert planned.cell.cell_id == short_id(
        {
            "target": "a",
            "payload": "w",
            "payload_digest": "d" * 64,
            "power_mode": "maxn",
            "clocks": "default",
            "parameters": {"batch": 1, "precision": "FP16"},
        }
    )


def test_the_id_changes_with_each_part_of_the_content() -> None:
    def id_of(digest: str = "d", **rest: object) -> str:
        name = str(rest.pop("payload", "w"))
        axes = rest.pop("axes", {"batch": (1,)})
        asked = sweep([{"payload": name, "axes": axes}], **{"boards": ("a",), **rest})
        found = expand_sweep(asked, BOARDS, PROFILES, {name: payload(name, digest=digest)})
        return found.cells[0].cell.cell_id

    ids = [
        id_of(),
        id_of(digest="e"),
        id_of(payload="v"),
        id_of(boards=("b",)),
        id_of(spread="any"),
        id_of(power_modes=("MAXQ",)),
        id_of(clocks="locked"),
        id_of(axes={"batch": (2,)}),
        id_of(axes={"batch": (1,), "precision": ("FP32",)}),
    ]
    assert len(set(ids)) == len(ids)
    assert id_of() == id_of(repeats=5, seed=9, order="shuffled", axes={})


@given(st.permutations(["batch", "precision"]), st.permutations([1, 2, 4]))
def test_ids_do_not_depend_on_the_order_of_keys(names: list[str], batches: list[int]) -> None:
    values: dict[str, tuple[object, ...]] = {
        "batch": tuple(batches),
        "precision": ("FP16", "FP32"),
    }
    made = expanded(sweep([entry(axes={name: values[name] for name in names})]))
    plain = expanded(sweep([entry(axes={**values, "batch": (1, 2, 4)})]))
    assert {p.cell.cell_id for p in made.cells} == {p.cell.cell_id for p in plain.cells}
    if batches == [1, 2, 4]:
        assert made == plain


def test_cells_whose_short_ids_collide_are_both_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def colliding(content: object, length: int = 10) -> str:
        return "0" * 10 if length == 10 else short_id(content, length)

    monkeypatch.setattr(expand, "short_id", colliding)
    asked = sweep([entry(axes={"batch": (1, 2, 2, 1)})], boards=("a",))
    assert [p.cell.parameters["batch"] for p in expanded(asked).cells] == [1, 2]


def test_cells_share_their_parameters_between_boards() -> None:
    first, second = expanded(sweep(boards=("a", "b"))).cells
    assert first.cell.parameters is second.cell.parameters


def published_sweep() -> tuple[Sweep, dict[str, Parameter]]:
    batches = tuple(2**n for n in range(8))
    asked = sweep(
        [
            {
                "payload": "imagenet",
                "boards": ("a",),
                "axes": {
                    "model": ("ResNet50", "GoogleNetV1"),
                    "precision": ("FP16", "FP32"),
                    "batch": batches,
                },
            },
            {
                "payload": "imagenet",
                "boards": ("n",),
                "power_modes": ("current",),
                "axes": {
                    "model": ("ResNet50", "GoogleNetV1"),
                    "precision": ("INT8",),
                    "threads": tuple(range(1, 9)),
                },
            },
        ],
        power_modes=("maxn", "maxp", "maxq"),
    )
    parameters = {
        "model": Parameter(type="str"),
        "precision": Parameter(type="str"),
        "batch": Parameter(type="int", default=1),
        "threads": Parameter(type="int", default=1),
    }
    return asked, parameters


def test_the_published_level_3_sweep_has_56_cells_a_network() -> None:
    asked, parameters = published_sweep()
    made = expand_sweep(asked, BOARDS, PROFILES, {"imagenet": payload("imagenet", parameters)})
    models = [planned.cell.parameters["model"] for planned in made.cells]
    assert (models.count("ResNet50"), models.count("GoogleNetV1")) == (56, 56)
