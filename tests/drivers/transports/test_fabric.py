"""The transport suite on fabric, against asyncssh's own server."""

import sys
from contextlib import AbstractAsyncContextManager

import pytest

from farm.drivers.registry import transport_class
from farm.errors import DriverError
from farm.testing.transport_contract import TransportContract, TransportRig
from tests.drivers.transports.fabric_rigs import fabric_in_process_rig


class TestFabricInProcess(TransportContract):
    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return fabric_in_process_rig()


@pytest.mark.parametrize("library", ["fabric", "paramiko"])
def test_missing_library_is_told_with_its_command(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith(("farm.drivers.transports.fabric", "farm.drivers.transports.paramiko")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(DriverError, match=rf"needs the library {library}: run `pip install 'fab"):
        transport_class("fabric")
