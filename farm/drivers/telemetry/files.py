"""No tool: what a board's files in /sys and /proc tell, which its agent reads anyway.

Channels as of tegrastats, as far as there are files for them (docs/telemetry.md).
"""

from collections.abc import Mapping

from farm.interfaces.telemetry import Telemetry


class FilesTelemetry(Telemetry):
    """Asks for no tool, so that no lines come."""

    def parse(self, line: str) -> Mapping[str, float]:
        """Nothing: there are no lines."""
        return {}
