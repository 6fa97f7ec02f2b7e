"""The transport suite on our SSH driver, against asyncssh's own server."""

from contextlib import AbstractAsyncContextManager

from farm.testing.transport_contract import TransportContract, TransportRig
from tests.drivers.transports.rigs import in_process_rig


class TestInProcess(TransportContract):
    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return in_process_rig()
