from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.errors import ConfigError
from farm.model.board import Board
from farm.planning.plan import make_plan
from tests.planning.builders import board, payload, plan, profile, sweep, texts


def test_a_small_plan_from_end_to_end() -> None:
    made = plan(
        sweep(
            [
                {
                    "payload": "w",
                    "boards": ("tag:gpu",),
                    "axes": {"batch": (1, 8)},
                    "exclude": ({"power_mode": "MAXQ", "batch": 8},),
                },
                {"payload": "w", "boards": ("pi",), "power_modes": ("current",), "repeats": 1},
            ],
            boards=("all", "!spare"),
            power_modes=("MAXN", "MAXQ"),
            repeats=2,
        ),
        [
            board("t", tags=("gpu",)),
            board("pi", "pi"),
            board("spare"),
            board("down", tags=("gpu",), is_maintenance=True),
        ],
        [profile(), profile("pi", {})],
    )
    assert texts(made) == [
        "t MAXN 1 r1",
        "t MAXN 8 r1",
        "t MAXN 1 r2",
        "t MAXN 8 r2",
        "t MAXQ 1 r1",
        "t MAXQ 1 r2",
        "pi current 1 r1",
    ]
    assert made.skipped == ("board down: in maintenance",)


@pytest.mark.parametrize(
    ("rest", "boards", "message"),
    [
        ({}, [board("a", is_maintenance=True)], "nothing to run: board a: in maintenance"),
        (
            {"payloads": [{"payload": "w", "exclude": ({"board": "a"},)}]},
            [board("a")],
            "nothing to run: board a: no cell for it",
        ),
        ({}, [], "nothing to run"),
        ({"boards": ("z",)}, [board("a")], "no board matches 'z'"),
    ],
)
def test_nothing_to_run_is_an_error(
    rest: Mapping[str, object], boards: list[Board], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(sweep(**{"payloads": [{"payload": "w"}], **rest}), boards)


def test_the_digest_names_sweep_order_and_payload() -> None:
    def digest(
        name: str = "a", content: str = "d", meter: str | None = None, **rest: object
    ) -> str:
        boards = [board(name, meter=meter)]
        return plan(sweep(**rest), boards, (), [payload(digest=content)]).digest

    digests = [
        digest(),
        digest("b"),
        digest(content="e"),
        digest(meter="m"),
        digest(seed=2),
        digest(repeats=2),
        digest(power_modes=("MAXN",)),
    ]
    assert len(set(digests)) == len(digests)
    assert digest() == digests[0]
    assert len(digest()) == 16


ENTRY = st.fixed_dictionaries(
    {
        "payload": st.sampled_from(["w", "v"]),
        "axes": st.fixed_dictionaries(
            {},
            optional={
                "batch": st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
                "precision": st.sampled_from([("FP16",), ("FP16", "FP32")]),
            },
        ),
        "exclude": st.sampled_from([(), ({"batch": 2},), ({"board": "b0", "batch": (1, 3)},)]),
        "include": st.sampled_from([(), ({"batch": 128},)]),
        "repeats": st.sampled_from([None, 1, 3]),
        "priority": st.integers(-1, 1),
        "power_modes": st.sampled_from([None, ("current",), ("MAXN", "current")]),
    }
)
SWEEP = st.fixed_dictionaries(
    {
        "payloads": st.lists(ENTRY, min_size=1, max_size=3),
        "power_modes": st.sampled_from([("MAXN",), ("MAXN", "MAXQ", "maxn")]),
        "repeats": st.integers(1, 3),
        "spread": st.sampled_from(["every", "any"]),
        "order": st.sampled_from(["grouped", "shuffled"]),
        "seed": st.integers(0, 3),
    }
)


def expected_trials(facts: Mapping[str, object], boards: list[Board]) -> set[object]:
    """All trials by a plain reading of the sweep: (target, payload, mode, parameters, repeat)."""
    asked = sweep(**facts)
    repeats: dict[object, int] = {}
    for entry in asked.payloads:
        combinations = [
            (batch, precision)
            for batch in entry.axes.get("batch", (1,))
            for precision in entry.axes.get("precision", ("FP16",))
        ]
        combinations += [(extra["batch"], "FP16") for extra in entry.include]
        for item in boards:
            for mode in entry.power_modes or asked.power_modes:
                for batch, precision in combinations:
                    if entry.exclude == ({"batch": 2},) and batch == 2:
                        continue
                    is_kept_off = entry.exclude and "board" in entry.exclude[0]
                    if is_kept_off and item.name == "b0" and batch in (1, 3):
                        continue
                    target = item.name if asked.spread == "every" else item.profile
                    key = (target, entry.payload, mode.lower(), batch, precision)
                    count = entry.repeats or asked.repeats
                    repeats[key] = max(repeats.get(key, 0), count)
    return {(key, repeat) for key, count in repeats.items() for repeat in range(1, count + 1)}


@given(facts=SWEEP, profiles=st.lists(st.sampled_from(["tx2", "nano"]), min_size=1, max_size=4))
@settings(deadline=None, max_examples=150)
def test_no_trial_is_lost_or_doubled_and_equal_input_gives_equal_plans(
    facts: Mapping[str, object], profiles: list[str]
) -> None:
    boards = [board(f"b{at}", name, meter="m") for at, name in enumerate(profiles)]
    expected = expected_trials(facts, boards)
    known = {"tx2": profile("tx2"), "nano": profile("nano")}
    payloads = {"w": payload("w"), "v": payload("v")}
    if not expected:
        with pytest.raises(ConfigError):
            make_plan(sweep(**facts), boards, known, payloads)
        return
    made = make_plan(sweep(**facts), boards, known, payloads)
    found = Counter(
        (
            (
                trial.cell.target,
                trial.cell.payload,
                trial.cell.power_mode.lower(),
                trial.cell.parameters["batch"],
                trial.cell.parameters["precision"],
            ),
            trial.repeat,
        )
        for trial in made.trials
    )
    assert set(found) == expected
    assert set(found.values()) == {1}
    assert len({trial.trial_id for trial in made.trials}) == len(made.trials)

    assert len({lane.board for lane in made.lanes}) == len(made.lanes)
    for lane in made.lanes:
        assert {trial.board for trial in lane.trials} == {lane.board}
        assert {trial.cell.profile for trial in lane.trials} == {lane.profile}
        modes = {trial.cell.power_mode.lower() for trial in lane.trials}
        if made.sweep.order == "grouped":
            assert lane.mode_changes == len(modes) - 1

    mirrored = {key: known[key] for key in reversed(known)}
    again = make_plan(
        sweep(**facts), tuple(boards), mirrored, {key: payloads[key] for key in ("v", "w")}
    )
    assert again == made
