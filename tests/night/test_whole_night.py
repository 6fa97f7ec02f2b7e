"""It survives the night: real and simulated boards, faults of every kind, a host killed thrice.

The small night is drawn by a fixed seed; `FARM_NIGHT=full` has 40 boards and 400 trials, and
`FARM_NIGHT_SEED` another night.
"""

import json
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from farm.simulation.fault_kinds import FaultKind
from tests.night.whole_night_faults import NEVER_ENDS, REAL_KINDS, Deed, Faults, draw
from tests.night.whole_night_rig import KILLS, Host, NightWorkspace, Size, night_lab
from tests.servers.namespaces import BoardLab, why_unavailable

IS_FULL = os.environ.get("FARM_NIGHT") == "full"
SEED = int(os.environ.get("FARM_NIGHT_SEED", "20261130"))
SIZE = Size(20, 20, trials=10, faults=3) if IS_FULL else Size(5, 5, trials=5, faults=3)

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.slow,
    pytest.mark.timeout(3600 if IS_FULL else 1800),
]

CLOCKS = (
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq",
    "/sys/devices/17000000.gp10b/devfreq/17000000.gp10b/min_freq",
)
MODE = "/var/lib/nvpmodel/status"


@dataclass(frozen=True)
class Night:
    """The boards, still up, and how the night went.

    `evening`: each board's mode and clocks before. `late`: the trials while one board was still
    out of reach; `morning`: after all faults were healed.
    """

    workspace: NightWorkspace
    host: Host
    dark: str
    had: list[str]
    evening: dict[str, list[str]]
    late: list[dict[str, object]]
    morning: list[dict[str, object]]
    attempts: list[sqlite3.Row]


@pytest.fixture(scope="module", params=[SEED], ids=[f"FARM_NIGHT_SEED={SEED}"])
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    reason = why_unavailable()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("night")
    with BoardLab() as lab, night_lab(root, lab, SIZE) as workspace:
        yield whole_night(workspace)


def whole_night(workspace: NightWorkspace) -> Night:
    """Run the sweep through it all."""
    chance = random.Random(SEED)
    evening = {board: state_of(workspace, board) for board in workspace.boards}
    real, simulated = list(workspace.machines), workspace.boards[len(workspace.machines) :]
    deeds = draw(real, REAL_KINDS, SIZE, chance)
    deeds |= draw(simulated, [str(kind) for kind in FaultKind], SIZE, chance)
    dark = chance.choice(real)
    deeds[dark] = [Deed(SIZE.trials - 2, 0.2, 0.0, NEVER_ENDS)]
    host, faults = Host(workspace), Faults(workspace, deeds)
    faults.begin()
    try:
        be_killed(host, chance)
        host.work("resume", "last")
        late = workspace.results()
    finally:
        faults.end()
    workspace.farm("sim", "heal")
    morning = late
    for _ in range(3):
        host.work("resume", "last")
        morning = workspace.results()
        if not {one["state"] for one in morning} & {"pending", "running"}:
            break
    return Night(workspace, host, dark, faults.had, evening, late, morning, attempts_of(workspace))


def be_killed(host: Host, chance: random.Random) -> None:
    """One kill in each of the first three fifths of the trials, or nearly so."""
    total = SIZE.trials * len(host.workspace.boards)
    for number in range(KILLS):
        at, after_s = total * (number + chance.uniform(0.2, 0.9)) / 5, chance.uniform(0.0, 1.0)
        for _ in range(3):
            words = ("resume", "last") if host.texts else ("run", "night")
            host.work(*words, until_starts=round(at), after_s=after_s)
            if host.kills > number:
                break


def state_of(workspace: NightWorkspace, board: str) -> list[str]:
    return [workspace.read(board, path) for path in (MODE, *CLOCKS)]


def attempts_of(workspace: NightWorkspace) -> list[sqlite3.Row]:
    path = workspace.root / "results" / "farm.db"
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute("SELECT * FROM attempts ORDER BY trial_id, number").fetchall()
    connection.close()
    return found


