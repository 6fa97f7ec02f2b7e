"""The image is made once a session, by the first test that asks for it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.vm.image import TOOLS, Image, build_image
from tests.vm.packages import PackagesError

_SEARCH = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests in this folder need a virtual board, which may be slow."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(900))


def _give_up(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Skips where it cannot be made; fails instead where CI=true."""
    if os.geteuid() != 0 or not Path("/etc/debian_version").exists():
        _give_up("a virtual board is made of Debian's packages, on Debian, as root")
    missing = [tool for tool in TOOLS if shutil.which(tool, path=_SEARCH) is None]
    if missing:
        _give_up(f"missing: {', '.join(missing)}; tests/prepare.py tells their packages")
    try:
        return build_image(tmp_path_factory.mktemp("vm") / "image")
    except (PackagesError, subprocess.TimeoutExpired) as error:
        _give_up(str(error))
        raise
