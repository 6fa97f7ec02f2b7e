import hashlib
import io
import zipfile

from farm.drivers.agent_bundle import BOOTSTRAP, build


def test_bundle_is_the_same_each_time() -> None:
    first = build()
    build.cache_clear()
    assert build() == first
    assert hashlib.sha256(first[0]).hexdigest() == first[1]


def test_bundle_has_the_agent_and_the_helpers_and_no_bytecode() -> None:
    names = zipfile.ZipFile(io.BytesIO(build()[0])).namelist()
    assert {"__main__.py", "agent.py", "payload_helpers/farm_payload.sh"} <= set(names)
    assert [name for name in names if not name.endswith((".py", ".sh"))] == []


def test_bootstrap_parses_where_old_pythons_must_read_it() -> None:
    # Nothing that Python 2.7 cannot parse: it must live to say how old it is.
    for forbidden in ("print ", "f'", 'f"', "nonlocal", "async ", " -> ", "*, ", "yield from"):
        assert forbidden not in BOOTSTRAP