def test_the_host_was_killed_and_faults_were_had(night: Night) -> None:
    assert night.host.kills == KILLS
    assert len(night.had) >= len(night.workspace.boards)
    for text in night.host.texts:
        assert "internal error" not in text, text
        assert "Traceback" not in text, text


def test_no_trial_is_lost_and_none_is_there_twice(night: Night) -> None:
    wanted = Counter(
        (board, cell) for board in night.workspace.boards for cell in range(1, SIZE.trials + 1)
    )
    for results in (night.late, night.morning):
        assert Counter((one["board"], cell_of(one)) for one in results) == wanted
        assert len({one["trial"] for one in results}) == len(results)


def test_most_trials_are_done_and_each_other_one_tells_why(night: Night) -> None:
    for one in (*night.late, *night.morning):
        assert one["state"] == "done" or one["reason"], one
    states = Counter(one["state"] for one in night.morning)
    assert states.keys() <= {"done", "failed", "pending"}
    assert states["done"] > len(night.morning) / 4, states  # a busy machine knows no clocks


def test_each_result_is_valid_or_tells_its_reasons(night: Night) -> None:
    for one in night.morning:
        verdict = one["verdict"]
        if one["state"] == "done":
            assert one["outcome"] == "ok", one
            assert isinstance(verdict, dict)
            assert verdict["status"] in ("valid", "suspect")
            assert verdict["status"] == "valid" or verdict["reasons"], one


def test_each_attempt_is_closed_and_counted_once(night: Night) -> None:
    numbers: dict[str, list[int]] = {}
    for attempt in night.attempts:
        assert not attempt["is_open"], dict(attempt)
        numbers.setdefault(attempt["trial_id"], []).append(attempt["number"])
        record = json.loads(attempt["record_document"])
        assert attempt["outcome"] == "ok" or record["reason"], record
    for one in night.morning:
        found = numbers.get(str(one["trial"]), [])
        assert found == list(range(1, int(str(one["attempts"])) + 1)), one


def test_the_boards_began_what_the_store_tells_and_nothing_twice(night: Night) -> None:
    for board in night.workspace.boards:
        starts = Counter(night.workspace.starts(board))
        assert set(starts.values()) <= {1}, (board, starts)
        known = {one["attempt_id"]: one for one in night.attempts if one["board"] == board}
        assert set(starts) <= set(known), board
        good = {name for name, one in known.items() if one["outcome"] == "ok"}
        assert good <= set(starts), board


def test_every_board_is_as_it_was_found(night: Night) -> None:
    for board in night.workspace.boards:
        assert state_of(night.workspace, board) == night.evening[board], board
        assert not night.workspace.read(board, "~/.farm/lease.json"), board
        assert not night.workspace.read(board, "~/.farm/restore.json"), board
        assert not night.workspace.attempts_kept(board), board


def test_of_a_board_out_of_reach_the_journal_tells(night: Night) -> None:
    mine = [one for one in night.late if one["board"] == night.dark]
    told = kinds_told(night.workspace, night.dark)
    assert f"{night.dark} {NEVER_ENDS}" in night.had
    if any(one["state"] == "pending" for one in mine):
        assert "board_lost" in told
    assert told[-1] == "restored"  # when it was back


def cell_of(result: dict[str, object]) -> object:
    parameters = result["parameters"]
    assert isinstance(parameters, dict)
    return parameters["cell"]


def kinds_told(workspace: NightWorkspace, board: str) -> list[str]:
    """Of a board, whether it was lost and put back, in order."""
    lines = workspace.farm("logs", "last", "--board", board, "--json").splitlines()
    kinds = [str(json.loads(line).get("event", "")) for line in lines if line.startswith("{")]
    return [kind for kind in kinds if kind in ("board_lost", "restore_failed", "restored")]
