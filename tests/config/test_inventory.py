"""The inventory's short form, its precedence, and each fault at its line and column."""

from pathlib import Path

import pytest

from farm.config.inventory import load_inventory, load_inventory_document
from farm.errors import ConfigError
from farm.model.board import BoardSimulation, ConnectionLimits
from farm.model.profile import BoardProfile
from farm.model.record import Record

Profiles = dict[str, BoardProfile]

GOOD = """\
defaults: {user: nvidia, identity_file: keys/id, tags: [lab]}
groups:
  rack: {port: 2200, python: python3.6, tags: [rack-a]}
  tx2: {profile: jetson-tx2, python: python3.8, tags: [gpu], groups: rack}
boards:
  tx2-[08..10]:
    group: tx2
    host: "10.0.0.{n:d+100}"
    meter: "plug-{n}"
    outlet: "plug-{n}"
    simulation: {seed: "{n:d}"}
  bench:
    group: [tx2, rack]
    host: bench.lab
    user: root
    port: 22
    known_hosts: /etc/ssh/known
    password: file:secret
    tags: [gpu, desk]
meter_defaults: {kind: shelly, options: {generation: 2}, secret: "file:plugs"}
meters:
  plug-[08..10]: {host: "10.0.1.{n:d}", options: {id: "{n:d}"}, secret: "env:PLUG"}
  strip:
limits: {connecting: 8}
"""

