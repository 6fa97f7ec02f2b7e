import os
import subprocess
import sys

from farm.drivers.board_facts.busy import _SCRIPT, parse_busy


def look(root: str = "") -> str:
    argv = [sys.executable, "-E", "-s", "-S", "-c", _SCRIPT, root, "0.3"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_a_process_that_keeps_a_core_busy_is_named() -> None:
    worker = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        found = None
        for _ in range(20):  # a busy machine may give it nothing for a while
            found = parse_busy(look())
            if found and any(one.pid == worker.pid for one in found.busiest):
                break
        assert found is not None
        (mine,) = [one for one in found.busiest if one.pid == worker.pid]
        assert mine.name.startswith("python")
        assert 0 < mine.cores < 2
        assert found.total_cores >= mine.cores
        assert os.getpid() not in {one.pid for one in found.busiest if one.cores > 1}
    finally:
        worker.kill()
        worker.wait()


def test_a_board_without_processes_tells_nothing(tmp_path: object) -> None:
    assert parse_busy(look(str(tmp_path))) is None


def test_nonsense_is_unknown() -> None:
    for text in ("", "[]", "{}", '{"count": 1, "total": "x", "busy": []}', '{"count": 1}'):
        assert parse_busy(text) is None
