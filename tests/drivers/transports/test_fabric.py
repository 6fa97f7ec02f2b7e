"""The transport suite on fabric, against asyncssh's own server."""

from contextlib import AbstractAsyncContextManager

from farm.testing.transport_contract import TransportContract, TransportRig
from tests.drivers.transports.fabric_rigs import fabric_in_process_rig


class TestFabricInProcess(TransportContract):
    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return fabric_in_process_rig()
