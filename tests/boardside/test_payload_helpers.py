import json

import pytest

from tests.boardside.local_board import Bench, job

PYTHON = """
import farm_payload as farm
import os, sys
assert "farm_payload.cpython" in farm.__cached__ and os.path.exists(farm.__cached__)
with farm.window():
    farm.metric("throughput", farm.params()["batch"] * 2, "images/s")
farm.progress(1, 2)
farm.note('a "quoted" note')
open(farm.out_path("sub/r.txt"), "w").write("r")
try:
    with farm.window("broken"):
        raise ValueError
except ValueError:
    pass
farm.unsupported("no engine")
"""

SHELL = r"""
. "$FARM_SH"
farm_window_begin
farm_metric throughput "$(farm_param batch)" 'images/s'
farm_window_end
farm_progress 1 2
farm_note 'a "quoted" \ note' "$(farm_param model)" "$(farm_param fast)" "$(farm_param none x)"
farm_param absent 2>/dev/null || farm_note absent
farm_metric bad 1x images 2>/dev/null || farm_note refused
farm_unsupported "no engine"
echo not reached
"""
PARAMS = {"batch": 4, "model": "ResNet 50", "fast": True}


def events(files: dict[str, bytes]) -> list[dict[str, object]]:
    return [json.loads(line) for line in files["events.jsonl"].splitlines()]


async def test_python_helper(board: Bench) -> None:
    payload = await board.push({"bench.py": PYTHON})
    argv = ("python3", "bench.py")
    await board.agent.start(job("a1", payload, argv=argv, params=PARAMS, artifacts=("**",)))
    ended = await board.exit_of("a1")
    files = await board.files_of(ended)
    assert ended.exit_status == 77, files["stderr.log"]
    told = events(files)
    assert [event["event"] for event in told] == [
        "window_begin", "metric", "window_end", "progress", "note", "window_begin", "unsupported",
    ]  # fmt: skip
    begin, end = told[0]["t"], told[2]["t"]
    assert isinstance(begin, float)
    assert isinstance(end, float)
    assert ended.begin_s <= begin <= end <= ended.end_s
    assert told[1] == {
        "event": "metric", "name": "throughput", "value": 8.0, "unit": "images/s",
    }  # fmt: skip
    assert told[4]["text"] == 'a "quoted" note'
    assert files["artifacts/sub/r.txt"] == b"r"


@pytest.mark.parametrize("shell", ["dash", "bash"])
async def test_shell_helper(board: Bench, shell: str) -> None:
    exited = await board.run_script("a1", SHELL, argv=(shell, "run.sh"), params=PARAMS)
    files = await board.files_of(exited)
    assert (exited.exit_status, files["stdout.log"]) == (77, b""), files["stderr.log"]
    told = events(files)
    assert [event["event"] for event in told] == [
        "window_begin", "metric", "window_end", "progress", "note", "note", "note", "unsupported",
    ]  # fmt: skip
    assert told[1]["value"] == 4
    assert told[4]["text"] == 'a "quoted" \\ note ResNet 50 true x'
    assert [event["text"] for event in told[5:7]] == ["absent", "refused"]
    assert told[7]["reason"] == "no engine"
    begin = told[0]["t"]
    assert isinstance(begin, float)
    assert exited.begin_s - 0.02 <= begin <= exited.end_s


async def test_events_without_bound_are_cut_in_the_middle_at_whole_lines(board: Bench) -> None:
    script = (
        'exec python3 -c \'import os; f = open(os.environ["FARM_EVENTS"], "w");'
        ' [f.write("{\\"n\\": %d}\\n" % n) for n in range(1600000)]\''
    )
    exited = await board.run_script("a1", script)
    files = await board.files_of(exited)
    record = next(file for file in exited.files if file.path == "events.jsonl")
    told = events(files)
    assert told[0] == {"n": 0}
    assert told[-1] == {"n": 1599999}
    assert record.cut_bytes > 0
    assert {"event": "note", "text": f"[farm: {record.cut_bytes} bytes left out here]"} in told