HOST_FAULT = (
    '14:11: "host" should be a host name or an address alone, without user, port or blanks'
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inventory.yaml"


def errors_of(path: Path, text: str, profiles: Profiles) -> list[str]:
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_inventory(path, profiles)
    return str(caught.value).replace(f"{path}:", "").splitlines()


def test_ranges_groups_and_defaults(path: Path, profiles: Profiles) -> None:
    path.write_text(GOOD)
    inventory = load_inventory(path, profiles)
    assert [board.name for board in inventory.boards] == ["tx2-08", "tx2-09", "tx2-10", "bench"]
    assert [meter.name for meter in inventory.meters] == ["plug-08", "plug-09", "plug-10", "strip"]
    assert inventory.limits == ConnectionLimits(connecting=8)
    board = inventory.board("tx2-08")
    assert (board.host, board.port, board.user) == ("10.0.0.108", 2200, "nvidia")
    assert (board.profile, board.python) == ("jetson-tx2", "python3.8")
    assert (board.meter, board.outlet) == ("plug-08", "plug-08")
    assert board.tags == ("lab", "rack-a", "gpu")
    assert board.simulation == BoardSimulation(seed=8)
    meter = inventory.meter("plug-10")
    assert (meter.kind, meter.host, meter.secret) == ("shelly", "10.0.1.10", "env:PLUG")
    assert meter.options == {"generation": 2, "id": 10}


def test_a_board_wins_over_groups_and_the_last_group_over_others(
    path: Path, profiles: Profiles
) -> None:
    path.write_text(GOOD)
    bench = load_inventory(path, profiles).board("bench")
    assert (bench.user, bench.port) == ("root", 22)
    assert bench.python == "python3.6"
    assert bench.tags == ("lab", "rack-a", "gpu", "desk")


def test_paths_begin_at_the_inventorys_folder(path: Path, profiles: Profiles) -> None:
    path.write_text(GOOD)
    inventory = load_inventory(path, profiles)
    folder = path.parent
    assert inventory.board("tx2-08").identity_file == folder / "keys/id"
    assert inventory.board("tx2-08").known_hosts == folder / "known_hosts"
    assert inventory.board("bench").known_hosts == Path("/etc/ssh/known")
    assert inventory.board("bench").password == f"file:{folder}/secret"
    assert inventory.meter("strip").secret == f"file:{folder}/plugs"


def test_home_is_expanded(path: Path, profiles: Profiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    path.write_text(
        "boards:\n  a: {profile: zcu104, host: h, user: u, identity_file: ~/.ssh/id, "
        "known_hosts: ~no-such-user/x}\n"
    )
    board = load_inventory(path, profiles).board("a")
    assert board.identity_file == Path("/home/someone/.ssh/id")
    assert board.known_hosts == path.parent / "~no-such-user/x"


def test_a_relative_path_to_the_inventory_gives_absolute_paths(
    path: Path, profiles: Profiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text(GOOD)
    monkeypatch.chdir(path.parent)
    board = load_inventory(Path("inventory.yaml"), profiles).board("tx2-08")
    assert board.identity_file == path.parent / "keys/id"


class PlugOptions(Record):
    generation: int
    component: str


def test_later_checks_find_the_line_a_value_came_from(path: Path, profiles: Profiles) -> None:
    path.write_text(GOOD.replace("generation: 2", "generation: two"))
    _, document = load_inventory_document(path, profiles)
    with pytest.raises(ConfigError) as caught:
        document.validate(("meters", "plug-09", "options"), PlugOptions)
    assert str(caught.value).replace(str(path), "inv").splitlines() == [
        'inv:20:54: "generation" should be a whole number, not "two"',
        'inv:22:41: "component" is missing here',
        'inv:22:51: unknown key "id"; known: generation, component',
    ]


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        (
            "group: tx2\n",
            "group: tx3\n",
            [
                '6:3: "profile" is missing here',
                '7:12: unknown group "tx3"; did you mean "tx2"? known: rack, tx2',
            ],
        ),
        (
            "profile: jetson-tx2",
            "profile: jetson-tx",
            [
                '4:18: unknown profile "jetson-tx"; did you mean "jetson-tx2"? '
                "known: jetson-tx2, zcu104"
            ],
        ),
        (
            'meter: "plug-{n}"',
            'meter: "plug-{n:d+1}"',
            [
                '9:12: unknown meter "plug-9"; did you mean "plug-09"? '
                "known: plug-08, plug-09, plug-10, strip",
                '9:12: unknown meter "plug-11"; did you mean "plug-10"? '
                "known: plug-08, plug-09, plug-10, strip",
            ],
        ),
        (
            'outlet: "plug-{n}"',
            "outlet: sock",
            ['10:13: unknown outlet "sock"; known: plug-08, plug-09, plug-10, strip'],
        ),
        (
            "port: 2200",
            "port: 70000",
            ['3:16: "port" should be at most 65535, not 70000'],
        ),
        (
            'host: "10.0.0.{n:d+100}"',
            "host: 10.0.0.1",
            [
                '8:11: boards "tx2-08" and "tx2-09" have the same address 10.0.0.1:2200',
                '8:11: boards "tx2-08" and "tx2-10" have the same address 10.0.0.1:2200',
            ],
        ),
        (
            "  bench:",
            "  tx2-09:",
            ['12:3: "tx2-09" is given twice: also by "tx2-[08..10]" in line 6'],
        ),
        (
            "  bench:",
            "  tx2-[5]:",
            ['12:3: "tx2-[5]" is no range; write one like tx2-[01..40]'],
        ),
        (
            "host: bench.lab",
            'host: "h{n}"',
            ["14:11: {n} needs a range in the name, like tx2-[01..40]"],
        ),
        (
            "user: root",
            "user: root\n    name: b",
            ['16:5: "name" is not set here: it is the key above'],
        ),
        (
            "user: root",
            "usr: root",
            [
                '15:5: unknown key "usr"; did you mean "user"? known: profile, host, port, user, '
                "transport, identity_file, known_hosts, password, tags, telemetry, meter, "
                "outlet, work_dir, python, root_prefix, host_key_algorithms, is_maintenance, "
                "simulation, group"
            ],
        ),
        (
            "tags: [rack-a]}",
            "tags: [rack-a], groups: tx2}",
            [
                "3:65: groups go in a circle: tx2 > rack > tx2",
                "4:70: groups go in a circle: rack > tx2 > rack",
            ],
        ),
        ("host: bench.lab", "host: root@bench", [HOST_FAULT]),
        ("host: bench.lab", "host: -oProxyCommand=x", [HOST_FAULT]),
        ("user: root", 'user: "-x"', ['15:11: "user" should be a login name']),
        (
            "tags: [gpu, desk]",
            'tags: [gpu, "a b"]',
            ['19:17: the tag "a b" should be of letters, digits, ".", "_", "-"'],
        ),
        (
            "limits: {connecting: 8}",
            "limits: {connecting: 0, conecting: 1}",
            [
                '24:22: "connecting" should be at least 1, not 0',
                '24:25: unknown key "conecting"; did you mean "connecting"? known: connecting, '
                "starts_per_s, keepalive_s, keepalive_count, login_timeout_s",
            ],
        ),
        (
            "  strip:\n",
            "  strip: {min_w: 10, max_w: 5}\n",
            ['23:29: "min_w" (10) should be below "max_w" (5)'],
        ),
        (
            "limits:",
            "limit:",
            [
                '24:1: unknown key "limit"; did you mean "limits"? '
                "known: defaults, groups, boards, meter_defaults, meters, limits, notify"
            ],
        ),
        (
            "  strip:\n",
            "  strip: 3\n",
            ['23:10: "strip" should be a mapping (lines of "key: value"), not 3'],
        ),
    ],
)
def test_faults(path: Path, profiles: Profiles, old: str, new: str, errors: list[str]) -> None:
    assert old in GOOD
    assert sorted(errors_of(path, GOOD.replace(old, new), profiles)) == sorted(errors)


@pytest.mark.parametrize("value", ["hunter2", "'hunter2: x'", "env:", "env:a b", "[hunter2]"])
@pytest.mark.parametrize(("key", "column"), [("password", 15), ("secret", 13)])
def test_secrets_in_the_file_are_refused_and_not_repeated(
    path: Path, profiles: Profiles, key: str, column: int, value: str
) -> None:
    section = {
        "password": "boards:\n  b: {profile: zcu104, host: h, user: u,\n"
        f"    password: {value}}}\n",
        "secret": f"boards:\nmeters:\n  m: {{kind: shelly,\n    secret: {value}}}\n",
    }[key]
    errors = errors_of(path, section, profiles)
    line = 3 if key == "password" else 4
    told = (
        "text"
        if value.startswith("[")
        else "a reference: env:NAME, file:PATH or keyring:NAME; "
        "the secret itself does not belong in this file"
    )
    assert errors == [f'{line}:{column}: "{key}" should be {told}']


def test_groups_that_no_board_uses_are_checked(path: Path, profiles: Profiles) -> None:
    text = (
        "groups:\n  base: {port: 1}\n  spare: {groups: base, prt: 3, port: x}\n"
        "  tmpl: {port: '{n:d+2200}', groups: nobody}\nboards:\n"
    )
    errors = errors_of(path, text, profiles)
    assert [error[:60] for error in errors] == [
        '3:25: unknown key "prt"; did you mean "port"? known: port, t'[:60],
        '3:39: "port" should be a whole number, not "x"',
        '4:38: unknown group "nobody"; known: base, spare, tmpl',
    ]
    assert errors[0].endswith("is_maintenance, simulation, groups")


def test_an_inventory_needs_boards(path: Path, profiles: Profiles) -> None:
    assert errors_of(path, "defaults: {user: u}\n", profiles) == ['1:1: "boards" is missing here']
    path.write_text("boards:\n")
    assert load_inventory(path, profiles).boards == ()


def test_a_hundred_boards_fit_in_a_line(path: Path, profiles: Profiles) -> None:
    path.write_text(
        "boards:\n  b-[001..100]: {profile: zcu104, user: u, host: '10.0.0.{n:d}',"
        " port: '{n:d+2000}'}\n"
    )
    boards = load_inventory(path, profiles).boards
    assert len(boards) == 100
    assert (boards[99].name, boards[99].host, boards[99].port) == ("b-100", "10.0.0.100", 2100)
