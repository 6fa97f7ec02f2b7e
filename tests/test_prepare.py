"""`tests/prepare.py` with a machine that is made up."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests import prepare


class Machine:
    """Has some programs; apt-get adds those it is asked for, unless it is `broken`."""

    def __init__(self, policy: Path, *, without: set[str], broken: bool = False) -> None:
        self.policy, self.broken = policy, broken
        self.programs = {need.program for need in prepare.NEEDS} - without
        self.calls: list[list[str]] = []
        self.policies: list[str] = []

    def run(self, argv: Sequence[str], environment: Mapping[str, str]) -> int:
        self.calls.append(list(argv))
        self.policies.append(self.policy.read_text())
        assert environment["DEBIAN_FRONTEND"] == "noninteractive"
        if self.broken:
            return 100
        self.programs |= {need.program for need in prepare.NEEDS if need.package in argv}
        return 0

    def prepare(self, *, can_install: bool = True, is_ci: bool = False) -> int:
        return prepare.prepare(
            is_there=self.programs.__contains__,
            run=self.run,
            can_install=can_install,
            is_ci=is_ci,
            policy=self.policy,
        )


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy-rc.d"


def test_nothing_is_done_when_all_is_there(policy: Path) -> None:
    machine = Machine(policy, without=set())
    assert machine.prepare(is_ci=True) == 0
    assert machine.calls == []


def test_only_what_is_missing_is_installed(policy: Path) -> None:
    machine = Machine(policy, without={"sshd", "fish"})
    assert machine.prepare(is_ci=True) == 0
    update, install = machine.calls
    assert update[-1] == "update"
    assert install[install.index("install") + 1 :] == ["openssh-server", "fish"]
    assert machine.prepare() == 0
    assert len(machine.calls) == 2


def test_services_stay_down_only_meanwhile(policy: Path) -> None:
    machine = Machine(policy, without={"sshd"})
    machine.prepare()
    assert all("exit 101" in text for text in machine.policies)
    assert not policy.exists()


def test_an_earlier_policy_is_put_back(policy: Path) -> None:
    policy.write_text("#!/bin/sh\nexit 0\n")
    Machine(policy, without={"sshd"}, broken=True).prepare()
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"
    assert list(policy.parent.iterdir()) == [policy]


def test_what_a_killed_run_left_is_no_policy(policy: Path) -> None:
    policy.write_text(prepare.POLICY_TEXT)
    Machine(policy, without={"sshd"}).prepare()
    assert not policy.exists()


def test_missing_programs_are_told(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine(policy, without={"sshd"})
    assert machine.prepare(can_install=False) == 0
    assert machine.calls == []
    told = capsys.readouterr().out
    assert "openssh-server" in told
    assert "tests/namespaces" in told


def test_ci_fails_when_something_stays_missing(policy: Path) -> None:
    assert Machine(policy, without={"sshd"}, broken=True).prepare(is_ci=True) == 1
    assert Machine(policy, without={"sshd"}, broken=True).prepare(is_ci=False) == 0
    assert Machine(policy, without={"sshd"}).prepare(can_install=False, is_ci=True) == 1
