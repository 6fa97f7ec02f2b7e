"""What every transport owes, as a suite that a driver's test inherits.

A driver's author writes a *rig* (`TransportRig`): a board to reach, real or made up, whose
links can be cut; and a class::

    class TestMyTransport(TransportContract):
        def open_rig(self):
            return MyRig()              # an async context manager, a TransportRig inside

The tests are coroutines: run them with pytest-asyncio in auto mode. Failures raise
AssertionError with what was expected and what came. The parts can be inherited alone.
"""

from farm.testing.transport_commands import CommandTests
from farm.testing.transport_files import FileTests
from farm.testing.transport_links import LinkTests
from farm.testing.transport_rig import TransportRig

__all__ = ["CommandTests", "FileTests", "LinkTests", "TransportContract", "TransportRig"]


class TransportContract(CommandTests, FileTests, LinkTests):
    """Inherit, implement `open_rig`, and pytest runs these on your driver."""
