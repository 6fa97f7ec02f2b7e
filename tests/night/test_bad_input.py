"""Files and options that are wrong: where, what is allowed instead, and exit code 2."""

from pathlib import Path

import pytest

from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace

pytestmark = pytest.mark.timeout(240)

ENTRY = "profile: generic-linux, host: 192.0.2.1, user: x"
SWEEP = "name: s\npayloads:\n  - payload: counting\n"


@pytest.fixture
def workspace(tmp_path: Path) -> SimWorkspace:
    return make_sim_workspace(tmp_path, boards=2)


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        pytest.param(
            f"boards:\n  a: {{{ENTRY}\n  b: x\n",
            "3:4",
            "not valid YAML: expected ',' or '}'",
            id="syntax",
        ),
        pytest.param(
            f"boards:\n  a: {{{ENTRY}, hots: 1}}\n",
            "2:57",
            'unknown key "hots"; did you mean "host"? known: profile, host, ',
            id="unknown key",
        ),
        pytest.param(
            f"boards:\n  a: {{{ENTRY}}}\n  a: {{{ENTRY}}}\n",
            "3:3",
            'the key "a" is given twice',
            id="duplicate key",
        ),
        pytest.param(
            "boards:\n  a: {profile: jetson-tx3, host: 192.0.2.1, user: x}\n",
            "2:16",
            'unknown profile "jetson-tx3"; did you mean "jetson-tx2"? known: ',
            id="unknown profile",
        ),
    ],
)
def test_a_wrong_inventory(workspace: SimWorkspace, text: str, where: str, said: str) -> None:
    path = workspace.root / "inventory.yaml"
    path.write_text(text)
    workspace.write_sweep("s", SWEEP)
    shown = workspace.farm("run", "s", "--plain", status=2)
    assert f"farm: {path}:{where}: {said}" in shown
    assert "Traceback" not in shown
    assert not (workspace.root / "results").exists()


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        pytest.param(
            SWEEP.replace("counting", "countin"),
            "3:14",
            'unknown payload "countin"; did you mean "counting"? known: ',
            id="unknown payload",
        ),
        pytest.param(
            SWEEP + "    axes: {second: 1}\n",
            "4:12",
            '"second"; did you mean "seconds"?',
            id="unknown parameter",
        ),
        pytest.param(
            SWEEP + "    axes: {seconds: soon}\n",
            "4:21",
            "soon",
            id="wrong type",
        ),
        pytest.param(
            SWEEP + "repeat: 3\n",
            "4:1",
            'unknown key "repeat"; did you mean "repeats"?',
            id="unknown key",
        ),
        pytest.param(
            "boards: profile:jetson-tx2\n" + SWEEP,
            "1:9",
            "no board matches 'profile:jetson-tx2'",
            id="no board",
        ),
        pytest.param(SWEEP + SWEEP, "4:1", 'the key "name" is given twice', id="duplicate key"),
    ],
)
def test_a_wrong_sweep(workspace: SimWorkspace, text: str, where: str, said: str) -> None:
    workspace.write_sweep("s", text)
    shown = workspace.farm("run", "s", "--plain", status=2)
    assert f"{workspace.root / 'sweeps' / 's.yaml'}:{where}: " in shown
    assert said in shown
    assert "Traceback" not in shown
    assert not (workspace.root / "results").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "nosuch"), 'unknown sweep "nosuch"; known: '),
        (("run", "first", "--fast"), "No such option: --fast"),
        (("boards", "list", "sim-9"), "no board matches 'sim-9'"),
    ],
)
def test_a_wrong_option(workspace: SimWorkspace, words: tuple[str, ...], said: str) -> None:
    assert said in workspace.farm(*words, status=2)


def test_a_payload_that_changed_since_the_run_was_planned(workspace: SimWorkspace) -> None:
    """All boards are off, so the run stands; its payload is edited; a resume would mix results."""
    workspace.write_sweep("s", SWEEP + "limits: {connect_retries: 0}\n")
    workspace.farm("run", "s", "--plain", status=3)
    before = workspace.results()
    with (workspace.root / "payloads" / "counting" / "run.py").open("a") as file:
        file.write("# changed\n")
    shown = workspace.farm("resume", "last", "--plain", status=2)
    assert "payload 'counting' has changed since this run was planned" in shown
    assert "farm run" in shown
    assert workspace.results() == before


@pytest.mark.slow
def test_no_board_at_all_ends_with_3_and_loses_nothing(workspace: SimWorkspace) -> None:
    """The lab is down: nobody listens at the boards' addresses."""
    workspace.farm("sim", "up")
    workspace.farm("sim", "down")
    workspace.write_sweep("s", SWEEP + "repeats: 2\nlimits: {connect_retries: 1}\n")
    shown = workspace.farm("run", "s", "--plain", status=3)
    assert "farm: no board could be reached:" in shown
    for board in workspace.boards:
        assert f"{board}: connect: 127." in shown
    assert shown.count("refused the connection") >= 2
    assert "Is the SSH server running" in shown
    results = workspace.results()
    assert len(results) == 4
    assert {(one["state"], one["attempts"]) for one in results} == {("pending", 0)}
    assert all("refused the connection" in str(one["reason"]) for one in results)
    assert workspace.show()["trials"] == {"pending": 4}
    workspace.farm("sim", "up")
    try:
        workspace.farm("resume", "last", "--plain")
    finally:
        workspace.farm("sim", "down")
    assert {one["state"] for one in workspace.results()} == {"done"}


@pytest.mark.slow
def test_a_board_is_enrolled_and_then_runs(workspace: SimWorkspace) -> None:
    """What the message of an unknown host key tells to do does help; so does `boards clean`."""
    known_hosts = workspace.root / ".farm" / "sim" / "known_hosts"
    workspace.write_sweep("s", SWEEP)
    workspace.farm("sim", "up")
    try:
        known_hosts.write_text("")
        told = workspace.farm("run", "s", "--plain", status=3)
        assert "`farm boards enroll sim-1`" in told
        shown = workspace.farm("boards", "enroll", "sim-1", status=1)  # nobody answers yes
        assert "ED25519 SHA256:" in shown.replace("ssh-ed25519", "ED25519")
        assert known_hosts.read_text() == ""
        assert str(known_hosts) in workspace.farm("boards", "enroll", "all", "--yes")
        workspace.farm("resume", "last", "--plain")
        assert {one["state"] for one in workspace.results()} == {"done"}
        cleaned = workspace.farm("boards", "clean", "all")
        assert cleaned.count("MB freed") == 2
    finally:
        workspace.farm("sim", "down")
    assert "refused the connection" in workspace.farm("boards", "clean", "sim-1", status=3)
    assert "refused the connection" in workspace.farm("boards", "enroll", "sim-1", status=3)
