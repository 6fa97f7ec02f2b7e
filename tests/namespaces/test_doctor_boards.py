"""The doctor on real-sshd boards with one fault each: each is named with its fix, none else."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.namespaces.doctor_lab import DoctorLab, doctor_lab, findings_of
from tests.namespaces.faulty_boards import FAULTY, HEALTHY, Faulty
from tests.servers.namespaces import BoardLab

pytestmark = pytest.mark.timeout(240)  # one lab for all: this machine may be busy

TRUE_OF_ALL = "modes"
"""Each board's table has another default than the profile of a TX2 expects: only a note."""
TRUE_OF_THIS_MACHINE = "clock"
"""On a busy machine no exchange with a board is quick: then the doctor is right to say so."""
SHOWN = [one for one in FAULTY if one.name in ("closed-port", "sudo-password", "in-1970", "busy")]


@pytest.fixture
def boards(lab: BoardLab, tmp_path: Path) -> Iterator[DoctorLab]:
    with doctor_lab(lab, tmp_path) as opened, lab.host_network():
        yield opened


def differs(one: Faulty, found: list[dict[str, Any]]) -> str:
    """What the doctor did not say as it should; "" when it named the fault and nothing else."""
    told = [f for f in found if f["about"] not in (TRUE_OF_ALL, TRUE_OF_THIS_MACHINE)]
    if one.level != "note":  # e.g. of a meter that tells one value only: it is starved here
        told = [f for f in told if f["level"] != "note"]
    if not one.about:
        return f"nothing is wrong with it: {told}" if told else ""
    if [(f["about"], f["level"]) for f in told] != [(one.about, one.level)]:
        return f"not one {one.level} {one.about}: {told}"
    has_words = one.words in told[0]["text"] and one.fix in told[0]["fix"] != ""
    return "" if has_words else f"not {one.words!r} with {one.fix!r}: {told}"


async def test_each_fault_is_named_with_its_fix_and_nothing_else(boards: DoctorLab) -> None:
    assert len({one.name for one in FAULTY}) >= 20
    done = await boards.doctor("--json")
    assert done.returncode == 1, done.stderr
    found = findings_of(done.stdout)
    assert set(found) == {one.name for one in (*HEALTHY, *FAULTY)}
    wrong = {one.name: differs(one, found[one.name]) for one in (*HEALTHY, *FAULTY)}
    assert {name: text for name, text in wrong.items() if text} == {}

    told = await boards.doctor("odd", *(one.name for one in SHOWN))
    assert told.returncode == 1, told.stderr
    assert f"{len(SHOWN) + 1} boards looked at, 2 would fail tonight" in told.stdout
    assert re.search(r"odd +ready +R32\.7\.3, Python 3\.[\d.]+, MAXP_CORE_ARM", told.stdout)
    for one in SHOWN:
        line = rf"^{one.level} {one.name}: {one.about}: .*{re.escape(one.words)}.* -> .+$"
        assert re.search(line, told.stdout, re.MULTILINE), told.stdout
